"""The linear generative model."""

from sklpf.models.linear._model import LinearGenerativeModel, independent_components
from sklpf.models.linear._path import WIDTH, LinearPath

__all__ = [
    "LinearGenerativeModel",
    "LinearPath",
    "WIDTH",
    "independent_components",
]
