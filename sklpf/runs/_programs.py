"""The programs that move chains: compiled where the path has kernels for the transition, else plain
loops.
"""

from __future__ import annotations

import contextlib

import numpy as np

from sklpf._utils.limits import BadValue
from sklpf.paths._base import map_state, n_chains
from sklpf.runs import _plain
from sklpf.runs._plain import Exchanged, Tempered
from sklpf.transitions._side_by_side import Passage, can_ask


def anneal(path, transition, state, memory, levels, stream, reverse=False):
    """See the plain loop of this name; rows that move side by side ask for it."""
    if can_ask(path, transition):
        return path.ask(Passage(path, transition, state, memory, levels, stream, reverse))
    model = transition.compiled(path)
    if model is not None:
        with contextlib.suppress(BadValue):  # the plain loop says where
            moving = _copies(state, memory)
            log_weights = np.zeros(n_chains(state))
            path.kernel("anneal")(
                model, moving, path.ladder[levels], reverse, stream.keys, log_weights
            )
            return *_parts(moving, memory), log_weights
    return _plain.anneal(path, transition, state, memory, levels, stream, reverse)


def exchange(
    path, transition, state, memory, levels, ends, shift, n_scans, stream, stride=0
) -> Exchanged:
    """See the plain loop of this name."""
    model = transition.compiled(path)
    if model is not None:
        with contextlib.suppress(BadValue):
            return _exchange(
                path, model, state, memory, levels, ends, shift, n_scans, stream, stride
            )
    return _plain.exchange(
        path, transition, state, memory, levels, ends, shift, n_scans, stream, stride
    )


def _exchange(path, model, state, memory, levels, ends, shift, n_scans, stream, stride):
    from sklpf.kernels._programs import ExchangeSums

    moving = _copies(state, memory)
    levels = np.array(levels)
    ends = np.array(ends)
    n_levels = len(path.ladder)
    n = len(levels) // n_levels
    n_records = len(range(-stream.step % stride, n_scans, stride)) if stride else 0
    sums = ExchangeSums(
        pairs=np.zeros((n, n_levels - 1, 5)),
        levels=np.zeros((n, n_levels, 4)),
        summaries=np.zeros((n, 2, path.n_summaries)),
        trips=np.zeros(n, dtype=np.int64),
        stride=stride,
        vectors=np.empty((n_records, len(levels), n_levels)),
        slopes=np.empty((n_records, len(levels), n_levels)),
        vector_levels=np.empty((n_records, len(levels)), dtype=np.int64),
    )
    path.kernel("exchange")(
        model, moving, levels, ends, path.ladder, shift, n_scans, stream.keys, sums
    )
    state, memory = _parts(moving, memory)
    return Exchanged(
        state=state,
        memory=memory,
        levels=levels,
        ends=ends,
        pair_sums=sums.pairs,
        level_sums=sums.levels,
        summaries=sums.summaries,
        trips=sums.trips,
        vectors=sums.vectors,
        slopes=sums.slopes,
        vector_levels=sums.vector_levels,
    )


def temper(
    path,
    transition,
    state,
    memory,
    levels,
    log_pseudo_prior,
    n_redraws,
    sweeps_per_redraw,
    stride,
    stream,
    first=None,
) -> Tempered:
    """See the plain loop of this name."""
    model = transition.compiled(path)
    order = (n_redraws, sweeps_per_redraw, stride)
    if model is not None and (first is None or len(first) == 2):
        with contextlib.suppress(BadValue):
            return _temper(path, model, state, memory, levels, log_pseudo_prior, *order, stream)
    return _plain.temper(
        path, transition, state, memory, levels, log_pseudo_prior, *order, stream, first
    )


def _temper(
    path,
    model,
    state,
    memory,
    levels,
    log_pseudo_prior,
    n_redraws,
    sweeps_per_redraw,
    stride,
    stream,
):
    from sklpf.kernels._programs import Q_OFFSET, TemperSums

    order = n_redraws, sweeps_per_redraw, stride
    moving = _copies(state, memory)
    levels = np.array(levels)
    n = len(levels)
    n_levels = len(path.ladder)
    n_records = -(-n_redraws // stride)
    sums = TemperSums(
        q=np.zeros((n, n_levels)),
        counts=np.zeros((n, n_levels), dtype=np.int64),
        levels=np.zeros((n_levels, 4)),
        vectors=np.empty((n_records, n, n_levels)),
        vector_levels=np.empty((n_records, n), dtype=np.int64),
        slopes=np.empty((n_records, n, n_levels)),
        pairs=np.zeros((n_levels - 1, 4)),
        summaries=np.zeros((2, path.n_summaries)),
    )
    path.kernel("temper")(
        model, moving, levels, path.ladder, log_pseudo_prior, *order, stream.keys, sums
    )
    with np.errstate(divide="ignore"):
        log_q_sums = np.log(sums.q) - Q_OFFSET
    state, memory = _parts(moving, memory)
    return Tempered(
        state=state,
        memory=memory,
        levels=levels,
        log_q_sums=log_q_sums,
        counts=sums.counts,
        level_sums=sums.levels[np.newaxis],
        pair_sums=sums.pairs[np.newaxis],
        summaries=sums.summaries[np.newaxis],
        vectors=sums.vectors,
        slopes=sums.slopes,
        vector_levels=sums.vector_levels,
    )


def _copies(state, memory):
    """What a compiled program changes in place: the state, with the move's memory where
    it has one.
    """
    state = map_state(np.array, state)
    return (state, map_state(np.array, memory)) if memory else state


def _parts(moving, memory):
    """State and memory after a compiled program."""
    return moving if memory else (moving, memory)
