"""Chains at levels, in groups that share nothing, and what a round of them leaves: sums over all of
its states, and a thinning of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.numbers import Array, Integers
from sklpf._utils.tables import Fields
from sklpf.paths import Derivatives
from sklpf.paths._base import concatenate, n_chains, take
from sklpf.paths._capabilities import has
from sklpf.programs._draws import Draws


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
    def start(cls, path: Any, transition: Any, state: Any, stream: Any) -> Chains:
        """Return chains at level 0, of which a stream has drawn the state."""
        levels = np.zeros(n_chains(state), dtype=np.int64)
        return cls(state, transition.start(path, state, stream), levels)

    def take(self, path: Any, index: Integers) -> Chains:
        """Return the chains with some indices."""
        return Chains(path.take(self.state, index), take(self.auxiliary, index), self.levels[index])


def together(groups: Sequence[Chains]) -> Chains:
    """The chains of some groups, one group after the other."""
    return Chains(*(concatenate(parts) for parts in zip(*groups)))


def chain_groups(first: Integers, groups: Integers) -> Integers:
    """The group of every chain of some groups, from the first chain of every group and the end."""
    return np.repeat(groups, np.diff(first)[groups])


def apart(path: Any, chains: Chains, groups: Integers) -> list[Chains]:
    """The chains of each group, from the group of every chain (n,)."""
    return [chains.take(path, np.flatnonzero(groups == group)) for group in np.unique(groups)]


def with_base_renewed(path: Any, transition: Any, chains: Chains, stream: Any) -> Chains:
    """The same chains, but for those at the base, which are drawn anew from it."""
    at_base = np.flatnonzero(chains.levels == 0)
    if len(at_base) == 0:
        return chains
    fresh = Chains.start(path, transition, path.sample_base(len(at_base), stream), stream)
    n = len(chains.levels)
    index = np.arange(n)
    index[at_base] = n + np.arange(len(at_base))
    return together([chains, fresh]).take(path, index)


class LevelSums(NamedTuple):
    """What a program leaves of n chains in G groups at K levels, for reweighting.

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
        cls, path: Any, state: Any, n_groups: int, n_pair_sums: int, n_records: int = 0
    ) -> LevelSums:
        """Return sums over no state yet, and room for records, of the chains of a state."""
        n = n_chains(state)
        n_levels = len(path.ladder)
        n_summaries = path.summary(path.take(state, [0])).shape[1]
        n_slopes = n_levels if has(path, Derivatives) else 0
        return cls(
            pairs=np.zeros((n_groups, n_levels - 1, n_pair_sums)),
            levels=np.zeros((n_groups, n_levels, 4)),
            summaries=np.zeros((n_groups, 2, n_summaries)),
            vectors=np.empty((n_records, n, n_levels)),
            vector_levels=np.empty((n_records, n), dtype=np.int64),
            slopes=np.empty((n_records, n, n_slopes)),
        )


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
    """What a round leaves of G independent groups of chains at K levels.

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
