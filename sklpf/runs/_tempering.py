"""What simulated tempering leaves: rounds with fixed pseudo-priors on independent groups
of chains.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from sklpf._utils.tables import Fields
from sklpf.runs._draws import Draws
from sklpf.runs._samples import LevelRun, Samples

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
        log q(k | x) of a systematic thinning. float32, so that a run stays small: near 0 where q
        counts, it is exact there to 1e-7.
    vector_levels : ndarray of shape (M, n_kept)
        The levels at which these x were moved.
    slopes : ndarray of shape (M, n_kept, K), (M, n_kept, 1) or (M, n_kept, 0)
        U of these x, as in `ExchangeRun`.
    pair_sums : ndarray of shape (2, G, K - 1, 4)
        As in `ExchangeRun`, of both halves, but for rejections; the shift of a pair is minus the
        difference of its log pseudo-priors.
    summaries : ndarray of shape (G, 2, S)
        Sums of every group's `path.summary` and of its squares, weighted by q(K - 1 | x): those of
        the target's states.
    origin : int
        The first level that counts as an end of the ladder: 1 where log Z_1 / Z_0 comes from base
        draws.
    draws : Draws or None
        At most a thousand draws from the target.
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
    draws: Draws | None = None

    @property
    def vectors(self) -> NDArray[np.float64]:
        """log f_k(x) of the thinning but for a constant of every x, shape (M, n_kept, K)."""
        return self.log_q - self.log_pseudo_prior

    def log_sums(
        self, rao_blackwell: bool, halves: tuple[int, ...] = (0, 1)
    ) -> NDArray[np.float64]:
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
        """Return the round without every other kept vector, and without its draws.

        Returns
        -------
        Round
            All else is shared.
        """
        kept = {
            name: getattr(self, name)[:, ::2].copy()
            for name in ("log_q", "vector_levels", "slopes")
        }
        return replace(self, **kept, draws=None)

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
        sums = self.pair_sums
        counts = self.level_sums[..., 0]
        return (
            (sums.sum(axis=0), counts.sum(axis=0)) if half is None else (sums[half], counts[half])
        )

    @property
    def crossed(self) -> NDArray[np.bool_]:
        """Which chains visited both ends of the ladder, shape (M,): its lowest and its highest
        tenth.
        """
        visits = self.counts.sum(axis=0) > 0
        n_end = max(1, round(_END_SHARE * visits.shape[1]))
        return visits[:, : max(n_end, self.origin + 1)].any(axis=1) & visits[:, -n_end:].any(axis=1)


@dataclass(frozen=True, repr=False)
class Adaptation(Fields):
    """What an adaptive phase found, and what its updates did.

    Attributes
    ----------
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

    curve: NDArray[np.float64]
    n_draws: NDArray[np.int64]
    gain: NDArray[np.float64]
    evenness: NDArray[np.float64]
    log_partition: NDArray[np.float64]
    settled: bool


@dataclass(frozen=True, repr=False, kw_only=True)
class TemperingRun(LevelRun):
    """Rounds of simulated tempering after burn-in.

    Reweighting reads the last round, which is half of the production or all of it.

    Attributes
    ----------
    first : ndarray of shape (G + 1,)
        First chain of every group, and the end.
    rounds : tuple of Round
    previous : tuple
        Log pseudo-priors (T, K), log sums of every group (T, G, K) and sizes (T,) of the rounds
        from which the last round's estimate came, and the log of what is added to the pooled sums.
    sweeps_per_redraw : int
    adaptation : Adaptation or None
        How the weights were found, where by an adaptive phase.
    """

    first: NDArray[np.int64]
    rounds: tuple[Round, ...]
    previous: tuple[NDArray, NDArray, NDArray, float]
    sweeps_per_redraw: int
    adaptation: Adaptation | None = None

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
        """Return the sums over pairs of the last round, (G, K - 1, 4), and the states in them, (G,
        K).
        """
        return self.rounds[-1].pairs(half)

    @property
    def vector_levels(self) -> NDArray[np.int64]:
        """The levels at which the kept states were moved, shape (M, n_kept)."""
        return self.rounds[-1].vector_levels

    @property
    def samples(self) -> Samples:
        """The states that were kept."""
        last = self.rounds[-1]
        n_levels = len(self.ladder)
        slopes = last.slopes.reshape(last.vector_levels.size, last.slopes.shape[-1])
        groups = np.repeat(
            np.arange(self.n_groups), np.diff(self.first) * last.vector_levels.shape[1]
        )
        return Samples(
            last.vectors.reshape(-1, n_levels), slopes, last.vector_levels.ravel(), groups
        )


def pool_groups(first: NDArray[np.int64], log_terms: NDArray, axis: int) -> NDArray:
    """Add up, in logs, the chains of every group along `axis`."""
    parts = np.split(log_terms, first[1:-1], axis=axis)
    return np.stack([logsumexp(part, axis=axis) for part in parts], axis=axis)
