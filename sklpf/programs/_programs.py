"""The programs that move chains: compiled where the path has kernels for the transition, else plain
loops.
"""

from __future__ import annotations

import contextlib
import functools

import numpy as np

from sklpf._utils.limits import BadValue
from sklpf.paths._base import map_state, n_chains
from sklpf.programs import _plain
from sklpf.programs._chains import Chains
from sklpf.programs._plain import Exchanged, Tempered


def _faster(plain):
    """Decorator: the compiled form of a plain loop. It takes a packed `model` in the place of
    the transition.
    """

    def decorate(compiled):
        @functools.wraps(plain)
        def program(path, transition, *arguments, **options):
            model = transition.compiled(path)
            if model is not None:
                with contextlib.suppress(BadValue):  # the plain loop says where
                    return compiled(path, model, *arguments, **options)
            return plain(path, transition, *arguments, **options)

        return program

    return decorate


@_faster(_plain.anneal)
def anneal(path, model, chains, levels, stream, reverse=False, log_weights=0.0):
    moving = _copies(chains)
    sums = np.zeros(n_chains(chains.state)) + log_weights
    path.kernel("anneal")(model, moving, path.ladder[levels], reverse, stream.keys, sums)
    return _moved(moving, chains, levels[-1]), sums


@_faster(_plain.exchange)
def exchange(path, model, chains, ends, shift, n_scans, stream, stride=0):
    moving = _copies(chains)
    levels = np.array(chains.levels)
    ends = np.array(ends)
    sums = _plain.no_scans(path, chains.state, n_scans, stream, stride)
    trips = np.zeros(len(sums.pairs), dtype=np.int64)
    order = path.ladder, shift, n_scans, stride, stream.keys
    path.kernel("exchange")(model, moving, levels, ends, trips, *order, sums)
    return Exchanged(_moved(moving, chains, levels), ends, trips, sums)


@_faster(_plain.temper)
def temper(
    path,
    model,
    chains,
    log_pseudo_prior,
    n_redraws,
    sweeps_per_redraw,
    stride,
    stream,
    first=None,  # compiled chains are one group
):
    from sklpf.kernels._programs import Q_OFFSET

    moving = _copies(chains)
    levels = np.array(chains.levels)
    q = np.zeros((len(levels), len(path.ladder)))
    counts = np.zeros(q.shape, dtype=np.int64)
    sums = _plain.no_redraws(path, chains.state, 1, n_redraws, stride)
    order = path.ladder, log_pseudo_prior, n_redraws, sweeps_per_redraw, stride, stream.keys
    path.kernel("temper")(model, moving, levels, *order, q, counts, sums)
    with np.errstate(divide="ignore"):
        log_q_sums = np.log(q) - Q_OFFSET
    return Tempered(_moved(moving, chains, levels), log_q_sums, counts, sums)


def _copies(chains):
    """What a compiled program changes in place: the state, with the move's auxiliary variables if
    it has any.
    """
    state = map_state(np.array, chains.state)
    return (state, map_state(np.array, chains.auxiliary)) if chains.auxiliary else state


def _moved(moving, chains, levels) -> Chains:
    """The chains after a compiled program."""
    state, auxiliary = moving if chains.auxiliary else (moving, ())
    return Chains(state, auxiliary, levels)
