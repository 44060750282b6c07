"""Estimators of chains at levels: replica exchange, simulated tempering, reweighting."""

from sklpf.partition.levels._adaptive import SAMS, WangLandau
from sklpf.partition.levels._parallel_tempering import ExchangeRun, ParallelTempering
from sklpf.partition.levels._potential_run import PotentialRun
from sklpf.partition.levels._reweighting import (
    BAR,
    MBAR,
    LevelProcess,
    SteppingStone,
    ThermodynamicIntegration,
)
from sklpf.partition.levels._rts import RTS, ContinuousRun
from sklpf.partition.levels._run import READINGS, LevelRun, check_run, read_by
from sklpf.partition.levels._simulated_tempering import TemperingRun

__all__ = [
    "BAR",
    "ContinuousRun",
    "ExchangeRun",
    "LevelProcess",
    "LevelRun",
    "MBAR",
    "ParallelTempering",
    "PotentialRun",
    "READINGS",
    "RTS",
    "SAMS",
    "SteppingStone",
    "TemperingRun",
    "ThermodynamicIntegration",
    "WangLandau",
    "check_run",
    "read_by",
]
