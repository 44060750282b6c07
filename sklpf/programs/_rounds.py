"""A round of chains at levels: groups side by side in blocks, segment by segment, and what they
leave. `_exchange.py` and `_tempering.py` say how chains change their levels.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from sklpf._utils.numbers import Array, Integers
from sklpf._utils.parallel import run_segments
from sklpf._utils.random import Stream
from sklpf.programs._chains import (
    Chains,
    LevelSums,
    apart,
    chain_groups,
    fewest_columns,
    together,
    with_base_renewed,
)
from sklpf.programs._draws import Draws, joined, no_draws, points_of
from sklpf.programs._plan import blocks_of_groups


class _Carry(NamedTuple):
    """Where the groups of a block stand, and what their steps have left so far."""

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
    """How a round goes. A subclass says what one step is.

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
            "draws": joined(draws).thinned(),
        }
        stand = [
            group
            for own_groups, chains in zip(blocks, all_chains)
            for group in apart(self.path, chains, chain_groups(self.first, own_groups))
        ]
        return stand, list(own), left

    def _begin(self, groups, blocks, block) -> _Carry:
        """The groups of a block before any step."""
        chains = together([groups[group] for group in blocks[block]])
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
                renewing = stream.aside("renewal")
                chains = with_base_renewed(self.path, self.transition, chains, renewing)

        if records and self.keeps_every and bounds.index(begin) % self.keeps_every == 0:
            vectors, vector_levels, slopes = (np.concatenate(parts) for parts in zip(*records))
            log_q = log_softmax(vectors + self.log_pseudo_prior, axis=-1).astype(np.float32)
            sums = sums._replace(
                vectors=np.concatenate([sums.vectors, log_q]),
                vector_levels=np.concatenate([sums.vector_levels, vector_levels]),
                slopes=np.concatenate([sums.slopes, slopes]),
            )
        return _Carry(chains, own, sums, joined(draws))
