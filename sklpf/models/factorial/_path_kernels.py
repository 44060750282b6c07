"""Numba kernels of the factorial mixture's path: everything from Gram matrices, float64 throughout.

For one row x and the active components z, with G = M Mᵀ and c = M x,

    distance = |x - Mᵀ z|² = |x|² - 2 c @ z + z @ G @ z,    variance = noise_variance + z @ S @ z.

State arrays, one entry a chain: z (n, K) uint8, the log prior (n,) and the log likelihood (n,). A
sweep sums G z and S z anew from the active components, so that rounding does not build up; then a
conditional costs O(1) and a flip O(K).
"""

import math
from typing import NamedTuple

import numpy as np

from sklpf.kernels import FIRST, bits_of_one_chain, exp64, implements, inlined, njit
from sklpf.kernels import _programs as programs

_LOG_TAU = math.log(2 * math.pi)
_TILE_BITS = 10
_NEGLIGIBLE = 60.0  # weights under e^-60 of the largest one add nothing in float64


class Gram(NamedTuple):
    """Constants that all rows share; read-only float64."""

    products: np.ndarray  # (K, K): G
    covariance: np.ndarray  # (K, K): S
    logit: np.ndarray  # (K,): of the activation probabilities
    log_off: float  # log prior of z = 0
    noise_variance: float
    n_features: float


class Row(NamedTuple):
    """Constants of one row."""

    gram: Gram
    projection: np.ndarray  # (K,): c
    squared_norm: float


# ---- densities
@njit
def project(X, components, out):
    """Rows of M x and |x|² side by side, out (n, K + 1); components (D, K). A row's sums have one
    order everywhere.
    """
    n_components = components.shape[1]
    for i in range(X.shape[0]):
        x = X[i]
        row = out[i]
        total = 0.0
        for d in range(X.shape[1]):
            total += x[d] * x[d]
        row[:] = 0.0
        row[n_components] = total
        four = X.shape[1] // 4 * 4
        for d in range(0, four, 4):
            a = components[d]
            b = components[d + 1]
            c = components[d + 2]
            e = components[d + 3]
            for k in range(n_components):
                row[k] += (x[d] * a[k] + x[d + 1] * b[k]) + (x[d + 2] * c[k] + x[d + 3] * e[k])
        for d in range(four, X.shape[1]):
            for k in range(n_components):
                row[k] += x[d] * components[d, k]


# ---- what the programs need
programs.tempered(Row)


@implements(programs.scratch, Row)
def _scratch(model, state):
    n = state.z.shape[1]
    return np.empty((2, n)), np.empty(n + 4, np.uint32)


@implements(programs.sweep, Row)
def _sweep(model, state, betas, reverse, keys, work):
    """Gibbs sampling of the components in turn, or in reverse."""
    gram = model.gram
    n = state.z.shape[1]
    half_features = 0.5 * gram.n_features
    fields, bits = work
    for c in range(state.z.shape[0]):
        z = state.z[c]
        bits_of_one_chain(bits, n, keys, c, FIRST)
        fields[:] = 0.0  # G z and S z
        for k in range(n):
            if z[k]:
                for j in range(n):
                    fields[0, j] += gram.products[k, j]
                    fields[1, j] += gram.covariance[k, j]
        distance = model.squared_norm
        variance = gram.noise_variance
        for k in range(n):
            if z[k]:
                distance += fields[0, k] - 2.0 * model.projection[k]
                variance += fields[1, k]
        distance = max(distance, 0.0)
        variance = max(variance, gram.noise_variance)
        log_variance = math.log(variance)
        exponent = 0.5 * distance / variance
        for i in range(n):
            k = n - 1 - i if reverse else i
            sign = 1.0 - 2.0 * np.float64(z[k])
            new_distance = (
                distance + 2.0 * sign * (fields[0, k] - model.projection[k]) + gram.products[k, k]
            )
            new_variance = variance + 2.0 * sign * fields[1, k] + gram.covariance[k, k]
            new_distance = max(new_distance, 0.0)
            new_variance = max(new_variance, gram.noise_variance)
            new_log_variance = math.log(new_variance)
            new_exponent = 0.5 * new_distance / new_variance
            gain = half_features * (log_variance - new_log_variance) + (exponent - new_exponent)
            log_odds = sign * gram.logit[k] + betas[c] * gain
            uniform = (np.float64(bits[k]) + 0.5) * 2.0**-32  # of double precision
            if uniform * (1.0 + exp64(-log_odds)) < 1.0:
                z[k] = np.uint8(1) - z[k]
                distance = new_distance
                variance = new_variance
                log_variance = new_log_variance
                exponent = new_exponent
                for j in range(n):
                    fields[0, j] += sign * gram.products[k, j]
                    fields[1, j] += sign * gram.covariance[k, j]
        state.log_base[c] = gram.log_off
        for k in range(n):
            if z[k]:
                state.log_base[c] += gram.logit[k]
        state.gain[c] = -half_features * (_LOG_TAU + log_variance) - exponent


@implements(programs.summarise, Row)
def _summarise(model, state, c, out):
    for k in range(out.shape[0]):
        out[k] = np.float64(state.z[c, k])


# ---- exact enumeration
@inlined
def _fold(values, n, largest):
    """Maximum or sum of values[:n], n a power of two, by folding halves, so that it vectorises;
    overwrites them.
    """
    while n > 1:
        n //= 2
        low, high = values[:n], values[n : 2 * n]
        if largest:
            for i in range(n):
                low[i] = max(low[i], high[i])
        else:
            for i in range(n):
                low[i] += high[i]
    return values[0]


@njit
def add_states(log_weight, precision, quadratic, high, statistics, rows, maxima, sums):
    """Add a block of states to sum_z exp(log_weight - precision (|x|² - 2 c @ z + quadratic)) of
    many rows.

    State s holds component j < B where bit j of s is set, B the number of bits, and the components
    B, B + 1, … where `high` says so; log_weight, precision and quadratic are (2^B,). statistics (T,
    K + 1) holds c and |x|². The sums are exp(maxima) * sums. A row's subset sums of c come by
    doubling: one addition a state.
    """
    n_states = log_weight.shape[0]
    n_bits = 0
    while 1 << n_bits < n_states:
        n_bits += 1
    tile_bits = min(n_bits, _TILE_BITS)
    size = 1 << tile_bits
    linear = np.empty(size)
    values = np.empty(size)
    folded = np.empty(size)
    for i in range(rows.shape[0]):
        row = statistics[rows[i]]
        linear[0] = row[row.shape[0] - 1]
        for j in range(high.shape[0]):
            if high[j]:
                linear[0] -= 2.0 * row[n_bits + j]
        for j in range(tile_bits):
            length = 1 << j
            step = 2.0 * row[j]
            low = linear[:length]
            up = linear[length : 2 * length]
            for s in range(length):
                up[s] = low[s] - step
        for tile in range(n_states // size):
            offset = 0.0
            for j in range(tile_bits, n_bits):
                if (tile >> (j - tile_bits)) & 1:
                    offset -= 2.0 * row[j]
            begin = tile * size
            a = log_weight[begin : begin + size]
            p = precision[begin : begin + size]
            q = quadratic[begin : begin + size]
            for s in range(size):
                values[s] = a[s] - p[s] * max((linear[s] + offset) + q[s], 0.0)
                folded[s] = values[s]
            largest = _fold(folded, size, True)
            if largest > maxima[i]:
                sums[i] *= math.exp(maxima[i] - largest)
                maxima[i] = largest
            if largest > -np.inf and largest >= maxima[i] - _NEGLIGIBLE:
                for s in range(size):
                    values[s] = exp64(values[s] - maxima[i])
                sums[i] += _fold(values, size, False)
