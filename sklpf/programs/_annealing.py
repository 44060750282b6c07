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
from sklpf.paths._base import concatenate, n_chains, take
from sklpf.paths._capabilities import has
from sklpf.programs import _programs as programs
from sklpf.programs._plan import Plan, check_finite, equal_blocks, running_log_partition, segments
from sklpf.transitions._side_by_side import joined

_LARGEST_BLOCK = 32


class Arrivals(NamedTuple):
    """Chains of one row that went through the ladder: log weights (n,), states, and the acceptance
    of every move or None.
    """

    log_weights: NDArray[np.float64]
    state: Any
    acceptance: NDArray[np.float64] | None


def anneal_up(
    plans: Sequence[Plan], n: int, stage: tuple[int, ...], n_jobs=None, checkpoint=None
) -> list[Arrivals]:
    """Take n forward chains of every row through its whole ladder, from exact base draws.

    Parameters
    ----------
    plans : sequence of Plan
        One for each row; of a path without rows one in all.
    n : int
        Chains of each.
    stage : tuple of int
        What the random numbers are for.
    """
    orders = [np.arange(len(plan.path.ladder)) for plan in plans]
    return _anneal(plans, _base_draws, orders, n, stage, n_jobs, checkpoint)


def anneal_down(
    plans, starts, n_chains_per_start, stage, n_jobs=None, checkpoint=None, n_settling=0
) -> list[NDArray[np.float64]]:
    """Log weights (n_starts, n_chains_per_start) of chains of every row that go down its whole
    ladder from the states in `starts`, one state a row.

    They make `n_settling` sweeps at the target before.
    """
    start = functools.partial(_from_starts, plans, starts, n_chains_per_start)
    n = n_chains(starts[0]) * n_chains_per_start
    lasts = [len(plan.path.ladder) - 1 for plan in plans]
    orders = [np.r_[np.full(n_settling, last), np.arange(last, -1, -1)] for last in lasts]
    arrivals = _anneal(plans, start, orders, n, stage, n_jobs, checkpoint, reverse=True)
    return [of_row.log_weights.reshape(-1, n_chains_per_start) for of_row in arrivals]


def settle(plan, starts, n_sweeps, stage, n_jobs=None, checkpoint=None) -> Any:
    """The state of chains that made `n_sweeps` sweeps at the target."""
    order = np.full(n_sweeps + 1, len(plan.path.ladder) - 1)
    start = functools.partial(_from_starts, [plan], [starts], 1)
    return _anneal([plan], start, [order], n_chains(starts), stage, n_jobs, checkpoint)[0].state


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


def _anneal(plans, start, orders, n, stage, n_jobs, checkpoint, reverse=False) -> list[Arrivals]:
    """Take n chains of every row through the levels in `orders`, in blocks with equally many chains
    of each row.

    start(path, stream, n) returns the state of a block's chains; sweep 0 of a stream is its own.
    """
    path = plans[0].path
    keys = [plan.key(*stage) for plan in plans]
    together = path.n_chains_per_block
    blocks = equal_blocks(n, _LARGEST_BLOCK) if together is None else equal_blocks(n, together, 1)
    first = np.concatenate([[0], np.cumsum(blocks)]).tolist()
    # A row that is through leaves the others, whose segment ends there too.
    of_rows = [segments(len(order) - 1, path.n_moves_per_segment) for order in orders]
    bounds = sorted(set().union(*of_rows))
    tells = len(plans) == 1 and orders[0][0] == 0 and path.base_log_partition is not None
    carries = run_segments(
        functools.partial(_begin, plans, start, keys, first),
        functools.partial(_advance, plans, keys, first, orders, of_rows, bounds, reverse),
        len(blocks),
        len(bounds) - 1,
        n_jobs=n_jobs,
        checkpoint=checkpoint,
        stage="reverse" if reverse else "anneal",
        so_far=functools.partial(_so_far, path, orders[0], bounds) if tells else None,
    )
    arrivals = []
    for own_bounds, own_blocks in zip(of_rows, zip(*carries)):
        states, _, log_weights, accepted = zip(*own_blocks)
        lengths = np.diff(own_bounds)
        rates = np.repeat(np.diff(np.sum(accepted, axis=0)) / (n * lengths), lengths)
        acceptance = None if np.isnan(rates).any() else rates
        arrivals.append(Arrivals(np.concatenate(log_weights), concatenate(states), acceptance))
    return arrivals


def _so_far(path, order, bounds, segment, carries) -> str:
    """log Z of the level that forward chains have reached, with its standard error."""
    log_weights = np.concatenate([rows[0][2] for rows in carries])
    return running_log_partition(path, int(order[bounds[segment + 1]]), log_weights)


def _begin(plans, start, keys, first, block):
    """State, memory, log weights and summed acceptance of every row."""
    n = first[block + 1] - first[block]
    joint = joined(plans, [Stream(key, first[block]) for key in keys], n)
    state = start(joint.path, joint.stream, n * len(plans))
    memory = joint.transition.init(joint.path, state, joint.stream.aside("memory"))
    return tuple(
        (take(state, own), take(memory, own), np.zeros(n), np.zeros(1))
        for _, own in joint.stream.rows()
    )


def _advance(plans, keys, first, orders, of_rows, bounds, reverse, block, segment, carry):
    """Likewise after a segment. Acceptance is noted at the ends of the row's own segments, so that
    no other row matters.
    """
    begin, end = bounds[segment], bounds[segment + 1]
    n = first[block + 1] - first[block]
    moving = [t for t, order in enumerate(orders) if len(order) > end]
    streams = [Stream(keys[t], first[block], begin + 1) for t in moving]
    joint = joined([plans[t] for t in moving], streams, n)
    levels = np.stack([orders[t][begin : end + 1] for t in moving], axis=1) + joint.first_levels
    state, memory, log_weights, _ = (concatenate(p) for p in zip(*(carry[t] for t in moving)))
    with np.errstate(invalid="ignore"):  # inf - inf: reported here, after this segment
        state, memory, log_weights = programs.anneal(
            joint.path,
            joint.transition,
            state,
            memory,
            np.repeat(levels, n, axis=1),
            joint.stream,
            reverse,
            log_weights,
        )
    check_finite(log_weights, allow_zero=joint.path.has_walls)
    accepted = joint.transition.accepted(memory)
    rows = list(carry)
    for t, (_, own) in zip(moving, joint.stream.rows()):
        sums = carry[t][3]
        if end in of_rows[t]:
            sums = np.append(sums, np.nan if accepted is None else np.sum(accepted[own]))
        rows[t] = take(state, own), take(memory, own), log_weights[own], sums
    return tuple(rows)
