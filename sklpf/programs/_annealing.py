"""Annealing: chains that go through a whole ladder, up from the base or down from the target, with
their weights.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.parallel import run_segments
from sklpf._utils.random import Stream
from sklpf.paths import Completion
from sklpf.paths._base import concatenate, n_chains
from sklpf.paths._capabilities import has
from sklpf.programs import _programs as programs
from sklpf.programs._plan import check_finite, equal_blocks, running_log_partition, segments

_LARGEST_BLOCK = 32


class Arrivals(NamedTuple):
    """Chains that went through the ladder: log weights (n,), states, and the acceptance of every
    move or None.
    """

    log_weights: NDArray[np.float64]
    state: Any
    acceptance: NDArray[np.float64] | None


def anneal_up(path, transition, n, key, n_jobs=None, checkpoint=None) -> Arrivals:
    """Forward chains through the whole ladder from exact base draws."""
    order = np.arange(len(path.ladder))

    def start(first, n):
        return path.sample_base(n, Stream(key, first))

    return _anneal(path, transition, start, order, n, key, n_jobs, checkpoint)


def anneal_down(
    path, transition, starts, n_chains_per_start, key, n_jobs=None, checkpoint=None, n_settling=0
):
    """Log weights (n_starts, n_chains_per_start) of chains that go down the whole ladder from a
    state.

    They make `n_settling` sweeps at the target before.
    """
    start = functools.partial(_from_starts, path, key, starts, n_chains_per_start)
    n = n_chains(starts) * n_chains_per_start
    last = len(path.ladder) - 1
    order = np.r_[np.full(n_settling, last), np.arange(last, -1, -1)]
    arrivals = _anneal(path, transition, start, order, n, key, n_jobs, checkpoint, reverse=True)
    return arrivals.log_weights.reshape(-1, n_chains_per_start)


def settle(path, transition, starts, n_sweeps, key, n_jobs=None, checkpoint=None) -> Any:
    """The state of chains that made `n_sweeps` sweeps at the target."""
    order = np.full(n_sweeps + 1, len(path.ladder) - 1)
    start = functools.partial(_from_starts, path, key, starts, 1)
    return _anneal(path, transition, start, order, n_chains(starts), key, n_jobs, checkpoint).state


def _anneal(path, transition, start, order, n, key, n_jobs, checkpoint, reverse=False) -> Arrivals:
    """start(first, n) returns the state of the chains first, …, first + n - 1; sweep 0 of the
    stream is its own.
    """
    together = path.n_chains_per_block
    blocks = equal_blocks(n, _LARGEST_BLOCK) if together is None else equal_blocks(n, together, 1)
    first = np.concatenate([[0], np.cumsum(blocks)])
    bounds = segments(len(order) - 1, path.n_moves_per_segment)

    def begin(block):
        state = start(int(first[block]), blocks[block])
        memory = transition.init(path, state, Stream(key, int(first[block])).aside("memory"))
        return state, memory, np.zeros(blocks[block]), np.empty(0)

    tells = order[0] == 0 and path.base_log_partition is not None  # on the way up
    carries = run_segments(
        begin,
        functools.partial(_advance, path, transition, key, first, order, bounds, reverse),
        len(blocks),
        len(bounds) - 1,
        n_jobs=n_jobs,
        checkpoint=checkpoint,
        stage="reverse" if reverse else "anneal",
        so_far=functools.partial(_so_far, path, order, bounds) if tells else None,
    )
    states, _, log_weights, accepted = zip(*carries)
    rates = np.repeat(np.sum(accepted, axis=0) / (n * np.diff(bounds)), np.diff(bounds))
    return Arrivals(
        np.concatenate(log_weights), concatenate(states), None if np.isnan(rates).any() else rates
    )


def _so_far(path, order, bounds, segment, carries) -> str:
    """log Z of the level that forward chains have reached, with its standard error."""
    log_weights = np.concatenate([carry[2] for carry in carries])
    return running_log_partition(path, int(order[bounds[segment + 1]]), log_weights)


def _from_starts(path, key, starts, n_chains_per_start, first, n):
    state = path.take(starts, (first + np.arange(n)) // n_chains_per_start)
    if has(path, Completion):
        return path.complete(state, len(path.ladder) - 1, Stream(key, first))
    return state


def _advance(path, transition, key, first, order, bounds, reverse, block, segment, carry):
    state, memory, log_weights, accepted = carry
    passed = order[bounds[segment] : bounds[segment + 1] + 1]
    levels = np.repeat(passed[:, np.newaxis], len(log_weights), axis=1)
    stream = Stream(key, int(first[block]), bounds[segment] + 1)
    before = transition.accepted(memory)
    with np.errstate(invalid="ignore"):  # inf - inf: reported here, after this segment
        state, memory, increments = programs.anneal(
            path, transition, state, memory, levels, stream, reverse
        )
    share = np.nan if before is None else np.sum(transition.accepted(memory) - before)
    log_weights = log_weights + check_finite(increments, allow_zero=path.has_walls)
    return state, memory, log_weights, np.append(accepted, share)
