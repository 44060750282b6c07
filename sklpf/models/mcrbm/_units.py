"""Units that modulate the mean and the covariance of a Gaussian: log f, its gradients, and what
trains it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sklpf._utils.numbers import Array
from sklpf.paths._base import density_at, read_only

OFFSET = 0.5  # of the mean square that rows are normalised by: a part of the model


class Units(NamedTuple):
    """log f(z) = sum_k softplus(a_k) + sum_j softplus(b_j) + z @ intercept - |z|² / (2 noise_std²).

    a = intercept_covariance - ½ (factors @ v)² @ pooling with v = z / sqrt(|z|² / d + ½), and b =
    intercept_mean + filters @ z.
    """

    factors: Array  # (F, d)
    pooling: Array  # (F, K), >= 0
    filters: Array  # (J, d)
    intercept_covariance: Array  # (K,)
    intercept_mean: Array  # (J,)
    intercept: Array  # (d,)
    noise_std: float

    def packed(self, constant: float = 0.0) -> Any:
        """The units, with a constant added to log f, as a compiled density."""
        from sklpf.models.mcrbm._path_kernels import PackedUnits

        center = self.noise_std**2 * self.intercept
        return PackedUnits(
            filters=read_only(np.concatenate([self.factors, self.filters])),
            pooling=read_only(self.pooling),
            intercept_covariance=read_only(self.intercept_covariance),
            intercept_mean=read_only(self.intercept_mean),
            center=read_only(center),
            precision=float(self.noise_std) ** -2,
            offset=OFFSET,
            constant=float(constant + 0.5 * center @ self.intercept),
        )

    def log_density(self, z: Array) -> Array:
        """Return log f at points (n, d), shape (n,), in nats."""
        return density_at(self.packed(), z)[0]

    def grad(self, z: Array) -> Array:
        """Return the gradient of log f at points (n, d), shape (n, d)."""
        return density_at(self.packed(), z)[1]

    def inputs(self, z: Array) -> tuple[Array, Array]:
        """Return what goes into the covariance units (n, K) and into the mean units (n, J)."""
        return self._forward(z)[2:]

    def _forward(self, z):
        norms = np.sqrt(np.einsum("ij,ij->i", z, z) / z.shape[1] + OFFSET)[:, np.newaxis]
        u = z @ self.factors.T / norms
        covariance = self.intercept_covariance - 0.5 * u**2 @ self.pooling
        return norms, u, covariance, self.intercept_mean + z @ self.filters.T


def sigmoid(a: Array) -> Array:
    """Return 1 / (1 + exp(-a)), to 1e-16 absolute."""
    return 0.5 * np.tanh(0.5 * a) + 0.5


class UnitsFamily:
    """F factors, K covariance and J mean units on R^d with all parameters in one vector, to be
    trained.

    The square roots of `pooling` and the logarithm of `noise_std` stand for these, which keeps them
    in their ranges.
    """

    def __init__(self, n_factors: int, n_covariance: int, n_mean: int, n_features: int):
        self.n_features = n_features
        self.shapes = (
            (n_factors, n_features),
            (n_factors, n_covariance),
            (n_mean, n_features),
            (n_covariance,),
            (n_mean,),
            (n_features,),
            (),
        )
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes]).tolist()
        self.slices = [slice(*ends_of_part) for ends_of_part in zip([0, *ends[:-1]], ends)]

    def pack(self, units: Units) -> Array:
        """Return the vector of some units."""
        free = units._replace(pooling=np.sqrt(units.pooling), noise_std=np.log(units.noise_std))
        return np.concatenate([np.ravel(part) for part in free])

    def unpack(self, parameters: Array) -> Units:
        """Return the units of a vector."""
        free = Units(*self._parts(parameters))
        return free._replace(pooling=free.pooling**2, noise_std=float(np.exp(free.noise_std)))

    def _parts(self, parameters):
        return [parameters[part].reshape(shape) for part, shape in zip(self.slices, self.shapes)]

    def log_density(self, parameters: Array, x: Array) -> Array:
        """Return log f at points (n, d), shape (n,), in nats."""
        return self.unpack(parameters).log_density(x)

    def grad(self, parameters: Array, x: Array) -> Array:
        """Return the gradient of log f by the points, shape (n, d)."""
        return self.unpack(parameters).grad(x)

    def packed(self, parameters: Array) -> Any:
        """Return the units as a compiled density."""
        return self.unpack(parameters).packed()

    def grad_parameters(self, parameters: Array, x: Array, weights: Array) -> Array:
        """Return the gradient of weights @ log f by the parameters, shape (P,)."""
        units = self.unpack(parameters)
        roots = self._parts(parameters)[1]
        norms, u, covariance, mean = units._forward(x)
        covariance, mean = (
            sigmoid(inputs) * weights[:, np.newaxis] for inputs in (covariance, mean)
        )
        factors = -(u * (covariance @ units.pooling.T) / norms).T @ x
        pooling = -((u**2).T @ covariance) * roots
        noise = weights @ np.einsum("ij,ij->i", x, x) / units.noise_std**2
        slopes = (
            factors,
            pooling,
            mean.T @ x,
            covariance.sum(axis=0),
            mean.sum(axis=0),
            weights @ x,
            noise,
        )
        return np.concatenate([np.ravel(slope) for slope in slopes])
