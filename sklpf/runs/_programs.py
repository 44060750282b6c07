"""The programs that move chains: compiled where the path has kernels for the transition, else plain loops."""

from __future__ import annotations

import numpy as np

from sklpf.paths._base import map_state, n_chains
from sklpf.runs import _plain


def anneal(path, transition, state, memory, levels, stream, reverse=False):
    """See the plain loop of this name."""
    model = transition.compiled(path)
    if model is None:
        return _plain.anneal(path, transition, state, memory, levels, stream, reverse)
    state, log_weights = map_state(np.array, state), np.zeros(n_chains(state))
    path.kernel("anneal")(model, state, path.ladder[levels], reverse, stream.keys, log_weights)
    return state, memory, log_weights


def exchange(path, transition, state, memory, levels, ends, shift, n_scans, stream):
    """See the plain loop of this name."""
    model = transition.compiled(path)
    if model is None:
        return _plain.exchange(path, transition, state, memory, levels, ends, shift, n_scans, stream)
    from sklpf.kernels._programs import ExchangeSums

    state, levels, ends = map_state(np.array, state), np.array(levels), np.array(ends)
    n_levels = len(path.ladder)
    n = len(levels) // n_levels
    sums = ExchangeSums(
        pairs=np.zeros((n, n_levels - 1, 5)),
        levels=np.zeros((n, n_levels, 4)),
        summaries=np.zeros((n, 2, path.n_summaries)),
        trips=np.zeros(n, dtype=np.int64),
    )
    path.kernel("exchange")(model, state, levels, ends, path.ladder, shift, n_scans, stream.keys, sums)
    return state, memory, levels, ends, *sums


def temper(path, transition, state, memory, levels, log_pseudo_prior, n_redraws, sweeps_per_redraw, stride, stream):
    """See the plain loop of this name."""
    model, order = transition.compiled(path), (n_redraws, sweeps_per_redraw, stride)
    if model is None:
        return _plain.temper(path, transition, state, memory, levels, log_pseudo_prior, *order, stream)
    from sklpf.kernels._programs import Q_OFFSET, TemperSums

    state, levels = map_state(np.array, state), np.array(levels)
    n, n_levels, n_records = len(levels), len(path.ladder), -(-n_redraws // stride)
    sums = TemperSums(
        q=np.zeros((n, n_levels)),
        counts=np.zeros((n, n_levels), dtype=np.int64),
        levels=np.zeros((n_levels, 4)),
        vectors=np.empty((n_records, n, n_levels)),
        vector_levels=np.empty((n_records, n), dtype=np.int64),
    )
    path.kernel("temper")(model, state, levels, path.ladder, log_pseudo_prior, *order, stream.keys, sums)
    with np.errstate(divide="ignore"):
        return state, memory, levels, np.log(sums.q) - Q_OFFSET, *sums[1:]
