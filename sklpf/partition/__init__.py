"""Estimators of the log partition function."""

from sklpf._utils.warnings import Alarm
from sklpf.partition._base import PartitionEstimator
from sklpf.partition._diagnostics import DIAGNOSTICS, Diagnostic
from sklpf.partition._result import PartitionResult, Run
from sklpf.partition.checks.missed_mass import CheckedMode
from sklpf.partition.evidence import (
    DrawsFinding,
    DrawsReport,
    EvidenceComparison,
    ModelEvidence,
    UntilTrusted,
    check_draws,
    compare_estimates,
    compare_evidence,
    pool,
)
from sklpf.partition.exact import AdaptiveRejection, Exact
from sklpf.partition.levels import (
    BAR,
    MBAR,
    RTS,
    SAMS,
    ContinuousRun,
    ExchangeRun,
    LevelProcess,
    LevelRun,
    ParallelTempering,
    PotentialRun,
    SteppingStone,
    TemperingRun,
    ThermodynamicIntegration,
    WangLandau,
)
from sklpf.partition.populations import SMC, AdaptiveSMC, LearnedRun, PopulationRun
from sklpf.partition.weights import (
    AIS,
    BDMC,
    HAIS,
    RAISE,
    AnnealingRun,
    BridgeSampling,
    ImportanceSampling,
    LeftToRight,
    MarkovMixture,
    RejectionSampling,
)
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
    "DIAGNOSTICS",
    "Diagnostic",
    "Draws",
    "DrawsFinding",
    "DrawsReport",
    "EvidenceComparison",
    "Exact",
    "ExchangeRun",
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

# Shared with other folders.
# isort: split
from sklpf.partition._base import EXECUTION_PARAMETERS, default_estimator  # noqa: F401
from sklpf.partition.checks.missed_mass import regions_to_cover  # noqa: F401
