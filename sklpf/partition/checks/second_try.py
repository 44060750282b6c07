"""A second run, from a base that covers a region which the first one has missed.

It finds nothing in a run, but makes another one, so that nothing is collected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sklpf._utils.progress import report
from sklpf._utils.random import seeded
from sklpf.partition.alarms import raised
from sklpf.partition.checks._finding import Finding, Judgement
from sklpf.partition.checks.missed_mass import regions_to_cover
from sklpf.paths import Path, has

if TYPE_CHECKING:
    from sklpf.partition._base import PartitionEstimator
    from sklpf.partition._result import PartitionResult, Run


@dataclass(frozen=True, kw_only=True)
class SecondTry(Finding):
    """There were several runs; this is one of them, and these are the evaluations of the others.

    Attributes
    ----------
    first_log_partition : float or None
        log Z of the first one, in nats, where this is a later one.
    """

    first_log_partition: float | None = None

    def judge(self, run: Run, result: PartitionResult) -> Judgement:
        first = self.first_log_partition
        return self.alarms, {} if first is None else {"first_try": first}


def run_and_cover(estimator: PartitionEstimator, path: Path, seed: int) -> tuple[Any, Any]:
    """Return a run of an estimator and its result: of a second try where the first one has missed
    a region and the base is not the user's, unless none can be trusted and the first one's standard
    error is smaller.
    """
    first = estimator._run(path, seed)
    result = estimator._read(first)
    attempts = regions_to_cover(path, first, result)
    if not attempts:
        return first, result
    report(lambda: f"{result._line()}; a second try, from a base that covers it")

    runs = [first]
    best = 0
    lowest = result.std_error
    sentence = "second try"
    seen: dict[str, Any] = {}
    for regions in attempts:
        seed = seeded(seed).of("second try").seed  # each run has its own
        try:
            runs.append(estimator._run(path.with_regions(regions), seed))
            run = _one_of(runs, -1, first_log_partition=result.log_partition)
            again = estimator._read(run)
        except Exception as error:  # the numbers before, which took as long, are kept
            sentence = "second try failed"
            seen = {"error": error}
            break
        if again.converged:
            return run, again
        seen = {"again": _number(again), "first": _number(result)}
        if again.std_error < lowest:
            best = len(runs) - 1
            lowest = again.std_error

    other = "SMC" if first.method == "ParallelTempering" else "ParallelTempering"
    base = "draws of the posterior" if has(path, "constrain") else "a base that covers it"
    alarm = raised("missed-region", sentence, "second try", other=other, base=base, **seen)
    first_log_partition = result.log_partition if best else None
    run = _one_of(runs, best, first_log_partition=first_log_partition, alarms=(alarm,))
    return run, estimator._read(run)


def _one_of(runs: Sequence[Any], place: int, **found: Any) -> Any:
    """Return one of the runs, with the cost of all."""
    run = runs[place]
    others = [each for each in runs if each is not run]
    theirs = [finding for each in others for finding in each.findings.values()]
    second_try = SecondTry(
        n_evaluations=sum(finding.n_evaluations for finding in theirs),
        n_failed=sum(finding.n_failed for finding in theirs),
        **found,
    )
    return replace(
        run,
        sweeps=run.sweeps | {"other tries": sum(each.n_sweeps for each in others)},
        findings={**run.findings, "second_try": second_try},
    )


def _number(result: PartitionResult) -> str:
    return f"{result.log_partition:.2f} +- {result.std_error:.2g}"
