"""Mean and covariance units and their base as compiled densities, in float64."""

import math
from typing import NamedTuple

import numpy as np

from sklpf.kernels import SUMS, exp64, implements, softplus_sum_and_sigmoids
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


class PackedMixture(NamedTuple):
    """A mixture of Gaussians, the first around the center and the others around 0."""

    center: np.ndarray  # (d,)
    precisions: np.ndarray  # (S, d)
    log_norms: np.ndarray  # (S,)


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


@implements(evaluate_density, PackedMixture, forceinline=True, **SUMS)
def _mixture(base, position, log_density, slope):
    n, d = position.shape
    n_parts = base.precisions.shape[0]
    shares = np.empty(n_parts)
    pull = np.empty(d)
    for c in range(n):
        z = position[c]
        largest = -np.inf
        for s in range(n_parts):
            exponent = 0.0
            for j in range(d):
                away = z[j] - base.center[j] if s == 0 else z[j]
                exponent += base.precisions[s, j] * away * away
            shares[s] = base.log_norms[s] - 0.5 * exponent
            largest = max(largest, shares[s])

        total = 0.0
        for s in range(n_parts):
            shares[s] = exp64(shares[s] - largest)
            total += shares[s]
        log_density[c] = largest + math.log(total)

        pull[:] = 0.0
        for s in range(n_parts):
            shares[s] /= total
            for j in range(d):
                pull[j] += shares[s] * base.precisions[s, j]
        for j in range(d):
            slope[c, j] = shares[0] * base.precisions[0, j] * base.center[j] - pull[j] * z[j]
