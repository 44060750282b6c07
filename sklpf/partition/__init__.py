"""Estimators of the log partition function."""

from sklpf.partition._adaptive_rejection import AdaptiveRejection
from sklpf.partition._ais import AIS
from sklpf.partition._bar import BAR
from sklpf.partition._base import PartitionEstimator
from sklpf.partition._bdmc import BDMC
from sklpf.partition._bridge_sampling import BridgeSampling
from sklpf.partition._compare_estimates import compare_estimates
from sklpf.partition._compare_evidence import (
    EvidenceComparison,
    ModelEvidence,
    compare_evidence,
)
from sklpf.partition._exact import Exact
from sklpf.partition._hais import HAIS
from sklpf.partition._importance_sampling import ImportanceSampling
from sklpf.partition._left_to_right import LeftToRight
from sklpf.partition._level_process import LevelProcess
from sklpf.partition._markov_mixture import MarkovMixture
from sklpf.partition._mbar import MBAR
from sklpf.partition._parallel_tempering import ParallelTempering
from sklpf.partition._raise import RAISE
from sklpf.partition._rejection import RejectionSampling
from sklpf.partition._rts import RTS
from sklpf.partition._sams import SAMS
from sklpf.partition._smc import SMC
from sklpf.partition._stepping_stone import SteppingStone
from sklpf.partition._thermodynamic_integration import ThermodynamicIntegration
from sklpf.partition._wang_landau import WangLandau
from sklpf.readings import Alarm, PartitionResult

__all__ = [
    "AIS",
    "AdaptiveRejection",
    "Alarm",
    "BAR",
    "BDMC",
    "BridgeSampling",
    "EvidenceComparison",
    "Exact",
    "HAIS",
    "ImportanceSampling",
    "LeftToRight",
    "LevelProcess",
    "MBAR",
    "MarkovMixture",
    "ModelEvidence",
    "ParallelTempering",
    "PartitionEstimator",
    "PartitionResult",
    "RAISE",
    "RTS",
    "RejectionSampling",
    "SAMS",
    "SMC",
    "SteppingStone",
    "ThermodynamicIntegration",
    "WangLandau",
    "compare_estimates",
    "compare_evidence",
]
