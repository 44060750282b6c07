"""Alarms and numbers that a run shows by itself: of its weights, its moves, and its states at the
target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sklpf._utils.warnings import Alarm
from sklpf.partition.alarms import raised, threshold
from sklpf.programs import Draws
from sklpf.uncertainty import MOST_BETWEEN, Difference, effective_sample_size, pareto_shape

if TYPE_CHECKING:
    from sklpf.partition.populations import PopulationRun
    from sklpf.partition.weights import AnnealingRun


def modes_alarms(
    parts: str, share: float, family: str = "", most: float = MOST_BETWEEN, again: str = ""
) -> list[Alarm]:
    """An alarm if a larger share of the variance of the states at the target than `most` lies
    between the parts; `again` says when they did before.
    """
    if share <= most:
        return []
    if np.isnan(share):
        return [raised("few-states", "target", family, parts=parts)]
    return [raised("not-mixed", "states", family, parts=parts, share=share, again=again)]


def halves_alarms(drift: Difference, n_groups: int) -> list[Alarm]:
    """An alarm if the halves of the last round differ by more than chance."""
    if not drift.alarms(n_groups):
        return []
    return [raised("not-stationary", "last round", t=drift.t)]


def single_state_alarms(draws: Draws | None, std_error: float) -> list[Alarm]:
    """An alarm if few draws are all of them one state, and have one weight."""
    if draws is None or std_error > threshold("few-states", "std_error_of_one_state"):
        return []
    if len(draws.points) >= threshold("few-states", "draws_of_one_state"):
        return []
    if len(draws.points) < 2 or np.any(draws.points != draws.points[0]):
        return []
    return [raised("few-states", "one state", "one state", n=len(draws.points))]


def rounding_alarms(log_partition: float, rounding: float = 0.0) -> tuple[Alarm, ...]:
    """An alarm if log f is rounded by too many nats: by as many as its path says, and at least by
    as many as a number of the size of log Z.
    """
    if np.isfinite(log_partition):
        rounding = max(rounding, float(np.spacing(abs(log_partition))))
    if rounding <= threshold("rounding", "nats"):
        return ()
    return (raised("rounding", "log f", rounding=rounding),)


def misses_tol(std_error: float, tol: float | None) -> bool:
    """Return whether the standard error is above `tol` by more than its own noise."""
    return tol is not None and bool(std_error > threshold("tol-missed", "noise") * tol)


def tol_alarms(std_error: float, tol: float | None, family: str = "") -> list[Alarm]:
    """An alarm if the standard error is above `tol` by more than its own noise."""
    if not misses_tol(std_error, tol):
        return []
    return [raised("tol-missed", "error", family, error=std_error)]


def weight_diagnostics(log_weights) -> dict[str, Any]:
    """The log weights (n,), their effective sample size and the shape of their tail."""
    return {
        "log_weights": log_weights,
        "effective_sample_size": effective_sample_size(log_weights),
        "pareto_shape": pareto_shape(log_weights),
    }


def weight_alarms(n: int, diagnostics: dict[str, Any], family: str) -> list[Alarm]:
    """An alarm if the effective sample size of n weights is too small, by themselves or by the
    reverse chains.
    """
    here = diagnostics["effective_sample_size"]
    there = diagnostics.get("effective_sample_size_from_target", n)
    needed = enough_effective(n)
    if here < needed:
        return [raised("few-effective", "weights", family, here=here, n=n, needed=needed)]
    if there < needed:
        return [
            raised("few-effective", "weights from target", family, there=there, n=n, needed=needed)
        ]
    return []


def enough_effective(n: int) -> float:
    """The smallest effective sample size of n weights that is enough."""
    enough = min(threshold("few-effective", "enough"), n / 4)
    return max(threshold("few-effective", "fewest"), enough)


def move_diagnostics(run: AnnealingRun | PopulationRun) -> dict[str, Any]:
    """Acceptance and step sizes by level, shape (K,), of an `AnnealingRun` or a `PopulationRun`
    whose moves have them; the base's acceptance is NaN.
    """
    found = {}
    if run.acceptance is not None:
        found["acceptance"] = np.append(np.nan, run.acceptance)
    if run.pilot is not None:
        found["step_sizes"] = run.pilot.step(run.ladder)
    return found
