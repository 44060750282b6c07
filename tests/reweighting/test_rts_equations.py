"""RTS: the paper's equations, and rounds with several sets of weights combined."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from sklpf.reweighting import bias, combine_rounds, influence, rts_curve
from sklpf.uncertainty import standard_error

CURVE = np.array([0.0, 3.0, -2.0, 700.0, 5.0])  # some log Z_k


def marginal(log_weights):
    """The exact distribution of the level, equation 8."""
    return log_softmax(CURVE + log_weights)


def random_weights(seed, scale=1.0):
    return np.random.default_rng(seed).normal(scale=scale, size=len(CURVE)) - CURVE


def test_equation_12_inverts_equation_8():
    log_weights = random_weights(0, scale=3.0)
    np.testing.assert_allclose(rts_curve(log_weights, marginal(log_weights)), CURVE, rtol=1e-12)


def test_rounds_with_different_weights():
    log_weights = np.array([random_weights(seed, scale=2.0) for seed in range(4)])
    exact = np.array([marginal(row) for row in log_weights])
    sizes = np.array([1.0, 10.0, 3.0, 7.0])
    np.testing.assert_allclose(combine_rounds(log_weights, exact, sizes), CURVE, atol=1e-9)
    shares = softmax(exact + np.random.default_rng(5).normal(scale=0.3, size=exact.shape), axis=1)
    zeta = combine_rounds(log_weights, np.log(shares), sizes)
    gradient = sizes @ (shares - softmax(zeta + log_weights, axis=1))
    np.testing.assert_allclose(gradient, 0, atol=1e-10)
    last_only = combine_rounds(log_weights, np.log(shares), [1e-12, 1e-12, 1e-12, 1.0])
    np.testing.assert_allclose(last_only, rts_curve(log_weights, np.log(shares))[3], atol=1e-8)


def chain_shares(n_chains, seed):
    """Averages of correlated chains, and the weights they ran with."""
    rng = np.random.default_rng(seed)
    return softmax(rng.normal(scale=0.5, size=(n_chains, 5)), axis=1), rng.normal(size=5)


def test_influence_gives_equation_16():
    shares, log_weights = chain_shares(50, 0)
    zeta = rts_curve(log_weights, np.log(shares.mean(axis=0)))
    influences = influence(log_weights[np.newaxis], shares[np.newaxis], np.ones(1), zeta, 3)
    covariance, mean = np.cov(shares.T) / 50, shares.mean(axis=0)
    expected = covariance[0, 0] / mean[0] ** 2 + covariance[3, 3] / mean[3] ** 2
    expected -= 2 * covariance[0, 3] / (mean[0] * mean[3])
    assert standard_error(influences) == pytest.approx(np.sqrt(expected), rel=1e-10)
    assert influences.mean() == pytest.approx(0, abs=1e-12)


def test_influence_of_several_rounds_is_the_derivative():
    shares = np.array([chain_shares(50, s)[0] for s in range(2)])
    log_weights = np.random.default_rng(3).normal(size=(2, 5))
    sizes = np.array([1.0, 4.0])

    def estimate(weights):
        return combine_rounds(log_weights, np.log(np.einsum("m,tmk->tk", weights, shares)), sizes)

    equal, step = np.full(50, 0.02), 1e-6
    influences = influence(log_weights, shares, sizes / sizes.max(), estimate(equal), 3)
    for chain in (0, 17):
        tilted = (1 - step) * equal + step * (np.arange(50) == chain)
        slope = (estimate(tilted) - estimate(equal))[3] / step
        assert slope == pytest.approx(influences[chain], abs=1e-4)


def test_equation_15_is_the_bias_to_second_order():
    """2000 experiments of 100 chains: the mean error of log ratios against the mean prediction,
    z-bound 4.
    """
    rng = np.random.default_rng(0)
    # means 1, variances 1 / 0.3 and 1 / 5
    shares = rng.gamma([0.3, 5.0], 1.0, size=(2000, 100, 2)) / [0.3, 5.0]
    error = np.log(shares[..., 1].mean(axis=1)) - np.log(shares[..., 0].mean(axis=1))
    predicted = np.array([bias(experiment) for experiment in shares])
    assert predicted.mean() == pytest.approx((1 / 0.3 - 1 / 5) / 200, rel=0.1)
    assert abs((error - predicted).mean()) < 4 * (error - predicted).std() / np.sqrt(2000)
