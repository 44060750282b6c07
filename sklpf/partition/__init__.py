"""Estimators of the log partition function."""

from sklpf._utils.warnings import Alarm
from sklpf.partition._adaptive import SAMS, WangLandau
from sklpf.partition._adaptive_rejection import AdaptiveRejection
from sklpf.partition._adaptive_smc import AdaptiveSMC, LearnedRun
from sklpf.partition._ais import AIS, HAIS, AnnealingRun
from sklpf.partition._base import PartitionEstimator
from sklpf.partition._bridge_sampling import BridgeSampling
from sklpf.partition._check_draws import DrawsReport, Finding, check_draws
from sklpf.partition._compare_evidence import (
    EvidenceComparison,
    ModelEvidence,
    compare_estimates,
    compare_evidence,
)
from sklpf.partition._diagnostics import Diagnostic
from sklpf.partition._exact import Exact
from sklpf.partition._independent import ImportanceSampling, RejectionSampling
from sklpf.partition._left_to_right import LeftToRight
from sklpf.partition._markov_mixture import MarkovMixture
from sklpf.partition._parallel_tempering import ExchangeRun, ParallelTempering
from sklpf.partition._pool import pool
from sklpf.partition._potential_run import PotentialRun
from sklpf.partition._result import LevelRun, PartitionResult, Run
from sklpf.partition._reverse import BDMC, RAISE
from sklpf.partition._reweighting import (
    BAR,
    MBAR,
    LevelProcess,
    SteppingStone,
    ThermodynamicIntegration,
)
from sklpf.partition._rts import RTS, ContinuousRun
from sklpf.partition._simulated_tempering import TemperingRun
from sklpf.partition._smc import SMC, PopulationRun
from sklpf.partition._until_trusted import UntilTrusted
from sklpf.partition.checks.missed_mass import CheckedMode
from sklpf.programs import Draws

__all__ = [
    "AIS",
    "AdaptiveRejection",
    "AdaptiveSMC",
    "Alarm",
    "AnnealingRun",
    "BAR",
    "BDMC",
    "BridgeSampling",
    "CheckedMode",
    "ContinuousRun",
    "Diagnostic",
    "Draws",
    "DrawsReport",
    "EvidenceComparison",
    "Exact",
    "ExchangeRun",
    "Finding",
    "HAIS",
    "ImportanceSampling",
    "LearnedRun",
    "LeftToRight",
    "LevelProcess",
    "LevelRun",
    "MBAR",
    "MarkovMixture",
    "ModelEvidence",
    "ParallelTempering",
    "PartitionEstimator",
    "PartitionResult",
    "PopulationRun",
    "PotentialRun",
    "RAISE",
    "RTS",
    "RejectionSampling",
    "Run",
    "SAMS",
    "SMC",
    "SteppingStone",
    "TemperingRun",
    "ThermodynamicIntegration",
    "UntilTrusted",
    "WangLandau",
    "check_draws",
    "compare_estimates",
    "compare_evidence",
    "pool",
]
