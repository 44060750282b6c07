"""Monte Carlo error: jackknife over independent groups, t-tests, correlated draws, and the Pareto
tail of importance weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from scipy.stats import f as fisher_f
from scipy.stats import genpareto, rankdata
from scipy.stats import t as student_t

from sklpf._utils.numbers import Array

__all__ = [
    "MOST_BETWEEN",
    "Difference",
    "ParetoTail",
    "between_groups",
    "difference",
    "effective_sample_size",
    "effective_draws",
    "groups_persist",
    "jackknife",
    "log_mean_exp",
    "pareto_shape",
    "pareto_tail",
    "rank_normalised",
    "split_r_hat",
    "standard_error",
    "t_bound",
    "t_ratio",
]


_FEWEST = 4  # draws in half a chain, below which nothing is said about correlations
_FALSE_ALARM = 1e-3  # of each test on a run, two-sided
_MATERIAL = 0.01  # nats: smaller differences raise no alarm, however certain they are
# share of the variance that lies between groups: about 0.03 with 30 independent states in each,
# near 1 with groups in different modes
MOST_BETWEEN = 0.1
_ROUNDING = 1e-9  # differences (nats) that no test looks at


class Variance(NamedTuple):
    """An estimate of the variance of a number, and its degrees of freedom.

    Attributes
    ----------
    value : float
        The square of the standard error.
    df : float
        Degrees of freedom of Student's t; inf where the variance is known.
    """

    value: float
    df: float = np.inf

    @property
    def std_error(self) -> float:
        """The number's standard error."""
        return float(np.sqrt(self.value))

    def half_width(self, level: float) -> float:
        """Return how far an interval by Student's t reaches to either side.

        Parameters
        ----------
        level : float
            Probability with which it covers.

        Returns
        -------
        float
        """
        return float(student_t.ppf(0.5 + level / 2, self.df) * self.std_error)

    def plus(self, other: Variance, weight: float = 1.0) -> Variance:
        """Return the variance of a sum, with the degrees of freedom of Welch and Satterthwaite.

        Parameters
        ----------
        other : Variance
            That of another number, which is independent.
        weight : float, default=1.0
            What the other number is multiplied by.

        Returns
        -------
        Variance
        """
        added = float(weight * other.std_error) ** 2
        value = self.value + added
        spread = self.value * self.value / self.df + added * added / other.df
        return Variance(value, value * value / spread if 0 < spread < np.inf else np.inf)


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


def standard_error(values: NDArray) -> float:
    """Standard error of the mean of independent numbers, such as influences of chains.

    Parameters
    ----------
    values : ndarray of shape (n,)
        At least two.

    Returns
    -------
    float
        In the unit of the values.
    """
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def t_bound(n_groups: int, n_tests: int = 1) -> float:
    """Return the absolute t statistic that one of some tests exceeds in 0.1 % of the runs by
    chance.

    Parameters
    ----------
    n_groups : int
        Number of independent groups.
    n_tests : int, default=1
        How many tests share the probability of a false alarm.

    Returns
    -------
    float
        For both sides.
    """
    return float(student_t.isf(_FALSE_ALARM / 2 / n_tests, n_groups - 1))


def t_ratio(difference: ArrayLike, std_error: ArrayLike) -> float:
    """Return difference / std_error; 0 where the difference is rounding or NaN, and the difference
    itself where it is infinite, whatever its error.

    Parameters
    ----------
    difference : float
        The difference to test.
    std_error : float
        Its standard error.

    Returns
    -------
    float
        The t statistic.
    """
    value = float(np.asarray(difference))
    if not abs(value) > _ROUNDING:
        return 0.0
    if np.isinf(value):
        return value
    with np.errstate(divide="ignore"):  # infinite where the standard error is 0
        return float(np.divide(value, std_error))


class Difference(NamedTuple):
    """A difference of two estimates that should be 0.

    Attributes
    ----------
    value : float
        In nats.
    t : float
        Its t statistic.
    """

    value: float
    t: float

    def alarms(self, n_groups: int) -> bool:
        """Whether the difference is neither chance nor immaterial.

        Parameters
        ----------
        n_groups : int
            Number of independent groups.

        Returns
        -------
        bool
            Whether t is beyond `t_bound` and the value above 0.01 nats.
        """
        return abs(self.t) > t_bound(n_groups) and abs(self.value) > _MATERIAL


def difference(function: Callable[[NDArray], ArrayLike], n_groups: int) -> Difference:
    """Return a difference, given as a function of the groups to use, by the jackknife.

    Parameters
    ----------
    function : callable
        function(keep) is the difference, in nats, from the groups ``keep`` alone.
    n_groups : int
        Number of independent groups.

    Returns
    -------
    Difference
        Its value and its t statistic.
    """
    value, std_error = jackknife(function, n_groups)
    return Difference(float(value), t_ratio(value, std_error))


def groups_persist(halves: NDArray) -> bool:
    """Return whether groups differ by more than their own two halves do.

    Where chains forget where they began, the halves of one group differ as much as those of two:
    else groups are still near their starts, and their mean is biased by what these have in common.

    Parameters
    ----------
    halves : ndarray of shape (2, G)
        Estimates of one number, in nats, by the first and the second half of every group.

    Returns
    -------
    bool
        Whether the F statistic is one that occurs in 0.1 % of the runs by chance, and the standard
        error of the mean is above 0.01 nats. What all groups have drifted by is taken off.
    """
    n_groups = halves.shape[1]
    between = 2 * np.var(halves.mean(axis=0), ddof=1)
    within = np.var(halves[0] - halves[1], ddof=1) / 2
    bound = fisher_f.isf(_FALSE_ALARM, n_groups - 1, n_groups - 1)
    return bool(between > max(bound * within, 2 * n_groups * _MATERIAL**2))


def between_groups(sums: NDArray, squares: NDArray, n: ArrayLike) -> float:
    """Share of the variance of states that lies between groups: sum_j Var_g(mean of s_gj) / sum_j
    Var(s_j).

    Near 1 / (independent states in a group) where groups sample one distribution, and of the order
    of 1 where each sits in a mode of its own. It needs no estimate of autocorrelation.

    Parameters
    ----------
    sums, squares : ndarray of shape (G, S)
        Sums over every group's states of the S numbers that describe them, and of their squares.
    n : float or ndarray of shape (G,)
        States of every group, or the sum of their weights where states are weighted.

    Returns
    -------
    float
        At least 0.
    """
    n_groups = len(sums)
    n = np.broadcast_to(n, n_groups).astype(float)[:, np.newaxis]
    mean = sums.sum(axis=0) / n.sum()
    mean_square = squares.sum(axis=0) / n.sum()
    total = np.sum(mean_square - mean**2)
    rounding = 1e-12 * np.sum(mean_square)
    between = (
        np.sum((sums - n * mean) ** 2 / np.maximum(n, np.finfo(float).tiny))
        / n.sum()
        * n_groups
        / (n_groups - 1)
    )
    return float(between / total) if total > rounding else 0.0


def jackknife(estimate: Callable[[NDArray], ArrayLike], n_groups: int) -> tuple[NDArray, NDArray]:
    """Delete-one-group jackknife (Quenouille 1956, Tukey 1958).

    Parameters
    ----------
    estimate : callable
        Takes an index array of the groups to use; returns a float or an array.
    n_groups : int
        At least 2 independent groups.

    Returns
    -------
    value : ndarray
        The estimate from all groups.
    std_error : ndarray
        sqrt((G - 1) / G * sum_g (estimate without g - their mean) ** 2), of the same shape.
    """
    if n_groups < 2:
        raise ValueError(f"a jackknife needs at least 2 groups, got {n_groups}")
    everything = np.arange(n_groups)
    # An estimate that is infinite without some group has no error. Ratios of levels that do not
    # overlap are infinite, and their differences NaN: alarms say so.
    with np.errstate(invalid="ignore", over="ignore"):
        value = np.asarray(estimate(everything), dtype=float)
        without = np.array(
            [estimate(np.delete(everything, g)) for g in range(n_groups)], dtype=float
        )
        spread = np.sum((without - without.mean(axis=0)) ** 2, axis=0)
    return value, np.sqrt((n_groups - 1) / n_groups * spread)


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
