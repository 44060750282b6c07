"""Densities on R^d: the hook that compiled moves know them by."""

from typing import NamedTuple

import numpy as np

from sklpf.kernels._programs import program


class Values(NamedTuple):
    """Outputs of `evaluate`: log f_0, log f_1 - log f_0 and their gradients."""

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


# ---- trajectories of training
@program
def follow(density, position, velocity, step_size, n_leapfrog, log_density):
    """Move points and velocities (n, d) in place along the dynamics of log f, and write log f of
    where they began and ended to log_density (2, n).
    """
    slope = np.empty_like(position)
    evaluate_density(density, position, log_density[0], slope)
    velocity += 0.5 * step_size * slope
    for step in range(n_leapfrog):
        position += step_size * velocity
        evaluate_density(density, position, log_density[1], slope)
        velocity += (0.5 if step == n_leapfrog - 1 else 1.0) * step_size * slope
