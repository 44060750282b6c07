"""Mixtures of bases, and Gaussians at several modes.

z-bounds: 4 standard errors is a false-alarm rate of 6e-5 a comparison; seeds are fixed.
"""

import numpy as np
import pytest
from continuous_models import slopes

from sklpf import Gaussian, Mixture, StudentT, Uniform
from sklpf.paths import Box, defensive, fit_base

Z_BOUND = 4.0
FULL = [[2.0, 0.9], [0.9, 1.0]]
PARTS = (
    Gaussian([0, 0], FULL),
    StudentT([3, -1], FULL, df=4),
    Uniform([-1, -1], [2, 3]),
    Gaussian([1, 1], 2.0).truncated(0, np.inf),
)
MIXTURE = Mixture(PARTS, [1, 2, 3, 2])
POINTS = np.random.default_rng(0).normal(scale=2.0, size=(200, 2))
MODES = np.array([[-4.0, 0.0], [4.0, 1.0], [0.0, 6.0]])
SCALES = np.array([0.3, 0.6, 1.0])
SHARES = np.array([0.5, 0.3, 0.2])


THREE = Mixture([Gaussian(*part) for part in zip(MODES, SCALES**2)], SHARES)
log_three = THREE.log_density
grad_three = THREE.grad_log_density


def test_the_density_is_the_weighted_sum_of_the_parts():
    densities = [np.exp(part.log_density(POINTS)) for part in PARTS]
    expected = np.array([1, 2, 3, 2]) / 8 @ densities
    np.testing.assert_allclose(np.exp(MIXTURE.log_density(POINTS)), expected, rtol=1e-12)
    np.testing.assert_allclose(MIXTURE.weights, np.array([1, 2, 3, 2]) / 8)


def test_the_gradient_is_that_of_differences():
    for point, slope in zip(POINTS, MIXTURE.grad_log_density(POINTS)):
        expected = slopes(lambda x: MIXTURE.log_density(x[np.newaxis])[0], point)
        np.testing.assert_allclose(slope, expected, atol=1e-6)


def test_draws_have_the_weights_and_moments():
    mixture = Mixture([Gaussian([-9, 0], FULL), Gaussian([9, 3], 0.5)], [0.2, 0.8])
    n = 20_000
    x = mixture.sample(n, np.random.default_rng(1))
    left = x[:, 0] < 0
    assert abs(left.mean() - 0.2) < Z_BOUND * np.sqrt(0.16 / n)
    for part, own in ((0, x[left]), (1, x[~left])):
        error = mixture.components[part].scale / np.sqrt(len(own))
        assert np.all(np.abs(own.mean(axis=0) - mixture.components[part].mean) < Z_BOUND * error)
    spread = x.std(axis=0)
    np.testing.assert_allclose(spread, mixture.scale, rtol=0.05)
    np.testing.assert_allclose(mixture.center, [5.4, 2.4])


# ---- Gaussians at several modes
@pytest.mark.parametrize("grad", [grad_three, None])
def test_climbs_find_all_modes_and_their_masses(grad):
    starts = np.random.default_rng(0).normal(scale=5.0, size=(200, 2))
    base = Gaussian.at_modes(log_three, starts, grad=grad)
    order = [np.linalg.norm(MODES - part.mean, axis=1).argmin() for part in base.components]
    assert sorted(order) == [0, 1, 2]
    means = np.array([part.mean for part in base.components])
    np.testing.assert_allclose(means, MODES[order], atol=1e-3)
    np.testing.assert_allclose(base.weights, SHARES[order], atol=1e-3)
    covariances = [part.covariance for part in base.components]
    expected = SCALES[order, np.newaxis, np.newaxis] ** 2 * np.eye(2)
    np.testing.assert_allclose(covariances, expected, rtol=1e-3, atol=1e-6)


def test_a_fitted_base_keeps_a_share_of_the_old_one_in_a_box():
    rng = np.random.default_rng(0)
    bounds = Box(np.full(2, -5.0), np.full(2, 5.0))
    old = Gaussian([0.0, 0.0], 9.0).truncated(*bounds)
    fitted = fit_base(rng.normal(scale=0.3, size=(400, 2)), 200.0, bounds, rng)
    corner = np.array([[4.9, 4.9]])
    assert fitted.log_density(corner) < old.log_density(corner) - 100
    defended = defensive(fitted, old, bounds)
    assert defended.log_density(corner) > old.log_density(corner) + np.log(0.05)
