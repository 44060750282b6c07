"""Numba kernels of the factorial mixture's path: everything from Gram matrices, float64 throughout.

For one row x and the active components z, with G = M Mᵀ and c = M x,

    distance = |x - Mᵀ z|² = |x|² - 2 c @ z + z @ G @ z,    variance = noise_variance + z @ S @ z.

State arrays, one entry a chain: z (n, K) uint8, distance (n,) and variance (n,). A sweep sums G z and S z anew from
the active components, so that rounding does not build up; then a conditional costs O(1) and a flip O(K).
"""

import math
from typing import NamedTuple

import numpy as np

from sklpf import _random
from sklpf.kernels import exp64, inlined, njit, random_bits, uniform
from sklpf.transitions._kernels import Keys, redraw, swap_levels

_Z, _REDRAW = _random.HIDDEN, _random.REDRAW
_LOG_TAU = math.log(2 * math.pi)
_TILE_BITS = 10
_NEGLIGIBLE = 60.0  # weights under e^-60 of the largest one add nothing in float64


class Gram(NamedTuple):
    """What all rows share; read-only float64."""

    products: np.ndarray  # (K, K): G
    covariance: np.ndarray  # (K, K): S
    logit: np.ndarray  # (K,): of the activation probabilities
    log_off: float  # log prior of z = 0
    noise_variance: float
    n_features: float


class Row(NamedTuple):
    """What is known of one row."""

    projection: np.ndarray  # (K,): c
    squared_norm: float


# ---- densities ---------------------------------------------------------------------------------
@njit
def project(X, components, out):
    """Rows of M x and |x|² side by side, out (n, K + 1); components (D, K). A row's sums have one order everywhere."""
    n_components = components.shape[1]
    for i in range(X.shape[0]):
        x, row = X[i], out[i]
        total = 0.0
        for d in range(X.shape[1]):
            total += x[d] * x[d]
        row[:] = 0.0
        row[n_components] = total
        four = X.shape[1] // 4 * 4
        for d in range(0, four, 4):
            a, b, c, e = components[d], components[d + 1], components[d + 2], components[d + 3]
            for k in range(n_components):
                row[k] += (x[d] * a[k] + x[d + 1] * b[k]) + (x[d + 2] * c[k] + x[d + 3] * e[k])
        for d in range(four, X.shape[1]):
            for k in range(n_components):
                row[k] += x[d] * components[d, k]


@inlined
def _log_likelihood(gram, distance, variance):
    return -0.5 * (gram.n_features * (_LOG_TAU + math.log(variance)) + distance / variance)


@inlined
def _log_prior(gram, z):
    total = gram.log_off
    for k in range(z.shape[0]):
        if z[k]:
            total += gram.logit[k]
    return total


@njit
def log_f(gram, z, distance, variance, betas, out):
    """Log prior + beta times log likelihood of every chain."""
    for c in range(z.shape[0]):
        out[c] = _log_prior(gram, z[c]) + betas[c] * _log_likelihood(gram, distance[c], variance[c])


@inlined
def _forms(gram, row, z, fields):
    """Sum G z and S z (rows of fields (2, K)); returns distance and variance."""
    n = z.shape[0]
    fields[:] = 0.0
    for k in range(n):
        if z[k]:
            for j in range(n):
                fields[0, j] += gram.products[k, j]
                fields[1, j] += gram.covariance[k, j]
    distance, variance = row.squared_norm, gram.noise_variance
    for k in range(n):
        if z[k]:
            distance += fields[0, k] - 2.0 * row.projection[k]
            variance += fields[1, k]
    return max(distance, 0.0), max(variance, gram.noise_variance)


# ---- one sweep ---------------------------------------------------------------------------------
@inlined
def _uniform64(bits):
    return (np.float64(bits) + 0.5) * 2.0**-32


@njit
def sample_prior(gram, row, keys, z, distance, variance):
    """Exact draws from level 0."""
    n = z.shape[1]
    fields, bits = np.empty((2, n)), np.empty(n + 4, np.uint32)
    for c in range(z.shape[0]):
        random_bits(bits, n, keys.key0, keys.key1, keys.step, keys.chain + c, _Z)
        for k in range(n):
            z[c, k] = np.uint8(_uniform64(bits[k]) * (1.0 + math.exp(-gram.logit[k])) < 1.0)
        distance[c], variance[c] = _forms(gram, row, z[c], fields)


@inlined
def _sweep(gram, row, z, beta, reverse, keys, step, chain, fields, bits):
    """One Gibbs sweep of one chain over the components in turn, or in reverse; returns distance and variance."""
    n = z.shape[0]
    random_bits(bits, n, keys.key0, keys.key1, step, chain, _Z)
    distance, variance = _forms(gram, row, z, fields)
    log_variance, exponent = math.log(variance), 0.5 * distance / variance
    half_features = 0.5 * gram.n_features
    for i in range(n):
        k = n - 1 - i if reverse else i
        sign = 1.0 - 2.0 * np.float64(z[k])
        new_distance = distance + 2.0 * sign * (fields[0, k] - row.projection[k]) + gram.products[k, k]
        new_variance = variance + 2.0 * sign * fields[1, k] + gram.covariance[k, k]
        new_distance, new_variance = max(new_distance, 0.0), max(new_variance, gram.noise_variance)
        new_log_variance, new_exponent = math.log(new_variance), 0.5 * new_distance / new_variance
        gain = half_features * (log_variance - new_log_variance) + (exponent - new_exponent)
        if _uniform64(bits[k]) * (1.0 + exp64(-(sign * gram.logit[k] + beta * gain))) < 1.0:
            z[k] = np.uint8(1) - z[k]
            distance, variance, log_variance, exponent = new_distance, new_variance, new_log_variance, new_exponent
            for j in range(n):
                fields[0, j] += sign * gram.products[k, j]
                fields[1, j] += sign * gram.covariance[k, j]
    return distance, variance


# ---- programs: sweeps, annealing, replica exchange, simulated tempering --------------------------
@njit
def sweep_all(gram, row, z, distance, variance, betas, reverse, keys):
    """One sweep of every chain, in place."""
    n = z.shape[1]
    fields, bits = np.empty((2, n)), np.empty(n + 4, np.uint32)
    for c in range(z.shape[0]):
        distance[c], variance[c] = _sweep(
            gram, row, z[c], betas[c], reverse, keys, keys.step, keys.chain + c, fields, bits
        )


@njit
def anneal(gram, row, z, distance, variance, betas, reverse, keys, log_weights):
    """Anneal in place through betas (n_sweeps + 1, n_chains) and add the increments of log f to log_weights."""
    n = z.shape[1]
    fields, bits = np.empty((2, n)), np.empty(n + 4, np.uint32)
    for c in range(z.shape[0]):
        d, v, total = distance[c], variance[c], 0.0
        for t in range(betas.shape[0] - 1):
            step = keys.step + t
            if reverse:
                d, v = _sweep(gram, row, z[c], betas[t, c], True, keys, step, keys.chain + c, fields, bits)
            rise = betas[t + 1, c] - betas[t, c]
            if rise != 0.0:
                total += rise * _log_likelihood(gram, d, v)
            if not reverse:
                d, v = _sweep(gram, row, z[c], betas[t + 1, c], False, keys, step, keys.chain + c, fields, bits)
        distance[c], variance[c] = d, v
        log_weights[c] += total


@njit
def exchange(gram, row, z, distance, variance, levels, ends, ladder, shift, n_scans, keys, sums, trips):
    """Replica exchange in place on independent ladders of K consecutive chains, as `Transition.exchange` says."""
    n, n_levels = z.shape[1], ladder.shape[0]
    fields, bits = np.empty((2, n)), np.empty(n + 4, np.uint32)
    up, down, chain_at = np.empty(z.shape[0]), np.empty(z.shape[0]), np.empty(n_levels, np.int64)
    for start in range(0, z.shape[0], n_levels):
        for t in range(n_scans):
            now = Keys(keys.key0, keys.key1, keys.chain, keys.step + t)
            for c in range(start, start + n_levels):
                level = levels[c]
                distance[c], variance[c] = _sweep(
                    gram, row, z[c], ladder[level], False, keys, now.step, keys.chain + c, fields, bits
                )
                energy = _log_likelihood(gram, distance[c], variance[c])
                if level + 1 < n_levels:
                    up[c] = (ladder[level + 1] - ladder[level]) * energy
                if level > 0:
                    down[c] = -(ladder[level] - ladder[level - 1]) * energy
            i = start // n_levels
            trips[i] += swap_levels(up, down, levels, ends, shift, start, now, chain_at, sums[i])


@njit
def temper(
    gram, row, z, distance, variance, levels, ladder, log_prior, n_redraws, sweeps_per_redraw, stride, keys,
    q_sums, counts, vectors, vector_levels,
):  # fmt: skip
    """Simulated tempering in place; q_sums (n, K) adds exp(log q + 600). The rest as `Transition.temper` says."""
    n, n_levels = z.shape[1], ladder.shape[0]
    fields, bits = np.empty((2, n)), np.empty(n + 4, np.uint32)
    log_densities, cumulative = np.empty(n_levels), np.empty(n_levels)
    for c in range(z.shape[0]):
        chain = keys.chain + c
        for t in range(n_redraws):
            last = keys.step + (t + 1) * sweeps_per_redraw - 1
            for step in range(last + 1 - sweeps_per_redraw, last + 1):
                distance[c], variance[c] = _sweep(
                    gram, row, z[c], ladder[levels[c]], False, keys, step, chain, fields, bits
                )
            base, slope = _log_prior(gram, z[c]), _log_likelihood(gram, distance[c], variance[c])
            for k in range(n_levels):
                log_densities[k] = base + ladder[k] * slope
            if t % stride == 0:
                vectors[t // stride, c] = log_densities
                vector_levels[t // stride, c] = levels[c]
            random_bits(bits, 1, keys.key0, keys.key1, last, chain, _REDRAW)
            levels[c] = redraw(log_densities, log_prior, uniform(bits[0]), q_sums[c], cumulative)
            counts[c, levels[c]] += 1


# ---- exact enumeration -------------------------------------------------------------------------
@inlined
def _fold(values, n, largest):
    """Maximum or sum of values[:n], n a power of two, by folding halves, so that it vectorises; overwrites them."""
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
    """Add a block of states to sum_z exp(log_weight - precision (|x|² - 2 c @ z + quadratic)) of many rows.

    State s holds component j < B where bit j of s is set, B the number of bits, and the components B, B + 1, … where
    `high` says so; log_weight, precision and quadratic are (2^B,). statistics (T, K + 1) holds c and |x|². The sums
    are exp(maxima) * sums. A row's subset sums of c come by doubling: one addition a state.
    """
    n_states = log_weight.shape[0]
    n_bits = 0
    while 1 << n_bits < n_states:
        n_bits += 1
    tile_bits = min(n_bits, _TILE_BITS)
    size = 1 << tile_bits
    linear, values, folded = np.empty(size), np.empty(size), np.empty(size)
    for i in range(rows.shape[0]):
        row = statistics[rows[i]]
        linear[0] = row[row.shape[0] - 1]
        for j in range(high.shape[0]):
            if high[j]:
                linear[0] -= 2.0 * row[n_bits + j]
        for j in range(tile_bits):
            length, step = 1 << j, 2.0 * row[j]
            low, up = linear[:length], linear[length : 2 * length]
            for s in range(length):
                up[s] = low[s] - step
        for tile in range(n_states // size):
            offset = 0.0
            for j in range(tile_bits, n_bits):
                if (tile >> (j - tile_bits)) & 1:
                    offset -= 2.0 * row[j]
            begin = tile * size
            a, p, q = (
                log_weight[begin : begin + size], precision[begin : begin + size], quadratic[begin : begin + size],
            )  # fmt: skip
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
