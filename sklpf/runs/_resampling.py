"""Weights of particles, and which of them are drawn again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


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
