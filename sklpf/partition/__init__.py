"""Estimators of the log partition function."""

from sklpf.partition._adaptive_rejection import AdaptiveRejection
from sklpf.partition._ais import AIS
from sklpf.partition._base import PartitionEstimator
from sklpf.partition._bdmc import BDMC
from sklpf.partition._exact import Exact
from sklpf.partition._hais import HAIS
from sklpf.partition._importance_sampling import ImportanceSampling
from sklpf.partition._left_to_right import LeftToRight
from sklpf.partition._markov_mixture import MarkovMixture
from sklpf.partition._parallel_tempering import ParallelTempering
from sklpf.partition._raise import RAISE
from sklpf.partition._rejection import RejectionSampling
from sklpf.partition._result import PartitionResult
from sklpf.partition._rts import RTS

__all__ = [
    "AIS",
    "BDMC",
    "HAIS",
    "RAISE",
    "RTS",
    "AdaptiveRejection",
    "Exact",
    "ImportanceSampling",
    "LeftToRight",
    "MarkovMixture",
    "ParallelTempering",
    "PartitionEstimator",
    "PartitionResult",
    "RejectionSampling",
]
