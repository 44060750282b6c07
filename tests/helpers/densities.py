"""Densities on the plane whose marginal distributions are known, as functions of modules (they must
be picklable).
"""

from unittest.mock import patch

import numpy as np

from sklpf import Gaussian, GeometricPath, Uniform

LADDER = np.linspace(0, 1, 6)
PRECISION = np.linalg.inv([[1.0, 0.8], [0.8, 1.0]])


def log_correlated(x):
    return -np.einsum("ij,jk,ik->i", x, PRECISION, x) / 2


def grad_correlated(x):
    return -x @ PRECISION


def log_laplace(x):
    return -np.abs(x).sum(axis=1)


def grad_laplace(x):
    return -np.sign(x)


def log_box(x):
    return 2 * x[:, 0] * x[:, 1] + x[:, 0]


def grad_box(x):
    return np.column_stack([2 * x[:, 1] + 1, 2 * x[:, 0]])


def log_half_box(x):
    return -x[:, 0] - x[:, 1] ** 2 / 2 - x[:, 0] * x[:, 1] ** 2


def grad_half_box(x):
    return np.column_stack([-1 - x[:, 1] ** 2, -x[:, 1] - 2 * x[:, 0] * x[:, 1]])


def log_wall(x):
    return np.where(x.sum(axis=1) > -0.5, -np.sum(x**2, axis=1) / 2, -np.inf)


def grad_wall(x):
    return -x


def on_ladder(log_density, grad, base, bounds=None):
    return GeometricPath(log_density, grad=grad, base=base, bounds=bounds, ladder=LADDER)


HALF_OPEN = [0, -np.inf], np.inf
PATHS = {
    "correlated": on_ladder(log_correlated, grad_correlated, Gaussian([0.5, -0.5], 2.0)),
    "Laplace": on_ladder(log_laplace, grad_laplace, Gaussian([0.5, 0.0], 2.0)),
    "box": on_ladder(log_box, grad_box, Uniform([-1, -1], [1, 1]), (-1, 1)),
    "half-open box": on_ladder(log_half_box, grad_half_box, Gaussian([0.5, 0.0], 1.0), HALF_OPEN),
    "wall": on_ladder(log_wall, grad_wall, Gaussian([0.5, 0.5], 1.5)),
}


def towards_a_point(x, betas):
    """A drift for random walks."""
    return 0.3 * (np.array([1.0, -1.0]) - x) * (0.5 + betas[:, np.newaxis])


def all_accepted():
    """Let `HMC` accept every trajectory that has a chance, in a context."""
    return patch("sklpf.transitions._hmc.stream_uniforms", lambda stream, n, purpose: np.zeros(n))
