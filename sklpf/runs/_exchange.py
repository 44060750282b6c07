"""Replica exchange: rounds of independent ladders, and what they leave for reweighting."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from sklpf._utils.limits import RECORD_EVERY
from sklpf._utils.parallel import run_segments
from sklpf._utils.random import Stream
from sklpf.paths import Derivatives
from sklpf.paths._base import concatenate, take
from sklpf.paths._capabilities import has
from sklpf.runs import _programs as programs
from sklpf.runs._draws import Draws, has_points, joined, no_draws, pieces, points_of
from sklpf.runs._plan import (
    check_finite,
    draw_alive,
    segments,
    side_by_side,
    with_base_renewed,
)
from sklpf.runs._rounds import together
from sklpf.runs._samples import LevelRun, Samples, fewest_columns, linear_vectors

_SHORTEST_PAUSE = (
    64  # scans between two draws: each interrupts the compiled program, for some 100 us
)
_RENEW_EVERY = 16  # scans from one draw of the base to the next, where a path asks for them


@dataclass(frozen=True, repr=False, kw_only=True)
class ExchangeRun(LevelRun):
    """What a round of replica exchange leaves of G ladders with K levels.

    Attributes
    ----------
    shift : ndarray of shape (K - 1,)
        Reference of the sums over pairs: an earlier estimate of log Z_(k+1) / Z_k.
    pair_sums : ndarray of shape (2, G, K - 1, 5)
        Of the first and the second half, every ladder and pair: sums of logistic(u - shift),
        logistic(r + shift), exp(u - shift), exp(r + shift) and the swap's rejection probability; u
        = log f_(k+1) - log f_k at level k, r its negative at level k + 1.
    level_sums : ndarray of shape (2, G, K, 4)
        Number of states, sums of U, U^2 and dU / dbeta at every level, of every fourth scan; U = d
        log f / d beta.
    summaries : ndarray of shape (G, 2, S)
        Sums of the path's summaries of states at the target, and of their squares.
    n_scans : int
    round_trips : ndarray of shape (G,)
    slopes : ndarray of shape (G, n_kept, K), (G, n_kept, 1) or (G, n_kept, 0)
        Of a systematic thinning of the states: U at every level; one number where U is the same at
        all (log f is linear in beta), none where the path has no derivatives. float32 where there
        are K.
    log_q : ndarray of shape (G, n_kept, K) or None
        Of the same states log softmax_k(log f_k(x) - log Z_k by `shift`), float32 as in `Round`;
        None where U, which is then log f_1 - log f_0, says the same.
    vector_levels : ndarray of shape (G, n_kept)
        The levels at which these x were moved.
    """

    shift: NDArray[np.float64]
    pair_sums: NDArray[np.float64]
    level_sums: NDArray[np.float64]
    summaries: NDArray[np.float64]
    n_scans: int
    round_trips: NDArray[np.int64]
    slopes: NDArray[np.floating]
    log_q: NDArray[np.float32] | None
    vector_levels: NDArray[np.int64]

    @property
    def rejection(self) -> NDArray[np.float64]:
        """Mean rejection probability of every pair of neighbouring levels, shape (K - 1,)."""
        return self.pair_sums[..., 4].mean(axis=(0, 1)) * 2 / self.n_scans

    @property
    def n_groups(self) -> int:
        """Independent ladders G."""
        return len(self.round_trips)

    def pairs(self, half: int | None = None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the sums over pairs, (G, K - 1, 5), as in `pair_sums`, and the states in them, (G,
        K).
        """
        sums = self.pair_sums.sum(axis=0) if half is None else self.pair_sums[half]
        n_scans = self.n_scans if half is None else (self.n_scans + half) // 2
        return sums, np.full((self.n_groups, len(self.ladder)), float(n_scans))

    @property
    def samples(self) -> Samples:
        """The states that were kept."""
        slopes = self.slopes.reshape(self.vector_levels.size, self.slopes.shape[-1])
        if self.log_q is None:
            vectors = linear_vectors(self.ladder, slopes)
        else:
            vectors = self.log_q.reshape(-1, len(self.ladder)) + np.r_[0, np.cumsum(self.shift)]
        groups = np.repeat(np.arange(self.n_groups), self.vector_levels.shape[1])
        return Samples(vectors, slopes, self.vector_levels.ravel(), groups)


class Ladders(NamedTuple):
    """Where every ladder stands: (state, memory, levels) of its chains."""

    path: Any
    chains: list[tuple[Any, tuple, NDArray[np.int64]]]


class _Carry(NamedTuple):
    """Where the ladders of a block stand, and what their scans have left so far."""

    state: Any
    memory: tuple
    levels: NDArray[np.int64]
    ends: NDArray[np.int64]
    pair_sums: NDArray[np.float64]  # of the first and the second half, as all sums over pairs
    level_sums: NDArray[np.float64]  # likewise
    summaries: NDArray[np.float64]
    trips: NDArray[np.int64]
    draws: Draws
    log_q: NDArray[np.float32]
    slopes: NDArray[np.floating]
    vector_levels: NDArray[np.int64]


def start_ladders(path, transition, n_ladders, key) -> Ladders:
    """Ladders whose chains are all drawn from the base, where the target has mass."""
    n_levels = len(path.ladder)
    chains = []
    for block in range(n_ladders):
        stream = Stream(key, block * n_levels)
        state = draw_alive(path, n_levels, stream)
        memory = transition.init(path, state, stream.aside("memory"))
        chains.append((state, memory, np.arange(n_levels)))
    return Ladders(path, chains)


def move_ladders(ladders: Ladders, path) -> Ladders:
    """The same ladders with other levels: if their number changes each starts at the state of the
    nearest old one.
    """
    if len(path.ladder) == len(ladders.path.ladder):
        return ladders._replace(path=path)
    nearest = np.abs(path.ladder[:, np.newaxis] - ladders.path.ladder).argmin(axis=1)
    if path.has_walls:  # the base's chain may be where all other levels are 0
        nearest[1:] = np.maximum(nearest[1:], 1)
    chains = []
    for state, memory, levels in ladders.chains:
        index = np.argsort(levels)[nearest]
        chains.append((path.take(state, index), take(memory, index), np.arange(len(nearest))))
    return Ladders(path, chains)


def run_round(
    ladders: Ladders,
    transition,
    shift,
    n_scans,
    key,
    stage,
    n_jobs=None,
    checkpoint=None,
    first_scan=0,
    n_kept=0,
    n_draws=0,
):
    """One round of scans; returns where the ladders stand and the round's `ExchangeRun`.

    Of all its states at most `n_kept` are kept as vectors, those of every fourth scan or of fewer,
    and of those at the target about `n_draws` as draws.
    """
    path = ladders.path
    most_records = max(1, n_kept // (len(ladders.chains) * len(path.ladder)))
    stride = max(RECORD_EVERY, -(-n_scans // most_records)) if n_kept else 0
    pause = 0  # scans from one draw of a ladder to the next
    if n_draws and has_points(path):
        pause = max(_SHORTEST_PAUSE, -(-n_scans // max(1, n_draws // len(ladders.chains))))
    half = n_scans // 2
    bounds = segments(half, path.n_moves_per_segment)
    bounds += [half + scan for scan in segments(n_scans - half, path.n_moves_per_segment)][1:]
    n_ladders = len(ladders.chains)
    first = side_by_side(path, transition, n_ladders, n_ladders * len(path.ladder))
    carries = run_segments(
        functools.partial(_begin, ladders, first),
        functools.partial(
            _advance, path, transition, key, shift, stride, pause, half, first_scan, first, bounds
        ),
        len(first) - 1,
        len(bounds) - 1,
        n_jobs=n_jobs,
        checkpoint=checkpoint,
        stage=stage,
    )
    blocks: Any = _Carry._make(zip(*carries))
    log_q, all_slopes, vector_levels = (
        [_by_ladder(part, len(path.ladder)) for part in parts]
        for parts in (blocks.log_q, blocks.slopes, blocks.vector_levels)
    )
    slopes = fewest_columns(all_slopes)
    run = ExchangeRun(
        ladder=path.ladder,
        draws=joined(blocks.draws).thinned(),
        shift=shift,
        pair_sums=check_finite(np.concatenate(blocks.pair_sums, axis=1)),
        level_sums=np.concatenate(blocks.level_sums, axis=1),
        summaries=np.concatenate(blocks.summaries),
        n_scans=n_scans,
        round_trips=np.concatenate(blocks.trips),
        slopes=slopes,
        log_q=None if slopes.shape[-1] == 1 else np.concatenate(log_q),
        vector_levels=np.concatenate(vector_levels),
        has_walls=path.has_walls,
    )
    stand = [ladder for carry in carries for ladder in _split(path, *carry[:3])]
    return Ladders(path, stand), run


def _split(path, state, memory, levels):
    """State, memory and levels of each of the ladders of a block."""
    for chains in np.arange(len(levels)).reshape(-1, len(path.ladder)):
        yield path.take(state, chains), take(memory, chains), levels[chains]


def _begin(ladders, first, block) -> _Carry:
    """The ladders of a block before any scan."""
    chains = ladders.chains[first[block] : first[block + 1]]
    n_ladders = len(chains)
    n_levels = len(ladders.path.ladder)
    state, memory, levels = together(chains)
    n = len(levels)
    n_summaries = ladders.path.summary(ladders.path.take(state, [0])).shape[1]
    n_slopes = n_levels if has(ladders.path, Derivatives) else 0
    return _Carry(
        state=state,
        memory=memory,
        levels=levels,
        ends=np.zeros(n, dtype=np.int64),
        pair_sums=np.zeros((2, n_ladders, n_levels - 1, 5)),
        level_sums=np.zeros((2, n_ladders, n_levels, 4)),
        summaries=np.zeros((n_ladders, 2, n_summaries)),
        trips=np.zeros(n_ladders, dtype=np.int64),
        draws=no_draws(ladders.path, state),
        log_q=np.empty((0, n, n_levels), dtype=np.float32),
        slopes=np.empty((0, n, n_slopes)),
        vector_levels=np.empty((0, n), dtype=np.int64),
    )


def _log_q(vectors, shift):
    return log_softmax(vectors - np.r_[0, np.cumsum(shift)], axis=-1).astype(np.float32)


def _by_ladder(records, n_levels):
    """Records (n_records, n_ladders * K, …) as a sequence of states of each ladder."""
    n, n_chains, *rest = records.shape
    n_ladders = n_chains // n_levels
    return (
        records.reshape(n, n_ladders, n_levels, *rest)
        .swapaxes(0, 1)
        .reshape(n_ladders, n * n_levels, *rest)
    )


def _advance(
    path,
    transition,
    key,
    shift,
    stride,
    pause,
    half,
    first_scan,
    first,
    bounds,
    block,
    segment,
    carry,
) -> _Carry:
    """The ladders of a block after one segment of scans."""
    pair_sums = carry.pair_sums.copy()
    level_sums = carry.level_sums.copy()
    part = int(bounds[segment] >= half)
    records = []
    at_target = []
    # A base that is renewed sets the pace of the draws too: those at the target are then taken at
    # every renewal, and thinned at the end of the round.
    length = _RENEW_EVERY if path.renews_base else pause
    for begin, end in pieces(bounds[segment], bounds[segment + 1], length):
        stream = Stream(key, int(first[block]) * len(path.ladder), first_scan + begin)
        chains = carry.state, carry.memory, carry.levels
        left = programs.exchange(
            path, transition, *chains, carry.ends, shift, end - begin, stream, stride
        )
        pair_sums[part] += left.pair_sums
        level_sums[part] += left.level_sums
        carry = carry._replace(
            state=left.state,
            memory=left.memory,
            levels=left.levels,
            ends=left.ends,
            summaries=carry.summaries + left.summaries,
            trips=carry.trips + left.trips,
        )
        if len(left.vectors):
            records.append((left.vectors, left.slopes, left.vector_levels))
        if pause:
            top = np.flatnonzero(left.levels == len(path.ladder) - 1)
            ladders = first[block] + top // len(path.ladder)
            at_target.append((path.take(left.state, top), ladders))
        if path.renews_base:
            chains = carry.state, carry.memory, carry.levels
            renewal = stream.aside("renewal")
            state, memory = with_base_renewed(path, transition, *chains, renewal)
            carry = carry._replace(state=state, memory=memory)

    carry = carry._replace(pair_sums=pair_sums, level_sums=level_sums)
    if records:
        vectors, slopes, vector_levels = (np.concatenate(parts) for parts in zip(*records))
        carry = carry._replace(
            log_q=np.concatenate([carry.log_q, _log_q(vectors, shift)]),
            slopes=np.concatenate([carry.slopes, slopes]),
            vector_levels=np.concatenate([carry.vector_levels, vector_levels]),
        )
    if at_target:
        states, ladders = zip(*at_target)
        points = points_of(path, concatenate(states))
        draws = Draws(points, np.zeros(len(points)), np.concatenate(ladders))
        carry = carry._replace(draws=joined([carry.draws, draws]))
    return carry
