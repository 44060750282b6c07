"""The categorical RBM: visible units of several categories, binary hidden units."""

from sklpf.models.categorical_rbm._model import CategoricalRBM
from sklpf.models.categorical_rbm._path import CategoricalRBMPath

__all__ = ["CategoricalRBM", "CategoricalRBMPath"]
