"""The Gaussian RBM: real visible units with learned variances, binary hidden units."""

from sklpf.models.gaussian_rbm._model import GaussianRBM
from sklpf.models.gaussian_rbm._path import GaussianRBMDensityPath, GaussianRBMPath

__all__ = [
    "GaussianRBM",
    "GaussianRBMDensityPath",
    "GaussianRBMPath",
]
