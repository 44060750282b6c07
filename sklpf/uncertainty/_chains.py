"""Correlated draws of several chains: how many independent ones they are worth, and whether the
chains agree (Vehtari et al. 2021).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

from sklpf._utils.numbers import Array

_FEWEST = 4  # draws in half a chain, below which nothing is said about correlations


def effective_draws(values: ArrayLike, *, split: bool = True) -> Array:
    """Return the number of independent draws whose mean would have the variance that the mean of
    these has.

    Autocorrelations come from all of them together and count the
    variance between chains; they are summed by Geyer's initial monotone sequence.

    Parameters
    ----------
    values : array-like of shape (n_chains, n_draws, ...)
        A number, or several, for each draw in its order.
    split : bool, default=True
        Split chains in halves, so that a drift counts. Of a single chain that is in equilibrium
        this is noisy.

    Returns
    -------
    ndarray of shape (...)
        From 1 to ``n log10(n)``, n all draws together; n where the numbers are all equal, or where
        chains are too short to say.
    """
    values = np.asarray(values, dtype=np.float64)
    n_all = values.shape[0] * values.shape[1]
    chains = _split(values) if split else values
    n_draws = chains.shape[1]
    if n_draws < _FEWEST:
        return np.full(values.shape[2:], float(n_all))

    within = _autocovariances(chains).mean(axis=0) * n_draws / (n_draws - 1)
    between = chains.mean(axis=1).var(axis=0, ddof=1) if len(chains) > 1 else 0.0
    total = within[0] * (n_draws - 1) / n_draws + between
    varies = total > 1e-24 * np.max(values**2, axis=(0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        correlations = np.where(varies, 1 - (within[0] - within) / total, 0.0)
    correlations[0] = 1.0

    # Of a reversible chain sums of neighbours are positive and fall: noise begins where they don't.
    n_pairs = n_draws // 2
    pairs = correlations[0 : 2 * n_pairs : 2] + correlations[1 : 2 * n_pairs : 2]
    before_noise = np.logical_and.accumulate(pairs > 0, axis=0)
    pairs = np.minimum.accumulate(np.where(before_noise, pairs, 0.0), axis=0)
    autocorrelation_time = np.maximum(2 * pairs.sum(axis=0) - 1, 1 / np.log10(max(n_all, 10)))
    return np.where(varies, np.maximum(n_all / autocorrelation_time, 1.0), n_all)


def split_r_hat(values: ArrayLike) -> Array:
    """Return the rank-normalised split R-hat: near 1 where halves of chains have one distribution.

    The larger one of those for location and for scale.

    Parameters
    ----------
    values : array-like of shape (n_chains, n_draws, ...)
        As in `effective_draws`.

    Returns
    -------
    ndarray of shape (...)
        1 where chains are too short to say.
    """
    values = np.asarray(values, dtype=np.float64)
    if values.shape[1] < 2 * _FEWEST:
        return np.ones(values.shape[2:])
    distances = np.abs(values - np.median(values, axis=(0, 1)))
    return np.maximum(_r_hat(rank_normalised(values)), _r_hat(rank_normalised(distances)))


def rank_normalised(values: ArrayLike) -> Array:
    """Return normal quantiles of the ranks among all draws, which exist for tails of any weight.

    Parameters
    ----------
    values : array-like of shape (n_chains, n_draws, ...)
        As in `effective_draws`.

    Returns
    -------
    ndarray of shape (n_chains, n_draws, ...)
    """
    values = np.asarray(values, dtype=np.float64)
    n = values.shape[0] * values.shape[1]
    ranks = rankdata(values.reshape(n, -1), axis=0).reshape(values.shape)
    return ndtri((ranks - 0.375) / (n + 0.25))


def _split(values: NDArray) -> NDArray:
    """Both halves of every chain as chains; the middle draw of an odd number is left out."""
    half = values.shape[1] // 2
    return np.concatenate([values[:, :half], values[:, values.shape[1] - half :]])


def _autocovariances(chains: NDArray) -> Array:
    """Biased autocovariances at every lag, of the shape of the chains."""
    n = chains.shape[1]
    centred = chains - chains.mean(axis=1, keepdims=True)
    size = 2 ** int(np.ceil(np.log2(2 * n)))
    spectrum = np.fft.rfft(centred, n=size, axis=1)
    return np.fft.irfft(np.abs(spectrum) ** 2, n=size, axis=1)[:, :n] / n


def _r_hat(values: NDArray) -> Array:
    split = _split(values)
    n = split.shape[1]
    within = split.var(axis=1, ddof=1).mean(axis=0)
    between = split.mean(axis=1).var(axis=0, ddof=1)
    safe = np.where(within > 0, within, 1.0)
    return np.where(within > 0, np.sqrt((n - 1) / n + between / safe), 1.0)
