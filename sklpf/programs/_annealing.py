"""Annealing: chains that go through a whole ladder, up from the base or down from the target, with
their weights. Several rows of data go together, each by a plan with a ladder and a move of its own.
Chains that form populations are resampled by their weights on the way: sequential Monte Carlo.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sklpf._utils.numbers import Array, Integers
from sklpf._utils.parallel import run_segments
from sklpf._utils.random import REDRAW, Stream, concatenate_streams, seeded, systematic
from sklpf._utils.tables import with_error
from sklpf._utils.validation import LARGEST
from sklpf.paths import LADDERS, concatenate, has, make_ladder, n_chains, respace, take
from sklpf.programs._programs import (
    Chains,
    anneal,
    blocks_of_groups,
    check_alive,
    check_finite,
    concatenate_chains,
    log_ratio,
    segments,
    weighted_sums,
)
from sklpf.programs._rounds import NO_ROUNDS, with_round
from sklpf.transitions import RowBatch, batch_rows, stream_uniforms
from sklpf.uncertainty import effective_sample_size, log_mean_exp, mean_weight

ADAPTIVE_LADDERS = (*LADDERS, "adaptive")
SETTLING = 100  # sweeps at the target before chains that begin there are reversed or taken as draws
FEWEST_REVERSE = 10  # reverse chains
# The standard error is aimed so many times below tol, for the pilot's noise.
PILOT_NOISE_FACTOR = 1.5
_MOST_VARIANCE = np.log(2)  # of log weights: half of the weights count


class Plan(NamedTuple):
    """The path on its ladder, the move that is frozen for it, the seed of all random numbers, the
    sweeps that finding them took, and the rounds.
    """

    path: Any
    transition: Any
    seed: int
    n_sweeps: int = 0
    history: Array = NO_ROUNDS  # of log Z / Z_0, where finding them gave estimates

    def stream(self, *name: str | int) -> Stream:
        """Random stream of this name."""
        return seeded(self.seed).of(*name)


class Arrivals(NamedTuple):
    """Chains of one row that went through the ladder: log weights (n,), states, and the acceptance
    of every move or None.
    """

    log_weights: Array
    state: Any
    acceptance: Array | None


class Populations(NamedTuple):
    """G populations of N particles at the target: the particles, one population after the other,
    and what happened at every level.
    """

    log_weights: Array  # (G, N), since the last resampling
    state: Any
    acceptance: Array | None  # (K - 1,)
    log_mean: Array  # (G,): log of the product of the mean weights at earlier resamplings
    ancestors: Integers  # (G, N)
    records: Array  # (G, K - 1, 3): log mean, effective size, resampled


def anneal_forward(
    plans: Sequence[Plan], n: int, stream: str, n_jobs=None, checkpoint=None, keeps_steps=False
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
    keeps_steps : bool
        Whether log weights are given step by step, (n, K - 1).
    """
    orders = [np.arange(len(plan.path.ladder)) for plan in plans]

    def start(path, stream, n):
        return path.sample_base(n, stream)

    program = _annealing(plans, orders, n, stream, keeps_steps=keeps_steps)
    return _run(program, start, n_jobs, checkpoint)


def anneal_populations(
    plan: Plan,
    n_populations: int,
    n_particles: int,
    resample_at: float,
    n_jobs=None,
    checkpoint=None,
) -> Populations:
    """Take populations through the whole ladder, from exact base draws (Del Moral, Doucet & Jasra
    2006).

    At every level particles are weighted, resampled if their effective number is less than
    `resample_at` times n_particles, and moved.
    """

    def start(path, stream, n):
        return concatenate([path.sample_base(n_particles, own) for own, _ in stream.rows()])

    last = len(plan.path.ladder) - 1
    orders = [np.r_[1 : last + 1, last]]  # where particles move; then they are weighted at the next
    groups: Any = np.arange(n_populations)[:, np.newaxis]
    if plan.transition.joins_rows and plan.transition.compiled(plan.path) is None:
        n = n_populations * n_particles
        groups = blocks_of_groups(plan.path, plan.transition, n_populations, n)
    program = _annealing(
        [plan],
        orders,
        n_populations * n_particles,
        "forward",
        blocks=[len(each) * n_particles for each in groups],
        n_particles=n_particles,
        resample_at=resample_at,
    )
    arrived, *populations = _run(program, start, n_jobs, checkpoint)
    log_weights = arrived.log_weights.reshape(n_populations, n_particles)
    return Populations(log_weights, *arrived[1:], *populations)


def anneal_reverse(
    plans,
    starts,
    n_chains_per_start,
    stream,
    n_jobs=None,
    checkpoint=None,
    settles=False,
    keeps_steps=False,
) -> list[Array]:
    """Log weights (n_starts, n_chains_per_start) of reverse chains of every row through its whole
    ladder from the states in `starts`, one state a row.

    Those that settle make `n_settling` sweeps at the target before. With `keeps_steps` the log
    weights of a single chain of every start are given step by step down the ladder, (n_starts,
    K - 1).
    """
    start = functools.partial(_from_starts, plans, starts, n_chains_per_start)
    n = n_chains(starts[0]) * n_chains_per_start
    lasts = [len(plan.path.ladder) - 1 for plan in plans]
    orders = [
        np.r_[np.full(n_settling(last) if settles else 0, last), np.arange(last, -1, -1)]
        for last in lasts
    ]
    program = _annealing(plans, orders, n, stream, reverse=True, keeps_steps=keeps_steps)
    arrivals = _run(program, start, n_jobs, checkpoint)
    if keeps_steps:
        return [of_row.log_weights[:, -last:] for of_row, last in zip(arrivals, lasts)]
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
    program = _annealing([plan], [order], n_chains(starts), stream)
    return _run(program, start, n_jobs, checkpoint)[0].state


def _from_starts(plans, starts, n_chains_per_start, path, stream, n):
    states = []
    for plan, of_row, (own, _) in zip(plans, starts, stream.rows()):
        index = (own.chain + np.arange(n // len(plans))) // n_chains_per_start
        state = plan.path.take(of_row, index)
        if has(plan.path, "complete"):
            state = plan.path.complete(state, len(plan.path.ladder) - 1, own)
        states.append(state)
    return concatenate(states)


def equal_blocks(n: int, largest: int, fewest_blocks: int = 8) -> list[int]:
    """Sizes of blocks of n chains, as equal as possible and at most `largest`; at least
    `fewest_blocks` where n allows.
    """
    n_blocks = max(min(n, fewest_blocks), -(-n // largest))
    return [n // n_blocks + (block < n % n_blocks) for block in range(n_blocks)]


def _annealing(plans, orders, n, stream, blocks=None, **options) -> _Annealing:
    """The program that takes n chains of every row through the levels in `orders`."""
    path = plans[0].path
    largest = path.n_chains_per_block
    if blocks is None:
        blocks = equal_blocks(n, 32) if largest is None else equal_blocks(n, largest, 1)
    return _Annealing(
        plans=plans,
        keys=[plan.stream(stream).key for plan in plans],
        orders=orders,
        first=np.concatenate([[0], np.cumsum(blocks)]).tolist(),
        ends=[segments(len(order) - 1, path.n_moves_per_segment) for order in orders],
        **options,
    )


def _run(program: _Annealing, start, n_jobs, checkpoint) -> list[Any]:
    """Arrivals of every row; of populations of the one row, and what is counted of them.

    start(path, stream, n) returns the state of a block's chains; sweep 0 of a stream is its own.
    """
    path = program.plans[0].path
    order = program.orders[0]
    is_one = len(program.plans) == 1 and not program.keeps_steps
    is_forward = order[0] == 0 or program.n_particles > 0
    summarises = is_one and is_forward and path.base_log_partition is not None
    carries = run_segments(
        functools.partial(program.begin, start),
        program.advance,
        len(program.first) - 1,
        sorted(set().union(*program.ends)),
        n_jobs=n_jobs,
        checkpoint=checkpoint,
        stage=program.stage,
        so_far=functools.partial(_so_far, path, order) if summarises else None,
    )
    found: list[Any] = []
    for ends, of_blocks in zip(program.ends, zip(*carries)):
        chains, log_weights, accepted, *of_populations = zip(*of_blocks)
        lengths = np.diff(ends)
        gains = np.diff(np.sum(accepted, axis=0)[:-1])
        rates = np.repeat(gains / (program.first[-1] * lengths), lengths)
        acceptance = None if np.isnan(rates).any() else rates
        state = concatenate_chains(chains).state
        found.append(Arrivals(np.concatenate(log_weights), state, acceptance))
        found += map(np.concatenate, of_populations)
    return found


def _so_far(path, order, end, carries) -> str:
    """log Z of the level that forward chains have reached, with its standard error."""
    terms = []
    for ((_, log_weights, _, *of_populations),) in carries:
        if of_populations:
            log_mean = of_populations[0]
            log_weights = log_mean + log_mean_exp(log_weights.reshape(len(log_mean), -1), axis=1)
        terms.append(log_weights)
    with np.errstate(invalid="ignore"):  # all weights may be 0
        estimate = mean_weight(np.concatenate(terms))
    value = with_error(path.base_log_partition + estimate.log_mean, estimate.delta)
    return f"log Z = {value} at inverse temperature {path.ladder[order[end]]:.2g}"


@dataclass(frozen=True, kw_only=True)
class _Annealing:
    """The way of all rows' chains through their levels, in blocks with equally many chains of each
    row. A row that is through leaves the others.
    """

    plans: Sequence[Plan]
    keys: Sequence[tuple[int, int]]
    orders: Sequence[Integers]  # levels that each row's chains pass
    first: list[int]  # first chain of every block, and the end
    ends: Sequence[list[int]]  # moves after which each row's segments end, 0 included
    reverse: bool = False
    keeps_steps: bool = False  # of log weights
    n_particles: int = 0  # of a population; 0 where chains are independent
    resample_at: float = 0.0  # share of the particles that are effective

    @property
    def stage(self) -> str:
        """Its name within a run."""
        return "reverse" if self.reverse else "populations" if self.n_particles else "anneal"

    def batch(self, block: int, rows: Sequence[int], step: int) -> tuple[int, RowBatch]:
        """Number of chains of each row in a block, and what those of some rows move on."""
        first, end = self.first[block : block + 2]
        n = end - first
        size = self.n_particles or n
        streams: list[Any] = [
            concatenate_streams(
                [Stream(self.keys[t], chain, step) for chain in range(first, end, size)], size
            )
            for t in rows
        ]
        return n, batch_rows([self.plans[t] for t in rows], streams, n)

    def begin(self, start: Callable[..., Any], block: int) -> tuple:
        """Chains, log weights and acceptance of every row, summed until each of its segments ends
        and until now; of populations the log of their mean weights, ancestors and records. The
        log weights of populations are those at the next level, where they move.
        """
        n, (path, transition, stream, _) = self.batch(block, range(len(self.plans)), 0)
        state = start(path, stream, n * len(self.plans))
        chains = Chains.start(path, transition, state, stream)
        log_weights = np.zeros((n, 0)) if self.keeps_steps else np.zeros(n)
        of_populations: tuple = ()
        if self.n_particles:
            old, new = (path.log_f(state, np.full(n, level)) for level in (0, self.orders[0][0]))
            log_weights = check_finite(log_ratio(old, new), allow_zero=path.has_boundary)
            n_populations = n // self.n_particles
            ancestors = np.tile(np.arange(self.n_particles), (n_populations, 1))
            of_populations = np.zeros(n_populations), ancestors, np.empty((n_populations, 0, 3))
        return tuple(
            (_those_of(chains, own), log_weights, np.zeros(2), *of_populations)
            for own in _row_slices(len(self.plans), n)
        )

    def advance(self, block: int, begin: int, end: int, carry: tuple) -> tuple:
        """Likewise after a segment. Acceptance is noted at the ends of the row's own segments, so
        that no other row matters.
        """
        moving = [t for t, order in enumerate(self.orders) if len(order) > end]
        n, (path, transition, stream, first_levels) = self.batch(block, moving, begin + 1)
        order = np.stack([self.orders[t][begin : end + 1] for t in moving], axis=1)
        levels = np.repeat(first_levels + order, n, axis=1)
        chains = concatenate_chains([carry[t][0] for t in moving])
        log_weights = np.concatenate([carry[t][1] for t in moving])
        sums = [carry[t][2].copy() for t in moving]
        populations = list(carry[0][3:])
        n_steps = 1 if self.keeps_steps or self.n_particles else end - begin
        for step in range(begin, end, n_steps):
            passed = levels[step - begin : step - begin + n_steps + 1]
            own_stream = stream.at(step + 1)
            if populations:
                chains, log_weights, populations = self._resampled(
                    path, chains, log_weights, populations, own_stream
                )
            before = transition.accepted(chains.auxiliary)
            given = 0.0 if self.keeps_steps else log_weights
            chains, gained = anneal(
                path,
                transition,
                chains,
                passed,
                own_stream,
                self.reverse,
                given,
                moves_first=self.n_particles > 0,
            )
            check_finite(gained, allow_zero=path.has_boundary)
            log_weights = np.column_stack([log_weights, gained]) if self.keeps_steps else gained
            after = transition.accepted(chains.auxiliary)
            for of_row, own in zip(sums, _row_slices(len(moving), n)):
                of_row[-1] += np.nan if after is None else np.sum(after[own] - before[own])
        rows = list(carry)
        for t, of_row, own in zip(moving, sums, _row_slices(len(moving), n)):
            if end in self.ends[t]:
                of_row = np.append(of_row, of_row[-1])
            rows[t] = _those_of(chains, own), log_weights[own], of_row, *populations
        return tuple(rows)

    def _resampled(self, path, chains, log_weights, populations, stream) -> tuple:
        """Particles after those of populations with too few effective ones, but for the last
        level's, are drawn by weight; and the record of this level.
        """
        log_mean, ancestors, records = populations
        n = self.n_particles
        log_weights = log_weights.reshape(-1, n)
        effective = effective_sample_size(log_weights, axis=1)
        total = log_mean + log_mean_exp(log_weights, axis=1)
        is_uneven = (effective > 0) & (effective < self.resample_at * n)
        resamples = is_uneven & (records.shape[1] + 2 < len(self.orders[0]))
        index = np.arange(log_weights.size).reshape(log_weights.shape)
        for g, (own, _) in enumerate(stream.rows()):
            if resamples[g]:
                uniform = float(stream_uniforms(own.of("resampling"), 1, REDRAW)[0])
                index[g] = g * n + systematic(log_weights[g], n, uniform)
        if resamples.any():
            chains = chains.take(path, index.ravel())
        record = np.stack([total, effective, resamples], axis=1)[:, np.newaxis]
        return (
            chains,
            np.where(resamples[:, np.newaxis], 0.0, log_weights).ravel(),
            [
                np.where(resamples, total, log_mean),
                ancestors.ravel()[index],
                np.concatenate([records, record], axis=1),
            ],
        )


def _row_slices(n_rows: int, n: int) -> list[slice]:
    """The places of every row's n chains, which are next to each other."""
    return [slice(row * n, (row + 1) * n) for row in range(n_rows)]


def _those_of(chains, own) -> Chains:
    """The chains in some places."""
    return Chains(*(take(part, own) for part in chains))


def ancestor_weights_of(populations: Populations) -> Array:
    """Log of the weight of the descendants of every particle that started, (G, N)."""
    log_weights = populations.log_mean[:, np.newaxis] + populations.log_weights
    largest = log_weights.max(axis=1, keepdims=True)
    largest = np.where(largest == -np.inf, 0.0, largest)
    n_populations, n = log_weights.shape
    ancestor = np.arange(n_populations)[:, np.newaxis] * n + populations.ancestors
    weights = np.exp(log_weights - largest)
    sums = np.bincount(ancestor.ravel(), weights=weights.ravel(), minlength=ancestor.size)
    with np.errstate(divide="ignore"):
        return largest + np.log(sums.reshape(n_populations, n))


def target_summaries(path, populations: Populations) -> Array:
    """Weighted means of the summaries of populations' states and of their squares, (G, 2, S); NaN
    without weights.
    """
    log_weights = populations.log_weights
    with np.errstate(invalid="ignore"):  # -inf - (-inf)
        weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    summaries = path.summary(populations.state).reshape(*weights.shape, -1)
    return np.array([weighted_sums(*each) for each in zip(weights, summaries)])


# ---- plans
def plan_runs(
    paths,
    transition,
    ladder,
    n_temperatures,
    n_chains,
    seeds,
    *,
    pilot_share: int = 20,  # a pilot has so many times fewer levels
) -> list[Plan]:
    """Fix the ladder and tune the move, for every row of data; of a path without rows for itself.

    "adaptive" measures the spread of log f_(k+1) - log f_k in a pilot and places the levels at
    equal cumulative spread. A move that has a pilot of its own tells the spread at once; others are
    tuned on the ladder.
    """
    keys = [seeded(seed).of("tuning").key for seed in seeds]
    adaptive = isinstance(ladder, str) and ladder == "adaptive"
    n_levels = max(2, n_temperatures // pilot_share)
    first = make_ladder("linear", n_levels) if adaptive else make_ladder(ladder, n_temperatures)
    paths = [path.with_ladder(first) for path in paths]
    check_ends(paths[0])
    if len(paths) == 1:
        tuned = [transition.tune(paths[0], keys[0])]
    else:
        tuned = transition.tune_rows(paths, keys)
    plans = [
        Plan(path, move, seed, n_tuning_moves(transition, move))
        for path, move, seed in zip(paths, tuned, seeds)
    ]
    if not adaptive:
        return plans
    return [
        _respaced(plan, transition, n_temperatures, n_chains, key) for plan, key in zip(plans, keys)
    ]


def check_ends(path) -> None:
    """Raise ValueError unless the ladder goes from the base to the target."""
    if path.ladder[0] != 0 or path.ladder[-1] != 1:
        raise ValueError(
            "ladder must begin at 0 (the base, which is sampled) and end at 1 (the target)"
        )


def n_tuning_moves(transition, tuned) -> int:
    """Moves that it took to tune a transition: none if it had been tuned before."""
    return 0 if tuned is transition or tuned.pilot is None else tuned.pilot.n_moves


def _respaced(plan, transition, n_temperatures, n_chains, key) -> Plan:
    """The plan with levels at equal cumulative spread."""
    path = plan.path
    pilot = plan.transition.pilot
    if pilot is not None and len(pilot.betas) > 1:
        cost = (pilot.spread[1:] + pilot.spread[:-1]) / 2 * np.diff(pilot.betas)
        return plan._replace(path=path.with_ladder(respace(pilot.betas, cost, n_temperatures)))
    steps = anneal_forward([plan], n_chains, "pilot", keeps_steps=True)[0].log_weights
    check_alive(steps[:, -1])
    spread = np.array([ratios[ratios > -np.inf].std() for ratios in steps.T])
    path = path.with_ladder(respace(path.ladder, spread, n_temperatures))
    tuned = transition.tune(path, key)
    n_pilot = n_chains * len(spread) + n_tuning_moves(transition, tuned)
    return Plan(path, tuned, plan.seed, plan.n_sweeps + n_pilot)


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
        thin = [thinned(plans[t], n_levels) for t in open_rows]
        arrivals = anneal_forward(thin, n, f"pilot {i}", n_jobs)
        for t, arrived in zip(list(open_rows), arrivals):
            plan = _with_estimate(plans[t], arrived.log_weights, n * (n_levels - 1))
            needed = 1 + (n_levels - 1) * _excess(arrived.log_weights, n_chains, tol)
            if needed <= growth * n_levels or growth**2 * n_levels > most:
                plan = thinned(plan, int(np.ceil(min(max(needed, n_levels), most))))
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


def thinned(plan: Plan, n_levels: int) -> Plan:
    """Return the plan with a ladder of the same shape with other levels, no more."""
    ladder = plan.path.ladder
    place = np.linspace(0, len(ladder) - 1, n_levels)
    return plan._replace(
        path=plan.path.with_ladder(np.interp(place, np.arange(len(ladder)), ladder))
    )
