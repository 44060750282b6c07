"""Monte Carlo error of what is independent: the mean of weights, their effective number and the
Pareto tail of those of importance; and groups of draws, by the jackknife and t-tests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import f as fisher_f
from scipy.stats import genpareto
from scipy.stats import t as student_t

from sklpf._utils.numbers import Array

FALSE_ALARM = 1e-3  # of each test on a run
MATERIAL_DIFFERENCE = 0.01  # nats: smaller differences raise no alarm, however certain they are
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


# ---- weights
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


# ---- groups
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
