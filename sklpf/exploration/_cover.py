"""Cover: where the mass of a density is, as a mixture that can be drawn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax
from scipy.stats import chi2

from sklpf._utils.numbers import Array, Integers
from sklpf.exploration._target import Coordinates
from sklpf.paths import Density, Mixture, StudentT
from sklpf.uncertainty import log_mean_exp

SHARES = (0.85, 0.1, 0.05)  # of a proposal: of the fit, of one that is wider, and of the base
_WIDER = 3.0  # in variance
_WIDE_DF = 3.0
_QUANTILE = 0.95  # of a part's mass within which another part's centre makes both one region


class Proposal:
    """A fitted mixture with shares of one that is wider and of the base (Hesterberg 1995).

    Parameters
    ----------
    fitted : Mixture
        In coordinates without bounds.
    """

    def __init__(self, fitted: Mixture):
        parts = fitted.components
        self.fitted = fitted
        self.wide = Mixture(
            [StudentT(part.mean, _WIDER * part.scale_matrix, _WIDE_DF) for part in parts],
            fitted.weights,
        )

    def draw(self, n: int, from_base: Array, rng: np.random.Generator) -> Array:
        """Return n draws, some of which are the first of n base draws (n, d)."""
        n_fitted, n_wide, n_base = rng.multinomial(n, SHARES)
        drawn = [self.fitted.sample(n_fitted, rng), self.wide.sample(n_wide, rng)]
        return rng.permutation(np.concatenate([*drawn, from_base[:n_base]]))

    def log_density(self, u: Array, log_base: Array) -> Array:
        """Return the log density at points (n, d) with the base's there, shape (n,), in nats."""
        logs = [self.fitted.log_density(u), self.wide.log_density(u), log_base]
        return logsumexp(np.log(SHARES)[:, np.newaxis] + logs, axis=0)


class FreshDraws(NamedTuple):
    """Independent draws from a cover, made when it was final: weights that say log Z.

    Attributes
    ----------
    points : ndarray of shape (n, d)
        In the coordinates of the path.
    log_weights : ndarray of shape (n,)
        Log of target over cover, in nats.
    explorers : ndarray of shape (n,)
        The explorer whose half of the cover each is drawn from.
    log_own : ndarray of shape (n,)
        Log of target over that half, in nats.
    """

    points: Array
    log_weights: Array
    explorers: Integers
    log_own: Array


@dataclass(eq=False, frozen=True, kw_only=True)
class Cover:
    """A normalised mixture that lies where the mass of a density is.

    Attributes
    ----------
    base : Density
        The path's, of which the cover has a share.
    coordinates : Coordinates
        In which its parts are.
    proposals : list of Proposal
        One of each explorer; the cover is their equal mixture.
    fresh : FreshDraws
    not_over : str
        Why the search is not over, a sentence; empty if it is.
    efficiency : float
        Effective share of fresh draws.
    n_evaluations : int
        Of the density, all included.
    n_climbs : int
        Points away from the cover at which it was tried if a climb leads to a mode that it lacks.
    nan_share : float
        Of long steps of walks at the target, those to where the density failed or was NaN.
    """

    base: Density
    coordinates: Coordinates
    proposals: list[Proposal]
    fresh: FreshDraws
    not_over: str
    efficiency: float
    n_evaluations: int
    n_climbs: int
    nan_share: float

    normalised = True

    def __repr__(self) -> str:
        shown = ("n_dimensions", "efficiency", "n_evaluations", "n_climbs", "not_over")
        values = {name: getattr(self, name) for name in shown}
        values["efficiency"] = round(self.efficiency, 3)
        return f"Cover({', '.join(f'{name}={value!r}' for name, value in values.items())})"

    @property
    def is_over(self) -> bool:
        """True if explorers agree, and nothing more was found."""
        return not self.not_over

    @property
    def n_dimensions(self) -> int:
        """d."""
        return len(self.coordinates.center)

    @property
    def smallest_basin(self) -> float:
        """Share of starts of the smallest basin of attraction that climbs meet with 95 %."""
        return smallest_basin(self.n_climbs)

    @property
    def center(self) -> Array:
        """Mean of fresh draws by their weights, shape (d,)."""
        return self._weights @ self.fresh.points

    @property
    def scale(self) -> Array:
        """Their standard deviations, shape (d,)."""
        spread = np.sqrt(self._weights @ (self.fresh.points - self.center) ** 2)
        return np.maximum(spread, np.finfo(float).tiny)

    @property
    def _weights(self) -> Array:
        return softmax(self.fresh.log_weights)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Return n independent draws, shape (n, d)."""
        numbers = rng.multinomial(n, np.full(len(self.proposals), 1 / len(self.proposals)))
        from_base = self.coordinates.of_points(np.asarray(self.base.sample(n, rng), float))
        ends = np.cumsum(numbers)
        halves = zip(self.proposals, numbers, np.split(from_base, ends[:-1]))
        drawn = [proposal.draw(m, own_base, rng) for proposal, m, own_base in halves]
        return self.coordinates.points(rng.permutation(np.concatenate(drawn)))

    def log_density(self, x: Array) -> Array:
        """Return the log density at points (n, d), shape (n,), in nats."""
        u = self.coordinates.of_points(x)
        log_volume = self.coordinates.log_volume(u)
        log_base = self.base.log_density(x) + log_volume
        halves = [proposal.log_density(u, log_base) for proposal in self.proposals]
        return log_mean_exp(halves, axis=0) - log_volume

    def region_of(self, x: Array) -> Integers:
        """Return the region of each point: that of the part of the mixture that is densest there.
        Parts whose centres lie within one another are one region.

        Parameters
        ----------
        x : ndarray of shape (n, d)
            Points in the coordinates of the path.

        Returns
        -------
        ndarray of int of shape (n,)
            Numbers of regions.
        """
        parts = [part for proposal in self.proposals for part in proposal.fitted.components]
        weights = np.concatenate([proposal.fitted.weights for proposal in self.proposals])
        region_of_part = regions_of_parts(parts)
        u = self.coordinates.of_points(x)
        joint = np.array([part.log_density(u) for part in parts]) + np.log(weights)[:, np.newaxis]
        return region_of_part[joint.argmax(axis=0)]


def smallest_basin(n_climbs: int) -> float:
    """Return the share of starts of the smallest basin of attraction that so many independent
    climbs meet with 95 %.
    """
    return 1 - 0.05 ** (1 / n_climbs) if n_climbs else 1.0


def regions_of_parts(parts: Sequence[Any]) -> Integers:
    """Return the number of the region of each part of a mixture: parts whose centres lie within
    most of one another's mass are one.
    """
    means = np.array([part.mean for part in parts])
    radius = chi2.ppf(_QUANTILE, means.shape[1])
    near = np.array([part.squared_distances(means) < radius for part in parts])
    joined = near | near.T
    groups = np.arange(len(joined))
    for _ in range(len(joined)):
        smallest = np.where(joined, groups, len(groups)).min(axis=1)
        if np.array_equal(smallest, groups):
            break
        groups = smallest
    return groups
