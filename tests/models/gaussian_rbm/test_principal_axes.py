"""GaussianRBM along columns and principal axes: its densities against mixtures of Gaussians by
hand, its start at one Gaussian, and training with many units.
"""

import numpy as np
import pytest
from known_problems import all_rows
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from sklpf import AIS, GaussianRBM, ParallelTempering

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4)) @ RNG.normal(size=(4, 4)) + 2 * RNG.integers(2, size=(300, 1))
MODELS = {
    axes: GaussianRBM(3, axes=axes, n_iter=10, random_state=0).fit(X)
    for axes in ("columns", "principal")
}
MODEL = MODELS["principal"]
SOME = X[:12].copy()
SOME[RNG.random(SOME.shape) < 0.4] = np.nan
SOME[0] = np.nan


class Mixture:
    """The mixture of Gaussians that a model is."""

    def __init__(self, model):
        self.hidden = all_rows(len(model.components_))
        self.covariance = model.covariance_
        self.means = model.intercept_visible_ + self.hidden @ model.components_
        away = self.hidden @ model.components_
        squares = np.einsum("ij,jk,ik->i", away, np.linalg.inv(self.covariance), away)
        log_weights = self.hidden @ model.intercept_hidden_ + squares / 2
        self.log_weights = log_weights - logsumexp(log_weights)

    def log_parts(self, row):
        """log of the weight times the density of the known values, for every part."""
        known = np.flatnonzero(~np.isnan(row))
        if not known.size:
            return self.log_weights
        part = self.covariance[np.ix_(known, known)]
        densities = [
            multivariate_normal(mean[known], part).logpdf(row[known]) for mean in self.means
        ]
        return self.log_weights + densities

    def shares(self, row):
        return np.exp(self.log_parts(row) - logsumexp(self.log_parts(row)))

    def given(self, row):
        """Mean and covariance of what is missing given what is known."""
        known = np.flatnonzero(~np.isnan(row))
        missing = np.flatnonzero(np.isnan(row))
        across = self.covariance[np.ix_(known, missing)]
        slopes = np.linalg.solve(self.covariance[np.ix_(known, known)], across)
        means = self.means[:, missing] + (row[known] - self.means[:, known]) @ slopes
        mean = self.shares(row) @ means
        away = means - mean
        within = self.covariance[np.ix_(missing, missing)] - across.T @ slopes
        return mean, within + (self.shares(row) * away.T) @ away

    def filled(self, row):
        """The row with conditional means in place of what is not known."""
        filled = row.copy()
        filled[np.isnan(row)] = self.given(row)[0]
        return filled


MIXTURES = {axes: Mixture(model) for axes, model in MODELS.items()}
BOTH = pytest.mark.parametrize("axes", MODELS)


@BOTH
@pytest.mark.parametrize("rows", [X[:12], SOME], ids=["complete", "missing"])
def test_scores_features_and_imputed_means_are_those_of_the_mixture(rows, axes):
    model, mixture = MODELS[axes], MIXTURES[axes]
    expected = [logsumexp(mixture.log_parts(row)) for row in rows]
    np.testing.assert_allclose(model.score_samples(rows), expected, rtol=1e-10, atol=1e-12)
    expected = [mixture.shares(row) @ mixture.hidden for row in rows]
    np.testing.assert_allclose(model.transform(rows), expected, rtol=1e-10, atol=1e-12)
    expected = [mixture.filled(row) for row in rows]
    np.testing.assert_allclose(model.impute(rows, "mean"), expected, rtol=1e-8)


@BOTH
def test_draws_have_the_moments_of_the_mixture(axes):
    """z of means and of products, of samples and given one and two known values: 4.5, a false alarm
    in 5,000 for 28 of them.
    """
    model, mixture = MODELS[axes], MIXTURES[axes]
    unknown = np.full(4, np.nan)
    one, two = np.where(np.eye(2, 4), X[0], np.nan)[0], np.where([1, 0, 1, 0], X[0], np.nan)
    samples = model.sample(20_000, random_state=0)
    imputed = [model.impute(np.tile(row, (4000, 1)), random_state=0) for row in (one, two)]
    for row, drawn in zip((unknown, one, two), (samples, *imputed)):
        mean, covariance = mixture.given(row)
        away = drawn[:, np.isnan(row)] - mean
        products = away[:, :, np.newaxis] * away[:, np.newaxis]
        for found, expected in ((away, 0), (products, covariance)):
            error = found.std(axis=0) / np.sqrt(len(drawn))
            assert np.all(np.abs(found.mean(axis=0) - expected) < 4.5 * error)


@pytest.mark.parametrize("estimator", [AIS(random_state=0), ParallelTempering(random_state=0)])
def test_chains_agree_with_the_sum(estimator):
    """|z| < 4.5, a false alarm in 150,000."""
    MODEL.score(X)
    estimator.fit(MODEL.path())
    assert estimator.converged_
    error = estimator.log_partition_ - MODEL.log_partition_
    assert abs(error) < 4.5 * estimator.log_partition_std_error_
    rows = estimator.result_.draws.points
    assert abs(rows.mean() - X.mean()) < 1.0  # rows of data, not of coordinates


def test_parameters_give_the_model_again():
    names = ("components_", "intercept_visible_", "intercept_hidden_", "variances_")
    names += ("visible_mean_", "visible_variance_", "visible_basis_")
    again = GaussianRBM.from_parameters(*(getattr(MODEL, name) for name in names))
    assert again.score(X) == MODEL.score(X)


@pytest.mark.parametrize(
    ("basis", "message"),
    [
        (np.eye(3), r"shape \(4, 4\)"),
        (2 * np.eye(4), "determinant 1 or -1"),
        (np.full((4, 4), np.nan), "finite"),
    ],
)
def test_bad_bases_are_named(basis, message):
    with pytest.raises(ValueError, match=message):
        GaussianRBM.from_parameters(
            np.ones((2, 4)), np.zeros(4), np.zeros(2), np.ones(4), visible_basis=basis
        )


@pytest.mark.parametrize("share", [0.1, 0.4])
def test_missing_values_cost_little(share):
    """Axes and training from what is known; columns alone are 7 nats below."""
    rng = np.random.default_rng(0)
    units = 10.0 ** rng.integers(-3, 4, size=12)
    rows = rng.normal(size=(900, 3)) @ rng.normal(size=(3, 12)) + 0.3 * rng.normal(size=(900, 12))
    train, test = rows[:600] * units, rows[600:] * units
    some = np.where(rng.random(train.shape) < share, np.nan, train)
    model = GaussianRBM(4, axes="principal", n_iter=20, random_state=0)
    complete = model.fit(train).score(test)
    assert model.fit(some).score(test) > complete - 0.7


@pytest.mark.filterwarnings("ignore:the model is worse")  # by hundredths of a nat
def test_correlated_columns_are_as_likely_as_under_one_gaussian():
    """Three factors and noise: independent noise by column is 10 nats below."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1200, 3)) @ rng.normal(size=(3, 20)) + 0.3 * rng.normal(size=(1200, 20))
    train, test = rows[:600], rows[600:]
    gaussian = multivariate_normal(train.mean(axis=0), np.cov(train.T)).logpdf(test).mean()
    model = GaussianRBM(64, axes="principal", n_iter=20, random_state=0).fit(train)
    assert model.score(test) > gaussian - 0.2


def test_few_rows_are_shrunk():
    """With fewer rows than columns no direction has the variance 0 of the training rows."""
    rows = np.random.default_rng(1).normal(size=(60, 30))
    model = GaussianRBM(2, axes="principal", n_iter=20, random_state=0).fit(rows[:20])
    assert model.score(rows[20:]) > -55  # of the density itself: -42.6


def test_training_with_many_units_stays_finite():
    """Steps and first weights are smaller the more units there are."""
    rows = StandardScaler().fit_transform(load_wine().data)
    model = GaussianRBM(256, n_iter=10, random_state=0).fit(rows)
    assert np.isfinite(model.components_).all()


@pytest.mark.parametrize(
    "rows",
    [
        X[:1],
        np.repeat(X[:2], 20, axis=0),
        np.full((50, 4), 0.1),
        np.where(np.eye(50, 4), np.nan, 0.1),
    ],
    ids=["one row", "two distinct rows", "constant", "constant, some missing"],
)
@pytest.mark.filterwarnings("ignore:the variances of")
def test_rows_without_axes_train_independent_columns(rows):
    model = GaussianRBM(2, axes="principal", n_iter=3, random_state=0).fit(rows)
    assert model.visible_basis_ is None
    assert np.isfinite(model.score(rows))


@pytest.mark.parametrize("more", [np.zeros(300), X[:, 0], X.sum(axis=1)])
def test_columns_without_a_variance_of_their_own_are_warned_of(more):
    """Also where much is shrunk, of 40 rows, and where some values are missing."""
    rows = np.column_stack([X, more])
    model = GaussianRBM(2, axes="principal", n_iter=3, random_state=0)
    with pytest.warns(ConvergenceWarning, match="along 1 of their 5 principal axes"):
        model.fit(rows)
    with pytest.warns(ConvergenceWarning, match="along 1 of their 5 principal axes"):
        model.fit(rows[:40])
    rows[:4, 1:] = np.where(np.eye(4), np.nan, rows[:4, 1:])
    with pytest.warns(ConvergenceWarning, match="along 1 of their 5 principal axes"):
        model.fit(rows)


@pytest.mark.filterwarnings("ignore:the model is worse")
def test_steps_along_principal_axes_take_no_missing_values():
    model = GaussianRBM(3, axes="principal", n_iter=3, random_state=0).fit(X)
    before = model.score(X)
    with pytest.raises(ValueError, match="fill them in by impute"):
        model.partial_fit(SOME)
    assert model.score(X) == before
    with pytest.raises(ValueError, match="along principal axes"):
        GaussianRBM(3, axes="principal").partial_fit(SOME)
    model.partial_fit(model.impute(SOME, random_state=0))


def test_attributes_that_are_set_by_hand_need_no_basis():
    """As those of a model along its columns."""
    columns = GaussianRBM(3, n_iter=3, random_state=0).fit(X)
    expected = columns.score_samples(X)
    del columns.visible_basis_
    np.testing.assert_array_equal(columns.score_samples(X), expected)
    assert columns.sample(2, random_state=0).shape == (2, 4)
