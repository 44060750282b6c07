"""Mean and covariance units as a compiled density, in float64."""

import math
from typing import NamedTuple

import numpy as np

from sklpf.kernels import SUMS, implements, softplus_sum_and_sigmoids
from sklpf.kernels._densities import evaluate_density


class PackedUnits(NamedTuple):
    """log f is constant + the softplus functions of all units - precision |z - center|² / 2."""

    filters: np.ndarray  # (F + J, d): factors, then filters of the mean units
    pooling: np.ndarray  # (F, K)
    intercept_covariance: np.ndarray  # (K,)
    intercept_mean: np.ndarray  # (J,)
    center: np.ndarray  # (d,)
    precision: float
    offset: float  # of the mean square that rows are normalised by
    constant: float


@implements(evaluate_density, PackedUnits, forceinline=True, **SUMS)
def _units(units, position, log_density, slope):
    n, d = position.shape
    n_factors, n_covariance = units.pooling.shape
    center = units.center
    precision = units.precision
    outputs = np.dot(position, units.filters.T)
    squares = np.empty((n, n_factors))
    roots = np.empty(n)
    for c in range(n):
        square = 0.0
        for j in range(d):
            square += position[c, j] * position[c, j]
        roots[c] = 1.0 / math.sqrt(square / d + units.offset)
        for f in range(n_factors):
            outputs[c, f] *= roots[c]
            squares[c, f] = outputs[c, f] * outputs[c, f]

    covariance = np.dot(squares, units.pooling)
    for c in range(n):
        for k in range(n_covariance):
            covariance[c, k] = units.intercept_covariance[k] - 0.5 * covariance[c, k]
        log_density[c] = units.constant + softplus_sum_and_sigmoids(covariance[c])

    # From here on `outputs` holds the slopes by the outputs of all filters.
    forces = np.dot(covariance, units.pooling.T)
    for c in range(n):
        along = 0.0
        for f in range(n_factors):
            along += forces[c, f] * squares[c, f]
            outputs[c, f] *= -roots[c] * forces[c, f]
        mean = outputs[c, n_factors:]
        for j in range(mean.shape[0]):
            mean[j] += units.intercept_mean[j]
        log_density[c] += softplus_sum_and_sigmoids(mean)
        roots[c] *= roots[c] * along / d

    np.dot(outputs, units.filters, slope)
    for c in range(n):
        off = 0.0
        for j in range(d):
            away = position[c, j] - center[j]
            off += away * away
            slope[c, j] += roots[c] * position[c, j] - precision * away
        log_density[c] -= 0.5 * precision * off
