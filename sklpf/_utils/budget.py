"""Budgets: how often a fit may evaluate a user's function, and how long it may take.

A user's functions spend from the budget of the context in which they are called, which tasks take
along, and the driver of blocks and segments looks at the clock. Where nothing is left `BudgetSpent`
ends what runs, and the fit returns the best of the runs that were noted until then.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from sklpf._utils.tables import duration_text


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
        Of a fit that this one is a part of, which is spent too.
    memory : Memory or None, default=None
        Values of the user's functions that are kept; None are those of the outer one.

    Attributes
    ----------
    n : int
        Evaluations so far, of values that were kept too.
    """

    def __init__(
        self,
        max_evaluations: int | None,
        max_seconds: float | None,
        outer: Budget | None = None,
        memory: Any = None,
    ):
        self.n = 0
        self.most = math.inf if max_evaluations is None else max_evaluations
        self.max_seconds = math.inf if max_seconds is None else max_seconds
        self.outer = outer
        self.memory: Any = outer.memory if memory is None and outer is not None else memory
        self._pace = 0.0  # seconds that an evaluation took last
        self._refused = False
        self._is_rest = False  # of the outer one
        self.began = time.time()  # the same clock in all processes
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in vars(self).items() if name != "_lock"}
        return kept | {"memory": None}  # which stays here

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.Lock()

    @property
    def counts(self) -> bool:
        """True if evaluations are limited, and so have to be counted one by one."""
        return self.most < math.inf or (self.outer is not None and self.outer.counts)

    @classmethod
    def rest_of(cls, outer: Budget) -> Budget:
        """Return all that is left of a budget, as one of its own."""
        n = outer.left()
        seconds = outer.seconds_left()
        rest = cls(
            None if math.isinf(n) else int(n), None if math.isinf(seconds) else seconds, outer
        )
        rest._is_rest = True
        return rest

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
        here = max(self.most - self.n, 0)
        return here if self.outer is None else min(here, self.outer.left())

    def seconds_left(self) -> float:
        """Return how many seconds are left, which may be infinite."""
        here = max(self.max_seconds - self.seconds, 0.0)
        return here if self.outer is None else min(here, self.outer.seconds_left())

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
        self._pace = seconds / max(n, 1)
        if self.outer is not None:
            self.outer.took(n, seconds)

    def check(self, n: int = 0) -> None:
        """Raise BudgetSpent if fewer than n evaluations are left, or no time is."""
        if self.n + n > self.most:
            raise self._refusal("max_evaluations")
        # Evaluations that begin in time may end a twentieth late.
        is_late = self.seconds + n * self._pace > 1.05 * self.max_seconds
        if is_late or self.seconds > self.max_seconds:
            raise self._refusal("max_seconds")
        if self.outer is not None:
            self.outer.check(n)

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
        while whole.outer is not None and whole._is_rest:
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
_CURRENT: ContextVar[Budget | None] = ContextVar("budget", default=None)
_NOTED: ContextVar[list[Any] | None] = ContextVar("noted", default=None)


def evaluations_here() -> int:
    """Return how many evaluations this thread has made that budgets count."""
    return getattr(_HERE, "n", 0)


def current_budget() -> Budget | None:
    """Return the budget of the fit that runs in this context."""
    return _CURRENT.get()


@contextlib.contextmanager
def spending(budget: Budget | None) -> Iterator[None]:
    """Make a budget the current one of this context."""
    token = _CURRENT.set(budget)
    try:
        yield
    finally:
        _CURRENT.reset(token)


@contextlib.contextmanager
def within(budget: Budget | None) -> Iterator[list[Any]]:
    """Make a budget the current one of a fit, which gives the runs that are noted in it."""
    noted: list[Any] = []
    token = _NOTED.set(noted)
    try:
        with spending(budget):
            yield noted
    finally:
        _NOTED.reset(token)


def note(run: object) -> None:
    """Keep a run, the best so far, for the case that the budget is spent before the fit is over."""
    noted = _NOTED.get()
    if noted is not None:
        noted[:] = [run]


class Stage:
    """A part of a fit of which a share is done."""

    share = 0.0


@contextlib.contextmanager
def in_stage(name: str) -> Iterator[Stage]:
    """Let a budget that is spent within say how much more the stage would have taken.

    Parameters
    ----------
    name : str

    Yields
    ------
    Stage
        Whose share follows what is done.
    """
    stage = Stage()
    budget = current_budget()
    began = time.time()
    n_before = budget.n if budget is not None else 0
    try:
        yield stage
    except BudgetSpent as spent:
        if budget is None or not stage.share:
            raise
        more = 1 / stage.share - 1
        needed = duration_text(more * (time.time() - began))
        if spent.parameter == "max_evaluations":
            needed = f"{more * (budget.n - n_before):,.0f}"
        needed = f" by at least {needed}: {stage.share:.0%} of {name!r} were done"
        raise BudgetSpent(spent.spent, spent.parameter, needed) from None
