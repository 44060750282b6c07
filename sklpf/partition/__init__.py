"""Estimators of the log partition function."""

from sklpf.partition._ais import AIS
from sklpf.partition._base import PartitionEstimator
from sklpf.partition._bdmc import BDMC
from sklpf.partition._exact import Exact
from sklpf.partition._hais import HAIS
from sklpf.partition._left_to_right import LeftToRight
from sklpf.partition._parallel_tempering import ParallelTempering
from sklpf.partition._raise import RAISE
from sklpf.partition._result import PartitionResult
from sklpf.partition._rts import RTS
from sklpf.partition._smc import SMC

__all__ = [
    "AIS",
    "BDMC",
    "HAIS",
    "RAISE",
    "RTS",
    "SMC",
    "Exact",
    "LeftToRight",
    "ParallelTempering",
    "PartitionEstimator",
    "PartitionResult",
]
