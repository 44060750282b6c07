"""Models with a likelihood for each row: what is kept, what is trusted, and when something is
estimated.
"""

import contextlib
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from told import Shifted

from sklpf import (
    Exact,
    FactorialMixture,
    LatentDirichletAllocation,
    PartitionEstimator,
    PartitionResult,
    compare,
)
from sklpf.datasets import make_bars_corpus, make_factorial_shapes
from sklpf.partition import Alarm

N_ROWS = 40


class Judged(PartitionEstimator):
    """Exact values; those within 1e-9 of `doubted` are moved by `shift` and not trusted."""

    runs = 0

    def __init__(
        self, doubted=None, shift=0.0, statement="estimate", severity="untrusted", random_state=None
    ):
        self.doubted = doubted
        self.shift = shift
        self.severity = severity
        self.statement = statement
        self.random_state = random_state

    def _estimate(self, path, seed):
        Judged.runs += 1
        value = Exact().fit(path).log_partition_
        doubted = self.doubted is not None and abs(value - self.doubted) < 1e-9
        options = {"statement": self.statement}
        if doubted:
            options["alarms"] = (Alarm("told", "it was told so", severity=self.severity),)
        return PartitionResult("Judged", value + self.shift * doubted, 0.01, **options)


def make_factorial():
    X, _, _ = make_factorial_shapes(N_ROWS, shapes="bars", noise_variance=0.1, random_state=0)
    return FactorialMixture(4, noise_variance=0.1, random_state=0, max_iter=500).fit(X), X


def make_topics():
    counts, _, _ = make_bars_corpus(N_ROWS, size=3, n_tokens=8, random_state=0)
    return LatentDirichletAllocation(3, random_state=0).fit(counts), counts


@pytest.fixture(scope="module", params=[make_factorial, make_topics], ids=["factorial", "topics"])
def fitted_once(request):
    return request.param()


@pytest.fixture
def fitted(fitted_once):
    """A model whose rows can be enumerated, and its rows."""
    model, X = fitted_once
    return pickle.loads(pickle.dumps(model)).set_params(partition_estimator=Exact()), X


def doubt(model, X, t, shift=0.0):
    """Make the model distrust rows that are equal to row t; returns which they are and the true
    values.
    """
    values = model.score_samples(X)
    model.set_params(partition_estimator=Judged(values[t], shift))
    return np.abs(values - values[t]) < 1e-9, values


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


# ---- what is kept
def test_the_estimator_of_the_rows_is_kept_after_scoring(fitted):
    model, X = fitted
    model.set_params(partition_estimator=Judged())
    model = (
        pickle.loads(pickle.dumps(model)).fit(X)
        if hasattr(model, "partition_estimator_")
        else model
    )
    for method, rows in (("score", X[:9]), ("score_samples", X[3:5]), ("score_interval", X[:7])):
        getattr(model, method)(rows)
        kept = model.partition_estimator_
        assert kept.log_partition_.shape == (rows.shape[0],)
        assert kept.result_.diagnostics["converged"].all()
    np.testing.assert_array_equal(model.score_samples(X[:7]), kept.log_partition_)
    assert kept is not model.partition_estimator
    assert not hasattr(model.partition_estimator, "result_")
    assert not hasattr(kept, "run_")
    assert not hasattr(clone(model), "partition_estimator_")


def test_the_same_rows_are_not_estimated_again(fitted):
    model, X = fitted
    model.set_params(partition_estimator=Judged())
    model.score(X[:7])
    n_runs = Judged.runs
    model.score_interval(X[:7])
    compare(model, model, X[:7])
    assert Judged.runs == n_runs
    model.score(X[:6])
    assert Judged.runs > n_runs  # other rows
    n_runs = Judged.runs
    model.set_params(partition_estimator=Judged(shift=1.0)).score(X[:6])
    assert Judged.runs > n_runs  # another estimator
    n_runs = Judged.runs
    model.components_ = 0.9 * model.components_
    model.score(X[:6])
    assert Judged.runs > n_runs  # other weights


# ---- rows that are not trusted
def typical(values):
    """The row whose value is nearest to the mean."""
    return int(np.abs(values - values.mean()).argmin())


@pytest.mark.parametrize("on_nonconvergence", ["warn", "nan", "raise"])
def test_few_untrusted_rows_that_do_not_move_the_mean_are_tolerated_with_a_line_in_the_log(
    fitted, on_nonconvergence, caplog
):
    model, X = fitted
    t = typical(model.score_samples(X))
    doubted, values = doubt(model, X, t)
    model.set_params(on_nonconvergence=on_nonconvergence)
    assert model.score(X) == pytest.approx(values.mean(), rel=1e-12)
    interval = model.score_interval(X)
    assert interval.mean == pytest.approx(values.mean(), rel=1e-12)
    assert [(one.name, one.levelname) for one in caplog.records] == [("sklpf", "WARNING")] * 2
    reason = f"Judged did not converge: in {doubted.sum()} of {N_ROWS} rows"
    assert f"hardly move the mean: {reason}" in caplog.text


@pytest.mark.parametrize(
    ("share", "tolerated"), [(0.09, True), (-0.09, True), (0.11, False), (-0.11, False)]
)
def test_a_tenth_of_the_sampling_error_is_the_limit(fitted, share, tolerated):
    model, X = fitted
    values = model.score_samples(X)
    counts = np.array([np.sum(np.abs(values - value) < 1e-9) for value in values])
    t = int(np.flatnonzero(counts == 1)[0])
    others = np.delete(values, t)
    error = others.std(ddof=1) / np.sqrt(len(others))
    goal = others.mean() + share * error * len(values)  # moves the mean by share * error
    model.set_params(partition_estimator=Judged(values[t], goal - values[t]))
    if tolerated:
        assert model.score(X) == pytest.approx(others.mean() + share * error, rel=1e-12)
    else:
        with pytest.warns(ConvergenceWarning, match="likelihoods are not to be trusted"):
            model.score(X)


@pytest.mark.parametrize(("severity", "tolerated"), [("imprecise", True), ("untrusted", False)])
def test_a_row_that_is_only_imprecise_counts_by_its_error_however_unlike_the_others_it_is(
    fitted, severity, tolerated
):
    model, X = fitted
    values = model.score_samples(X)
    doubted, _ = doubt(model, X, int(values.argmin()), shift=-100.0)
    model.set_params(partition_estimator__severity=severity)
    if not tolerated:
        with pytest.warns(ConvergenceWarning, match="likelihoods are not to be trusted"):
            model.score(X)
        return
    assert model.score(X) == pytest.approx((values - 100.0 * doubted).mean(), rel=1e-12)
    partition = model.score_interval(X).partition
    half = (partition[1] - partition[0]) / 2
    assert half > 5 * 0.01 * doubted.sum() / N_ROWS


def test_values_of_rows_are_never_tolerated(fitted, caplog):
    """What does not move a mean is still wrong as a row's own value."""
    model, X = fitted
    doubted, values = doubt(model, X, typical(model.score_samples(X)))
    with pytest.warns(ConvergenceWarning, match="likelihoods are not to be trusted"):
        np.testing.assert_allclose(model.score_samples(X), values, rtol=1e-12)
    model.set_params(on_nonconvergence="nan")
    found = model.score_samples(X)
    np.testing.assert_array_equal(np.isnan(found), doubted)
    np.testing.assert_allclose(found[~doubted], values[~doubted], rtol=1e-12)
    assert [record.name for record in caplog.records] == ["sklpf"]
    model.set_params(on_nonconvergence="raise")
    with pytest.raises(RuntimeError, match="likelihoods are not to be trusted"):
        model.score_samples(X)


# ---- bounds are no estimates
@pytest.mark.parametrize("statement", ["lower bound", "conservative, not a bound"])
def test_numbers_that_are_no_estimates_are_not_trusted(fitted, statement):
    model, X = fitted
    model.set_params(partition_estimator=Judged(statement=statement))
    with pytest.warns(ConvergenceWarning, match=f'is "{statement}" where a score needs'):
        assert np.isfinite(model.score(X))
    model.set_params(on_nonconvergence="nan")
    assert np.all(np.isnan(model.score_samples(X)))
    assert np.isnan(model.score(X))
    model.set_params(on_nonconvergence="raise")
    with pytest.raises(RuntimeError, match="needs an estimate"):
        model.score(X)


# ---- probabilities that sum to more than 1
@pytest.mark.parametrize(("shift", "warned"), [(0.0, False), (0.03, False), (0.1, True)])
def test_probabilities_of_all_documents_of_a_length_sum_to_one(shift, warned):
    topics = [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]
    model = LatentDirichletAllocation.from_topics(topics, 0.5, partition_estimator=Shifted(shift))
    X = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1], [2, 3, 1]])
    message = "the probabilities of 3 distinct rows sum to exp"
    warns = pytest.warns(ConvergenceWarning, match=message)
    with warns if warned else contextlib.nullcontext():
        values = model.score_samples(X)
    if warned:
        model.set_params(on_nonconvergence="nan")
        missing = np.isnan(model.score_samples(X))
        np.testing.assert_array_equal(missing, [True] * 4 + [False])
    assert np.all(np.isfinite(values))
