"""Estimators whose runs are populations of particles."""

from sklpf.partition.populations._adaptive_smc import AdaptiveSMC, LearnedRun
from sklpf.partition.populations._smc import SMC, PopulationRun

__all__ = [
    "AdaptiveSMC",
    "LearnedRun",
    "PopulationRun",
    "SMC",
]
