"""Mean and covariance units for the compiled programs, in float64."""

import functools
import math
from typing import NamedTuple

import numpy as np

from sklpf.kernels import OPTIONS, exp64, implements, njit
from sklpf.kernels import _programs as programs

_SUMS = {"fastmath": {*OPTIONS["fastmath"], "reassoc"}}  # sums that vectorise
_AT_ONCE = 512  # factors of 1 to 2 whose product is no overflow


class PackedUnits(NamedTuple):
    """Units of y, from a mixture of Gaussians of which the first is what is left without units."""

    filters: np.ndarray  # (F + J, d): factors, then filters of the mean units
    pooling: np.ndarray  # (F, K)
    intercept_covariance: np.ndarray  # (K,)
    intercept_mean: np.ndarray  # (J,)
    center: np.ndarray  # (d,), of the first
    precisions: np.ndarray  # (S, d)
    log_norms: np.ndarray  # (S,)
    offset: float  # of the mean square that rows are normalised by
    # log f is this, the first Gaussian's exponent, and the softplus functions of all units
    constant: float


@functools.partial(njit, forceinline=True, **_SUMS)
def _switch(inputs):
    """The sum of softplus(inputs); replaces these by their sigmoids.

    softplus(a) = max(a, 0) + log(1 + exp(-|a|)), and a product needs one logarithm.
    """
    total = 0.0
    for first in range(0, inputs.shape[0], _AT_ONCE):
        product, block = 1.0, inputs[first : first + _AT_ONCE]
        for k in range(block.shape[0]):
            a = block[k]
            small = exp64(-abs(a))
            total += max(a, 0.0)
            product *= 1.0 + small
            block[k] = (1.0 if a > 0.0 else small) / (1.0 + small)
        total += math.log(product)
    return total


@implements(programs.evaluate, PackedUnits, **_SUMS)
def _units(density, position, values):
    n, d = position.shape
    n_factors, n_covariance = density.pooling.shape
    gain, slopes, base_slopes = values.gain, values.gain_slope, values.base_slope
    outputs = np.dot(position, density.filters.T)
    squares, roots = np.empty((n, n_factors)), np.empty(n)
    for c in range(n):
        square = 0.0
        for j in range(d):
            square += position[c, j] * position[c, j]
        roots[c] = 1.0 / math.sqrt(square / d + density.offset)
        for f in range(n_factors):
            outputs[c, f] *= roots[c]
            squares[c, f] = outputs[c, f] * outputs[c, f]
    covariance = np.dot(squares, density.pooling)
    for c in range(n):
        for k in range(n_covariance):
            covariance[c, k] = density.intercept_covariance[k] - 0.5 * covariance[c, k]
        gain[c] = density.constant + _switch(covariance[c])
    forces = np.dot(covariance, density.pooling.T)
    for c in range(n):
        along = 0.0
        for f in range(n_factors):
            along += forces[c, f] * squares[c, f]
            outputs[c, f] *= -roots[c] * forces[c, f]
        mean = outputs[c, n_factors:]
        for j in range(mean.shape[0]):
            mean[j] += density.intercept_mean[j]
        gain[c] += _switch(mean)
        roots[c] *= roots[c] * along / d
    np.dot(outputs, density.filters, slopes)
    center, precisions, precision = density.center, density.precisions, density.precisions[0, 0]
    shares, pull = np.empty(precisions.shape[0]), np.empty(d)
    for c in range(n):
        z, off = position[c], 0.0
        for j in range(d):
            off += (z[j] - center[j]) * (z[j] - center[j])
        values.log_base[c] = _mix(density, z, precision * off, shares)
        gain[c] -= 0.5 * precision * off + values.log_base[c]
        for j in range(d):
            pull[j] = 0.0
        for s in range(shares.shape[0]):
            for j in range(d):
                pull[j] += shares[s] * precisions[s, j]
        for j in range(d):
            base_slopes[c, j] = shares[0] * precision * center[j] - pull[j] * z[j]
            slopes[c, j] += roots[c] * z[j] - precision * (z[j] - center[j]) - base_slopes[c, j]


@functools.partial(njit, forceinline=True, **_SUMS)
def _mix(density, z, off, shares):
    """The log density of the mixture at a point, and the shares of its parts."""
    largest, total = -np.inf, 0.0
    for s in range(shares.shape[0]):
        exponent = off
        if s > 0:
            exponent = 0.0
            for j in range(z.shape[0]):
                exponent += density.precisions[s, j] * z[j] * z[j]
        shares[s] = density.log_norms[s] - 0.5 * exponent
        largest = max(largest, shares[s])
    for s in range(shares.shape[0]):
        shares[s] = exp64(shares[s] - largest)
        total += shares[s]
    for s in range(shares.shape[0]):
        shares[s] /= total
    return largest + math.log(total)
