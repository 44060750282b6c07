"""GaussianRBM: its densities, moves and log Z against sums and integrals by hand."""

import numpy as np
import pytest
from continuous_models import assert_path_has_its_slopes
from convergence import assert_right
from fused_programs import assert_kernel_writes_all_values, assert_programs_are_those_of_the_loops
from known_problems import all_rows
from marks import large
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

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


def log_joint(model, v, h):
    """log f(v, h) of rows of both, term by term."""
    total = h @ model.intercept_hidden_
    for i, (b, variance) in enumerate(zip(model.intercept_visible_, model.variances_)):
        away = v[:, i] - b
        total = total - away**2 / (2 * variance) + h @ model.components_[:, i] * away / variance
    return total


def log_f_by_hand(model, v):
    hidden = all_rows(len(model.components_))
    return np.array([logsumexp(log_joint(model, np.tile(x, (len(hidden), 1)), hidden)) for x in v])


def log_partition_by_hand(model):
    """The sum over h of the integral over v, a product of Gaussian integrals around b + h @ W."""
    hidden = all_rows(len(model.components_))
    peaks = log_joint(model, model.intercept_visible_ + hidden @ model.components_, hidden)
    return logsumexp(peaks) + 0.5 * np.log(2 * np.pi * model.variances_).sum()


# -- densities
def test_enumeration_agrees_with_sums_by_hand():
    for n_components, n_features in ((1, 1), (3, 7), (16, 3)):
        model = random_model(n_components, n_features, scale=0.8)
        exact = model.estimate_log_partition().log_partition_
        assert exact == pytest.approx(log_partition_by_hand(model), abs=1e-9)
        v = np.random.default_rng(1).normal(scale=3, size=(5, n_features))
        expected = log_f_by_hand(model, v) - exact
        np.testing.assert_allclose(model.score_samples(v), expected, rtol=0, atol=1e-9)


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
    np.testing.assert_allclose(sum(path.ends(state)), volume + log_f_by_hand(model, v), rtol=1e-12)
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


def test_tempered_draws_and_gibbs_steps_have_the_models_means():
    """Eight means of 2000 draws that are not independent: 2 Z_BOUND standard errors each."""
    model = random_model(4, 4, seed=6)
    hidden = all_rows(4)
    means = model.intercept_visible_ + hidden @ model.components_
    log_weights = log_joint(model, means, hidden)
    mean = np.exp(log_weights - logsumexp(log_weights)) @ means
    tempering = ParallelTempering(n_sweeps=128, random_state=0)
    drawn = model.set_params(partition_estimator=tempering).sample(2000, random_state=0)
    for X in (drawn, model.gibbs(drawn)):
        errors = (X.mean(axis=0) - mean) / (X.std(axis=0) / np.sqrt(len(X)))
        assert np.all(np.abs(errors) < 2 * Z_BOUND)


# -- learning
def test_fits_recover_the_likelihood_of_a_known_mixture():
    """The mean log-likelihood of the truth less that of a maximum likelihood fit is about 23 / (2
    n) = .012 nats on new rows, where 23 is the number of parameters; four times that is refused.
    A single Gaussian loses 0.69.
    """
    truth = random_model(3, 4, seed=9)
    X, new = truth.sample(1000, random_state=0), truth.sample(20_000, random_state=1)
    model = GaussianRBM(3, learning_rate_schedule="linear", n_iter=120, random_state=0)
    model.fit(X)
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


def test_bits_do_not_depend_on_n_jobs():
    X = np.random.default_rng(0).normal(size=(200, 700))
    options = {"batch_size": 100, "n_iter": 1, "random_state": 0}
    models = [GaussianRBM(130, n_jobs=n_jobs, **options).fit(X) for n_jobs in (1, 2, 3)]
    for model in models[1:]:
        for value, expected in zip(model._parameters, models[0]._parameters):
            np.testing.assert_array_equal(value, expected)


# -- as a scikit-learn estimator
rng = np.random.default_rng(0)
REAL = rng.normal(size=(60, 3)) + 3 * rng.integers(2, size=(60, 1))


@pytest.mark.filterwarnings("ignore:the model is worse than one Gaussian")
def test_partial_fit_goes_on_uphill_after_a_linear_schedule():
    """As its error says: with a constant rate. It once went on with rates below 0, downhill."""
    model = GaussianRBM(2, n_iter=5, learning_rate_schedule="linear", random_state=0).fit(REAL)
    before = model.score(REAL)
    model.set_params(learning_rate_schedule="constant")
    for _ in range(200):
        model.partial_fit(REAL)
    assert model.score(REAL) > before + 0.1


def test_variances_at_the_floor_raise_an_alarm():
    """A unit learns two columns that hold one of two values, and both variances fall to 0."""
    X = np.repeat(np.random.default_rng(3).integers(2, size=(300, 1)), 2, axis=1)
    model = GaussianRBM(2, n_iter=100, variance_floor=0.05, average=False, random_state=0)
    with pytest.warns(ConvergenceWarning, match="variances of 2 of 2 visible units are at their"):
        model.fit(X)
    np.testing.assert_allclose(model.variances_, 0.05 * X.var(axis=0))
