"""Annealing: chains that go through a whole ladder, up from the base or down from the target, with
their weights. Several rows of data go together, each with a ladder and a move of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.parallel import run_segments
from sklpf._utils.random import Stream
from sklpf.paths import Completion
from sklpf.paths._base import concatenate, map_state, n_chains, take
from sklpf.paths._capabilities import has
from sklpf.programs import _programs as programs
from sklpf.programs._plan import Plan, check_finite, equal_blocks, running_log_partition, segments
from sklpf.transitions._side_by_side import (
    chains_of,
    joint_levels,
    joint_move,
    joint_path,
    joint_stream,
)

_LARGEST_BLOCK = 32
Keys = Sequence[tuple[int, int]]


class Arrivals(NamedTuple):
    """Chains of one row that went through the ladder: log weights (n,), states, and the acceptance
    of every move or None.
    """

    log_weights: NDArray[np.float64]
    state: Any
    acceptance: NDArray[np.float64] | None


def anneal_up(
    plans: Sequence[Plan], n: int, keys: Keys, n_jobs=None, checkpoint=None
) -> list[Arrivals]:
    """n forward chains of every row through its whole ladder from exact base draws.

    Parameters
    ----------
    plans : sequence of Plan
        Of every row; of a path without rows one.
    n : int
        Chains of each.
    keys : sequence of tuple of two int
        Of each row's random numbers.
    """

    def start(streams, n):
        path = joint_path([plan.path for plan in plans], n)
        return path.sample_base(n * len(streams), joint_stream(streams, n))

    orders = [np.arange(len(plan.path.ladder)) for plan in plans]
    return _anneal(plans, start, orders, n, keys, n_jobs, checkpoint)


def anneal_down(
    plans, starts, n_chains_per_start, keys, n_jobs=None, checkpoint=None, n_settling=0
) -> list[NDArray[np.float64]]:
    """Log weights (n_starts, n_chains_per_start) of every row's chains, which go down the whole
    ladder from the states that `starts` has for the row.

    They make `n_settling` sweeps at the target before.
    """
    start = functools.partial(_from_starts, plans, starts, n_chains_per_start)
    n = n_chains(starts[0]) * n_chains_per_start
    lasts = [len(plan.path.ladder) - 1 for plan in plans]
    orders = [np.r_[np.full(n_settling, last), np.arange(last, -1, -1)] for last in lasts]
    arrivals = _anneal(plans, start, orders, n, keys, n_jobs, checkpoint, reverse=True)
    return [of_row.log_weights.reshape(-1, n_chains_per_start) for of_row in arrivals]


def settle(plan, starts, n_sweeps, key, n_jobs=None, checkpoint=None) -> Any:
    """The state of chains that made `n_sweeps` sweeps at the target."""
    order = np.full(n_sweeps + 1, len(plan.path.ladder) - 1)
    start = functools.partial(_from_starts, [plan], [starts], 1)
    return _anneal([plan], start, [order], n_chains(starts), [key], n_jobs, checkpoint)[0].state


def _anneal(plans, start, orders, n, keys, n_jobs, checkpoint, reverse=False) -> list[Arrivals]:
    """n chains of every row through the levels in `orders`, in blocks with so many of each row.

    start(streams, n) returns the state of n chains of every row; sweep 0 of a row's stream is its
    own.
    """
    path = plans[0].path
    together = path.n_chains_per_block
    blocks = equal_blocks(n, _LARGEST_BLOCK) if together is None else equal_blocks(n, together, 1)
    first = np.concatenate([[0], np.cumsum(blocks)]).tolist()
    n_moves = max(len(order) - 1 for order in orders)
    bounds = segments(n_moves, path.n_moves_per_segment)

    def begin(block):
        size = blocks[block]
        streams = [Stream(key, first[block]) for key in keys]
        state = start(streams, size)
        rows = [plan.path for plan in plans]
        joint = joint_path(rows, size)
        move = joint_move([plan.transition for plan in plans], rows, joint)
        memory = move.init(joint, state, joint_stream(streams, size).aside("memory"))
        return state, memory, np.zeros(size * len(plans)), np.empty((len(plans), 0))

    # on the way up of a path without rows
    tells = len(plans) == 1 and orders[0][0] == 0 and path.base_log_partition is not None
    carries = run_segments(
        begin,
        functools.partial(_advance, plans, keys, first, orders, bounds, reverse),
        len(blocks),
        len(bounds) - 1,
        n_jobs=n_jobs,
        checkpoint=checkpoint,
        stage="reverse" if reverse else "anneal",
        so_far=functools.partial(_so_far, path, orders[0], bounds) if tells else None,
    )
    accepted = np.sum([carry[3] for carry in carries], axis=0)
    arrivals = []
    for t, order in enumerate(orders):
        chains = [slice(t * size, (t + 1) * size) for size in blocks]
        states = [take(carry[0], part) for carry, part in zip(carries, chains)]
        log_weights = [carry[2][part] for carry, part in zip(carries, chains)]
        lengths = np.diff(segments(len(order) - 1, path.n_moves_per_segment))
        rates = np.repeat(accepted[t, : len(lengths)] / (n * lengths), lengths)
        arrivals.append(
            Arrivals(
                np.concatenate(log_weights),
                concatenate(states),
                None if np.isnan(rates).any() else rates,
            )
        )
    return arrivals


def _so_far(path, order, bounds, segment, carries) -> str:
    """log Z of the level that forward chains have reached, with its standard error."""
    log_weights = np.concatenate([carry[2] for carry in carries])
    return running_log_partition(path, int(order[bounds[segment + 1]]), log_weights)


def _from_starts(plans, starts, n_chains_per_start, streams, n):
    states = []
    for plan, of_row, stream in zip(plans, starts, streams):
        path = plan.path
        state = path.take(of_row, (stream.chain + np.arange(n)) // n_chains_per_start)
        if has(path, Completion):
            state = path.complete(state, len(path.ladder) - 1, stream)
        states.append(state)
    return concatenate(states)


def _advance(plans, keys, first, orders, bounds, reverse, block, segment, carry):
    """Move all rows through their levels of a segment; a row that is through leaves the others."""
    state, memory, log_weights, accepted = carry
    n = first[block + 1] - first[block]
    passed = [order[bounds[segment] : bounds[segment + 1] + 1] for order in orders]
    streams = [Stream(key, first[block], bounds[segment] + 1) for key in keys]
    before = plans[0].transition.accepted(memory)
    increments = np.zeros_like(log_weights)
    done = 0
    for stop in sorted({len(levels) - 1 for levels in passed if len(levels) > 1}):
        rows = [t for t, levels in enumerate(passed) if len(levels) > stop]
        chains = chains_of(rows, n)
        paths = [plans[t].path for t in rows]
        path = joint_path(paths, n)
        transition = joint_move([plans[t].transition for t in rows], paths, path)
        levels = joint_levels(paths, [passed[t][done : stop + 1] for t in rows], n)
        stream = joint_stream([streams[t] for t in rows], n)
        chosen = take(state, chains), take(memory, chains), levels
        now = stream.at(stream.step + done)
        with np.errstate(invalid="ignore"):  # inf - inf: reported here, after this segment
            *moved, increments[chains] = programs.anneal(
                path, transition, *chosen, now, reverse, increments[chains]
            )
        put = functools.partial(_put, chains)
        state, memory = (map_state(put, *parts) for parts in zip((state, memory), moved))
        done = stop
    share = np.full(len(plans), np.nan)
    if before is not None:
        share = (plans[0].transition.accepted(memory) - before).reshape(-1, n).sum(axis=1)
    log_weights = log_weights + check_finite(increments, allow_zero=plans[0].path.has_walls)
    return state, memory, log_weights, np.column_stack([accepted, share])


def _put(index, old, new):
    old = old.copy()
    old[index] = new
    return old
