"""Climbs on a density on R^d to its modes: where they begin, how they go, and where they end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.numbers import Array, Integers

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
NEARLY = 1.0  # nats, where a climb ended early
_LARGEST_UPDATE = 4_000_000  # numbers in the matrices that are updated at once: memory
STEP = 1e-2  # steps of numerical derivatives, in standard deviations


@dataclass
class Evaluations:
    """How often a density was asked for at a point, by checks, and at how many it failed."""

    n: int = 0
    n_failed: int = 0


class Ends(NamedTuple):
    """Where climbs ended: points (n, d), their log densities (n,), in nats, and the target that
    each climbed on (n,); and where all were on the way, points (m, d).
    """

    position: Array
    log_density: Array
    targets: Integers
    passed: Array


@np.errstate(all="ignore")  # far out anything may happen
def climb(
    slopes: Callable[..., tuple[Array, Array]],
    starts: Array,
    scale: Array,
    bounds: Array | None,
    targets: Integers | None = None,
) -> Ends:
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
    targets : ndarray of shape (n,) or None, default=None
        Where climbs are on several densities: which one each is on, a third argument of `slopes`.
    """
    d = starts.shape[1]
    target = np.zeros(len(starts), dtype=np.int64) if targets is None else targets

    def evaluate(u: Array, steps: Array, target: Integers) -> tuple[Array, Array]:
        which = () if targets is None else (target,)
        values, gradients = slopes(u * scale, steps * scale, *which)
        return values, gradients * scale

    low, high = (-np.inf, np.inf) if bounds is None else bounds / scale
    position = np.clip(starts / scale, low, high)
    value, gradient = evaluate(position, np.full(position.shape, 1e-4), target)
    alive = np.isfinite(value)
    position, value, gradient, target = (
        part[alive] for part in (position, value, gradient, target)
    )
    inverse = np.tile(np.eye(d), (len(position), 1, 1))  # of minus the Hessian
    is_new = np.ones(len(position), bool)  # no step was made yet
    length = np.ones(len(position))

    passed = [position]
    arrived_at = [position[:0]]
    heights = [value[:0]]
    targets_left = [target[:0]]
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
        targets_left.append(target[stops])
        climbs = (position, value, gradient, inverse, length, is_new, direction, slope, rise)
        position, value, gradient, inverse, length, is_new, direction, slope, rise = (
            part[~stops] for part in climbs
        )
        target = target[~stops]
        if not len(position):
            break

        proposal = np.clip(position + length[:, np.newaxis] * direction, low, high)
        variances = np.einsum("nii->ni", inverse)
        steps = np.clip(STEP * np.sqrt(np.maximum(variances, 0)), 1e-7, 1e-3)
        new_value, new_gradient = evaluate(proposal, steps, target)
        step = proposal - position
        promised = np.einsum("ni,ni->n", slope, step)
        accept = new_value >= value + _SUFFICIENT * np.maximum(promised, 0)

        bend = gradient - new_gradient
        n_parts = 1 + int(np.sum(accept)) * d**2 // _LARGEST_UPDATE
        for part in np.array_split(np.flatnonzero(accept), n_parts):
            inverse[part] = _updated(inverse[part], step[part], bend[part], is_new[part])
        passed.append(proposal[accept])
        position[accept] = proposal[accept]
        value[accept] = new_value[accept]
        gradient[accept] = new_gradient[accept]
        length = np.where(accept, 1.0, _SHORTER * length)
        is_new &= ~accept
    else:
        near = rise < NEARLY
        arrived_at.append(position[near])
        heights.append(value[near])
        targets_left.append(target[near])
    return Ends(
        np.concatenate(arrived_at) * scale,
        np.concatenate(heights),
        np.concatenate(targets_left),
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
