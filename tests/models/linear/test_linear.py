"""LinearGenerativeModel: training, sampling, likelihoods, and its path against closed forms."""

import numpy as np
import pytest
from continuous_models import assert_path_has_its_slopes
from fused_programs import assert_kernel_writes_all_values, assert_programs_are_those_of_the_loops
from scipy.special import log_ndtr
from scipy.stats import chi2, multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sklpf import HAIS, Exact, LinearGenerativeModel, compare
from sklpf.models import LinearPath
from sklpf.paths import Stream, stream_key
from sklpf.testing import check_path

QUICK = HAIS(50, 100)


def laplace_rows(n, components, noise_std=0.1, seed=0):
    rng = np.random.default_rng(seed)
    causes = rng.laplace(size=(n, len(components)))
    return causes @ components + noise_std * rng.normal(size=(n, components.shape[1]))


MIXING = np.random.default_rng(5).normal(size=(4, 4))


@pytest.fixture(scope="module")
def fitted():
    model = LinearGenerativeModel(noise_std=0.1, random_state=0, partition_estimator=QUICK)
    return model.fit(laplace_rows(3000, MIXING) + 3)


def test_training_finds_the_causes(fitted):
    assert fitted.converged_
    assert fitted.n_iter_ == len(fitted.loss_curve_)
    np.testing.assert_allclose(fitted.mean_, 3, atol=0.3)
    share = np.abs(np.linalg.solve(MIXING.T, fitted.components_.T))  # a permutation but for signs
    assert np.all(np.sort(share, axis=0)[-1] > 0.9)
    assert np.all(np.sort(share, axis=0)[-2] < 0.15)


@pytest.mark.filterwarnings("ignore:the model is worse than one Gaussian")
@pytest.mark.parametrize("noise_std", [None, 0.5])  # learned, or given
@pytest.mark.parametrize("n_components", [2, 4, 8])
def test_a_gaussian_prior_is_fitted_exactly(n_components, noise_std):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5)) @ rng.normal(size=(5, 5))
    model = LinearGenerativeModel(n_components, prior="gaussian", noise_std=noise_std).fit(X)
    best = model.score(X)
    assert best == pytest.approx(-model.loss_curve_[-1], rel=1e-12)
    covariance = model.components_.T @ model.components_ + model.noise_std_**2 * np.eye(5)
    expected = multivariate_normal(model.mean_, covariance).logpdf(X)
    np.testing.assert_allclose(model.score_samples(X), expected)
    for _ in range(5):
        other = clone(model).fit(X)
        other.components_ = model.components_ + 0.03 * rng.normal(size=model.components_.shape)
        assert other.score(X) < best
    np.testing.assert_allclose(model.transform(X).mean(axis=0), 0, atol=1e-10)
    if noise_std is None:
        for factor in (0.95, 1.05):
            other = clone(model).set_params(noise_std=factor * model.noise_std_).fit(X)
            assert other.score(X) < best + 1e-9
        if n_components >= 4:
            whole = multivariate_normal(model.mean_, np.cov(X.T, bias=True)).logpdf(X).mean()
            assert best == pytest.approx(whole, rel=1e-9)


def test_the_noise_of_rows_with_few_causes_is_learned():
    """Its variance is estimated from 2000 rows with 4 dimensions without causes: 5 standard errors
    of their mean square, and 2 % for a training that has settled to 0.01 nats.
    """
    mixing = np.random.default_rng(3).normal(size=(2, 6))
    train = laplace_rows(2000, mixing, 0.5)
    learned = LinearGenerativeModel(2, random_state=0, partition_estimator=QUICK).fit(train)
    tolerance = 5 * np.sqrt(2 / (2000 * 4)) + 0.02
    assert learned.noise_std_**2 == pytest.approx(0.25, rel=tolerance)
    known = clone(learned).set_params(noise_std=0.5).fit(train)
    assert known.noise_std_ == 0.5
    test = laplace_rows(60, mixing, 0.5, seed=1)
    assert compare(learned, known, test).mean == pytest.approx(0, abs=0.05)


def test_a_noise_at_its_floor_is_said():
    X = np.repeat(np.random.default_rng(0).normal(size=(30, 2)), 2, axis=1)
    with pytest.warns(ConvergenceWarning, match="noise is at its floor"):
        LinearGenerativeModel(2, prior="gaussian").fit(X)


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


# -- the path
PRIORS = ("laplace", "gaussian")


def model(n_components, n_features, n_rows=3, noise_std=0.3, prior="laplace", seed=0):
    rng = np.random.default_rng(seed)
    components = rng.normal(size=(n_components, n_features)) / np.sqrt(n_components)
    path = LinearPath(np.zeros((1, n_features)), components, noise_std, prior)
    return LinearPath(path.simulate(n_rows, rng), components, noise_std, prior)


def log_joint(path, x, causes):
    """log p(x, a) at causes (n, M)."""
    residual = (x - causes @ path.components) / path.noise_std
    log_likelihood = -0.5 * np.sum(residual**2, axis=1)
    log_likelihood -= len(x) * np.log(path.noise_std * np.sqrt(2 * np.pi))
    if path.prior == "gaussian":
        log_norm = causes.shape[1] / 2 * np.log(2 * np.pi)
        return log_likelihood - 0.5 * np.sum(causes**2, axis=1) - log_norm
    return log_likelihood - np.abs(causes).sum(axis=1) - causes.shape[1] * np.log(2)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize(("n_components", "n_features"), [(3, 3), (5, 2), (2, 4)])
def test_a_row_has_the_density_of_the_model(prior, n_components, n_features):
    path = model(n_components, n_features, prior=prior)
    row = path.row(1)
    check_path(row.with_ladder([0, 0.3, 1]))
    state = row.sample_base(7, Stream(stream_key(0)))
    expected = log_joint(path, path.X[1], row.causes(state.position))
    expected += np.linalg.slogdet(row.posterior.root)[1]
    np.testing.assert_allclose(sum(row.ends(state)), expected, rtol=1e-10)
    assert_path_has_its_slopes(row, state, 1e-5)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("n_components", [3, 8])
def test_kernels_do_what_the_plain_methods_say(prior, n_components):
    row = model(n_components, 4, prior=prior).row(0)
    assert_kernel_writes_all_values(row)
    assert_programs_are_those_of_the_loops(row)


def test_orthogonal_components_agree_with_the_closed_form():
    """log p(x) is that of convolutions of a Laplace and a normal density: the sum of squared
    z-scores of 60 rows, 1e-6 false alarms on either side.
    """
    noise, components = 0.1, np.linalg.qr(np.random.default_rng(0).normal(size=(8, 8)))[0]
    path = LinearPath(laplace_rows(60, components, noise), components, noise)
    y = path.X @ components.T
    sides = [noise**2 / 2 + sign * y + log_ndtr(-(sign * y + noise**2) / noise) for sign in (1, -1)]
    expected = np.sum(np.logaddexp(*sides) - np.log(2), axis=1)
    low, high = chi2.ppf([1e-6, 1 - 1e-6], 60)
    hais = HAIS(n_temperatures=300, random_state=0).fit(path)
    assert hais.converged_
    z = (hais.log_partition_ - expected) / hais.log_partition_std_error_
    assert low < np.sum(z**2) < high * 1.1


@pytest.mark.parametrize(("n_components", "n_features"), [(7, 3), (2, 5)])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_a_gaussian_prior_has_a_closed_form_at_any_scale(n_components, n_features, scale):
    path = model(n_components, n_features, prior="gaussian")
    covariance = path.components.T @ path.components + 0.09 * np.eye(n_features)
    expected = multivariate_normal(np.zeros(n_features), covariance).logpdf(path.X)
    expected -= n_features * np.log(scale)
    scaled = LinearPath(scale * path.X, scale * path.components, scale * 0.3, "gaussian")
    exact = Exact().fit(scaled)
    np.testing.assert_allclose(exact.log_partition_, expected, rtol=1e-10)
    assert exact.result_.statement == "exact"
    hais = HAIS(10, 3, random_state=0).fit(scaled)  # base and target are the same
    np.testing.assert_allclose(hais.log_partition_, expected, rtol=1e-10)


def test_a_large_scale_beside_the_noise_leaves_the_density_whole():
    path = model(4, 4)
    far = LinearPath(1e8 * path.X, 1e8 * path.components, 0.3)
    row = far.row(0)
    causes = row.causes(np.zeros((1, 4)))
    np.testing.assert_allclose(causes @ far.components, far.X[:1], rtol=1e-8)
    hais = HAIS(20, 50, random_state=0).fit(far)
    expected = -np.abs(np.linalg.solve(far.components.T, far.X.T)).sum(axis=0) - 4 * np.log(2)
    expected -= np.linalg.slogdet(far.components)[1]
    np.testing.assert_allclose(hais.log_partition_, expected, atol=1e-5)
