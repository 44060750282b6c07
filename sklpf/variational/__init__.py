"""Temperatures for variational inference: annealing, and tempering with a learned temperature.

Mandt et al. (2016) raise the likelihood of a conditionally conjugate model to a power b = 1 / T
below 1, which leaves the entropy of q more weight and smooths the bound. `sweeps` climbs the bound
of any `ConjugateModel` while `Temperatures` say what b is, and always ends with sweeps at T = 1.
`Tempering` is the parameter of models that chooses between them.
"""

from sklpf.variational._coordinate_ascent import ConjugateModel, Sweep, sweeps
from sklpf.variational._temperatures import (
    Annealed,
    GlobalTempering,
    LocalTempering,
    Temperatures,
    temperature_ladder,
    temperature_posterior,
    temperature_schedule,
)
from sklpf.variational._tempering import Tempering

__all__ = [
    "Annealed",
    "ConjugateModel",
    "GlobalTempering",
    "LocalTempering",
    "Sweep",
    "Temperatures",
    "Tempering",
    "sweeps",
    "temperature_posterior",
    "temperature_ladder",
    "temperature_schedule",
]

# Shared with other folders.
# isort: split
from sklpf.variational._tempering import TEMPERING, tempering_of  # noqa: F401
