"""FactorialMixture, of rows that may miss values: its likelihood by enumeration, its fit, its
draws, and what it refuses.
"""

import numpy as np
import pytest
from factorial_mixture import enumerated_by
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp

from sklpf import AIS, Exact, FactorialMixture
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


# -- likelihood
def test_scores_are_sums_over_all_components_of_the_known_values(model, data):
    _, test, missing = data
    rows = np.where(missing, np.nan, test)[:40]
    rows[3] = np.nan  # nothing is known
    rows[10:] = test[10:40]  # all is known
    values = model.score_samples(rows)
    assert_allclose(values, logsumexp(enumerated_by(model, rows)[1], axis=1), rtol=1e-10, atol=1e-9)
    assert model.score(rows) == pytest.approx(values.mean(), rel=1e-14)
    order = np.random.default_rng(0).permutation(40)[:15]
    assert_array_equal(model.score_samples(rows[order]), values[order])
    rows[5, 0] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        model.score_samples(rows)


def test_rows_that_miss_other_values_have_other_contents():
    rows = np.array([[0.0, np.nan], [np.nan, 0.0], [0.0, 0.0]])
    path = FactorialPath(rows, [[1.0, 1.0]], [[0.0]], 1.0, 0.5)
    assert len({path.row_content(t) for t in range(3)}) == 3
    assert path.row(0).n_features == 1


def test_more_components_than_are_enumerated_are_annealed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 10))
    model = FactorialMixture(21, noise_variance=0.5, n_moves=1, random_state=0).fit(X)
    rows = X[:4].copy()
    rows[2:, :3] = rows[3, 5] = np.nan
    interval = model.score_interval(rows)
    low, high = interval.partition
    assert low < interval.mean < high  # estimated, and trusted: no warning
    estimated = model.partition_estimator_
    errors = estimated.log_partition_std_error_
    off = estimated.log_partition_ - Exact().fit(model.path(rows)).log_partition_
    assert isinstance(estimated, AIS)
    assert errors.max() < 0.1
    assert np.abs(off / errors).max() < 4.5  # 4 rows, t with 99 degrees: false alarm 8e-5
    filled = model.impute(rows, random_state=0)
    assert np.all(np.isfinite(filled))
    assert_array_equal(filled[~np.isnan(rows)], rows[~np.isnan(rows)])


# -- draws
def test_imputed_values_have_their_conditional_moments(model, data):
    """1,000 draws of one row: means within 4.5 of their errors (false alarms 1e-4 a run)."""
    row = np.where(data[2], np.nan, data[1])[0]
    missing = np.isnan(row)
    z, (log_f,), variance = enumerated_by(model, row[None])
    shares = np.exp(log_f - logsumexp(log_f))
    mean = shares @ z @ model.components_
    square = shares @ ((z @ model.components_) ** 2 + variance[:, None])
    filled = model.impute(row[None], "mean")[0]
    assert_allclose(filled[missing], mean[missing], atol=1e-9)
    assert_array_equal(filled[~missing], row[~missing])
    draws = model.impute(np.tile(row, (1000, 1)), random_state=0)
    error = np.sqrt((square - mean**2) / 1000)
    assert np.all(np.abs(draws.mean(axis=0) - mean)[missing] < 4.5 * error[missing])


def test_samples_have_the_moments_of_the_model(model):
    X, n = model.sample(20_000, random_state=0), 20_000
    p, means = model.activation_probability_, model.components_
    assert_array_equal(X, model.sample(n, random_state=0))
    second = np.outer(p, p) + np.diag(p * (1 - p))
    variance = model.noise_variance_ + np.sum(second * model.component_covariance_)
    variance = variance + (p * (1 - p)) @ means**2
    # 16 means and 16 variances against 5 standard errors (normal tails): false alarms below 1e-4
    assert np.all(np.abs(X.mean(axis=0) - p @ means) < 5 * np.sqrt(variance / n))
    fourth = np.mean((X - X.mean(axis=0)) ** 4, axis=0)
    assert np.all(np.abs(X.var(axis=0) - variance) < 5 * np.sqrt((fourth - variance**2) / n))


# -- fit
def test_the_fit_raises_the_bound_and_finds_what_complete_rows_show(model, data):
    """A fit to complete rows scores 9.32 nats a row, one to column means in these places -7.4."""
    assert model.converged_
    assert np.diff(model.elbo_curve_).min() > -1e-6
    assert model.elbo_ < model.score_samples(data[0]).sum()
    assert model.score(data[1]) > 9.0
    again = FactorialMixture(8, noise_variance=0.01, random_state=0, n_jobs=2).fit(data[0])
    assert_array_equal(again.components_, model.components_)


def test_batches_of_a_stream_may_miss_values(data):
    train, test, _ = data
    model = FactorialMixture(8, noise_variance=0.01, random_state=0).fit(train[:300])
    before = model.score(test)
    model.partial_fit(train[300:])
    assert model.score(test) > before - 1
    assert np.all(np.isfinite(model.components_))


def test_hyperparameters_are_learned_or_kept():
    X, activations, components = make_factorial_shapes(3000, shapes="bars", random_state=0)
    start = {"noise_variance": 0.01, "component_variance": 0.1225, "activation_probability": 0.3}
    given = FactorialMixture(8, **start, tempering="annealed", random_state=0).fit(X)
    assert given.noise_variance_ == 0.01
    assert given.component_variance_ == 0.1225
    assert_array_equal(given.activation_probability_, np.full(8, 0.3))
    learned = FactorialMixture(8, tempering="annealed", random_state=0).fit(X)
    assert learned.elbo_ > given.elbo_
    assert learned.noise_variance_ == pytest.approx(0.01, rel=0.05)
    # 8 rates of 3000 draws: 5 standard errors of 0.0084
    found, expected = learned.activation_probability_, activations.mean(axis=0)
    assert_allclose(np.sort(found), np.sort(expected), atol=0.042)
    assert learned.component_variance_ == pytest.approx(np.mean(components**2), rel=0.1)


def test_errors_say_what_to_do():
    X = np.array([[1.0, np.nan], [0.0, np.nan], [1.0, np.nan]])
    with pytest.raises(ValueError, match="column 1 of X holds no value"):
        FactorialMixture(1).fit(X)
    X[0] = 1.0
    with pytest.raises(ValueError, match="tempering=None"):
        FactorialMixture(1, tempering="annealed").fit(X)
