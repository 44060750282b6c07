"""The law of beta given a state: normaliser, draws and the cubic between nodes, against quadrature.

A test of Kolmogorov and Smirnov fails in 1e-4 of the cases by chance; seeds are fixed.
"""

import numpy as np
import pytest
from scipy.integrate import cumulative_simpson, simpson
from scipy.stats import kstest

from sklpf.reweighting import between_nodes, draw_betas, log_densities, node_sums

LADDER = np.array([0.0, 0.1, 0.4, 1.0])
LOG_WEIGHTS = np.array([0.3, -1.0, 0.5, 0.0])


def density_by_quadrature(log_weights, gain):
    """Coordinates t, beta(t) and log q(t | x), normalised by Simpson's rule within each cell."""
    t = np.linspace(0, 3, 3 * 20_000 + 1)
    log_q = np.interp(t, np.arange(4), log_weights + LADDER * gain)
    log_q -= log_q.max()
    cells = [log_q[k * 20_000 :][:20_001] for k in range(3)]
    log_q -= np.log(sum(simpson(np.exp(cell), dx=t[1]) for cell in cells))
    return t, np.interp(t, np.arange(4), LADDER), log_q


@pytest.mark.parametrize("gain", [0.0, 1e-12, 13.0, -40.0, 700.0, -2000.0])
def test_density_is_normalised(gain):
    t, _, log_q = density_by_quadrature(LOG_WEIGHTS, gain)
    found = log_densities(LOG_WEIGHTS, LADDER, np.array([gain]))[0]
    np.testing.assert_allclose(found, log_q[[0, 20_000, 40_000, 60_000]], rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("gain", [0.0, 13.0, -40.0, 700.0, -2000.0])
def test_draws_follow_the_density(gain):
    t, betas, log_q = density_by_quadrature(LOG_WEIGHTS, gain)
    cumulative = np.r_[0.0, cumulative_simpson(np.exp(log_q), x=t)]
    uniforms = np.random.default_rng(0).random((2, 20_000))
    drawn = draw_betas(LOG_WEIGHTS, LADDER, np.full(20_000, gain), uniforms)
    assert np.all((drawn >= 0) & (drawn <= 1))
    assert kstest(drawn, lambda beta: np.interp(beta, betas, cumulative)).pvalue > 1e-4


def test_sums_are_those_of_densities_and_their_slopes():
    rng, first = np.random.default_rng(0), np.array([0, 2, 5])
    gains = rng.normal(3, 5, size=(5, 12_000))  # more than are taken at once
    sums = node_sums(LOG_WEIGHTS, LADDER, gains).grouped(first)
    for keep in ([0], [1], [0, 1]):
        chosen = np.concatenate([gains[first[g] : first[g + 1]].ravel() for g in keep])
        q = np.exp(log_densities(LOG_WEIGHTS, LADDER, chosen))
        log_sums, slopes = sums.of(np.array(keep))
        np.testing.assert_allclose(log_sums, np.log(q.sum(axis=0)), rtol=1e-12)
        np.testing.assert_allclose(slopes, chosen @ q / q.sum(axis=0), rtol=1e-9)


def test_density_between_nodes_is_the_average_of_q():
    """On 41 nodes the cubic is off by less than 1e-5 of the density, and its slope by less than
    1e-3 nats.
    """
    gains, ladder = np.random.default_rng(0).normal(1, 2, size=(1, 500)), np.linspace(0, 1, 41) ** 2
    log_weights = np.sin(3 * ladder)
    log_sums, slopes = node_sums(log_weights, ladder, gains).of(np.array([0]))
    betas = np.random.default_rng(1).random(50)
    log_p, slope = between_nodes(log_weights, ladder, log_sums - np.log(500), slopes, betas)
    at = np.interp(betas, ladder, log_weights)[:, np.newaxis] + betas[:, np.newaxis] * gains
    normaliser = log_weights[0] - log_densities(log_weights, ladder, gains[0])[:, 0]
    q = np.exp(at - normaliser)
    np.testing.assert_allclose(log_p, np.log(q.mean(axis=1)), atol=1e-5)
    np.testing.assert_allclose(slope, (q @ gains[0]) / q.sum(axis=1), atol=1e-3)
