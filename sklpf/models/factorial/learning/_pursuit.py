"""Activations from the moments of X alone: directions in which rows are spread least like a normal
distribution.
"""

from __future__ import annotations

import numpy as np

from sklpf._utils.numbers import Array

_POWER_STEPS = 15
_SPARE = 8  # directions of the subspace iteration beyond those that are wanted
# Of the fixed-point iteration.
_MAX_ROWS = 20_000
_MAX_STEPS = 100
_ALIGNED = 1e-4


def leading_eigenvalues(X, n: int) -> Array:
    """About the n largest eigenvalues of the covariance of X, falling, by subspace iteration."""
    _, basis = _leading_subspace(X, n)
    return np.sort(np.linalg.norm(basis, axis=0))[::-1]


def _leading_subspace(X, n: int):
    """Mean of X (D,), and its covariance times a basis (D, m) of about the leading n directions."""
    mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    basis = np.random.default_rng(0).normal(size=(X.shape[1], min(n, X.shape[1])))
    for _ in range(_POWER_STEPS):
        basis = np.linalg.qr(basis)[0]
        scores = X @ basis.astype(X.dtype) - mean @ basis
        basis = (X.T @ scores.astype(X.dtype) - np.outer(mean, scores.sum(axis=0))) / X.shape[0]
    return mean, basis


class Pursuit:
    """Guesses at which components are on in every row, by projection pursuit.

    Rows are whitened in the leading directions that stand out from the noise, and rotated by the
    fixed-point iteration of independent component analysis to coordinates of large skewness and
    kurtosis. A coordinate that takes two values, as that of a component does, is told by its
    skewness where these lie.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n, D)
    n_components : int
    variance : float
        Mean variance of the features.

    Attributes
    ----------
    basis : ndarray of shape (D, m)
        Orthonormal, about the leading directions of X, some more than components.
    """

    def __init__(self, X, n_components: int, variance: float):
        self.X = X
        mean, spread = _leading_subspace(X, n_components + _SPARE)
        self.basis = np.linalg.qr(spread)[0]
        scores = np.asarray(X @ self.basis.astype(X.dtype), dtype=np.float64) - mean @ self.basis
        values, vectors = np.linalg.eigh(scores.T @ scores / len(scores))
        values = values[::-1]
        vectors = vectors[:, ::-1]
        noise, kept = _above_noise(values, n_components, variance, X.shape)
        self._whitened = scores @ vectors[:, kept] / np.sqrt(values[kept] - noise)

    def activations(self, rng) -> Array:
        """Return activations (n, m), 0 or 1, from a random rotation; m is smaller where fewer
        directions stand out.
        """
        n, m = self._whitened.shape
        if m == 0:
            return self._whitened
        rows = slice(None) if n <= _MAX_ROWS else rng.choice(n, _MAX_ROWS, replace=False)
        coordinates = self._whitened @ _rotate(self._whitened[rows], rng).T
        skewness = np.mean(coordinates**3, axis=0)
        coordinates *= np.where(skewness < 0, -1, 1)
        return _without_offset(self.X, (coordinates > np.abs(skewness) / 2).astype(np.float64))


def _above_noise(values, n: int, variance: float, shape):
    """Variance of the noise, and which of the first n eigenvalues (falling) are too large
    for it.
    """
    n_rows, n_features = shape
    n = min(n, len(values))
    rest = n_features - n
    noise = max(0.0, (variance * n_features - values[:n].sum()) / rest) if rest > 0 else 0.0
    edge = noise * (1 + np.sqrt(n_features / n_rows)) ** 2  # where the eigenvalues of noise end
    return noise, np.flatnonzero(values[:n] > max(edge, 1e-6 * values[0]))


def _rotate(whitened, rng) -> Array:
    """Rotation (m, m) that raises the sum of skewness² / 12 + kurtosis² / 48 over the
    coordinates.
    """
    n, m = whitened.shape
    rotation = np.linalg.qr(rng.normal(size=(m, m)))[0]
    for _ in range(_MAX_STEPS):
        u = whitened @ rotation.T
        skewness = np.mean(u**3, axis=0)
        kurtosis = np.mean(u**4, axis=0) - 3
        value = skewness * u**2 / 2 + kurtosis * u**3 / 6
        slope = np.mean(skewness * u + kurtosis * u**2 / 2, axis=0)
        left, _, right = np.linalg.svd(value.T @ whitened / n - slope[:, None] * rotation)
        last = rotation
        rotation = left @ right
        if np.max(1 - np.abs(np.sum(rotation * last, axis=1))) < _ALIGNED:
            break
    return rotation


def _without_offset(X, activations) -> Array:
    """The activations with on and off exchanged where that leaves rows with nothing on closest to
    zero.
    """
    design = np.column_stack([np.ones(len(activations)), activations])
    cross = np.asarray((X.T @ design.astype(X.dtype)).T, dtype=np.float64)
    offset, *components = np.linalg.lstsq(design.T @ design, cross, rcond=None)[0]
    exchanged = np.linalg.lstsq(np.array(components).T, -offset, rcond=None)[0] > 0.5
    return np.where(exchanged, 1 - activations, activations)
