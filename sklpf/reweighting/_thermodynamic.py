"""Thermodynamic integration: log Z as the integral of its slope over beta."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import cumulative_simpson
from scipy.special import log_softmax, logsumexp

from sklpf._utils.numbers import Array

RULES = ("left", "right", "trapezoid", "corrected", "simpson")


class Moments(NamedTuple):
    """First and second derivative of log Z by beta at every level, both (K,)."""

    slope: Array
    curvature: Array


def level_moments(level_sums: NDArray, ladder: NDArray) -> Moments:
    """d log Z / d beta = E U and d^2 log Z / d beta^2 = Var U + E dU / d beta, U = d log f / d
    beta.

    Parameters
    ----------
    level_sums : ndarray of shape (K, 4)
        Number of states, sums of U, U^2 and dU / d beta at every level. Levels without states are
        interpolated.
    ladder : ndarray of shape (K,)
        Inverse temperatures.

    Returns
    -------
    Moments
        slope and curvature, (K,) each.
    """
    order = np.argsort(ladder)  # that of other programs' runs may fall
    seen = order[level_sums[order, 0] > 0]
    first, square, bend = (level_sums[seen, 1:] / level_sums[seen, :1]).T
    return Moments(
        *(np.interp(ladder, ladder[seen], values) for values in (first, square - first**2 + bend))
    )


def reweighted_slopes(vectors: NDArray, slopes: NDArray, log_pseudo_prior: NDArray) -> Array:
    """E U at every level from the states of all levels (Carlson et al. 2016, equation 21), shape
    (K,).

    Parameters
    ----------
    vectors : ndarray of shape (N, K)
        log f_k(x), but for a constant of every x, in nats.
    slopes : ndarray of shape (N, K) or (N, 1)
        U of every x at every level.
    log_pseudo_prior : ndarray of shape (K,)
        The states are drawn from the mixture of all f_k in proportion to its exponentials.

    Returns
    -------
    ndarray of shape (K,)
        E U of each level.
    """
    log_q = log_softmax(vectors + log_pseudo_prior, axis=1)
    return np.sum(np.exp(log_q - logsumexp(log_q, axis=0)) * slopes, axis=0)


def integrate(ladder: NDArray, moments: Moments, rule: str) -> Array:
    """Return log Z_k - log Z_0 (K,) in nats by a rule of quadrature.

    Parameters
    ----------
    ladder : ndarray of shape (K,)
        Inverse temperatures.
    moments : Moments
        Moments of U at every level.
    rule : {"left", "right", "trapezoid", "corrected", "simpson"}
        Where log f is linear in beta log Z is convex, so that "left" and "right" are too small and
        too large. "corrected" subtracts h^2 / 12 times the change of the curvature from every step
        of the trapezoidal rule (Friel, Hurn & Wyse 2014). "simpson" needs no second derivative.

    Returns
    -------
    ndarray of shape (K,)
        log Z_k - log Z_0 in nats.
    """
    slope, curvature = moments
    if rule == "simpson" and len(ladder) > 2:
        order = np.argsort(ladder)
        integral = np.empty(len(ladder))
        integral[order] = cumulative_simpson(slope[order], x=ladder[order], initial=0)
        return integral - integral[0]
    h = np.diff(ladder)
    steps = {
        "left": h * slope[:-1],
        "right": h * slope[1:],
        "corrected": h * (slope[1:] + slope[:-1]) / 2 - h**2 / 12 * np.diff(curvature),
    }
    return np.r_[0.0, np.cumsum(steps.get(rule, h * (slope[1:] + slope[:-1]) / 2))]
