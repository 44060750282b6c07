"""Monte Carlo error: jackknife over independent groups, t-tests, correlated draws, and the Pareto
tail of importance weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from scipy.stats import chi2, genpareto, rankdata
from scipy.stats import f as fisher_f
from scipy.stats import t as student_t

from sklpf._utils.numbers import Array

__all__ = [
    "MOST_BETWEEN",
    "Difference",
    "ParetoTail",
    "between_groups",
    "count_interleaved",
    "deinterleaved",
    "difference",
    "effective_sample_size",
    "effective_draws",
    "first_axis_is_time",
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


_FEWEST = 4  # draws in half a chain, below which correlations are not estimated
_N_BATCHES = (10, 20, 40, 80, 160)  # whose means are compared
FALSE_ALARM = 1e-3  # of each test on a run
MATERIAL_DIFFERENCE = 0.01  # nats: smaller differences raise no alarm, however certain they are
# share of the variance that lies between groups: about 0.03 with 30 independent states in each,
# near 1 with groups in different modes
MOST_BETWEEN = 0.1
_ROUNDING = 1e-9  # differences (nats) that no test looks at
# of the order of draws
_FALSE_ORDER = 1e-5  # probability by which draws in the right order look like another one
_LEAST_PEAK = 0.03  # autocorrelation: smaller ones hardly change a number of draws
_SAME_PEAK = 0.8  # of the highest: the first that is as high is the period
_FEWEST_APART = 30.0  # effective draws, without which no peak is told from noise


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

    Autocorrelations come from all of them together and count the variance between chains; they are
    summed by Geyer's initial monotone sequence. Means of batches of several lengths, each over all
    chains, contradict a sum that ended too early, or chains that depend on each other: the largest
    time that they show beyond chance is taken instead.

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
        From 1 to ``n log10(n)``, n all draws together; n where the numbers are all equal, or of a
        single chain that is too short to say. Of several that are short each counts as one batch.
    """
    values = np.asarray(values, dtype=np.float64)
    n_all = values.shape[0] * values.shape[1]
    chains = _split(values) if split else values
    n_draws = chains.shape[1]
    if n_draws < _FEWEST:
        return _effective_of_short(values)

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
    by_batches = _time_of_batches(values, np.where(varies, total, np.inf), autocorrelation_time)
    autocorrelation_time = np.maximum(autocorrelation_time, by_batches)
    return np.where(varies, np.maximum(n_all / autocorrelation_time, 1.0), n_all)


def _effective_of_short(values: NDArray) -> Array:
    """Effective draws of chains in which nothing can be seen of correlations: all of them, unless
    the means of chains differ by more than chance.
    """
    n_chains, n_draws = values.shape[:2]
    n_all = np.full(values.shape[2:], float(n_chains * n_draws))
    variance = values.var(axis=(0, 1))
    if n_chains < 2 or not n_draws:
        return n_all
    time = n_draws * values.mean(axis=1).var(axis=0, ddof=1)
    is_longer = time > variance * _largest_ratio(n_chains, n_all.size)
    return np.where(is_longer, n_all * variance / np.where(is_longer, time, 1.0), n_all)


def _time_of_batches(values: NDArray, variance: Array, known: Array) -> Array:
    """The largest autocorrelation time (...) by means of batches that is longer than a known one by
    more than chance; 0 where none is.

    A batch holds the draws of all chains in some steps, so that chains which depend on each other
    count. There are 10 to 160 of them.
    """
    n_chains, n_draws = values.shape[:2]
    by_step = values.mean(axis=0)
    longest = np.zeros(by_step.shape[1:])
    counts = [n for n in _N_BATCHES if n_draws >= _FEWEST * n]
    for n in counts:
        length = n_draws // n
        means = by_step[: n * length].reshape(n, length, *longest.shape).mean(axis=1)
        time = n_chains * length * means.var(axis=0, ddof=1) / variance
        is_longer = time > known * _largest_ratio(n, len(counts) * longest.size)
        longest = np.where(is_longer, np.maximum(longest, time), longest)
    return longest


def _largest_ratio(n: int, n_tests: int) -> float:
    """The ratio of a variance of n means to the known one that one of some tests exceeds in 0.1 %
    of the cases by chance.
    """
    return float(chi2.isf(FALSE_ALARM / n_tests, n - 1)) / (n - 1)


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


def count_interleaved(values: ArrayLike) -> int:
    """Return how many chains take turns in what is given as one: the walkers of an ensemble, whose
    draws of each step stand one after another.

    Such a series is like itself again at multiples of their number. In a reversible chain sums of
    neighbouring autocorrelations fall to noise, and of one that oscillates some are negative. What
    rises from noise at larger lags is neither, with a false alarm of 1e-5.

    Parameters
    ----------
    values : array-like of shape (n_chains, n_draws, p)
        Several numbers for each draw in its order; infinite ones are allowed.

    Returns
    -------
    int
        1 where none are found.
    """
    columns = _whitened(np.asarray(values, dtype=np.float64))
    n_chains, n_draws, n_columns = columns.shape
    if n_draws < 2 * _FEWEST or not n_columns:
        return 1
    lags = np.arange(n_draws // 2 + 1)
    n_pairs = n_chains * n_columns * (n_draws - lags)
    products = sum(
        _autocovariances(columns[:, :, [j]])[:, lags, 0].sum(axis=0) * n_draws
        for j in range(n_columns)
    )
    correlations = products / n_pairs
    correlations /= correlations[0]

    bound = -ndtri(_FALSE_ORDER / len(lags))
    noise = bound / np.sqrt(n_pairs)  # of independent draws
    pairs = correlations[: len(lags) // 2 * 2].reshape(-1, 2).sum(axis=1)
    noise_begins = 2 * int(np.argmax(np.append(pairs, -1.0) <= noise[0]))
    spread = 1 + 2 * np.sum(correlations[1:noise_begins] ** 2)  # Bartlett's formula
    if n_chains * n_draws < _FEWEST_APART * spread or noise_begins == len(lags):
        return 1
    rises = np.diff(correlations, prepend=np.inf) > 0
    # A drift lifts and scatters all lags, of draws that take turns half of them or more are noise.
    low, quarter = np.quantile((correlations * np.sqrt(n_pairs))[noise_begins:], [0.05, 0.25])
    scatter = (quarter - low) / (ndtri(0.25) - ndtri(0.05))
    noise = max(quarter, 0.0) + bound * max(np.sqrt(spread), scatter)
    beyond = correlations > noise / np.sqrt(n_pairs)
    peaks = np.where((lags >= noise_begins) & rises & beyond, correlations, 0.0)
    if peaks.max() < _LEAST_PEAK:
        return 1
    first = int(np.argmax(peaks >= _SAME_PEAK * peaks.max()))
    return first if correlations[:first].min() > -peaks[first] / 2 else 1


def deinterleaved(values: NDArray, n_interleaved: int) -> NDArray:
    """Return the chains that take turns in others, without the last steps that not all have.

    Parameters
    ----------
    values : ndarray of shape (n_chains, n_draws, ...)
        Draws, or numbers for each.
    n_interleaved : int
        Of each, as `count_interleaved` gives it.

    Returns
    -------
    ndarray of shape (n_chains * n_interleaved, n_draws // n_interleaved, ...)
    """
    n_chains, n_draws, *own = values.shape
    n_steps = n_draws // n_interleaved
    in_turn = values[:, : n_steps * n_interleaved].reshape(n_chains, n_steps, n_interleaved, *own)
    return in_turn.swapaxes(1, 2).reshape(n_chains * n_interleaved, n_steps, *own)


def first_axis_is_time(values: ArrayLike) -> bool:
    """Return whether draws are given with their steps first: neighbours along the first axis are
    alike, more than those along the second.

    Independent chains have no order. The test is that of their permutations.

    Parameters
    ----------
    values : array-like of shape (n_chains, n_draws, p)
        Several numbers for each draw.

    Returns
    -------
    bool
        True by chance in 1e-5 of the cases.
    """
    columns = _whitened(np.asarray(values, dtype=np.float64))
    n_first, n_second, n_columns = columns.shape
    if n_first < 2 * _FEWEST or not n_columns:
        return False
    along_first = np.mean(columns[1:] * columns[:-1])
    along_second = np.mean(columns[:, 1:] * columns[:, :-1]) if n_second > 1 else 0.0

    # Of rows in random order a pair of neighbours is any pair, and pairs hardly depend.
    rows = columns.reshape(n_first, -1)
    small = rows @ rows.T if n_first <= rows.shape[1] else rows.T @ rows
    squares = np.sum(rows**2, axis=1)
    apart = n_first * (n_first - 1)
    mean = (np.sum(rows.sum(axis=0) ** 2) - squares.sum()) / apart
    variance = (np.sum(small**2) - np.sum(squares**2)) / apart - mean**2
    spread = np.sqrt(max(variance, 0.0) / (n_first - 1)) / rows.shape[1]
    bound = mean / rows.shape[1] - ndtri(_FALSE_ORDER) * spread
    return bool(along_first > max(bound, along_second, _LEAST_PEAK))


def _whitened(
    values: NDArray,
    *,
    most_columns: int = 32,  # that are looked at
) -> Array:
    """Some uncorrelated columns with the ranks of all, (n_chains, n_draws, at most 32)."""
    chosen = np.flatnonzero(np.any(values != values[:1, :1], axis=(0, 1)))
    if not len(chosen):
        return np.empty((*values.shape[:2], 0))
    if len(chosen) > most_columns:
        chosen = chosen[np.linspace(0, len(chosen) - 1, most_columns).astype(int)]
    ranks = rank_normalised(values[..., chosen])
    ranks -= ranks.mean(axis=(0, 1))
    flat = ranks.reshape(-1, len(chosen))
    variances, axes = np.linalg.eigh(flat.T @ flat / max(len(flat), 1))
    kept = variances > 1e-6 * variances.max(initial=0.0)
    columns = flat @ (axes[:, kept] / np.sqrt(variances[kept]))
    return columns.reshape(*ranks.shape[:2], columns.shape[1])


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
    return float(student_t.isf(FALSE_ALARM / 2 / n_tests, n_groups - 1))


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
        """True if the difference is neither chance nor immaterial.

        Parameters
        ----------
        n_groups : int
            Number of independent groups.

        Returns
        -------
        bool
            Whether t is beyond `t_bound` and the value above 0.01 nats.
        """
        return abs(self.t) > t_bound(n_groups) and abs(self.value) > MATERIAL_DIFFERENCE


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
    bound = fisher_f.isf(FALSE_ALARM, n_groups - 1, n_groups - 1)
    return bool(between > max(bound * within, 2 * n_groups * MATERIAL_DIFFERENCE**2))


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
