"""Widths and curvatures of a log density around a point, and its mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import linalg, optimize

from sklpf._utils.numbers import Array, Integers
from sklpf.paths._box import Box
from sklpf.paths._climbs import LogDensity, Slopes
from sklpf.paths._functions import values_of_shape

Function = Callable[[Array], Array]
NEAR_A_SIDE = 0.05  # widths
_INSTEAD = (
    "give another start, or the base itself as Gaussian(mean, covariance), such as the prior; a"
    " hierarchy may have a mode in its non-centred form"
)


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
