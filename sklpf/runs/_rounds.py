"""A round of simulated tempering: groups of chains side by side, with fixed pseudo-priors."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from sklpf._utils.parallel import run_segments
from sklpf._utils.random import Stream, stream_key
from sklpf.paths import Derivatives
from sklpf.paths._base import concatenate, take
from sklpf.paths._capabilities import has
from sklpf.reweighting import MeanWeight
from sklpf.runs import _programs as programs
from sklpf.runs._draws import Draws, has_points, joined, no_draws, pieces, points_of
from sklpf.runs._plan import (
    check_finite,
    draw_alive,
    segments,
    side_by_side,
    with_base_renewed,
)
from sklpf.runs._samples import fewest_columns
from sklpf.runs._tempering import Round

START, LEVELS, PILOT, RESAMPLE, _ROUND = range(1, 6)  # what random streams are for
_LOOKED_AT = 2000  # states of a round that may become draws
_RENEW_EVERY = 8  # redraws from one draw of the base to the next, where a path asks for them
_LOWEST = -1300.0  # log of the smallest sum of q(k | x) that is told from 0


class Setup(NamedTuple):
    """What all stages of a run share. Chains of a group are a tuple (state, memory, levels)."""

    path: Any
    transition: Any
    first: NDArray[np.int64]  # (G + 1,): first chain of every group, and the end
    seed: int
    sweeps_per_redraw: int
    options: dict[str, Any]  # n_jobs and checkpoint of run_segments
    first_ratio: MeanWeight | None = (
        None  # log Z_1 / Z_0, where the base draws points at which the target is 0
    )

    @property
    def n_groups(self) -> int:
        return len(self.first) - 1

    def stream(self, stage: int, group: int, step: int = 0, *name: int) -> Stream:
        """The random numbers of one group in one stage."""
        return Stream(stream_key(self.seed, stage, *name), int(self.first[group]), step)

    @property
    def blocks(self) -> list[NDArray[np.int64]]:
        """The groups that move side by side, and the one after them: one array a block."""
        bounds = side_by_side(self.path, self.transition, self.n_groups, int(self.first[-1]))
        return [np.arange(start, end + 1) for start, end in zip(bounds, bounds[1:])]

    def base_chains(self, stage: int, group: int) -> tuple[Any, tuple, NDArray[np.int64]]:
        """Base draws of a group, at level 0; only where the target has mass."""
        n = int(self.first[group + 1] - self.first[group])
        stream = self.stream(stage, group)
        state = (
            self.path.sample_base(n, stream)
            if self.first_ratio is None
            else draw_alive(self.path, n, stream)
        )
        return (
            state,
            self.transition.init(self.path, state, stream.aside("memory")),
            np.zeros(n, dtype=np.int64),
        )

    def with_fresh_levels(self, chains: list, name: int) -> list:
        """The same chains at uniformly drawn levels."""
        rngs = [self.stream(LEVELS, group, name).generator() for group in range(len(chains))]
        n_levels = len(self.path.ladder)
        return [
            (*rest, rng.integers(n_levels, size=len(old)))
            for rng, (*rest, old) in zip(rngs, chains)
        ]


def run_round(
    setup: Setup,
    name: tuple,
    chains: list,
    log_pseudo_prior,
    n_redraws: int,
    n_kept: int = 0,
    with_draws: bool = False,
):
    """Temper all groups; of the vectors log f_k(x) about `n_kept` are kept. Returns the chains and
    a `Round`.
    """
    n_chains = int(setup.first[-1])
    stride = -(-n_redraws * n_chains // n_kept) if n_kept else n_redraws
    stride, length, every = _thinning(
        stride, max(1, setup.path.n_moves_per_segment // setup.sweeps_per_redraw)
    )
    half = n_redraws // 2
    bounds = segments(half, length) + [
        half + redraw for redraw in segments(n_redraws - half, length)[1:]
    ]
    pause = 0  # redraws from one look at the states to the next
    if with_draws and has_points(setup.path):
        pause = stride * -(-n_redraws * n_chains // (_LOOKED_AT * stride))
    thinning = (stride, every if n_kept else 0, pause)
    blocks = setup.blocks
    carries = run_segments(
        functools.partial(_begin, setup, blocks, chains),
        functools.partial(_advance, setup, blocks, name, log_pseudo_prior, thinning, half, bounds),
        len(blocks),
        len(bounds) - 1,
        stage="round" + "-".join(map(str, name)),
        **setup.options,
    )
    parts: Any = _Carry._make(zip(*carries))  # every field of all blocks
    log_q = np.concatenate(parts.log_q, axis=1)
    vector_levels = np.concatenate(parts.vector_levels, axis=1)
    left = Round(
        log_pseudo_prior=log_pseudo_prior,
        n_redraws=n_redraws,
        log_q_sums=np.maximum(np.concatenate(parts.log_q_sums, axis=1), _LOWEST),
        counts=np.concatenate(parts.counts, axis=1),
        level_sums=np.concatenate(parts.level_sums, axis=1),
        # sums over it depend on its layout, which pickling would change
        log_q=log_q.swapaxes(0, 1).copy(),
        vector_levels=vector_levels.swapaxes(0, 1).copy(),
        slopes=fewest_columns([part.swapaxes(0, 1) for part in parts.slopes]),
        pair_sums=np.concatenate(parts.pair_sums, axis=1),
        summaries=np.concatenate(parts.summaries),
        origin=int(setup.first_ratio is not None),
        draws=joined(parts.draws).thinned(),
    )
    return apart(setup, blocks, [carry[:3] for carry in carries]), left


def together(chains: list) -> tuple:
    """State, memory and levels of some groups side by side."""
    return tuple(concatenate(parts) for parts in zip(*chains))


def apart(setup: Setup, blocks: list, chains: list) -> list:
    """State, memory and levels of each group, from those of the blocks."""
    groups = []
    for block, (state, memory, levels) in zip(blocks, chains):
        first = setup.first[block] - setup.first[block[0]]
        for index in map(np.arange, first, first[1:]):
            groups.append((setup.path.take(state, index), take(memory, index), levels[index]))
    return groups


def _thinning(stride, longest):
    """Stride of the kept vectors in a segment, redraws of a segment, and of how many segments one
    keeps vectors.
    """
    if stride <= longest:
        return stride, longest // stride * stride, 1
    return longest, longest, -(-stride // longest)


class _Carry(NamedTuple):
    """Where the groups of a block stand, and what their redraws have left so far; sums are of the
    first and the second half of the round.
    """

    state: Any
    memory: tuple
    levels: NDArray[np.int64]
    summaries: NDArray[np.float64]
    log_q_sums: NDArray[np.float64]
    counts: NDArray[np.int64]
    level_sums: NDArray[np.float64]
    pair_sums: NDArray[np.float64]
    log_q: NDArray[np.float32]
    vector_levels: NDArray[np.int64]
    slopes: NDArray[np.floating]
    draws: Draws


def _begin(setup, blocks, chains, block) -> _Carry:
    """The groups of a block before any redraw."""
    path = setup.path
    groups = blocks[block][:-1]
    state, memory, levels = together([chains[group] for group in groups])
    n = len(levels)
    n_levels = len(path.ladder)
    n_summaries = path.summary(path.take(state, [0])).shape[1]
    n_slopes = n_levels if has(path, Derivatives) else 0
    return _Carry(
        state=state,
        memory=memory,
        levels=levels,
        summaries=np.zeros((len(groups), 2, n_summaries)),
        log_q_sums=np.full((2, n, n_levels), -np.inf),
        counts=np.zeros((2, n, n_levels), dtype=np.int64),
        level_sums=np.zeros((2, len(groups), n_levels, 4)),
        pair_sums=np.zeros((2, len(groups), n_levels - 1, 4)),
        log_q=np.empty((0, n, n_levels), dtype=np.float32),
        vector_levels=np.empty((0, n), dtype=np.int64),
        slopes=np.empty((0, n, n_slopes)),
        draws=no_draws(path, state),
    )


def _advance(
    setup, blocks, name, log_pseudo_prior, thinning, half, bounds, block, segment, carry
) -> _Carry:
    """The groups of a block after one segment of redraws."""
    log_q_sums, counts, level_sums, pair_sums = (
        sums.copy() for sums in (carry.log_q_sums, carry.counts, carry.level_sums, carry.pair_sums)
    )
    first = setup.first[blocks[block]]
    stride, every, pause = thinning
    part = int(bounds[segment] >= half)
    records = []
    states = []
    renews = setup.path.renews_base and setup.first_ratio is None
    length = stride * -(-_RENEW_EVERY // stride) if renews else pause
    for begin, end in pieces(bounds[segment], bounds[segment + 1], length):
        stream = setup.stream(_ROUND, blocks[block][0], begin * setup.sweeps_per_redraw + 1, *name)
        left = programs.temper(
            setup.path,
            setup.transition,
            carry.state,
            carry.memory,
            carry.levels,
            log_pseudo_prior,
            end - begin,
            setup.sweeps_per_redraw,
            stride,
            stream,
            first - first[0],
        )
        more_q = check_finite(left.log_q_sums, allow_zero=True)
        log_q_sums[part] = np.logaddexp(log_q_sums[part], more_q)
        counts[part] += left.counts
        level_sums[part] += left.level_sums
        pair_sums[part] += left.pair_sums
        carry = carry._replace(
            state=left.state,
            memory=left.memory,
            levels=left.levels,
            summaries=carry.summaries + left.summaries,
        )
        records.append((left.vectors, left.vector_levels, left.slopes))
        if pause:
            states.append(left.state)
        if renews:
            chains = carry.state, carry.memory, carry.levels
            renewal = stream.aside("renewal")
            state, memory = with_base_renewed(setup.path, setup.transition, *chains, renewal)
            carry = carry._replace(state=state, memory=memory)

    carry = carry._replace(
        log_q_sums=log_q_sums, counts=counts, level_sums=level_sums, pair_sums=pair_sums
    )
    if every and segment % every == 0:
        vectors, more_levels, more_slopes = (np.concatenate(parts) for parts in zip(*records))
        more_log_q = log_softmax(vectors + log_pseudo_prior, axis=2).astype(np.float32)
        carry = carry._replace(
            log_q=np.concatenate([carry.log_q, more_log_q]),
            vector_levels=np.concatenate([carry.vector_levels, more_levels]),
            slopes=np.concatenate([carry.slopes, more_slopes]),
        )
    if states:
        group_of = np.repeat(blocks[block][:-1], np.diff(first))
        seen = _seen_at_target(
            setup.path, log_pseudo_prior, concatenate(states), np.tile(group_of, len(states))
        )
        carry = carry._replace(draws=joined([carry.draws, seen]))
    return carry


def _seen_at_target(path, log_pseudo_prior, state, groups) -> Draws:
    """All chains as draws from the target, with q(K - 1 | x) as their weights."""
    log_q = log_softmax(path.log_f_ladder(state) + log_pseudo_prior, axis=1)
    return Draws(points_of(path, state), log_q[:, -1], groups)
