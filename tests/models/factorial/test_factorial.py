"""FactorialMixture: its likelihood, its fit, its samples, and what it refuses."""

import numpy as np
import pytest
from known_problems import all_rows
from scipy.special import logsumexp

from sklpf import AIS, Exact, FactorialMixture, Tempering
from sklpf.datasets import make_factorial_shapes
from sklpf.variational import temperature_ladder

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


def test_estimates_and_enumeration_agree_within_their_errors(fitted):
    model, X = fitted
    exact = model.score_samples(X[:25])
    parameters = model.get_params()
    try:
        model.set_params(partition_estimator=AIS(200, 60), on_nonconvergence="warn")
        estimates, interval = model.score_samples(X[:25]), model.score_interval(X[:25])
        result = model._row_partition(model.path(X[:25])).result_
    finally:
        model.set_params(partition_estimator=parameters["partition_estimator"])
    # largest of 25 |z|, Student t with few degrees of freedom: |z| > 6 at a rate of about 1e-3
    assert np.all(np.abs(estimates - exact) < 6 * result.std_error + 1e-9)
    assert np.any(estimates != exact)
    low, high = interval.partition
    # the 95 % interval is 1.96 standard errors and the bias wide; 5 of them miss at a rate of 6e-7
    assert abs(estimates.mean() - exact.mean()) < 5 / 1.96 * (high - low) / 2
    assert interval.mean == pytest.approx(estimates.mean())
    half = (high - low - np.mean(result.std_error**2) / 2) / 2
    assert half == pytest.approx(1.959964 * np.sqrt(np.sum(result.std_error**2)) / 25, rel=1e-5)


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


@pytest.mark.parametrize("kind", [None, "annealed", "global", "local"])
def test_every_fit_ends_at_one_and_its_curve_with_it(kind):
    X, _, _ = shapes(300)
    even = temperature_ladder(100.0, spacing="inverse")  # of which temperatures are learned
    tempering = None if kind is None else Tempering(kind, n_tempered=15, n_temperatures=even)
    model = FactorialMixture(8, **SHAPES, tempering=tempering, random_state=0).fit(X)
    hot = np.flatnonzero(model.temperatures_ > 1)
    if kind in ("global", "local"):
        assert model.temperatures_[0] == pytest.approx(1 / np.mean(1 / even))
    assert model.elbo_curve_.shape == model.temperatures_.shape == (model.n_iter_,)
    assert model.temperatures_[-1] == 1
    assert len(hot) == 0 if kind is None else 0 < len(hot) <= 15
    assert model.converged_
    assert model.elbo_ == model.elbo_curve_[-1]
    last = model.elbo_curve_[len(hot) :]
    assert np.all(np.diff(last) >= -1e-9 * np.abs(last[1:]))


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


@pytest.mark.large
def test_inverse_transform_rebuilds_the_rows():
    X, _, _ = shapes(1000)
    model = FactorialMixture(8, **SHAPES, tempering="annealed", n_init=3, random_state=0).fit(X)
    rebuilt = model.inverse_transform(model.fit_transform(X))
    assert np.mean((X - rebuilt) ** 2) < 0.012  # the noise is 0.01
