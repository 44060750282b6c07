"""compare: the paired difference of two models' held-out log-likelihoods."""

import numpy as np
import pytest
from scipy.stats import t as student_t
from sklearn.datasets import load_digits
from sklearn.neighbors import KernelDensity

from sklpf import AIS, BernoulliRBM, FactorialMixture, compare
from sklpf.models import ScoreInterval

BINARY = (load_digits().data > 7).astype(np.float64)
TRAIN, TEST = BINARY[:1200], BINARY[1200:]


def trained(n_components, **options):
    return BernoulliRBM(n_components, batch_size=50, n_iter=15, random_state=0, **options).fit(TRAIN)


def test_difference_is_paired():
    a, b = trained(12), trained(4)
    result = compare(a, b, TEST)
    difference = a.score_samples(TEST) - b.score_samples(TEST)
    assert isinstance(result, ScoreInterval)
    assert result.mean == pytest.approx(a.score(TEST) - b.score(TEST), abs=1e-10)
    assert result.mean == pytest.approx(difference.mean(), abs=1e-12)
    half = student_t.isf(0.025, len(TEST) - 1) * difference.std(ddof=1) / np.sqrt(len(TEST))
    np.testing.assert_allclose(result.sampling, (result.mean - half, result.mean + half))
    assert result.partition == (result.mean, result.mean)  # both log Z are exact
    assert result.combined == result.sampling
    unpaired = np.hypot(*(np.diff(model.score_interval(TEST).sampling)[0] for model in (a, b)))
    assert np.diff(result.sampling)[0] < 0.8 * unpaired
    swapped = compare(b, a, TEST)
    np.testing.assert_allclose(swapped.combined, (-result.combined[1], -result.combined[0]))


def test_errors_of_log_z_are_added_once():
    ais = AIS(n_chains=200, n_temperatures=101)
    a, b = trained(12, partition_estimator=ais), trained(8, partition_estimator=ais)
    few, many = compare(a, b, TEST), compare(a, b, np.tile(TEST, (4, 1)))
    common = np.hypot(*(np.diff(model.log_partition_interval_)[0] / 2 for model in (a, b)))
    for result in (few, many):
        np.testing.assert_allclose(result.partition, (result.mean - common, result.mean + common))
        half = np.hypot(common, result.mean - result.sampling[0])
        np.testing.assert_allclose(result.combined, (result.mean - half, result.mean + half))
    assert np.diff(many.sampling)[0] == pytest.approx(np.diff(few.sampling)[0] / 2, rel=0.01)


def test_a_model_against_itself_and_at_another_level():
    a, b = trained(12), trained(4)
    assert compare(a, a, TEST).combined == (0, 0)
    wide, narrow = (np.diff(compare(a, b, TEST, level=level).combined)[0] for level in (0.99, 0.5))
    assert wide > 3 * narrow


def test_the_interval_covers():
    """The difference over a large sample lies in 95 % of the intervals of small ones."""
    rng = np.random.default_rng(0)
    a, b = (
        BernoulliRBM.from_parameters(rng.normal(size=(3, 6)), rng.normal(size=6), rng.normal(size=3)) for _ in range(2)
    )
    X = a.sample(40_000, random_state=0)
    truth = compare(a, b, a.sample(400_000, random_state=1)).mean
    inside = 0
    for rows in X.reshape(400, 100, 6):
        low, high = compare(a, b, rows).combined
        inside += low <= truth <= high
    # Binomial(400, 0.95): mean 380, deviation 4.4; beyond 4 of them (362) a false alarm is 1e-4
    assert inside > 362


def test_models_with_a_likelihood_for_each_row():
    X = np.random.default_rng(0).normal(size=(120, 4))
    small, large = (FactorialMixture(n, noise_variance=0.5, random_state=0).fit(X) for n in (1, 4))
    exact = compare(large, small, X[:30])
    assert exact.mean == pytest.approx(large.score(X[:30]) - small.score(X[:30]))
    assert exact.partition == (exact.mean, exact.mean)
    large.set_params(partition_estimator=AIS(100, 100))
    estimated = compare(large, small, X[:30])
    low, high = estimated.partition
    assert low < estimated.mean < high
    half = (high - low) / 2
    assert abs(estimated.mean - exact.mean) < 2.5 * half  # 4.9 standard errors: false alarm 1e-6


def test_bad_input():
    model = trained(4)
    with pytest.raises(TypeError, match="model_b must be a model of sklpf.*got sklearn.neighbors.*KernelDensity"):
        compare(model, KernelDensity().fit(TRAIN), TEST)
    with pytest.raises(ValueError, match="level must lie"):
        compare(model, model, TEST, level=0)
    with pytest.raises(ValueError, match="at least 2 rows"):
        compare(model, model, TEST[:1])
