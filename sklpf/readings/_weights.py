"""Importance weights: what they say about themselves, and the alarms of too few that count."""

from __future__ import annotations

from typing import Any

import numpy as np

from sklpf._alarm import Alarm
from sklpf.reweighting import effective_sample_size
from sklpf.runs import AnnealingRun, PopulationRun
from sklpf.uncertainty import pareto_shape

_FEWEST_EFFECTIVE, _ENOUGH_EFFECTIVE = 5, 25.0  # weights that must count: a quarter of them within these bounds


def weight_diagnostics(log_weights) -> dict[str, Any]:
    """The log weights (n,), their effective sample size and the shape of their tail."""
    return {
        "log_weights": log_weights,
        "effective_sample_size": effective_sample_size(log_weights),
        "pareto_shape": pareto_shape(log_weights),
    }


def weight_alarms(n: int, diagnostics: dict[str, Any], remedy: str) -> list[Alarm]:
    """An alarm if too few of n weights count, as they say themselves or as chains from the target say."""
    here = diagnostics["effective_sample_size"]
    there = diagnostics.get("effective_sample_size_from_target", n)
    needed = max(_FEWEST_EFFECTIVE, min(_ENOUGH_EFFECTIVE, n / 4))
    if here < needed:
        return [Alarm("few-effective-weights", f"only {here:.1f} of {n} weights count", remedy)]
    if there < needed:
        seen = f"chains that go back down from where they ended show that only {there:.1f} of {n} weights count"
        return [Alarm("few-effective-weights-from-target", seen, remedy)]
    return []


def move_diagnostics(run: AnnealingRun | PopulationRun) -> dict[str, Any]:
    """Acceptance and step sizes by level, shape (K,), of moves that have them; the base's acceptance is NaN."""
    found = {}
    if run.acceptance is not None:
        found["acceptance"] = np.append(np.nan, run.acceptance)
    if run.pilot is not None:
        found["step_sizes"] = run.pilot.step(run.ladder)
    return found
