"""The factorial mixture."""

from sklpf.models.factorial._model import FactorialMixture
from sklpf.models.factorial._path import FactorialPath
from sklpf.models.factorial.learning._posterior import FactorialPosterior

__all__ = ["FactorialMixture", "FactorialPath", "FactorialPosterior"]
