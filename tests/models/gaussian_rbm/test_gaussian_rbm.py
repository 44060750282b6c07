"""GaussianRBM along columns and principal axes: its densities, draws and log Z against the mixture
of Gaussians that it is, its moves, and training.
"""

import numpy as np
import pytest
from continuous_models import assert_path_has_its_slopes
from convergence import assert_right
from fused_programs import assert_kernel_writes_all_values, assert_programs_are_those_of_the_loops
from known_problems import all_rows
from marks import large
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from sklpf import AIS, HAIS, SMC, Exact, GaussianRBM, ParallelTempering
from sklpf.models.gaussian_rbm._learning import Weights, jump, sweep
from sklpf.paths import Stream, stream_key
from sklpf.testing import check_path, check_transition
from sklpf.transitions import HMC, Gibbs, Slice

Z_BOUND = 4.5  # of one estimate: a false alarm in 150,000


def random_model(n_components=5, n_features=4, seed=0, scale=1.5, **parameters):
    """A model whose hidden units are on about half of the time."""
    rng = np.random.default_rng(seed)
    components = scale * rng.normal(size=(n_components, n_features))
    variances = rng.uniform(0.3, 2.0, n_features)
    products = (components / variances) @ components.T
    return GaussianRBM.from_parameters(
        components,
        rng.normal(size=n_features),
        -0.5 * products.sum(axis=1) + 0.5 * rng.normal(size=n_components),
        variances,
        random_state=seed,
        **parameters,
    )


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
        volume = np.linalg.slogdet(2 * np.pi * self.covariance)[1] / 2
        self.log_partition = logsumexp(log_weights) + volume

    def log_parts(self, row):
        """log of the weight times the density of the known values, for every part."""
        known = np.flatnonzero(~np.isnan(row))
        if not known.size:
            return self.log_weights
        part = self.covariance[np.ix_(known, known)]
        away = row[known] - self.means[:, known]
        return self.log_weights + multivariate_normal(np.zeros(len(known)), part).logpdf(away)

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


# -- densities
@BOTH
@pytest.mark.parametrize("rows", [X[:12], SOME], ids=["complete", "missing"])
def test_scores_features_and_imputed_means_are_those_of_the_mixture(rows, axes):
    model, mixture = MODELS[axes], MIXTURES[axes]
    expected = [logsumexp(mixture.log_parts(row)) for row in rows]
    np.testing.assert_allclose(model.score_samples(rows), expected, rtol=1e-10, atol=1e-12)
    assert model.log_partition_ == pytest.approx(mixture.log_partition, abs=1e-9)
    expected = [mixture.shares(row) @ mixture.hidden for row in rows]
    np.testing.assert_allclose(model.transform(rows), expected, rtol=1e-10, atol=1e-12)
    expected = [mixture.filled(row) for row in rows]
    np.testing.assert_allclose(model.impute(rows, "mean"), expected, rtol=1e-8)


@pytest.mark.parametrize(("n_components", "n_features"), [(1, 1), (3, 7), (16, 3)])
def test_enumeration_agrees_with_the_mixture(n_components, n_features):
    model = random_model(n_components, n_features, scale=0.8)
    mixture = Mixture(model)
    v = np.random.default_rng(1).normal(scale=3, size=(2, n_features))
    expected = [logsumexp(mixture.log_parts(row)) for row in v]
    np.testing.assert_allclose(model.score_samples(v), expected, rtol=0, atol=1e-9)
    assert model.log_partition_ == pytest.approx(mixture.log_partition, abs=1e-9)


def test_path_and_gibbs_sweeps_keep_the_contract():
    path = random_model(4, 3).path()
    check_path(path)
    path = path.with_ladder(np.linspace(0, 1, 9))
    check_transition(path, Gibbs(), variables=lambda state: state.u)


def test_the_density_of_the_visible_units_is_a_sum_over_the_hidden_ones():
    model = random_model(4, 3, scale=0.8)
    path = model.path().as_density().with_ladder([0.0, 0.4, 1.0])
    check_path(path)
    state = path.sample_base(7, Stream(stream_key(0)))
    v = path.rows(state)
    volume = 0.5 * np.log(model.variances_).sum()  # of v over that of the chains' coordinates
    log_f = model.score_samples(v) + model.log_partition_
    np.testing.assert_allclose(sum(path.ends(state)), volume + log_f, rtol=1e-12)
    assert_path_has_its_slopes(path, state, 1e-6)
    assert_kernel_writes_all_values(path)
    assert_programs_are_those_of_the_loops(path)


# -- log Z
@pytest.mark.parametrize(
    "estimator",
    [
        AIS(n_temperatures=200),
        ParallelTempering(),
        HAIS(),
        large(AIS(transition=Slice())),
        SMC(transition=HMC()),
        large(ParallelTempering(transition=HMC())),
    ],
    ids=str,
)
def test_samplers_agree_with_enumeration(estimator):
    """Z_BOUND standard errors each: a false alarm in 150,000."""
    model = random_model(10, 5, seed=3)
    exact = Exact().fit(model).log_partition_
    estimator.set_params(random_state=0).fit(model)
    assert_right(estimator, exact, Z_BOUND)


def test_more_than_twenty_hidden_units_are_tempered():
    """Of 22 units, as `Exact` can be asked for too; Z_BOUND standard errors."""
    model = random_model(22, 6, seed=4, scale=0.6)
    result = model.estimate_log_partition().partition_estimator_.result_
    assert result.method == "ParallelTempering"
    assert result.converged
    exact = Exact().fit(model).log_partition_
    assert abs(result.log_partition - exact) < Z_BOUND * result.std_error


@pytest.mark.parametrize("estimator", [AIS(random_state=0), ParallelTempering(random_state=0)])
def test_chains_along_axes_agree_with_the_mixture(estimator):
    assert_right(estimator.fit(MODEL), MIXTURES["principal"].log_partition, Z_BOUND)
    rows = estimator.result_.draws.points
    assert abs(rows.mean() - X.mean()) < 1.0  # rows of data, not of coordinates


# -- draws
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


def test_tempered_draws_and_gibbs_steps_have_the_models_means():
    """Eight means of 2000 draws that are not independent: 2 Z_BOUND standard errors each."""
    model = random_model(4, 4, seed=6)
    mean, _ = Mixture(model).given(np.full(4, np.nan))
    tempering = ParallelTempering(n_sweeps=128, random_state=0)
    drawn = model.set_params(partition_estimator=tempering).sample(2000, random_state=0)
    for rows in (drawn, model.gibbs(drawn)):
        errors = (rows.mean(axis=0) - mean) / (rows.std(axis=0) / np.sqrt(len(rows)))
        assert np.all(np.abs(errors) < 2 * Z_BOUND)


# -- learning
def test_fits_recover_the_likelihood_of_a_known_mixture():
    """The mean log-likelihood of the truth less that of a maximum likelihood fit is about 23 / (2
    n) = .012 nats on new rows, where 23 is the number of parameters; four times that is refused.
    A single Gaussian loses 0.69.
    """
    truth = random_model(3, 4, seed=9)
    rows, new = truth.sample(1000, random_state=0), truth.sample(20_000, random_state=1)
    model = GaussianRBM(3, learning_rate_schedule="linear", n_iter=120, random_state=0)
    model.fit(rows)
    loss = np.mean(truth.score_samples(new) - model.score_samples(new))
    assert -0.01 < loss < 0.05


HIDDEN = random_model(8, 3, seed=2, scale=1.5)
N_DRAWS = 20_000


def exact_hidden_units(rng):
    """Probabilities of all rows of hidden units, and draws from them."""
    here, units = HIDDEN._parameters, all_rows(8)
    log_f = units @ here.intercept_hidden
    log_f += 0.5 * (units @ here.components) ** 2 @ (1 / here.variances)
    probabilities = np.exp(log_f - logsumexp(log_f))
    return probabilities, units[rng.choice(256, p=probabilities, size=N_DRAWS)].astype(np.float32)


def assert_distribution_is_left(moved, probabilities):
    """36 moments, each beyond 4.5 standard errors with probability 7e-6: false alarm 2.5e-4."""
    units = all_rows(8)
    expected = units.T @ (units * probabilities[:, np.newaxis])
    z = (moved.T @ moved / N_DRAWS - expected) / np.sqrt(expected * (1 - expected) / N_DRAWS)
    assert np.all(np.abs(z) < 4.5)


def test_jumps_between_modes_leave_the_distribution_of_hidden_units():
    rng, here = np.random.default_rng(0), HIDDEN._parameters
    weights = Weights(HIDDEN.components_)
    weights.renew(here.variances)
    probabilities, h = exact_hidden_units(rng)
    fields = here.hidden_fields(HIDDEN.sample(50, random_state=0))
    arguments = weights, here.intercept_hidden, here.variances, h, weights.pulls(h), fields, rng
    jumped, _, accepted = jump(*arguments)
    assert 0.05 < accepted.mean() < 0.95
    assert_distribution_is_left(jumped, probabilities)


def test_sweeps_over_hidden_units_leave_their_distribution():
    """72 units are drawn in two turns, of which all but eight are so biased that they stay off."""
    rng, here = np.random.default_rng(0), HIDDEN._parameters
    weights = Weights(np.tile(HIDDEN.components_, (9, 1)))
    bias = np.full(72, -1e4, np.float32)
    shown = np.r_[0:4, 68:72]
    bias[shown] = here.intercept_hidden
    h = np.zeros((N_DRAWS, 72), np.float32)
    probabilities, h[:, shown] = exact_hidden_units(rng)
    weights.renew(here.variances)
    pull = weights.pulls(h)
    sweep(weights, bias, h, pull, rng.random(h.shape, dtype=np.float32))
    assert not h[:, 4:68].any()
    np.testing.assert_allclose(pull, h @ weights.components, atol=1e-3)
    assert_distribution_is_left(h[:, shown], probabilities)


@pytest.mark.filterwarnings("ignore:the model is worse than one Gaussian")
def test_partial_fit_goes_on_uphill_after_a_linear_schedule():
    """As its error says: with a constant rate. It once went on with rates below 0, downhill."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 3)) + 3 * rng.integers(2, size=(60, 1))
    model = GaussianRBM(2, n_iter=5, learning_rate_schedule="linear", random_state=0).fit(rows)
    before = model.score(rows)
    model.set_params(learning_rate_schedule="constant")
    for _ in range(200):
        model.partial_fit(rows)
    assert model.score(rows) > before + 0.1


def test_variances_at_the_floor_raise_an_alarm():
    """A unit learns two columns that hold one of two values, and both variances fall to 0."""
    rows = np.repeat(np.random.default_rng(3).integers(2, size=(300, 1)), 2, axis=1)
    model = GaussianRBM(2, n_iter=100, variance_floor=0.05, average=False, random_state=0)
    with pytest.warns(ConvergenceWarning, match="variances of 2 of 2 visible units are at their"):
        model.fit(rows)
    np.testing.assert_allclose(model.variances_, 0.05 * rows.var(axis=0))


# -- axes
def test_parameters_give_the_model_again():
    names = ("components_", "intercept_visible_", "intercept_hidden_", "variances_")
    names += ("visible_mean_", "visible_variance_", "visible_basis_")
    again = GaussianRBM.from_parameters(*(getattr(MODEL, name) for name in names))
    assert again.score(X) == MODEL.score(X)


@pytest.mark.filterwarnings("ignore:the model is worse")  # by hundredths of a nat
def test_correlated_columns_are_as_likely_as_under_one_gaussian_and_missing_values_cost_little():
    """Three factors and noise, in units of many sizes: independent noise by column is 6 nats below.
    Axes and training are from what is known.
    """
    rng = np.random.default_rng(0)
    units = 10.0 ** rng.integers(-3, 4, size=12)
    rows = rng.normal(size=(900, 3)) @ rng.normal(size=(3, 12)) + 0.3 * rng.normal(size=(900, 12))
    train, test = rows[:600] * units, rows[600:] * units
    some = np.where(rng.random(train.shape) < 0.4, np.nan, train)
    model = GaussianRBM(64, axes="principal", n_iter=20, random_state=0)
    complete = model.fit(train).score(test)
    one = multivariate_normal(rows[:600].mean(axis=0), np.cov(rows[:600].T))
    assert complete > one.logpdf(rows[600:]).mean() - np.log(units).sum() - 0.2
    model.set_params(n_components=4)
    assert model.fit(some).score(test) > complete - 0.7


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
