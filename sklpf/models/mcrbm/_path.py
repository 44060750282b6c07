"""The path from a Gaussian to the density of mean and covariance units."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklpf.models.mcrbm._units import OFFSET, Units
from sklpf.partition import ParallelTempering, PartitionEstimator
from sklpf.paths import Gaussian, GeometricPath
from sklpf.paths._geometric import Points
from sklpf.paths._kernel_path import read_only


class MeanCovariancePath(GeometricPath):
    """From N(noise_std² intercept, noise_std² I), what is left without units, to a MeanCovarianceRBM.

    Chains move in z = (x - mean) / scale.

    Parameters
    ----------
    units : Units
        Of z.
    mean : ndarray of shape (d,)
    scale : float
    """

    base: Gaussian
    tails_are_known = True  # Gaussian ones with the base's variance, times at most exp(constant |z|)

    def __init__(self, units: Units, mean: NDArray[np.float64], scale: float):
        self.units, self.mean, self.scale = units, mean, scale
        self.constant = len(mean) * float(np.log(scale))
        variance = units.noise_std**2
        base = Gaussian(variance * units.intercept, variance)
        super().__init__(self._log_density, grad=units.grad, base=base)

    def _log_density(self, z):
        return self.constant + self.units.log_density(z)

    def default_estimator(self) -> PartitionEstimator:
        """Return what a model's ``partition_estimator=None`` stands for: annealing rarely finds the short rows."""
        return ParallelTempering()

    def rows(self, state: Points) -> NDArray[np.float64]:
        """Return x of the chains, shape (n, d)."""
        return self.mean + self.scale * state.position

    @property
    def packed(self) -> Any:
        """The units as compiled programs take them."""
        from sklpf.models.mcrbm._path_kernels import PackedUnits

        units, base = self.units, self.base.packed
        constant = self.constant + 0.5 * float(base.mean @ units.intercept) - base.log_norm
        return PackedUnits(
            read_only(np.concatenate([units.factors, units.filters])), read_only(units.pooling),
            read_only(units.intercept_covariance), read_only(units.intercept_mean), base.mean,
            units.noise_std**-2, OFFSET, constant, base.log_norm,
        )  # fmt: skip

    def kernel(self, name: str) -> Any:
        """Return one of the compiled programs."""
        from sklpf.models.mcrbm import _path_kernels

        return getattr(_path_kernels, name)
