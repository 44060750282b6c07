"""Elementary sampling: by the inverse of a distribution function, and by resampling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax

from sklpf._utils.numbers import Array
from sklpf._utils.random import generator_of
from sklpf._utils.validation import as_float64, check_count

__all__ = ["importance_resample", "inverse_cdf_sample"]


RandomState = int | np.random.RandomState | None


def inverse_cdf_sample(
    quantile: Callable[[Array], ArrayLike], n: int, random_state: RandomState = None
) -> Array:
    """Return n independent draws of a distribution on the line: its quantiles at uniform numbers
    (Bishop 2006, 11.6).

    Parameters
    ----------
    quantile : callable
        The inverse of the cumulative distribution function, of an array (n,) in (0, 1): ``ppf`` of
        a distribution of scipy.stats, say.
    n : int
        Number of draws.
    random_state : int, RandomState or None, default=None
        Seed of the draws.

    Returns
    -------
    ndarray of shape (n,)

    Raises
    ------
    TypeError
        If quantile is no function.
    ValueError
        If n is not positive, or quantile gives another shape or NaN.

    Examples
    --------
    >>> x = inverse_cdf_sample(lambda u: -np.log1p(-u), 3, random_state=0)
    >>> x.round(3)  # exponential
    array([0.796, 1.256, 0.923])
    """
    if not callable(quantile):
        raise TypeError(
            "quantile must be a function of numbers in (0, 1), such as scipy.stats.norm.ppf, got"
            f" {quantile!r}"
        )
    n = check_count(n, "n")
    rng = generator_of(random_state)
    # 0 comes once in 2^53 numbers
    uniforms = np.maximum(rng.random_sample(n), np.finfo(float).tiny)
    draws = np.asarray(quantile(uniforms), dtype=np.float64)
    if draws.shape != (n,) or np.isnan(draws).any():
        shown = (
            f"shape {draws.shape}"
            if draws.shape != (n,)
            else f"NaN at {uniforms[np.isnan(draws)][0]:.4g}"
        )
        raise ValueError(
            f"quantile must give a number for each of {n} numbers in (0, 1), got {shown}"
        )
    return draws


def importance_resample(
    samples: Any, log_weights: ArrayLike, n: int, random_state: RandomState = None
) -> Any:
    """Return n draws, with replacement, from samples in proportion to their weights (SIR; Bishop
    2006, 11.1.5).

    Where the samples come from q and the weights are p / q the result is distributed as p in the
    limit of many samples: of far more than n, and with an effective number, (sum w)^2 / sum w^2,
    far above n.

    Parameters
    ----------
    samples : array-like of shape (m, ...)
        Samples to draw from, along the first axis.
    log_weights : array-like of shape (m,)
        Logs of the weights in nats, up to a constant; -inf is a weight of 0.
    n : int
        Number of draws.
    random_state : int, RandomState or None, default=None
        Seed of the draws.

    Returns
    -------
    ndarray of shape (n, ...)

    Raises
    ------
    ValueError
        If shapes don't match, n is not positive, or the weights hold NaN, +inf or nothing above 0.

    Examples
    --------
    >>> importance_resample(["a", "b", "c"], [0.0, -np.inf, 0.0], 4, random_state=1)
    array(['a', 'c', 'a', 'a'], dtype='<U1')
    """
    try:
        samples = np.asarray(samples)
    except ValueError as error:
        raise ValueError(f"samples must be a rectangular array: {error}") from None
    log_weights = as_float64(log_weights, "log_weights")
    if (
        log_weights.ndim != 1
        or samples.ndim == 0
        or len(samples) != len(log_weights)
        or len(samples) == 0
    ):
        raise ValueError(
            f"log_weights must have one number for each sample, got shapes {log_weights.shape} and"
            f" {samples.shape}"
        )
    if np.any(np.isnan(log_weights) | (log_weights == np.inf)) or np.all(log_weights == -np.inf):
        raise ValueError(
            "log_weights must be numbers or -inf, and at least one of them a number: check the"
            " densities"
        )
    n = check_count(n, "n")
    rng = generator_of(random_state)
    return samples[rng.choice(len(samples), size=n, p=softmax(log_weights))]
