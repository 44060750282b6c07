"""Mean-covariance restricted Boltzmann machine."""

from sklpf.models.mcrbm._model import MeanCovarianceRBM
from sklpf.models.mcrbm._path import MeanCovariancePath

__all__ = [
    "MeanCovariancePath",
    "MeanCovarianceRBM",
]
