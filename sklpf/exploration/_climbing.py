"""Climbs that look for modes which a cover lacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import chi2

from sklpf._utils.numbers import LOG_TAU, Array
from sklpf.exploration._joint import JointDraws
from sklpf.exploration._target import Target
from sklpf.paths import (
    ClimbTarget,
    StudentT,
    climb,
    ellipsoid_at_mode,
    functions_for_climbs,
    mirrored,
)

_AT_ONCE = 6  # climbs
_LEAST_MASS = np.log(0.002)  # share of Z of a mode, by Laplace's method, that matters
_INSIDE = 0.99  # of a part's mass, within which a point is covered ...
_HIGHER = 3.0  # ... unless the target is so many nats higher than the cover
_FARTHER = 1.5  # differences of points by which climbs begin away from modes
_WIDER = 1.5  # in variance
_DF = 5.0


@dataclass
class Search:
    """Climbs so far, and what they took."""

    n_climbs: int = 0
    n_evaluations: int = 0


def new_modes(
    target: Target,
    joint: JointDraws,
    explorers: Sequence[Any],
    most: float,
    search: Search,
    rng: np.random.Generator,
) -> list[StudentT]:
    """Return t distributions at modes with mass that a cover lacks, where climbs have ended.

    Climbs begin at base draws, away from the mass by differences of draws, and where a mode would
    be if labels were switched. A climb ends once it is in the cover. Coordinates are those in which
    parts of the cover are round, on average.

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
    parts = [part for each in joint.proposals for part in each.fitted.components]
    shares = np.concatenate([each.fitted.weights for each in joint.proposals])
    matrices = np.array([part.scale_matrix for part in parts])
    if matrices.ndim == 2:  # of independent coordinates
        matrices = matrices[..., np.newaxis] * np.eye(target.n_dimensions)
    root = np.linalg.cholesky(np.einsum("k,kij->ij", shares / shares.sum(), matrices))
    radius = chi2.ppf(_INSIDE, target.n_dimensions)

    def values(y: Array) -> Array:
        return target.log_density(y @ root.T)

    log_density, slopes = functions_for_climbs(values, None)

    def is_covered(u: Array, log_f: Array) -> Array:
        near = np.min([part.squared_distances(u) for part in parts], axis=0) < radius
        log_q = joint.log_density(u, target.log_base(u))
        return near & (log_f - log_q < joint.log_z + _HIGHER)

    def slopes_outside(y: Array, steps: Array) -> tuple[Array, Array]:
        # Slopes are differences, 2 d evaluations, and a climb ends where they are 0.
        u = y @ root.T
        log_f = log_density(y)
        covered = is_covered(u, log_f) | (log_f == -np.inf)
        gradient = np.zeros_like(y)
        if not covered.all():
            gradient[~covered] = slopes(y[~covered], steps[~covered])[1]
        return log_f, gradient

    ones = np.ones(target.n_dimensions)
    box = np.array([-np.inf * ones, np.inf * ones])
    whole = ClimbTarget(log_density, slopes, ones, box)
    starts = _starts(joint, explorers, rng)
    first = target.n_evaluations
    found: list[StudentT] = []
    for place in range(0, len(starts), _AT_ONCE):
        if target.n_evaluations - first > most:
            break
        group = starts[place : place + _AT_ONCE]
        ends = climb(slopes_outside, np.linalg.solve(root, group.T).T, ones, box)
        search.n_climbs += len(group)
        order = np.argsort(-ends.log_density)
        for y, log_f in zip(ends.position[order], ends.log_density[order]):
            u = (root @ y)[np.newaxis]
            known = any(mode.squared_distances(u)[0] < radius for mode in found)
            if known or is_covered(u, np.array([log_f]))[0]:
                continue
            ellipsoid = ellipsoid_at_mode(whole, y)
            log_det = ellipsoid.log_det - np.log(np.diag(root)).sum()
            log_mass = log_f + 0.5 * target.n_dimensions * LOG_TAU - log_det
            if not log_mass > joint.log_z + _LEAST_MASS:
                continue
            factor = root @ np.linalg.inv(ellipsoid.factor)
            found.append(StudentT(u[0], _WIDER * factor @ factor.T, _DF))
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
