"""Gaussians at several modes of a density."""

from __future__ import annotations

import numpy as np

from sklpf.paths._base_numbers import Array
from sklpf.paths._bases import Gaussian, Mixture
from sklpf.paths._climbs import climb, functions_for_climbs
from sklpf.paths._mode import Function

_SAME = 1.0  # standard deviations between modes that count as one
_LEAST_WEIGHT = 0.01


def gaussians_at_modes(
    log_density: Function, starts: Array, grad: Function | None, factor: float
) -> Mixture:
    """Return what `Gaussian.at_modes` says."""
    values, slopes = functions_for_climbs(log_density, grad)
    spread = starts.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    ends = climb(slopes, starts, scale, None)
    position = ends.position[np.argsort(-ends.log_density)]
    gaussians: list[Gaussian] = []
    while len(position):
        try:
            found = Gaussian.at_mode(log_density, position[0], grad=grad, factor=factor)
        except ValueError:
            position = position[1:]
            continue
        if all(_distances(part, found.mean[np.newaxis])[0] > _SAME for part in gaussians):
            gaussians.append(found)
        position = position[1:]
        position = position[_distances(found, position) > _SAME]
    if not gaussians:
        raise ValueError(
            f"no mode of log_density was found from {len(starts)} starts: give starts at which it"
            " is finite, near its modes, or the base itself"
        )
    means = np.array([part.mean for part in gaussians])
    log_masses = values(means) - [part.log_density(part.mean[np.newaxis])[0] for part in gaussians]
    masses = np.exp(log_masses - log_masses.max())
    return Mixture(gaussians, np.maximum(masses / masses.sum(), _LEAST_WEIGHT))


def _distances(gaussian: Gaussian, points: Array) -> Array:
    """Distances of points (n, d) from the mean, in standard deviations, (n,)."""
    return np.sqrt(gaussian.squared_distances(points))
