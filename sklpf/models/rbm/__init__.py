"""The Bernoulli restricted Boltzmann machine."""

from sklpf.models.rbm._model import BernoulliRBM
from sklpf.models.rbm._path import RBMPath

__all__ = ["BernoulliRBM", "RBMPath"]
