"""Numba kernels of the Bernoulli RBM's tempered path (equations: Carlson et al. 2016, section 4.2).

State arrays, one row per chain: v (n, M) and h (n, J) uint8; hidden_field (n, J padded) = b + vW and
visible_field (n, M padded) = c + Wh, float32. Two further columns of the weights make hidden_field carry the linear
terms v @ tilt (column J) and v @ base_logit (column J + 1) along. A field is updated by the weight rows of the
units that flipped, or summed anew from the units that are on where those are fewer, and at every 256th sweep, so
that rounding does not build up.
"""

import math
from typing import NamedTuple

import numpy as np

from sklpf import _random
from sklpf.kernels import add_rows, exp32, exp64, inlined, list_differences, njit, random_bits, uniform
from sklpf.transitions._kernels import Keys, redraw, swap_levels

_HIDDEN, _VISIBLE, _REDRAW = _random.HIDDEN, _random.VISIBLE, _random.REDRAW
_REFRESH = 256
_LOG2 = math.log(2.0)


class Weights(NamedTuple):
    """The read-only arrays that the kernels need; padded columns are zero."""

    by_visible: np.ndarray  # (M, J + 2 padded) float32: W, tilt, base_logit
    by_hidden: np.ndarray  # (J, M padded) float32
    hidden_bias: np.ndarray  # (1, J + 2 padded) float32
    visible_bias: np.ndarray  # (1, M padded) float32
    base_logit: np.ndarray  # (M,) float32
    base_constant: float  # log normaliser of the base
    joint: bool  # whether h is kept in the densities


# ---- one sweep ---------------------------------------------------------------------------------
@inlined
def _draw_units(field, offset, scale, shift, bits, n, drawn):
    """drawn_j ~ Bernoulli(sigmoid(scale * field_j + shift * offset_j))."""
    scale, shift = np.float32(scale), np.float32(shift)
    one = np.float32(1.0)
    for j in range(n):
        negative = -(scale * field[j] + shift * np.float32(offset[j]))
        drawn[j] = np.uint8(uniform(bits[j]) * (one + exp32(negative)) < one)


@inlined
def _list_flips(drawn, units, n, indices, signs):
    """Replace units by drawn; list the flipped ones with sign +1 (on) or -1 (off)."""
    count = list_differences(drawn, units, n, indices)
    for p in range(count):
        unit = drawn[indices[p]]
        units[indices[p]] = unit
        signs[p] = np.float32(2.0) * np.float32(unit) - np.float32(1.0)
    return count


@inlined
def _list_active(units, off, n, indices, signs):
    """List the units that are on, each with sign +1; `off` is a row of zeros."""
    count = list_differences(units, off, n, indices)
    for p in range(count):
        signs[p] = np.float32(1.0)
    return count


@inlined
def _count_active(units, n):
    total = 0
    for j in range(n):
        total += np.int64(units[j])
    return total


@inlined
def _draw_layer(units, field, other_field, other_bias, rows, offset, betas, with_offset, keys, purpose, scratch):
    """Draw one layer of every chain from its field and bring the other layer's field up to date."""
    bits, drawn, off, indices, signs, counts = scratch
    n_chains, n = units.shape
    refresh = keys.step % _REFRESH == 0
    for c in range(n_chains):
        random_bits(bits, n, keys.key0, keys.key1, keys.step, keys.chain + c, purpose)
        shift = 1.0 - betas[c] if with_offset else 0.0
        _draw_units(field[c], offset, betas[c], shift, bits, n, drawn)
        count = _list_flips(drawn, units[c], n, indices[c], signs[c])
        if refresh or _count_active(units[c], n) < count:
            count = _list_active(units[c], off, n, indices[c], signs[c])
            other_field[c] = other_bias[0]
        counts[c] = count
    add_rows(other_field, rows, indices, signs, counts)


@njit
def _sweep(weights, v, h, hidden_field, visible_field, betas, keys, visible_first, scratch):
    """One block Gibbs sweep of every chain at its own inverse temperature: h | v then v | h (or the reverse)."""
    for half in range(2):
        if (half == 0) != visible_first:
            _draw_layer(
                h, hidden_field, visible_field, weights.visible_bias, weights.by_hidden, hidden_field[0],
                betas, False, keys, _HIDDEN, scratch,
            )  # fmt: skip
        else:
            _draw_layer(
                v, visible_field, hidden_field, weights.hidden_bias, weights.by_visible, weights.base_logit,
                betas, True, keys, _VISIBLE, scratch,
            )  # fmt: skip


@njit
def _make_scratch(n_chains, n_visible, n_hidden):
    largest = max(n_visible, n_hidden)
    bits = np.empty(largest + 4, np.uint32)
    drawn, off = np.empty(largest, np.uint8), np.zeros(largest, np.uint8)
    indices = np.empty((n_chains, largest), np.int32)
    signs = np.empty((n_chains, largest), np.float32)
    return bits, drawn, off, indices, signs, np.empty(n_chains, np.int64)


@njit
def sweeps(weights, v, h, hidden_field, visible_field, betas, keys, visible_first):
    """Run len(betas) sweeps in place; betas (n_sweeps, n_chains)."""
    scratch = _make_scratch(v.shape[0], v.shape[1], h.shape[1])
    for t in range(betas.shape[0]):
        now = Keys(keys.key0, keys.key1, keys.chain, keys.step + t)
        _sweep(weights, v, h, hidden_field, visible_field, betas[t], now, visible_first, scratch)


@njit
def refresh_fields(weights, v, h, hidden_field, visible_field):
    """Sum both fields anew from the units."""
    _, _, off, indices, signs, counts = _make_scratch(v.shape[0], v.shape[1], h.shape[1])
    for c in range(v.shape[0]):
        hidden_field[c] = weights.hidden_bias[0]
        counts[c] = _list_active(v[c], off, v.shape[1], indices[c], signs[c])
    add_rows(hidden_field, weights.by_visible, indices, signs, counts)
    for c in range(v.shape[0]):
        visible_field[c] = weights.visible_bias[0]
        counts[c] = _list_active(h[c], off, h.shape[1], indices[c], signs[c])
    add_rows(visible_field, weights.by_hidden, indices, signs, counts)


# ---- log densities -----------------------------------------------------------------------------
@njit
def _scratch_rows(n_hidden):
    """Three arrays of n_hidden float32, padded to a power of two from 32 to 512 or else to a multiple of 512."""
    padded = 32
    while padded < min(n_hidden, 512):
        padded *= 2
    padded *= (n_hidden + padded - 1) // padded
    return np.empty(padded, np.float32), np.empty(padded, np.float32), np.empty(padded, np.float32)


@njit
def _joint_parts(h, hidden_field, c, terms, factors):
    """Of every hidden unit, kept: h g, and a factor of 1."""
    for j in range(h.shape[1]):
        terms[j] = np.float32(h[c, j]) * hidden_field[c, j]
        factors[j] = np.float32(1.0)


@njit
def _marginal_parts(h, hidden_field, c, old, new, terms, factors):
    """Of every hidden unit, summed out: log(1 + e^(beta g)) = beta max(g, 0) + log(1 + e^(-beta |g|)).

    The terms are max(g, 0), the factors the ratios of 1 + e^(-beta |g|) at new and old, in [1/2, 2].
    """
    one, zero = np.float32(1.0), np.float32(0.0)
    minus_old, minus_new = -np.float32(old), -np.float32(new)
    for j in range(h.shape[1]):
        g = hidden_field[c, j]
        terms[j] = max(g, zero)
        factors[j] = (one + exp32(minus_new * abs(g))) / (one + exp32(minus_old * abs(g)))


@njit
def _fold(terms, factors):
    """Sum of the terms and log of the product of the factors; in float32 64 of them are folded into one at most."""
    length = terms.shape[0]
    while length > 8 and 64 * length > terms.shape[0]:
        length //= 2
        for j in range(length):
            terms[j] += terms[length + j]
            factors[j] *= factors[length + j]
    total, log_product = 0.0, 0.0
    for start in range(0, length, 8):
        product = 1.0
        for j in range(start, start + 8):
            total += np.float64(terms[j])
            product *= np.float64(factors[j])
        log_product += math.log(product)
    return total, log_product


@inlined
def _line_and_bend(weights, h, hidden_field, c, old, new, scratch):
    """log f_new - log f_old of chain c is (new - old) * slope + bend; returns slope and bend."""
    terms, factors, _ = scratch
    n = h.shape[1]
    if weights.joint:
        _joint_parts(h, hidden_field, c, terms, factors)
    else:
        _marginal_parts(h, hidden_field, c, old, new, terms, factors)
    for j in range(n, terms.shape[0]):
        terms[j], factors[j] = np.float32(0.0), np.float32(1.0)
    total, bend = _fold(terms, factors)
    return np.float64(hidden_field[c, n]) + weights.base_constant + total, bend


@inlined
def _log_ratio(weights, h, hidden_field, c, old, new, scratch):
    """log f_new - log f_old of chain c."""
    slope, bend = _line_and_bend(weights, h, hidden_field, c, old, new, scratch)
    return (new - old) * slope + bend


@inlined
def _log_base(weights, hidden_field, c, n):
    """log f_0 of chain c: a @ v - sum_i log(1 + e^a_i), less n log 2 with h kept."""
    summed = 0.0 if weights.joint else n * _LOG2
    return np.float64(hidden_field[c, n + 1]) - weights.base_constant + summed


@njit
def log_f(weights, v, h, hidden_field, betas, out):
    """log f_beta of every chain at its own beta, base included."""
    n, scratch = h.shape[1], _scratch_rows(h.shape[1])
    for c in range(v.shape[0]):
        change = _log_ratio(weights, h, hidden_field, c, 0.0, betas[c], scratch)
        out[c] = _log_base(weights, hidden_field, c, n) + change


@inlined
def _log_f_ladder(weights, h, field, c, ladder, scratch, out):
    """log f_k of chain c at every level; e^(-beta_k |g_j|) is carried from level to level by multiplication.

    The factors 1 + e^(-beta_k |g_j|) are folded to products of at most 64 of them.
    """
    powers, ratios, folded = scratch
    n, padded = h.shape[1], powers.shape[0]
    intercept = np.float64(field[c, n + 1]) - weights.base_constant
    slope, _ = _line_and_bend(weights, h, field, c, 0.0, 0.0, scratch)
    for k in range(ladder.shape[0]):
        out[k] = intercept + ladder[k] * slope
    if weights.joint:
        return
    one, first, delta = np.float32(1.0), np.float32(ladder[0]), 0.0
    for j in range(padded):
        powers[j], ratios[j] = np.float32(0.0), one
    for j in range(n):
        powers[j] = exp32(-first * abs(field[c, j]))
    quarter = padded // 4
    half, last = 2 * quarter, 3 * quarter
    for k in range(ladder.shape[0]):
        if k > 0 and abs(ladder[k] - ladder[k - 1] - delta) > 1e-12:
            delta = ladder[k] - ladder[k - 1]
            for j in range(n):
                ratios[j] = exp32(-np.float32(delta) * abs(field[c, j]))
        for j in range(quarter):
            p, q = powers[j] * ratios[j], powers[quarter + j] * ratios[quarter + j]
            r, s = powers[half + j] * ratios[half + j], powers[last + j] * ratios[last + j]
            powers[j], powers[quarter + j], powers[half + j], powers[last + j] = p, q, r, s
            folded[j] = ((one + p) * (one + q)) * ((one + r) * (one + s))
        length = quarter
        while length > 8 and 64 * length > padded:  # at most 64 factors in one
            length //= 2
            for j in range(length):
                folded[j] *= folded[length + j]
        for start in range(0, length, 8):
            even, odd = 1.0, 1.0
            for j in range(start, start + 8, 2):
                even *= np.float64(folded[j])
                odd *= np.float64(folded[j + 1])
            out[k] += math.log(even * odd)


@njit
def log_f_ladder(weights, v, h, hidden_field, ladder, out):
    """log f_k of every chain at every level: out (n, K)."""
    scratch = _scratch_rows(h.shape[1])
    for c in range(v.shape[0]):
        _log_f_ladder(weights, h, hidden_field, c, ladder, scratch, out[c])


# ---- fused programs: annealing, replica exchange, simulated tempering ---------------------------
@njit
def anneal(weights, v, h, hidden_field, visible_field, betas, reverse, keys, log_weights):
    """Anneal in place through betas (n_sweeps + 1, n_chains) and add the increments of log f to log_weights.

    Forward: weight from beta_t to beta_t+1, then a sweep at beta_t+1. Reverse: a sweep at beta_t, then the weight.
    """
    scratch = _make_scratch(v.shape[0], v.shape[1], h.shape[1])
    scratch_rows = _scratch_rows(h.shape[1])
    for t in range(betas.shape[0] - 1):
        now = Keys(keys.key0, keys.key1, keys.chain, keys.step + t)
        if reverse:
            _sweep(weights, v, h, hidden_field, visible_field, betas[t], now, weights.joint, scratch)
        for c in range(v.shape[0]):
            old, new = betas[t, c], betas[t + 1, c]
            if new != old:
                log_weights[c] += _log_ratio(weights, h, hidden_field, c, old, new, scratch_rows)
        if not reverse:
            _sweep(weights, v, h, hidden_field, visible_field, betas[t + 1], now, False, scratch)


@njit
def exchange(weights, v, h, hidden_field, visible_field, levels, ends, ladder, shift, n_scans, keys, sums, trips):
    """Replica exchange in place on independent ladders of K consecutive chains (Syed et al. 2022).

    Per scan: a sweep of every chain, then swaps of the even or the odd pairs of levels in turn. `levels` (n,) holds
    each chain's level; `ends` (n,) remembers the end that a chain visited last; shift (K - 1,) centres the ratios.
    Sums per ladder and pair: logistic(u - shift), logistic(r + shift), exp(u - shift), exp(r + shift), rejection.
    """
    n_chains, n_levels = v.shape[0], ladder.shape[0]
    scratch = _make_scratch(n_chains, v.shape[1], h.shape[1])
    scratch_rows = _scratch_rows(h.shape[1])
    betas = np.empty(n_chains)
    up, down = np.empty(n_chains), np.empty(n_chains)
    chain_at = np.empty(n_levels, np.int64)
    for t in range(n_scans):
        now = Keys(keys.key0, keys.key1, keys.chain, keys.step + t)
        for c in range(n_chains):
            betas[c] = ladder[levels[c]]
        _sweep(weights, v, h, hidden_field, visible_field, betas, now, False, scratch)
        for c in range(n_chains):
            level, beta = levels[c], ladder[levels[c]]
            if level + 1 < n_levels:
                up[c] = _log_ratio(weights, h, hidden_field, c, beta, ladder[level + 1], scratch_rows)
            if level > 0:
                down[c] = _log_ratio(weights, h, hidden_field, c, beta, ladder[level - 1], scratch_rows)
        for ladder_index in range(n_chains // n_levels):
            start = ladder_index * n_levels
            trips[ladder_index] += swap_levels(up, down, levels, ends, shift, start, now, chain_at, sums[ladder_index])


@njit
def temper(
    weights, v, h, hidden_field, visible_field, levels, ladder, log_prior, n_redraws, sweeps_per_redraw,
    stride, keys, q_sums, counts, vectors, vector_levels,
):  # fmt: skip
    """Simulated tempering in place: sweeps at each chain's level, then a redraw of the level from q(level | x).

    log_prior (K,) is log r_k - log Z_k estimate. q_sums (n, K) adds exp(log q + 600), counts (n, K) the redrawn levels;
    every `stride`-th redraw writes log f_k(x) to the next of vectors (records, n, K) and the level that x was moved at
    to vector_levels (records, n).
    """
    n_chains, n_levels = v.shape[0], ladder.shape[0]
    scratch = _make_scratch(n_chains, v.shape[1], h.shape[1])
    scratch_rows = _scratch_rows(h.shape[1])
    bits = np.empty(4, np.uint32)
    betas, log_densities, cumulative = np.empty(n_chains), np.empty(n_levels), np.empty(n_levels)
    for t in range(n_redraws):
        for s in range(sweeps_per_redraw):
            now = Keys(keys.key0, keys.key1, keys.chain, keys.step + t * sweeps_per_redraw + s)
            for c in range(n_chains):
                betas[c] = ladder[levels[c]]
            _sweep(weights, v, h, hidden_field, visible_field, betas, now, False, scratch)
        for c in range(n_chains):
            _log_f_ladder(weights, h, hidden_field, c, ladder, scratch_rows, log_densities)
            if t % stride == 0:
                vectors[t // stride, c] = log_densities
                vector_levels[t // stride, c] = levels[c]
            random_bits(bits, 1, keys.key0, keys.key1, now.step, keys.chain + c, _REDRAW)
            levels[c] = redraw(log_densities, log_prior, uniform(bits[0]), q_sums[c], cumulative)
            counts[c, levels[c]] += 1


# ---- exact enumeration -------------------------------------------------------------------------
@njit
def _log1p_exp_sum(x, n, lanes):
    """Sum of log(1 + exp(x_i)), i < n, in float64: one log per 512 units."""
    positive, total = 0.0, 0.0
    for start in range(0, n, 512):
        stop = min(start + 512, n)
        for lane in range(8):
            lanes[lane] = 1.0
            lanes[8 + lane] = 0.0
        whole = start + (stop - start) // 8 * 8
        for j in range(start, whole, 8):
            for lane in range(8):
                lanes[lane] *= 1.0 + exp64(-abs(x[j + lane]))
                lanes[8 + lane] += max(x[j + lane], 0.0)
        for j in range(whole, stop):
            lanes[0] *= 1.0 + exp64(-abs(x[j]))
            positive += max(x[j], 0.0)
        for lane in range(8):
            total += math.log(lanes[lane])
            positive += lanes[8 + lane]
    return positive + total


@njit
def enumerate_states(rows, unit_bias, field, prefix, n_low, out):
    """Log weights of the 2^n_low states whose upper bits are `prefix`, in Gray-code order of the lower bits.

    A state s of the enumerated layer weighs unit_bias @ s + sum_i log(1 + exp(field_i + (s @ rows)_i)); rows is
    (n_units, n_other). `field` is overwritten.
    """
    n_units, n_other = rows.shape
    lanes = np.empty(16)
    state = np.zeros(n_units, np.bool_)
    linear = 0.0
    for j in range(n_low, n_units):
        if (prefix >> (j - n_low)) & 1:
            state[j] = True
            linear += unit_bias[j]
            for i in range(n_other):
                field[i] += rows[j, i]
    out[0] = linear + _log1p_exp_sum(field, n_other, lanes)
    for code in range(1, 1 << n_low):
        bit = 0
        while not (code >> bit) & 1:
            bit += 1
        state[bit] = not state[bit]
        sign = 1.0 if state[bit] else -1.0
        linear += sign * unit_bias[bit]
        row = rows[bit]
        for i in range(n_other):
            field[i] += sign * row[i]
        out[code] = linear + _log1p_exp_sum(field, n_other, lanes)
