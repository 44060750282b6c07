"""Estimators of the log partition function."""

from sklpf.partition._ais import AIS
from sklpf.partition._base import PartitionEstimator
from sklpf.partition._exact import Exact
from sklpf.partition._parallel_tempering import ParallelTempering
from sklpf.partition._result import PartitionResult

__all__ = ["AIS", "Exact", "ParallelTempering", "PartitionEstimator", "PartitionResult"]
