"""Importance weights: what they say about themselves, and the alarm of too small an effective
sample size.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sklpf._utils.alarm import Alarm
from sklpf.reweighting import effective_sample_size
from sklpf.uncertainty import pareto_shape

# the effective sample size must be n / 4, within these bounds
_FEWEST_EFFECTIVE = 5
_ENOUGH_EFFECTIVE = 25.0


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
    needed = max(_FEWEST_EFFECTIVE, min(_ENOUGH_EFFECTIVE, n / 4))
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
