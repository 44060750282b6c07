"""Shape of the generalised Pareto tail of importance weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def pareto_shape(log_weights: ArrayLike) -> float:
    """Return the Pareto shape k of the upper tail of importance weights (Vehtari et al. 2024).

    The tail, min(n / 5, 3 sqrt(n)) weights, is fitted by the posterior mean of Zhang & Stephens (2009), with k drawn
    towards 0.5 by ten pseudo-observations. Under 0.5 the weights' variance is finite, from 0.7 on their mean should
    not be relied on.

    Parameters
    ----------
    log_weights : array-like of shape (n,)
        Up to a constant.

    Returns
    -------
    float
        nan with fewer than 5 weights in the tail; -inf if the tail has no spread.
    """
    log_weights = np.sort(np.asarray(log_weights, dtype=float))
    n = len(log_weights)
    n_tail = int(min(n // 5, np.ceil(3 * np.sqrt(n))))
    if n_tail < 5:
        return float("nan")
    weights = np.exp(log_weights - log_weights[-1])
    excess = weights[-n_tail:] - weights[-n_tail - 1]
    excess = excess[excess > 0]
    if len(excess) < 5 or weights[-1] - weights[-n_tail - 1] < 1e-10:  # rounding of long sums
        return float("-inf")
    return _weakly_informed(_zhang_stephens(excess), len(excess))


def _weakly_informed(shape: float, n: int) -> float:
    return float((shape * n + 0.5 * 10) / (n + 10))


def _zhang_stephens(excess: np.ndarray) -> float:
    """Posterior-mean shape of a generalised Pareto sample, sorted ascending."""
    n = len(excess)
    n_grid = 30 + int(np.sqrt(n))
    grid = 1 - np.sqrt(n_grid / (np.arange(1, n_grid + 1) - 0.5))
    quartile = excess[int(n / 4 + 0.5) - 1]
    theta = grid / (3 * quartile) + 1 / excess[-1]
    shapes = np.mean(np.log1p(-theta[:, np.newaxis] * excess), axis=1)
    log_likelihood = n * (np.log(-theta / shapes) - shapes - 1)
    posterior = np.exp(log_likelihood - log_likelihood.max())
    theta_mean = np.sum(theta * posterior) / posterior.sum()
    return float(np.mean(np.log1p(-theta_mean * excess)))
