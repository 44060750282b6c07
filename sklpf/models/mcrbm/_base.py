"""The base of mean and covariance units: a mixture of Gaussians, from the wide one to the narrow
peak of short rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sklpf._utils.numbers import Array
from sklpf.models.mcrbm._units import OFFSET, Units, sigmoid
from sklpf.paths import Gaussian, Mixture
from sklpf.paths._kernel_path import density_at, read_only

_STRENGTHS = 4.0 ** np.arange(-8, 2)  # of the covariance units' pull, in what it is at 0


class PeakMixture:
    """Equal parts of N(center, noise_std² I) and of N(0, (I / noise_std² + t H)⁻¹) for some t; it
    is normalised.

    H is the curvature of the covariance units at 0, where most of them are on. Rows there are
    short: a narrow peak with much of the mass, which chains from the wide Gaussian alone would
    seldom find. Points are in H's principal axes.

    Parameters
    ----------
    units : Units
        In coordinates in which `curvature` is diagonal.
    """

    normalised = True

    def __init__(self, units: Units):
        self.center = read_only(units.noise_std**2 * units.intercept)
        self.n_dimensions = len(self.center)
        self.scale = np.full(self.n_dimensions, units.noise_std)
        strengths = np.concatenate([[0.0], _STRENGTHS])[:, np.newaxis]
        self.precisions = read_only(units.noise_std**-2.0 + strengths * np.diag(curvature(units)))
        log_volumes = 0.5 * np.log(self.precisions).sum(axis=1)
        self.log_norms = read_only(
            log_volumes - self.n_dimensions / 2 * np.log(2 * np.pi) - np.log(len(strengths))
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_dimensions={self.n_dimensions})"

    def as_mixture(self) -> Mixture:
        """Return the same base with all components, so that others can join them."""
        zero = np.zeros(self.n_dimensions)
        means = [self.center, *[zero] * (len(self.precisions) - 1)]
        return Mixture([Gaussian(m, 1 / p) for m, p in zip(means, self.precisions)])

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Return n independent draws, shape (n, d)."""
        part = rng.integers(len(self.precisions), size=n)
        draws = rng.standard_normal((n, self.n_dimensions)) / np.sqrt(self.precisions[part])
        return draws + np.where(part[:, np.newaxis] == 0, self.center, 0.0)

    @property
    def packed(self) -> Any:
        """The mixture as a compiled density."""
        from sklpf.models.mcrbm._path_kernels import PackedMixture

        return PackedMixture(self.center, self.precisions, self.log_norms)

    def log_density(self, x: Array) -> Array:
        """Return the log density at points (n, d), shape (n,), in nats."""
        return density_at(self.packed, x)[0]

    def grad_log_density(self, x: Array) -> Array:
        """Return the gradient of `log_density` at points (n, d), shape (n, d)."""
        return density_at(self.packed, x)[1]


def curvature(units: Units) -> Array:
    """Return the negative second derivative of the covariance units' part of log f at 0, (d, d)."""
    weights = units.pooling @ sigmoid(units.intercept_covariance) / OFFSET
    return (units.factors.T * weights) @ units.factors
