"""The stage between sampling and reading: checks find what a run can't show itself.

A check is a file with a `Finding`, whose ``collect(work)`` looks and whose ``judge(run, result)``
says what follows. Findings are kept in the run, so that `judge` is a pure function of it.

===========  ====================================================================
check        applies to
===========  ====================================================================
tails        densities on R^d, before they are sampled
bound        paths with `bound_draws`
missed_mass  paths with `regions`, of runs that keep draws
===========  ====================================================================
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sklpf.partition.alarms import rounding_alarms
from sklpf.partition.checks._finding import Finding, Findings, Work
from sklpf.partition.checks.bound import Bound
from sklpf.partition.checks.missed_mass import MissedMass
from sklpf.partition.checks.tails import Tails
from sklpf.paths import has

if TYPE_CHECKING:
    from sklpf.partition._result import PartitionResult, Run

CHECKS: dict[str, type[Finding]] = {
    "bound": Bound,
    "missed_mass": MissedMass,
    "tails": Tails,
}


def collect(work: Work, known: Findings | None = None) -> dict[str, Finding]:
    """Return what all checks find that can look already.

    Parameters
    ----------
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
    for name, check in CHECKS.items():
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
