"""Simulated tempering: rounds with fixed pseudo-priors on independent groups of chains, and what they leave."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp

from sklpf._parallel import run_segments
from sklpf._random import Stream, stream_key
from sklpf._tables import Fields
from sklpf.paths import Derivatives
from sklpf.paths._base import concatenate, take
from sklpf.paths._capabilities import has
from sklpf.reweighting import MeanWeight
from sklpf.runs import _programs as programs
from sklpf.runs._history import NO_ROUNDS
from sklpf.runs._plan import check_finite, draw_alive, segments, side_by_side
from sklpf.runs._samples import KeptStates, Samples, fewest_columns

START, LEVELS, PILOT, RESAMPLE, _ROUND = range(1, 6)  # what random streams are for
_LOWEST = -1300.0  # log of the smallest sum of q(k | x) that is told from 0
_END_SHARE = 0.1  # a chain visits an end of the ladder within this share of the levels


@dataclass(frozen=True, repr=False)
class Round(Fields):
    """What a round of simulated tempering leaves of M chains in G groups.

    Attributes
    ----------
    log_pseudo_prior : ndarray of shape (K,)
        log r_k minus the estimate of log Z_k, fixed during the round.
    n_redraws : int
        Redraws of every chain's level.
    log_q_sums : ndarray of shape (2, M, K)
        Log of every chain's sum of q(k | x) over the first and the second half.
    counts : ndarray of shape (2, M, K)
        How often every chain drew every level in each half.
    level_sums : ndarray of shape (2, G, K, 4)
        Number of states, sums of U, U^2 and dU / dbeta at every level; U = d log f / d beta.
    log_q : ndarray of shape (M, n_kept, K)
        log q(k | x) of a systematic thinning. float32, so that a run stays small: near 0 where q counts, it is exact
        there to 1e-7.
    vector_levels : ndarray of shape (M, n_kept)
        The levels at which these x were moved.
    slopes : ndarray of shape (M, n_kept, K), (M, n_kept, 1) or (M, n_kept, 0)
        U of these x, as in `ExchangeRun`.
    pair_sums : ndarray of shape (2, G, K - 1, 4)
        As in `ExchangeRun`, of both halves, but for rejections; the shift of a pair is minus the difference of its log
        pseudo-priors.
    summaries : ndarray of shape (G, 2, S)
        Sums of every group's `path.summary` and of its squares, weighted by q(K - 1 | x): those of the target's states.
    origin : int
        The first level that counts as an end of the ladder: 1 where log Z_1 / Z_0 comes from base draws.
    """

    log_pseudo_prior: NDArray[np.float64]
    n_redraws: int
    log_q_sums: NDArray[np.float64]
    counts: NDArray[np.int64]
    level_sums: NDArray[np.float64]
    log_q: NDArray[np.float32]
    vector_levels: NDArray[np.int64]
    slopes: NDArray[np.floating]
    pair_sums: NDArray[np.float64]
    summaries: NDArray[np.float64]
    origin: int = 0

    @property
    def vectors(self) -> NDArray[np.float64]:
        """log f_k(x) of the thinning but for a constant of every x, shape (M, n_kept, K)."""
        return self.log_q - self.log_pseudo_prior

    def log_sums(self, rao_blackwell: bool, halves: tuple[int, ...] = (0, 1)) -> NDArray[np.float64]:
        """Log of every chain's sum of q(k | x), or of its counts.

        Parameters
        ----------
        rao_blackwell : bool
            Whether q(k | x) is summed, or the levels that were drawn are counted.
        halves : tuple of int, default=(0, 1)
            Which halves of the round.

        Returns
        -------
        ndarray of shape (M, K)
            In nats.
        """
        if rao_blackwell:
            return logsumexp(self.log_q_sums[list(halves)], axis=0)
        with np.errstate(divide="ignore"):
            return np.log(self.counts[list(halves)].sum(axis=0))

    def shares(self, rao_blackwell: bool, halves: tuple[int, ...] = (0, 1)) -> NDArray[np.float64]:
        """Averages of q(k | x), or of the counts, of every chain.

        Parameters
        ----------
        rao_blackwell : bool
            Whether q(k | x) is summed, or the levels that were drawn are counted.
        halves : tuple of int, default=(0, 1)
            Which halves of the round.

        Returns
        -------
        ndarray of shape (M, K)
            Each row sums to 1.
        """
        sums = np.exp(self.log_sums(rao_blackwell, halves))
        return sums / sums.sum(axis=1, keepdims=True)

    def thinned(self) -> Round:
        """Return the round without every other kept vector.

        Returns
        -------
        Round
            All else is shared.
        """
        kept = {name: getattr(self, name)[:, ::2].copy() for name in ("log_q", "vector_levels", "slopes")}
        return replace(self, **kept)

    def pairs(self, half: int | None = None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the sums over pairs of both halves or of one.

        Parameters
        ----------
        half : int or None, default=None
            0 or 1; None takes both together.

        Returns
        -------
        sums : ndarray of shape (G, K - 1, 4)
            As in `pair_sums`.
        counts : ndarray of shape (G, K)
            States of every level in them.
        """
        sums, counts = self.pair_sums, self.level_sums[..., 0]
        return (sums.sum(axis=0), counts.sum(axis=0)) if half is None else (sums[half], counts[half])

    @property
    def crossed(self) -> NDArray[np.bool_]:
        """Which chains visited both ends of the ladder, shape (M,): its lowest and its highest tenth."""
        visits = self.counts.sum(axis=0) > 0
        n_end = max(1, round(_END_SHARE * visits.shape[1]))
        return visits[:, : max(n_end, self.origin + 1)].any(axis=1) & visits[:, -n_end:].any(axis=1)


@dataclass(frozen=True, repr=False)
class Adaptation(Fields):
    """What an adaptive phase found, and what its updates did.

    Attributes
    ----------
    method : str
        The estimator whose phase it is.
    curve : ndarray of shape (K,)
        The estimates log Z_k - log Z_0 that were frozen.
    n_draws : ndarray of shape (n_updates,)
        Draws of a level by all chains together, this update's included.
    gain : ndarray of shape (n_updates,)
        By which (share of visits) / r_k was multiplied.
    evenness : ndarray of shape (n_updates,)
        Of the visits that the rule looked at; 1 is perfect.
    log_partition : ndarray of shape (n_updates,)
        log Z_target - log Z_base after the update.
    settled : bool
        Whether the gain has begun to fall as 1 / draws.
    """

    method: str
    curve: NDArray[np.float64]
    n_draws: NDArray[np.int64]
    gain: NDArray[np.float64]
    evenness: NDArray[np.float64]
    log_partition: NDArray[np.float64]
    settled: bool


@dataclass(frozen=True, repr=False)
class TemperingRun(KeptStates):
    """Rounds of simulated tempering after burn-in.

    Attributes
    ----------
    ladder : ndarray of shape (K,)
    base_log_partition : float
        log Z_0 in nats.
    first : ndarray of shape (G + 1,)
        First chain of every group, and the end.
    rounds : tuple of Round
    previous : tuple
        Log pseudo-priors (T, K), log sums of every group (T, G, K) and sizes (T,) of the rounds from which the last
        round's estimate came, and the log of what is added to the pooled sums.
    sweeps_per_redraw : int
    bound : ndarray or None
        Logs of independent estimates of Z that are not too large on average, made without the base.
    n_sweeps : int
        Sweeps of all chains together, pilot and burn-in included.
    adaptation : Adaptation or None
        How the weights were found, where by an adaptive phase.
    log_f_rounding : float
        Size of the rounding errors of log_f in nats, where the path names one.
    doubts : tuple of str
        What was found against the path before anything was sampled: reasons not to trust any result.
    first_ratio : MeanWeight or None
        log Z_1 / Z_0 from base draws, where some of these fall on points at which the target is 0.
    history : ndarray of shape (R, 3)
        As in `ExchangeRun`, after the pilot, every round of burn-in and every earlier one of production.
    """

    ladder: NDArray[np.float64]
    base_log_partition: float
    first: NDArray[np.int64]
    rounds: tuple[Round, ...]
    previous: tuple[NDArray, NDArray, NDArray, float]
    sweeps_per_redraw: int
    bound: NDArray[np.float64] | None
    n_sweeps: int
    adaptation: Adaptation | None = None
    log_f_rounding: float = 0.0
    doubts: tuple[str, ...] = ()
    first_ratio: MeanWeight | None = None
    history: NDArray[np.float64] = field(default_factory=NO_ROUNDS.copy)

    # -- what reweighting reads (see `LevelRun`) is that of the last round, which is half of the production or all of it
    @property
    def n_groups(self) -> int:
        """Independent groups G of chains."""
        return len(self.first) - 1

    @property
    def shift(self) -> NDArray[np.float64]:
        """Reference of the sums over pairs, shape (K - 1,)."""
        return -np.diff(self.rounds[-1].log_pseudo_prior)

    @property
    def level_sums(self) -> NDArray[np.float64]:
        """Number of states, sums of U, U^2 and dU / dbeta: shape (2, G, K, 4)."""
        return self.rounds[-1].level_sums

    def pairs(self, half: int | None = None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the sums over pairs of both halves or of one.

        Parameters
        ----------
        half : int or None, default=None
            0 or 1; None takes both together.

        Returns
        -------
        sums : ndarray of shape (G, K - 1, 4)
            As in `pair_sums`.
        counts : ndarray of shape (G, K)
            States of every level in them.
        """
        return self.rounds[-1].pairs(half)

    @property
    def vector_levels(self) -> NDArray[np.int64]:
        """The levels at which the kept states were moved, shape (M, n_kept)."""
        return self.rounds[-1].vector_levels

    @property
    def samples(self) -> Samples:
        """The states that were kept."""
        last, n_levels = self.rounds[-1], len(self.ladder)
        slopes = last.slopes.reshape(last.vector_levels.size, last.slopes.shape[-1])
        groups = np.repeat(np.arange(self.n_groups), np.diff(self.first) * last.vector_levels.shape[1])
        return Samples(last.vectors.reshape(-1, n_levels), slopes, last.vector_levels.ravel(), groups)


def pool_groups(first: NDArray[np.int64], log_terms: NDArray, axis: int) -> NDArray:
    """Add up, in logs, the chains of every group along `axis`."""
    parts = np.split(log_terms, first[1:-1], axis=axis)
    return np.stack([logsumexp(part, axis=axis) for part in parts], axis=axis)


class Setup(NamedTuple):
    """What all stages of a run share. Chains of a group are a tuple (state, memory, levels)."""

    path: Any
    transition: Any
    first: NDArray[np.int64]  # (G + 1,): first chain of every group, and the end
    seed: int
    sweeps_per_redraw: int
    options: dict[str, Any]  # n_jobs and checkpoint of run_segments
    first_ratio: MeanWeight | None = None  # log Z_1 / Z_0, where the base draws points at which the target is 0

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
        n, stream = int(self.first[group + 1] - self.first[group]), self.stream(stage, group)
        state = self.path.sample_base(n, stream) if self.first_ratio is None else draw_alive(self.path, n, stream)
        return state, self.transition.init(self.path, state, stream.aside()), np.zeros(n, dtype=np.int64)

    def with_fresh_levels(self, chains: list, name: int) -> list:
        """The same chains at uniformly drawn levels."""
        rngs = [self.stream(LEVELS, group, name).generator() for group in range(len(chains))]
        n_levels = len(self.path.ladder)
        return [(*rest, rng.integers(n_levels, size=len(old))) for rng, (*rest, old) in zip(rngs, chains)]


def run_round(setup: Setup, name: tuple, chains: list, log_pseudo_prior, n_redraws: int, n_kept: int = 0):
    """Temper all groups; of the vectors log f_k(x) about `n_kept` are kept. Returns the chains and a `Round`."""
    n_chains = int(setup.first[-1])
    stride = -(-n_redraws * n_chains // n_kept) if n_kept else n_redraws
    stride, length, every = _thinning(stride, max(1, setup.path.n_moves_per_segment // setup.sweeps_per_redraw))
    half = n_redraws // 2
    bounds = segments(half, length) + [half + redraw for redraw in segments(n_redraws - half, length)[1:]]
    thinning, blocks = (stride, every if n_kept else 0), setup.blocks
    carries = run_segments(
        functools.partial(_begin, setup, blocks, chains),
        functools.partial(_advance, setup, blocks, name, log_pseudo_prior, thinning, half, bounds),
        len(blocks),
        len(bounds) - 1,
        stage="round" + "-".join(map(str, name)),
        **setup.options,
    )
    _, _, _, summaries, *sums = zip(*carries)
    *sums, slopes = sums
    log_q_sums, counts, level_sums, pair_sums, log_q, vector_levels = (np.concatenate(parts, axis=1) for parts in sums)
    left = Round(
        log_pseudo_prior=log_pseudo_prior,
        n_redraws=n_redraws,
        log_q_sums=np.maximum(log_q_sums, _LOWEST),
        counts=counts,
        level_sums=level_sums,
        log_q=log_q.swapaxes(0, 1).copy(),  # sums over it depend on its layout, which pickling would change
        vector_levels=vector_levels.swapaxes(0, 1).copy(),
        slopes=fewest_columns([part.swapaxes(0, 1) for part in slopes]),
        pair_sums=pair_sums,
        summaries=np.concatenate(summaries),
        origin=int(setup.first_ratio is not None),
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
    """Stride of the kept vectors in a segment, redraws of a segment, and of how many segments one keeps vectors."""
    if stride <= longest:
        return stride, longest // stride * stride, 1
    return longest, longest, -(-stride // longest)


def _begin(setup, blocks, chains, block):
    path, groups = setup.path, blocks[block][:-1]
    (state, memory, levels), n_groups = together([chains[group] for group in groups]), len(groups)
    n, n_levels = len(levels), len(path.ladder)
    log_q_sums, counts = np.full((2, n, n_levels), -np.inf), np.zeros((2, n, n_levels), dtype=np.int64)
    log_q, vector_levels = np.empty((0, n, n_levels), dtype=np.float32), np.empty((0, n), dtype=np.int64)
    slopes = np.empty((0, n, n_levels if has(path, Derivatives) else 0))
    level_sums, pair_sums = np.zeros((2, n_groups, n_levels, 4)), np.zeros((2, n_groups, n_levels - 1, 4))
    summaries = np.zeros((n_groups, 2, path.summary(path.take(state, [0])).shape[1]))
    sums, kept = (log_q_sums, counts, level_sums, pair_sums), (log_q, vector_levels, slopes)
    return state, memory, levels, summaries, *sums, *kept


def _advance(setup, blocks, name, log_pseudo_prior, thinning, half, bounds, block, segment, carry):
    state, memory, levels, summaries, *sums, log_q, vector_levels, slopes = carry
    first = setup.first[blocks[block]]
    (stride, every), part = thinning, int(bounds[segment] >= half)
    begin, end = bounds[segment], bounds[segment + 1]
    stream = setup.stream(_ROUND, blocks[block][0], begin * setup.sweeps_per_redraw + 1, *name)
    order = end - begin, setup.sweeps_per_redraw, stride
    state, memory, levels, more_sums, drawn, derivatives, *more, pairs, more_summaries = programs.temper(
        setup.path, setup.transition, state, memory, levels, log_pseudo_prior, *order, stream, first - first[0]
    )
    log_q_sums, counts, level_sums, pair_sums = (a.copy() for a in sums)
    log_q_sums[part] = np.logaddexp(log_q_sums[part], check_finite(more_sums, allow_zero=True))
    counts[part] += drawn
    level_sums[part] += derivatives
    pair_sums[part] += pairs
    if every and segment % every == 0:
        vectors, more_levels, more_slopes = more
        more_log_q = log_softmax(vectors + log_pseudo_prior, axis=2).astype(np.float32)
        log_q = np.concatenate([log_q, more_log_q])
        vector_levels, slopes = np.concatenate([vector_levels, more_levels]), np.concatenate([slopes, more_slopes])
    sums, kept = (log_q_sums, counts, level_sums, pair_sums), (log_q, vector_levels, slopes)
    return state, memory, levels, summaries + more_summaries, *sums, *kept
