"""Ladders of inverse temperatures: fixed shapes, and re-spacing by a measured local cost."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import PchipInterpolator
from scipy.special import expit

from sklpf._utils.numbers import Array
from sklpf._utils.validation import check_count
from sklpf.paths._base import check_ladder

LADDERS = ("linear", "power", "sigmoid", "salakhutdinov-murray")


def make_ladder(kind: str | ArrayLike, n_temperatures: int) -> Array:
    """Return `n_temperatures` inverse temperatures from 0 to 1.

    Parameters
    ----------
    kind : {"linear", "power", "sigmoid", "salakhutdinov-murray"} or array-like
        "power" is the square of the linear ladder (dense near the base), "sigmoid" is dense at both
        ends (logistic from -4 to 4), "salakhutdinov-murray" has three linear pieces with the
        spacing proportions of their 2008 RBM study: 0 to 0.5 by a thirtieth of the levels, to 0.9
        by 0.27, to 1 by the rest. An array is checked and returned as it is.
    n_temperatures : int
        Number of levels K, at least 2.

    Returns
    -------
    ndarray of shape (n_temperatures,)
        Increasing, and read-only.

    Raises
    ------
    ValueError
        If `kind` is unknown or an array is no increasing sequence in [0, 1].
    """
    if not isinstance(kind, str):
        return check_ladder(kind)
    check_count(n_temperatures, "n_temperatures", at_least=2)
    x = np.linspace(0, 1, n_temperatures)
    y = expit(8 * x - 4)
    shapes = {
        "linear": x,
        "power": x**2,
        "sigmoid": np.r_[0.0, ((y - y[0]) / (y[-1] - y[0]))[1:-1], 1.0],
        # their 14,500 levels: 500 up to 0.5, 4,000 up to 0.9, 10,000 up to 1
        "salakhutdinov-murray": np.interp(x, [0, 500 / 14500, 4500 / 14500, 1], [0, 0.5, 0.9, 1]),
    }
    if kind not in shapes:
        raise ValueError(
            f"ladder must be one of {LADDERS} or an array of inverse temperatures, got {kind!r}"
        )
    return check_ladder(shapes[kind])


def respace(ladder: ArrayLike, costs: ArrayLike, n_temperatures: int) -> Array:
    """Place levels at equal cumulative cost (Syed et al. 2022), by monotone interpolation.

    Parameters
    ----------
    ladder : array-like of shape (K,)
        The levels at which the costs were measured.
    costs : array-like of shape (K - 1,)
        Cost of every interval: a swap's rejection probability, or the standard deviation of the log
        ratio.
    n_temperatures : int
        Number of levels of the new ladder.

    Returns
    -------
    ndarray of shape (n_temperatures,)
    """
    ladder = np.asarray(ladder, dtype=float)
    costs = np.asarray(costs, dtype=float)
    # keeps the cumulative cost invertible where nothing was rejected
    floor = 1e-3 * costs.sum() + 1e-12
    cumulative = np.r_[0, np.cumsum(costs + floor * np.diff(ladder))]
    if not np.all(np.diff(cumulative) > 0):
        raise ValueError(
            "levels can't be told apart: the target is too steep; check the parameters of the"
            " model, or give a density of your own a base that covers it more closely"
        )
    beta = PchipInterpolator(cumulative, ladder)(np.linspace(0, cumulative[-1], n_temperatures))
    beta[0] = ladder[0]
    beta[-1] = ladder[-1]
    if not np.all(np.diff(beta) > 0):
        raise ValueError(
            "levels can't be told apart: the base is much too narrow or too wide for the target;"
            " give another base"
        )
    return check_ladder(beta)
