"""Alarms and numbers that a run shows by itself: of its weights, its moves, and its states at the
target.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sklpf._utils.warnings import Alarm
from sklpf.programs import Draws
from sklpf.uncertainty import MOST_BETWEEN, Difference, effective_sample_size, pareto_shape

# If so few draws are one state they can't show that others have no mass, whose share may be 3 / n.
_FEW_DRAWS = 60
_NO_ERROR = 1e-3  # nats
_TOL_NOISE = 1.1  # by which a standard error of about a hundred chains is itself uncertain
# the effective sample size must be n / 4, within these bounds
_FEWEST_EFFECTIVE = 5
_ENOUGH_EFFECTIVE = 25.0


def modes_alarms(parts: str, share: float, remedy: str, most: float = MOST_BETWEEN) -> list[Alarm]:
    """An alarm if a larger share of the variance of the states at the target than `most` lies
    between the parts.
    """
    if share <= most:
        return []
    if np.isnan(share):
        seen = f"{parts} have too few states at the target to compare"
        return [Alarm("too-few-target-states", seen, remedy)]
    seen = (
        f"{parts} differ in their states at the target ({share:.0%} of the variance lies between"
        " them): they have not mixed, or sit in different modes"
    )
    return [Alarm("different-modes", seen, remedy)]


def halves_alarms(drift: Difference, n_groups: int) -> list[Alarm]:
    """An alarm if the halves of the last round differ by more than chance."""
    if not drift.alarms(n_groups):
        return []
    seen = f"the halves of the last round disagree (t = {drift.t:.1f})"
    return [Alarm("halves-disagree", seen, "raise n_sweeps")]


def single_state_alarms(draws: Draws | None, std_error: float) -> list[Alarm]:
    """An alarm if few draws are all of them one state, and have one weight."""
    if draws is None or len(draws.points) >= _FEW_DRAWS or std_error > _NO_ERROR:
        return []
    if len(draws.points) < 2 or np.any(draws.points != draws.points[0]):
        return []
    seen = f"all {len(draws.points)} draws are the same state, so that the error is not known"
    return [Alarm("single-state", seen, "raise n_chains, n_particles or n_sweeps")]


def tol_alarms(std_error: float, tol: float | None, remedy: str, but: str = "") -> list[Alarm]:
    """An alarm if the standard error is above `tol` by more than its own noise, although `but`."""
    if tol is None or not std_error > _TOL_NOISE * tol:
        return []
    return [Alarm("tol-missed", f"the standard error {std_error:.2g}{but} is above tol", remedy)]


def weight_diagnostics(log_weights) -> dict[str, Any]:
    """The log weights (n,), their effective sample size and the shape of their tail."""
    return {
        "log_weights": log_weights,
        "effective_sample_size": effective_sample_size(log_weights),
        "pareto_shape": pareto_shape(log_weights),
    }


def weight_alarms(n: int, diagnostics: dict[str, Any], remedy: str) -> list[Alarm]:
    """An alarm if the effective sample size of n weights is too small, by themselves or by the
    reverse chains.
    """
    here = diagnostics["effective_sample_size"]
    there = diagnostics.get("effective_sample_size_from_target", n)
    needed = enough_effective(n)
    if here < needed:
        seen = f"effective sample size {here:.1f} of {n} (at least {needed:g} needed)"
        return [Alarm("few-effective-weights", seen, remedy)]
    if there < needed:
        seen = (
            f"by the reverse chains the effective sample size is {there:.1f} of {n} (at least"
            f" {needed:g} needed)"
        )
        return [Alarm("few-effective-weights-from-target", seen, remedy)]
    return []


def enough_effective(n: int) -> float:
    """The smallest effective sample size of n weights that is enough."""
    return max(_FEWEST_EFFECTIVE, min(_ENOUGH_EFFECTIVE, n / 4))


def move_diagnostics(run: Any) -> dict[str, Any]:
    """Acceptance and step sizes by level, shape (K,), of an `AnnealingRun` or a `PopulationRun`
    whose moves have them; the base's acceptance is NaN.
    """
    found = {}
    if run.acceptance is not None:
        found["acceptance"] = np.append(np.nan, run.acceptance)
    if run.pilot is not None:
        found["step_sizes"] = run.pilot.step(run.ladder)
    return found
