"""Parts of a run that should agree: its halves, and independent chains that should sample one
distribution.
"""

from __future__ import annotations

import numpy as np

from sklpf._utils.alarm import Alarm
from sklpf.uncertainty import MOST_BETWEEN, Difference


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
