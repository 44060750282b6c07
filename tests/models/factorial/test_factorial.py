"""FactorialMixture: its likelihood, its fit, its samples, and what it refuses."""

import numpy as np
import pytest
from known_problems import all_rows
from scipy.special import logsumexp

from sklpf import Exact, FactorialMixture, Tempering
from sklpf.datasets import make_factorial_shapes

SHAPES = {"noise_variance": 0.01, "component_variance": 0.1225, "activation_probability": 0.3}


def shapes(n=600, kind="bars", seed=0):
    return make_factorial_shapes(n, shapes=kind, random_state=seed)


@pytest.fixture(scope="module")
def fitted():
    """A model of 8 components, fitted by annealing to bars whose noise leaves the activations
    uncertain.
    """
    X, _, _ = make_factorial_shapes(300, shapes="bars", noise_variance=0.1, random_state=0)
    options = {"tempering": Tempering(n_tempered=30), "random_state": 0}
    return FactorialMixture(8, noise_variance=0.1, **options).fit(X), X


def enumerated(model, X):
    """log p(x) by the definition, in NumPy."""
    z = all_rows(len(model.components_))
    variance = model.noise_variance_ + np.einsum("nk,kj,nj->n", z, model.component_covariance_, z)
    p = model.activation_probability_
    log_prior = z @ np.log(p) + (1 - z) @ np.log1p(-p)
    squares = np.sum((X[:, None] - z @ model.components_) ** 2, axis=2)
    log_normal = -0.5 * X.shape[1] * np.log(2 * np.pi * variance) - squares / (2 * variance)
    return logsumexp(log_prior + log_normal, axis=1)


# -- likelihood
def test_score_samples_enumerate_the_activations(fitted):
    model, X = fitted
    values = model.score_samples(X[:40])
    np.testing.assert_allclose(values, enumerated(model, X[:40]), rtol=1e-10)
    assert model.score(X[:40]) == pytest.approx(values.mean(), rel=1e-14)
    order = np.random.default_rng(0).permutation(40)[:15]
    np.testing.assert_array_equal(model.score_samples(X[order]), values[order])


def test_more_components_than_are_enumerated_are_annealed():
    X = np.random.default_rng(0).normal(size=(200, 10))
    model = FactorialMixture(21, noise_variance=0.5, random_state=0).fit(X)
    rows = X[:4]
    interval = model.score_interval(rows)
    low, high = interval.partition
    assert low < interval.mean < high  # estimated, and trusted: no warning
    estimated = model.partition_estimator_
    errors = estimated.log_partition_std_error_
    off = estimated.log_partition_ - Exact().fit(model.path(rows)).log_partition_
    assert errors.max() < 0.1
    assert np.abs(off / errors).max() < 4.5  # 4 rows, t with 99 degrees: false alarm 8e-5


def test_samples_have_the_moments_of_the_model(fitted):
    model, _ = fitted
    X, n = model.sample(20_000, random_state=0), 20_000
    p, means = model.activation_probability_, model.components_
    np.testing.assert_array_equal(X, model.sample(n, random_state=0))
    second = np.outer(p, p) + np.diag(p * (1 - p))
    variance = model.noise_variance_ + np.sum(second * model.component_covariance_)
    variance = variance + (p * (1 - p)) @ means**2
    # 16 means and 16 variances against 5 standard errors (normal tails): false alarms below 1e-4
    assert np.all(np.abs(X.mean(axis=0) - p @ means) < 5 * np.sqrt(variance / n))
    fourth = np.mean((X - X.mean(axis=0)) ** 4, axis=0)
    assert np.all(np.abs(X.var(axis=0) - variance) < 5 * np.sqrt((fourth - variance**2) / n))


# -- fit
def test_hyperparameters_are_learned_or_kept():
    X, activations, components = shapes(3000)
    given = FactorialMixture(8, **SHAPES, tempering="annealed", random_state=0).fit(X)
    assert given.noise_variance_ == 0.01
    assert given.component_variance_ == 0.1225
    np.testing.assert_array_equal(given.activation_probability_, np.full(8, 0.3))
    learned = FactorialMixture(8, tempering="annealed", random_state=0).fit(X)
    assert learned.elbo_ > given.elbo_
    assert learned.noise_variance_ == pytest.approx(0.01, rel=0.05)
    # 8 rates of 3000 draws: 5 standard errors of 0.0084
    found, expected = learned.activation_probability_, activations.mean(axis=0)
    np.testing.assert_allclose(np.sort(found), np.sort(expected), atol=0.042)
    assert learned.component_variance_ == pytest.approx(np.mean(components**2), rel=0.1)
