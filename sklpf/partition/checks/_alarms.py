"""Alarms that several readings raise: parts of a run that disagree, draws without spread, rounding,
and an error above `tol`.
"""

from __future__ import annotations

import numpy as np

from sklpf._utils.alarm import Alarm
from sklpf.programs import Draws
from sklpf.uncertainty import MOST_BETWEEN, Difference

_MOST_ROUNDING = 0.05  # nats
# If so few draws are one state they can't show that others have no mass, whose share may be 3 / n.
_FEW_DRAWS = 60
_NO_ERROR = 1e-3  # nats


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
    """An alarm if the standard error is above `tol`, although `but`."""
    if tol is None or not std_error > tol:
        return []
    return [Alarm("tol-missed", f"the standard error {std_error:.2g}{but} is above tol", remedy)]
