"""Ratios of neighbouring normalisers from the sums that replica exchange keeps for every pair of levels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray


def bar_ratios(pair_sums: NDArray, shift: NDArray) -> Callable[[NDArray], NDArray[np.float64]]:
    """Bridges with a fixed reference (Meng & Wong 1996), at whose optimum they are Bennett's acceptance ratio.

    Parameters
    ----------
    pair_sums : ndarray of shape (G, K - 1, 5)
        As in `ExchangeRun`, of each ladder.
    shift : ndarray of shape (K - 1,)
        The reference.

    Returns
    -------
    callable
        Of indices of ladders: log Z_(k+1) / Z_k from their pooled sums, shape (K - 1,), in nats.
    """

    def ratios(keep):
        pooled = pair_sums[keep].sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return shift + np.log(pooled[:, 0]) - np.log(pooled[:, 1])

    return ratios


def stepping_stones(pair_sums: NDArray, shift: NDArray, n_scans: int) -> Callable[[NDArray], NDArray[np.float64]]:
    """Means of ratios f_(k+1) / f_k at level k, and of their inverses at level k + 1.

    Parameters
    ----------
    pair_sums, shift
        As in `bar_ratios`.
    n_scans : int
        Scans that the sums were taken over.

    Returns
    -------
    callable
        Of indices of ladders: the forward and the reverse estimate of log Z_(k+1) / Z_k, shape (2, K - 1), in nats.
    """

    def ratios(keep):
        pooled, n = pair_sums[keep].sum(axis=0), n_scans * len(keep)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.stack([shift + np.log(pooled[:, 2] / n), shift - np.log(pooled[:, 3] / n)])

    return ratios
