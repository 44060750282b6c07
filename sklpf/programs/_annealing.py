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
from sklpf.paths._base import concatenate, map_state, n_chains, put, take
from sklpf.paths._capabilities import has
from sklpf.programs import _programs as programs
from sklpf.programs._plan import Plan, check_finite, equal_blocks, running_log_partition, segments
from sklpf.transitions._side_by_side import joined, joint_move

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
    """Take n forward chains of every row through its whole ladder, from exact base draws.

    Parameters
    ----------
    plans : sequence of Plan
        One for each row; of a path without rows one in all.
    n : int
        Chains of each.
    keys : sequence of tuple of two int
        Of each row's random numbers.
    """
    orders = [np.arange(len(plan.path.ladder)) for plan in plans]
    return _anneal(plans, _base_draws, orders, n, keys, n_jobs, checkpoint)


def anneal_down(
    plans, starts, n_chains_per_start, keys, n_jobs=None, checkpoint=None, n_settling=0
) -> list[NDArray[np.float64]]:
    """Log weights (n_starts, n_chains_per_start) of chains of every row that go down its whole
    ladder from the states in `starts`, one state a row.

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


def _base_draws(path, stream, n):
    return path.sample_base(n, stream)


def _from_starts(plans, starts, n_chains_per_start, path, stream, n):
    states = []
    for plan, of_row, (own, _) in zip(plans, starts, stream.rows()):
        index = (own.chain + np.arange(n // len(plans))) // n_chains_per_start
        state = plan.path.take(of_row, index)
        if has(plan.path, Completion):
            state = plan.path.complete(state, len(plan.path.ladder) - 1, own)
        states.append(state)
    return concatenate(states)


def _anneal(plans, start, orders, n, keys, n_jobs, checkpoint, reverse=False) -> list[Arrivals]:
    """Take n chains of every row through the levels in `orders`, in blocks with equally many chains
    of each row.

    start(path, stream, n) returns the state of a block's chains; sweep 0 of a stream is its own.
    """
    path = plans[0].path
    together = path.n_chains_per_block
    blocks = equal_blocks(n, _LARGEST_BLOCK) if together is None else equal_blocks(n, together, 1)
    first = np.concatenate([[0], np.cumsum(blocks)]).tolist()
    # A row that is through leaves the others, which are then moved without it.
    own_bounds = [segments(len(order) - 1, path.n_moves_per_segment) for order in orders]
    bounds = sorted(set().union(*own_bounds))
    tells = len(plans) == 1 and orders[0][0] == 0 and path.base_log_partition is not None
    carries = run_segments(
        functools.partial(_begin, plans, start, keys, first),
        functools.partial(_advance, plans, keys, first, orders, bounds, reverse),
        len(blocks),
        len(bounds) - 1,
        n_jobs=n_jobs,
        checkpoint=checkpoint,
        stage="reverse" if reverse else "anneal",
        so_far=functools.partial(_so_far, path, orders[0], bounds) if tells else None,
    )
    states, _, log_weights, accepted = zip(*carries)
    by_row = functools.partial(_by_row, len(plans))
    state = map_state(by_row, *states)
    rates = [
        _rates(sums[np.searchsorted(bounds, own)] / n, own)
        for sums, own in zip(np.sum(accepted, axis=0), own_bounds)
    ]
    return [
        Arrivals(of_row, take(state, t), rates[t]) for t, of_row in enumerate(by_row(*log_weights))
    ]


def _by_row(n_rows, *blocks):
    """The arrays of blocks as one with rows first, then chains."""
    parts = [block.reshape(n_rows, len(block) // n_rows, *block.shape[1:]) for block in blocks]
    return np.concatenate(parts, axis=1)


def _rates(accepted, bounds):
    """Mean acceptance of every move, from its sums up to the bounds of segments; None where no move
    is ever rejected.
    """
    lengths = np.diff(bounds)
    rates = np.repeat(np.diff(accepted) / lengths, lengths)
    return None if np.isnan(rates).any() else rates


def _so_far(path, order, bounds, segment, carries) -> str:
    """log Z of the level that forward chains have reached, with its standard error."""
    log_weights = np.concatenate([carry[2] for carry in carries])
    return running_log_partition(path, int(order[bounds[segment + 1]]), log_weights)


def _begin(plans, start, keys, first, block):
    n = first[block + 1] - first[block]
    paths = [plan.path for plan in plans]
    joint = joined(paths, [Stream(key, first[block]) for key in keys], n)
    transition = joint_move([plan.transition for plan in plans], paths, joint)
    state = start(joint.path, joint.stream, n * len(plans))
    memory = transition.init(joint.path, state, joint.stream.aside("memory"))
    return state, memory, np.zeros(n * len(plans)), np.zeros((len(plans), 1))


def _advance(plans, keys, first, orders, bounds, reverse, block, segment, carry):
    """Move the rows that are not through yet; returns state, memory, log weights, and the summed
    acceptance of every row after each segment.
    """
    state, memory, log_weights, accepted = carry
    begin, end = bounds[segment], bounds[segment + 1]
    n = first[block + 1] - first[block]
    rows = [t for t, order in enumerate(orders) if len(order) > end]
    chains = (n * np.array(rows)[:, np.newaxis] + np.arange(n)).ravel()
    paths = [plans[t].path for t in rows]
    joint = joined(paths, [Stream(keys[t], first[block], begin + 1) for t in rows], n)
    transition = joint_move([plans[t].transition for t in rows], paths, joint)
    passed = np.stack([orders[t][begin : end + 1] for t in rows], axis=1) + joint.first_levels
    with np.errstate(invalid="ignore"):  # inf - inf: reported here, after this segment
        *moved, sums = programs.anneal(
            joint.path,
            transition,
            take(state, chains),
            take(memory, chains),
            np.repeat(passed, n, axis=1),
            joint.stream,
            reverse,
            log_weights[chains],
        )
    check_finite(sums, allow_zero=joint.path.has_walls)
    state, memory = put(state, chains, moved[0]), put(memory, chains, moved[1])
    log_weights = put(log_weights, chains, sums)
    total = transition.accepted(memory)
    total = np.full(len(accepted), np.nan) if total is None else total.reshape(-1, n).sum(axis=1)
    return state, memory, log_weights, np.column_stack([accepted, total])
