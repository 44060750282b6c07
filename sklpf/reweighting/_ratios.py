"""Ratios of two normalisers from log weights: by their mean where they are of one direction, by
Bennett's acceptance ratio where they are of both; and the bridges between the levels of a ladder.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit, log_expit

from sklpf._utils.numbers import Array
from sklpf._utils.validation import as_float64
from sklpf.uncertainty import log_mean_exp, standard_error


class MeanWeight(NamedTuple):
    """Log of a mean weight, and how sure it is.

    Attributes
    ----------
    log_mean : float
        In nats.
    delta, jackknife : float
        Its standard error by the delta method and by the jackknife.
    """

    log_mean: float
    delta: float
    jackknife: float

    @property
    def std_error(self) -> float:
        """The larger of the two."""
        return max(self.delta, self.jackknife)


def mean_weight(log_weights: Array) -> MeanWeight:
    """Log of the mean of independent weights (Neal 2001; Carlson et al. 2016, eq. 23).

    Parameters
    ----------
    log_weights : ndarray of shape (n,)
        In nats.

    Returns
    -------
    MeanWeight
        The log of the mean, and its standard errors.
    """
    n = len(log_weights)
    log_mean = float(log_mean_exp(log_weights))
    relative = np.exp(log_weights - log_mean)
    delta = standard_error(relative)
    # log mean of the others, less log_mean
    without = np.log(np.maximum(n - relative, np.finfo(float).tiny) / (n - 1))
    jackknife = float(np.sqrt((n - 1) / n * np.sum((without - without.mean()) ** 2)))
    return MeanWeight(log_mean, delta, jackknife)


class SeenFromTarget(NamedTuple):
    """Relative variance and effective share of the weights, as chains from the target say."""

    variance: float
    share: float


def seen_from_target(log_weights: Array, log_mean: float, alive: float = 1.0) -> SeenFromTarget:
    """Estimate of the weights w of forward chains from those w' of reverse chains.

    Seen from there E w' = E w^2 / E w and E 1 / w' = P(w > 0) / E w, so that
    Var w / (E w)^2 = E w' E 1 / w' / P(w > 0) - 1.

    Parameters
    ----------
    log_weights : ndarray of shape (m,)
        log w', minus the sums of log f_(k+1) - log f_k.
    log_mean : float
        Log of the mean of w.
    alive : float, default=1.0
        P(w > 0).

    Returns
    -------
    SeenFromTarget
        ``variance``, relative, and the effective ``share`` of the weights.
    """
    seen_mean = float(log_mean_exp(log_weights))
    inverse = float(log_mean_exp(-log_weights))
    with np.errstate(over="ignore"):
        variance = float(np.expm1(max(seen_mean + inverse, 0.0) - np.log(alive)))
    return SeenFromTarget(variance, float(np.exp(min(log_mean - seen_mean, 0.0))))


def population_seen_from_target(
    reverse: NDArray,
    resampled: NDArray,
    log_means: NDArray,
    n_particles: int,
    log_weights: Array | float = 0.0,
) -> float:
    """Relative variance of a population's estimate of Z, as reverse chains from the target
    say.

    A population that holds a draw from the target, with its path, has the estimate Z' with E Z' / Z
    = E Z_hat^2 / Z^2. Its other N - 1 particles are taken for average ones: then the draw
    multiplies the mean weight between one resampling and the next by 1 + (r - 1) / N, r its own
    weight there relative to that mean.

    Parameters
    ----------
    reverse : ndarray of shape (n, K - 1) or (G, n, K - 1)
        log f_(k+1) - log f_k of the chains on their way; of chains of its own for each population.
    resampled : ndarray of shape (G, K)
        Whether the populations were resampled at each level.
    log_means : ndarray of shape (G, K)
        Their estimates of log Z_k / Z_0, all finite.
    n_particles : int
        Particles N of a population.
    log_weights : ndarray of shape (G,), default=0.0
        Logs of the populations' weights, whose mean is 1. Where the estimates of Z differ much,
        weights in proportion to these, which Z' multiplies, make the variance no larger than it is.

    Returns
    -------
    float
        Var Z_hat / Z^2.
    """
    reverse = np.broadcast_to(reverse, (len(log_means), *reverse.shape[-2:]))
    growth = np.empty(reverse.shape[:2])
    for g in range(len(log_means)):
        totals = np.column_stack([np.zeros(reverse.shape[1]), np.cumsum(reverse[g], axis=1)])
        cuts = np.r_[0, np.flatnonzero(resampled[g, 1:-1]) + 1, totals.shape[1] - 1]
        with np.errstate(over="ignore"):
            relative = np.exp(np.diff(totals[:, cuts], axis=1) - np.diff(log_means[g, cuts]))
        growth[g] = np.sum(np.log1p((relative - 1) / n_particles), axis=1)
    growth += np.reshape(log_weights, (-1, 1))
    with np.errstate(over="ignore"):
        return float(np.expm1(max(float(log_mean_exp(growth)), 0.0)))


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
