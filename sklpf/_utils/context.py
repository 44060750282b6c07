"""Context of a fit: who listens to its progress, and what it may spend.

A fit that is `reporting` is the current one of its thread until it ends. The loops that it runs say
what they have done, by lines through `logging` where `verbose`, and by tasks for the callbacks of
scikit-learn; where nobody listens there is no current one, and they cost next to nothing. Tasks in
workers report nothing.

A user's functions spend from the budget of the context in which they are called, which tasks take
along, and the driver of blocks and segments looks at the clock. Where nothing is left `BudgetSpent`
ends what runs, and the fit returns the best of the runs that were noted until then.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import logging
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, NamedTuple, TextIO, TypeVar, cast

import numpy as np

from sklpf._utils.sklearn import AutoPropagatedCallback, with_callbacks
from sklpf._utils.tables import duration_text, with_error

# Scores that nobody asked to report: seconds after which they do, and by how much longer a silence
# is than the one before.
_PATIENCE = 10.0

_Method = TypeVar("_Method", bound=Callable[..., Any])
_CURRENT: ContextVar[Progress | None] = ContextVar("progress", default=None)
_FITS: list[Progress] = []  # of all threads: workers that compile belong to none
_OF_A_SCORE: ContextVar[bool] = ContextVar("score", default=False)
_COMPILER = {"seconds": 0.0}  # that it has worked in this process


def say(line: str) -> None:
    """Log a line that was asked for, at level INFO by the logger "sklpf"; print it where logging
    would not show it.

    A level that was set for this logger is respected.
    """
    logger = logging.getLogger("sklpf")
    if logger.hasHandlers() and logger.isEnabledFor(logging.INFO):
        logger.info(line)
    elif logger.level <= logging.INFO:
        put(line, sys.stdout)


def put(line: str, stream: TextIO) -> None:
    """Print a line, which must not end a fit: a stream that is closed or broken loses it, and one
    that lacks a character gets its code.
    """
    encoding = getattr(stream, "encoding", None) or "utf-8"
    with contextlib.suppress(Exception):
        stream.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        stream.flush()


def is_watched() -> bool:
    """True if somebody sits in front: standard error is a terminal, or a notebook shows it."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None and "ZMQ" in type(shell).__name__:
        return True
    with contextlib.suppress(Exception):  # a stream may be closed or lack the method
        return bool(sys.stderr.isatty())
    return False


@contextlib.contextmanager
def holding(variable: ContextVar[Any], value: object) -> Iterator[None]:
    """Give a variable of the context a value within."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def of_a_score() -> AbstractContextManager[None]:
    """Let fits within, which a score needs, say how far they are on standard error if they take
    longer than ten seconds and somebody watches.
    """
    return holding(_OF_A_SCORE, True)


def clock() -> float:
    """Seconds of a clock that stands still while kernels are compiled, which happens once."""
    return time.perf_counter() - _COMPILER["seconds"]


def compiler_begins(line: str) -> bool:
    """Let the fit with `verbose` that began last say that it waits for the compiler; returns
    whether there is one.
    """
    verbose = [fit for fit in _FITS if fit.verbose]
    for fit in verbose[-1:]:
        fit.say_once(line)
    return bool(verbose)


def compiler_worked(seconds: float) -> None:
    """Take the compiler's time off the clock."""
    _COMPILER["seconds"] += seconds


def reporting(fit: _Method) -> _Method:
    """Let a method ``fit(X, y=None)`` report to those who listen to its estimator."""

    @functools.wraps(fit)
    def reported(self, *args, **kwargs):
        verbose = getattr(self, "verbose", 0)
        if np.ndim(verbose):  # refused by the fit's own validation
            verbose = 0
        slowly = _OF_A_SCORE.get() and is_watched()
        if getattr(self, "_skl_callbacks", None) or verbose or slowly:
            return _reported(self, fit, args, kwargs)
        with _as_current(None):
            return fit(self, *args, **kwargs)

    return cast(_Method, reported)


@with_callbacks
def _reported(estimator, fit, args, kwargs):
    progress = Progress(estimator, *args, **kwargs)
    _FITS.append(progress)
    try:
        with _as_current(progress):
            fitted = fit(estimator, *args, **kwargs)
            progress.close()
    finally:
        _FITS.remove(progress)
    return fitted


def _as_current(progress: Progress | None) -> AbstractContextManager[None]:
    return holding(_CURRENT, progress)


@contextlib.contextmanager
def passes(n_passes: int) -> Iterator[Progress | None]:
    """The current fit, made of at most so many tasks; None if nobody listens. What runs within
    reports nothing.
    """
    progress = _CURRENT.get()
    with _as_current(None):
        if progress is not None:
            progress.begin_fit(n_passes)
        yield progress


@contextlib.contextmanager
def stage(name: str, n_tasks: int | None) -> Iterator[Stage]:
    """A part of the current fit with so many tasks, None if nobody knows how many.

    Gives a function to call when a task, or some, are done, with words about what they arrived at,
    and `store` as `Progress.end` takes it. What runs within reports nothing. A budget that is spent
    within says how much more the stage would have taken.
    """
    part = Stage(_CURRENT.get(), name, n_tasks)
    try:
        with _as_current(None):
            yield part
    except BudgetSpent as spent:
        part.explain(spent)
        raise
    if part.progress is not None:
        part.progress.end()


def report(line: Callable[[], str], if_slow: bool = False) -> None:
    """Say a line of the current fit as `Progress.say`; it is made only if somebody listens."""
    progress = _CURRENT.get()
    if progress is not None:
        progress.say(", ".join(filter(None, (line(), _spent()))), if_slow)


def _spent() -> str:
    """Spent part of the budget of all that runs."""
    budget = current_budget()
    return "" if budget is None else budget.spent()


def round_done(
    name: str, log_partition: float, std_error: float, n_sweeps: float, n_left: float
) -> None:
    """Say what the estimate is after a round of the current fit, and how long so many more sweeps
    may take. The first round tells no speed: what goes before it takes time as well.
    """
    progress = _CURRENT.get()
    if progress is None:
        return
    now = clock()
    left = ""
    sweeps_before, then = progress.last_round
    if n_left > 0 and 0 < sweeps_before < n_sweeps:  # else these are rounds of another run
        seconds = n_left * (now - then) / (n_sweeps - sweeps_before)
        left = f", about {duration_text(seconds)} left"
    progress.last_round = n_sweeps, now
    estimate = with_error(log_partition, std_error)
    report(lambda: f"{name}: log Z = {estimate} after {n_sweeps:,} sweeps{left}", if_slow=True)


def hand_on(model: Any, estimator: Any) -> None:
    """Let callbacks that listen to a model and all that it runs also listen to an estimator that it
    runs.
    """
    own = getattr(estimator, "_skl_callbacks", [])
    callbacks = [
        callback
        for callback in getattr(model, "_skl_callbacks", ())
        if isinstance(callback, AutoPropagatedCallback)
        and callback.max_propagation_depth != 0
        and callback not in own
    ]
    if callbacks:
        estimator.set_callbacks(*own, *callbacks)


class Progress:
    """The tasks of a fit, and who listens to it.

    Parameters
    ----------
    estimator : estimator
        Its `verbose` and its callbacks say who listens.
    X, y : what it is fitted to
    """

    def __init__(self, estimator: Any, X: object = None, y: object = None, **ignored: object):
        self.estimator = estimator
        self.verbose = bool(getattr(estimator, "verbose", 0))
        self._arguments = {"estimator": estimator, "X": X, "y": y}
        self._has_callbacks = bool(getattr(estimator, "_skl_callbacks", None))
        self._open: list[Any] = []  # contexts of scikit-learn, the whole fit's first
        self.last_round = (0.0, 0.0)  # its sweeps and time
        self._is_of_a_score = _OF_A_SCORE.get() and is_watched()
        self._began = clock()
        self._next_line = _PATIENCE  # seconds after that
        self._said_once: set[str] = set()

    # -- tasks
    def begin(self, name: str, n_tasks: int | None) -> None:
        """Begin a task with so many tasks within, None if nobody knows how many; the first one
        within the fit.
        """
        if self._has_callbacks:
            self.begin_fit(None)
            self._push(self._open[-1].subcontext(task_name=name, max_subtasks=n_tasks))

    def begin_fit(self, n_tasks: int | None) -> None:
        """Begin the fit itself unless it has begun, with so many tasks."""
        if self._has_callbacks and not self._open:
            self._push(self.estimator._init_callback_context(max_subtasks=n_tasks))

    def end(self, store: Callable[[Any], Any] | None = None) -> bool:
        """End the task that began last; returns whether a callback asks to stop.

        Callbacks that want the model as if the fit had ended here get a copy, to which
        ``store(model)`` writes what was learned.
        """
        if not self._has_callbacks:
            return False
        learned = None if store is None else functools.partial(_learned, self.estimator, store)
        context = self._open.pop()
        return bool(
            context.call_on_fit_task_end(**self._arguments, reconstruction_attributes=learned)
        )

    def close(self) -> None:
        """End the fit."""
        self.begin_fit(0)
        self.end()

    def _push(self, context) -> None:
        self._open.append(context.call_on_fit_task_begin(**self._arguments))

    # -- lines
    def say(
        self,
        text: str,
        if_slow: bool = False,
        *,
        growth: float = 1.5,  # of the time between two lines
    ) -> None:
        """Say a line where `verbose`; one that says how far it is also where a score takes long."""
        line = f"[{type(self.estimator).__name__}] {text}"
        if self.verbose:
            say(line)
        elif if_slow and self.is_slow():
            self._next_line = growth * (clock() - self._began)
            put(line, sys.stderr)

    def is_slow(self) -> bool:
        """True if a score that nobody asked to report should say how far it is."""
        return self._is_of_a_score and clock() - self._began > self._next_line

    def say_once(self, text: str) -> None:
        """Say a line unless this fit has said it."""
        if text not in self._said_once:
            self._said_once.add(text)
            self.say(text)


def _learned(estimator: Any, store: Callable[[Any], Any]) -> dict[str, Any]:
    """The fitted attributes after `store`, in arrays of their own: training goes on with its."""
    model = copy.copy(estimator)
    store(model)
    others = model.get_params(deep=False)
    return copy.deepcopy(
        {k: v for k, v in vars(model).items() if k not in others and "callback" not in k}
    )


class Stage:
    """Counts the tasks of a stage that are done."""

    def __init__(self, progress: Progress | None, name: str, n_tasks: int | None):
        self.progress = progress
        self.name = name
        self.n_tasks = n_tasks
        self.n_done = 0
        self.began = self.reported_at = clock()
        self.budget = current_budget()
        self.n_before = 0 if self.budget is None else self.budget.n
        if progress is not None:
            progress.begin(name, n_tasks)

    def __call__(
        self,
        n: int = 1,
        words: str | Callable[[], str] = "",
        store: Callable[[Any], Any] | None = None,
        *,
        silence_with_news: float = 1.0,
    ) -> None:
        self.n_done += n
        if self.progress is None:
            return
        for _ in range(n):
            self.progress.begin(self.name, 0)
            self.progress.end(store)
        now = clock()
        silence = silence_with_news if callable(words) else 5.0
        is_due = self.progress.verbose and now - self.reported_at > silence
        if self.n_done != self.n_tasks and (is_due or self.progress.is_slow()):
            self.reported_at = now
            news = words() if callable(words) else words
            how_far = ", ".join(filter(None, (news, self._how_far(now - self.began), _spent())))
            self.progress.say(f"{self.name}: {how_far}", if_slow=True)

    @property
    def share(self) -> float:
        """Share of the tasks that are done; 0 where that is not known."""
        return self.n_done / self.n_tasks if self.n_tasks else 0.0

    def _how_far(self, seconds) -> str:
        if not self.share:
            return f"{self.n_done} done in {duration_text(seconds)}"
        left = duration_text(seconds * (1 / self.share - 1))
        return f"{self.share:.0%} done, about {left} left of it"

    def explain(self, spent: BudgetSpent) -> None:
        """Say of a budget how much more the stage would have taken, if that is known."""
        if self.budget is None or not self.share:
            return
        more = 1 / self.share - 1
        needed = duration_text(more * (clock() - self.began))
        if spent.parameter == "max_evaluations":
            needed = f"{more * (self.budget.n - self.n_before):,.0f}"
        spent.needed = f" by at least {needed}: {self.share:.0%} of {self.name!r} were done"


# -- budgets
class BudgetSpent(BaseException):
    """Nothing is left of a budget. No error of a user's function, which would be caught.

    Parameters
    ----------
    spent : str
        What was spent, as in "20,000 evaluations".
    parameter : str
        The one that says how much there was.
    needed : str, default=""
        How much more the stage that was stopped would have taken, if that is known.

    Attributes
    ----------
    best : object
        The best that what was stopped had found; None where that is nothing.
    """

    def __init__(self, spent: str, parameter: str, needed: str = ""):
        super().__init__(spent, parameter, needed)
        self.spent = spent
        self.parameter = parameter
        self.needed = needed
        self.best: Any = None


class Budget:
    """Evaluations and seconds that are left.

    Parameters
    ----------
    max_evaluations : int or None
    max_seconds : float or None
        From now on.
    outer : Budget or None, default=None
        Of a fit that this one is a part of, which is spent too: no more is there than what is left
        of it.
    memory : Memory or None, default=None
        Values of the user's functions that are kept; None are those of the outer one.

    Attributes
    ----------
    n : int
        Evaluations so far, of values that were kept too.
    pace : float
        Seconds that an evaluation took last.
    """

    def __init__(
        self,
        max_evaluations: int | None,
        max_seconds: float | None,
        outer: Budget | None = None,
        memory: Any = None,
    ):
        self.n = 0
        self.outer = outer
        limits = {"max_evaluations": max_evaluations, "max_seconds": max_seconds}
        own = {name: math.inf if most is None else most for name, most in limits.items()}
        left = own if outer is None else dict(zip(own, (outer.left(), outer.seconds_left())))
        self.most, self.max_seconds = (min(own[name], left[name]) for name in own)
        self._is_outer = {name: left[name] <= own[name] for name in own}  # whose limit counts
        self.memory: Any = outer.memory if memory is None and outer is not None else memory
        self.pace = 0.0
        self._refused = False
        self.began = time.time()  # the same clock in all processes
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in vars(self).items() if name != "_lock"}
        return kept | {"memory": None}  # which stays here

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.Lock()

    @property
    def seconds(self) -> float:
        """Time since it began."""
        return time.time() - self.began

    @property
    def is_spent(self) -> bool:
        """True if nothing is left, or something was refused."""
        return self._refused or not min(self.left(), self.seconds_left())

    @property
    def share(self) -> float:
        """Share of it that is spent: of the evaluations, or of the seconds if that is more."""
        return max(self.n / self.most, self.seconds / self.max_seconds)

    def left(self) -> float:
        """Return how many evaluations are left, which may be infinite."""
        return max(self.most - self.n, 0)

    def seconds_left(self) -> float:
        """Return how many seconds are left, which may be infinite."""
        return max(self.max_seconds - self.seconds, 0.0)

    def affordable(self) -> float:
        """Return how many evaluations are left of these and of the time, which may be infinite."""
        return self.affords(1, self.pace)

    def affords(self, n: float, seconds: float) -> float:
        """Return how often n evaluations and so many seconds are left, which may be infinite."""
        of_evaluations = self.left() / n if n else math.inf
        return min(of_evaluations, self.seconds_left() / seconds if seconds else math.inf)

    def require(self, n: float, seconds: float) -> None:
        """Raise BudgetSpent if fewer than n evaluations, or so many seconds, are left."""
        if n > self.left():
            raise self._refusal("max_evaluations", f" by at least {n - self.left():,.0f}")
        if seconds > self.seconds_left():
            more = duration_text(seconds - self.seconds_left())
            raise self._refusal("max_seconds", f" by at least {more}")

    def spend(self, n: int) -> None:
        """Spend n evaluations, which are about to be made.

        Raises
        ------
        BudgetSpent
            If fewer are left, or no time is.
        """
        self.check(n)
        self.add(n)
        _HERE.n = evaluations_here() + n

    def add(self, n: int) -> None:
        """Count n evaluations that were made."""
        with self._lock:
            self.n += n
        if self.outer is not None:
            self.outer.add(n)

    def took(self, n: int, seconds: float) -> None:
        """Note how long n evaluations took, which says how many more are in time."""
        self.pace = seconds / max(n, 1)
        if self.outer is not None:
            self.outer.took(n, seconds)

    def check(self, n: int = 0) -> None:
        """Raise BudgetSpent if fewer than n evaluations are left, or no time is."""
        if self.n + n > self.most:
            raise self._refusal("max_evaluations")
        # Evaluations that begin in time may end a twentieth late.
        is_late = self.seconds + n * self.pace > 1.05 * self.max_seconds
        if is_late or self.seconds > self.max_seconds:
            raise self._refusal("max_seconds")

    def spent(self) -> str:
        """Return the evaluations of the whole fit so far, and how long the rest of them may take;
        empty where none were counted.
        """
        whole = self
        while whole.outer is not None:
            whole = whole.outer
        if not whole.n:
            return ""
        text = f"{whole.n:,} evaluations"
        left = whole.max_seconds - whole.seconds
        if whole.most < math.inf:
            text = f"{whole.n:,} of {whole.most:,} evaluations"
            left = min(left, (whole.most - whole.n) * whole.seconds / whole.n)
        return text if math.isinf(left) else f"{text}, at most {duration_text(max(left, 0))} left"

    def _refusal(self, parameter: str, needed: str = "") -> BudgetSpent:
        """The error that says what was spent, of the whole budget."""
        whole = self
        whole._refused = True
        while whole.outer is not None and whole._is_outer[parameter]:
            whole = whole.outer
            whole._refused = True
        counts = parameter == "max_evaluations"
        spent = f"{whole.n:,} evaluations" if counts else duration_text(whole.seconds)
        return BudgetSpent(spent, parameter, needed)

    def arrived(self, n: int, process: int) -> None:
        """Count what a task has evaluated in another process, and look at the clock."""
        if process != os.getpid():
            self.add(n)
        self.check()


_HERE = threading.local()  # n: evaluations in this thread, of all budgets
_BUDGET: ContextVar[Budget | None] = ContextVar("budget", default=None)
_NOTED: ContextVar[list[Any] | None] = ContextVar("noted", default=None)


def evaluations_here() -> int:
    """Return how many evaluations this thread has made that budgets count."""
    return getattr(_HERE, "n", 0)


def current_budget() -> Budget | None:
    """Return the budget of the fit that runs in this context."""
    return _BUDGET.get()


def spending(budget: Budget | None) -> AbstractContextManager[None]:
    """Make a budget the current one of this context."""
    return holding(_BUDGET, budget)


@contextlib.contextmanager
def within(budget: Budget | None) -> Iterator[list[Any]]:
    """Make a budget the current one of a fit, which gives the runs that are noted in it."""
    noted: list[Any] = []
    with holding(_NOTED, noted), spending(budget):
        yield noted


class OnTheWay(NamedTuple):
    """Estimate by particles on their way from the base, with their weights at the target."""

    beta: float
    log_ratio: float  # estimate of log Z / Z_0, in nats


def note(found: object) -> None:
    """Keep the best so far, for the case that the budget is spent before the fit is over: a run, or
    an `OnTheWay` until there is one.
    """
    noted = _NOTED.get()
    if noted is None:
        return
    has_run = noted and not isinstance(noted[0], OnTheWay)
    if not has_run or not isinstance(found, OnTheWay):
        noted[:] = [found]
