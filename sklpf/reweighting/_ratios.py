"""Ratios of two normalisers from log weights of both directions, by Bennett's acceptance ratio, and
the bridges between the levels of a ladder.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit, log_expit

from sklpf._utils.numbers import Array
from sklpf._utils.validation import as_float64
from sklpf.uncertainty import MeanWeight


def bar(
    forward_log_weights: ArrayLike,
    reverse_log_weights: ArrayLike,
    *,
    log_odds: float | None = None,
) -> float:
    """Return log Z_1 / Z_0 by Bennett's acceptance ratio (Bennett 1976; Carlson et al. 2016, eq.
    17).

    The solution L of

        mean_i sigma(u_i - L + C) = e^C mean_j sigma(r_j + L - C),   C = log(n_reverse / n_forward),

    which exists, is unique, and has the smallest asymptotic variance of all bridges between two
    sets of independent draws. Both sides are compared by their logs, so that draws that hardly
    overlap still give a well-defined root. For annealing runs this is the same equation between the
    two path densities (Crooks 2000).

    Parameters
    ----------
    forward_log_weights : array-like of shape (n_forward,)
        u = log f_1 / f_0 at draws from p_0, or the log weights of chains annealed from p_0 to p_1,
        in nats. -inf is a weight of zero.
    reverse_log_weights : array-like of shape (n_reverse,)
        r = log f_0 / f_1 at draws from p_1, or the log weights of chains annealed from p_1 to p_0.
    log_odds : float or None, default=None
        C of draws that are correlated: the log ratio of their effective numbers, with which the
        bridge is optimal (Meng & Wong 1996). None is that of the numbers themselves.

    Returns
    -------
    float
        log Z_1 / Z_0 in nats.

    Raises
    ------
    ValueError
        If a side is empty, holds NaN or +inf, or has no weight above zero.
    """
    u = _check(forward_log_weights, "forward_log_weights")
    r = _check(reverse_log_weights, "reverse_log_weights")
    log_count_ratio = np.log(len(r) / len(u))
    shift = log_count_ratio if log_odds is None else log_odds

    def excess(log_ratio):
        return (
            _log_sum(log_expit(u - log_ratio + shift))
            - _log_sum(log_expit(r + log_ratio - shift))
            + (log_count_ratio - shift)  # sums to means
        )

    low, high = _bracket(excess, _log_sum(u) - np.log(len(u)), np.log(len(r)) - _log_sum(r))
    # Halving an interval of any two float64 takes fewer than 2000 steps.
    return float(brentq(excess, low, high, xtol=1e-12, rtol=1e-14, maxiter=2000))


def overlap(
    forward_log_weights: ArrayLike, reverse_log_weights: ArrayLike, log_ratio: float
) -> float:
    """Return how far the two sets of draws overlap: 1 if they have one distribution, near 0 if
    nothing connects them.

    One minus the second eigenvalue of the 2 x 2 overlap matrix (Klimovich, Shirts & Mobley 2015):
    (1 / n_forward + 1 / n_reverse) sum p (1 - p) over all draws, p the posterior of the direction
    at `log_ratio`.

    Parameters
    ----------
    forward_log_weights, reverse_log_weights : array-like of shape (n,) and (m,)
        As in `bar`.
    log_ratio : float
        Log of the ratio of the two normalisers, in nats.

    Returns
    -------
    float
        From 0 to 1.
    """
    u = np.asarray(forward_log_weights, dtype=float)
    r = np.asarray(reverse_log_weights, dtype=float)
    logits = np.concatenate([u, -r]) - log_ratio + np.log(len(r) / len(u))
    return float((1 / len(u) + 1 / len(r)) * np.sum(expit(logits) * expit(-logits)))


def _check(log_weights: ArrayLike, name: str) -> Array:
    log_weights = as_float64(log_weights, name)
    if log_weights.ndim != 1 or len(log_weights) == 0:
        raise ValueError(
            f"{name} must be a sequence of at least one log weight, got shape {log_weights.shape}"
        )
    if np.any(np.isnan(log_weights) | (log_weights == np.inf)):
        raise ValueError(
            f"{name} must not hold NaN or +inf; check the densities that they come from"
        )
    if np.all(log_weights == -np.inf):
        raise ValueError(
            f"{name} are all -inf: no draw has a weight above zero, so the ratio is not determined"
        )
    return log_weights


def _log_sum(log_weights: Array) -> float:
    return np.logaddexp.reduce(log_weights)


def _bracket(decreasing, one_end: float, other_end: float) -> tuple[float, float]:
    """Widen an interval around two guesses until it holds the root of a decreasing function."""
    low, high = min(one_end, other_end) - 1, max(one_end, other_end) + 1
    # a step that changes the numbers, whatever their size
    width = max(high - low, 1e-12 * max(abs(low), abs(high)))
    while decreasing(low) < 0:
        low = low - width
        width = 2 * width
    while decreasing(high) > 0:
        high = high + width
        width = 2 * width
    return low, high


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
        forward, reverse = _log_pair_means(pair_sums[keep], counts[keep])[:2]
        with np.errstate(invalid="ignore"):  # NaN where the levels don't overlap at all
            return shift + forward - reverse

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
        forward, reverse = _log_pair_means(pair_sums[keep], counts[keep])[2:]
        return np.stack([shift + forward, shift - reverse])

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
    forward, reverse = _log_pair_means(pair_sums, counts)[:2]
    return 2 * np.exp(np.fmax((forward + reverse) / 2, -np.inf))


def _log_pair_means(pair_sums: NDArray, counts: NDArray) -> Array:
    """Logs of the means (4, K - 1) of what is summed over pairs, by all states of all groups; NaN
    where a level has none.
    """
    n = counts.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(pair_sums.sum(axis=0)[:, :4].T / np.tile([n[:-1], n[1:]], (2, 1)))


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
