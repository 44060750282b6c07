"""The programs that move chains: compiled where the path has kernels for the transition, else plain
loops.
"""

from __future__ import annotations

import contextlib

import numpy as np

from sklpf._utils.limits import BadValue
from sklpf.paths._base import map_state, n_chains
from sklpf.programs import _plain
from sklpf.programs._chains import Chains
from sklpf.programs._plain import Exchanged, Tempered
from sklpf.programs._sums import LevelSums


def anneal(path, transition, state, memory, levels, stream, reverse=False, log_weights=0.0):
    """See the plain loop of this name."""
    model = transition.compiled(path)
    if model is not None:
        with contextlib.suppress(BadValue):  # the plain loop says where
            moving = _copies(state, memory)
            sums = np.zeros(n_chains(state)) + log_weights
            path.kernel("anneal")(model, moving, path.ladder[levels], reverse, stream.keys, sums)
            return *_parts(moving, memory), sums
    return _plain.anneal(path, transition, state, memory, levels, stream, reverse, log_weights)


def exchange(path, transition, chains, ends, shift, n_scans, stream, stride=0) -> Exchanged:
    """See the plain loop of this name."""
    model = transition.compiled(path)
    if model is not None:
        with contextlib.suppress(BadValue):
            return _exchange(path, model, chains, ends, shift, n_scans, stream, stride)
    return _plain.exchange(path, transition, chains, ends, shift, n_scans, stream, stride)


def _exchange(path, model, chains, ends, shift, n_scans, stream, stride):
    state, memory, levels = chains
    moving = _copies(state, memory)
    levels = np.array(levels)
    ends = np.array(ends)
    n_ladders = len(levels) // len(path.ladder)
    n_records = len(range(-stream.step % stride, n_scans, stride)) if stride else 0
    trips = np.zeros(n_ladders, dtype=np.int64)
    sums = _no_sums(path, len(levels), n_ladders, 5, n_records)
    path.kernel("exchange")(
        model,
        moving,
        levels,
        ends,
        trips,
        path.ladder,
        shift,
        n_scans,
        stride,
        stream.keys,
        sums,
    )
    return Exchanged(_chains(moving, memory, levels), ends, trips, sums)


def temper(
    path,
    transition,
    chains,
    log_pseudo_prior,
    n_redraws,
    sweeps_per_redraw,
    stride,
    stream,
    first=None,
) -> Tempered:
    """See the plain loop of this name."""
    model = transition.compiled(path)
    order = (log_pseudo_prior, n_redraws, sweeps_per_redraw, stride, stream)
    if model is not None and (first is None or len(first) == 2):
        with contextlib.suppress(BadValue):
            return _temper(path, model, chains, *order)
    return _plain.temper(path, transition, chains, *order, first)


def _temper(path, model, chains, log_pseudo_prior, n_redraws, sweeps_per_redraw, stride, stream):
    from sklpf.kernels._programs import Q_OFFSET

    state, memory, levels = chains
    moving = _copies(state, memory)
    levels = np.array(levels)
    n = len(levels)
    q = np.zeros((n, len(path.ladder)))
    counts = np.zeros(q.shape, dtype=np.int64)
    sums = _no_sums(path, n, 1, 4, -(-n_redraws // stride))
    path.kernel("temper")(
        model,
        moving,
        levels,
        path.ladder,
        log_pseudo_prior,
        n_redraws,
        sweeps_per_redraw,
        stride,
        stream.keys,
        q,
        counts,
        sums,
    )
    with np.errstate(divide="ignore"):
        log_q_sums = np.log(q) - Q_OFFSET
    return Tempered(_chains(moving, memory, levels), log_q_sums, counts, sums)


def _no_sums(path, n_chains, n_groups, n_pair_sums, n_records) -> LevelSums:
    """Room for what a program leaves."""
    n_levels = len(path.ladder)
    return LevelSums(
        pairs=np.zeros((n_groups, n_levels - 1, n_pair_sums)),
        levels=np.zeros((n_groups, n_levels, 4)),
        summaries=np.zeros((n_groups, 2, path.n_summaries)),
        vectors=np.empty((n_records, n_chains, n_levels)),
        vector_levels=np.empty((n_records, n_chains), dtype=np.int64),
        slopes=np.empty((n_records, n_chains, n_levels)),
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


def _chains(moving, memory, levels) -> Chains:
    """Likewise, with the levels."""
    state, memory = _parts(moving, memory)
    return Chains(state, memory, levels)
