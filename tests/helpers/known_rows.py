"""A linear generative model: a problem with one known log Z, log p(x), for each row of data."""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import multivariate_normal

from sklpf.paths import Box, Stream, TemperedPath
from sklpf.testing import Problem

_LOG_ROOT_TAU = np.log(2 * np.pi) / 2


def make_rows_problem(
    n_rows: int = 100, n_latent: int = 10, noise: float = 0.3, random_state: int = 0
) -> Problem:
    """Return x = Phi a + noise with a random square Phi and a ~ N(0, I), rows drawn from it, and
    log p(x) of every row.
    """
    rng = np.random.default_rng(random_state)
    mixing = rng.normal(size=(n_latent, n_latent)) / np.sqrt(n_latent)
    path = LinearRowsPath(np.zeros((n_rows, n_latent)), mixing, noise)
    path.X = path.simulate(n_rows, rng)
    covariance = mixing @ mixing.T + noise**2 * np.eye(n_latent)
    log_p = multivariate_normal(np.zeros(n_latent), covariance).logpdf(path.X)
    return Problem("linear rows", path, log_p)


class RowState(NamedTuple):
    """Chains of one row: where they are, and the log densities."""

    position: NDArray[np.float64]  # (n, M)
    log_base: NDArray[np.float64]  # (n,)
    gain: NDArray[np.float64]  # (n,)


class LinearRowsPath(TemperedPath):
    """Latent variables a of x = Phi a + sigma N(0, I), for each row x: log Z is log p(x). The base
    is the prior N(0, I), from which a small noise is far. In NumPy alone.
    """

    base_log_partition = 0.0
    n_chains_per_block = 128

    def __init__(self, X: ArrayLike, mixing: ArrayLike, noise: float):
        self.X = np.array(X, dtype=float)
        self.mixing = np.array(mixing, dtype=float)
        self.noise = float(noise)
        self.n_rows: int | None = len(self.X)
        self.n_dimensions = self.mixing.shape[1]
        self.bounds = Box.everywhere(self.n_dimensions)
        self.ladder = np.array([0.0, 1.0])

    def row(self, t: int) -> LinearRowsPath:
        """Return the path of row t alone."""
        return self._alone(self.X[t])

    def row_content(self, t: int) -> bytes:
        """Return row t."""
        return self.X[t].tobytes()

    def simulated_row(self, stream: Stream) -> LinearRowsPath:
        """Return the path of one row drawn from the model."""
        return self._alone(self.simulate(1, stream.generator())[0])

    def simulate(self, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return rows (n, n_features) drawn from the model."""
        latent = rng.normal(size=(n, self.n_dimensions))
        return latent @ self.mixing.T + self.noise * rng.normal(size=(n, len(self.mixing)))

    def _alone(self, x):
        row = copy.copy(self)
        row.X = x
        row.n_rows = None
        return row

    def sample_base(self, n: int, stream: Stream) -> RowState:
        """Return n exact draws from the base."""
        return self.at(stream.generator().standard_normal((n, self.n_dimensions)))

    def position(self, state: RowState) -> NDArray[np.float64]:
        """Return the points, shape (n, M)."""
        return state.position

    def at(self, position: NDArray[np.float64]) -> RowState:
        """Return the state of chains at some points (n, M)."""
        log_base = -np.sum(position**2, axis=1) / 2 - self.n_dimensions * _LOG_ROOT_TAU
        residual = (self.X - position @ self.mixing.T) / self.noise
        log_norm = len(self.X) * (np.log(self.noise) + _LOG_ROOT_TAU)
        return RowState(position, log_base, -0.5 * np.sum(residual**2, axis=1) - log_norm)

    def ends(self, state: RowState) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return log f_0 and log f_1 - log f_0 of every chain, both (n,), in nats."""
        return state.log_base, state.gain

    def gradients(self, state: RowState) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the gradients of log f_0 and of log f_1 - log f_0, both (n, M)."""
        residual = self.X - state.position @ self.mixing.T
        return -state.position, residual @ self.mixing / self.noise**2

    def summary(self, state: RowState) -> NDArray[np.float64]:
        """Return the latent variables."""
        return state.position
