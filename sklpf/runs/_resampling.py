"""Weights of particles, and which of them are drawn again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def mean_and_size(log_weights: NDArray[np.float64]) -> tuple[float, float]:
    """Log of the mean of exp(log_weights), and (sum w)^2 / sum w^2; -inf and 0 if all weights are
    0.
    """
    largest = log_weights.max()
    if largest == -np.inf:
        return -np.inf, 0.0
    weights = np.exp(log_weights - largest)
    total = weights.sum()
    return float(largest + np.log(total / len(weights))), float(total**2 / (weights @ weights))


def systematic(log_weights: NDArray[np.float64], n: int, uniform: float) -> NDArray[np.int64]:
    """Indices (n,) of systematic resampling: each index comes up n w times, rounded up or down, and
    so on average.

    Parameters
    ----------
    log_weights : ndarray of shape (m,)
        Not all -inf.
    n : int
    uniform : float
        In [0, 1).
    """
    weights = np.exp(log_weights - log_weights.max())
    shares = np.cumsum(weights)
    index = np.searchsorted(shares, (uniform + np.arange(n)) * (shares[-1] / n), side="right")
    return np.minimum(index, np.flatnonzero(weights)[-1])
