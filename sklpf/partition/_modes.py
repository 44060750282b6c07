"""Whether independent parts of a run, which should sample one distribution, sit in different modes of it."""

from __future__ import annotations

import numpy as np

from sklpf.uncertainty import MOST_BETWEEN


def modes_alarms(parts: str, share: float, fix: str, most: float = MOST_BETWEEN) -> list[str]:
    """A sentence if a larger share of the variance of the states at the target than `most` lies between the parts."""
    if share <= most:
        return []
    if np.isnan(share):
        return [f"{parts} have too few states at the target to compare: {fix}"]
    return [
        f"{parts} differ in their states at the target ({share:.0%} of the variance lies between them), so they sit in "
        f"different modes: {fix}"
    ]
