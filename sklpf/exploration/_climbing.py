"""Climbs that look for parts of the target which a cover lacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import chi2

from sklpf._utils.numbers import LOG_TAU, Array
from sklpf.exploration._joint import JointDraws
from sklpf.exploration._target import Target
from sklpf.paths import (
    Box,
    ClimbTarget,
    StudentT,
    climb,
    ellipsoid_at_mode,
    mirrored,
)

_AT_ONCE = 6  # climbs
_FEWEST_CLIMBS = 18  # where so many starts are not explained by the cover
_LEAST_MASS = np.log(0.01)  # share of Z of a part, by Laplace's method, that matters
_INSIDE = 0.99  # of a part's mass, within which a point is covered ...
_HIGHER = 3.0  # ... unless the target is so many nats higher than the cover ...
_LOW = 0.01  # ... or lower than at this share of its mass
_FLAT = 1.0  # nats by which it is nowhere higher around points where climbs from the cover end
_FARTHER = 1.5  # differences of points by which climbs begin away from modes
_LONGEST = 100.0  # step of a climb, in the cover's units and for each root of a dimension
_N_NEW = 3  # parts on the way of climbs
_WIDER = 1.5  # in variance
_DF = 5.0
_TINY = 1e-300
_N_NOT_EVALUATED = 100  # points of each kind that were not evaluated before
_SHARE_SCATTERED = 0.4  # of a search, draws far and wide
_STEP = 1e-5  # of numerical slopes, in units of parts
_AIM = 0.3  # of the distance to a middle, by which a slope may miss it
_SHORTEST = 0.6  # Newton step of a part that explains a slope, in those of its scale


@dataclass
class Search:
    """Starts of climbs so far of which it is known where they lead, and what all took."""

    n_climbs: int = 0
    n_evaluations: int = 0


class Climber:
    """Climbs in coordinates y in which parts of the cover are round, on average.

    Parameters
    ----------
    target : Target
    joint : JointDraws
        Of the cover.

    Attributes
    ----------
    limit : float
        Evaluations of the target, after which climbs stay where they are.
    """

    limit = np.inf

    def __init__(self, target: Target, joint: JointDraws):
        d = target.n_dimensions
        self.target = target
        self.joint = joint
        self.parts = [part for each in joint.proposals for part in each.fitted.components]
        shares = np.concatenate([each.fitted.weights for each in joint.proposals])
        self.shares = shares / shares.sum()
        matrices = np.array([part.scale_matrix for part in self.parts])
        self.log_det_roots = np.linalg.slogdet(matrices)[1] / 2
        self.root: Array = np.linalg.cholesky(np.tensordot(self.shares, matrices, 1))
        self.radius = chi2.ppf(_INSIDE, d)
        # The target is higher at all but a hundredth of its mass.
        order = np.argsort(joint.log_f)
        mass = np.cumsum(np.exp(joint.log_weights[order] - joint.log_z)) / len(order)
        self.lowest = joint.log_f[order][np.searchsorted(mass, _LOW * mass[-1])]
        self.found: list[StudentT] = []
        self.is_material = False
        self.seen: list[tuple[Array, Array, Array]] = []  # u, log f and its excess over the cover
        self.scale = np.ones(d)
        self.box = Box.everywhere(d)

    def _log_f(self, y: Array) -> Array:
        return self.target.log_density(y @ self.root.T)

    def _cover(self, u: Array) -> Array:
        """Log of the cover times Z, (n,)."""
        return self.joint.log_density(u, self.target.log_base(u)) + self.joint.log_z

    def _excess(self, u: Array, log_f: Array) -> Array:
        """Log of target over the cover times Z, (n,)."""
        return log_f - self._cover(u)

    def _is_covered(self, u: Array, log_f: Array, excess: Array) -> NDArray[np.bool_]:
        distances = np.min([part.squared_distances(u) for part in self.parts], axis=0)
        is_thick = (excess < _HIGHER) & (log_f >= self.lowest)
        return self._is_found(u) | (distances < self.radius) & is_thick

    def _is_found(self, u: Array) -> NDArray[np.bool_]:
        """Points u (n, d) in parts that climbs have found."""
        within = [part.squared_distances(u) < self.radius for part in self.found]
        return np.any(within, axis=0) if within else np.zeros(len(u), dtype=bool)

    def to_modes(self, starts: Array) -> None:
        """Climb on the target from points u (n, d), until in the cover or where the slope leads to
        the middle of one of its parts.
        """

        def slopes(u: Array, log_f: Array, excess: Array) -> tuple[Array, Array]:
            gradient = np.zeros_like(u)
            goes_on = ~self._is_covered(u, log_f, excess) & (log_f > -np.inf)
            self.seen.append((u[goes_on], log_f[goes_on], excess[goes_on]))
            if goes_on.any():
                gradient[goes_on] = self.slopes(u[goes_on], log_f[goes_on])
                goes_on[goes_on] = ~self.are_explained(u[goes_on], gradient[goes_on])
            return log_f, np.where(goes_on[:, np.newaxis], gradient, 0.0)

        self._climb(slopes, starts)

    def out_of_cover(self, starts: Array) -> None:
        """Climb from points u (n, d) to where the target is highest above the cover."""

        def slopes(u: Array, log_f: Array, excess: Array) -> tuple[Array, Array]:
            gradient = np.zeros_like(u)
            self.seen.append((u, log_f, excess))
            rises = excess > _FLAT
            if rises.any():
                of_cover = self._differences(self._cover, u[rises], (log_f - excess)[rises])
                gradient[rises] = self.slopes(u[rises], log_f[rises]) - of_cover
            return excess, gradient

        self._climb(slopes, starts)

    def _climb(self, slopes: Callable[..., tuple[Array, Array]], starts: Array) -> None:
        """Climb from points u on what `slopes` gives; beyond the limit climbs stay."""

        def limited(y: Array, steps: Array) -> tuple[Array, Array]:
            if self.target.n_evaluations > self.limit:
                return np.full(len(y), -np.inf), np.zeros_like(y)
            u = y @ self.root.T
            log_f = self.target.log_density(u)
            values, gradients = slopes(u, log_f, self._excess(u, log_f))
            return values, gradients @ self.root

        y = np.asarray(np.linalg.solve(self.root, starts.T).T, dtype=np.float64)
        climb(limited, y, self.scale, self.box, longest_by_root=_LONGEST)

    def _gaussians(self, u: Array) -> tuple[Array, Array]:
        """Log of share times density of the cover's Gaussians at points (n, d), (K, n), and by how
        much each is lower there than at its middle.
        """
        falls = np.array([part.squared_distances(u) for part in self.parts]) / 2
        tops = np.log(self.shares) - self.log_det_roots - u.shape[1] / 2 * LOG_TAU
        return tops[:, np.newaxis] - falls, falls

    def surprise(self, u: Array, log_f: Array) -> Array:
        """Return by how much the target is higher at points (n, d) than the cover's Gaussians have
        it, (n,), as a share of what these fall by from their middles.
        """
        logs, falls = self._gaussians(u)
        fall = falls[logs.argmax(axis=0), np.arange(len(u))]
        return (log_f - self.joint.log_z - logsumexp(logs, axis=0)) / (1 + fall)

    def slopes(self, u: Array, log_f: Array) -> Array:
        """Return gradients of the target at points u (n, d) with their log densities (n,)."""
        return self._differences(self.target.log_density, u, log_f)

    @np.errstate(invalid="ignore")  # beside points where the density is 0
    def _differences(self, function: Callable[[Array], Array], u: Array, values: Array) -> Array:
        """Gradients of a function at points u (n, d) with its values (n,), by d points each; 0
        where they are not finite.
        """
        n, d = u.shape
        moved = np.repeat(u, d, axis=0) + np.tile(_STEP * self.root.T, (n, 1))
        rises = function(moved).reshape(n, d) - values[:, np.newaxis]
        slopes = np.linalg.solve(self.root.T, rises.T / _STEP).T
        return _if_finite(slopes)

    @np.errstate(invalid="ignore")  # beside points where the density is 0
    def _forward_slopes(self, y: Array, steps: Array) -> tuple[Array, Array]:
        """Log densities at points (n, d) and gradients, by as many steps."""
        n, d = y.shape
        moved = (y[:, np.newaxis] + steps[:, np.newaxis] * np.eye(d)).reshape(-1, d)
        log_f = self._log_f(np.concatenate([y, moved]))
        rises = log_f[n:].reshape(n, d) - log_f[:n, np.newaxis]
        return log_f[:n], _if_finite(rises / steps)

    def are_explained(self, u: Array, slopes: Array) -> NDArray[np.bool_]:
        """Return at which points u (n, d) the slope leads to the middle of a part: of that to which
        the point belongs, or of one that climbs have found.

        In a Gaussian, and in any density that falls with the distance in its units, it does.
        """
        nearest = self._gaussians(u)[0].argmax(axis=0)
        explained = np.zeros(len(u), dtype=bool)
        for k, part in enumerate([*self.parts, *self.found]):
            own = nearest == k if k < len(self.parts) else ~explained
            root = np.linalg.cholesky(part.scale_matrix)
            z = np.linalg.solve(root, (u[own] - part.mean).T).T
            slope = slopes[own] @ root
            length = -np.sum(z * slope, axis=1) / np.maximum(np.sum(slope**2, axis=1), _TINY)
            ends = z + np.maximum(length, _SHORTEST)[:, np.newaxis] * slope
            radius = np.maximum(self.radius, _AIM**2 * np.sum(z**2, axis=1))
            explained[own] = np.sum(ends**2, axis=1) < radius
        return explained

    def add_parts(self) -> None:
        """Put t distributions where climbs have been much higher than the cover: at the highest
        excess, and on the way to it. They are material if one has mass by Laplace's method.
        """
        u, log_f, excess = (np.concatenate(each) for each in zip(*self.seen))
        y = np.linalg.solve(self.root, u.T).T
        order = np.flatnonzero((excess > _HIGHER) & ~self._is_found(u))
        order = order[np.argsort(-excess[order], kind="stable")]
        target = ClimbTarget(self._log_f, self._forward_slopes, self.scale, self.box)
        log_det_root = np.log(np.diag(self.root)).sum()
        n_new = 0
        while len(order) and n_new < 2 * _N_NEW:
            place = order[0] if n_new < _N_NEW else order[len(order) // 2]
            n_new += 1
            ellipsoid = ellipsoid_at_mode(target, y[place])
            log_mass = log_f[place] + 0.5 * len(self.scale) * LOG_TAU
            log_mass += log_det_root - ellipsoid.log_det
            self.is_material |= bool(log_mass > self.joint.log_z + _LEAST_MASS)
            factor = self.root @ np.linalg.inv(ellipsoid.factor)
            self.found.append(StudentT(u[place], _WIDER * factor @ factor.T, _DF))
            inside = np.sum(((y[order] - y[place]) @ ellipsoid.factor.T) ** 2, axis=1) < self.radius
            order = order[~(inside | (order == place))]


def _if_finite(slopes: NDArray) -> Array:
    """Slopes (n, d), 0 at points where they are not all finite."""
    finite = np.isfinite(slopes).all(axis=1, keepdims=True)
    return np.where(finite, np.asarray(slopes, dtype=np.float64), 0.0)


def new_parts(
    target: Target,
    joint: JointDraws,
    explorers: Sequence[Any],
    most: float,
    search: Search,
    rng: np.random.Generator,
) -> list[StudentT]:
    """Return t distributions at parts of the target that a cover lacks.

    Climbs may begin at all points that were evaluated, and at more that are drawn far and wide,
    first where the target is most above the Gaussians of the cover; away from the mass by
    differences of draws; and where a mode would be if labels were switched. Where the slope leads
    to the middle of a part, which takes d evaluations to know, no climb is needed. The others climb
    on the target, each until it is in the cover or in a part that was found. Climbs from the draws
    of the largest weights lead to where the target is highest above the cover, such as the neck of
    a funnel.

    Parameters
    ----------
    target : Target
    joint : JointDraws
        Of the cover.
    explorers : sequence of Explorer
    most : float
        Evaluations; beyond them only the first climbs begin.
    search : Search
        Which counts.
    rng : numpy.random.Generator
    """
    if not np.isfinite(joint.log_z):
        return []
    climber = Climber(target, joint)
    first = target.n_evaluations
    end = first + most
    climber.limit = first + most / 4
    climber.out_of_cover(joint.u[np.argsort(-joint.log_weights)[:_AT_ONCE]])
    climber.limit = np.inf
    n_scattered = int(_SHARE_SCATTERED * max(end - target.n_evaluations, 0))
    u, log_f = _starts(joint, explorers, climber, n_scattered, rng)
    n_tested = int(np.clip((end - target.n_evaluations) / 2 / target.n_dimensions, 1, len(u)))
    u = u[:n_tested]
    slopes = climber.slopes(u, log_f[:n_tested])
    n_begun = 0
    while len(u):
        unexplained = ~climber.are_explained(u, slopes)
        u = u[unexplained]
        slopes = slopes[unexplained]
        if not len(u) or target.n_evaluations > end and n_begun >= _FEWEST_CLIMBS:
            break
        climber.to_modes(u[:_AT_ONCE])
        climber.add_parts()
        u = u[_AT_ONCE:]
        slopes = slopes[_AT_ONCE:]
        n_begun += _AT_ONCE
    climber.add_parts()
    search.n_climbs += n_tested - len(u)
    search.n_evaluations += target.n_evaluations - first
    return climber.found if climber.is_material else []


def _starts(
    joint: JointDraws,
    explorers: Sequence[Any],
    climber: Climber,
    n_scattered: int,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Points where climbs may begin, (n, d), the best first, and their log densities (n,)."""
    weights = np.exp(joint.log_weights - joint.log_z)
    chosen = rng.choice(len(weights), (3, _N_NOT_EVALUATED), p=weights / weights.sum())
    centre, first, second = joint.u[chosen]
    away = centre + _FARTHER * (first - second)
    switched = mirrored(joint.u[np.argmax(joint.log_f)], _N_NOT_EVALUATED, rng)
    new = rng.permutation(np.concatenate([away, switched]))
    far = climber.target.far_points(len(new), rng)
    scattered = [each.scattered(n_scattered // len(explorers)) for each in explorers]
    to_evaluate = np.concatenate([new, *scattered])

    u = np.concatenate([to_evaluate, joint.u, *(each.points for each in explorers)])
    known = [joint.log_f, *(each.log_f for each in explorers)]
    log_f = np.concatenate([climber.target.log_density(to_evaluate), *known])
    surprising = np.argsort(-climber.surprise(u, log_f))
    any_of_all = rng.permutation(len(u))[: len(new)]
    # Two surprising points, a new one, any, and one beyond the base.
    in_turn = [surprising[0 : 2 * len(new) : 2], surprising[1 : 2 * len(new) : 2]]
    at_new = np.arange(len(new))
    order = np.stack([*in_turn, at_new, any_of_all, len(u) + at_new]).T.ravel()
    log_f_far = climber.target.log_density(far)
    at_far = np.argsort(-climber.surprise(far, log_f_far))
    u = np.concatenate([u, far[at_far]])
    log_f = np.append(log_f, log_f_far[at_far])
    _, places = np.unique(order, return_index=True)
    order = order[np.sort(places)]
    order = order[log_f[order] > -np.inf]
    return u[order], log_f[order]
