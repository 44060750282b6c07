"""Annealing: chains that go through a whole ladder, up from the base or down from the target, with
their weights. Several rows of data go together, each with a ladder and a move of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from sklpf._utils.numbers import LARGEST, Array, Integers
from sklpf._utils.parallel import run_segments
from sklpf._utils.random import Stream
from sklpf.paths import concatenate, has, n_chains, take
from sklpf.programs._plan import (
    Plan,
    check_finite,
    equal_blocks,
    running_log_partition,
    segments,
    with_round,
)
from sklpf.programs._programs import Chains, anneal, concatenate_chains
from sklpf.reweighting import mean_weight
from sklpf.transitions import RowBatch, batch_rows

_LARGEST_BLOCK = 32
SETTLING = 100  # sweeps at the target before chains that begin there are reversed or taken as draws
FEWEST_REVERSE = 10  # reverse chains
# the standard error is aimed so many times below tol, for the pilot's noise
PILOT_NOISE_FACTOR = 1.5
_MOST_VARIANCE = np.log(2)  # of log weights: half of the weights count


class Arrivals(NamedTuple):
    """Chains of one row that went through the ladder: log weights (n,), states, and the acceptance
    of every move or None.
    """

    log_weights: Array
    state: Any
    acceptance: Array | None


def anneal_forward(
    plans: Sequence[Plan], n: int, stream: str, n_jobs=None, checkpoint=None
) -> list[Arrivals]:
    """Take n forward chains of every row through its whole ladder, from exact base draws.

    Parameters
    ----------
    plans : sequence of Plan
        One for each row; of a path without rows one in all.
    n : int
        Chains of each.
    stream : str
        Name of the random stream.
    """
    orders = [np.arange(len(plan.path.ladder)) for plan in plans]

    def start(path, stream, n):
        return path.sample_base(n, stream)

    return _anneal(plans, start, orders, n, stream, n_jobs, checkpoint)


def anneal_reverse(
    plans, starts, n_chains_per_start, stream, n_jobs=None, checkpoint=None, settles=False
) -> list[Array]:
    """Log weights (n_starts, n_chains_per_start) of reverse chains of every row through its whole
    ladder from the states in `starts`, one state a row.

    Those that settle make `n_settling` sweeps at the target before.
    """
    start = functools.partial(_from_starts, plans, starts, n_chains_per_start)
    n = n_chains(starts[0]) * n_chains_per_start
    lasts = [len(plan.path.ladder) - 1 for plan in plans]
    orders = [
        np.r_[np.full(n_settling(last) if settles else 0, last), np.arange(last, -1, -1)]
        for last in lasts
    ]
    arrivals = _anneal(plans, start, orders, n, stream, n_jobs, checkpoint, reverse=True)
    return [of_row.log_weights.reshape(-1, n_chains_per_start) for of_row in arrivals]


def n_settling(n_moves: int) -> int:
    """Return the sweeps at the target that reverse chains make before so many moves: more for long
    ladders, whose chains should also reach the far tails of the target.
    """
    return max(SETTLING, n_moves // 4)


def settle(plan, starts, n_sweeps, stream, n_jobs=None, checkpoint=None) -> Any:
    """The state of chains that made `n_sweeps` sweeps at the target."""
    order = np.full(n_sweeps + 1, len(plan.path.ladder) - 1)
    start = functools.partial(_from_starts, [plan], [starts], 1)
    return _anneal([plan], start, [order], n_chains(starts), stream, n_jobs, checkpoint)[0].state


def _from_starts(plans, starts, n_chains_per_start, path, stream, n):
    states = []
    for plan, of_row, (own, _) in zip(plans, starts, stream.rows()):
        index = (own.chain + np.arange(n // len(plans))) // n_chains_per_start
        state = plan.path.take(of_row, index)
        if has(plan.path, "complete"):
            state = plan.path.complete(state, len(plan.path.ladder) - 1, own)
        states.append(state)
    return concatenate(states)


def _anneal(plans, start, orders, n, stream, n_jobs, checkpoint, reverse=False) -> list[Arrivals]:
    """Take n chains of every row through the levels in `orders`.

    start(path, stream, n) returns the state of a block's chains; sweep 0 of a stream is its own.
    """
    path = plans[0].path
    largest = path.n_chains_per_block
    blocks = equal_blocks(n, _LARGEST_BLOCK) if largest is None else equal_blocks(n, largest, 1)
    ends = [segments(len(order) - 1, path.n_moves_per_segment) for order in orders]
    schedule = _LevelSchedule(
        plans=plans,
        keys=[plan.stream(stream).key for plan in plans],
        orders=orders,
        reverse=reverse,
        first=np.concatenate([[0], np.cumsum(blocks)]).tolist(),
        ends=ends,
    )
    summarises = len(plans) == 1 and orders[0][0] == 0 and path.base_log_partition is not None
    carries = run_segments(
        functools.partial(schedule.begin, start),
        schedule.advance,
        len(blocks),
        sorted(set().union(*ends)),
        n_jobs=n_jobs,
        checkpoint=checkpoint,
        stage="reverse" if reverse else "anneal",
        so_far=functools.partial(_so_far, path, orders[0]) if summarises else None,
    )
    arrivals = []
    for own_ends, own_blocks in zip(ends, zip(*carries)):
        chains, log_weights, accepted = zip(*own_blocks)
        lengths = np.diff(own_ends)
        rates = np.repeat(np.diff(np.sum(accepted, axis=0)) / (n * lengths), lengths)
        acceptance = None if np.isnan(rates).any() else rates
        state = concatenate_chains(chains).state
        arrivals.append(Arrivals(np.concatenate(log_weights), state, acceptance))
    return arrivals


def _so_far(path, order, end, carries) -> str:
    """log Z of the level that forward chains have reached, with its standard error."""
    log_weights = np.concatenate([rows[0][1] for rows in carries])
    return running_log_partition(path, int(order[end]), log_weights)


class _LevelSchedule(NamedTuple):
    """The way of all rows' chains through their levels, in blocks with equally many chains of each
    row. A row that is through leaves the others.
    """

    plans: Sequence[Plan]
    keys: Sequence[tuple[int, int]]
    orders: Sequence[Integers]  # levels that each row's chains pass
    reverse: bool
    first: list[int]  # first chain of every block, and the end
    ends: Sequence[list[int]]  # moves after which each row's segments end, 0 included

    def batch(self, block: int, rows: Sequence[int], step: int) -> tuple[int, RowBatch]:
        """Number of chains of each row in a block, and what those of some rows move on."""
        first, end = self.first[block : block + 2]
        streams = [Stream(self.keys[t], first, step) for t in rows]
        return end - first, batch_rows([self.plans[t] for t in rows], streams, end - first)

    def begin(self, start: Callable[..., Any], block: int) -> tuple:
        """Chains, log weights and summed acceptance of every row."""
        n, (path, transition, stream, _) = self.batch(block, range(len(self.plans)), 0)
        state = start(path, stream, n * len(self.plans))
        chains = Chains.start(path, transition, state, stream)
        return tuple((_those_of(chains, own), np.zeros(n), np.zeros(1)) for _, own in stream.rows())

    def advance(self, block: int, begin: int, end: int, carry: tuple) -> tuple:
        """Likewise after a segment. Acceptance is noted at the ends of the row's own segments, so
        that no other row matters.
        """
        moving = [t for t, order in enumerate(self.orders) if len(order) > end]
        n, (path, transition, stream, first_levels) = self.batch(block, moving, begin + 1)
        passed = np.stack([self.orders[t][begin : end + 1] for t in moving], axis=1)
        levels = np.repeat(first_levels + passed, n, axis=1)
        chains = concatenate_chains([carry[t][0] for t in moving])
        log_weights = np.concatenate([carry[t][1] for t in moving])
        chains, log_weights = anneal(
            path, transition, chains, levels, stream, self.reverse, log_weights
        )
        check_finite(log_weights, allow_zero=path.has_boundary)
        accepted = transition.accepted(chains.auxiliary)
        rows = list(carry)
        for t, (_, own) in zip(moving, stream.rows()):
            sums = carry[t][2]
            if end in self.ends[t]:
                sums = np.append(sums, np.nan if accepted is None else np.sum(accepted[own]))
            rows[t] = _those_of(chains, own), log_weights[own], sums
        return tuple(rows)


def _those_of(chains, row) -> Chains:
    """The chains of a row, which are next to each other."""
    return Chains(*(take(part, row) for part in chains))


def enough_levels(
    plans: Sequence[Plan],
    n_chains: int,
    tol: float,
    n_jobs=None,
    *,
    fewest_levels: int = 10,
    fewest_chains: int = 20,
    growth: int = 4,  # times as many levels or chains in the next pilot
) -> list[Plan]:
    """Thin out the levels of every row to as many as give log Z a standard error of `tol` / 1.5, or
    keep them all. The plans' histories are log Z / Z_0 on the schedule.

    The variance of log weights falls in proportion to the number of moves. A pilot of few chains
    measures it with few levels, and with more of them until it need not be extrapolated far.
    """
    plans = list(plans)
    most = len(plans[0].path.ladder)
    n = max(fewest_chains, n_chains // 4)
    n_levels = min(fewest_levels, most)
    open_rows = list(range(len(plans)))
    i = 0
    while open_rows:
        thin = [_thinned(plans[t], n_levels) for t in open_rows]
        arrivals = anneal_forward(thin, n, f"pilot {i}", n_jobs)
        for t, arrived in zip(list(open_rows), arrivals):
            plan = _with_estimate(plans[t], arrived.log_weights, n * (n_levels - 1))
            needed = 1 + (n_levels - 1) * _excess(arrived.log_weights, n_chains, tol)
            if needed <= growth * n_levels or growth**2 * n_levels > most:
                plan = _thinned(plan, int(np.ceil(min(max(needed, n_levels), most))))
                open_rows.remove(t)
            plans[t] = plan
        n_levels *= growth
        i += 1
    return plans


def _with_estimate(plan, log_weights, n_moves) -> Plan:
    """The plan after a pilot, with what that says of log Z / Z_0, if anything."""
    plan = plan._replace(n_sweeps=plan.n_sweeps + n_moves)
    if not np.any(log_weights > -np.inf):
        return plan
    estimate = mean_weight(log_weights)
    history = with_round(plan.history, estimate.log_mean, estimate.delta, plan.n_sweeps)
    return plan._replace(history=history)


def _excess(log_weights, n_chains, tol) -> float:
    """Variance of log weights over the one that n_chains may have, if they are normal but for those
    of weight 0.
    """
    alive = log_weights[log_weights > -np.inf]
    if len(alive) < 2:
        return np.inf
    error = min(tol / PILOT_NOISE_FACTOR, LARGEST)  # with a square
    allowed = np.log1p(n_chains * error**2) + np.log(len(alive) / len(log_weights))
    allowed = min(allowed, _MOST_VARIANCE)
    return float(np.var(alive, ddof=1) / allowed) if allowed > 0 else np.inf


def _thinned(plan, n_levels) -> Plan:
    """The plan with a ladder of the same shape with other levels, no more."""
    ladder = plan.path.ladder
    place = np.linspace(0, len(ladder) - 1, n_levels)
    return plan._replace(
        path=plan.path.with_ladder(np.interp(place, np.arange(len(ladder)), ladder))
    )
