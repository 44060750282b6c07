"""Estimators whose runs are log weights: annealing, importance sampling, bridges, filters."""

from sklpf.partition.weights._ais import AIS, HAIS, AnnealingRun
from sklpf.partition.weights._bridge_sampling import BridgeRun, BridgeSampling
from sklpf.partition.weights._independent import ImportanceSampling, RejectionSampling
from sklpf.partition.weights._left_to_right import LeftToRight
from sklpf.partition.weights._markov_mixture import MarkovMixture
from sklpf.partition.weights._posterior_draws import path_and_draws, posterior_draws
from sklpf.partition.weights._reverse import BDMC, RAISE

__all__ = [
    "AIS",
    "AnnealingRun",
    "BDMC",
    "BridgeRun",
    "BridgeSampling",
    "HAIS",
    "ImportanceSampling",
    "LeftToRight",
    "MarkovMixture",
    "RAISE",
    "RejectionSampling",
    "path_and_draws",
    "posterior_draws",
]

# Shared with other folders.
# isort: split
from sklpf.partition.weights._explored import ExploredRun  # noqa: F401
