"""The Boltzmann machine without hidden units: pairwise models of binary variables."""

from sklpf.models.boltzmann._model import BoltzmannMachine
from sklpf.models.boltzmann._path import BoltzmannPath

__all__ = [
    "BoltzmannMachine",
    "BoltzmannPath",
]
