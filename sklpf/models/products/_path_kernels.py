"""Products of experts for the compiled programs, in float64."""

import math
from typing import NamedTuple

import numpy as np

from sklpf.kernels import OPTIONS, implements
from sklpf.kernels import _programs as programs
from sklpf.kernels._random import log64

_SUMS = {"fastmath": {*OPTIONS["fastmath"], "reassoc"}}  # sums that vectorise


class LaplaceExperts(NamedTuple):
    """exp(constant - sum |u|), u = filters @ y, from N(0, I)."""

    filters: np.ndarray  # (K, d)
    constant: float
    log_norm: float  # of the base


class StudentTExperts(NamedTuple):
    """exp(constant - sum exponents log(1 + u²)), u = filters @ y, from a t distribution with unit
    scales.
    """

    filters: np.ndarray  # (K, d)
    exponents: np.ndarray  # (K,)
    constant: float
    df: float
    log_norm: float


@implements(programs.evaluate, LaplaceExperts, **_SUMS)
def _laplace(density, position, values):
    u = np.dot(position, density.filters.T)
    gain, slopes, base_slopes = values.gain, values.gain_slope, values.base_slope
    for c in range(u.shape[0]):
        energy = 0.0
        for k in range(u.shape[1]):
            energy += abs(u[c, k])
            u[c, k] = -1.0 if u[c, k] > 0.0 else (1.0 if u[c, k] < 0.0 else 0.0)
        gain[c] = density.constant - energy
    np.dot(u, density.filters, slopes)
    for c in range(u.shape[0]):
        square = 0.0
        for j in range(slopes.shape[1]):
            y = position[c, j]
            square += y * y
            base_slopes[c, j] = -y
            slopes[c, j] += y
        values.log_base[c] = density.log_norm - 0.5 * square
        gain[c] -= values.log_base[c]


@implements(programs.evaluate, StudentTExperts, **_SUMS)
def _student_t(density, position, values):
    exponents, df, d = density.exponents, density.df, position.shape[1]
    u = np.dot(position, density.filters.T)
    gain, slopes, base_slopes = values.gain, values.gain_slope, values.base_slope
    for c in range(u.shape[0]):
        energy = 0.0
        for k in range(u.shape[1]):
            s = 1.0 + u[c, k] * u[c, k]
            energy += exponents[k] * log64(s)
            u[c, k] *= -2.0 * exponents[k] / s
        gain[c] = density.constant - energy
    np.dot(u, density.filters, slopes)
    for c in range(u.shape[0]):
        square = 0.0
        for j in range(d):
            square += position[c, j] * position[c, j]
        factor = (df + d) / (df + square)
        for j in range(d):
            base_slopes[c, j] = -factor * position[c, j]
            slopes[c, j] += factor * position[c, j]
        values.log_base[c] = density.log_norm - 0.5 * (df + d) * math.log1p(square / df)
        gain[c] -= values.log_base[c]
