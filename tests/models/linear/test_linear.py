"""LinearGenerativeModel: training, sampling and likelihoods."""

import numpy as np
import pytest
from convergence import may_not_converge
from scipy.stats import multivariate_normal
from sklearn.base import clone

from sklpf import HAIS, LinearGenerativeModel, compare

QUICK = HAIS(50, 100)


def laplace_rows(n, components, noise_std=0.1, seed=0):
    rng = np.random.default_rng(seed)
    causes = rng.laplace(size=(n, len(components)))
    return causes @ components + noise_std * rng.normal(size=(n, components.shape[1]))


MIXING = np.random.default_rng(5).normal(size=(4, 4))


@pytest.fixture(scope="module")
def fitted():
    model = LinearGenerativeModel(random_state=0, partition_estimator=QUICK)
    return model.fit(laplace_rows(3000, MIXING) + 3)


def test_training_finds_the_causes(fitted):
    assert fitted.converged_
    assert fitted.n_iter_ == len(fitted.loss_curve_)
    np.testing.assert_allclose(fitted.mean_, 3, atol=0.3)
    share = np.abs(np.linalg.solve(MIXING.T, fitted.components_.T))  # a permutation but for signs
    assert np.all(np.sort(share, axis=0)[-1] > 0.9)
    assert np.all(np.sort(share, axis=0)[-2] < 0.15)


def test_the_loss_is_the_negative_log_likelihood(fitted):
    X = laplace_rows(3000, MIXING)[:60] + 3
    interval = fitted.score_interval(X)
    assert fitted.loss_curve_[-1] == pytest.approx(-interval.mean, abs=1.0)  # of 60 rows
    truth = clone(fitted)
    truth.__dict__.update(vars(fitted) | {"components_": MIXING, "mean_": np.full(4, 3.0)})
    assert compare(fitted, truth, X).mean == pytest.approx(0, abs=0.1)


def test_laplace_beats_gauss_on_sparse_rows_and_more_causes_than_features_can_be_had(fitted):
    X = laplace_rows(60, MIXING, seed=1) + 3
    gauss = LinearGenerativeModel(prior="gaussian").fit(laplace_rows(3000, MIXING) + 3)
    assert compare(fitted, gauss, X).combined[0] > 0
    wide = laplace_rows(2000, np.random.default_rng(1).normal(size=(6, 3)))
    more = LinearGenerativeModel(6, random_state=0, partition_estimator=QUICK).fit(wide)
    less = LinearGenerativeModel(3, random_state=0, partition_estimator=QUICK).fit(wide)
    assert more.components_.shape == (6, 3)
    assert compare(more, less, wide[:60]).mean > -0.1


@pytest.mark.parametrize("n_components", [1, 8])
def test_a_gaussian_prior_is_fitted_exactly(n_components):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5)) @ rng.normal(size=(5, 5))
    model = LinearGenerativeModel(n_components, prior="gaussian", noise_std=0.5).fit(X)
    best = model.score(X)
    assert best == pytest.approx(-model.loss_curve_[-1], rel=1e-12)
    covariance = model.components_.T @ model.components_ + 0.25 * np.eye(5)
    expected = multivariate_normal(model.mean_, covariance).logpdf(X)
    np.testing.assert_allclose(model.score_samples(X), expected)
    for _ in range(5):
        other = clone(model).fit(X)
        other.components_ = model.components_ + 0.03 * rng.normal(size=model.components_.shape)
        assert other.score(X) < best
    np.testing.assert_allclose(model.transform(X).mean(axis=0), 0, atol=1e-10)


@pytest.mark.filterwarnings("ignore:training has not settled")
@pytest.mark.large
@pytest.mark.parametrize("n_components", [None, 1, 7])
@pytest.mark.parametrize(
    "kind", ["one row", "few rows", "constant", "constant column", "large", "small", "steps"]
)
def test_any_data_can_be_fitted(kind, n_components):
    X = {
        "one row": np.array([[1.0, 2.0, 3.0]]),
        "few rows": np.random.default_rng(0).normal(size=(3, 5)),
        "constant": np.full((10, 3), 2.0),
        "constant column": np.c_[np.random.default_rng(0).normal(size=(30, 2)), np.ones(30)],
        "large": 1e7 * np.random.default_rng(0).normal(size=(30, 3)),
        "small": 1e-7 * np.random.default_rng(0).normal(size=(30, 3)),
        "steps": np.repeat(np.eye(4), 5, axis=0),
    }[kind]
    options = {"max_iter": 30, "random_state": 0, "partition_estimator": HAIS(20, 30)}
    model = LinearGenerativeModel(n_components, **options).fit(X)
    assert np.all(np.isfinite(model.components_))
    assert np.all(np.isfinite(model.loss_curve_))
    with may_not_converge():
        assert np.isfinite(model.score(X[:2]))
    assert np.all(np.isfinite(model.transform(X)))
    assert model.sample(3, random_state=0).shape == (3, X.shape[1])


@pytest.mark.parametrize("prior", ["laplace", "gaussian"])
def test_samples_are_the_models(prior, fitted):
    """Second moments of 100,000 rows, 4.5 standard errors of a fourth moment bounded by 6: 16
    entries, 1e-4.
    """
    model = clone(fitted).set_params(prior=prior, max_iter=1)
    model.__dict__.update({name: vars(fitted)[name] for name in vars(fitted) if name.endswith("_")})
    X = model.sample(100_000, random_state=1) - model.mean_
    width = 2 if prior == "laplace" else 1
    covariance = width * model.components_.T @ model.components_ + 0.01 * np.eye(4)
    scale = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    assert np.all(np.abs(X.T @ X / len(X) - covariance) < 4.5 * np.sqrt(6 / len(X)) * scale)
    np.testing.assert_array_equal(model.sample(3, random_state=1), model.sample(3, random_state=1))


def test_transform_is_the_mode(fitted):
    X = laplace_rows(20, MIXING, seed=2) + 3
    causes, path = fitted.transform(X), fitted.path(X)
    rng = np.random.default_rng(0)
    for t in range(20):

        def objective(a, x=path.X[t]):
            return np.sum((x - a @ fitted.components_) ** 2) / 0.02 + np.abs(a).sum()

        nearby = causes[t] + 0.01 * rng.normal(size=(50, 4))
        assert all(objective(a) > objective(causes[t]) - 1e-6 for a in nearby)
    # three standard deviations of the noise
    assert np.abs(fitted.inverse_transform(causes) - X).max() < 0.3
