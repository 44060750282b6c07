"""The estimator that follows from what a path can do."""

from __future__ import annotations

from sklpf.partition._base import PartitionEstimator
from sklpf.partition.exact import Exact
from sklpf.partition.weights import LeftToRight
from sklpf.paths import Path, has


def default_estimator(path: Path) -> PartitionEstimator | None:
    """Return `Exact` where log Z has a closed form, `LeftToRight` where there are filters, `Exact`
    for at most 2^20 states, else the path's own `default_estimator`; None where nothing follows.
    """
    if has(path, "closed_log_partition"):
        return Exact()
    if has(path, "left_to_right"):
        return LeftToRight()
    if has(path, "enumerate_block") and path.log2_states <= 20:  # about a second
        return Exact()
    return path.default_estimator() if has(path, "default_estimator") else None
