"""Densities on R^d: the hook that compiled moves know them by."""

from typing import NamedTuple

import numpy as np

from sklpf.kernels._programs import program


class Values(NamedTuple):
    """What `evaluate` writes: log f_0, log f_1 - log f_0 and their gradients."""

    log_base: np.ndarray  # (n,)
    gain: np.ndarray  # (n,)
    base_slope: np.ndarray  # (n, d)
    gain_slope: np.ndarray  # (n, d)


# ---- hooks
def evaluate(density, position, values):
    """Write log f_0, log f_1 - log f_0 and their gradients at points (n, d) to `values`. A move
    knows nothing else of a density.
    """


def evaluate_density(density, position, log_density, slope):
    """Write log f (n,) and its gradient (n, d) at points (n, d), for the base or the target of a
    `TemperedDensity`, whose `evaluate` calls it for both.
    """


# ---- the same for Python to call
@program
def write_values(density, position, values):
    evaluate(density, position, values)


@program
def write_density(density, position, log_density, slope):
    evaluate_density(density, position, log_density, slope)
