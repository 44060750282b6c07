"""Simulated tempering of groups of chains, round by round, with fixed pseudo-priors; and its
annealed first pass.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp, softmax

from sklpf._utils.numbers import Array, Integers
from sklpf._utils.parallel import run_segments
from sklpf._utils.random import Stream, seeded
from sklpf.paths import put, take
from sklpf.programs._draws import has_points
from sklpf.programs._programs import (
    Chains,
    anneal,
    apart,
    blocks_of_groups,
    chain_groups,
    check_alive,
    check_finite,
    concatenate_chains,
    draw_alive,
    log_q_sums,
    log_ratio,
    segments,
    temper,
)
from sklpf.programs._rounds import LevelRound, RoundProgram
from sklpf.uncertainty import MeanWeight

END_SHARE = 0.1  # a chain visits an end of the ladder within this share of the levels


@dataclass(frozen=True, repr=False, kw_only=True)
class TemperingRound(LevelRound):
    """Record of a round of simulated tempering of M chains in G groups.

    Attributes
    ----------
    first : ndarray of shape (G + 1,)
        First chain of every group, and the end.
    n_redraws : int
        Redraws of every chain's level.
    log_q_sums : ndarray of shape (2, M, K)
        Log of every chain's sum of q(k | x) over the first and the second half.
    counts : ndarray of shape (2, M, K)
        How often every chain drew every level in each half.
    origin : int
        The first level that counts as an end of the ladder: 1 where log Z_1 / Z_0 comes from base
        draws.
    """

    first: Integers
    n_redraws: int
    log_q_sums: Array
    counts: Integers
    origin: int = 0

    def log_sums(self, rao_blackwell: bool, halves: tuple[int, ...] = (0, 1)) -> Array:
        """Log of every chain's sum of q(k | x), or of its counts.

        Parameters
        ----------
        rao_blackwell : bool
            Whether q(k | x) is summed, or the levels that were drawn are counted.
        halves : tuple of int, default=(0, 1)
            The halves of the round to use.

        Returns
        -------
        ndarray of shape (M, K)
            In nats.
        """
        if rao_blackwell:
            return logsumexp(self.log_q_sums[list(halves)], axis=0)
        with np.errstate(divide="ignore"):
            return np.log(self.counts[list(halves)].sum(axis=0))

    def shares(self, rao_blackwell: bool, halves: tuple[int, ...] = (0, 1)) -> Array:
        """Averages of q(k | x), or of the counts, of every chain.

        Parameters
        ----------
        rao_blackwell : bool
            Whether q(k | x) is summed, or the levels that were drawn are counted.
        halves : tuple of int, default=(0, 1)
            The halves of the round to use.

        Returns
        -------
        ndarray of shape (M, K)
            Each row sums to 1.
        """
        sums = np.exp(self.log_sums(rao_blackwell, halves))
        return sums / sums.sum(axis=1, keepdims=True)

    def thinned(self) -> TemperingRound:
        """Return the round without every other kept vector, and without its draws.

        Returns
        -------
        TemperingRound
            All else is shared.
        """
        kept = {
            name: getattr(self, name)[:, ::2].copy()
            for name in ("log_q", "vector_levels", "slopes")
        }
        return replace(self, **kept, draws=None)

    @property
    def crossed(self) -> NDArray[np.bool_]:
        """Mask of the chains that visited both ends of the ladder, shape (M,): its lowest and its
        highest tenth.
        """
        visits = self.counts.sum(axis=0) > 0
        n_end = max(1, round(END_SHARE * visits.shape[1]))
        return visits[:, : max(n_end, self.origin + 1)].any(axis=1) & visits[:, -n_end:].any(axis=1)

    def _group_of_rows(self):
        return chain_groups(self.first, np.arange(self.n_groups))


class Setup(NamedTuple):
    """Constants that all stages of a run share."""

    path: Any
    transition: Any
    log_prior: Array  # (K,): log r_k of the levels
    first: Integers  # (G + 1,): first chain of every group, and the end
    seed: int
    sweeps_per_redraw: int
    options: dict[str, Any]  # n_jobs and checkpoint of run_segments
    first_ratio: MeanWeight | None = (
        None  # log Z_1 / Z_0, where the base draws points at which the target is 0
    )

    @property
    def n_groups(self) -> int:
        return len(self.first) - 1

    def stream(self, name: str, group: int, step: int = 0) -> Stream:
        """The random numbers of one group in one stage."""
        return Stream(seeded(self.seed).of(name).key, int(self.first[group]), step)

    def base_chains(self, name: str, group: int) -> Chains:
        """Base draws of a group, at level 0; only where the target has mass."""
        n = int(self.first[group + 1] - self.first[group])
        stream = self.stream(name, group)
        state = (
            self.path.sample_base(n, stream)
            if self.first_ratio is None
            else draw_alive(self.path, n, stream)
        )
        return Chains.start(self.path, self.transition, state, stream)

    def with_fresh_levels(self, chains: list[Chains], time: int) -> list[Chains]:
        """The same chains at uniformly drawn levels, others at each time."""
        n_levels = len(self.path.ladder)
        fresh = []
        for group, old in enumerate(chains):
            rng = self.stream("levels", group, time).generator()
            fresh.append(old._replace(levels=rng.integers(n_levels, size=len(old.levels))))
        return fresh


@dataclass(frozen=True, kw_only=True)
class Temper(RoundProgram):
    """Steps are redraws: all chains move, then each draws a new level."""

    n_pair_sums: ClassVar[int] = 4
    keeps_linear_vectors: ClassVar[bool] = True

    def begin(self, n_groups, n_chains):
        shape = (2, n_chains, len(self.path.ladder))
        return np.zeros(shape), np.zeros(shape, dtype=np.int64)

    def steps(self, chains, own, half, n, stream, groups):
        q_sums, counts = (sums.copy() for sums in own)
        left = temper(
            self.path,
            self.transition,
            chains,
            self.log_pseudo_prior,
            n,
            self.sweeps_per_step,
            self.stride,
            stream,
            groups,
        )
        q_sums[half] += check_finite(left.q_sums)
        counts[half] += left.counts
        return left.chains, (q_sums, counts), left.sums

    def draws(self, chains):
        log_f = self.path.log_f_ladder(chains.state)
        log_q = log_softmax(log_f + self.log_pseudo_prior, axis=1)
        return np.arange(len(log_q)), log_q[:, -1]

    def by_row(self, records):
        # Sums over it depend on its layout, which pickling would change.
        return records.swapaxes(0, 1).copy()


def run_round(
    setup: Setup,
    name: tuple[int, ...],
    chains: list[Chains],
    curve: Array,
    n_redraws: int,
    n_kept: int = 0,
    with_draws: bool = False,
    *,
    looked_at: int = 2000,  # states of a round that may become draws
    # redraws from one draw of the base to the next, where a path asks for them
    renew_every: int = 8,
) -> tuple[list[Chains], TemperingRound]:
    """Return the chains of all groups after a round with weights of the levels by estimates log Z_k
    (K,), and its record with about `n_kept` vectors log f_k(x).
    """
    path = setup.path
    n_chains = int(setup.first[-1])
    stride = -(-n_redraws * n_chains // n_kept) if n_kept else n_redraws
    longest = max(1, path.n_moves_per_segment // setup.sweeps_per_redraw)
    stride, longest, every = _thinning(stride, longest)
    pause = 0  # redraws from one look at the states to the next
    if with_draws and has_points(path):
        pause = stride * -(-n_redraws * n_chains // (looked_at * stride))
    renews = path.renews_base and setup.first_ratio is None
    program = Temper(
        path=path,
        transition=setup.transition,
        first=setup.first,
        log_pseudo_prior=setup.log_prior - curve,
        key=seeded(setup.seed).of("round", *name).key,
        first_sweep=1,
        sweeps_per_step=setup.sweeps_per_redraw,
        stride=stride,
        keeps_every=every if n_kept else 0,
        pause=pause,
        renewal=stride * -(-renew_every // stride) if renews else 0,
    )
    stage = "round" + "-".join(map(str, name))
    chains, own, left = program.run(chains, n_redraws, longest, stage, **setup.options)
    q_sums, counts = (np.concatenate(parts, axis=1) for parts in zip(*own))
    return chains, TemperingRound(
        first=setup.first,
        n_redraws=n_redraws,
        log_q_sums=log_q_sums(q_sums),
        counts=counts,
        origin=int(setup.first_ratio is not None),
        **left,
    )


def _thinning(stride, longest):
    """Stride of the kept vectors in a segment, redraws of a segment, and of how many segments one
    keeps vectors.
    """
    if stride <= longest:
        return stride, longest // stride * stride, 1
    return longest, longest, -(-stride // longest)


def pool_groups(first: Integers, log_terms: NDArray) -> NDArray:
    """Add up, in logs, the chains of every group, along the first axis."""
    return np.stack([logsumexp(part, axis=0) for part in np.split(log_terms, first[1:-1])])


def first_pass(setup: Setup, n_sweeps: int) -> tuple[list[Chains], NDArray]:
    """Anneal all chains from base draws to the target in `n_sweeps` sweeps.

    Returns
    -------
    chains : list of Chains
        Every group's chains spread over the levels as the prior says; each state is drawn from
        those that the group's own chains had at that level, with probabilities in proportion to
        their weights.
    log_weights : ndarray of shape (M, K)
        log f_k / f_0 accumulated by every chain on its way: the mean of its exponential over chains
        is Z_k / Z_0.
    """
    path = setup.path
    blocks = blocks_of_groups(path, setup.transition, setup.n_groups, int(setup.first[-1]))
    carries = run_segments(
        functools.partial(_begin, setup, blocks, n_sweeps),
        functools.partial(_advance, setup, blocks, n_sweeps),
        len(blocks),
        segments(n_sweeps, path.n_moves_per_segment),
        stage="pilot",
        **setup.options,
    )
    log_weights = np.concatenate([carry[1] for carry in carries])
    check_alive(log_weights[:, -1])
    stand = []
    for groups, (_, _, starts) in zip(blocks, carries):
        stand += apart(path, starts, chain_groups(setup.first, groups))
    return stand, check_finite(log_weights, allow_zero=True)


def _levels_passed(sweeps, n_sweeps, n_levels):
    """Level after each of some sweeps of the pass: evenly from the first to the last."""
    return (2 * sweeps * (n_levels - 1) + n_sweeps) // (2 * n_sweeps)


def _begin(setup, blocks, n_sweeps, block):
    groups = blocks[block]
    chains = concatenate_chains([setup.base_chains("first pass", group) for group in groups])
    quantiles = np.concatenate([_quantiles(setup, group) for group in groups])
    n_levels = len(setup.log_prior)
    shares = np.cumsum(np.exp(setup.log_prior))
    levels = np.minimum(np.searchsorted(shares, quantiles), n_levels - 1)
    n_stops = min(n_sweeps, n_levels - 1)
    visited = _levels_passed(np.arange(n_stops + 1), n_stops, n_levels)
    starts = chains._replace(levels=visited[np.searchsorted(visited, levels)])
    return chains, np.zeros((len(levels), n_levels)), starts


def _quantiles(setup, group):
    """Evenly spread over (0, 1), one for every chain of a group, moved by chance."""
    n = np.diff(setup.first)[group]
    return (np.arange(n) + setup.stream("levels", group).generator().random()) / n


def _advance(setup, blocks, n_sweeps, block, begin, end, carry):
    """Weigh the chains at each next level and move them there. Chains of production that
    begin at this level start from states that are resampled by weight.
    """
    chains, log_weights, starts = carry
    log_weights = log_weights.copy()
    groups = blocks[block]
    group_of = chain_groups(setup.first, groups)
    # before sweep begin, begin + 1, …
    at = _levels_passed(np.arange(begin, end + 2), n_sweeps, log_weights.shape[1])
    rises = begin + 1 + np.flatnonzero(np.diff(at[1:-1]))
    for t, stop in zip([begin, *rises], [*rises, end]):
        old, new = at[t - begin], at[t + 1 - begin]
        if new > old:
            log_f = setup.path.log_f_ladder(chains.state)
            rise = log_ratio(log_f[:, [old]], log_f)
            log_weights[:, old + 1 : new + 1] = log_weights[:, [old]] + rise[:, old + 1 : new + 1]
        if new > 0 or setup.first_ratio is None:  # base draws stay where the target has mass
            stay = np.full((stop - t + 1, len(log_weights)), new)
            stream = setup.stream("first pass", groups[0], t + 1)
            chains, _ = anneal(setup.path, setup.transition, chains, stay, stream)
        leaving = stop == n_sweeps or at[stop + 1 - begin] != new
        for group in groups if leaving else ():
            own = np.flatnonzero(group_of == group)
            here = np.flatnonzero((group_of == group) & (starts.levels == new))
            if not len(here):
                continue
            rng = setup.stream("resampling", group, stop).generator()
            chosen = own[_resample(log_weights[own, new], len(here), rng)]
            starts = starts._replace(
                state=put(starts.state, here, setup.path.take(chains.state, chosen)),
                auxiliary=put(starts.auxiliary, here, take(chains.auxiliary, chosen)),
            )
    return chains, log_weights, starts


def _resample(log_weights, n, rng):
    check_finite(log_weights, allow_zero=True)
    if not np.any(log_weights > -np.inf):  # they leave for the base at their first redraw
        log_weights = np.zeros(len(log_weights))
    return rng.choice(len(log_weights), size=n, p=softmax(log_weights))
