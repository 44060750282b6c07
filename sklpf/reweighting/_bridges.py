"""Ratios of neighbouring normalisers from the sums that a run keeps for every pair of levels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.numbers import Array
from sklpf.reweighting._importance import MeanWeight


def bar_ratios(pair_sums: NDArray, shift: NDArray, counts: NDArray) -> Callable[[NDArray], Array]:
    """Bridges with a fixed reference (Meng & Wong 1996), at whose optimum they are Bennett's
    acceptance ratio.

    Parameters
    ----------
    pair_sums : ndarray of shape (G, K - 1, 4 or more)
        Sums of one round, as `LevelRound.pairs` returns them.
    shift : ndarray of shape (K - 1,)
        The reference. Where the levels have unequal numbers of states n_k the best is log Z_(k+1) /
        Z_k less log n_(k+1) / n_k.
    counts : ndarray of shape (G, K)
        States of every level in the sums.

    Returns
    -------
    callable
        A function of the indices of groups, which returns log Z_(k+1) / Z_k from their pooled sums,
        shape (K - 1,), in nats.
    """

    def ratios(keep):
        pooled = pair_sums[keep].sum(axis=0)
        n = counts[keep].sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return shift + np.log(pooled[:, 0]) - np.log(pooled[:, 1]) + np.log(n[1:] / n[:-1])

    return ratios


def stepping_stones(
    pair_sums: NDArray, shift: NDArray, counts: NDArray
) -> Callable[[NDArray], Array]:
    """Means of ratios f_(k+1) / f_k at level k, and of their inverses at level k + 1.

    Parameters
    ----------
    pair_sums, shift, counts
        As in `bar_ratios`.

    Returns
    -------
    callable
        A function of the indices of groups, which returns the forward and the reverse estimate of
        log Z_(k+1) / Z_k, shape (2, K - 1), in nats.
    """

    def ratios(keep):
        pooled = pair_sums[keep].sum(axis=0)
        n = counts[keep].sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.stack(
                [shift + np.log(pooled[:, 2] / n[:-1]), shift - np.log(pooled[:, 3] / n[1:])]
            )

    return ratios


def neighbour_overlap(pair_sums: NDArray, counts: NDArray) -> Array:
    """Return how far neighbouring levels overlap, shape (K - 1,): 1 if both are one distribution, 0
    if they are apart.

    2 sqrt(A B), A and B the means of the logistic weights of a bridge at the two levels of a pair.
    Where the reference is log Z_(k+1) / Z_k this is the `overlap` of as many states of each, 2
    times the integral of p q / (p + q). With a reference d nats too high it is 2 times the integral
    of p q / (p e^(d / 2) + q e^(-d / 2)).

    Parameters
    ----------
    pair_sums, counts
        As in `bar_ratios`; levels without states overlap with none.

    Returns
    -------
    ndarray of shape (K - 1,)
        One a pair.
    """
    pooled = pair_sums.sum(axis=0)
    n = np.maximum(counts.sum(axis=0), 1)
    return 2 * np.sqrt(pooled[:, 0] / n[:-1] * pooled[:, 1] / n[1:])


def with_first_ratio(curve: NDArray, first_ratio: MeanWeight | None) -> Array:
    """Return a curve with another log Z_1 / Z_0.

    Parameters
    ----------
    curve : ndarray of shape (K,)
        log Z_k - log Z_0.
    first_ratio : MeanWeight or None
        log Z_1 / Z_0 from elsewhere; None leaves the curve as it is.

    Returns
    -------
    ndarray of shape (K,)
        In nats.
    """
    if first_ratio is None:
        return curve
    return np.r_[curve[:1], curve[1:] - curve[1] + first_ratio.log_mean]


def with_first_error(std_errors: NDArray, first_ratio: MeanWeight | None) -> Array:
    """Standard errors of the curve that `with_first_ratio` gives.

    Parameters
    ----------
    std_errors : ndarray of shape (K,)
        Standard errors of the curve without that ratio.
    first_ratio : MeanWeight or None
        As in `with_first_ratio`.

    Returns
    -------
    ndarray of shape (K,)
        In nats.
    """
    if first_ratio is None:
        return std_errors
    return np.r_[std_errors[:1], np.hypot(std_errors[1:], first_ratio.std_error)]
