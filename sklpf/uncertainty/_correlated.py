"""Draws that depend on each other: how many independent ones chains are worth, and whether draws
are given in the order of their chains.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from scipy.stats import chi2, rankdata

from sklpf._utils.numbers import Array
from sklpf.uncertainty._independent import FALSE_ALARM

_FEWEST = 4  # draws in half a chain, below which correlations are not estimated
_N_BATCHES = (10, 20, 40, 80, 160)  # whose means are compared
# of the order of draws
_FALSE_ORDER = 1e-5  # probability by which draws in the right order look like another one
_LEAST_PEAK = 0.03  # autocorrelation: smaller ones hardly change a number of draws
_SAME_PEAK = 0.8  # of the highest: the first that is as high is the period
_FEWEST_APART = 30.0  # effective draws, without which no peak is told from noise


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
