"""Climbs on a density on R^d to its modes: where they begin, how they go, and where they end; and
its widths and curvatures there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize

from sklpf._utils.numbers import Array, Integers
from sklpf.paths._box import Box
from sklpf.paths._functions import failures_are_nan, values_of_shape

# Log densities at points (n, d), (n,): -inf where it can't be had.
LogDensity = Callable[[Array], Array]
# The same with gradients (n, d). It is also given steps (n, d) for numerical derivatives.
Slopes = Callable[[Array, Array], tuple[Array, Array]]
Function = Callable[[Array], Array]

# of climbs
NEARLY = 1.0  # nats, where a climb ended early
STEP = 1e-2  # steps of numerical derivatives, in standard deviations
NEAR_A_SIDE = 0.05  # widths
_INSTEAD = (
    "give another start, or the base itself as Gaussian(mean, covariance), such as the prior; a"
    " hierarchy may have a mode in its non-centred form"
)


class Ends(NamedTuple):
    """Ends of climbs: points (n, d), their log densities (n,), in nats, and the target that each
    climbed on (n,); and the points of all on the way, points (m, d).
    """

    position: Array
    log_density: Array
    targets: Integers
    visited: Array


@np.errstate(all="ignore")  # far out anything may happen
def climb(
    slopes: Callable[..., tuple[Array, Array]],
    starts: Array,
    scale: Array,
    bounds: Box,
    targets: Integers | None = None,
    *,
    most_iterations: int = 60,
    sufficient: float = 1e-4,  # share of the rise that a step's slope promises
    shorter: float = 0.25,  # step's length after one that was refused, as a share of it
    shortest: float = 1e-9,  # step, in scales
    longest_first: float = 1.0,  # first step, in scales
    longest_by_root: float = 10.0,  # step, in scales and for each root of a dimension
    least_rise: float = 1e-4,  # nats that a Newton step would add
) -> Ends:
    """Return where climbs from some points end, without those that are still far from a mode.

    All climb side by side, by BFGS with one density a step: a climb whose step is refused tries a
    shorter one in the next iteration. Memory is 120 n d numbers.

    Parameters
    ----------
    slopes : callable
        Log density and gradient.
    starts : ndarray of shape (n, d)
        Those of density 0 are left out.
    scale : ndarray of shape (d,)
        Units of the coordinates.
    bounds : Box
        The box that climbs stay in.
    targets : ndarray of shape (n,) or None, default=None
        Where climbs are on several densities: which one each is on, a third argument of `slopes`.
    """
    low, high = bounds.scaled(1 / scale)
    target = np.zeros(len(starts), dtype=np.int64) if targets is None else targets

    def evaluate(u: Array, steps: Array, target: Integers) -> tuple[Array, Array]:
        which = () if targets is None else (target,)
        values, gradients = slopes(u * scale, steps * scale, *which)
        return values, gradients * scale

    position = np.clip(starts / scale, low, high)
    value, gradient = evaluate(position, np.full(position.shape, 1e-4), target)
    alive = np.isfinite(value)
    here = _Climbs.begun(position[alive], value[alive], gradient[alive], target[alive])
    inverses = _Inverses(here.position.shape)
    visited = [here.position]
    arrived = []
    longest = longest_by_root * np.sqrt(starts.shape[1])
    for _ in range(most_iterations):
        slope, direction = here.directions(inverses, low, high)
        rise = np.einsum("ni,ni->n", slope, direction)
        norm = np.linalg.norm(direction, axis=1)
        most = np.where(here.is_new, longest_first, longest)
        direction *= np.minimum(1.0, most / np.maximum(norm, 1e-300))[:, np.newaxis]
        # The second is where f has a kink or jumps, or where its rise is lost in rounding.
        stops = (rise < least_rise) | (here.length * np.minimum(norm, most) < shortest)
        arrived.append(here.take(stops))
        here = here.take(~stops)
        slope, direction, rise = slope[~stops], direction[~stops], rise[~stops]
        inverses.keep(~stops)
        if not len(here.position):
            break
        proposal = np.clip(here.position + here.length[:, np.newaxis] * direction, low, high)
        steps = np.clip(STEP * np.sqrt(np.maximum(inverses.variances, 0)), 1e-7, 1e-3)
        new_value, new_gradient = evaluate(proposal, steps, here.target)
        step = proposal - here.position
        promised = np.einsum("ni,ni->n", slope, step)
        accept = new_value >= here.value + sufficient * np.maximum(promised, 0)
        inverses.update(step, here.gradient - new_gradient, accept, here.is_new)
        visited.append(proposal[accept])
        here.move(accept, proposal, new_value, new_gradient, shorter)
    else:
        arrived.append(here.take(rise < NEARLY))
    ends = _Climbs(*map(np.concatenate, zip(*arrived)))
    return Ends(ends.position * scale, ends.value, ends.target, np.concatenate(visited) * scale)


class _Climbs(NamedTuple):
    """The place of climbs: points (n, d), their log densities (n,) and gradients (n, d), the target
    of each, the length of its next step as a share of the whole one, and whether it has made none.
    """

    position: Array
    value: Array
    gradient: Array
    target: Integers
    length: Array
    is_new: NDArray[np.bool_]

    @classmethod
    def begun(cls, position: Array, value: Array, gradient: Array, target: Integers) -> _Climbs:
        """Climbs that have made no step yet."""
        n = len(position)
        return cls(position, value, gradient, target, np.ones(n), np.ones(n, dtype=bool))

    def take(self, chosen: NDArray[np.bool_]) -> _Climbs:
        """Some of them."""
        return _Climbs._make(part[chosen] for part in self)

    def directions(self, inverses: _Inverses, low: Array, high: Array) -> tuple[Array, Array]:
        """Gradients and whole steps (n, d): along the sides of the box where a climb is at one."""
        blocked = (self.position <= low) & (self.gradient < 0)
        blocked |= (self.position >= high) & (self.gradient > 0)
        slope = np.where(blocked, 0.0, self.gradient)
        return slope, np.where(blocked, 0.0, inverses.times(slope))

    def move(
        self,
        accept: NDArray[np.bool_],
        proposal: Array,
        value: Array,
        gradient: Array,
        shorter: float,
    ) -> None:
        """Go on where a step is accepted; elsewhere the next one is shorter."""
        self.position[accept] = proposal[accept]
        self.value[accept] = value[accept]
        self.gradient[accept] = gradient[accept]
        self.length[:] = np.where(accept, 1.0, shorter * self.length)
        self.is_new[accept] = False


class _Inverses:
    """Inverses of minus the Hessians of climbs, of shape (n, d), by their steps (Nocedal 1980);
    none is ever written out.

    Attributes
    ----------
    variances : ndarray of shape (n, d)
        Their diagonals.
    """

    def __init__(self, shape: tuple[int, int]) -> None:
        self.variances = np.ones(shape)
        self._first = np.ones(shape[0])  # the diagonal before any step
        self._pairs: list[_Pair] = []

    def times(self, vectors: Array) -> Array:
        """Return the product of each with a vector (n, d)."""
        rest = vectors
        shares = []
        for pair in reversed(self._pairs):
            share = pair.precision * np.einsum("ni,ni->n", pair.step, rest)
            rest = rest - share[:, np.newaxis] * pair.bend
            shares.append(share)
        product = self._first[:, np.newaxis] * rest
        for pair, share in zip(self._pairs, reversed(shares)):
            excess = pair.precision * np.einsum("ni,ni->n", pair.bend, product)
            product = product + (pair.factor * share - excess)[:, np.newaxis] * pair.step
        return product

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Leave out the other climbs."""
        if kept.all():
            return
        self.variances = self.variances[kept]
        self._first = self._first[kept]
        self._pairs = [_Pair._make(part[kept] for part in pair) for pair in self._pairs]

    def update(
        self, step: Array, bend: Array, accept: NDArray[np.bool_], is_new: NDArray[np.bool_]
    ) -> None:
        """Learn from steps (n, d) along which the slope fell by `bend`. Where the density is not
        concave the inverse is doubled, so that the next step is longer.
        """
        curvature = np.einsum("ni,ni->n", step, bend)
        size = np.einsum("ni,ni->n", bend, bend)
        concave = accept & (curvature > 1e-12 * np.einsum("ni,ni->n", step, step))
        first = concave & is_new & (size > 0)
        self._first = np.where(first, curvature / np.where(first, size, 1.0), self._first)
        self.variances[first] = self._first[first, np.newaxis]

        doubled = accept & ~concave
        self._first[doubled] *= 2
        self.variances[doubled] *= 2
        for pair in self._pairs:
            pair.factor[doubled] *= 2

        bend = np.where(concave[:, np.newaxis], bend, 0.0)
        precision = np.where(concave, 1 / np.where(concave, curvature, 1.0), 0.0)
        turned = self.times(bend)
        weight = precision * (1 + precision * np.einsum("ni,ni->n", bend, turned))
        self.variances += weight[:, np.newaxis] * step**2
        self.variances -= 2 * precision[:, np.newaxis] * step * turned
        self._pairs.append(_Pair(step, bend, precision, np.ones(len(step))))


class _Pair(NamedTuple):
    """A step of each climb, (n, d), and what its slope fell by.

    The factor (n,) is that by which inverses have been multiplied since; the precision (n,) is 1
    over the product of step and bend, 0 where nothing is learned.
    """

    step: Array
    bend: Array
    precision: Array
    factor: Array


def functions_for_climbs(
    log_density: LogDensity,
    grad: Callable[[Array], Array] | None,
    value_and_grad: Callable[[Array], tuple[Array, Array]] | None = None,
) -> tuple[LogDensity, Slopes]:
    """Return a log density and its slopes that never fail: where the functions do, or give NaN or
    +inf, and where the gradient is not finite, the density counts as 0.

    Without a gradient slopes are central differences.
    """

    def numbers(function, points: Array, n_columns: int | None = None) -> Array:
        found = evaluate_bisecting_failures(function, points, n_columns)
        return np.where(np.isnan(found) | (found == np.inf), -np.inf, found)

    def values(points: Array) -> Array:
        return numbers(log_density, points)

    def slopes(points: Array, steps: Array) -> tuple[Array, Array]:
        n, d = points.shape
        if value_and_grad is not None:
            # Stacked at once: the next call may reuse both arrays.
            found = numbers(lambda x: np.column_stack(value_and_grad(x)), points, 1 + d)
            value, gradient = found[:, 0], found[:, 1:]
        else:
            value = values(points)
            gradient = np.zeros((n, d))
            there = np.isfinite(value)
            if grad is None:
                gradient[there] = _differences(values, points[there], steps[there])
            else:
                gradient[there] = numbers(grad, points[there], d)
        good = np.isfinite(value) & np.all(np.isfinite(gradient), axis=1)
        return np.where(good, value, -np.inf), np.where(good[:, np.newaxis], gradient, 0.0)

    return values, slopes


def _differences(
    values: LogDensity,
    points: Array,
    steps: Array,
    *,
    most_at_once: int = 500_000,  # coordinates of points that the density is given at once: memory
) -> Array:
    """Central differences at points (n, d) by steps (n, d)."""
    n, d = points.shape
    slopes = np.empty((n, d))
    n_at_once = max(1, most_at_once // (2 * d**2))
    for first in range(0, n, n_at_once):
        some = slice(first, first + n_at_once)
        ends = np.repeat(points[some], 2 * d, axis=0)
        moved = np.einsum("nkii->nki", ends.reshape(-1, 2, d, d))  # a view
        moved += np.stack([steps[some], -steps[some]], axis=1)
        found = values(ends).reshape(-1, 2, d)
        slopes[some] = (found[:, 0] - found[:, 1]) / (2 * steps[some])
    return slopes


def evaluate_bisecting_failures(
    function: Callable[[Array], Array], points: Array, n_columns: int | None = None
) -> Array:
    """Return the values of a function at points, (n,) or (n, n_columns): NaN where it raises
    whatever error, for which the points of a function of many are tried in halves.
    """
    shape = (len(points),) if n_columns is None else (len(points), n_columns)
    if not len(points):
        return np.empty(shape)
    points = np.ascontiguousarray(points)  # else numba would compile a function once more
    try:
        with failures_are_nan():
            return np.array(function(points), dtype=np.float64).reshape(shape)
    except Exception:  # of a user's function, far from where it is used
        if len(points) == 1:
            return np.full(shape, np.nan)
        half = len(points) // 2
        parts = (points[:half], points[half:])
        return np.concatenate([evaluate_bisecting_failures(function, x, n_columns) for x in parts])


def starts_of_climbs(draws: Array, center: Array, bounds: Box, rng: np.random.Generator) -> Array:
    """Return points to climb from: draws of a base, most of them moved away from its center, and in
    a finite box anywhere.

    A quarter is left as it is. Others are 3, 10 and 30 times as far from the center, where a base
    at a mode would otherwise never find another one.
    """
    starts = center + np.resize([1.0, 3.0, 10.0, 30.0], len(draws))[:, np.newaxis] * (
        draws - center
    )
    if bounds.has_sides:
        moved = np.arange(len(draws)) % 4 > 0
        anywhere = np.isfinite(bounds).all(axis=0)
        low, high = np.where(anywhere, bounds, 0.0)
        uniform = rng.uniform(low, high, size=starts.shape)
        starts = np.where(moved[:, np.newaxis] & anywhere, uniform, starts)
        starts = bounds.clip(starts)
    return starts


def mirrored(mode: Array, most: int, rng: np.random.Generator) -> Array:
    """Return what a mode becomes where labels are switched: one coordinate or all with the other
    sign, or two swapped; at most some of them, at random.
    """
    d = len(mode)
    chosen = rng.permutation(d + 1 + d * (d - 1) // 2)[:most]  # all points would not fit in memory
    points = np.tile(mode, (len(chosen), 1))
    last = np.cumsum(np.arange(d - 1, 0, -1))  # numbers of pairs (i, j > i) up to those of each i
    for point, which in zip(points, chosen):
        if which < d:
            point[which] *= -1
        elif which == d:
            point *= -1
        else:
            pair = which - d - 1
            i = np.searchsorted(last, pair, side="right")
            j = d - (last[i] - pair)
            point[[i, j]] = point[[j, i]]
    return points


# -- at modes
class ClimbTarget(NamedTuple):
    """A density whose ellipsoids are looked for: functions of `functions_for_climbs`, units (d,) of
    the coordinates, and the box that it is integrated over.

    Curvatures are differences of slopes, or without these second differences of values, which need
    fewer points. Where one at a mode would need more than `most_points`, it is first by values, and
    then along coordinates alone.
    """

    log_density: LogDensity
    slopes: Slopes | None
    scale: Array
    bounds: Box
    points_of_a_slope: int = 1
    most_points: float = np.inf


def widths_around(target: ClimbTarget, centre: Array) -> Array:
    """Distances (d,) along every coordinate at which f is half a nat lower than at a mode, within
    the box; at its side in the one direction that there is.
    """
    low, high = target.bounds
    scale = target.scale
    top = target.log_density(centre[np.newaxis])[0]
    widest = np.minimum(high - low, 1e6 * scale)
    widths = np.minimum(scale, widest)
    inner = np.zeros_like(widths)  # within which f falls by less, outside by more
    outer = np.full_like(widths, np.inf)
    for _ in range(30):
        up = np.minimum(widths, high - centre)
        down = np.minimum(widths, centre - low)
        values = target.log_density(np.concatenate([centre + np.diag(up), centre - np.diag(down)]))
        drops = np.maximum(top - values.reshape(2, -1), 0.0)
        # How often each would fit into a width: of a parabola the drop is its square.
        parts = np.stack([up, down]) / widths
        counted = parts > NEAR_A_SIDE
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


def curvature_by_slopes(
    slopes: Slopes, centre: Array, steps: Array, small: Array, free: Integers | slice = slice(None)
) -> Array:
    """Negative second derivatives of log f by some coordinates, (m, m): central differences of
    slopes by steps (d,). Slopes without a gradient are differences by small steps (d,).
    """
    moves = np.diag(steps)[free]
    points = np.concatenate([centre + moves, centre - moves])
    above, below = np.split(slopes(points, np.broadcast_to(small, points.shape))[1][:, free], 2)
    curvature = (below - above) / (2 * steps[free, np.newaxis])
    return curvature / 2 + curvature.T / 2


def curvature_by_values(target: ClimbTarget, centre: Array, steps: Array, free: Integers) -> Array:
    """The same by second differences of -log f; 0 beside the diagonal where pairs of coordinates
    would need too many points.
    """
    moves = np.diag(steps)[free]
    m = len(moves)
    i, j = np.triu_indices(m, 1)
    if len(i) > target.most_points:
        i = j = i[:0]
    signs = np.where(np.arange(len(i)) % 2, 1.0, -1.0)[:, np.newaxis]
    pairs = centre + moves[i] + signs * moves[j]
    values = target.log_density(
        np.concatenate([centre[np.newaxis], centre + moves, centre - moves, pairs])
    )
    top, above, below = values[0], values[1 : m + 1], values[m + 1 : 2 * m + 1]
    curvature = np.diag(2 * top - above - below)
    beside = np.where(signs[:, 0] > 0, above[j], below[j])
    curvature[i, j] = signs[:, 0] * (above[i] + beside - top - values[2 * m + 1 :])
    return (curvature + np.triu(curvature, 1).T) / np.outer(steps[free], steps[free])


def check_at_start(name: str, function: Function, start: Array, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless a user's function gives finite numbers of this shape for the start:
    () of a density, (d,) of a gradient.
    """
    hint = "; of a function of one point say lambda points: np.array([f(x) for x in points])"
    values = values_of_shape(name, function(start[np.newaxis]), (1, *shape), hint)
    if not np.all(np.isfinite(values)):
        raise ValueError(f"{name} must be finite at start, got {values[0]}: {_INSTEAD}")


def _bfgs(slopes: Slopes, start: Array, widths: Array, small: Array) -> Array:
    """Return the end of BFGS from a start, in coordinates of these widths."""

    def loss(u: Array) -> tuple[float, Array]:
        x = start + widths * u
        value, slope = (each[0] for each in slopes(x[np.newaxis], small[np.newaxis]))
        return -value if np.isfinite(value) else np.inf, -slope * widths

    found = optimize.minimize(loss, np.zeros_like(start), jac=True, method="BFGS", tol=1e-7)
    return start + widths * found.x


@np.errstate(all="ignore")  # far from the mode anything may happen
def mode_and_covariance(
    log_density: LogDensity,
    slopes: Slopes,
    start: Array,
    *,
    most_rounds: int = 10,
    difference: float = 1e-3,  # of numerical derivatives, in widths
) -> tuple[Array, Array]:
    """The mode to which BFGS leads, and the inverse of the negative Hessian there.

    Functions are those of `functions_for_climbs`. BFGS begins anew where it ends, in the widths
    there, until these change no more.

    Raises
    ------
    ValueError
        If there is no mode.
    """
    everywhere = Box.everywhere(len(start))
    mode = start
    widths = np.ones_like(start)
    for _ in range(most_rounds):
        mode = _bfgs(slopes, mode, widths, difference * widths)
        previous = widths
        widths = widths_around(ClimbTarget(log_density, slopes, widths, everywhere), mode)
        changes = np.abs(np.log(widths / previous))
        if np.all(changes < 0.5):
            break
    else:
        raise ValueError(
            "no mode of log_density was found, as it has no maximum along column"
            f" {np.argmax(changes)}: {_INSTEAD}"
        )

    steps = difference * widths
    units = np.outer(widths, widths)
    try:
        factor = linalg.cho_factor(curvature_by_slopes(slopes, mode, steps, steps) * units)
    except (linalg.LinAlgError, ValueError):
        message = (
            "the negative Hessian of log_density must be positive definite where the climb from"
            " start ended"
        )
        raise ValueError(f"{message}: {_INSTEAD}") from None
    value, slope = (each[0] for each in slopes(mode[np.newaxis], steps[np.newaxis]))
    # a quadratic function would rise by half of it
    rise = (slope * widths) @ linalg.cho_solve(factor, slope * widths)
    if not (rise < 2e-3 and value > -np.inf):
        raise ValueError(
            f"no mode of log_density was found, as it still rises where the climb ended: {_INSTEAD}"
        )
    covariance = linalg.cho_solve(factor, np.eye(len(mode)))
    return mode, (covariance + covariance.T) / 2 * units
