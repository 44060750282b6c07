"""Chains at levels, their blocks and segments, and the programs that move them: plain loops over
`Transition.move` say what they do, and run a user's own path; their compiled forms run where the
path has kernels for the transition.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.limits import Q_OFFSET, RECORD_EVERY, BadValue
from sklpf._utils.numbers import Array, Integers
from sklpf._utils.random import REDRAW, SWAP
from sklpf.paths import (
    COVER,
    Path,
    State,
    TemperedPath,
    concatenate,
    has,
    map_state,
    n_chains,
    take,
)
from sklpf.transitions import Transition, stream_uniforms


class Chains(NamedTuple):
    """n chains, each at a level of its own.

    Attributes
    ----------
    state : object
        State of the chains, into which only the path looks.
    auxiliary : tuple
        Auxiliary variables of the move, such as velocities.
    levels : ndarray of shape (n,)
    """

    state: Any
    auxiliary: tuple
    levels: Integers

    @classmethod
    def start(cls, path: Path, transition: Transition, state: State, stream: Any) -> Chains:
        """Return chains at level 0, of which a stream has drawn the state."""
        levels = np.zeros(n_chains(state), dtype=np.int64)
        return cls(state, transition.start(path, state, stream), levels)

    def take(self, path: Path, index: Integers) -> Chains:
        """Return the chains with some indices."""
        return Chains(path.take(self.state, index), take(self.auxiliary, index), self.levels[index])


def concatenate_chains(groups: Sequence[Chains]) -> Chains:
    """The chains of some groups, one group after the other."""
    return Chains(*(concatenate(parts) for parts in zip(*groups)))


def chain_groups(first: Integers, groups: Integers) -> Integers:
    """The group of every chain of some groups, from the first chain of every group and the end."""
    return np.repeat(groups, np.diff(first)[groups])


def apart(path: Path, chains: Chains, groups: Integers) -> list[Chains]:
    """The chains of each group, from the group of every chain (n,)."""
    return [chains.take(path, np.flatnonzero(groups == group)) for group in np.unique(groups)]


def with_base_renewed(path: Path, transition: Transition, chains: Chains, stream: Any) -> Chains:
    """The same chains, but for those at the base, which are drawn anew from it."""
    at_base = np.flatnonzero(chains.levels == 0)
    if len(at_base) == 0:
        return chains
    fresh = Chains.start(path, transition, path.sample_base(len(at_base), stream), stream)
    n = len(chains.levels)
    index = np.arange(n)
    index[at_base] = n + np.arange(len(at_base))
    return concatenate_chains([chains, fresh]).take(path, index)


def draw_alive(
    path,
    n,
    stream,
    *,
    most_draws=1000,  # of some chains, until all are where the target has mass
):
    """Base draws; those at which the target is 0 are drawn anew."""
    state = path.sample_base(n, stream)
    again = stream.of("base draws anew")
    if not path.has_boundary:
        return state
    for attempt in range(1, most_draws):
        dead = path.log_f(state, np.full(n, len(path.ladder) - 1)) == -np.inf
        if not dead.any():
            return state
        index = np.where(dead, n + np.arange(n), np.arange(n))
        state = path.take(concatenate([state, path.sample_base(n, again.at(attempt))]), index)
    raise ValueError(f"base draws hardly any point where the target has mass: {COVER}")


def check_finite(log_terms: NDArray, allow_zero: bool = False) -> NDArray:
    """Raise ValueError where log_f gave values that are not finite; `allow_zero` lets -inf, a
    density of 0, pass.
    """
    if not np.all(np.isfinite(log_terms) | (allow_zero & (log_terms == -np.inf))):
        raise ValueError(
            "log_f gave values that are not finite; check the model's parameters and the path's"
            " log_f"
        )
    return log_terms


def check_alive(log_weights: NDArray) -> None:
    """Raise ValueError if all weights are 0."""
    if np.all(log_weights == -np.inf):
        raise ValueError(f"every chain has weight 0: the base draws no point where f > 0: {COVER}")


# ---- blocks of chains, and segments of sweeps
def blocks_of_groups(
    path,
    transition,
    n_groups: int,
    n_chains: int,
    *,
    most_chains: int = 1000,  # of a block
    fewest_blocks: int = 1,
    fewest_of_points: int = 4,
    fewest_chains: int = 24,  # of a block of a compiled program: weights are read for each block
) -> list[Integers]:
    """The groups of every block: as many as give it some chains where programs are compiled, else
    all in as few blocks as memory allows, since calls of NumPy cost more than what they compute.
    Functions of one point gain nothing from it and keep blocks for processes.
    """
    n_blocks = min(n_groups, max(1, n_chains // fewest_chains))
    if transition.compiled(path) is None:
        vectorized = getattr(path, "vectorized", True)
        fewest = fewest_blocks if vectorized else fewest_of_points
        n_blocks = min(n_groups, max(fewest, n_chains // most_chains))
    first = np.linspace(0, n_groups, n_blocks + 1).astype(np.int64)
    return np.split(np.arange(n_groups), first[1:-1])


def segments(n_sweeps: int, length: int) -> list[int]:
    """First sweep of every segment of at most `length` sweeps, and the end."""
    return [*range(0, n_sweeps, length), n_sweeps]


# ---- what programs leave
class LevelSums(NamedTuple):
    """Sums of n chains in G groups at K levels, for reweighting.

    Attributes
    ----------
    pairs : ndarray of shape (G, K - 1, 4 or 5)
        As in `LevelRound`.
    levels : ndarray of shape (G, K, 4)
        As in `LevelRound`.
    summaries : ndarray of shape (G, 2, S)
        As in `LevelRound`.
    vectors : ndarray of shape (n_records, n, K)
        log f_k(x) in nats, of the states that are recorded.
    vector_levels : ndarray of shape (n_records, n)
        The level that each x was moved at.
    slopes : ndarray of shape (n_records, n, K) or (n_records, n, 0)
        d log f / d beta; nothing where the path has no derivatives.
    """

    pairs: Array
    levels: Array
    summaries: Array
    vectors: Array
    vector_levels: Integers
    slopes: Array

    @classmethod
    def zeros(
        cls, path: Path, state: State, n_groups: int, n_pair_sums: int, n_records: int = 0
    ) -> LevelSums:
        """Return sums over no state yet, and room for records, of the chains of a state."""
        n = n_chains(state)
        n_levels = len(path.ladder)
        n_summaries = path.summary(path.take(state, [0])).shape[1]
        n_slopes = n_levels if has(path, "derivatives") else 0
        return cls(
            pairs=np.zeros((n_groups, n_levels - 1, n_pair_sums)),
            levels=np.zeros((n_groups, n_levels, 4)),
            summaries=np.zeros((n_groups, 2, n_summaries)),
            vectors=np.empty((n_records, n, n_levels)),
            vector_levels=np.empty((n_records, n), dtype=np.int64),
            slopes=np.empty((n_records, n, n_slopes)),
        )


class Exchanged(NamedTuple):
    """Output of `exchange`."""

    chains: Chains
    ends: Integers  # (n,)
    trips: Integers  # (G,): round trips
    sums: LevelSums  # those of `levels` of every fourth scan


class Tempered(NamedTuple):
    """Output of `temper`."""

    chains: Chains
    q_sums: Array  # (n, K): sums of exp(log q(k | x) + Q_OFFSET)
    counts: Integers  # (n, K): how often each level was drawn
    # before each redraw; the shift of a pair is minus the difference of its log pseudo-priors
    sums: LevelSums


def log_q_sums(q_sums: Array) -> Array:
    """Log of sums of q(k | x) that hold a factor of exp(Q_OFFSET); at least -1300."""
    return np.log(np.maximum(q_sums, np.exp(-1300.0 + Q_OFFSET))) - Q_OFFSET


def _compiled_first(program):
    """Decorator of a program that runs its compiled form where it is given the packed `model`, else
    its plain loop: gives it the model where the path has kernels for the transition.
    """

    @functools.wraps(program)
    def run(path, transition, *arguments, **options):
        model = transition.compiled(path)
        if model is not None:
            with contextlib.suppress(BadValue):  # the plain loop says where
                return program(path, transition, *arguments, **options, model=model)
        return program(path, transition, *arguments, **options)

    return run


def _run_compiled(program, path, model, chains, levels, *arguments) -> Chains:
    """The chains, at levels where a compiled program leaves them, which changes a copy of their
    state in place, with the move's auxiliary variables if it has any.
    """
    state = map_state(np.array, chains.state)
    auxiliary = map_state(np.array, chains.auxiliary)
    path.kernel(program)(model, (state, auxiliary) if auxiliary else state, *arguments)
    return Chains(state, auxiliary, levels)


# ---- programs
@_compiled_first
def anneal(
    path,
    transition,
    chains,
    levels,
    stream,
    reverse=False,
    log_weights=0.0,
    moves_first=False,
    model=None,
):
    """Move through levels (n_sweeps + 1, n) and sum the increments of log f (Neal 2001).

    Forward: the increment from levels[t] to levels[t + 1], then a move at levels[t + 1].
    Reverse: the reversed move at levels[t], then the increment. With `moves_first` as in reverse,
    but by the move itself.

    Returns
    -------
    chains : Chains
    log_weights : ndarray of shape (n,)
        Added to those that are given.
    """
    state, auxiliary, _ = chains
    moves_first = moves_first or reverse
    log_weights = np.zeros(n_chains(state)) + log_weights
    if model is not None:
        order = path.ladder[levels], reverse, moves_first, stream.keys, log_weights
        return _run_compiled("anneal", path, model, chains, levels[-1], *order), log_weights
    for t in range(len(levels) - 1):
        now = stream.at(stream.step + t)
        if moves_first:
            state, auxiliary = transition.move(path, state, auxiliary, levels[t], now, reverse)
        old = path.log_f(state, levels[t])
        log_weights += log_ratio(old, path.log_f(state, levels[t + 1]))
        if not moves_first:
            state, auxiliary = transition.move(path, state, auxiliary, levels[t + 1], now)
    return Chains(state, auxiliary, levels[-1]), log_weights


def log_ratio(old, new):
    """Gains of log f from one level to another: -inf where the density is 0 there, also of a
    chain at which it was 0 already.
    """
    with np.errstate(invalid="ignore"):
        return np.where(new == -np.inf, new, new - old)


@_compiled_first
def exchange(
    path, transition, chains, ends, shift, n_scans, stream, stride=0, model=None
) -> Exchanged:
    """Replica exchange of K consecutive chains a ladder, even and odd pairs in turn (Syed et al.
    2022).

    Parameters
    ----------
    chains : Chains
        Their levels are a permutation within each ladder.
    ends : ndarray of shape (n,)
        The end of the ladder that each chain has visited last: -1 base, 1 target (after the base),
        0 none.
    shift : ndarray of shape (K - 1,)
        Approximate log Z_(k+1) / Z_k.
    stride : int, default=0
        The scans at steps that it divides are recorded; 0 records none.
    """
    from sklpf.kernels._programs import swap_levels

    n_levels = len(path.ladder)
    state, auxiliary, levels = chains
    levels = levels.copy()
    ends = ends.copy()
    n_ladders = len(levels) // n_levels
    trips = np.zeros(n_ladders, dtype=np.int64)
    n_records = len(range(-stream.step % stride, n_scans, stride)) if stride else 0
    sums = LevelSums.zeros(path, state, n_ladders, 5, n_records)
    if model is not None:
        order = levels, ends, trips, path.ladder, shift, n_scans, stride, stream.keys, sums
        chains = _run_compiled("exchange", path, model, chains, levels, *order)
        return Exchanged(chains, ends, trips, sums)
    ladder_of = np.arange(len(levels)) // n_levels
    record = 0
    for t in range(n_scans):
        now = stream.at(stream.step + t)
        state, auxiliary = transition.move(path, state, auxiliary, levels, now)
        summary = path.summary(path.take(state, np.flatnonzero(levels == n_levels - 1)))
        sums.summaries[:, 0] += summary
        sums.summaries[:, 1] += summary**2
        if now.step % RECORD_EVERY == 0:
            add_derivatives(path, state, levels, sums.levels, ladder_of)
        if stride and now.step % stride == 0:
            write_record(path, state, path.log_f_ladder(state), levels, sums, record)
            record += 1
        up, down = _to_neighbours(path, state, levels)
        drawn = stream_uniforms(now, len(levels), SWAP)
        swap_levels(up, down, levels, ends, trips, shift, now.step, drawn, sums.pairs)
    return Exchanged(Chains(state, auxiliary, levels), ends, trips, sums)


def _to_neighbours(path, state, levels):
    """Gains of log f of every chain to the level above, and to the one below, both (n,)."""
    above = np.minimum(levels + 1, len(path.ladder) - 1)
    below = np.maximum(levels - 1, 0)
    if type(path).log_f is TemperedPath.log_f:  # which takes all levels at once
        here, up, down = path.log_f(state, np.array([levels, above, below]))
    else:
        here, up, down = (path.log_f(state, at) for at in (levels, above, below))
    return up - here, down - here


@_compiled_first
def temper(
    path,
    transition,
    chains,
    log_pseudo_prior,
    n_redraws,
    sweeps_per_redraw,
    stride,
    stream,
    groups=None,
    model=None,
) -> Tempered:
    """Simulated tempering: moves, then a redraw of each level from q(level | x) (Carlson et al.
    2016, eq. 7).

    Parameters
    ----------
    log_pseudo_prior : ndarray of shape (K,)
        log r_k minus the estimate of log Z_k.
    stride : int
        Every `stride`-th redraw is recorded.
    groups : ndarray of shape (n,) or None, default=None
        The group of every chain; None is one group.
    """
    from sklpf.kernels._programs import add_bridges, redraw_levels

    state, auxiliary, levels = chains
    levels = levels.copy()
    if groups is None:
        groups = np.zeros(len(levels), dtype=np.int64)
    q_sums = np.zeros((len(levels), len(path.ladder)))
    counts = np.zeros(q_sums.shape, dtype=np.int64)
    sums = LevelSums.zeros(path, state, groups[-1] + 1, 4, -(-n_redraws // stride))
    if model is not None:
        order = levels, path.ladder, log_pseudo_prior, n_redraws, sweeps_per_redraw, stride, groups
        room = q_sums, counts, sums
        chains = _run_compiled("temper", path, model, chains, levels, *order, stream.keys, *room)
        return Tempered(chains, *room)
    at_target = np.empty(len(levels))
    for t in range(n_redraws):
        for s in range(sweeps_per_redraw):
            now = stream.at(stream.step + t * sweeps_per_redraw + s)
            state, auxiliary = transition.move(path, state, auxiliary, levels, now)
        add_derivatives(path, state, levels, sums.levels, groups)
        log_densities = np.ascontiguousarray(path.log_f_ladder(state), dtype=np.float64)
        if t % stride == 0:
            write_record(path, state, log_densities, levels, sums, t // stride)
        add_bridges(log_densities, log_pseudo_prior, levels, groups, sums.pairs)
        drawn = stream_uniforms(now, len(levels), REDRAW)
        redraw_levels(log_densities, log_pseudo_prior, levels, drawn, q_sums, counts, at_target)
        summary = path.summary(state)
        powers = np.stack([summary, summary**2], axis=1)
        np.add.at(sums.summaries, groups, at_target[:, np.newaxis, np.newaxis] * powers)
    return Tempered(Chains(state, auxiliary, levels), q_sums, counts, sums)


def weighted_sums(weights, summary):
    """Sums of summaries (n, S) and of their squares with weights (n,), shape (2, S)."""
    return np.stack([weights @ summary, weights @ summary**2])


def add_derivatives(path, state, levels, sums, group):
    """Add 1, U, U^2 and dU / dbeta (U = d log f / d beta) of every chain to sums[group, level],
    shape (G, K, 4).

    d^2 log Z / d beta^2 = Var U + E dU / dbeta. Where the path has no derivatives only states are
    counted.
    """
    first = second = np.zeros(len(levels))
    if has(path, "derivatives"):
        first, second = path.derivatives(state, levels).T
    np.add.at(
        sums, (group, levels), np.stack([np.ones_like(first), first, first**2, second], axis=1)
    )


def slopes(path, state):
    """d log f / d beta of every chain at every level, shape (n, K); (n, 0) where the path has no
    derivatives.
    """
    n = n_chains(state)
    n_levels = len(path.ladder)
    if not has(path, "derivatives"):
        return np.empty((n, 0))
    different = 1 if has(path, "ends") else n_levels  # one for all where log f is linear in beta
    columns = [path.derivatives(state, np.full(n, k))[:, 0] for k in range(different)]
    return np.broadcast_to(np.stack(columns, axis=1), (n, n_levels))


def write_record(path, state, vectors, levels, sums, record):
    """Keep log f (n, K) and its slopes at every level, and the levels (n,), as one record."""
    sums.vectors[record] = vectors
    sums.vector_levels[record] = levels
    sums.slopes[record] = slopes(path, state)
