"""Numba kernels of paths through several RBMs, whose parameters change linearly from one
to the next.
"""

from typing import NamedTuple

import numpy as np

from sklpf.kernels import (
    ACCEPT,
    BORROWS,
    FIRST,
    SECOND,
    bits_of_one_chain,
    borrowing,
    draw_units,
    exp32,
    implements,
    inlined,
)
from sklpf.kernels import _programs as programs
from sklpf.kernels._random import chain_uniform
from sklpf.models.rbm._path_kernels import log_sum, sum_positive

_HIDDEN = FIRST
_VISIBLE = SECOND
_DRAW = ACCEPT
_RENEW_EVERY = 4  # sweeps


class Checkpoints(NamedTuple):
    """C RBMs of the same M visible and J hidden units; read-only."""

    betas: np.ndarray  # (C,), from 0 to 1
    weights: np.ndarray  # (C, J, M) float32
    # (M, C J) float32: the same, each model's units before the next one's
    by_visible: np.ndarray
    hidden: np.ndarray  # (C J,) float32
    visible: np.ndarray  # (C, M) float32
    constants: np.ndarray  # (C,) of log f
    draws: np.ndarray  # (2, G, N, M) uint8 of the first and the last, or G = 0
    starts: np.ndarray  # of groups of visible units with one unit on; a single one: there are none


@borrowing
def _refresh_chain(model, v, inputs, linear, piece):
    """Sum the hidden units' inputs (2 J,) and the linear terms of log f (2,) at both ends of a
    chain's piece.
    """
    n = model.weights.shape[1]
    start = piece * n
    first = model.constants[piece]
    second = model.constants[piece + 1]
    for j in range(2 * n):
        inputs[j] = model.hidden[start + j]
    for i in range(v.shape[0]):
        if v[i]:
            first += np.float64(model.visible[piece, i])
            second += np.float64(model.visible[piece + 1, i])
            row = model.by_visible[i, start : start + 2 * n]
            for j in range(2 * n):
                inputs[j] += row[j]
    linear[0] = first
    linear[1] = second


@borrowing
def _piece(model, beta):
    """Number s of the piece (betas[s], betas[s + 1]] that beta lies in, 0 at the base."""
    piece = 0
    while beta > model.betas[piece + 1]:
        piece += 1
    return piece


@borrowing
def _share(model, piece, beta):
    """Position of beta along a piece, in [0, 1]."""
    return (beta - model.betas[piece]) / (model.betas[piece + 1] - model.betas[piece])


@borrowing
def _ends(model, state, c, piece, work):
    """The inputs and linear terms of chain c at both ends of a piece: its own, or work space that
    they are written to. Only for functions that borrow too, as it counts no references.
    """
    if piece == state.piece[c]:
        return state.inputs[c], state.linear[c]
    _refresh_chain(model, state.v[c], work.inputs, work.linear, piece)
    return work.inputs, work.linear


@borrowing
def _blend(ends, share, n, out):
    """(1 - share) ends[:n] + share ends[n:]."""
    low, high = np.float32(1.0 - share), np.float32(share)
    for j in range(n):
        out[j] = low * ends[j] + high * ends[n + j]


@borrowing
def _log_f(model, state, c, beta, work):
    """log f_beta of one chain."""
    piece = _piece(model, beta)
    inputs, linear = _ends(model, state, c, piece, work)
    return _log_f_between(inputs, linear, _share(model, piece, beta), work.field)


@borrowing
def _log_f_between(inputs, linear, share, field):
    """log f of one chain, from its inputs and linear terms at the ends of a piece."""
    n = inputs.shape[0] // 2
    _blend(inputs, share, n, field)
    softplus = sum_positive(field, n) + log_sum(field, n, 1.0)
    return (1.0 - share) * linear[0] + share * linear[1] + softplus


# ---- what the programs need
class Work(NamedTuple):
    """Work space of one chain."""

    field: np.ndarray  # (largest layer,) float32
    bits: np.ndarray  # (largest layer + 4,) uint32
    h: np.ndarray  # (largest layer,) uint8
    inputs: np.ndarray  # (2 J,) float32
    linear: np.ndarray  # (2,)


@inlined
def _work(model):
    n = model.weights.shape[1]
    largest = max(n, model.weights.shape[2])
    return Work(
        np.empty(largest, np.float32),
        np.empty(largest + 4, np.uint32),
        np.empty(largest, np.uint8),
        np.empty(2 * n, np.float32),
        np.empty(2),
    )


@implements(programs.scratch, Checkpoints)
def _scratch(model, state):
    return _work(model)


@implements(programs.sweep, Checkpoints, **BORROWS)
def _sweep(model, state, betas, reverse, keys, work):
    """h given v, then v given h; at every fourth sweep draws of the models, where there are any, in
    place of the states at both ends.
    """
    field = work.field
    bits = work.bits
    h = work.h
    n_hidden = model.weights.shape[1]
    n_visible = model.weights.shape[2]
    has_draws = model.draws.shape[1] > 0
    for c in range(betas.shape[0]):
        beta = betas[c]
        v = state.v[c]
        piece = _piece(model, beta)
        if piece != state.piece[c]:
            state.piece[c] = piece
            _refresh_chain(model, v, state.inputs[c], state.linear[c], piece)
        share = _share(model, piece, beta)
        low = np.float32(1.0 - share)
        high = np.float32(share)
        _blend(state.inputs[c], share, n_hidden, field)
        bits_of_one_chain(bits, n_hidden, keys, c, _HIDDEN)
        draw_units(field, model.starts[:1], bits, n_hidden, h)
        for i in range(n_visible):
            field[i] = low * model.visible[piece, i] + high * model.visible[piece + 1, i]
        for j in range(n_hidden):
            if h[j]:
                first = model.weights[piece, j]
                second = model.weights[piece + 1, j]
                for i in range(n_visible):
                    field[i] += low * first[i] + high * second[i]
        bits_of_one_chain(bits, n_visible, keys, c, _VISIBLE)
        draw_units(field, model.starts, bits, n_visible, v)
        if has_draws and keys.step % _RENEW_EVERY == 0 and (beta == 0.0 or beta == 1.0):
            own = model.draws[np.int64(beta), state.ladder[c]]
            u = chain_uniform(keys, c, _DRAW, bits)
            chosen = own[np.int64(np.float64(u) * own.shape[0])]
            for i in range(n_visible):
                v[i] = chosen[i]
        _refresh_chain(model, v, state.inputs[c], state.linear[c], piece)


@implements(programs.log_base, Checkpoints)
def _log_base(model, state, c):
    return _log_f(model, state, c, 0.0, _work(model))


@implements(programs.log_ratios, Checkpoints, **BORROWS)
def _log_ratios(model, state, old, new, work, out):
    for c in range(old.shape[0]):
        here = _log_f(model, state, c, old[c], work)
        for i in range(new.shape[0]):
            out[i, c] = 0.0
            if new[i, c] != old[c]:
                out[i, c] = _log_f(model, state, c, new[i, c], work) - here


@implements(programs.log_ladder, Checkpoints, **BORROWS)
def _log_ladder(model, state, c, ladder, work, out):
    piece = 0
    inputs, linear = _ends(model, state, c, piece, work)
    for k in range(ladder.shape[0]):
        if ladder[k] > model.betas[piece + 1]:
            piece = _piece(model, ladder[k])
            inputs, linear = _ends(model, state, c, piece, work)
        out[k] = _log_f_between(inputs, linear, _share(model, piece, ladder[k]), work.field)


@implements(programs.derivatives, Checkpoints, **BORROWS)
def _derivatives(model, state, c, beta, work):
    """With x_j changing by d_j along the piece, each unit adds d sigma(x) and d^2 sigma(x) (1 -
    sigma(x)); both are divided by the length of the piece.
    """
    piece = _piece(model, beta)
    inputs, linear = _ends(model, state, c, piece, work)
    field = work.field
    n = model.weights.shape[1]
    first = linear[1] - linear[0]
    second = 0.0
    _blend(inputs, _share(model, piece, beta), n, field)
    for j in range(n):
        on = 1.0 / (1.0 + np.float64(exp32(-field[j])))
        change = np.float64(inputs[n + j] - inputs[j])
        first += change * on
        second += change * change * on * (1.0 - on)
    length = model.betas[piece + 1] - model.betas[piece]
    return first / length, second / (length * length)


@implements(programs.summarise, Checkpoints)
def _summarise(model, state, c, out):
    _write_probabilities(model, state, c, _work(model), out)


@borrowing
def _write_probabilities(model, state, c, work, out):
    """Write the probabilities of the last model's hidden units to out (J,)."""
    n = model.weights.shape[1]
    inputs, _ = _ends(model, state, c, _piece(model, 1.0), work)
    for j in range(n):
        out[j] = 1.0 / (1.0 + np.float64(exp32(-inputs[n + j])))
