"""Ellipsoids on slopes that climbs have passed: parts of a density without a mode, such as the neck
of a funnel.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2

from sklpf.paths._climbs import (
    LARGEST_CURVATURE,
    NO_CURVATURE,
    QUANTILE,
    Array,
    LogDensity,
    Slopes,
    cholesky_root,
    composed,
    log_masses_of,
    widths_around,
)
from sklpf.paths._regions import Regions

_MOST_TRIED = 40
_FEWEST_TRIED = 8
_WORK = int(2e4)  # squares of dimensions
_MOST_REGIONS = 20
_LEAST = 1e-3  # of the largest mass: what is smaller by Laplace's method is not looked at
_STEP = 0.1  # of differences between slopes, in widths


@np.errstate(all="ignore")  # far out anything may happen
def regions_on_slopes(
    log_density: LogDensity,
    slopes: Slopes,
    passed: Array,
    known: Regions,
    scale: Array,
    bounds: Array | None,
    rng: np.random.Generator,
) -> Regions:
    """Return the known regions and others around points that climbs have passed.

    Parameters
    ----------
    log_density, slopes : callable
        Of the target.
    passed : ndarray of shape (n, d)
        Points on the way of climbs; some are tried.
    known : Regions
        Those around modes, within which no point is tried.
    scale : ndarray of shape (d,)
        Units of the coordinates.
    bounds : ndarray of shape (2, d) or None
        The box that the target is integrated over.
    rng : Generator
        Of random numbers.

    Returns
    -------
    Regions
        No centre lies within another region.
    """
    d = len(scale)
    radius = float(np.sqrt(chi2.ppf(QUANTILE, d)))
    n_tried = int(np.clip(_WORK // d**2, _FEWEST_TRIED, _MOST_TRIED))
    tried = rng.permutation(passed)[: 2 * n_tried]
    if len(known.centres):
        tried = tried[~known.contain(tried).any(axis=1)]
    tried = tried[:n_tried]

    factors = [_root_on_a_slope(log_density, slopes, point, scale, bounds) for point in tried]
    log_sizes = [np.log(np.abs(np.diag(factor))).sum() for factor in factors]
    laplace = log_density(tried) + d / 2 * np.log(2 * np.pi) - log_sizes
    least = max(laplace.max(initial=-np.inf), known.log_masses.max(initial=-np.inf))
    least += np.log(_LEAST)

    no_sides = np.zeros(d)
    chosen: list[int] = []
    log_masses = []
    for i in np.argsort(-laplace).tolist():
        if len(chosen) == _MOST_REGIONS or not laplace[i] > least:
            break
        apart = (
            min(np.linalg.norm(factors[k] @ (tried[i] - tried[r])) for k in (i, r)) for r in chosen
        )
        if all(distance > radius for distance in apart):
            chosen.append(i)
            log_masses.append(
                log_masses_of(log_density, tried[i], factors[i], no_sides, radius, bounds, rng)
            )
    if not chosen:
        return known
    found = Regions(
        tried[chosen],
        np.full(len(chosen), radius),
        np.array(log_masses),
        np.array(factors)[chosen],
    )
    return found if not len(known.centres) else Regions(*map(np.concatenate, zip(known, found)))


def _root_on_a_slope(log_density, slopes, centre, scale, bounds) -> Array:
    """An upper triangular R (d, d): R'R is the absolute curvature of log f at a point, and along
    its slope s that of exp(-(s x)^2 / 2), within which f changes by a factor of e.
    """
    d = len(centre)
    low, high = np.full((2, d), [[-np.inf], [np.inf]]) if bounds is None else bounds
    widths = widths_around(log_density, centre, scale, low, high)
    moves = np.diag(_STEP * widths)
    points = np.concatenate([centre + moves, centre - moves, centre[np.newaxis]])
    gradients = slopes(points, np.broadcast_to(_STEP**2 * widths, points.shape))[1] * widths
    curvature = (gradients[d:-1] - gradients[:d]) / (2 * _STEP)
    if not np.all(np.abs(gradients) < LARGEST_CURVATURE):
        return np.diag(1 / widths)
    values, axes = np.linalg.eigh((curvature + curvature.T) / 2)
    precision = (axes * np.maximum(np.abs(values), NO_CURVATURE)) @ axes.T
    precision += np.outer(gradients[-1], gradients[-1])
    precision = composed(*np.linalg.eigh(precision))
    return cholesky_root(precision / np.outer(widths, widths))
