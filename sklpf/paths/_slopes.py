"""Ellipsoids on slopes that climbs have passed: parts of a density without a mode, such as the neck
of a funnel.
"""

from __future__ import annotations

import numpy as np

from sklpf.paths._climbs import (
    LARGEST_CURVATURE,
    NO_CURVATURE,
    Array,
    Ellipsoid,
    LogDensity,
    Slopes,
    cholesky_root,
    composed,
    widths_around,
)

_MOST_TRIED = 80
_WORK = int(4e4)  # squares of dimensions
_MOST_REGIONS = 20
_LEAST = 1e-3  # of the largest mass by Laplace's method: what has less is left out
_APART = 1.5  # radii from a mode, so that its ellipsoid is left as it is
_STEP = 0.1  # of differences between slopes, in widths


@np.errstate(all="ignore")  # far out anything may happen
def ellipsoids_on_slopes(
    log_density: LogDensity,
    slopes: Slopes,
    passed: Array,
    known: list[Ellipsoid],
    scale: Array,
    bounds: Array | None,
    rng: np.random.Generator,
) -> list[Ellipsoid]:
    """Return ellipsoids around points that climbs have passed, those with most mass first.

    Parameters
    ----------
    log_density, slopes : callable
        Of the target.
    passed : ndarray of shape (n, d)
        Points on the way of climbs; some are tried.
    known : list of Ellipsoid
        Those around modes, near which no point is tried.
    scale : ndarray of shape (d,)
        Units of the coordinates.
    bounds : ndarray of shape (2, d) or None
        The box that the target is integrated over.
    rng : Generator
        Of random numbers.

    Returns
    -------
    list of Ellipsoid
        No centre lies within another one.
    """
    n_tried = min(_MOST_TRIED, _WORK // len(scale) ** 2)
    tried = rng.permutation(passed)[: 2 * n_tried]
    for each in known:
        tried = tried[~each.contain(tried, _APART)]
    found = [_ellipsoid(log_density, slopes, point, scale, bounds) for point in tried[:n_tried]]
    if not found:
        return []
    # By Laplace's method, up to what all have in common.
    heights = log_density(np.array([each.centre for each in (*known, *found)]))
    log_masses = heights - [np.log(np.abs(np.diag(each.factor))).sum() for each in (*known, *found)]
    least = log_masses.max() + np.log(_LEAST)
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


def _ellipsoid(log_density, slopes, centre, scale, bounds) -> Ellipsoid:
    """Its precision is the absolute curvature of log f, and for the slope s that of exp(-(s x)^2 /
    2), within which f changes by a factor of e.
    """
    d = len(centre)
    low, high = np.full((2, d), [[-np.inf], [np.inf]]) if bounds is None else bounds
    widths = widths_around(log_density, centre, scale, low, high)
    moves = np.diag(_STEP * widths)
    points = np.concatenate([centre + moves, centre - moves, centre[np.newaxis]])
    gradients = slopes(points, np.broadcast_to(_STEP**2 * widths, points.shape))[1] * widths
    if not np.all(np.abs(gradients) < LARGEST_CURVATURE):
        return Ellipsoid(centre, np.diag(1 / widths), np.zeros(d), np.zeros(d))
    curvature = (gradients[d:-1] - gradients[:d]) / (2 * _STEP)
    values, axes = np.linalg.eigh((curvature + curvature.T) / 2)
    precision = (axes * np.maximum(np.abs(values), NO_CURVATURE)) @ axes.T
    precision += np.outer(gradients[-1], gradients[-1])
    precision = composed(*np.linalg.eigh(precision))
    factor = cholesky_root(precision / np.outer(widths, widths))
    slope = np.linalg.solve(factor.T, gradients[-1] / widths)
    return Ellipsoid(centre, factor, np.zeros(d), slope / max(1.0, np.linalg.norm(slope)))
