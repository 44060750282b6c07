"""Numba kernels of the Bernoulli RBM's tempered path (equations: Carlson et al. 2016, section 4.2).

State arrays, one row per chain: v (n, M) and h (n, J) uint8; hidden_field (n, J padded) = b + vW
and visible_field (n, M padded) = c + Wh, float32. Two further columns of the weights make
hidden_field carry the linear terms v @ tilt (column J) and v @ base_logit (column J + 1) along. A
field is updated by the weight rows of the units that flipped, or summed anew from the units that
are on where those are fewer, and at every 256th sweep, so that rounding does not build up.

Of a base that is a mixture of K products q_k, log f is that of the path from q_0 alone, and what
the others add: hidden_field then has a further column for each of these, log q_k(v) - log q_0(v).
"""

import math
from typing import NamedTuple

import numpy as np

from sklpf._utils.limits import LOG_2
from sklpf.kernels import (
    ACCEPT,
    BORROWS,
    FIRST,
    SECOND,
    add_layer,
    bits_of_one_chain,
    borrowing,
    change_units,
    draw_categories,
    exp32,
    implements,
    layer,
    njit,
    summing,
    uniform,
)
from sklpf.kernels import _programs as programs
from sklpf.kernels._random import chain_uniform

# draws of each layer, and of the part of the base
_HIDDEN = FIRST
_VISIBLE = SECOND
_PART = ACCEPT
_REFRESH = 256
_FACTORS = 512  # of 1 to 2, whose product is a float64
_FACTORS32 = 64  # whose product is a float32


class PathArrays(NamedTuple):
    """The read-only arrays that the kernels need; padded columns are zero."""

    # (M, J + 1 + K padded) float32: W, tilt, the logits of the base's first part, and by what those
    # of the others differ from them
    by_visible: np.ndarray
    by_hidden: np.ndarray  # (J, M padded) float32
    hidden_bias: np.ndarray  # (1, J + 1 + K padded) float32
    visible_bias: np.ndarray  # (1, M padded) float32
    logits: np.ndarray  # (K, M padded) float32: of the parts of the base
    log_weights: np.ndarray  # (K,)
    base_constant: float  # log normaliser of the first part
    joint: bool  # whether h is kept in the densities
    starts: np.ndarray  # (G + 1,) int64: of groups with one visible unit on; (1,) without groups


# ---- one sweep
@borrowing
def _copy_row(source, target):
    """target = source; numba takes seconds to compile what it would say if the shapes did not
    match.
    """
    for j in range(source.shape[0]):
        target[j] = source[j]


@borrowing
def _log_part(log_weights, field, n, k, share):
    """Log of w_k (q_k / q_0)^share."""
    return log_weights[0] if k == 0 else log_weights[k] + share * np.float64(field[n + 1 + k])


@borrowing
def _log_base_ratio(log_weights, field, n, beta):
    """Log of sum_k w_k (q_k / q_0)^(1 - beta), what the further parts of a base add to log f."""
    if log_weights.shape[0] == 1:
        return 0.0
    share = 1.0 - beta
    largest = -np.inf
    for k in range(log_weights.shape[0]):
        largest = max(largest, _log_part(log_weights, field, n, k, share))
    total = 0.0
    for k in range(log_weights.shape[0]):
        total += math.exp(_log_part(log_weights, field, n, k, share) - largest)
    return largest + math.log(total)


@borrowing
def _draw_part(log_weights, field, n, beta, u):
    """Draw k given v; at beta = 0, where v is drawn from the base, whatever v was before, so that
    chains there go from part to part.
    """
    last = log_weights.shape[0] - 1
    share = 1.0 - beta if beta > 0.0 else 0.0
    log_sum = _log_base_ratio(log_weights, field, n, 1.0 - share)
    left = np.float64(u)
    for k in range(last):
        left -= math.exp(_log_part(log_weights, field, n, k, share) - log_sum)
        if left < 0.0:
            return k
    return last


@borrowing
def _draw_layer(
    units,
    field,
    other_field,
    other_bias,
    rows,
    offsets,
    starts,
    log_weights,
    n_other,
    betas,
    keys,
    purpose,
    scratch,
):
    """Draw one layer of every chain from its field and bring the other layer's field up to date.

    Only visible units have a base: of its parts one is drawn by `log_weights`, whose logits are
    `offsets`, and units are in the groups of `starts`. For hidden units there is one part, whose
    offsets are not added, and no groups.
    """
    bits, drawn, inputs, products = scratch
    n_chains, n = units.shape
    refresh = keys.step % _REFRESH == 0
    one = np.float32(1.0)
    for c in range(n_chains):
        part = 0
        if log_weights.shape[0] > 1:
            u = chain_uniform(keys, c, _PART, bits)
            part = _draw_part(log_weights, other_field[c], n_other, betas[c], u)
        bits_of_one_chain(bits, n, keys, c, purpose)
        scale = np.float32(betas[c])
        shift = np.float32(1.0 - betas[c] if purpose == _VISIBLE else 0.0)
        if starts.shape[0] > 1:
            for i in range(n):
                inputs[i] = scale * field[c, i] + shift * offsets[part, i]
            draw_categories(inputs, starts, bits, drawn)
        else:  # in one loop, which is faster by a tenth than `draw_units`
            for j in range(n):
                negative = -(scale * field[c, j] + shift * offsets[part, j])
                drawn[j] = np.uint8(uniform(bits[j]) * (one + exp32(negative)) < one)
        if not change_units(units[c], drawn, products, c, refresh):
            _copy_row(other_bias[0], other_field[c])
    add_layer(other_field, rows, products)


@njit
def refresh_field(units, bias, rows, field):
    """Sum the field of one layer anew from the units of the other."""
    products = layer(*units.shape)
    for c in range(units.shape[0]):
        _copy_row(bias[0], field[c])
        change_units(units[c], units[c], products, c, True)
    add_layer(field, rows, products)


# ---- log densities
@summing
def sum_positive(field, n):
    """Sum of max(g, 0) over hidden units."""
    zero = np.float32(0.0)
    positive = 0.0
    for start in range(0, n, _FACTORS32):
        inputs = field[start : min(start + _FACTORS32, n)]
        total = zero
        for j in range(inputs.shape[0]):
            total += max(inputs[j], zero)
        positive += np.float64(total)
    return positive


@summing
def log_sum(field, n, beta):
    """Sum of log(1 + e^(-beta |g|)) over hidden units.

    A product of factors, each in [1, 2], needs one logarithm.
    """
    one = np.float32(1.0)
    minus = -np.float32(beta)
    total = 0.0
    for first in range(0, n, _FACTORS):
        product = 1.0
        for start in range(first, min(first + _FACTORS, n), _FACTORS32):
            inputs = field[start : min(start + _FACTORS32, n)]
            part = one
            for j in range(inputs.shape[0]):
                part *= one + exp32(minus * abs(inputs[j]))
            product *= np.float64(part)
        total += math.log(product)
    return total


@summing
def _sum_on(h, field, n):
    """Sum of the inputs of the hidden units that are on."""
    total = 0.0
    for j in range(n):
        total += np.float64(np.float32(h[j]) * field[j])
    return total


@borrowing
def _slope(model, state, c):
    """d log f / d beta of chain c, but for what the hidden units that are summed out and the base's
    further parts bend: log(1 + e^(beta g)) = beta max(g, 0) + log(1 + e^(-beta |g|)).
    """
    field = state.hidden_field[c]
    n = state.h.shape[1]
    of_hidden = _sum_on(state.h[c], field, n) if model.joint else sum_positive(field, n)
    return np.float64(field[n]) + model.base_constant + of_hidden


@borrowing
def _bend(model, state, c, beta):
    """Part of log f of chain c that is not linear in beta."""
    field = state.hidden_field[c]
    n = state.h.shape[1]
    of_hidden = 0.0 if model.joint else log_sum(field, n, beta)
    return of_hidden + _log_base_ratio(model.log_weights, field, n, beta)


@summing
def _marginal_derivatives(field, n, beta):
    """Sums over hidden units of d/dbeta log(1 + e^(beta g)) = g sigma(beta g) and of g^2 sigma (1 -
    sigma).
    """
    one = np.float32(1.0)
    zero = np.float32(0.0)
    minus = -np.float32(beta)
    first, second = zero, zero
    for j in range(n):
        g = field[j]
        power = exp32(minus * abs(g))
        share = one / (one + power)
        part = abs(g) * (power * share)
        first += max(g, zero) - part
        second += part * (abs(g) * share)
    return np.float64(first), np.float64(second)


# ---- what the programs need
@implements(programs.scratch, PathArrays)
def _scratch(model, state):
    n_chains, n_visible = state.v.shape
    n_hidden = state.h.shape[1]
    largest = max(n_visible, n_hidden)
    bits = np.empty(largest + 4, np.uint32)
    drawn = np.empty(largest, np.uint8)
    inputs = np.empty(largest, np.float32)
    of_units = (bits, drawn, inputs, layer(n_chains, largest))
    return of_units, np.empty(n_hidden, np.float32), np.empty(n_hidden, np.float32)


@implements(programs.sweep, PathArrays, **BORROWS)
def _sweep(model, state, betas, reverse, keys, work):
    """Block Gibbs: h | v, then k | v and v | k, h, or with h kept the reverse."""
    visible_first = reverse and model.joint
    for half in range(2):
        if (half == 0) != visible_first:
            _draw_layer(
                state.h,
                state.hidden_field,
                state.visible_field,
                model.visible_bias,
                model.by_hidden,
                model.hidden_bias,
                model.starts[:1],
                model.log_weights[:1],
                0,
                betas,
                keys,
                _HIDDEN,
                work[0],
            )
        else:
            _draw_layer(
                state.v,
                state.visible_field,
                state.hidden_field,
                model.hidden_bias,
                model.by_visible,
                model.logits,
                model.starts,
                model.log_weights,
                state.h.shape[1],
                betas,
                keys,
                _VISIBLE,
                work[0],
            )


@implements(programs.log_base, PathArrays, **BORROWS)
def _log_base(model, state, c):
    """a @ v - sum_i log(1 + e^a_i), less n log 2 with h kept."""
    n = state.h.shape[1]
    summed = 0.0 if model.joint else n * LOG_2
    field = state.hidden_field[c]
    own = np.float64(field[n + 1]) - model.base_constant + summed
    return own + _log_base_ratio(model.log_weights, field, n, 0.0)


@implements(programs.log_ratios, PathArrays, **BORROWS)
def _log_ratios(model, state, old, new, work, out):
    for c in range(old.shape[0]):
        slope = _slope(model, state, c)
        bend = _bend(model, state, c, old[c])
        for i in range(new.shape[0]):
            out[i, c] = 0.0
            if new[i, c] != old[c]:
                out[i, c] = (new[i, c] - old[c]) * slope + (
                    _bend(model, state, c, new[i, c]) - bend
                )


@implements(programs.log_ladder, PathArrays, **BORROWS)
def _log_ladder(model, state, c, ladder, work, out):
    n = state.h.shape[1]
    field = state.hidden_field[c]
    intercept = np.float64(field[n + 1]) - model.base_constant
    slope = _slope(model, state, c)
    for k in range(ladder.shape[0]):
        out[k] = intercept + ladder[k] * slope
    if not model.joint:
        _add_log_sums(field, n, ladder, work[1], work[2], out)
    for k in range(ladder.shape[0]):
        out[k] += _log_base_ratio(model.log_weights, field, n, ladder[k])


@summing
def _add_log_sums(field, n, ladder, powers, ratios, out):
    """Add the sum of log(1 + e^(-beta_k |g_j|)) at every level; the powers are carried from level
    to level by multiplication.
    """
    one = np.float32(1.0)
    beta = 0.0
    delta = 0.0
    for j in range(n):
        powers[j] = one
        ratios[j] = one
    for k in range(ladder.shape[0]):
        if abs(ladder[k] - beta - delta) > 1e-12:
            delta = ladder[k] - beta
            minus = -np.float32(delta)
            for j in range(n):
                ratios[j] = exp32(minus * abs(field[j]))
        beta = ladder[k]
        for first in range(0, n, _FACTORS):
            product = 1.0
            for start in range(first, min(first + _FACTORS, n), _FACTORS32):
                own_powers = powers[start : start + _FACTORS32]
                own_ratios = ratios[start : start + _FACTORS32]
                part = one
                for j in range(own_powers.shape[0]):
                    own_powers[j] *= own_ratios[j]
                    part *= one + own_powers[j]
                product *= np.float64(part)
            out[k] += math.log(product)


@implements(programs.derivatives, PathArrays, forceinline=True, **BORROWS)
def _derivatives(model, state, c, beta, work):
    """The slope where h is kept; else each unit adds g sigma(beta g) and g^2 sigma (1 - sigma) in
    place of h g.

    The base adds minus the mean of d_k = log q_k(v) - log q_0(v) over k given v, and to the second
    the variance.
    """
    field = state.hidden_field[c]
    n = state.h.shape[1]
    first, second = 0.0, 0.0
    if model.joint:
        first = _sum_on(state.h[c], field, n)
    else:
        first, second = _marginal_derivatives(field, n, beta)
    first += np.float64(field[n]) + model.base_constant
    if model.log_weights.shape[0] == 1:
        return first, second
    log_sum = _log_base_ratio(model.log_weights, field, n, beta)
    mean = 0.0
    square = 0.0
    for k in range(1, model.log_weights.shape[0]):
        d = np.float64(field[n + 1 + k])
        share = math.exp(_log_part(model.log_weights, field, n, k, 1.0 - beta) - log_sum)
        mean += share * d
        square += share * d * d
    return first - mean, second + square - mean * mean


@implements(programs.summarise, PathArrays, **BORROWS)
def _summarise(model, state, c, out):
    """Probabilities of the hidden units given the visible ones, which don't see units that no
    weight reaches.
    """
    for j in range(out.shape[0]):
        out[j] = 1.0 / (1.0 + np.float64(exp32(-state.hidden_field[c, j])))
