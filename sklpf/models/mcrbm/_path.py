"""The path from a mixture of Gaussians to the density of mean and covariance units."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklpf.models.mcrbm._base import PeakMixture, curvature
from sklpf.models.mcrbm._units import OFFSET, Units
from sklpf.partition import HAIS, PartitionEstimator
from sklpf.paths import GeometricPath
from sklpf.paths._geometric import Points
from sklpf.paths._kernel_path import CompiledPrograms, read_only

_N_LEVELS = 5000  # of the default estimator


class MeanCovariancePath(CompiledPrograms, GeometricPath):
    """From a mixture of Gaussians to a MeanCovarianceRBM.

    Chains move in y, x = mean + scale axes @ y, whose axes are those of the covariance units' curvature at 0.

    Parameters
    ----------
    units : Units
        Of z = (x - mean) / scale.
    mean : ndarray of shape (d,)
        Of the rows.
    scale : float
        What differences from it are divided by.

    Examples
    --------
    >>> from sklpf import MeanCovarianceRBM
    >>> model = MeanCovarianceRBM.from_parameters([[1.0, 0.0]], [[1.0]], [[0.0, 1.0]])
    >>> type(model.path()).__name__, model.path().n_dimensions
    ('MeanCovariancePath', 2)
    """

    _kernels = "sklpf.models.mcrbm._path_kernels"
    base: PeakMixture
    tail_doubts = ()  # Gaussian ones with the widest's variance, times at most exp(constant |y|)

    def __init__(self, units: Units, mean: NDArray[np.float64], scale: float):
        axes = np.linalg.eigh(curvature(units))[1]
        turned = {name: getattr(units, name) @ axes for name in ("factors", "filters", "intercept")}
        self.units, self.mean, self.axes = units._replace(**turned), mean, scale * axes
        self.constant = len(mean) * float(np.log(scale))
        super().__init__(self._log_density, grad=self.units.grad, base=PeakMixture(self.units))

    def _log_density(self, y):
        return self.constant + self.units.log_density(y)

    def default_estimator(self) -> PartitionEstimator:
        """Return what a model's ``partition_estimator=None`` stands for.

        Returns
        -------
        PartitionEstimator
            Not fitted.
        """
        return HAIS(n_temperatures=_N_LEVELS)

    def rows(self, state: Points) -> NDArray[np.float64]:
        """Return x of the chains.

        Parameters
        ----------
        state : Points
            The chains.

        Returns
        -------
        ndarray of shape (n, d)
            In the model's coordinates.
        """
        return self.mean + state.position @ self.axes.T

    @property
    def packed(self) -> Any:
        """The units as compiled programs take them."""
        from sklpf.models.mcrbm._path_kernels import PackedUnits

        units, base = self.units, self.base
        constant = self.constant + 0.5 * float(base.center @ units.intercept)
        return PackedUnits(
            read_only(np.concatenate([units.factors, units.filters])), read_only(units.pooling),
            read_only(units.intercept_covariance), read_only(units.intercept_mean),
            base.center, base.precisions, base.log_norms, OFFSET, constant,
        )  # fmt: skip
