"""Tests on differences between estimates from the same independent groups, and between these."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import f as fisher_f
from scipy.stats import t as student_t

from sklpf.uncertainty._jackknife import jackknife

_FALSE_ALARM = 1e-3  # of each test on a run, two-sided
_MATERIAL = 0.01  # nats: smaller differences raise no alarm, however certain they are
# share of the variance that lies between groups: about 0.03 with 30 independent states in each,
# near 1 with groups in different modes
MOST_BETWEEN = 0.1
_ROUNDING = 1e-9  # differences (nats) that no test looks at


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
    """Return difference / std_error; 0 where the difference is rounding.

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
    if not abs(float(np.asarray(difference))) > _ROUNDING:
        return 0.0
    with np.errstate(divide="ignore"):  # infinite where the standard error is 0
        return float(np.divide(difference, std_error))


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
    return Difference(float(value), t_ratio(value, std_error) if std_error > 0 else 0.0)


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
    n = np.broadcast_to(np.asarray(n, dtype=float)[..., np.newaxis], (len(sums), 1))
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
