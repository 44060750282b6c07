"""Alarms that several readings raise: parts of a run that disagree, a lower bound of log Z above
the estimate, draws without spread, rounding, and an error above `tol`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.alarm import Alarm
from sklpf._utils.random import Stream
from sklpf.paths import BoundDraws
from sklpf.paths._capabilities import has
from sklpf.programs import Draws
from sklpf.uncertainty import MOST_BETWEEN, Difference, log_mean_exp

_MATERIAL = 0.05  # nats by which the bound must be above the estimate
# a false alarm in at most 0.13 % of the runs, 0.75 % if both errors come from ten groups
_STD_ERRORS = 3.0
_MOST_ROUNDING = 0.05  # nats
# If so few draws are one state they can't show that others have no mass, whose share may be 3 / n.
_FEW_DRAWS = 60
_NO_ERROR = 1e-3  # nats
_TOL_NOISE = 1.1  # by which a standard error of about a hundred chains is itself uncertain


def modes_alarms(parts: str, share: float, remedy: str, most: float = MOST_BETWEEN) -> list[Alarm]:
    """An alarm if a larger share of the variance of the states at the target than `most` lies
    between the parts.
    """
    if share <= most:
        return []
    if np.isnan(share):
        return [
            Alarm(
                "too-few-target-states",
                f"{parts} have too few states at the target to compare",
                remedy,
            )
        ]
    seen = (
        f"{parts} differ in their states at the target ({share:.0%} of the variance lies between"
        " them), so they sit in different modes"
    )
    return [Alarm("different-modes", seen, remedy)]


def halves_alarms(drift: Difference, n_groups: int) -> list[Alarm]:
    """An alarm if the halves of the last round differ by more than chance."""
    if not drift.alarms(n_groups):
        return []
    return [
        Alarm(
            "halves-disagree",
            f"the halves of the last round disagree (t = {drift.t:.1f})",
            "raise n_sweeps",
        )
    ]


def lower_bound(path: Any, key: tuple[int, int]) -> NDArray[np.float64] | None:
    """Logs of G independent estimates of Z (G,) whose mean is at most log Z; None where the path
    has none.
    """
    return log_mean_exp(path.bound_draws(Stream(key)), axis=1) if has(path, BoundDraws) else None


def bound_alarms(
    bound: NDArray | None, log_partition: float, std_error: float, diagnostics: dict
) -> list[Alarm]:
    """An alarm if log Z is below the bound by more than chance; the bound goes to the diagnostics.

    Each estimate has the expectation Z, so that the expectation of its log is at most log Z,
    whatever its draws miss.
    """
    if bound is None:
        return []
    mean = float(bound.mean())
    error = float(bound.std(ddof=1) / np.sqrt(len(bound)))
    diagnostics.update(plain_bound=mean, plain_bound_std_error=error)
    # also a NaN
    if not mean - log_partition > max(_MATERIAL, _STD_ERRORS * float(np.hypot(error, std_error))):
        return []
    seen = f"chains from random starts show that log Z is at least {mean:.2f} +- {error:.2f}"
    return [
        Alarm(
            "below-the-bound",
            seen,
            "the base or the moves miss a part of the model; give another base",
        )
    ]


def single_state_alarms(draws: Draws | None, std_error: float) -> list[Alarm]:
    """An alarm if few draws are all of them one state, and have one weight."""
    if draws is None or len(draws.points) >= _FEW_DRAWS or std_error > _NO_ERROR:
        return []
    if len(draws.points) < 2 or np.any(draws.points != draws.points[0]):
        return []
    seen = f"all {len(draws.points)} draws are the same state, so that the error is not known"
    return [Alarm("single-state", seen, "raise n_chains or n_particles")]


def rounding_alarms(log_partition: float, rounding: float = 0.0) -> tuple[Alarm, ...]:
    """An alarm if log f is rounded by too many nats: by as many as its path says, and at least by
    as many as a number of the size of log Z.
    """
    if np.isfinite(log_partition):
        rounding = max(rounding, float(np.spacing(abs(log_partition))))
    if rounding <= _MOST_ROUNDING:
        return ()
    seen = f"parameters or a constant are so large that log_f is rounded by {rounding:.2g} nats"
    return (Alarm("rounding", seen, "rescale them, or take the constant off"),)


def tol_alarms(std_error: float, tol: float | None, remedy: str, but: str = "") -> list[Alarm]:
    """An alarm if the standard error is above `tol` by more than its own noise, although `but`."""
    if tol is None or not std_error > _TOL_NOISE * tol:
        return []
    return [Alarm("tol-missed", f"the standard error {std_error:.2g}{but} is above tol", remedy)]
