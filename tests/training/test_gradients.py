"""The gradients that models train by, against differences."""

import numpy as np
import pytest
from continuous_models import assert_family_has_its_slopes, slopes
from scipy.optimize import check_grad
from scipy.special import expit

from sklpf import MeanCovarianceRBM
from sklpf.models.bilinear._model import BilinearLatents, starting_parameters
from sklpf.models.gaussian_rbm._learning import Parameters, gradient_sums
from sklpf.models.mcrbm._model import UnitsFamily
from sklpf.models.products._model import ProductFamily
from sklpf.models.products._path import Experts

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("heavy", [False, True])
def test_of_products_of_experts(heavy):
    family = ProductFamily(5, 3, heavy)
    experts = Experts(RNG.normal(size=(5, 3)), RNG.uniform(0.5, 2, 5) if heavy else None)
    assert_family_has_its_slopes(family, family.pack(experts), RNG.normal(size=(4, 3)), RNG)
    family = ProductFamily(3, 3, heavy)  # of as many experts log Z is closed
    exponents = np.array([0.8, 1.5, 3.0]) if heavy else None
    parameters = family.pack(Experts(RNG.normal(size=(3, 3)), exponents))
    _, slope = family.log_partition(parameters)
    expected = slopes(lambda parameters: family.log_partition(parameters)[0], parameters)
    np.testing.assert_allclose(slope, expected, rtol=1e-6)


def test_of_mean_and_covariance_units():
    family = UnitsFamily(5, 4, 3, 2)
    model = MeanCovarianceRBM.from_parameters(
        RNG.normal(size=(5, 2)),
        RNG.uniform(0, 0.6, (5, 4)),
        0.5 * RNG.normal(size=(3, 2)),
        intercept_covariance=RNG.normal(1, 1, 4),
        intercept_visible=0.5 * RNG.normal(size=2),
        noise_std=1.2,
    )
    assert_family_has_its_slopes(family, family.pack(model._units()), RNG.normal(size=(6, 2)), RNG)


def test_of_bilinear_latents():
    X = RNG.laplace(size=(5, 3))
    latents = BilinearLatents(X, starting_parameters(X, (4, 3, 2), np.random.RandomState(0)), 0.3)
    z = latents.start() + 0.1 * RNG.random((5, 5))
    for j, step in enumerate(1e-6 * np.eye(5)):
        difference = (latents.log_density(z + step) - latents.log_density(z - step)) / 2e-6
        np.testing.assert_allclose(difference, latents.grad(z)[:, j], rtol=1e-4, atol=1e-4)


def test_of_a_gaussian_rbm():
    v = RNG.normal(scale=2, size=(7, 2))
    start = RNG.normal(size=(3, 2)), RNG.normal(size=2), RNG.normal(size=3), RNG.normal(size=2)
    edges = np.cumsum([part.size for part in start])[:-1]

    def parameters(values):
        parts = [p.reshape(s.shape) for p, s in zip(np.split(values, edges), start)]
        return Parameters(*parts[:3], np.exp(parts[3]))

    def slope(values):
        here = parameters(values)
        away = v - here.intercept_visible
        on = expit(here.hidden_fields(v)) / len(v)
        by_weights, along, pull = gradient_sums(here.components, on, away)
        by_visible = (away.mean(axis=0) - pull) / here.variances
        by_log_variance = (0.5 * np.mean(away**2, axis=0) - along) / here.variances
        parts = by_weights / here.variances, by_visible, on.sum(axis=0), by_log_variance
        return np.concatenate([part.ravel() for part in parts])

    values = np.concatenate([part.ravel() for part in start])
    assert check_grad(lambda values: parameters(values).log_f(v).mean(), slope, values) < 1e-5
