"""What a check is: its input, and its finding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from sklpf._utils.random import Stream, seeded
from sklpf._utils.warnings import Alarm
from sklpf.transitions import Transition

if TYPE_CHECKING:
    from sklpf.partition._result import PartitionResult, Run


class Work(NamedTuple):
    """Input of a check.

    Attributes
    ----------
    path : Path
    seed : int
        Of the run: a check takes a stream of its own name.
    run : Run or None
        None before chains are run.
    move : Transition or None
        The tuned move of reverse chains, where weights of independent chains are what is read.
    n_jobs : int or None
    """

    path: Any
    seed: int
    run: Any = None
    move: Transition | None = None
    n_jobs: int | None = None

    def stream(self, name: str) -> Stream:
        """Random stream of this name."""
        return seeded(self.seed).of(name)


Judgement = tuple[Sequence[Alarm], dict[str, Any]]  # alarms, and numbers for the diagnostics


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Finding of a check: arrays and numbers, and their cost.

    A check extends it. `requires` names the optional methods of paths without which it does not
    apply; `needs_run` is False if it looks before chains are run.

    Attributes
    ----------
    alarms : tuple of Alarm
        Those that depend on no result.
    n_evaluations : int
        How often the check asked for the log density, or its gradient, at a point, and sweeps of
        its chains.
    n_failed : int
        Points at which the density raised an error then.
    """

    requires: ClassVar[tuple[str, ...]] = ()
    needs_run: ClassVar[bool] = True

    alarms: tuple[Alarm, ...] = ()
    n_evaluations: int = 0
    n_failed: int = 0

    @classmethod
    def collect(cls, work: Work) -> Self | None:
        """Return what is found; None where the check does not apply."""
        return None

    def judge(self, run: Run, result: PartitionResult) -> Judgement:
        """Return what this says of a run and of the result that the run shows by itself."""
        return self.alarms, {}


Findings = Mapping[str, Finding]  # by the names of checks
