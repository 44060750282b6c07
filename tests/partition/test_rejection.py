"""RejectionSampling: exact draws, an interval that covers for any number of them, bounds that are
none.
"""

from dataclasses import replace

import numpy as np
import pytest
from marks import large
from scipy import optimize, stats
from sklearn.exceptions import ConvergenceWarning

from sklpf import Gaussian, GeometricPath, Mixture, StudentT
from sklpf.partition import RejectionSampling


def normal(x):
    return -np.sum(x**2, axis=1) / 2


PATH = GeometricPath(normal, base=StudentT(0.0, 1.0, df=3))
GRID = np.linspace(-5, 5, 9999)[:, None]
BOUND = float(np.max(normal(GRID) - PATH.base.log_density(GRID)))
LOG_BOUND = BOUND + 0.01


@pytest.mark.parametrize("seed", range(3))
def test_accepted_draws_are_from_the_target(seed):
    """3 tests at p > 1e-4: a false alarm in 3e-4."""
    fitted = RejectionSampling(LOG_BOUND, 3000, random_state=seed).fit(PATH)
    assert stats.kstest(fitted.samples_[:, 0], stats.norm.cdf).pvalue > 1e-4
    assert len(fitted.samples_) == fitted.result_.diagnostics["n_accepted"]


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5, 0.9, 0.97, 0.9999])
@pytest.mark.parametrize("n", [50, large(1000)])
def test_the_interval_covers_by_enumeration(share, n):
    """Over all numbers of accepted draws that would be trusted or not, but for none: no
    randomness.
    """
    covered, made = 0.0, RejectionSampling(LOG_BOUND, 50, random_state=0).fit(PATH).run_
    for k in range(1, n + 1):
        run = replace(made, n_samples=n, n_accepted=k, log_bound=0.0)
        low, high = run.read().interval()
        covered += stats.binom.pmf(k, n, share) * (low <= np.log(share) <= high)
    assert covered >= 0.95 * (1 - stats.binom.pmf(0, n, share)) - 1e-9


def test_few_accepted_draws_are_not_trusted():
    with pytest.warns(ConvergenceWarning, match=r"\d of 50 draws were accepted"):
        RejectionSampling(LOG_BOUND + 2.5, 50, random_state=0).fit(PATH)
    with pytest.warns(ConvergenceWarning, match="converge: none of 20 draws was accepted"):
        fitted = RejectionSampling(LOG_BOUND + 20, 20, random_state=0).fit(PATH)
    assert fitted.log_partition_ == -np.inf
    assert fitted.samples_.shape == (0, 1)


@pytest.mark.parametrize("log_bound", [BOUND - 0.1, -50.0])
def test_a_bound_that_is_exceeded_is_an_error_with_the_point(log_bound):
    with pytest.raises(ValueError, match=r"log_bound is no bound: log f - log q is \S+ at \["):
        RejectionSampling(log_bound, random_state=0).fit(PATH)


# ---- a bound that climbs find
def random_mixture(seed, d):
    """Four Gaussians of other widths, normalised, and a point near each top."""
    rng = np.random.default_rng(seed)
    means, scales = 2 * rng.normal(size=(4, d)), np.exp(0.7 * rng.normal(size=4) - 0.7)
    parts = [Gaussian(m, s**2) for m, s in zip(means, scales)]
    return Mixture(parts, rng.dirichlet(np.ones(4))).log_density, means


@pytest.mark.parametrize("d", [1, 2])
def test_climbs_find_the_bound(d):
    """Of 10 mixtures, as high as the best of local searches from all their means; intervals of 95 %
    cover in at least 6 (a false alarm in 6e-5 for each d).
    """
    base = StudentT(np.zeros(d), 6.0, df=4)
    n_covered = 0
    for seed in range(10):
        log_density, means = random_mixture(seed, d)
        fitted = RejectionSampling(random_state=seed).fit(GeometricPath(log_density, base=base))

        def loss(x, log_density=log_density):
            return (base.log_density(x[np.newaxis]) - log_density(x[np.newaxis]))[0]

        top = max(-optimize.minimize(loss, mean, method="Nelder-Mead").fun for mean in means)
        assert 0 < fitted.run_.log_bound - top < 0.002
        assert fitted.run_.bound_evaluations == fitted.result_.diagnostics["bound_evaluations"] > 0
        low, high = fitted.log_partition_interval_
        n_covered += low <= 0 <= high
    assert n_covered >= 6


def test_with_a_gradient_climbs_find_the_same_bound():
    with_gradient = GeometricPath(normal, grad=lambda x: -x, base=PATH.base)
    runs = (RejectionSampling(random_state=0).fit(p).run_ for p in (PATH, with_gradient))
    assert [run.log_bound for run in runs] == pytest.approx([BOUND + 0.001] * 2, abs=2e-4)
