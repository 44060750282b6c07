"""Temperatures for variational inference: annealing, and tempering with a learned temperature.

Mandt et al. (2016) raise the likelihood of a conditionally conjugate model to a power b = 1 / T
below 1, which leaves the entropy of q more weight and smooths the bound. `sweeps` climbs the bound
of any `ConjugateModel` while a `Tempering` says what b is, and always ends with sweeps at T = 1.
"""

from sklpf.variational._coordinate_ascent import ConjugateModel, Sweep, sweeps
from sklpf.variational._temperatures import (
    Annealed,
    GlobalTempering,
    LocalTempering,
    Tempering,
    temperature_ladder,
    temperature_posterior,
    temperature_schedule,
)

__all__ = [
    "Annealed",
    "ConjugateModel",
    "GlobalTempering",
    "LocalTempering",
    "Sweep",
    "Tempering",
    "sweeps",
    "temperature_posterior",
    "temperature_ladder",
    "temperature_schedule",
]

# Shared with other folders.
# isort: split
from sklpf.variational._temperatures import TEMPERING  # noqa: F401
