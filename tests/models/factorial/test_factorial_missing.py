"""FactorialMixture with missing values: by enumeration, by the rise of the bound, and by what is
found again.
"""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from scipy.stats import norm
from sklearn.base import clone

from sklpf import AIS, FactorialMixture
from sklpf.datasets import make_factorial_shapes
from sklpf.models import FactorialPath


@pytest.fixture(scope="module")
def data():
    """Rows to train on and others, 30 % of the former's values missing."""
    X, _, _ = make_factorial_shapes(700, random_state=0)
    missing = np.random.default_rng(0).random(X.shape) < 0.3
    return np.where(missing, np.nan, X)[:500], X[500:], missing[500:]


@pytest.fixture(scope="module")
def model(data):
    return FactorialMixture(8, noise_variance=0.01, random_state=0).fit(data[0])


def enumerated(model, row):
    """All states, their joint log density with what is known of a row, and their variances."""
    z = np.array(list(itertools.product([0.0, 1.0], repeat=len(model.components_))))
    prior = np.log(np.where(z, model.activation_probability_, 1 - model.activation_probability_))
    spread = np.einsum("nk,kj,nj->n", z, model.component_covariance_, z)
    variance = model.noise_variance_ + spread
    known = ~np.isnan(row)
    each = norm.logpdf(row, z @ model.components_, np.sqrt(variance)[:, None])
    return z, prior.sum(axis=1) + each[:, known].sum(axis=1), variance


def test_scores_are_sums_over_all_components_of_the_known_values(model, data):
    _, test, missing = data
    rows = np.where(missing, np.nan, test)[:20]
    rows[3] = np.nan  # nothing is known
    expected = [logsumexp(enumerated(model, row)[1]) for row in rows]
    assert_allclose(model.score_samples(rows), expected, atol=1e-9)
    assert_allclose(model.score_samples(test[:2]), model.score_samples(np.array(test[:2])))
    rows[5, 0] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        model.score_samples(rows)


def test_estimates_agree_with_enumeration(model, data):
    """Ten rows, |z| <= 4: false alarms in 6e-4 of such runs; the seed is fixed."""
    rows = np.where(data[2], np.nan, data[1])[:10]
    rough = clone(model.path(rows).default_estimator()).set_params(random_state=0)
    path = model.path(rows)
    result = rough.fit(path).result_
    z = (result.log_partition - path.enumerate_rows(range(10))) / result.std_error
    assert isinstance(rough, AIS)
    assert np.all(np.abs(z) <= 4)


def test_rows_that_miss_other_values_have_other_contents():
    rows = np.array([[0.0, np.nan], [np.nan, 0.0], [0.0, 0.0]])
    path = FactorialPath(rows, [[1.0, 1.0]], [[0.0]], 1.0, 0.5)
    assert len({path.row_content(t) for t in range(3)}) == 3
    assert path.row(0).n_features == 1


def test_the_fit_raises_the_bound_and_finds_what_complete_rows_show(model, data):
    """A fit to complete rows scores 9.32 nats a row, one to column means in these places -7.4."""
    assert model.converged_
    assert np.diff(model.elbo_curve_).min() > -1e-6
    assert model.score(data[1]) > 9.0
    again = FactorialMixture(8, noise_variance=0.01, random_state=0, n_jobs=2).fit(data[0])
    assert_array_equal(again.components_, model.components_)


def test_the_bound_is_below_the_likelihood_of_the_known_values(model, data):
    assert model.elbo_ < model.score_samples(data[0]).sum()


def test_imputed_values_have_their_conditional_moments(model, data):
    """1,000 draws of one row: means within 4.5 of their errors (false alarms 1e-4 a run)."""
    row = np.where(data[2], np.nan, data[1])[0]
    missing = np.isnan(row)
    z, log_f, variance = enumerated(model, row)
    shares = np.exp(log_f - logsumexp(log_f))
    mean = shares @ z @ model.components_
    square = shares @ ((z @ model.components_) ** 2 + variance[:, None])
    filled = model.impute(row[None], "mean")[0]
    assert_allclose(filled[missing], mean[missing], atol=1e-9)
    assert_array_equal(filled[~missing], row[~missing])
    draws = model.impute(np.tile(row, (1000, 1)), random_state=0)
    error = np.sqrt((square - mean**2) / 1000)
    assert np.all(np.abs(draws.mean(axis=0) - mean)[missing] < 4.5 * error[missing])


def test_imputing_and_scoring_more_components_than_can_be_enumerated():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    X[0, 0] = X[1] = np.nan
    model = FactorialMixture(22, n_moves=0, max_iter=2, tol=1e9, random_state=0)
    model.fit(X[2:])
    filled = model.impute(X[:1], random_state=0)
    assert np.all(np.isfinite(filled))
    assert_array_equal(filled[0, 1:], X[0, 1:])


def test_batches_of_a_stream_may_miss_values(data):
    train, test, _ = data
    model = FactorialMixture(8, noise_variance=0.01, random_state=0).fit(train[:300])
    before = model.score(test)
    model.partial_fit(train[300:])
    assert model.score(test) > before - 1
    assert np.all(np.isfinite(model.components_))


def test_errors_say_what_to_do():
    X = np.array([[1.0, np.nan], [0.0, np.nan], [1.0, np.nan]])
    with pytest.raises(ValueError, match="column 1 of X holds no value"):
        FactorialMixture(1).fit(X)
    X[0] = 1.0
    with pytest.raises(ValueError, match="tempering=None"):
        FactorialMixture(1, tempering="annealed").fit(X)
