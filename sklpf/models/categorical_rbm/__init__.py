"""The categorical RBM: visible units of several categories, binary hidden units."""

from sklpf.models.categorical_rbm._model import CategoricalRBM

__all__ = [
    "CategoricalRBM",
]
