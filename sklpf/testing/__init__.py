"""Checks of your own paths, transitions and estimators."""

from sklpf.testing._checks import (
    Problem,
    check_parallel,
    check_partition_estimator,
    check_path,
    check_transition,
)
from sklpf.testing._data import find_shared_data

__all__ = [
    "Problem",
    "check_parallel",
    "check_partition_estimator",
    "check_path",
    "check_transition",
    "find_shared_data",
]
