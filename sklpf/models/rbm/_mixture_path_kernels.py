"""Numba kernels of the path to a Bernoulli RBM from a mixture of independent units.

They are those of the path from one product (`_path_kernels`), whose log f is that of the first
part, and what the other parts add: hidden_field has a further column for each, d_k = log q_k(v) -
log q_0(v).
"""

import math
from typing import NamedTuple

import numpy as np

from sklpf._utils import random as _random
from sklpf.kernels import _programs as programs
from sklpf.kernels import add_rows, implements, inlined, random_bits, uniform
from sklpf.models.rbm._path_kernels import (
    _REFRESH,
    Parameters,
    _copy_row,
    _count_active,
    _draw_layer,
    _draw_units,
    _list_active,
    _list_flips,
)

_HIDDEN = np.int64(_random.FIRST)
_VISIBLE = np.int64(_random.SECOND)
_PART = np.int64(_random.ACCEPT)


class MixtureParameters(NamedTuple):
    """What the kernels need of a path from K parts; read-only."""

    single: Parameters  # the path from the first part alone, with more columns
    logits: np.ndarray  # (K, M padded) float32
    log_weights: np.ndarray  # (K,)


@inlined
def _log_part(model, field, n, k, share):
    """Log of w_k (q_k / q_0)^share."""
    if k == 0:
        return model.log_weights[0]
    return model.log_weights[k] + share * np.float64(field[n + 1 + k])


@inlined
def _log_sum(model, field, n, beta):
    """Log of sum_k w_k (q_k / q_0)^(1 - beta)."""
    n_parts = model.log_weights.shape[0]
    share = 1.0 - beta
    largest = -np.inf
    for k in range(n_parts):
        largest = max(largest, _log_part(model, field, n, k, share))
    total = 0.0
    for k in range(n_parts):
        total += math.exp(_log_part(model, field, n, k, share) - largest)
    return largest + math.log(total)


@inlined
def _draw_part(model, field, n, beta, u):
    """Draw k given v; at beta = 0, where v is drawn from the base, whatever v was before, so that
    chains there go from part to part.
    """
    last = model.log_weights.shape[0] - 1
    share = 1.0 - beta if beta > 0.0 else 0.0
    log_sum = _log_sum(model, field, n, 1.0 - share)
    left = np.float64(u)
    for k in range(last):
        left -= math.exp(_log_part(model, field, n, k, share) - log_sum)
        if left < 0.0:
            return k
    return last


@inlined
def _draw_visible(model, state, betas, keys, scratch):
    """Draw k and v of every chain, given the hidden units, and bring their inputs up to date."""
    bits, drawn, off, indices, signs, counts = scratch
    single = model.single
    n_visible = state.v.shape[1]
    n_hidden = state.h.shape[1]
    refresh = keys.step % _REFRESH == 0
    for c in range(state.v.shape[0]):
        beta = betas[c]
        random_bits(bits, 1, keys.key0, keys.key1, keys.step, keys.chain + c, _PART)
        part = _draw_part(model, state.hidden_field[c], n_hidden, beta, uniform(bits[0]))
        random_bits(bits, n_visible, keys.key0, keys.key1, keys.step, keys.chain + c, _VISIBLE)
        field = state.visible_field[c]
        _draw_units(field, model.logits[part], beta, 1.0 - beta, bits, n_visible, drawn)
        count = _list_flips(drawn, state.v[c], n_visible, indices[c], signs[c])
        if refresh or _count_active(state.v[c], n_visible) < count:
            count = _list_active(state.v[c], off, n_visible, indices[c], signs[c])
            _copy_row(single.hidden_bias[0], state.hidden_field[c])
        counts[c] = count
    add_rows(state.hidden_field, single.by_visible, indices, signs, counts)


# ---- what the programs need
@implements(programs.scratch, MixtureParameters)
def _scratch(model, state):
    return programs.scratch(model.single, state)


@implements(programs.sweep, MixtureParameters)
def _sweep(model, state, betas, reverse, keys, work):
    """Block Gibbs: h | v, then k | v and v | k, h, or with h kept the reverse."""
    visible_first = reverse and model.single.joint
    for half in range(2):
        if (half == 0) != visible_first:
            _draw_layer(
                state.h,
                state.hidden_field,
                state.visible_field,
                model.single.visible_bias,
                model.single.by_hidden,
                model.single.hidden_bias[0],
                betas,
                keys,
                _HIDDEN,
                work[0],
            )
        else:
            _draw_visible(model, state, betas, keys, work[0])


@implements(programs.log_base, MixtureParameters)
def _log_base(model, state, c):
    n = state.h.shape[1]
    own = programs.log_base(model.single, state, c)
    return own + _log_sum(model, state.hidden_field[c], n, 0.0)


@implements(programs.log_ratio, MixtureParameters)
def _log_ratio(model, state, c, old, new, work):
    n = state.h.shape[1]
    field = state.hidden_field[c]
    own = programs.log_ratio(model.single, state, c, old, new, work)
    return own + _log_sum(model, field, n, new) - _log_sum(model, field, n, old)


@implements(programs.log_ladder, MixtureParameters)
def _log_ladder(model, state, c, ladder, work, out):
    n = state.h.shape[1]
    programs.log_ladder(model.single, state, c, ladder, work, out)
    for k in range(ladder.shape[0]):
        out[k] += _log_sum(model, state.hidden_field[c], n, ladder[k])


@implements(programs.derivatives, MixtureParameters)
def _derivatives(model, state, c, beta, work):
    """d / d beta of the log of the sum is minus the mean of d_k over k given v, and its own
    derivative their variance.
    """
    first, second = programs.derivatives(model.single, state, c, beta, work)
    n = state.h.shape[1]
    field = state.hidden_field[c]
    log_sum = _log_sum(model, field, n, beta)
    mean = 0.0
    square = 0.0
    for k in range(1, model.log_weights.shape[0]):
        d = np.float64(field[n + 1 + k])
        share = math.exp(_log_part(model, field, n, k, 1.0 - beta) - log_sum)
        mean += share * d
        square += share * d * d
    return first - mean, second + square - mean * mean


@implements(programs.summarise, MixtureParameters)
def _summarise(model, state, c, out):
    programs.summarise(model.single, state, c, out)
