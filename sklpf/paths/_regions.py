"""Regions of a target whose mass is known without its base: what a run should have found.

On R^d they are ellipsoids around the modes where climbs end, and on slopes that these have passed:
parts of a density without a mode, such as the neck of a funnel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from scipy.stats import chi2

from sklpf._utils.numbers import LOG_TAU, Array
from sklpf._utils.random import systematic
from sklpf.paths._box import Box
from sklpf.paths._climbs import (
    NEAR_A_SIDE,
    NEARLY,
    STEP,
    ClimbTarget,
    Ends,
    LogDensity,
    Slopes,
    climb,
    curvature_by_slopes,
    curvature_by_values,
    mirrored,
    starts_of_climbs,
    widths_around,
)
from sklpf.uncertainty import effective_sample_size, log_mean_exp

if TYPE_CHECKING:
    from sklpf.paths._bases import Density

DRAWS_OF_A_REGION = 10
# of climbs
_SCREENING_WORK = int(2e6)  # coordinates of draws
_START_WORK = int(2e5)  # squares of dimensions, or densities for numerical gradients
# of ellipsoids
_MOST_REGIONS = 20
_N_GROUPS = 10
_N_DRAWS = 100  # in each group
_LARGEST_CURVATURE = 1e100  # in units of widths; eigenvalues of much larger ones are not found
_NO_CURVATURE = 0.02  # which stands for those that are less, or negative
# of those on slopes
_WORK = int(4e4)  # squares of dimensions


class Regions(NamedTuple):
    """Balls, or ellipsoids, with the part of Z that lies in each.

    A point in several of them belongs to the ball whose centre is nearest in units of its radius,
    or to the ellipsoid whose Gaussian is densest there, so that a narrow one within a wide one is
    left whole. Regions are disjoint: masses of several add up, and so do shares of draws.

    Attributes
    ----------
    centres : ndarray of shape (R, d)
        Rows or points in the middle of each.
    radii : ndarray of shape (R,)
        A point x lies in region r if ``|factors[r] @ (x - centres[r])|`` is at most ``radii[r]``.
    log_masses : ndarray of shape (R, G)
        Logs of G independent estimates of the integral of f over each, in nats, unbiased or too
        low on average.
    factors : ndarray of shape (R, d, d) or None, default=None
        None is the identity: of binary rows, the squared radius counts the units that differ.
    draws : ndarray of shape (R, 10, d) or None, default=None
        Draws from the target within each.
    """

    centres: NDArray
    radii: Array
    log_masses: Array
    factors: Array | None = None
    draws: NDArray | None = None

    def take(self, chosen: list[int]) -> Regions:
        """Return some of the regions, with the masses that they have beside the others.

        Parameters
        ----------
        chosen : list of int
            Their places.

        Returns
        -------
        Regions
        """
        return Regions._make(None if part is None else part[chosen] for part in self)

    def contain(self, points: NDArray) -> NDArray[np.bool_]:
        """Return which points lie in which regions, each in one at most.

        Parameters
        ----------
        points : array-like of shape (n, d)
            Rows, or points of R^d.

        Returns
        -------
        inside : ndarray of bool of shape (n, R)
        """
        if not len(self.radii):
            return np.zeros((len(points), 0), dtype=bool)
        points = np.asarray(points, dtype=np.float64)
        centres = np.asarray(self.centres, dtype=np.float64)
        if self.factors is None:
            squares = np.sum(points**2, axis=1)[:, np.newaxis] - 2 * points @ centres.T
            squares += np.sum(centres**2, axis=1)
        else:
            squares = np.empty((len(points), len(centres)))
            for r, factor in enumerate(self.factors):
                squares[:, r] = np.sum(((points - centres[r]) @ factor.T) ** 2, axis=1)
        parts = squares / (self.radii**2 + 1e-6)  # rounding
        ranks = parts
        if self.factors is not None:
            ranks = squares / 2 - np.linalg.slogdet(self.factors)[1]
        inside = parts <= 1
        first = np.where(inside, ranks, np.inf).argmin(axis=1)
        return inside & (first[:, np.newaxis] == np.arange(len(centres)))


def drawn_by_weight(points: NDArray, log_weights: Array, rng: np.random.Generator) -> NDArray:
    """Return as many points as are kept of a region; any of them where all weights are 0."""
    if not np.any(log_weights > -np.inf):
        log_weights = np.zeros(len(points))
    return points[systematic(log_weights, DRAWS_OF_A_REGION, rng.random())]


def find_regions(
    log_density: LogDensity,
    slopes: Slopes,
    has_gradient: bool,
    base: Density,
    bounds: Box,
    rng: np.random.Generator,
    starts: Array | None = None,
    most_evaluations: float = np.inf,
    *,
    most_starts: int = 2000,
    fewest_starts: int = 16,
    steps_of_a_climb: int = 20,
) -> Regions:
    """Return ellipsoids around modes and on slopes with their masses; none where the base's
    normaliser is not known.

    Parameters
    ----------
    log_density, slopes : callable
        Of `functions_for_climbs`.
    has_gradient : bool
        Whether slopes are no differences, which cost more.
    base : Density
        That climbs start from.
    bounds : Box
        The box that the density is integrated over.
    rng : Generator
        Of random numbers.
    starts : ndarray of shape (n, d) or None, default=None
        Where climbs begin, instead of at draws of the base; fewer slopes are then tried, too.
    most_evaluations : float, default=inf
        About how many points the search may ask for, a third each for draws of the base, climbs and
        ellipsoids. One climb, and the ellipsoid where it ends, are made in any case.
    """
    scale = np.asarray(base.scale, dtype=np.float64)
    d = len(scale)
    points_of_a_slope = 1 if has_gradient else 2 * d
    target = ClimbTarget(
        log_density, slopes, scale, bounds, points_of_a_slope, most_evaluations / 3
    )
    work = d**2 if has_gradient else max(d**2, 40 * (1 + 2 * d))
    n_usual = int(np.clip(_START_WORK // work, fewest_starts, most_starts))
    cost = steps_of_a_climb * (2 if has_gradient else 1 + 2 * d)
    n_climbs = int(max(min(n_usual, most_evaluations / 3 / 2 // cost), 1))
    effort = n_climbs / n_usual
    if starts is not None:
        effort = min(1.0, len(starts) / n_usual)
        n_climbs = len(starts)
    elif base.normalised:
        draws = np.asarray(base.sample(n_climbs, rng), dtype=np.float64)
        starts = starts_of_climbs(draws, np.asarray(base.center), bounds, rng)
        n_screened = int(min(20_000, most_evaluations / 3))
        highest = highest_of_draws(log_density, base, rng, most_screened=n_screened)[0]
        starts = np.concatenate([starts, highest[-n_climbs:]])
    else:
        starts = np.empty((0, d))
    ends = climb(slopes, starts, scale, bounds)
    if len(ends.position):
        highest = ends.position[ends.log_density.argmax()]
        # In the base's units climbs stop too early on a target that is much narrower.
        units = np.minimum(widths_around(target, highest), scale)
        more = climb(slopes, mirrored(highest, n_climbs, rng), units, bounds)
        pairs: Any = zip(ends, more)
        ends = Ends(*map(np.concatenate, pairs))
    found = _ellipsoids_at_modes(target, ends, rng)
    found += _ellipsoids_on_slopes(target, ends.visited, found, rng, effort)
    return _regions_of(target, found, rng)


def highest_of_draws(
    log_density: LogDensity,
    base: Density,
    rng: np.random.Generator,
    *,
    n_highest: int = 16,
    most_screened: int = 20_000,
    most_at_once: int = 2000,
) -> tuple[Array, float]:
    """Return those of many draws of the base (n, d) where the target is highest above it, and the
    log of the mean of target over base, in nats.
    """
    n = min(most_screened, _SCREENING_WORK // base.n_dimensions)
    draws = np.asarray(base.sample(n, rng), dtype=np.float64)
    parts = np.array_split(draws, -(-n // most_at_once))
    gain = np.concatenate([log_density(part) - base.log_density(part) for part in parts])
    return draws[np.argsort(gain)[-n_highest:]], float(log_mean_exp(gain))


class Ellipsoid(NamedTuple):
    """Points x with ``|factor @ (x - centre)|`` at most a radius, and what log f is like there.

    Attributes
    ----------
    centre : ndarray of shape (d,)
    factor : ndarray of shape (d, d)
        Upper triangular root of a precision.
    sides : ndarray of shape (d,)
        1 where the centre is at the lower side of the box, -1 at the upper, else 0.
    slope : ndarray of shape (d,)
        Gradient of log f by ``factor @ (x - centre)``, of a length below 1: 0 at a mode.
    """

    centre: Array
    factor: Array
    sides: Array
    slope: Array

    @property
    def log_det(self) -> float:
        """Log of the determinant of the factor."""
        return np.log(np.abs(np.diag(self.factor))).sum()

    def contain(self, points: Array, times: float = 1.0) -> NDArray[np.bool_]:
        """Return which points (n, d) lie in it, or in one so many times as large."""
        distances = np.linalg.norm((points - self.centre) @ self.factor.T, axis=1)
        return distances <= times * _radius_of(len(self.centre))


def _radius_of(d: int, *, mass: float = 0.95) -> float:
    """The radius of ellipsoids in d dimensions."""
    return float(np.sqrt(chi2.ppf(mass, d)))


@np.errstate(all="ignore")
def _ellipsoids_at_modes(
    target: ClimbTarget, ends: Ends, rng: np.random.Generator, *, most_tried: int = 40
) -> list[Ellipsoid]:
    """Ellipsoids around the modes where climbs have ended.

    The highest is taken, one where any climb has ended, the highest of the rest and so on; all ends
    within an ellipsoid count as one. Those from which a Newton step would still rise are left out.
    """
    position = ends.position
    heights = ends.log_density
    found: list[Ellipsoid] = []
    for i in range(most_tried):
        if not len(position) or len(found) == _MOST_REGIONS:
            break
        chosen = int(heights.argmax()) if i % 2 == 0 else int(rng.integers(len(position)))
        ellipsoid = ellipsoid_at_mode(target, position[chosen])
        apart = np.ones(len(position), bool)
        if _rise(target, ellipsoid) < NEARLY:
            found.append(ellipsoid)
            apart = ~ellipsoid.contain(position)
        apart[chosen] = False
        position = position[apart]
        heights = heights[apart]
    return found


def ellipsoid_at_mode(target, centre, *, rounding: float = 1e-7) -> Ellipsoid:
    """Its precision is the curvature of -log f over half a standard deviation, so that a kink does
    no harm. A coordinate at a side is independent of the others.
    """
    low, high = target.bounds
    widths = widths_around(target, centre)
    sides = np.where(centre - low < NEAR_A_SIDE * widths, 1.0, 0.0)
    sides = np.where(high - centre < NEAR_A_SIDE * widths, -1.0, sides)
    free = np.flatnonzero(sides == 0)
    steps = np.minimum(widths, np.minimum(centre - low, high - centre)) / 2
    # In units of the widths, in which the diagonal is about one.
    units = np.outer(widths[free], widths[free])
    n_slopes = 2 * len(free)
    if target.slopes is None or n_slopes * target.points_of_a_slope > target.most_points:
        curvature = curvature_by_values(target, centre, steps, free) * units
    else:
        curvature = curvature_by_slopes(target.slopes, centre, steps, STEP * widths, free) * units
    if not np.all(np.abs(curvature) < _LARGEST_CURVATURE):
        curvature = np.eye(len(free))
    values, axes = np.linalg.eigh(curvature)
    values = np.where(values > rounding, values, _NO_CURVATURE)
    precision = np.diag(1 / (2 * widths) ** 2)
    precision[np.ix_(free, free)] = _composed(values, axes) / units
    return Ellipsoid(centre, _cholesky_root(precision), sides, np.zeros(len(centre)))


def _rise(target, ellipsoid) -> float:
    """Nats by which a Newton step from the centre would rise."""
    steps = STEP / np.linalg.norm(ellipsoid.factor, axis=0)
    slope = target.slopes(ellipsoid.centre[np.newaxis], steps[np.newaxis])[1][0]
    slope = np.where(ellipsoid.sides == 0, slope, 0.0)
    return float(np.sum(np.linalg.solve(ellipsoid.factor.T, slope) ** 2) / 2)


@np.errstate(all="ignore")  # far out anything may happen
def _ellipsoids_on_slopes(
    target: ClimbTarget,
    visited: Array,
    known: list[Ellipsoid],
    rng: np.random.Generator,
    effort: float,
    *,
    most_tried: int = 80,
    least_share: float = 1e-3,  # of the largest mass, below which an ellipsoid is left out
    apart: float = 1.5,  # radii from a mode, so that its ellipsoid is left as it is
) -> list[Ellipsoid]:
    """Ellipsoids around points (n, d) that climbs have passed, those with most mass first; no
    centre lies within another one.

    Points near those that are known, around modes, are left out. `effort` is the share of the usual
    number of points that is tried.
    """
    n_tried = int(effort * min(most_tried, _WORK // len(target.scale) ** 2))
    tried = rng.permutation(visited)[: 2 * n_tried]
    for each in known:
        tried = tried[~each.contain(tried, apart)]
    found = [_ellipsoid_on_slope(target, point) for point in tried[:n_tried]]
    if not found:
        return []
    # By Laplace's method, up to what all have in common.
    both = [*known, *found]
    heights = target.log_density(np.array([each.centre for each in both]))
    log_masses = heights - [each.log_det for each in both]
    least = log_masses.max() + np.log(least_share)
    log_masses = log_masses[len(known) :]

    chosen: list[Ellipsoid] = []
    for i in np.argsort(-log_masses).tolist():
        if len(chosen) == _MOST_REGIONS or not log_masses[i] > least:
            break
        new = found[i]
        overlap = (
            each.contain(new.centre[np.newaxis])[0] or new.contain(each.centre[np.newaxis])[0]
            for each in chosen
        )
        if not any(overlap):
            chosen.append(new)
    return chosen


def _ellipsoid_on_slope(
    target,
    centre,
    *,
    step: float = 0.1,  # of differences between slopes, in widths
) -> Ellipsoid:
    """Its precision is the absolute curvature of log f, and for the slope s that of exp(-(s x)^2 /
    2), within which f changes by a factor of e.
    """
    d = len(centre)
    widths = widths_around(target, centre)
    small = step**2 * widths
    gradient = target.slopes(centre[np.newaxis], small[np.newaxis])[1][0] * widths
    curvature = curvature_by_slopes(target.slopes, centre, step * widths, small)
    curvature *= np.outer(widths, widths)
    if not np.all(np.abs([*curvature, gradient]) < _LARGEST_CURVATURE):
        return Ellipsoid(centre, np.diag(1 / widths), np.zeros(d), np.zeros(d))
    values, axes = np.linalg.eigh(curvature)
    precision = (axes * np.maximum(np.abs(values), _NO_CURVATURE)) @ axes.T
    precision += np.outer(gradient, gradient)
    precision = _composed(*np.linalg.eigh(precision))
    factor = _cholesky_root(precision / np.outer(widths, widths))
    slope = np.linalg.solve(factor.T, gradient / widths)
    return Ellipsoid(centre, factor, np.zeros(d), slope / max(1.0, np.linalg.norm(slope)))


@np.errstate(all="ignore")
def _regions_of(
    target: ClimbTarget,
    ellipsoids: list[Ellipsoid],
    rng: np.random.Generator,
    *,
    fewest_effective: int = 100,  # draws of a region on a slope
) -> Regions:
    """Ellipsoids with their masses, which are unbiased around any centre.

    Those on slopes are left out where few draws have nearly all the weight.
    """
    d = len(target.scale)
    low, high = target.bounds
    if not ellipsoids:
        return Regions(np.empty((0, d)), np.empty(0), np.empty((0, _N_GROUPS)))
    kept = []
    drawn = []
    for each in ellipsoids:
        points, log_proposal = _draws_within(each, rng)
        log_weights = target.log_density(points) - log_proposal
        log_weights[np.any((points < low) | (points > high), axis=1)] = -np.inf
        if not each.slope.any() or effective_sample_size(log_weights) > fewest_effective:
            kept.append(each)
            drawn.append((points, log_weights))

    regions = Regions(
        np.array([each.centre for each in kept]).reshape(-1, d),
        np.full(len(kept), _radius_of(d)),
        np.empty((len(kept), _N_GROUPS)),
        np.array([each.factor for each in kept]).reshape(-1, d, d),
    )
    draws = np.empty((len(kept), DRAWS_OF_A_REGION, d))
    for r, (points, log_weights) in enumerate(drawn):
        log_weights[~regions.contain(points)[:, r]] = -np.inf
        draws[r] = drawn_by_weight(points, log_weights, rng)
        highest = max(float(log_weights.max()), np.finfo(np.float64).min)
        weights = np.exp(log_weights - highest).reshape(_N_GROUPS, _N_DRAWS)
        regions.log_masses[r] = highest + np.log(weights.mean(axis=1))
    return regions._replace(draws=draws)


def _draws_within(ellipsoid: Ellipsoid, rng: np.random.Generator) -> tuple[Array, Array]:
    """Points (n, d) of a Gaussian cut off at an ellipsoid, and their log densities.

    In whitened coordinates its log density has the gradient s at the centre, the ellipsoid's slope,
    and the Hessian -I + s s'. Coordinates at sides of the box are reflected.
    """
    d = len(ellipsoid.centre)
    n = _N_GROUPS * _N_DRAWS
    radius = _radius_of(d)
    steepness = float(np.linalg.norm(ellipsoid.slope))
    across = d
    along = np.zeros(n)
    log_along = np.zeros(n)
    if steepness > 0:
        across = d - 1
        along, log_along = _draw_along(steepness, radius, d, n, rng)
    z = rng.standard_normal((n, d))
    unit = ellipsoid.slope / max(steepness, 1e-300)
    z -= np.outer(z @ unit, unit)
    z /= np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-300)
    within = radius**2 - along**2
    inside = chi2.cdf(within, across) if across else np.ones(n)
    squares = chi2.ppf(inside * rng.random(n), across) if across else np.zeros(n)
    whitened = np.sqrt(squares)[:, np.newaxis] * z + np.outer(along, unit)
    moves = np.linalg.solve(ellipsoid.factor, whitened.T).T
    moves = np.where(ellipsoid.sides != 0, ellipsoid.sides * np.abs(moves), moves)
    log_proposal = ellipsoid.log_det + log_along
    log_proposal += -across / 2 * LOG_TAU - squares / 2 - np.log(inside)
    log_proposal += np.sum(ellipsoid.sides != 0) * np.log(2)
    return ellipsoid.centre + moves, log_proposal


def _draw_along(steepness, radius, d, n, rng, *, n_cells: int = 200) -> tuple[Array, Array]:
    """Distances (n,) along a slope within a ball, and their log densities, constant in cells."""
    edges = np.linspace(-radius, radius, n_cells + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    log_masses = steepness * middles - (1 - steepness**2) * middles**2 / 2
    if d > 1:
        log_masses += chi2.logcdf(radius**2 - middles**2, d - 1)
    masses = softmax(log_masses)
    cells = rng.choice(n_cells, size=n, p=masses)
    width = edges[1] - edges[0]
    return edges[cells] + width * rng.random(n), np.log(masses[cells] / width)


def _composed(
    values: Array,
    axes: Array,
    *,
    smallest: float = 1e-12,  # as a share of the largest, so that a root can be computed
) -> Array:
    """The matrix of eigenvalues and axes, of which a root can be computed: where a climb has ended
    on a slope the largest value may be 1e16 times the smallest.
    """
    values = np.maximum(values, smallest * values.max(initial=0.0))
    return (axes * values) @ axes.T


def _cholesky_root(precision: Array) -> Array:
    """An upper triangular R (d, d) whose R'R is the precision."""
    unit = np.sqrt(np.diag(precision))
    return np.linalg.cholesky(precision / np.outer(unit, unit)).T * unit
