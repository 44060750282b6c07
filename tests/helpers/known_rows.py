"""Linear generative models: problems with one known log Z, log p(x), for each row of data."""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular
from scipy.special import log_ndtr

from sklpf.paths import Box, Stream, TemperedPath
from sklpf.testing import Problem

_LOG_TAU = np.log(2 * np.pi)
_WIDTH = 2.0  # variance of the Gaussian prior whose posterior is a base


def make_rows_problem(
    kind: str = "gaussian",
    n_rows: int = 100,
    n_latent: int = 10,
    noise: float = 0.3,
    *,
    base: str = "posterior",
    random_state: int = 0,
) -> Problem:
    """Return a linear generative model x = Phi a + noise, rows drawn from it, and log p(x) of every
    row.

    The prior of a is N(0, I), with a random square Phi, or "laplace": ``exp(-|a_i|) / 2`` for each
    i, with an orthogonal Phi, so that log p(x) is a sum of logs of integrals in one dimension. The
    base "prior" is hard where the noise is small.
    """
    rng = np.random.default_rng(random_state)
    mixing = rng.normal(size=(n_latent, n_latent)) / np.sqrt(n_latent)
    if kind == "laplace":
        mixing = np.linalg.qr(mixing)[0]
    path = LinearRowsPath(np.zeros((n_rows, n_latent)), mixing, noise, prior=kind, base=base)
    path.X = path.simulate(n_rows, rng)
    exact = _gaussian if kind == "gaussian" else _orthogonal_laplace
    return Problem(f"linear {kind} rows", path, exact(path.X, mixing, noise))


def _gaussian(X, mixing, noise):
    """log N(x; 0, Phi Phi^T + sigma^2 I), shape (n_rows,)."""
    root = np.linalg.cholesky(mixing @ mixing.T + noise**2 * np.eye(len(mixing)))
    whitened = solve_triangular(root, X.T, lower=True)
    log_norm = np.log(np.diag(root)).sum() + len(mixing) / 2 * _LOG_TAU
    return -0.5 * np.sum(whitened**2, axis=0) - log_norm


def _orthogonal_laplace(X, mixing, noise):
    """log of the product over y_i = (Phi^T x)_i of the convolution of a Laplace and a normal
    density.
    """
    y = X @ mixing
    sides = [noise**2 / 2 + sign * y + log_ndtr(-(sign * y + noise**2) / noise) for sign in (1, -1)]
    return np.sum(np.logaddexp(*sides) - np.log(2), axis=1)


class RowState(NamedTuple):
    """Chains of one row: where they are, the latent variables there, and the log densities."""

    position: NDArray[np.float64]  # (n, M)
    latent: NDArray[np.float64]  # (n, M)
    log_base: NDArray[np.float64]  # (n,)
    gain: NDArray[np.float64]  # (n,)


class LinearRowsPath(TemperedPath):
    """Latent variables a of x = Phi a + sigma N(0, I), for each row x: log Z is log p(x). In NumPy
    alone.

    Chains live in coordinates y with a = mu(x) + R y, in which the base is N(0, I).

    The base "posterior" is p(a | x) if the prior were N(0, 2 I), so that R Rᵀ = (Phiᵀ Phi / sigma²
    + I / 2)⁻¹ for all rows; "prior" is N(0, I), the prior itself if that is Gaussian.
    """

    base_log_partition = 0.0
    bounds: Box
    n_chains_per_block = 128
    center: NDArray[np.float64]  # of one row: mu(x), and the constant of log f_1 - log f_0
    constant: float

    def __init__(
        self,
        X: ArrayLike,
        mixing: ArrayLike,
        noise: float,
        *,
        prior: str = "gaussian",
        base: str = "posterior",
        ladder: ArrayLike = (0.0, 1.0),
    ):
        self.X = np.array(X, dtype=float)
        self.mixing = np.array(mixing, dtype=float)
        self.noise = float(noise)
        self.prior = prior
        self.base = base
        self.n_rows: int | None = len(self.X)
        self.n_dimensions = self.mixing.shape[1]
        self.bounds = Box.everywhere(self.n_dimensions)
        self.ladder = np.array(ladder, dtype=float)
        self.root = np.eye(self.n_dimensions)
        if base == "posterior":
            precision = (
                self.mixing.T @ self.mixing / self.noise**2 + np.eye(self.n_dimensions) / _WIDTH
            )
            self.root = np.linalg.inv(np.linalg.cholesky(precision)).T

    # -- rows
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
        shape = n, self.n_dimensions
        latent = rng.normal(size=shape) if self.prior == "gaussian" else rng.laplace(size=shape)
        return latent @ self.mixing.T + self.noise * rng.normal(size=(n, len(self.mixing)))

    def _alone(self, x):
        """The path of one row, with what all of its chains share."""
        row = copy.copy(self)
        row.X = x
        row.n_rows = None
        row.center = np.zeros(self.n_dimensions)
        row.constant = self._log_prior_constant() - len(x) * (np.log(self.noise) + _LOG_TAU / 2)
        if self.base == "posterior":
            row.center = self.root @ (self.root.T @ (self.mixing.T @ x)) / self.noise**2
            residual = x - self.mixing @ row.center
            fit = np.sum(residual**2) / self.noise**2 + np.sum(row.center**2) / _WIDTH
            row.constant += (
                np.linalg.slogdet(self.root)[1] - 0.5 * fit + self.n_dimensions / 2 * _LOG_TAU
            )
        return row

    def _log_prior_constant(self):
        return -self.n_dimensions * (_LOG_TAU / 2 if self.prior == "gaussian" else np.log(2))

    # -- one row's densities: log f_1 - log f_0 is made of few terms, as the likelihood is in the
    # Gaussian posterior ---
    def sample_base(self, n: int, stream: Stream) -> RowState:
        """Return n exact draws from the base."""
        return self.at(stream.generator().standard_normal((n, self.n_dimensions)))

    def position(self, state: RowState) -> NDArray[np.float64]:
        """Return the points, shape (n, M)."""
        return state.position

    def at(self, position: NDArray[np.float64]) -> RowState:
        """Return the state of chains at some points (n, M)."""
        squares = np.sum(position**2, axis=1) / 2
        log_base = -squares - self.n_dimensions / 2 * _LOG_TAU
        latent = position if self.base == "prior" else self.center + position @ self.root.T
        if self.prior == "gaussian":
            gain = self.constant - np.sum(latent**2, axis=1) / 2
        else:
            gain = self.constant - np.sum(np.abs(latent), axis=1)
        if self.base == "posterior":
            gain += np.sum(latent**2, axis=1) / (2 * _WIDTH)
            return RowState(position, latent, log_base, gain)
        gain -= np.sum((self.X - latent @ self.mixing.T) ** 2, axis=1) / (2 * self.noise**2)
        return RowState(position, latent, log_base, gain - log_base)

    def ends(self, state: RowState) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return log f_0 and log f_1 - log f_0 of every chain, both (n,), in nats."""
        return state.log_base, state.gain

    def gradients(self, state: RowState) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the gradients of log f_0 and of log f_1 - log f_0, both (n, M)."""
        slope = -state.latent if self.prior == "gaussian" else -np.sign(state.latent)
        if self.base == "posterior":
            return -state.position, (slope + state.latent / _WIDTH) @ self.root
        residual = self.X - state.latent @ self.mixing.T
        return -state.position, slope + residual @ self.mixing / self.noise**2 + state.position

    def summary(self, state: RowState) -> NDArray[np.float64]:
        """Return the latent variables."""
        return state.latent
