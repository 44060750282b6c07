"""The linear generative model."""

from sklpf.models.linear._model import LinearGenerativeModel
from sklpf.models.linear._path import LinearPath

__all__ = ["LinearGenerativeModel", "LinearPath"]
