"""Numba kernels of the path from one Bernoulli RBM to another."""

import functools
import math
from typing import NamedTuple

import numpy as np

from sklpf._utils import random as _random
from sklpf.kernels import SUMS, exp32, implements, inlined, njit, random_bits, uniform
from sklpf.kernels import _programs as programs

_HIDDEN = np.int64(_random.FIRST)
_VISIBLE = np.int64(_random.SECOND)
_DRAW = np.int64(_random.ACCEPT)
_RENEW_EVERY = 4  # sweeps
_FOLDED = 512  # factors in [1, 2] whose product is far from overflow


class Ends(NamedTuple):
    """Two RBMs of the same M visible units and J hidden units, and draws of both; read-only."""

    weights: np.ndarray  # (2, J, M) float32
    # (M, 2 J) float32: the same, the first model's units before the second's
    by_visible: np.ndarray
    hidden: np.ndarray  # (2 J,) float32
    visible: np.ndarray  # (2, M) float32
    constants: np.ndarray  # (2,) of log f at the ends
    draws: np.ndarray  # (2, G, N, M) uint8


@njit
def refresh(model, v, inputs, linear):
    """Sum the hidden units' inputs at both ends (n, 2 J) and the linear terms of log f_0 and log
    f_1 (n, 2).
    """
    for c in range(v.shape[0]):
        _refresh_chain(model, v[c], inputs[c], linear[c])


@inlined
def _refresh_chain(model, v, inputs, linear):
    """`refresh` of one chain."""
    first, second = model.constants[0], model.constants[1]
    for j in range(inputs.shape[0]):
        inputs[j] = model.hidden[j]
    for i in range(v.shape[0]):
        if v[i]:
            first += np.float64(model.visible[0, i])
            second += np.float64(model.visible[1, i])
            row = model.by_visible[i]
            for j in range(inputs.shape[0]):
                inputs[j] += row[j]
    linear[0] = first
    linear[1] = second


@inlined
def _draw(inputs, bits, n, units):
    """units_j ~ Bernoulli(sigmoid(inputs_j))."""
    one = np.float32(1.0)
    for j in range(n):
        units[j] = np.uint8(uniform(bits[j]) * (one + exp32(-inputs[j])) < one)


@inlined
def _blend(ends, beta, n, out):
    """(1 - beta) ends[:n] + beta ends[n:]."""
    low, high = np.float32(1.0 - beta), np.float32(beta)
    for j in range(n):
        out[j] = low * ends[j] + high * ends[n + j]


@functools.partial(inlined, **SUMS)
def _softplus_sum(ends, beta, n, work):
    """Sum over j of log(1 + e^x_j), x = (1 - beta) ends[:n] + beta ends[n:]."""
    _blend(ends, beta, n, work)
    one = np.float32(1.0)
    zero = np.float32(0.0)
    total = 0.0
    for start in range(0, n, _FOLDED):
        product = 1.0
        for j in range(start, min(start + _FOLDED, n)):
            total += np.float64(max(work[j], zero))
            product *= np.float64(one + exp32(-abs(work[j])))
        total += math.log(product)
    return total


@inlined
def _log_f(model, state, c, beta, work):
    """log f_beta of one chain."""
    linear = state.linear[c]
    n = model.weights.shape[1]
    return (
        (1.0 - beta) * linear[0] + beta * linear[1] + _softplus_sum(state.inputs[c], beta, n, work)
    )


# ---- what the programs need
@implements(programs.scratch, Ends)
def _scratch(model, state):
    largest = max(model.weights.shape[1], model.weights.shape[2])
    return (
        np.empty(largest, np.float32),
        np.empty(largest + 4, np.uint32),
        np.empty(largest, np.uint8),
    )


@implements(programs.sweep, Ends)
def _sweep(model, state, betas, reverse, keys, work):
    """h given v, then v given h; at every fourth sweep draws of the models in place of the states
    at both ends.
    """
    field, bits, h = work
    n_hidden = model.weights.shape[1]
    n_visible = model.weights.shape[2]
    for c in range(betas.shape[0]):
        beta = betas[c]
        v = state.v[c]
        low, high = np.float32(1.0 - beta), np.float32(beta)
        _blend(state.inputs[c], beta, n_hidden, field)
        random_bits(bits, n_hidden, keys.key0, keys.key1, keys.step, keys.chain + c, _HIDDEN)
        _draw(field, bits, n_hidden, h)
        for i in range(n_visible):
            field[i] = low * model.visible[0, i] + high * model.visible[1, i]
        for j in range(n_hidden):
            if h[j]:
                first, second = model.weights[0, j], model.weights[1, j]
                for i in range(n_visible):
                    field[i] += low * first[i] + high * second[i]
        random_bits(bits, n_visible, keys.key0, keys.key1, keys.step, keys.chain + c, _VISIBLE)
        _draw(field, bits, n_visible, v)
        if keys.step % _RENEW_EVERY == 0 and (beta == 0.0 or beta == 1.0):
            random_bits(bits, 1, keys.key0, keys.key1, keys.step, keys.chain + c, _DRAW)
            own = model.draws[np.int64(beta), state.ladder[c]]
            chosen = own[np.int64(np.float64(uniform(bits[0])) * own.shape[0])]
            for i in range(n_visible):
                v[i] = chosen[i]
        _refresh_chain(model, v, state.inputs[c], state.linear[c])


@implements(programs.log_base, Ends)
def _log_base(model, state, c):
    n = model.weights.shape[1]
    return state.linear[c, 0] + _softplus_sum(state.inputs[c], 0.0, n, np.empty(n, np.float32))


@implements(programs.log_ratio, Ends)
def _log_ratio(model, state, c, old, new, work):
    return _log_f(model, state, c, new, work[0]) - _log_f(model, state, c, old, work[0])


@implements(programs.log_ladder, Ends)
def _log_ladder(model, state, c, ladder, work, out):
    for k in range(ladder.shape[0]):
        out[k] = _log_f(model, state, c, ladder[k], work[0])


@implements(programs.derivatives, Ends)
def _derivatives(model, state, c, beta, work):
    """With x_j changing by d_j along the path, each unit adds d sigma(x) and d^2 sigma(x) (1 -
    sigma(x)).
    """
    inputs = state.inputs[c]
    field = work[0]
    n = model.weights.shape[1]
    first = state.linear[c, 1] - state.linear[c, 0]
    second = 0.0
    _blend(inputs, beta, n, field)
    for j in range(n):
        on = 1.0 / (1.0 + np.float64(exp32(-field[j])))
        change = np.float64(inputs[n + j] - inputs[j])
        first += change * on
        second += change * change * on * (1.0 - on)
    return first, second


@implements(programs.summarise, Ends)
def _summarise(model, state, c, out):
    """Probabilities of the second model's hidden units."""
    n = model.weights.shape[1]
    for j in range(n):
        out[j] = 1.0 / (1.0 + np.float64(exp32(-state.inputs[c, n + j])))
