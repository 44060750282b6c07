"""Fresh draws from the mixtures of independent explorers, which must say the same."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from sklpf._utils.numbers import Array, Integers
from sklpf._utils.random import systematic
from sklpf.exploration._cover import Cover, FreshDraws, Proposal
from sklpf.exploration._explorer import size
from sklpf.exploration._target import Target
from sklpf.uncertainty import effective_sample_size, log_mean_exp, standard_error


class JointDraws:
    """As many draws from the proposal of each explorer, weighted by their equal mixture.

    Parameters
    ----------
    target : Target
    proposals : list of Proposal
    n : int
        Draws from each.
    rng : numpy.random.Generator

    Attributes
    ----------
    u, log_base, log_f, log_weights : ndarray
        Coordinates (n, d), log densities and log weights (n,), in nats.
    log_z : float
        By all draws, in nats.
    disagreement : float
        Between what each explorer's draws say of log Z, in standard errors.
    efficiency : float
        Effective share of the draws.
    """

    def __init__(self, target: Target, proposals: list[Proposal], n: int, rng: np.random.Generator):
        self.proposals = proposals
        self.u = np.concatenate(
            [each.draw(n, target.sample_base(n, rng), rng) for each in proposals]
        )
        self.log_base = target.log_base(self.u)
        self.log_f = target.log_density(self.u)
        halves = self._log_halves(self.u, self.log_base)
        self.log_weights = self.log_f - log_mean_exp(halves, axis=0)
        self.explorers = np.repeat(np.arange(len(proposals)), n)
        self.log_own = self.log_f - halves[self.explorers, np.arange(len(self.u))]
        self.log_z = float(log_mean_exp(self.log_weights))
        self.efficiency = effective_sample_size(self.log_weights) / len(self.u)
        self.disagreement = disagreement(self.log_own, self.explorers)

    def log_density(self, u: Array, log_base: Array) -> Array:
        """Return the log density of the mixture of both, shape (n,), in nats."""
        return log_mean_exp(self._log_halves(u, log_base), axis=0)

    def _log_halves(self, u: Array, log_base: Array) -> Array:
        return np.array([each.log_density(u, log_base) for each in self.proposals])

    def walk(
        self,
        target: Target,
        rng: np.random.Generator,
        *,
        walkers: tuple[int, int] = (40, 4),  # and for each dimension
        n_steps: int = 16,
        lengths: tuple[float, ...] = (0.1, 0.35, 1.0),  # in units of the best for a Gaussian
        jitter: float = 1e-6,  # of differences, in their units
    ) -> tuple[Array, float, float]:
        """Return where random walks on the target end that begin at the draws by their weights, by
        how many standard errors they lead to where the mixture is thin, and the share of long
        steps to where the density fails or is NaN.

        Steps go along differences of draws (ter Braak 2006). Walks leave the target invariant, so
        that the mean of the bounded function q / (q + f / Z) is the same for them and for weighted
        draws, unless draws lack a part of the target.
        """
        if not np.isfinite(self.log_z):
            return self.u[:0], np.inf, 0.0
        d = target.n_dimensions
        n = size(walkers, d)
        chosen = systematic(self.log_weights, 5 * n, rng.random())
        pool = self.u[chosen]
        start = rng.permutation(chosen)[:n]
        u = self.u[start]
        log_f = self.log_f[start]
        best = 2.38 / np.sqrt(2 * d)
        n_long = n_failed = 0
        for _ in range(n_steps):
            first, second = pool[rng.integers(len(pool), size=(2, n))]
            length = best * rng.choice(lengths, size=(n, 1))
            proposal = u + length * (first - second) + jitter * rng.standard_normal((n, d))
            log_f_there = target.log_density(proposal)
            is_long = length[:, 0] == max(lengths) * best
            n_long += is_long.sum()
            n_failed += target.failed[is_long].sum()
            accept = np.log(rng.random(n)) < log_f_there - log_f
            u = np.where(accept[:, np.newaxis], proposal, u)
            log_f = np.where(accept, log_f_there, log_f)
        nan_share = float(n_failed / max(n_long, 1))
        log_ratio = log_f - self.log_density(u, target.log_base(u))
        at_walks = self._thickness(log_ratio)
        at_draws = self._thickness(self.log_weights)
        weights = np.exp(self.log_weights - self.log_z) / len(self.u)
        mean = weights @ at_draws / weights.sum()
        variance = weights**2 @ (at_draws - mean) ** 2 + standard_error(at_walks) ** 2
        outside = float((mean - at_walks.mean()) / np.sqrt(variance + 1e-12))
        return u, outside, nan_share

    def _thickness(self, log_ratio: Array) -> Array:
        return expit(np.clip(self.log_z - log_ratio, -50.0, 50.0))

    def fresh(self, target: Target) -> FreshDraws:
        """Return the draws in the coordinates of the path."""
        return FreshDraws(
            target.coordinates.points(self.u), self.log_weights, self.explorers, self.log_own
        )


def draw_afresh(cover: Cover, target: Target, n: int, rng: np.random.Generator) -> FreshDraws:
    """Return new draws of a cover, as many from each explorer's half.

    Parameters
    ----------
    cover : Cover
    target : Target
    n : int
        Draws from each half.
    rng : numpy.random.Generator

    Returns
    -------
    FreshDraws
    """
    return JointDraws(target, cover.proposals, n, rng).fresh(target)


def disagreement(log_own: Array, explorers: Integers) -> float:
    """Return the difference between what two explorers' own draws say of log Z.

    Parameters
    ----------
    log_own : ndarray of shape (n,)
        Log of target over the proposal that each draw is from, in nats.
    explorers : ndarray of shape (n,)
        0 or 1.

    Returns
    -------
    float
        In standard errors; infinite where one has met nothing.
    """
    values, errors = [], []
    for explorer in (0, 1):
        log_weights = log_own[explorers == explorer]
        log_mean = float(log_mean_exp(log_weights))
        if not np.isfinite(log_mean):
            return np.inf
        values.append(log_mean)
        errors.append(standard_error(np.exp(log_weights - log_mean)))
    return float(abs(values[0] - values[1]) / (np.hypot(errors[0], errors[1]) + 1e-12))
