"""CategoricalRBM: its densities, moves, training and log Z against sums by hand."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit, logsumexp

from sklpf import (
    AIS,
    BernoulliRBM,
    CategoricalRBM,
    Exact,
    ParallelTempering,
    compare,
)
from sklpf.models import RBMTrajectoryPath
from sklpf.paths import Stream, stream_key
from sklpf.testing import check_coverage, check_path, check_transition
from sklpf.transitions import Gibbs

Z_BOUND = 4.5  # of one estimate: a false alarm in 150,000
N_CATEGORIES = np.array([3, 2, 4, 1])


def random_model(n_components=3, n_categories=N_CATEGORIES, seed=0, scale=1.0, **parameters):
    rng = np.random.default_rng(seed)
    n_indicators = np.sum(n_categories)
    return CategoricalRBM.from_parameters(
        scale * rng.normal(size=(n_components, n_indicators)),
        rng.normal(size=n_indicators),
        rng.normal(size=n_components),
        n_categories,
        random_state=seed,
        **parameters,
    )


def all_rows(n_categories):
    return np.array(list(itertools.product(*map(range, n_categories))))


def indicators(X, n_categories):
    """One-hot groups, column after column."""
    groups = [np.eye(n)[column] for n, column in zip(n_categories, np.transpose(X))]
    return np.concatenate(groups, axis=1)


def log_f_by_hand(model, X):
    """The sum over h of exp(-E(v, h)), of the energy in the docstring."""
    v, h = indicators(X, model.n_categories_), all_rows([2] * len(model.components_))
    visible, hidden = v @ model.intercept_visible_, h @ model.intercept_hidden_
    return logsumexp(v @ model.components_.T @ h.T + visible[:, np.newaxis] + hidden, axis=1)


# ---- densities
@pytest.mark.parametrize("n_categories", [N_CATEGORIES, [2], [1, 5], [3, 3, 3]])
def test_enumeration_agrees_with_sums_by_hand(n_categories):
    model = random_model(n_categories=n_categories)
    X = all_rows(n_categories)
    log_f = log_f_by_hand(model, X)
    np.testing.assert_allclose(model.score_samples(X), log_f - logsumexp(log_f), atol=1e-12)
    assert model.log_partition_ == pytest.approx(logsumexp(log_f), abs=1e-12)
    path = model.path().with_ladder([0.0, 1.0])
    assert logsumexp(path.enumerate_block(0, 0)) == pytest.approx(0.0, abs=1e-12)
    fields = indicators(X, n_categories) @ model.components_.T + model.intercept_hidden_
    np.testing.assert_allclose(model.transform(X), expit(fields), atol=1e-12)


# ---- the path
@pytest.mark.parametrize("weights", ["marginal", "joint"])
@pytest.mark.parametrize("n_categories", [N_CATEGORIES, [3, 4, 2, 5, 3, 4]])
def test_path_and_gibbs_sweeps_keep_the_contract(weights, n_categories):
    path = random_model(n_categories=n_categories).path(weights=weights)
    check_path(path)
    path = path.with_ladder(np.linspace(0, 1, 15))
    check_transition(path, Gibbs(), variables=lambda s: (s.v, s.h) if path.joint else s.v)


def test_a_mixture_as_base_keeps_the_contract():
    path = random_model(n_categories=[3, 4, 2, 5], scale=1.5).path()
    regions = path.regions(Stream(stream_key(1)))
    assert np.all(path.visible_units.largest_sums(np.asarray(regions.centres, float)) == 4)
    mixture = path.with_regions(regions).with_ladder(np.linspace(0, 1, 15))
    check_path(mixture)
    check_transition(mixture, Gibbs(), variables=lambda state: state.v)
    exact = Exact().fit(path).log_partition_
    assert Exact().fit(mixture).log_partition_ == pytest.approx(exact, abs=1e-12)
    ais = AIS(n_temperatures=100, random_state=0).fit(mixture)
    assert abs(ais.log_partition_ - exact) < Z_BOUND * ais.log_partition_std_error_


# ---- log Z
@pytest.mark.parametrize(
    "estimator", [None, ParallelTempering(n_ladders=10, n_sweeps=512, random_state=0)]
)
def test_draws_have_the_probabilities_of_the_model(estimator):
    """Shares of 24 rows within 4.5 standard errors: a false alarm in 6,000; draws of tempered
    chains count half. Gibbs steps leave them as they are.
    """
    model = random_model(partition_estimator=estimator)
    X = all_rows(N_CATEGORIES)
    n = 4000
    drawn = model.sample(n, random_state=1)
    assert drawn.shape == (n, 4)
    expected = np.exp(model.score_samples(X))
    n_effective = n if estimator is None else n / 2
    for rows in (drawn, model.gibbs(model.gibbs(drawn))):
        shares = np.array([np.mean(np.all(rows == row, axis=1)) for row in X])
        z = (shares - expected) / np.sqrt(expected * (1 - expected) / n_effective)
        assert np.abs(z).max() < 4.5


# ---- training
def test_a_step_goes_along_the_gradient_of_the_likelihood():
    """With chains at exact draws of the model its mean is the gradient, here by finite differences.

    Of 39 parameters none is 4.5 standard errors off: a false alarm in 3,700.
    """
    n_chains, rate, step = 20_000, 1.0, 1e-5
    model = random_model(n_categories=[3, 4, 2], average=False, weight_decay=0.0)
    data = all_rows([3, 4, 2])[::3]
    names = "components_", "intercept_visible_", "intercept_hidden_"
    slopes = []
    for name in names:
        array = getattr(model, name)
        for index in np.ndindex(array.shape):
            sides = []
            for sign in (1, -1):
                kept = array[index]
                array[index] = kept + sign * step
                sides.append(model.score(data))
                array[index] = kept
            slopes.append((sides[0] - sides[1]) / (2 * step))

    rng = np.random.default_rng(1)
    rows = model.sample(n_chains, random_state=0)
    on = model.transform(rows)
    model.h_samples_ = (rng.random(on.shape) < on).astype(float)
    before = np.concatenate([np.ravel(getattr(model, name)) for name in names])
    model.set_params(n_chains=n_chains, learning_rate=rate).partial_fit(data)
    after = np.concatenate([np.ravel(getattr(model, name)) for name in names])
    v = indicators(rows, [3, 4, 2])
    products = (on[:, :, np.newaxis] * v[:, np.newaxis]).reshape(n_chains, -1)
    spread = np.concatenate([part.std(axis=0) for part in (products, v, on)]) / np.sqrt(n_chains)
    rounding = 1e-5  # of weights in float32, to which 20,000 parts are added
    assert np.all(np.abs((after - before) / rate - slopes) < 4.5 * spread + rounding)


def two_kinds(n=600, seed=0):
    """Rows of two kinds, whose six features agree on what they are in seven of ten cases."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(2, size=(n, 1))
    return np.where(rng.random((n, 6)) < 0.7, 2 * kind, rng.integers(3, size=(n, 6)))


# ---- in scikit-learn's hands
def test_categories_that_training_has_not_seen_are_refused_unless_they_were_announced():
    X = two_kinds()
    model = CategoricalRBM(2, n_iter=2, random_state=0).fit(X)
    new = X[:3].copy()
    new[0, 4] = 7
    for method in (model.score, model.score_samples, model.transform, model.partial_fit):
        message = "column 4 of X holds category 7, but the model was fitted to categories 0 to 2"
        with pytest.raises(ValueError, match=message):
            method(new)
    announced = CategoricalRBM(2, n_iter=2, random_state=0, min_categories=[3, 3, 3, 3, 8, 3])
    announced.fit(X)
    assert announced.n_categories_.tolist() == [3, 3, 3, 3, 8, 3]
    assert np.all(announced.score_samples(new)[0] < announced.score_samples(new)[1:])
    whole = CategoricalRBM(2, n_iter=2, random_state=0, min_categories=8).fit(X)
    assert whole.n_categories_.tolist() == [8] * 6
    assert np.isfinite(whole.score(new))


# ---- errors
@pytest.mark.large
@pytest.mark.parametrize("estimator", [AIS(), ParallelTempering()], ids=str)
def test_intervals_cover_on_models_that_are_trained_anew(estimator):
    def trained(seed):
        rng = np.random.default_rng([3, seed])
        n_categories = rng.integers(2, 6, size=8)
        kind = rng.integers(4, size=(400, 1)) % n_categories
        noise = rng.integers(n_categories, size=(400, 8))
        X = np.where(rng.random((400, 8)) < 0.7, kind, noise)
        return CategoricalRBM(int(rng.integers(3, 11)), random_state=seed).fit(X)

    check_coverage(trained, estimator, 60, least_converged=0.9)


# ---- levels along training
def trajectory_path():
    rng = np.random.default_rng(0)
    target = random_model(n_categories=[3, 2, 4]).path()
    return RBMTrajectoryPath(target, rng.normal(size=(2, 4, 10)), [0.3, 0.5], (0, 0.2, 0.6, 1))


def test_levels_along_training_keep_the_contract():
    path = trajectory_path()
    check_path(path)
    finer = path.with_ladder(np.linspace(0, 1, 21))
    check_transition(finer, Gibbs(), variables=lambda state: state.v)
    v = indicators(all_rows([3, 2, 4]), [3, 2, 4])
    at_all = np.logaddexp.reduce(path.log_f_ladder(path.state_from_rows(v)), axis=0)
    for level, log_partition in enumerate(at_all):
        enumerated = np.logaddexp.reduce(path.enumerate_block(0, level))
        assert enumerated == pytest.approx(log_partition, abs=1e-5)
    assert at_all[0] == pytest.approx(0, abs=1e-6)


# ---- ratios
def test_the_ratio_of_two_models_is_estimated_directly(monkeypatch):
    """The difference of scores within 4.5 standard errors of the exact one, and with a smaller
    error than two log Z would leave.
    """
    X = two_kinds(100)
    tempering = ParallelTempering(n_sweeps=256, random_state=0)
    a = CategoricalRBM(4, n_iter=5, random_state=0, partition_estimator=tempering).fit(two_kinds())
    near = a.components_ + 0.02, a.intercept_visible_, a.intercept_hidden_ - 0.02
    options = {"partition_estimator": tempering, "random_state": 1}
    b = CategoricalRBM.from_parameters(*near, a.n_categories_, **options)
    path = a._ratio_path(b)
    check_path(path.with_ladder(np.linspace(0, 1, 5)))
    monkeypatch.setattr(CategoricalRBM, "_ratio_path", lambda *models: path)  # is drawn once
    exact = [m.set_params(partition_estimator=None).score(X) for m in (a, b)]
    for model in (a, b):
        model.set_params(partition_estimator=tempering)
    difference = compare(a, b, X)
    half = np.diff(difference.partition)[0] / 2
    apart = np.hypot(*(model.log_partition_std_error_ for model in (a, b)))
    assert half < 1.96 * apart
    assert abs(difference.mean - (exact[0] - exact[1])) < Z_BOUND / 1.96 * half


def test_models_of_other_units_have_no_ratio():
    model = random_model(n_categories=[2, 2])
    binary = BernoulliRBM.from_parameters(*(np.zeros(s) for s in ((3, 4), 4, 3)))
    other = random_model(n_categories=[1, 3])
    assert model._ratio_path(other) is None
    assert model._ratio_path(binary) is None
    assert binary._ratio_path(model) is None


def test_encodings_that_are_no_categories_are_named():
    model = CategoricalRBM(2, n_iter=2, random_state=0).fit([[0, 1], [1, 2], [0, 0]])
    with pytest.raises(ValueError, match="OrdinalEncoder gives.*unknown_value=-1.*min_categories"):
        model.score([[0, -1]])
    with pytest.raises(TypeError, match="sparse matrix, as OneHotEncoder gives"):
        model.score(sp.csr_matrix([[0, 1]]))
