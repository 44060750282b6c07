"""The categorical RBM: visible units of several categories, binary hidden units."""

from sklpf.models.categorical_rbm._model import CategoricalRBM
from sklpf.models.categorical_rbm._units import CategoricalUnits

__all__ = ["CategoricalRBM", "CategoricalUnits"]
