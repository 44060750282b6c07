"""A round of chains at levels: groups side by side in blocks, segment by segment, and what they
leave: sums over all of their states, and a thinning of these. `_exchange.py` and `_tempering.py`
say how chains change their levels.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from sklpf._utils.numbers import Array, Integers
from sklpf._utils.parallel import run_segments
from sklpf._utils.random import Stream
from sklpf._utils.tables import Fields
from sklpf.programs._draws import Draws, concatenate_draws, no_draws, points_of
from sklpf.programs._programs import (
    Chains,
    LevelSums,
    apart,
    blocks_of_groups,
    chain_groups,
    concatenate_chains,
    with_base_renewed,
)

# a history (R, 3) without rounds: log Z in nats, its standard error, sweeps of all chains so far
NO_ROUNDS = np.empty((0, 3))


class Samples(NamedTuple):
    """The N states that a run kept, a systematic thinning.

    Attributes
    ----------
    vectors : ndarray of shape (N, K)
        log f_k(x) at every level, but for a constant of every x, in nats.
    slopes : ndarray of shape (N, K), (N, 1) or (N, 0)
        U = d log f / d beta at every level; one number where it is the same at all, none where the
        path has no derivatives.
    levels : ndarray of shape (N,)
        The level that each x was moved at.
    groups : ndarray of shape (N,)
        Its independent group.
    """

    vectors: Array
    slopes: NDArray[np.floating]
    levels: Integers
    groups: Integers

    def of(self, keep: Integers) -> Samples:
        """Return the samples of some groups."""
        chosen = np.isin(self.groups, keep)
        return Samples._make(array[chosen] for array in self)

    @property
    def counts(self) -> Integers:
        """States of every level, shape (K,)."""
        return np.bincount(self.levels, minlength=self.vectors.shape[1])


@dataclass(frozen=True, repr=False, kw_only=True)
class LevelRound(Fields):
    """Record of a round of G independent groups of chains at K levels.

    A group is a ladder of replica exchange, or some chains of simulated tempering. States are kept
    in R rows, one for each ladder or chain. U is d log f / d beta.

    Attributes
    ----------
    log_pseudo_prior : ndarray of shape (K,)
        Reference of the round, in nats: the log of the share of draws that a level should have,
        minus the estimate of log Z_k; of replica exchange minus that estimate alone.
    pair_sums : ndarray of shape (2, G, K - 1, 4 or 5)
        Sums over the first and the second half, for every group and pair of neighbouring levels, of
        logistic(u - shift), logistic(r + shift), exp(u - shift), exp(r + shift) and, of replica
        exchange, the swap's rejection probability; u = log f_(k+1) - log f_k at level k, r its
        negative at level k + 1.
    level_sums : ndarray of shape (2, G, K, 4)
        Number of states, sums of U, U^2 and dU / dbeta at every level; of replica exchange at every
        fourth scan.
    summaries : ndarray of shape (G, 2, S)
        Sums of the path's summaries of states at the target, and of their squares; of simulated
        tempering over all states, weighted by q(K - 1 | x).
    log_q : ndarray of shape (R, n_kept, K) or None
        log softmax_k(log f_k(x) + log_pseudo_prior_k) of the kept states. float32, so that a run
        stays small: near 0, where q matters, it is exact to 1e-7. None where U is the same at all
        levels, which then says the same.
    vector_levels : ndarray of shape (R, n_kept)
        The levels at which these x were moved.
    slopes : ndarray of shape (R, n_kept, K), (R, n_kept, 1) or (R, n_kept, 0)
        U of these x at every level; one number where it is the same at all, none where the path has
        no derivatives. float32 where there are K.
    draws : Draws or None
        At most a thousand draws from the target.
    """

    log_pseudo_prior: Array
    pair_sums: Array
    level_sums: Array
    summaries: Array
    log_q: NDArray[np.float32] | None
    vector_levels: Integers
    slopes: NDArray[np.floating]
    draws: Draws | None = None

    @property
    def n_groups(self) -> int:
        """G."""
        return len(self.summaries)

    @property
    def shift(self) -> Array:
        """Reference of the sums over pairs, shape (K - 1,)."""
        return -np.diff(self.log_pseudo_prior)

    def counts_in(self, half: int) -> Array:
        """Return the states of every level in the sums over pairs of one half.

        Parameters
        ----------
        half : int
            0 or 1.

        Returns
        -------
        ndarray of shape (G, K)
        """
        return self.level_sums[half, ..., 0]

    def pairs(self, half: int | None = None) -> tuple[Array, Array]:
        """Return the sums over pairs of both halves or of one.

        Parameters
        ----------
        half : int or None, default=None
            0 or 1; None takes both together.

        Returns
        -------
        sums : ndarray of shape (G, K - 1, 4 or 5)
            As in `pair_sums`.
        counts : ndarray of shape (G, K)
            States of every level in them.
        """
        if half is None:
            return self.pair_sums.sum(axis=0), self.counts_in(0) + self.counts_in(1)
        return self.pair_sums[half], self.counts_in(half)

    def samples(self, ladder: Array) -> Samples:
        """Return the states that were kept.

        Parameters
        ----------
        ladder : ndarray of shape (K,)
            Inverse temperatures.

        Returns
        -------
        Samples
        """
        slopes = self.slopes.reshape(self.vector_levels.size, self.slopes.shape[-1])
        if self.log_q is None:
            vectors = linear_vectors(ladder, slopes)
        else:
            vectors = (self.log_q - self.log_pseudo_prior).reshape(-1, len(ladder))
        groups = np.repeat(self._group_of_rows(), self.vector_levels.shape[1])
        return Samples(vectors, slopes, self.vector_levels.ravel(), groups)

    def _group_of_rows(self) -> Integers:
        """The group of every row of kept states, shape (R,)."""
        return np.arange(self.n_groups)


@dataclass(frozen=True, repr=False, kw_only=True)
class ExchangeRound(LevelRound):
    """Record of a round of replica exchange of G ladders.

    Attributes
    ----------
    n_scans : int
    round_trips : ndarray of shape (G,)
    """

    n_scans: int
    round_trips: Integers

    @property
    def rejection(self) -> Array:
        """Mean rejection probability of every pair of neighbouring levels, shape (K - 1,)."""
        return self.pair_sums[..., 4].mean(axis=(0, 1)) * 2 / self.n_scans

    def counts_in(self, half: int) -> Array:
        """States of every level in the sums over pairs of one half, shape (G, K)."""
        return np.full(self.level_sums.shape[1:3], float((self.n_scans + half) // 2))


def fewest_columns(blocks: Sequence[Array]) -> NDArray[np.floating]:
    """Slopes (..., K) of all blocks as a run keeps them: one float64 where all levels have the
    same, else float32.
    """
    if all(np.all(slopes == slopes[..., :1]) for slopes in blocks):
        return np.concatenate([slopes[..., :1] for slopes in blocks])
    return np.concatenate(blocks).astype(np.float32, order="C")


def linear_vectors(ladder: Array, gains: NDArray[np.floating]) -> Array:
    """beta_k (log f_1 - log f_0), shape (N, K), of gains (N, 1), which may be -inf."""
    with np.errstate(invalid="ignore"):
        return np.where(ladder == 0, 0.0, ladder * gains)


def doubling(n: int, shortest: int) -> list[int]:
    """Lengths of rounds that add up to n: the last takes half, the one before a quarter, … and the
    first the rest.
    """
    lengths = []
    while n // 2 >= shortest:
        lengths.append(n - n // 2)
        n //= 2
    return [n, *lengths[::-1]]


def with_round(history: NDArray, log_partition: float, std_error: float, n_sweeps: int) -> Array:
    """The history with one more round."""
    return np.vstack([history, [log_partition, std_error, n_sweeps]])


class _Carry(NamedTuple):
    """State of the groups of a block, and the sums of their steps so far."""

    chains: Chains
    own: tuple  # what this kind of round counts besides
    sums: LevelSums  # `pairs` and `levels` have a first axis for the halves, `vectors` are log q
    draws: Draws


def halves(n_steps: int, length: int) -> list[int]:
    """First step of every segment of at most `length` steps, and the end; none lies in both halves
    of a round.
    """
    half = n_steps // 2
    return [*range(0, half, length), *range(half, n_steps, length), n_steps]


@dataclass(frozen=True, kw_only=True)
class RoundProgram:
    """Program of a round. A subclass says what one step is.

    Attributes
    ----------
    path, transition : object
    first : ndarray of shape (G + 1,)
        First chain of every group, and the end.
    log_pseudo_prior : ndarray of shape (K,)
        As in `LevelRound`.
    key : tuple of int
        Key of the random streams.
    first_sweep : int
        Step of the stream at which the round begins.
    sweeps_per_step : int
        Sweeps of every chain in a step.
    stride : int
        Steps from one kept vector of a chain to the next; 0 for none.
    keeps_every : int
        Vectors of every such segment are kept; 0 for none.
    pause : int
        Steps from one look at the states to the next, of which some become draws of the target; 0
        for none.
    renewal : int
        Steps from one draw of the base's chains to the next; 0 for none.
    """

    path: Any
    transition: Any
    first: Integers
    log_pseudo_prior: Array
    key: tuple[int, int]
    first_sweep: int = 0
    sweeps_per_step: int = 1
    stride: int = 0
    keeps_every: int = 1
    pause: int = 0
    renewal: int = 0

    n_pair_sums: ClassVar[int]
    keeps_linear_vectors: ClassVar[bool]  # also where the slopes say the same

    # -- what a subclass defines
    def begin(self, n_groups: int, n_chains: int) -> tuple:
        """Initial values of what this kind of round counts besides."""
        raise NotImplementedError

    def steps(
        self, chains: Chains, own: tuple, half: int, n: int, stream: Stream, groups: Integers
    ) -> tuple[Chains, tuple, LevelSums]:
        """Chains and what is counted besides after n steps in one half of the round, and what these
        left; `groups` are the chains' groups, from 0.
        """
        raise NotImplementedError

    def draws(self, chains: Chains) -> tuple[Integers, Array]:
        """Indices of the chains that may become draws of the target, and their log weights."""
        raise NotImplementedError

    def by_row(self, records: NDArray) -> NDArray:
        """Records (n_records, n, …) in the rows of `LevelRound`."""
        raise NotImplementedError

    # -- the round
    def run(
        self, groups: list[Chains], n_steps: int, longest: int, stage: str, **options: Any
    ) -> tuple[list[Chains], list[tuple], dict[str, Any]]:
        """Return where the groups stand after a round, what each block counted besides, and the
        fields of `LevelRound`.

        Parameters
        ----------
        groups : list of Chains
        n_steps, longest : int
            Steps of the round, and of a segment at most.
        stage : str
            Name of the round within a run.
        **options
            `n_jobs` and `checkpoint` of `run_segments`.
        """
        blocks = blocks_of_groups(self.path, self.transition, len(groups), int(self.first[-1]))
        bounds = halves(n_steps, longest)
        carries = run_segments(
            functools.partial(self._begin, groups, blocks),
            functools.partial(self._advance, blocks, bounds),
            len(blocks),
            bounds,
            stage=stage,
            **options,
        )
        all_chains, own, all_sums, draws = zip(*carries)
        pairs, levels, summaries, *kept = zip(*all_sums)
        log_q, vector_levels, all_slopes = (
            [self.by_row(records) for records in of_blocks] for of_blocks in kept
        )
        slopes = fewest_columns(all_slopes)
        keeps_vectors = self.keeps_linear_vectors or slopes.shape[-1] != 1
        left = {
            "log_pseudo_prior": self.log_pseudo_prior,
            "pair_sums": np.concatenate(pairs, axis=1),
            "level_sums": np.concatenate(levels, axis=1),
            "summaries": np.concatenate(summaries),
            "log_q": np.concatenate(log_q) if keeps_vectors else None,
            "vector_levels": np.concatenate(vector_levels),
            "slopes": slopes,
            "draws": concatenate_draws(draws).thinned(),
        }
        stand = [
            group
            for own_groups, chains in zip(blocks, all_chains)
            for group in apart(self.path, chains, chain_groups(self.first, own_groups))
        ]
        return stand, list(own), left

    def _begin(self, groups, blocks, block) -> _Carry:
        """The groups of a block before any step."""
        chains = concatenate_chains([groups[group] for group in blocks[block]])
        n_groups = len(blocks[block])
        sums = LevelSums.zeros(self.path, chains.state, n_groups, self.n_pair_sums)
        sums = sums._replace(
            pairs=np.stack([sums.pairs, sums.pairs]),
            levels=np.stack([sums.levels, sums.levels]),
            vectors=sums.vectors.astype(np.float32),
        )
        return _Carry(
            chains=chains,
            own=self.begin(n_groups, len(chains.levels)),
            sums=sums,
            draws=no_draws(self.path, chains.state),
        )

    def _advance(self, blocks, bounds, block, begin, end, carry) -> _Carry:
        """The groups of a block after one segment of steps."""
        half = int(begin >= bounds[-1] // 2)
        first_group = blocks[block][0]
        groups = chain_groups(self.first, blocks[block])
        chains, own, old_sums, old_draws = carry
        sums = LevelSums._make(array.copy() for array in old_sums)
        records = []
        draws = [old_draws]
        # A base that is renewed sets the pace of the draws too.
        pace = self.renewal or self.pause or end - begin
        for start in range(begin, end, pace):
            stream = Stream(
                self.key,
                int(self.first[first_group]),
                self.first_sweep + start * self.sweeps_per_step,
            )
            n = min(pace, end - start)
            chains, own, left = self.steps(chains, own, half, n, stream, groups - first_group)
            sums.pairs[half] += left.pairs
            sums.levels[half] += left.levels
            sums.summaries[:] += left.summaries
            if len(left.vectors):
                records.append((left.vectors, left.vector_levels, left.slopes))
            if self.pause:
                chosen, log_weights = self.draws(chains)
                points = points_of(self.path, self.path.take(chains.state, chosen))
                draws.append(Draws(points, log_weights, groups[chosen]))
            if self.renewal:
                renewing = stream.of("renewal")
                chains = with_base_renewed(self.path, self.transition, chains, renewing)

        if records and self.keeps_every and bounds.index(begin) % self.keeps_every == 0:
            vectors, vector_levels, slopes = (np.concatenate(parts) for parts in zip(*records))
            log_q = log_softmax(vectors + self.log_pseudo_prior, axis=-1).astype(np.float32)
            sums = sums._replace(
                vectors=np.concatenate([sums.vectors, log_q]),
                vector_levels=np.concatenate([sums.vector_levels, vector_levels]),
                slopes=np.concatenate([sums.slopes, slopes]),
            )
        return _Carry(chains, own, sums, concatenate_draws(draws))
