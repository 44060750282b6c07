"""Points that rise from the base to the target, all weighted by what proposed them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp

from sklpf._utils.numbers import Array
from sklpf._utils.random import Stream
from sklpf.exploration._cover import Proposal
from sklpf.exploration._fit import fit_mixture
from sklpf.exploration._target import Target
from sklpf.paths import COVER, Mixture
from sklpf.transitions import next_beta
from sklpf.uncertainty import effective_sample_size


def size(numbers: tuple[int, int], d: int) -> int:
    """Return a number of points: so many, and so many for each dimension."""
    return numbers[0] + numbers[1] * d


class _Base:
    """The base as a proposal."""

    def log_density(self, u: Array, log_base: Array) -> Array:
        return log_base


class Explorer:
    """Points that rise from the base to the target, and the mixture that is fitted to them.

    Parameters
    ----------
    target : Target
    n_effective : float
        Effective number of points after a step of beta, which may grow later.
    stream : Stream

    Attributes
    ----------
    beta : float
        How far they are.
    proposal : Proposal
        The last one.
    """

    proposal: Proposal

    def __init__(
        self,
        target: Target,
        n_effective: float,
        stream: Stream,
        *,
        batch: float = 2.2,  # points of a round, for each effective one
        n_first: int = 4,  # batches of base draws
        most_first: int = 50,  # the same, until enough of them have mass
    ):
        d = target.n_dimensions
        self.target = target
        self.n_effective = n_effective
        self.beta = 0.0
        self._rng = stream.generator()
        self._batch = max(1, int(batch * n_effective))
        self._u = np.empty((0, d))
        self._log_base = self._log_f = self._log_nq = np.empty(0)
        self._proposals: list[tuple[Any, int]] = []
        self._moved = np.empty((0, d))
        for chunk in range(most_first):
            u = target.sample_base(self._batch, self._rng)
            self._add(u, target.log_base(u), target.log_density(u), _Base())
            if chunk >= n_first - 1 and np.sum(self._log_f > -np.inf) > d + 2:
                break
        if not np.any(self._log_f > -np.inf):
            raise ValueError(
                f"log_density is -inf or NaN at all of {len(self._u)} base draws: {COVER}"
            )

    @property
    def points(self) -> Array:
        """All points that were evaluated, (n, d)."""
        return self._u

    @property
    def log_f(self) -> Array:
        """Their log densities, (n,), in nats."""
        return self._log_f

    def scattered(self, n: int) -> Array:
        """Return n draws far and wide: half from the base, others from parts of all mixtures that
        were fitted on the way, as many from each, with the longer tails of a proposal.
        """
        parts = [
            part
            for proposal, _ in self._proposals
            if isinstance(proposal, Proposal)
            for part in proposal.wide.components
        ]
        from_base = self.target.sample_base(n - n // 2 if parts else n, self._rng)
        if not parts:
            return from_base
        wide = Mixture(parts).sample(n // 2, self._rng)
        return np.concatenate([from_base, wide])

    def rise(
        self,
        most: float,
        *,
        rounds: tuple[int, int] = (2, 12),  # at the target, at least and at most
        goal: float = 0.3,  # effective share of draws, at which a rise ends
        better: float = 1.1,  # times as efficient ...
        patience: int = 3,  # ... rounds that are not
        more_below: float = 1.5,  # times as many evaluations, where the target is not yet reached
    ) -> None:
        """Go up to the target, and there until draws are efficient or get no better.

        Parameters
        ----------
        most : float
            Evaluations, at most but for the last batch.
        """
        first = self.target.spent
        n_at_target = n_worse = 0
        best = 0.0
        while n_at_target < rounds[1]:
            self.beta = self._next_beta()
            self.proposal = self._fitted()
            efficiency = self._draw(self.proposal)
            n_at_target += self.beta == 1
            n_worse = 0 if efficiency > better * best else n_worse + 1
            best = max(best, efficiency) if self.beta == 1 else 0.0
            if n_at_target >= rounds[0] and (best > goal or n_worse >= patience):
                break
            spent = self.target.spent - first
            if spent > (most if self.beta == 1 else more_below * most):
                break

    def take(self, joint: Any, moved: Array, parts: list[Any]) -> None:
        """Add draws from both explorers' mixtures, walks from these, and parts that climbs found.

        Parameters
        ----------
        joint : JointDraws
        moved : ndarray of shape (n, d)
        parts : list of StudentT
        """
        self._add(joint.u, joint.log_base, joint.log_f, joint)
        self._moved = moved
        if parts:
            self._draw(Proposal(Mixture(parts)))

    def _add(self, u: Array, log_base: Array, log_f: Array, proposal: Any) -> None:
        """Add points from a proposal to all others."""
        log_n = np.log(len(u))
        there = [np.log(n) + each.log_density(u, log_base) for each, n in self._proposals]
        there.append(log_n + proposal.log_density(u, log_base))
        here = log_n + proposal.log_density(self._u, self._log_base) if len(self._u) else 0.0
        self._log_nq = np.append(np.logaddexp(self._log_nq, here), logsumexp(there, axis=0))
        self._proposals.append((proposal, len(u)))
        self._u = np.concatenate([self._u, u])
        self._log_base = np.append(self._log_base, log_base)
        self._log_f = np.append(self._log_f, log_f)

    def _draw(self, proposal: Proposal) -> float:
        """Add a batch of draws, and return their effective share."""
        from_base = self.target.sample_base(self._batch, self._rng)
        u = proposal.draw(self._batch, from_base, self._rng)
        log_base = self.target.log_base(u)
        log_f = self.target.log_density(u)
        self._add(u, log_base, log_f, proposal)
        log_weights = _log_f_at(log_base, log_f, self.beta) - proposal.log_density(u, log_base)
        return effective_sample_size(log_weights) / self._batch

    def _log_weights(self, beta: float) -> Array:
        """Log weights of all points at a level, by the mixture of all that proposed them."""
        return _log_f_at(self._log_base, self._log_f, beta) - self._log_nq

    def _next_beta(self) -> float:
        """The largest beta at which points have an effective sample size."""
        log_weights = self._log_weights(self.beta)
        if self.beta == 1 or effective_sample_size(log_weights) <= self.n_effective:
            return self.beta
        gain = self._log_f - self._log_base
        return next_beta(gain, self.beta, self.n_effective / len(gain), log_weights)

    def _fitted(self) -> Proposal:
        """The proposal that is fitted to all points by their weights, and to those of walks."""
        log_weights = self._log_weights(self.beta)
        points = self._u
        if len(self._moved) and self.beta == 1:
            n_effective = effective_sample_size(log_weights)
            of_moved = logsumexp(log_weights) - np.log(n_effective)
            log_weights = np.append(log_weights, np.full(len(self._moved), of_moved))
            points = np.concatenate([points, self._moved])
        return Proposal(fit_mixture(points, log_weights, self._rng))


def _log_f_at(log_base: Array, log_f: Array, beta: float) -> Array:
    """Log density at a level, -inf where the target has none."""
    alive = log_f > -np.inf
    levels = np.full(len(log_f), -np.inf)
    levels[alive] = beta * log_f[alive]
    if beta < 1:
        levels[alive] += (1 - beta) * log_base[alive]
    return levels
