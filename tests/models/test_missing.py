"""Missing values of RBMs: sums over completions by enumeration, draws, estimates, training."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp

from sklpf import AIS, BernoulliRBM, BoltzmannMachine, CategoricalRBM, GaussianRBM
from sklpf.interop import from_decoder
from sklpf.models import _missing

NAN = np.nan


def binary(n_visible=5, n_hidden=3):
    rng = np.random.default_rng(0)
    sizes = (n_hidden, n_visible), n_visible, n_hidden
    weights = (rng.normal(size=size) for size in sizes)
    return BernoulliRBM.from_parameters(*weights, random_state=0)


def in_two_parts():
    """Units 0 and 1 share hidden unit 0, units 2 and 3 hidden unit 1, unit 4 has none."""
    weights = np.array([[2.0, -1.0, 0, 0, 0], [0, 0, 1.5, 1.0, 0], [0, 0, 0, 0, 0]])
    return BernoulliRBM.from_parameters(weights, [0.1, -0.3, 0.5, 0.2, -1], [0.4, -0.6, 1])


def categorical():
    rng = np.random.default_rng(1)
    sizes = (3, 9), 9, 3
    parameters = (rng.normal(size=size) for size in sizes)
    return CategoricalRBM.from_parameters(*parameters, n_categories=[2, 3, 1, 3], random_state=0)


def gaussian():
    rng = np.random.default_rng(2)
    sizes = (3, 4), 4, 3
    parameters = (rng.normal(size=size) for size in sizes)
    return GaussianRBM.from_parameters(*parameters, variances=[1.0, 0.5, 2.0, 0.3], random_state=0)


def decoder():
    options = {"likelihood": "gaussian", "noise_std": 1.0}
    return from_decoder(lambda z: 2 * z, 1, pullback=lambda z, g: 2 * g, **options)


def all_rows(model):
    sizes = getattr(model, "n_categories_", [2] * model.n_features_in_)
    return np.array(list(itertools.product(*map(range, sizes))), dtype=float)


def patterns(n):
    return np.array(list(itertools.product([False, True], repeat=n)))


@pytest.fixture(params=["few missing units", "few hidden units"])
def enumerated(request, monkeypatch):
    """Either layer is enumerated; without tables of visible units it is the hidden one."""
    if request.param == "few hidden units":
        monkeypatch.setattr(_missing.BinaryUnits, "n_states", lambda units, n: np.inf)
        monkeypatch.setattr(_missing, "_MOST_NUMBERS", 0)


# ---- sums
@pytest.mark.parametrize("make", [binary, in_two_parts, categorical])
def test_known_values_have_the_sum_of_the_probabilities_of_all_completions(make, enumerated):
    model = make()
    rows = all_rows(model)
    log_p = model.score_samples(rows)
    on = model.transform(rows)
    for missing in patterns(rows.shape[1]):
        X = np.where(missing, NAN, rows)
        same = (rows[:, None, ~missing] == rows[None, :, ~missing]).all(axis=2)
        weights = np.where(same, log_p, -np.inf)
        expected = logsumexp(weights, axis=1)
        np.testing.assert_allclose(model.score_samples(X), expected, atol=1e-10)
        given = np.exp(weights - expected[:, None])
        np.testing.assert_allclose(model.transform(X), given @ on, atol=1e-10)
        if make is not categorical:
            np.testing.assert_allclose(model.impute(X, "mean"), given @ rows, atol=1e-10)
        _, first = np.unique(rows[:, ~missing], axis=0, return_index=True)
        assert abs(logsumexp(model.score_samples(X)[first])) < 1e-10


# ---- draws
@pytest.mark.parametrize("make", [binary, in_two_parts, categorical])
def test_imputed_values_have_their_conditional_probabilities(make, enumerated):
    """Of at most 24 completions of each of 3 models, twice; |z| < 4.2: false alarms 0.4 %."""
    model = make()
    rows = all_rows(model)
    row = rows[-2].copy()
    row[[0, -1, -2]] = NAN
    n = 4000
    drawn = model.impute(np.tile(row, (n, 1)), random_state=0)
    known = ~np.isnan(row)
    assert np.array_equal(drawn[:, known], np.tile(row[known], (n, 1)))
    completions = rows[(rows[:, known] == row[known]).all(axis=1)]
    p = np.exp(model.score_samples(completions) - model.score_samples([row]))
    counts = (drawn[:, None] == completions).all(axis=2).sum(axis=0)
    assert counts.sum() == n
    assert np.all(np.abs(counts - n * p) < 4.2 * np.sqrt(n * p * (1 - p)))


@pytest.mark.parametrize(("n_visible", "n_hidden"), [(1300, 1), (4, 1300)])
def test_units_may_have_more_states_than_there_are_numbers(n_visible, n_hidden):
    """Without weights the known values are independent: 2^1300 is no float."""
    weights = np.zeros((n_hidden, n_visible)), np.zeros(n_visible), np.zeros(n_hidden)
    model = BernoulliRBM.from_parameters(*weights)
    row = np.full((1, n_visible), NAN)
    row[0, :3] = [0, 1, 1]
    assert model.score_samples(row) == pytest.approx(-3 * np.log(2), abs=1e-9)


def test_the_mode_is_the_most_probable_category_of_each_feature():
    model = categorical()
    rows = all_rows(model)
    row = np.array([NAN, 1, 0, NAN])
    completions = rows[(rows[:, [1, 2]] == [1, 0]).all(axis=1)]
    p = np.exp(model.score_samples(completions))
    modes = [np.bincount(completions[:, k].astype(int), p).argmax() for k in (0, 3)]
    assert np.array_equal(model.impute([row], "mode")[0, [0, 3]], modes)


# ---- estimates
@pytest.fixture
def not_enumerated(monkeypatch):
    monkeypatch.setattr(_missing, "_MOST_STATES", 0)


@pytest.mark.parametrize("make", [binary, categorical, gaussian])
def test_rows_that_are_not_enumerated_are_estimated_with_their_error(
    make, not_enumerated, monkeypatch
):
    """30 rows a model within the interval of Student's t of probability 1 - 1e-5, and their mean
    within that of 99.9 %: false alarms 0.4 %.
    """
    model = make()
    X = model.sample(30, random_state=0).astype(float)
    X[np.random.default_rng(0).random(X.shape) < 0.4] = NAN
    model.estimate_log_partition()
    kept = model._kept_partition
    model.partition_estimator = AIS(n_temperatures=40, n_chains=60)
    monkeypatch.setattr(type(model), "_partition", lambda model: kept[1])
    estimate = model.score_interval(X, level=0.999)
    values = model.score_samples(X)
    sums = model._kept_sums[1].result_
    rows = model._marginals(model._validate(X)).rows
    monkeypatch.setattr(_missing, "_MOST_STATES", 1 << 20)
    exact = model.score_samples(X)
    low, high = sums.interval(1 - 1e-5)
    expected = sums.log_partition - (values - exact)[rows]
    assert np.all((expected > low - 1e-6) & (expected < high + 1e-6))
    low, high = estimate.partition
    assert low < exact.mean() < high
    assert 0 < high - low < 0.2


class NeverTrusted(AIS):
    """Annealing whose weights do not do."""

    def _fit(self, path, draws=None):
        self.converged_ = False
        return self


@pytest.mark.parametrize("annealed", [AIS, NeverTrusted])
@pytest.mark.parametrize("make", [binary, categorical, gaussian])
def test_rows_that_are_not_enumerated_are_imputed_by_annealed_or_tempered_chains(
    make, annealed, not_enumerated, monkeypatch
):
    """100 draws for each: |z| < 4.5 of every mean, at most 15: false alarms 0.01 %."""
    model = make()
    X = model.sample(1, random_state=0).astype(float)
    X[0, [0, -1]] = NAN
    monkeypatch.setattr(_missing, "AIS", annealed)
    on = model.transform(X)
    assert not np.isnan(model.impute(X, random_state=0)).any()
    monkeypatch.setattr(_missing, "_MOST_STATES", 1 << 20)
    assert np.all(np.abs(on - model.transform(X)) <= 4.5 * 0.5 / np.sqrt(100))


def test_imputations_of_another_seed_are_other_draws(not_enumerated):
    """Of 20 equal rows some differ: they share no pool of draws."""
    model = binary()
    X = np.repeat(model.sample(1, random_state=0).astype(float), 20, axis=0)
    X[:, :4] = NAN
    first, again, other = (model.impute(X, random_state=seed) for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert len(np.unique(first, axis=0)) > 1


# ---- training
def complete_and_missing(model, n, share):
    X = model.sample(n, random_state=1).astype(float)
    missing = np.random.default_rng(2).random(X.shape) < share
    return X, np.where(missing, NAN, X)


@pytest.mark.parametrize(
    ("truth", "learner"),
    [
        (binary, BernoulliRBM(3, n_iter=20, learning_rate=0.05, random_state=0)),
        (categorical, CategoricalRBM(3, n_iter=20, learning_rate=0.05, random_state=0)),
        (gaussian, GaussianRBM(3, n_iter=20, learning_rate=0.05, random_state=0)),
    ],
)
def test_training_on_rows_with_missing_values_recovers_the_model(truth, learner):
    """The loss by a fifth of missing values is at most 0.02 nats more than that of complete
    rows.
    """
    truth = truth()
    X, X_missing = complete_and_missing(truth, 1500, 0.2)
    test = truth.sample(3000, random_state=3).astype(float)
    best = truth.score(test)
    whole = best - learner.fit(X).score(test)
    holed = best - learner.fit(X_missing).score(test)
    assert holed < whole + 0.02


@pytest.mark.parametrize("model", [BernoulliRBM(2), CategoricalRBM(2), GaussianRBM(2)])
def test_what_can_not_be_used_is_said(model):
    model.set_params(n_iter=2, random_state=0)
    X = (np.random.default_rng(0).random((40, 3)) < 0.5).astype(float)
    X[0, 1] = NAN
    model.fit(X)
    model.partial_fit(X)
    model.gibbs(X)
    with pytest.raises(ValueError, match="infinity"):
        model.score(np.where(np.isnan(X), np.inf, X))
    X[:, 1] = NAN
    with pytest.raises(ValueError, match="column 1 of X holds no value, only NaN"):
        model.fit(X)
    with pytest.raises(ValueError, match="how must be"):
        model.impute(X, "median")


# ---- predictions
@pytest.mark.parametrize("make", [binary, categorical])
def test_conditional_probabilities_are_ratios_of_probabilities(make):
    model = make()
    rows = all_rows(model)
    log_p = model.score_samples(rows)
    X = rows.copy()
    X[:, 2] = NAN
    p = model.conditional_proba(X, [3, 1])
    states = all_rows(model)[:, [3, 1]]
    states = np.unique(states, axis=0)
    for k, state in enumerate(states):
        for t in range(0, len(rows), 5):
            others = [c for c in range(rows.shape[1]) if c not in (1, 2, 3)]
            same = (rows[:, others] == rows[t, others]).all(axis=1)
            chosen = same & (rows[:, [3, 1]] == state).all(axis=1)
            expected = np.exp(logsumexp(log_p[chosen]) - logsumexp(log_p[same]))
            assert abs(p[t, k] - expected) < 1e-10


@pytest.mark.parametrize(
    ("columns", "states", "message"),
    [
        ([0], [[-1.0]], "whole numbers from 0 up to"),
        ([0], [[0.5]], "whole numbers from 0 up to"),
        ([0], [[7.0]], "whole numbers from 0 up to"),
        ([0, 1], [[1.0]], "must have 2 columns"),
        ([0, 0], None, "differ from each other"),
    ],
)
@pytest.mark.parametrize("make", [binary, categorical])
def test_states_that_the_model_does_not_know_are_refused(make, columns, states, message):
    model = make()
    with pytest.raises(ValueError, match=message):
        model.conditional_proba(model.sample(2, random_state=0), columns, states)


def test_labels_in_one_hot_code_exclude_each_other():
    model = binary()
    p = model.conditional_proba(np.zeros((1, 5)), [0, 1, 2], states=np.eye(3))
    rows = np.c_[np.eye(3), np.zeros((3, 2))]
    log_p = model.score_samples(rows)
    np.testing.assert_allclose(p[0], np.exp(log_p - logsumexp(log_p)), atol=1e-10)
    with pytest.raises(ValueError, match="columns must be numbers from 0 to 4"):
        model.conditional_proba(np.zeros((1, 5)), [5])
    with pytest.raises(ValueError, match="set_output"):
        model.conditional_proba(np.zeros((1, 5)), "vote")
    with pytest.raises(ValueError, match="states must hold values"):
        model.conditional_proba(np.zeros((1, 5)), [0], states=[[2]])


def test_draws_are_frames_where_set_output_asks_for_them():
    pytest.importorskip("pandas")
    X = categorical().set_output(transform="pandas").sample(3, random_state=0)
    assert list(X.columns) == ["x0", "x1", "x2", "x3"]
    model = CategoricalRBM(2, n_iter=2, random_state=0).fit(X)
    model.set_output(transform="pandas")
    X.iloc[0, 1] = NAN
    filled = model.impute(X, random_state=0)
    assert list(filled.columns) == list(X.columns)
    assert filled.notna().all(axis=None)


@pytest.mark.parametrize("model", [decoder(), BoltzmannMachine.from_parameters([[0.0]], [0.0])])
def test_draws_of_models_that_transform_nothing_are_frames_too(model):
    pytest.importorskip("pandas")
    assert list(model.set_output(transform="pandas").sample(2, random_state=0).columns) == ["x0"]
    assert isinstance(model.set_output(transform="default").sample(2), np.ndarray)
    with pytest.raises(ValueError, match="transform must be one of"):
        model.set_output(transform="arrow")


def test_missing_values_are_not_taken_from_sparse_rows():
    model = binary()
    X = sp.csr_matrix([[1.0, NAN, 0, 0, 0]])
    with pytest.raises(ValueError, match="sparse matrix that contains NaN"):
        model.score(X)


def test_columns_are_asked_for_by_name():
    pytest.importorskip("pandas")
    X = categorical().set_output(transform="pandas").sample(9, random_state=0)
    X.columns = ["age", "vote", "city", "sex"]
    model = CategoricalRBM(2, n_iter=2, random_state=0).fit(X)
    by_number = model.conditional_proba(X, [3, 1])
    np.testing.assert_array_equal(model.conditional_proba(X, ["sex", "vote"]), by_number)
    np.testing.assert_array_equal(model.conditional_proba(X, "age"), model.conditional_proba(X, 0))
    with pytest.raises(ValueError, match="numbers from 0 to 3 or names among age, vote, city, sex"):
        model.conditional_proba(X, "income")


# ---- early stopping
def two_kinds_with_missing():
    rng = np.random.default_rng(0)
    rows = np.where(rng.random((200, 4)) < 0.2, rng.integers(2, size=(200, 4)), [[0], [1]] * 100)
    return np.where(rng.random(rows.shape) < 0.2, NAN, rows)


def test_early_stopping_scores_what_is_known_of_the_rows_held_out():
    """The best pass has the score of these rows; |z| <= 4: false alarm 6e-5, fixed seed."""
    from sklearn.model_selection import train_test_split

    X = two_kinds_with_missing()
    options = {"n_iter": 5, "early_stopping": True, "n_iter_no_change": 9, "random_state": 0}
    model = BernoulliRBM(3, **options).fit(X)
    _, held_out = train_test_split(X, test_size=0.1, random_state=np.random.RandomState(0))
    at = model.best_iteration_ - 1
    off = model.score(held_out) - model.validation_scores_[at]
    assert abs(off) <= 4 * model.validation_score_std_errors_[at] + 1e-4


def test_early_stopping_refuses_rows_whose_sums_can_only_be_estimated(monkeypatch):
    monkeypatch.setattr(_missing, "_MOST_STATES", 0)
    with pytest.raises(ValueError, match="at most 20 hidden units"):
        BernoulliRBM(3, n_iter=1, early_stopping=True).fit(two_kinds_with_missing())
