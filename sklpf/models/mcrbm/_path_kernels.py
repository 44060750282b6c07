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
    """Units of z, from a Gaussian base with their precision."""

    filters: np.ndarray  # (F + J, d): factors, then filters of the mean units
    pooling: np.ndarray  # (F, K)
    intercept_covariance: np.ndarray  # (K,)
    intercept_mean: np.ndarray  # (J,)
    center: np.ndarray  # (d,), of the base
    precision: float
    offset: float  # of the mean square that rows are normalised by
    constant: float  # log f_1 - log f_0 is this and the softplus functions of all units
    log_norm: float  # of the base


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
    for c in range(n):
        square = 0.0
        for j in range(d):
            off = position[c, j] - density.center[j]
            square += off * off
            base_slopes[c, j] = -density.precision * off
            slopes[c, j] += roots[c] * position[c, j]
        values.log_base[c] = density.log_norm - 0.5 * density.precision * square


@njit
def anneal(model, state, betas, reverse, keys, log_weights):
    programs.anneal(model, state, betas, reverse, keys, log_weights)


@njit
def exchange(model, state, levels, ends, ladder, shift, n_scans, keys, sums):
    programs.exchange(model, state, levels, ends, ladder, shift, n_scans, keys, sums)


@njit
def temper(model, state, levels, ladder, log_pseudo_prior, n_redraws, sweeps_per_redraw, stride, keys, sums):
    programs.temper(model, state, levels, ladder, log_pseudo_prior, n_redraws, sweeps_per_redraw, stride, keys, sums)
