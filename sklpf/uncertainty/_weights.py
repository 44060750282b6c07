"""Importance weights: their effective sample size, and the generalised Pareto tail."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import genpareto

from sklpf._utils.numbers import Array


def log_mean_exp(log_weights: ArrayLike, axis: int | None = None) -> Array:
    """Return the log of the mean of exp(log_weights), without overflow.

    Parameters
    ----------
    log_weights : array-like
        Any shape.
    axis : int or None, default=None
        Axis of the mean; None: all.

    Returns
    -------
    float or ndarray
        -inf where all are -inf.
    """
    log_weights = np.asarray(log_weights, dtype=float)
    largest = np.max(log_weights, axis=axis, keepdims=True)
    largest = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore"):  # for few numbers SciPy's logsumexp takes five times as long
        return np.log(np.mean(np.exp(log_weights - largest), axis=axis)) + np.squeeze(largest, axis)


def effective_sample_size(log_weights: Array, axis: int | None = None) -> Any:
    """Return (sum w)^2 / sum w^2 (Kong, Liu & Wong 1994).

    Parameters
    ----------
    log_weights : ndarray
        Logs of the weights.
    axis : int, optional
        Axis of the weights that belong together; all of them by default.

    Returns
    -------
    float or ndarray
        From 1 to the number of weights; 0 if all weights are 0.
    """
    largest = np.max(log_weights, axis=axis, keepdims=True)
    weights = np.exp(log_weights - np.where(largest == -np.inf, 0.0, largest))
    squares = np.sum(weights**2, axis=axis)
    # At least one square is 1, unless all weights are 0.
    size = np.sum(weights, axis=axis) ** 2 / np.where(squares == 0, 1.0, squares)
    return float(size) if axis is None else size


class ParetoTail(NamedTuple):
    """A generalised Pareto tail of importance weights, in units of the largest weight.

    Attributes
    ----------
    shape : float
        k, the tail's weight: under 0.5 the weights' variance is finite, from 0.7 on their mean
        should not be relied on. nan with fewer than 5 weights in the tail; -inf if the tail has no
        spread.
    scale : float
        nan where the shape is no number.
    threshold : float
        The weight at which the tail begins.
    n : int
        Weights in the tail.
    """

    shape: float
    scale: float
    threshold: float
    n: int

    def weights(self, n: int) -> Array:
        """Return quantiles of the tail at (i - 1/2) / n for i = n, ..., 1, the largest first.

        Parameters
        ----------
        n : int
            How many.

        Returns
        -------
        ndarray of shape (n,)
            In units of the largest weight.
        """
        return self.threshold + genpareto.isf(
            (np.arange(n) + 0.5) / n, self.shape, scale=self.scale
        )


def pareto_tail(log_weights: ArrayLike) -> ParetoTail:
    """Return the generalised Pareto distribution of the upper tail of importance weights (Vehtari
    et al. 2024).

    The tail, min(n / 5, 3 sqrt(n)) weights, is fitted by the posterior mean of Zhang & Stephens
    (2009), with k drawn towards 0.5 by ten pseudo-observations.

    Parameters
    ----------
    log_weights : array-like of shape (n,)
        Up to a constant.

    Returns
    -------
    ParetoTail
    """
    log_weights = np.sort(np.asarray(log_weights, dtype=float))
    n = len(log_weights)
    n_tail = int(min(n // 5, np.ceil(3 * np.sqrt(n))))
    if n_tail < 5:
        return ParetoTail(np.nan, np.nan, np.nan, n_tail)
    weights = np.exp(log_weights - log_weights[-1])
    threshold = float(weights[-n_tail - 1])
    excess = weights[-n_tail:] - threshold
    excess = excess[excess > 0]
    if len(excess) < 5 or weights[-1] - threshold < 1e-10:  # rounding of long sums
        return ParetoTail(-np.inf, np.nan, threshold, n_tail)
    shape, scale = _zhang_stephens(excess)
    n = len(excess)
    weakly_informed = float((shape * n + 0.5 * 10) / (n + 10))
    return ParetoTail(weakly_informed, scale, threshold, n)


def pareto_shape(log_weights: ArrayLike) -> float:
    """Return the shape k of the tail of importance weights.

    Parameters
    ----------
    log_weights : array-like of shape (n,)
        Up to a constant.

    Returns
    -------
    float
        As in `ParetoTail`.
    """
    return pareto_tail(log_weights).shape


def _zhang_stephens(excess: np.ndarray) -> tuple[float, float]:
    """Posterior-mean shape and scale of a generalised Pareto sample, sorted ascending."""
    n = len(excess)
    n_grid = 30 + int(np.sqrt(n))
    grid = 1 - np.sqrt(n_grid / (np.arange(1, n_grid + 1) - 0.5))
    quartile = excess[int(n / 4 + 0.5) - 1]
    theta = grid / (3 * quartile) + 1 / excess[-1]
    shapes = np.mean(np.log1p(-theta[:, np.newaxis] * excess), axis=1)
    log_likelihood = n * (np.log(-theta / shapes) - shapes - 1)
    posterior = np.exp(log_likelihood - log_likelihood.max())
    theta_mean = np.sum(theta * posterior) / posterior.sum()
    shape = float(np.mean(np.log1p(-theta_mean * excess)))
    return shape, float(-shape / theta_mean)
