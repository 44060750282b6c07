"""Elementary samplers against the distributions that they draw from."""

import numpy as np
import pytest
from scipy import stats

from sklpf.sampling import importance_resample, inverse_cdf_sample


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "law",
    [stats.norm(1, 2), stats.expon(), stats.cauchy(), stats.beta(0.5, 2)],
    ids=["normal", "exponential", "cauchy", "beta"],
)
def test_inverse_transformation_draws_from_the_law(law, seed):
    """12 tests at p > 1e-4: a false alarm in 1.2e-3."""
    draws = inverse_cdf_sample(law.ppf, 2000, random_state=seed)
    assert draws.shape == (2000,)
    assert stats.kstest(draws, law.cdf).pvalue > 1e-4


@pytest.mark.parametrize("seed", range(3))
def test_resampling_draws_from_the_target(seed):
    """3 tests at p > 1e-4: a false alarm in 3e-4. 500 of 100,000 samples, whose own error is ten
    times smaller.
    """
    rng = np.random.default_rng(seed)
    target, proposal = stats.norm(0, 1), stats.t(3, scale=1.5)
    samples = proposal.rvs(100_000, random_state=rng)
    log_weights = target.logpdf(samples) - proposal.logpdf(samples)
    draws = importance_resample(samples, log_weights + 800, 500, seed)
    assert stats.kstest(draws, target.cdf).pvalue > 1e-4


def test_resampling_takes_whole_rows_and_never_those_of_weight_zero():
    rows = np.arange(6).reshape(3, 2)
    drawn = importance_resample(rows, [-np.inf, 0.0, np.log(3)], 4000, 0)
    assert drawn.shape == (4000, 2)
    counts = np.bincount(drawn[:, 0] // 2, minlength=3)
    assert counts[0] == 0
    assert abs(counts[1] - 1000) < 4.9 * np.sqrt(750)  # binomial; a false alarm in 1e-6


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: inverse_cdf_sample(3.0, 5), TypeError, "quantile must be a function"),
        (lambda: inverse_cdf_sample(stats.norm.ppf, 2.5), ValueError, "n must be an integer"),
        (lambda: inverse_cdf_sample(lambda u: np.full(len(u), np.nan), 5), ValueError, "NaN at"),
        (lambda: importance_resample([1, 2], [0.0], 5), ValueError, "must have one number"),
        (lambda: importance_resample([1, 2], [np.nan, 0.0], 5), ValueError, "must be numbers"),
        (lambda: importance_resample([1, 2], [-np.inf, -np.inf], 5), ValueError, "at least one"),
        (lambda: importance_resample([[1], [1, 2]], [0.0, 0.0], 5), ValueError, "a rectangular"),
        (lambda: importance_resample([1, 2], [0.0, 0.0], -1), ValueError, "n must be an integer"),
    ],
)
def test_bad_input_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()
