"""Climbs on a density on R^d to its modes, and the mass around each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from sklpf.paths._regions import Regions

Array = NDArray[np.float64]
# Log densities at points (n, d), (n,): -inf where it can't be had.
LogDensity = Callable[[Array], Array]
# The same with gradients (n, d). It is also given steps (n, d) for numerical derivatives.
Slopes = Callable[[Array, Array], tuple[Array, Array]]

# of climbs
_MOST_ITERATIONS = 60
_SUFFICIENT = 1e-4  # share of the rise that a step's slope promises
_SHORTER = 0.25  # after a step that was refused
_SHORTEST = 1e-9  # step, in scales
_LONGEST = 10.0  # step, in scales and for each root of a dimension
_CONVERGED = 1e-4  # nats that a Newton step would add
_NEARLY = 1.0  # nats, where a climb ended early
_LARGEST_UPDATE = 4_000_000  # numbers in the matrices that are updated at once: memory
_DIFFERENCE = 1e-2  # steps of numerical derivatives, in standard deviations
# of ellipsoids
_MOST_REGIONS = 20
_MOST_TRIED = 40
_QUANTILE = 0.95  # of a Gaussian's mass, within an ellipsoid
_N_GROUPS = 10
_N_DRAWS = 100  # in each group
_N_CELLS = 200  # along a slope
_FEWEST_EFFECTIVE = 100  # draws on a slope
_ROUNDING = 1e-7  # of curvatures along principal axes, where conditional variances are one
LARGEST_CURVATURE = 1e100  # in units of widths; eigenvalues of much larger ones are not found
_SMALLEST_CURVATURE = 1e-12  # as a share of the largest, so that a root can be computed
NO_CURVATURE = 0.02  # which stands for those that are less, or negative
_NEAR_A_SIDE = 0.05  # widths


@dataclass
class Evaluations:
    """How often a density was asked for at a point, by checks, and at how many it failed."""

    n: int = 0
    n_failed: int = 0


class Ends(NamedTuple):
    """Where climbs ended: points (n, d) and their log densities (n,), in nats; and where all were
    on the way, points (m, d).
    """

    position: Array
    log_density: Array
    passed: Array


@np.errstate(all="ignore")  # far out anything may happen
def climb(slopes: Slopes, starts: Array, scale: Array, bounds: Array | None) -> Ends:
    """Return where climbs from some points end, without those that are still far from a mode.

    All climb side by side, by BFGS with one density a step: a climb whose step is refused tries a
    shorter one in the next iteration.

    Parameters
    ----------
    slopes : callable
        Log density and gradient.
    starts : ndarray of shape (n, d)
        Those of density 0 are left out.
    scale : ndarray of shape (d,)
        Units of the coordinates.
    bounds : ndarray of shape (2, d) or None
        The box that climbs stay in.
    """
    d = starts.shape[1]

    def evaluate(u: Array, steps: Array) -> tuple[Array, Array]:
        values, gradients = slopes(u * scale, steps * scale)
        return values, gradients * scale

    low, high = (-np.inf, np.inf) if bounds is None else bounds / scale
    position = np.clip(starts / scale, low, high)
    value, gradient = evaluate(position, np.full(position.shape, 1e-4))
    alive = np.isfinite(value)
    position = position[alive]
    value = value[alive]
    gradient = gradient[alive]
    inverse = np.tile(np.eye(d), (len(position), 1, 1))  # of minus the Hessian
    is_new = np.ones(len(position), bool)  # no step was made yet
    length = np.ones(len(position))

    passed = [position]
    arrived_at = [position[:0]]
    heights = [value[:0]]
    for _ in range(_MOST_ITERATIONS):
        if not len(position):
            break
        # At a side of the box a climb goes on along that side.
        blocked = ((position <= low) & (gradient < 0)) | ((position >= high) & (gradient > 0))
        slope = np.where(blocked, 0.0, gradient)
        direction = np.where(blocked, 0.0, np.einsum("nij,nj->ni", inverse, slope))
        rise = np.einsum("ni,ni->n", slope, direction)
        norm = np.linalg.norm(direction, axis=1)
        longest = np.where(is_new, 1.0, _LONGEST * np.sqrt(d))
        direction *= np.minimum(1.0, longest / np.maximum(norm, 1e-300))[:, np.newaxis]

        # The second is where f has a kink or jumps, or where its rise is lost in rounding.
        stops = (rise < _CONVERGED) | (length * np.minimum(norm, longest) < _SHORTEST)
        arrived_at.append(position[stops])
        heights.append(value[stops])
        goes_on = ~stops
        position, value, gradient = position[goes_on], value[goes_on], gradient[goes_on]
        inverse, length, is_new = inverse[goes_on], length[goes_on], is_new[goes_on]
        direction, slope, rise = direction[goes_on], slope[goes_on], rise[goes_on]
        if not len(position):
            break

        proposal = np.clip(position + length[:, np.newaxis] * direction, low, high)
        variances = np.einsum("nii->ni", inverse)
        steps = np.clip(_DIFFERENCE * np.sqrt(np.maximum(variances, 0)), 1e-7, 1e-3)
        new_value, new_gradient = evaluate(proposal, steps)
        step = proposal - position
        promised = np.einsum("ni,ni->n", slope, step)
        accept = new_value >= value + _SUFFICIENT * np.maximum(promised, 0)

        bend = gradient - new_gradient
        n_parts = 1 + int(np.sum(accept)) * d**2 // _LARGEST_UPDATE
        for part in np.array_split(np.flatnonzero(accept), n_parts):
            inverse[part] = _updated(inverse[part], step[part], bend[part], is_new[part])
        passed.append(proposal[accept])
        position = np.where(accept[:, np.newaxis], proposal, position)
        value = np.where(accept, new_value, value)
        gradient = np.where(accept[:, np.newaxis], new_gradient, gradient)
        length = np.where(accept, 1.0, _SHORTER * length)
        is_new &= ~accept
    else:
        near = rise < _NEARLY
        arrived_at.append(position[near])
        heights.append(value[near])
    return Ends(
        np.concatenate(arrived_at) * scale,
        np.concatenate(heights),
        np.concatenate(passed) * scale,
    )


def _updated(inverse: Array, step: Array, bend: Array, is_new: NDArray[np.bool_]) -> Array:
    """Inverses (n, d, d) of minus the Hessian after steps along which the slope fell by `bend`;
    those where the density is not concave are doubled, so that the next step is longer.
    """
    curvature = np.einsum("ni,ni->n", step, bend)
    size = np.einsum("ni,ni->n", bend, bend)
    concave = curvature > 1e-12 * np.einsum("ni,ni->n", step, step)
    safe = np.where(concave, curvature, 1.0)
    first = np.where(is_new & concave, safe / np.where(size > 0, size, 1.0), 0.0)
    identity = np.eye(step.shape[1])
    inverse = np.where(
        (first > 0)[:, np.newaxis, np.newaxis], first[:, np.newaxis, np.newaxis] * identity, inverse
    )
    turned = np.einsum("nij,nj->ni", inverse, bend) / safe[:, np.newaxis]
    outer = step[:, :, np.newaxis] * turned[:, np.newaxis, :]
    weight = (1 + np.einsum("ni,ni->n", bend, turned)) / safe
    own = weight[:, np.newaxis, np.newaxis] * step[:, :, np.newaxis] * step[:, np.newaxis, :]
    updated = inverse - outer - np.swapaxes(outer, 1, 2) + own
    return np.where(concave[:, np.newaxis, np.newaxis], updated, 2 * inverse)


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

    def contain(self, points: Array, times: float = 1.0) -> NDArray[np.bool_]:
        """Return which points (n, d) lie in it, or in one so many times as large."""
        distances = np.linalg.norm((points - self.centre) @ self.factor.T, axis=1)
        return distances <= times * radius_of(len(self.centre))


def radius_of(d: int) -> float:
    """The radius of ellipsoids in d dimensions."""
    return float(np.sqrt(chi2.ppf(_QUANTILE, d)))


@np.errstate(all="ignore")
def ellipsoids_at_modes(
    log_density: LogDensity,
    slopes: Slopes,
    ends: Ends,
    scale: Array,
    bounds: Array | None,
    rng: np.random.Generator,
) -> list[Ellipsoid]:
    """Return ellipsoids around the modes where climbs have ended.

    The highest is taken, one where any climb has ended, the highest of the rest and so on; all ends
    within an ellipsoid count as one. Those from which a Newton step would still rise are left out.

    Parameters
    ----------
    log_density, slopes : callable
        Of the target.
    ends : Ends
        Of `climb`.
    scale : ndarray of shape (d,)
        Units of the coordinates.
    bounds : ndarray of shape (2, d) or None
        The box that the target is integrated over.
    rng : Generator
        Of random numbers.
    """
    position = ends.position
    heights = ends.log_density
    found: list[Ellipsoid] = []
    for i in range(_MOST_TRIED):
        if not len(position) or len(found) == _MOST_REGIONS:
            break
        chosen = int(heights.argmax()) if i % 2 == 0 else int(rng.integers(len(position)))
        centre = position[chosen]
        factor, sides = _root_of_precision(log_density, slopes, centre, scale, bounds)
        apart = np.ones(len(position), bool)
        if _rise(slopes, centre, factor, sides) < _NEARLY:
            found.append(Ellipsoid(centre, factor, sides, np.zeros(len(scale))))
            apart = ~found[-1].contain(position)
        apart[chosen] = False
        position = position[apart]
        heights = heights[apart]
    return found


def _rise(slopes, centre, factor, sides) -> float:
    """Nats by which a Newton step would rise."""
    steps = _DIFFERENCE / np.linalg.norm(factor, axis=0)
    slope = slopes(centre[np.newaxis], steps[np.newaxis])[1][0]
    return float(np.sum(np.linalg.solve(factor.T, np.where(sides == 0, slope, 0.0)) ** 2) / 2)


@np.errstate(all="ignore")
def regions_of(
    log_density: LogDensity,
    ellipsoids: list[Ellipsoid],
    d: int,
    bounds: Array | None,
    rng: np.random.Generator,
) -> Regions:
    """Return ellipsoids in d dimensions with their masses, which are unbiased around any centre.

    Those on slopes are left out where few draws have nearly all the weight.
    """
    if not ellipsoids:
        return Regions(np.empty((0, d)), np.empty(0), np.empty((0, _N_GROUPS)))
    kept = []
    drawn = []
    for each in ellipsoids:
        points, log_proposal = _draws_within(each, rng)
        log_weights = log_density(points) - log_proposal
        if bounds is not None:
            outside = np.any((points < bounds[0]) | (points > bounds[1]), axis=1)
            log_weights[outside] = -np.inf
        weights = np.exp(log_weights - log_weights.max())
        if not each.slope.any() or weights.sum() ** 2 > _FEWEST_EFFECTIVE * np.sum(weights**2):
            kept.append(each)
            drawn.append((points, log_weights))

    regions = Regions(
        np.array([each.centre for each in kept]).reshape(-1, d),
        np.full(len(kept), radius_of(d)),
        np.empty((len(kept), _N_GROUPS)),
        np.array([each.factor for each in kept]).reshape(-1, d, d),
    )
    for r, (points, log_weights) in enumerate(drawn):
        log_weights[~regions.contain(points)[:, r]] = -np.inf
        highest = max(float(log_weights.max()), np.finfo(np.float64).min)
        weights = np.exp(log_weights - highest).reshape(_N_GROUPS, _N_DRAWS)
        regions.log_masses[r] = highest + np.log(weights.mean(axis=1))
    return regions


def _draws_within(ellipsoid: Ellipsoid, rng: np.random.Generator) -> tuple[Array, Array]:
    """Points (n, d) of a Gaussian cut off at an ellipsoid, and their log densities.

    In whitened coordinates its log density has the gradient s at the centre, the ellipsoid's slope,
    and the Hessian -I + s s'. Coordinates at sides of the box are reflected.
    """
    d = len(ellipsoid.centre)
    n = _N_GROUPS * _N_DRAWS
    radius = radius_of(d)
    steepness = float(np.linalg.norm(ellipsoid.slope))
    if steepness > 0:
        along, log_along = _draw_along(steepness, radius, d, n, rng)
    else:
        along = np.zeros(n)
        log_along = np.zeros(n)
    across = d - 1 if steepness > 0 else d
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
    log_proposal = np.log(np.abs(np.diag(ellipsoid.factor))).sum() + log_along
    log_proposal += -across / 2 * np.log(2 * np.pi) - squares / 2 - np.log(inside)
    log_proposal += np.sum(ellipsoid.sides != 0) * np.log(2)
    return ellipsoid.centre + moves, log_proposal


def _draw_along(steepness, radius, d, n, rng) -> tuple[Array, Array]:
    """Distances (n,) along a slope within a ball, and their log densities, constant in cells."""
    edges = np.linspace(-radius, radius, _N_CELLS + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    log_masses = steepness * middles - (1 - steepness**2) * middles**2 / 2
    if d > 1:
        log_masses += chi2.logcdf(radius**2 - middles**2, d - 1)
    masses = np.exp(log_masses - log_masses.max())
    masses /= masses.sum()
    cells = rng.choice(_N_CELLS, size=n, p=masses)
    width = edges[1] - edges[0]
    return edges[cells] + width * rng.random(n), np.log(masses[cells] / width)


def _root_of_precision(log_density, slopes, centre, scale, bounds) -> tuple[Array, Array]:
    """An upper triangular R (d, d), R'R the curvature of -log f around a mode, and sides (d,): 1
    where a coordinate is at the lower side of the box, -1 at the upper, else 0.

    Curvatures are those over half a standard deviation, so that a kink does no harm. A coordinate
    at a side is independent of the others.
    """
    d = len(centre)
    low, high = np.full((2, d), [[-np.inf], [np.inf]]) if bounds is None else bounds
    widths = widths_around(log_density, centre, scale, low, high)
    sides = np.where(centre - low < _NEAR_A_SIDE * widths, 1.0, 0.0)
    sides = np.where(high - centre < _NEAR_A_SIDE * widths, -1.0, sides)
    free = np.flatnonzero(sides == 0)
    steps = (np.minimum(widths, np.minimum(centre - low, high - centre)) / 2)[free]
    moves = np.zeros((len(free), d))
    moves[np.arange(len(free)), free] = steps

    # In units of the widths, in which the diagonal is about one.
    curvature = np.eye(len(free))
    if len(free):
        small = np.broadcast_to(_DIFFERENCE * widths, moves.shape)
        above = slopes(centre + moves, small)[1][:, free]
        below = slopes(centre - moves, small)[1][:, free]
        found = (below - above) / (2 * steps[:, np.newaxis])
        found *= np.outer(widths[free], widths[free])
        found = found / 2 + found.T / 2
        if np.all(np.abs(found) < LARGEST_CURVATURE):
            curvature = found
    values, axes = np.linalg.eigh(curvature)
    values = np.where(values > _ROUNDING, values, NO_CURVATURE)
    precision = np.diag(1 / (2 * widths) ** 2)
    units = np.outer(widths[free], widths[free])
    precision[np.ix_(free, free)] = composed(values, axes) / units
    return cholesky_root(precision), sides


def composed(values: Array, axes: Array) -> Array:
    """The matrix of eigenvalues and axes, of which a root can be computed: where a climb has ended
    on a slope the largest value may be 1e16 times the smallest.
    """
    values = np.maximum(values, _SMALLEST_CURVATURE * values.max(initial=0.0))
    return (axes * values) @ axes.T


def cholesky_root(precision: Array) -> Array:
    """An upper triangular R (d, d) whose R'R is the precision."""
    unit = np.sqrt(np.diag(precision))
    return np.linalg.cholesky(precision / np.outer(unit, unit)).T * unit


def widths_around(log_density, centre, scale, low, high) -> Array:
    """Distances (d,) along every coordinate at which f is half a nat lower than at a mode, within
    the box; at its side in the one direction that there is.
    """
    top = log_density(centre[np.newaxis])[0]
    widest = np.minimum(high - low, 1e6 * scale)
    widths = np.minimum(scale, widest)
    inner = np.zeros_like(widths)  # within which f falls by less, outside by more
    outer = np.full_like(widths, np.inf)
    for _ in range(30):
        up = np.minimum(widths, high - centre)
        down = np.minimum(widths, centre - low)
        values = log_density(np.concatenate([centre + np.diag(up), centre - np.diag(down)]))
        drops = np.maximum(top - values.reshape(2, -1), 0.0)
        # How often each would fit into a width: of a parabola the drop is its square.
        parts = np.stack([up, down]) / widths
        counted = parts > _NEAR_A_SIDE
        drops = np.where(counted, drops / np.where(counted, parts, 1.0) ** 2, 0.0)
        drop = drops.sum(axis=0) / np.maximum(counted.sum(axis=0), 1)
        ratios = np.sqrt(0.5 / np.clip(drop, 1e-300, 1e300))
        settled = ((ratios > 0.5) & (ratios < 2)) | ((widths >= widest) & (ratios > 1))
        # Where f jumps no step of Newton's method settles.
        inner = np.where(ratios > 1, np.maximum(inner, widths), inner)
        outer = np.where(ratios < 1, np.minimum(outer, widths), outer)
        settled |= outer < 2 * inner
        if settled.all():
            break
        steps = widths * np.clip(ratios, 0.01, 100)
        within = (steps > inner) & (steps < outer)
        steps = np.where(within, steps, np.sqrt(inner * np.minimum(outer, widest)))
        widths = np.where(settled, widths, steps)
        widths = np.clip(widths, 1e-12 * scale, widest)
    return np.clip(widths, 1e-12 * scale, widest)


def functions_for_climbs(
    log_density: LogDensity,
    grad: Callable[[Array], Array] | None,
    value_and_grad: Callable[[Array], tuple[Array, Array]] | None = None,
    evaluations: Evaluations | None = None,
) -> tuple[LogDensity, Slopes]:
    """Return a log density and its slopes that never fail: where the functions do, or give NaN or
    +inf, and where the gradient is not finite, the density counts as 0.

    Without a gradient slopes are central differences. Points are counted in `evaluations`, twice
    where log density and gradient are two calls.
    """
    evaluations = evaluations or Evaluations()

    def numbers(function, points: Array, n_columns: int | None = None) -> Array:
        found = patiently(function, points, evaluations, n_columns)
        return np.where(np.isnan(found) | (found == np.inf), -np.inf, found)

    def values(points: Array) -> Array:
        return numbers(log_density, points)

    def slopes(points: Array, steps: Array) -> tuple[Array, Array]:
        n, d = points.shape
        if value_and_grad is not None:
            found = numbers(lambda x: np.column_stack(_pair(value_and_grad, x)), points, 1 + d)
            value, gradient = found[:, 0], found[:, 1:]
        elif grad is not None:
            value = values(points)
            gradient = np.zeros((n, d))
            there = np.isfinite(value)
            gradient[there] = numbers(grad, points[there], d)
        else:
            value = values(points)
            gradient = np.zeros((n, d))
            there = np.isfinite(value)
            gradient[there] = _differences(values, points[there], steps[there])
        good = np.isfinite(value) & np.all(np.isfinite(gradient), axis=1)
        return np.where(good, value, -np.inf), np.where(good[:, np.newaxis], gradient, 0.0)

    return values, slopes


def _pair(value_and_grad, points) -> tuple[Array, Array]:
    """Log densities and gradients as they were at once: the next call may reuse both arrays."""
    value, gradient = value_and_grad(points)
    return np.array(value, dtype=np.float64), np.array(gradient, dtype=np.float64)


def _differences(values: LogDensity, points: Array, steps: Array) -> Array:
    """Central differences at points (n, d) by steps (n, d)."""
    n, d = points.shape
    moves = steps[:, :, np.newaxis] * np.eye(d)
    ends = np.concatenate([points[:, np.newaxis] + moves, points[:, np.newaxis] - moves])
    found = values(ends.reshape(-1, d)).reshape(2, n, d)
    return (found[0] - found[1]) / (2 * steps)


def patiently(
    function: Callable[[Array], Array],
    points: Array,
    evaluations: Evaluations,
    n_columns: int | None = None,
) -> Array:
    """Return the values of a function at points, (n,) or (n, n_columns): NaN where it raises
    whatever error, for which points are tried in halves.
    """
    shape = (len(points),) if n_columns is None else (len(points), n_columns)
    if not len(points):
        return np.empty(shape)
    points = np.ascontiguousarray(points)  # else numba would compile a function once more
    evaluations.n += len(points)
    try:
        return np.array(function(points), dtype=np.float64).reshape(shape)
    except Exception:  # of a user's function, far from where it is used
        if len(points) == 1:
            evaluations.n_failed += 1
            return np.full(shape, np.nan)
        half = len(points) // 2
        parts = (points[:half], points[half:])
        return np.concatenate([patiently(function, x, evaluations, n_columns) for x in parts])


def starts_of_climbs(
    draws: Array, center: Array, bounds: Array | None, rng: np.random.Generator
) -> Array:
    """Return points to climb from: draws of a base, most of them moved away from its center, and in
    a finite box anywhere.

    A quarter is left as it is. Others are 3, 10 and 30 times as far from the center, where a base
    at a mode would otherwise never find another one.
    """
    starts = center + np.resize([1.0, 3.0, 10.0, 30.0], len(draws))[:, np.newaxis] * (
        draws - center
    )
    if bounds is not None:
        moved = np.arange(len(draws)) % 4 > 0
        anywhere = np.isfinite(bounds).all(axis=0)
        low, high = np.where(anywhere, bounds, 0.0)
        uniform = rng.uniform(low, high, size=starts.shape)
        starts = np.where(moved[:, np.newaxis] & anywhere, uniform, starts)
        starts = np.clip(starts, *bounds)
    return starts


def mirrored(mode: Array, most: int, rng: np.random.Generator) -> Array:
    """Return what a mode becomes where labels are switched: one coordinate or all with the other
    sign, or two swapped; at most some of them, at random.
    """
    d = len(mode)
    chosen = rng.permutation(d + 1 + d * (d - 1) // 2)[:most]  # all points would not fit in memory
    points = np.tile(mode, (len(chosen), 1))
    first, second = np.triu_indices(d, 1)
    for point, which in zip(points, chosen):
        if which < d:
            point[which] *= -1
        elif which == d:
            point *= -1
        else:
            i, j = first[which - d - 1], second[which - d - 1]
            point[[i, j]] = point[[j, i]]
    return points
