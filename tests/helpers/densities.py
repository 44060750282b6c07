"""Densities on the plane whose marginal distributions are known, as functions of modules (they must
be picklable).
"""

from unittest.mock import patch

import numpy as np
from scipy import stats

from sklpf import Gaussian, GeometricPath, Uniform
from sklpf.paths import Stream, stream_key

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


def from_density(density, low, high):
    """The distribution function of a density on the line."""
    grid = np.linspace(low, high, 20_001)
    values = np.cumsum((density(grid)[1:] + density(grid)[:-1]) / 2)
    return lambda x: np.interp(x, grid, np.r_[0, values / values[-1]])


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

MARGINALS = {  # of each target: directions (2,) and distribution functions along them
    "correlated": [((1, 0), stats.norm.cdf), ((1, -1), stats.norm(0, 0.4**0.5).cdf)],
    "Laplace": [((1, 0), stats.laplace.cdf), ((0, 1), stats.laplace.cdf)],
    "box": [
        ((1, 0), from_density(lambda x: np.exp(x) * np.sinc(2j * x / np.pi).real, -1, 1)),
        ((0, 1), from_density(lambda x: np.sinc(1j * (2 * x + 1) / np.pi).real, -1, 1)),
    ],
    "half-open box": [
        ((1, 0), from_density(lambda x: np.exp(-x) / np.sqrt(1 + 2 * x), 0, 40)),
        ((0, 1), from_density(lambda x: np.exp(-(x**2) / 2) / (1 + x**2), -12, 12)),
    ],
    "wall": [
        ((1, 1), stats.truncnorm(-0.5 / 2**0.5, np.inf, 0, 2**0.5).cdf),
        ((1, -1), stats.norm(0, 2**0.5).cdf),
    ],
}


def towards_a_point(x, betas):
    """A drift for random walks."""
    return 0.3 * (np.array([1.0, -1.0]) - x) * (0.5 + betas[:, np.newaxis])


def after_moves(path, move, n_chains, n_moves, seed):
    """Positions of independent chains from the base that have moved at the target."""
    stream, levels = Stream(stream_key(seed)), np.full(n_chains, len(path.ladder) - 1)
    state = path.sample_base(5 * n_chains, stream)
    inside = path.log_f(state, np.full(5 * n_chains, levels[0])) > -np.inf
    state = path.take(state, np.flatnonzero(inside)[:n_chains])
    auxiliary = move.init(path, state, stream.of("memory"))
    for t in range(n_moves):
        state, auxiliary = move.move(path, state, auxiliary, levels, stream.at(t + 1))
    return path.position(state)


def smallest_p_value(name, move, n_moves, n_groups=10, n_chains=500):
    """Of Kolmogorov and Smirnov's test for two marginals, of every group of chains and of all
    together.
    """
    x = after_moves(PATHS[name], move, n_groups * n_chains, n_moves, 0)
    samples = [x, *np.split(x, n_groups)]
    laws = MARGINALS[name]
    return min(stats.kstest(x @ np.array(line), cdf).pvalue for x in samples for line, cdf in laws)


def all_accepted():
    """Let `HMC` accept every trajectory that has a chance, in a context."""
    return patch("sklpf.transitions._hmc.stream_uniforms", lambda stream, n, purpose: np.zeros(n))
