"""Effective numbers of correlated draws, and whether chains agree."""

import numpy as np
import pytest

from sklpf.uncertainty import effective_draws, rank_normalised, split_r_hat


def autoregressive(correlation, n_chains, n_draws, seed=0):
    noise = np.random.default_rng(seed).standard_normal((n_chains, n_draws))
    x = noise.copy()
    for t in range(1, n_draws):
        x[:, t] = correlation * x[:, t - 1] + np.sqrt(1 - correlation**2) * noise[:, t]
    return x


@pytest.mark.parametrize(("correlation", "n_chains"), [(0.5, 1), (0.9, 4)])
def test_effective_number_of_autoregressive_chains(correlation, n_chains):
    """n (1 - r) / (1 + r); over 8 chains of these lengths the mean is within 10 %."""
    truth = 20_000 * (1 - correlation) / (1 + correlation)
    found = [
        effective_draws(autoregressive(correlation, n_chains, 20_000 // n_chains, seed))
        for seed in range(8)
    ]
    assert np.mean(found) == pytest.approx(truth, rel=0.1)


def test_differences_between_chains_count():
    x = autoregressive(0.0, 4, 1000)
    apart = x + np.array([[0.0], [0.0], [1.0], [1.0]])
    assert effective_draws(apart) < 20
    assert split_r_hat(apart) > 1.1
    assert split_r_hat(x) < 1.01


def test_constants_and_short_chains():
    assert effective_draws(np.full((2, 100), 0.3)) == 200
    assert effective_draws(np.zeros((2, 5))) == 10
    assert split_r_hat(np.full((2, 100), 0.3)) == 1
    assert split_r_hat(np.array([[1.0, 2.0]])) == 1


def test_ranks_have_normal_quantiles():
    x = np.random.default_rng(0).standard_cauchy((4, 250))
    z = rank_normalised(x)
    assert z.shape == x.shape
    assert abs(z.mean()) < 1e-12
    assert z.std() == pytest.approx(1, abs=0.01)
    np.testing.assert_array_equal(np.argsort(z.ravel()), np.argsort(x.ravel()))
