"""Input of a check, its finding, and the two steps of the stage: to collect, and to judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from sklpf._utils.random import Stream, seeded
from sklpf._utils.warnings import Alarm
from sklpf.partition.alarms import rounding_alarms
from sklpf.paths import has
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


def collect(
    checks: Mapping[str, type[Finding]], work: Work, known: Findings | None = None
) -> dict[str, Finding]:
    """Return what all checks find that can look already.

    Parameters
    ----------
    checks : mapping of str to type
        By their names.
    work : Work
    known : mapping of str to Finding or None, default=None
        By names of checks: what has been found, and is not looked for again.

    Returns
    -------
    dict of str to Finding
        With those that were known.

    Raises
    ------
    ValueError
        If the target has no integral.
    """
    findings = dict(known or {})
    for name, check in checks.items():
        can_look = work.run is not None or not check.needs_run
        if name in findings or not can_look or not has(work.path, *check.requires):
            continue
        finding = check.collect(work)
        if finding is not None:
            findings[name] = finding
    return findings


def judge(run: Run, result: PartitionResult) -> Any:
    """Return the result of a run with the alarms and the numbers of what was found.

    Parameters
    ----------
    run : Run
    result : PartitionResult
        What the run says by itself.

    Returns
    -------
    PartitionResult
    """
    alarms = list(result.alarms)
    diagnostics = dict(result.diagnostics)
    findings = run.findings or {}
    for finding in findings.values():
        raised, numbers = finding.judge(run, result)
        alarms += raised
        diagnostics |= numbers
    n_failed = sum(finding.n_failed for finding in findings.values())
    if n_failed:
        diagnostics["failed_evaluations"] = n_failed
    if run.base:
        diagnostics["base"] = run.base
    n_evaluations = sum(finding.n_evaluations for finding in findings.values())
    alarms += [*run.earlier_alarms, *rounding_alarms(result.log_partition, run.log_f_rounding)]
    return replace(
        result,
        alarms=tuple(dict.fromkeys(alarms)),
        diagnostics=diagnostics,
        check_evaluations=None if run.findings is None else n_evaluations,
    )
