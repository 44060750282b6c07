"""Climbs that look for parts of the target which a cover lacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
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
    functions_for_climbs,
    mirrored,
)

_AT_ONCE = 6  # climbs
_LEAST_MASS = np.log(0.002)  # share of Z of a part, by Laplace's method, that matters
_INSIDE = 0.99  # of a part's mass, within which a point is covered ...
_HIGHER = 3.0  # ... unless the target is so many nats higher than the cover ...
_LOW = 0.01  # ... or lower than at this share of its mass
_FLAT = 1.0  # nats by which it is nowhere higher around points where climbs from the cover end
_FARTHER = 1.5  # differences of points by which climbs begin away from modes
_N_NEW = 3  # parts on the way of climbs
_WIDER = 1.5  # in variance
_DF = 5.0


@dataclass
class Search:
    """Climbs so far that began away from the cover, and what all took."""

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
        pooled = np.zeros((d, d))
        for share, part in zip(shares / shares.sum(), self.parts):
            matrix = part.scale_matrix
            pooled += share * (matrix if matrix.ndim == 2 else np.diag(matrix))
        self.root = np.linalg.cholesky(pooled)
        self.radius = chi2.ppf(_INSIDE, d)
        # The target is higher at all but a hundredth of its mass.
        order = np.argsort(joint.log_f)
        mass = np.cumsum(np.exp(joint.log_weights[order] - joint.log_z)) / len(order)
        self.lowest = joint.log_f[order][np.searchsorted(mass, _LOW * mass[-1])]
        self.seen: list[tuple[Array, Array, Array]] = []  # y, log f and its excess over the cover
        self.scale = np.ones(d)
        self.box = Box.everywhere(d)
        self.functions = functions_for_climbs(self._log_f, None)
        self.ratio_functions = functions_for_climbs(lambda y: self._excess(y, self._log_f(y)), None)

    def _log_f(self, y: Array) -> Array:
        return self.target.log_density(y @ self.root.T)

    def _excess(self, y: Array, log_f: Array) -> Array:
        """Log of target over cover and Z, (n,)."""
        u = y @ self.root.T
        log_q = self.joint.log_density(u, self.target.log_base(u))
        return log_f - log_q - self.joint.log_z

    def _is_covered(self, y: Array, log_f: Array, excess: Array) -> NDArray[np.bool_]:
        u = y @ self.root.T
        distances = np.min([part.squared_distances(u) for part in self.parts], axis=0)
        return (distances < self.radius) & (excess < _HIGHER) & (log_f >= self.lowest)

    def to_modes(self, starts: Array) -> None:
        """Climb on the target from points u (n, d), until in the cover."""

        def slopes(y: Array, steps: Array, log_f: Array, excess: Array) -> tuple[Array, Array]:
            ends = self._is_covered(y, log_f, excess) | (log_f == -np.inf)
            self.seen.append((y[~ends], log_f[~ends], excess[~ends]))
            return log_f, self._gradient(self.functions[1], y, steps, ends)

        self._climb(slopes, starts)

    def out_of_cover(self, starts: Array) -> None:
        """Climb from points u (n, d) to where the target is highest above the cover."""

        def slopes(y: Array, steps: Array, log_f: Array, excess: Array) -> tuple[Array, Array]:
            self.seen.append((y, log_f, excess))
            return excess, self._gradient(self.ratio_functions[1], y, steps, ~(excess > _FLAT))

        self._climb(slopes, starts)

    def _climb(self, slopes: Callable[..., tuple[Array, Array]], starts: Array) -> None:
        """Climb from points u on what `slopes` gives; beyond the limit climbs stay."""

        def limited(y: Array, steps: Array) -> tuple[Array, Array]:
            if self.target.n_evaluations > self.limit:
                return np.full(len(y), -np.inf), np.zeros_like(y)
            log_f = self._log_f(y)
            return slopes(y, steps, log_f, self._excess(y, log_f))

        climb(limited, np.linalg.solve(self.root, starts.T).T, self.scale, self.box)

    def _gradient(self, slopes: Any, y: Array, steps: Array, ends: NDArray[np.bool_]) -> Array:
        """Slopes where climbs go on: these are differences, which take 2 d evaluations."""
        gradient = np.zeros_like(y)
        if not ends.all():
            gradient[~ends] = slopes(y[~ends], steps[~ends])[1]
        return gradient

    def new_parts(self) -> list[StudentT]:
        """Return t distributions where climbs have been much higher than the cover, if there is
        mass by Laplace's method: at the highest excess, and on the way to it.
        """
        y, log_f, excess = (np.concatenate(each) for each in zip(*self.seen))
        thin = np.flatnonzero(excess > _HIGHER)
        order = thin[np.argsort(-excess[thin], kind="stable")]
        target = ClimbTarget(*self.functions, self.scale, self.box)
        log_det_root = np.log(np.diag(self.root)).sum()
        found: list[StudentT] = []
        is_material = False
        while len(order) and len(found) < 2 * _N_NEW:
            place = order[0] if len(found) < _N_NEW else order[len(order) // 2]
            ellipsoid = ellipsoid_at_mode(target, y[place])
            log_mass = log_f[place] + 0.5 * len(self.scale) * LOG_TAU
            log_mass += log_det_root - ellipsoid.log_det
            is_material |= bool(log_mass > self.joint.log_z + _LEAST_MASS)
            factor = self.root @ np.linalg.inv(ellipsoid.factor)
            found.append(StudentT(self.root @ y[place], _WIDER * factor @ factor.T, _DF))
            inside = np.sum(((y[order] - y[place]) @ ellipsoid.factor.T) ** 2, axis=1) < self.radius
            order = order[~(inside | (order == place))]
        return found if is_material else []


def new_parts(
    target: Target,
    joint: JointDraws,
    explorers: Sequence[Any],
    most: float,
    search: Search,
    rng: np.random.Generator,
) -> list[StudentT]:
    """Return t distributions at parts of the target that a cover lacks.

    Climbs on the target begin at base draws, away from the mass by differences of draws, and where
    a mode would be if labels were switched; each ends once it is in the cover. Climbs from the
    draws of the largest weights lead to where the target is highest above the cover, such as the
    neck of a funnel.

    Parameters
    ----------
    target : Target
    joint : JointDraws
        Of the cover.
    explorers : sequence of Explorer
    most : float
        Evaluations; no climb begins after them.
    search : Search
        Which counts.
    rng : numpy.random.Generator
    """
    if not np.isfinite(joint.log_z):
        return []
    climber = Climber(target, joint)
    first = target.n_evaluations
    climber.limit = first + max(most, 0) / 2
    climber.out_of_cover(joint.u[np.argsort(-joint.log_weights)[:_AT_ONCE]])
    climber.limit = np.inf
    starts = _starts(joint, explorers, rng)
    for place in range(0, len(starts), _AT_ONCE):
        group = starts[place : place + _AT_ONCE]
        climber.to_modes(group)
        search.n_climbs += len(group)
        if target.n_evaluations - first > most:
            break
    found = climber.new_parts()
    search.n_evaluations += target.n_evaluations - first
    return found


def _starts(joint: JointDraws, explorers: Sequence[Any], rng: np.random.Generator) -> Array:
    """Points where climbs begin, of each kind in turn, (n, d)."""
    at_base = rng.permutation(np.concatenate([each.starts for each in explorers]))
    n = len(at_base)
    weights = np.exp(joint.log_weights - joint.log_z)
    chosen = rng.choice(len(weights), (3, n), p=weights / weights.sum())
    centre, first, second = joint.u[chosen]
    away = centre + _FARTHER * (first - second)
    highest = joint.u[np.argmax(joint.log_f)]
    switched = mirrored(highest, n, rng)
    n = min(n, len(switched))
    in_turn = np.stack([at_base[:n], away[:n], switched[:n], at_base[-n:]], axis=1)
    return in_turn.reshape(-1, len(highest))
