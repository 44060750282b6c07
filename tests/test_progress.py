"""How far fits are: lines where `verbose`, tasks for scikit-learn's callbacks, and never another
number.
"""

import io
import logging
import re
import sys

import numpy as np
import pytest
from estimators import ESTIMATORS, fitted
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from sklpf import (
    AIS,
    HAIS,
    RTS,
    SMC,
    BernoulliRBM,
    FactorialMixture,
    Gaussian,
    GeometricPath,
    LatentDirichletAllocation,
    LinearGenerativeModel,
    ParallelTempering,
    ProductOfExperts,
)
from sklpf._utils import context as _context
from sklpf.partition import SAMS

RNG = np.random.default_rng(0)
BINARY = (RNG.random((60, 8)) < 0.4).astype(float)
REAL = RNG.laplace(size=(60, 3))
RBM = BernoulliRBM.from_parameters(RNG.normal(size=(5, 6)), np.zeros(6), np.zeros(5))

NAMES = "ParallelTempering", "AIS", "RTS", "SAMS", "SMC", "BAR", "Exact"
MODELS = [  # how often they pass over the rows, and whether callbacks are given the model then
    (BernoulliRBM(4, n_iter=3), BINARY, 3, True),
    (LatentDirichletAllocation(3, max_iter=2), BINARY, 2, True),
    (LatentDirichletAllocation(3, learning_method="gibbs", max_iter=2), BINARY, 2, False),
    (FactorialMixture(3, tol=0.1), REAL, 1, True),
    (FactorialMixture(3, n_init=2, tol=0.1), REAL, 2, True),
    (ProductOfExperts(max_iter=2, tol=0), REAL, 2, True),
    (LinearGenerativeModel(prior="laplace", max_iter=3, tol=0), REAL, 3, False),
]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


class Recorder:
    """A callback of scikit-learn that writes down what it hears, and may ask to stop after some
    tasks.
    """

    max_propagation_depth = None

    def __init__(self, stop_after=None):
        self.heard, self.stop_after = [], stop_after

    def setup(self, estimator, context):
        self.heard.append(("setup", type(estimator).__name__))

    def teardown(self, estimator, context):
        self.heard.append(("teardown", type(estimator).__name__))

    def on_fit_task_begin(self, estimator, context):
        self.heard.append(
            ("begin", context.estimator_name, context.task_name, context.max_subtasks)
        )

    def on_fit_task_end(self, estimator, context):
        self.heard.append(("end", context.estimator_name, context.task_name, context.max_subtasks))
        return self.stop_after is not None and self.count("end", "pass") >= self.stop_after

    def count(self, event, task):
        return sum(heard[0] == event and heard[2] == task for heard in self.heard if len(heard) > 2)


@pytest.fixture
def recorder():
    pytest.importorskip("sklearn.callback", reason="callbacks are new in scikit-learn 1.9")
    return Recorder()


def numbers(estimator):
    return estimator.log_partition_, estimator.log_partition_std_error_, estimator.result_.n_sweeps


# -- callbacks
@pytest.mark.parametrize("name", NAMES)
def test_estimators_tell_callbacks_of_every_stage_and_change_no_number(name, recorder, capsys):
    quiet = numbers(fitted(name))
    estimator = clone(fitted(name)).set_params(verbose=1)
    assert numbers(estimator.set_callbacks(recorder).fit(ESTIMATORS[name][1]())) == quiet
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith(f"[{name}] log Z = ")
    assert recorder.heard[:2] == [("setup", name), ("begin", name, "fit", None)]
    assert recorder.heard[-2:] == [("end", name, "fit", None), ("teardown", name)]
    begun, ended = (
        [heard[2:] for heard in recorder.heard if heard[0] == event] for event in ("begin", "end")
    )
    assert sorted(begun, key=str) == sorted(ended, key=str)
    stages = [n_tasks for _, n_tasks in begun[1:] if n_tasks]
    leaves = sum(n_tasks == 0 for _, n_tasks in begun)
    assert sum(stages) == leaves > 0


class Keeper(Recorder):
    """Keeps the fitted model after every task that has one, and its score."""

    def __init__(self):
        super().__init__()
        self.models, self.scores = [], []

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        if fitted_estimator is not None:
            self.models.append(fitted_estimator.set_callbacks())
            self.scores.append(self.models[-1].set_params(verbose=0).score(X[:4]))


@pytest.mark.parametrize(
    ("model", "X", "n_passes", "is_given"), MODELS, ids=lambda given: type(given).__name__
)
def test_models_tell_callbacks_of_every_pass_and_change_no_number(
    model, X, n_passes, is_given, recorder
):
    keeper = Keeper()
    quiet = clone(model).set_params(random_state=0).fit(X)
    fitted = clone(model).set_params(random_state=0).set_callbacks(recorder, keeper).fit(X)
    np.testing.assert_array_equal(fitted.transform(X), quiet.transform(X))
    name = type(model).__name__
    assert recorder.heard[0] == ("setup", name)
    assert recorder.heard[-1] == ("teardown", name)
    assert recorder.count("begin", "fit") == recorder.count("end", "fit") == 1
    tasks = "start" if name == "FactorialMixture" else "pass"
    ended = [heard for heard in recorder.heard if heard[0] == "end" and heard[2] == tasks]
    within = [heard for heard in ended if heard[3] is None]
    assert (len(within) if tasks == "start" else recorder.count("end", "pass")) == n_passes
    if tasks == "pass":
        assert len(keeper.models) == n_passes * is_given
    # later passes don't change what an earlier one gave
    for kept, score in zip(keeper.models, keeper.scores):
        assert kept.score(X[:4]) == score
    assert (len({kept.components_.tobytes() for kept in keeper.models}) > 1) == is_given
    if is_given and getattr(model, "n_init", 1) == 1:
        np.testing.assert_array_equal(keeper.models[-1].components_, quiet.components_)
        assert keeper.scores[-1] == quiet.score(X[:4])
    assert fitted.score(X[:4]) == quiet.score(X[:4])


def test_a_callback_may_end_training(recorder):
    recorder.stop_after = 2
    BernoulliRBM(4, n_iter=9, random_state=0).set_callbacks(recorder).fit(BINARY)
    assert recorder.count("end", "pass") == 2


def test_callbacks_of_a_search_hear_of_all_its_fits(recorder):
    search = GridSearchCV(BernoulliRBM(n_iter=3, random_state=0), {"n_components": [2, 3]}, cv=2)
    search.set_callbacks(recorder).fit(BINARY)
    assert recorder.count("end", "pass") == 3 * (2 * 2 + 1)
    assert [heard[0] for heard in recorder.heard].count("setup") == 1
    assert not hasattr(search.best_estimator_, "_parent_callback_ctx")


def test_a_fit_that_raises_tears_callbacks_down(recorder):
    model = BernoulliRBM(3, learning_rate=1e300, batch_size=100, random_state=0)
    model.set_callbacks(recorder)
    with pytest.raises(ValueError, match="diverged"):
        model.fit(BINARY)
    assert recorder.heard[-1] == ("teardown", "BernoulliRBM")
    assert not hasattr(model, "components_")
    assert not hasattr(model, "_callback_fit_ctx")


# -- lines
def test_rounds_say_value_error_and_time_left(capsys):
    ParallelTempering(n_ladders=4, n_sweeps=256, random_state=0, verbose=1).fit(RBM)
    lines = capsys.readouterr().out.splitlines()
    first, second, *_ = (line for line in lines if "] round " in line)  # a slow machine says more
    assert first.startswith("[ParallelTempering] round 1 of 5: log Z = ")
    assert " ± " in second
    assert " sweeps, about " in second
    assert second.endswith(" left")


def test_score_of_a_verbose_model_says_how_far_its_estimator_is(capsys):
    options = {"verbose": 1, "partition_estimator": AIS(20, 50), "random_state": 0}
    model = BernoulliRBM(4, n_iter=0, **options).fit(BINARY)
    model.score(BINARY)
    assert "[AIS] log Z = " in capsys.readouterr().out
    before = model.partition_estimator_
    model.set_params(verbose=0).score(BINARY)
    assert model.partition_estimator_ is before  # verbose is nothing that an estimate depends on


@pytest.fixture
def logger():
    logger = logging.getLogger("sklpf")
    before = logger.level, logger.propagate, logger.handlers[:]
    yield logger
    logger.setLevel(before[0])
    logger.propagate, logger.handlers[:] = before[1:]


def test_lines_go_to_logging_where_it_shows_them_and_are_printed_elsewhere(logger, capsys, caplog):
    def fit():
        AIS(2, 3, checks=False, verbose=1, random_state=0).fit(RBM)

    fit()  # by default levels below WARNING are not shown
    with caplog.at_level(logging.INFO, logger="sklpf"):
        fit()
    logger.propagate, logger.handlers[:] = False, []
    logger.setLevel(logging.INFO)
    fit()  # no handler: printed too
    logger.setLevel(logging.WARNING)
    fit()  # lost: the level was set
    printed = [line for line in capsys.readouterr().out.splitlines() if "log Z" in line]
    assert len(printed) == 2
    assert sum("log Z" in message for message in caplog.messages) == 1


class Broken(io.StringIO):
    """As of a pipe whose reader has gone."""

    def write(self, text):
        raise BrokenPipeError


@pytest.mark.parametrize("kind", ["broken", "none", "ascii"])
def test_a_stream_that_takes_no_line_ends_no_fit(kind, monkeypatch):
    ascii_stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    streams = {"broken": Broken(), "none": None, "ascii": ascii_stream}
    monkeypatch.setattr(sys, "stdout", streams[kind])
    model = LinearGenerativeModel(max_iter=2, verbose=1, random_state=0).fit(REAL)
    assert model.n_iter_ == 2
    if kind == "ascii":
        assert streams["ascii"].buffer.getvalue()


@pytest.mark.parametrize(
    "estimator",
    [AIS(20, 400, verbose=1, random_state=0), SMC(20, 400, 4, verbose=1, random_state=0)],
)
def test_runs_say_what_log_z_is_on_the_way_at_most_once_a_second(monkeypatch, capsys, estimator):
    """On a clock that goes on by 0.1 s whenever it is read. 5 standard errors: a false-alarm rate
    of 6e-7 at each level, were they normal; the seed is fixed.
    """
    seconds = [0.0]

    def clock():
        seconds[0] += 0.1
        return seconds[0]

    monkeypatch.setattr("sklpf._utils.context.clock", clock)
    path = GeometricPath(lambda x: np.log(3) - np.sum(x**2, axis=1), base=Gaussian([0.0, 0.0], 1.0))
    path.n_moves_per_segment = 10
    estimator.fit(path)
    said = [line for line in capsys.readouterr().out.splitlines() if " at inverse temp" in line]
    assert 2 <= len(said) <= seconds[0]
    for line in said:
        found = re.search(r"log Z = (.*) ± (.*) at inverse temperature (.*?),", line)
        assert found, line
        value, error, beta = map(float, found.groups())
        log_z = beta * np.log(6 * np.pi) - np.log(1 + beta)
        rounding = 0.005 * np.log(6 * np.pi)  # of beta, to two digits
        assert abs(value - log_z) < 5 * error + rounding


def test_rounds_of_a_second_run_and_stages_that_go_on_tell_no_speed(capsys):
    """A fit may run twice, and a run that was interrupted goes on with segments that are done."""
    progress = _context.Progress(AIS(verbose=1))
    with _context._as_current(progress):
        for n_sweeps in (800, 1600, 800):  # the third is of another run
            _context.round_done("round", 1.0, 0.1, n_sweeps, 100)
        _context.round_done("round", 1.0, 0.1, 800, 100)
        with _context.stage("sampling", 8) as task_done:
            task_done.reported_at -= 2
            task_done(0, lambda: "log Z = 1")
    lines = capsys.readouterr().out.splitlines()
    assert ["left" in line for line in lines] == [False, True, False, False, False]
    assert "log Z = 1, 0 done in" in lines[-1]


# -- rounds
WEIGHTS = np.random.default_rng(0).normal(size=(5, 6))
SMALL = BernoulliRBM.from_parameters(WEIGHTS, np.zeros(6), np.zeros(5))
QUARTIC = GeometricPath(
    lambda x: -np.sum(x**4, axis=1), grad=lambda x: -4 * x**3, base=Gaussian(np.zeros(3), 1.0)
)


@pytest.mark.parametrize(
    ("estimator", "target", "fewest"),
    [
        (ParallelTempering(n_ladders=4, n_sweeps=256, random_state=0), SMALL, 5),
        (ParallelTempering(n_ladders=4, n_sweeps=2048, tol=0.1, random_state=0), SMALL, 2),
        (RTS(n_temperatures=10, n_sweeps=400, random_state=0), SMALL, 3),
        (RTS(n_temperatures=10, n_sweeps=200, tol=0.02, random_state=0), SMALL, 3),
        (RTS(n_temperatures=10, n_sweeps=160, continuous=True, random_state=0), QUARTIC, 3),
        (SAMS(n_temperatures=10, n_sweeps=500, random_state=0), SMALL, 3),
        (HAIS(n_temperatures=200, tol=0.1, random_state=0), QUARTIC, 2),
    ],
)
def test_the_last_round_is_the_result_and_earlier_ones_agree_with_it(estimator, target, fewest):
    result = estimator.fit(target).result_
    names = (f"round_{name}" for name in ("log_partition", "std_error", "sweeps"))
    values, errors, sweeps = (result.diagnostics[name] for name in names)
    assert len(values) == len(errors) == len(sweeps) >= fewest
    assert values[-1] == result.log_partition
    assert errors[-1] == result.std_error
    assert sweeps[-1] == result.n_sweeps
    assert np.all(np.diff(sweeps) > 0)
    assert np.all(np.isfinite(values))
    # at most 8 rounds, each within 6 joint errors, t with at least 3 degrees of freedom, plus what
    # short rounds lie off
    assert np.all(np.abs(values - values[-1]) <= 6 * np.hypot(errors, errors[-1]) + 0.1)


@pytest.mark.parametrize("is_watched", [True, False])
def test_slow_scores_say_how_far_they_are_to_those_who_watch(is_watched, monkeypatch, capfd):
    """And nothing to files and pipes, nor when an estimator is fitted that nobody asked to."""
    monkeypatch.setattr(_context, "_PATIENCE", 0.0)
    monkeypatch.setattr(_context, "is_watched", lambda: is_watched)
    rows = (RNG.random((80, 6)) < 0.5).astype(float)
    model = rbm_of_rounds()
    values = model.score_samples(rows)
    printed = capfd.readouterr().err
    assert ("[ParallelTempering] round" in printed) == is_watched
    model.partition_estimator_.fit(model)
    assert not capfd.readouterr().err
    monkeypatch.undo()
    np.testing.assert_array_equal(rbm_of_rounds().score_samples(rows), values)
    assert not capfd.readouterr().err


def rbm_of_rounds():
    """A model whose log Z takes several rounds."""
    tempering = ParallelTempering(n_ladders=4, n_sweeps=256)
    return BernoulliRBM.from_parameters(
        *(RBM.components_, RBM.intercept_visible_, RBM.intercept_hidden_),
        random_state=0,
        partition_estimator=tempering,
    )
