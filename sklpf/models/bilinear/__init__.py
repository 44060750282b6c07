"""The bilinear generative model."""

from sklpf.models.bilinear._model import BilinearGenerativeModel
from sklpf.models.bilinear._path import BilinearPath

__all__ = [
    "BilinearGenerativeModel",
    "BilinearPath",
]
