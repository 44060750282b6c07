"""Products of experts."""

from sklpf.models.products._model import ProductOfExperts
from sklpf.models.products._path import ProductPath

__all__ = [
    "ProductOfExperts",
    "ProductPath",
]
