"""Annealing: chains that go through a whole ladder, up from the base or down from the target, with their weights."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklpf._parallel import run_segments
from sklpf._random import Stream
from sklpf.paths._base import concatenate, n_chains
from sklpf.runs import _programs as programs
from sklpf.runs._plan import check_finite, equal_blocks, segments

_LARGEST_BLOCK = 32


@dataclass(frozen=True)
class AnnealingRun:
    """Log weights of independent chains that went through the ladder.

    Attributes
    ----------
    ladder : ndarray of shape (K,) or None
        Inverse temperatures; None for particle filters, which have none.
    base_log_partition : float
        log Z_0 in nats.
    up : ndarray of shape (n,) or None
        Log weights of chains from the base to the target: the mean weight is unbiased for Z / Z_0.
    down : ndarray of shape (n_starts, n_chains_per_start) or None
        Log weights of chains from the target to the base: from exact starts the mean weight is unbiased for Z_0 / Z.
    starts : {"exact", "tempered", "given", "ends"} or None
        What the chains that go down started from; "ends" are where chains arrived that had gone up.
    bound : ndarray or None
        Logs of independent estimates of Z that are not too large on average, made without the base.
    n_sweeps : int
        Sweeps of all chains together.
    log_f_rounding : float
        Size of the rounding errors of log_f in nats, where the path names one.
    """

    ladder: NDArray[np.float64] | None
    base_log_partition: float
    up: NDArray[np.float64] | None = None
    down: NDArray[np.float64] | None = None
    starts: str | None = None
    bound: NDArray[np.float64] | None = None
    n_sweeps: int = 0
    log_f_rounding: float = 0.0


def anneal_up(path, transition, n, key, n_jobs=None, checkpoint=None) -> tuple[NDArray[np.float64], Any]:
    """Log weights (n,) of chains that go up the whole ladder from exact base draws, and the state that they end in."""
    order = np.arange(len(path.ladder))
    return _anneal(path, transition, functools.partial(_from_base, path, key), order, n, key, n_jobs, checkpoint)


def anneal_down(path, transition, starts, n_chains_per_start, key, n_jobs=None, checkpoint=None, n_settling=0):
    """Log weights (n_starts, n_chains_per_start) of chains that go down the whole ladder from a state.

    They make `n_settling` sweeps at the target before.
    """
    start = functools.partial(_from_starts, path, key, starts, n_chains_per_start)
    n, last = n_chains(starts) * n_chains_per_start, len(path.ladder) - 1
    order = np.r_[np.full(n_settling, last), np.arange(last, -1, -1)]
    log_weights, _ = _anneal(path, transition, start, order, n, key, n_jobs, checkpoint, reverse=True)
    return log_weights.reshape(-1, n_chains_per_start)


def _anneal(path, transition, start, order, n, key, n_jobs, checkpoint, reverse=False):
    """start(first, n) returns the state of the chains first, …, first + n - 1; sweep 0 of the stream is its own."""
    blocks = equal_blocks(n, _LARGEST_BLOCK)
    first = np.concatenate([[0], np.cumsum(blocks)])
    bounds = segments(len(order) - 1, path.n_moves_per_segment)
    carries = run_segments(
        functools.partial(_begin, path, transition, key, start, blocks, first),
        functools.partial(_advance, path, transition, key, first, order, bounds, reverse),
        len(blocks),
        len(bounds) - 1,
        n_jobs=n_jobs,
        checkpoint=checkpoint,
        stage="reverse" if reverse else "anneal",
    )
    states, _, log_weights = zip(*carries)
    return np.concatenate(log_weights), concatenate(states)


def _from_base(path, key, first, n):
    return path.sample_base(n, Stream(key, first))


def _from_starts(path, key, starts, n_chains_per_start, first, n):
    state = path.take(starts, (first + np.arange(n)) // n_chains_per_start)
    if hasattr(path, "complete"):
        return path.complete(state, len(path.ladder) - 1, Stream(key, first))
    return state


def _begin(path, transition, key, start, blocks, first, block) -> tuple[Any, tuple, NDArray]:
    state = start(int(first[block]), blocks[block])
    return state, transition.init(path, state, Stream(key, int(first[block])).aside()), np.zeros(blocks[block])


def _advance(path, transition, key, first, order, bounds, reverse, block, segment, carry):
    state, memory, log_weights = carry
    passed = order[bounds[segment] : bounds[segment + 1] + 1]
    levels = np.repeat(passed[:, np.newaxis], len(log_weights), axis=1)
    stream = Stream(key, int(first[block]), bounds[segment] + 1)
    with np.errstate(invalid="ignore"):  # inf - inf: reported here, after this segment
        state, memory, increments = programs.anneal(path, transition, state, memory, levels, stream, reverse)
    return state, memory, log_weights + check_finite(increments)
