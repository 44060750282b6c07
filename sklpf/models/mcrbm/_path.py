"""Mean and covariance units, and the path from a mixture of Gaussians to their density."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from sklpf._utils.numbers import LOG_TAU, Array
from sklpf._utils.random import Stream
from sklpf.models._enumerable_path import BOUND_COST, BOUND_GROUPS, CENTRE_SWEEPS, N_CENTRES
from sklpf.partition import HAIS, PartitionEstimator
from sklpf.paths import CompiledDensityPath, Gaussian, Mixture, density_at, read_only
from sklpf.uncertainty import log_mean_exp

_OFFSET = 0.5  # of the mean square that rows are normalised by: a part of the model
_STRENGTHS = 4.0 ** np.arange(-8, 2)  # of the covariance units' pull, in what it is at 0
_N_LEVELS = 5000  # of the default estimator
# In units of rows divided by scale. Beyond the first, differences of log f show no slope any more.
_LARGEST = {"factors": 1e8, "pooling": 1e8, "noise_std": 1e8, "filters": 1e50}
_SHOWN = {"filters": "mean_components"}


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
            offset=_OFFSET,
            constant=float(constant + 0.5 * center @ self.intercept),
        )

    def inputs(self, z: Array) -> tuple[Array, Array]:
        """Return what goes into the covariance units (n, K) and into the mean units (n, J)."""
        return self._forward(z)[2:]

    def _forward(self, z):
        norms = np.sqrt(np.einsum("ij,ij->i", z, z) / z.shape[1] + _OFFSET)[:, np.newaxis]
        u = z @ self.factors.T / norms
        covariance = self.intercept_covariance - 0.5 * u**2 @ self.pooling
        return norms, u, covariance, self.intercept_mean + z @ self.filters.T


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
            log_volumes - self.n_dimensions / 2 * LOG_TAU - np.log(len(strengths))
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_dimensions={self.n_dimensions})"

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
    weights = units.pooling @ expit(units.intercept_covariance) / _OFFSET
    return (units.factors.T * weights) @ units.factors


class MeanCovariancePath(CompiledDensityPath):
    """Path from a mixture of Gaussians to a MeanCovarianceRBM.

    Chains move in y, x = mean + scale axes @ y, whose axes are those of the covariance units'
    curvature at 0.

    Parameters
    ----------
    units : Units
        The units, as a function of z = (x - mean) / scale.
    mean : ndarray of shape (d,)
        Mean of the rows.
    scale : float
        Divisor of the differences from the mean.

    Examples
    --------
    >>> from sklpf import MeanCovarianceRBM
    >>> model = MeanCovarianceRBM.from_parameters([[1.0, 0.0]], [[1.0]], [[0.0, 1.0]])
    >>> type(model.path()).__name__, model.path().n_dimensions
    ('MeanCovariancePath', 2)
    """

    bound_cost = BOUND_COST
    _kernels = "sklpf.models.mcrbm._path_kernels"
    base: Any
    tail_alarms = ()  # Gaussian ones with the widest's variance, times at most exp(constant |y|)

    def __init__(self, units: Units, mean: Array, scale: float):
        _check_sizes(units)
        axes = np.linalg.eigh(curvature(units))[1]
        turned = {name: getattr(units, name) @ axes for name in ("factors", "filters", "intercept")}
        self.units = units._replace(**turned)
        self.mean = mean
        self.root = scale * axes
        self.constant = len(mean) * float(np.log(scale))
        super().__init__(PeakMixture(self.units))

    def _packed_target(self):
        return self.units.packed(self.constant)

    def default_estimator(self) -> PartitionEstimator:
        """Return what a model's ``partition_estimator=None`` stands for.

        Returns
        -------
        PartitionEstimator
            Not fitted.
        """
        return HAIS(n_temperatures=_N_LEVELS)

    def bound_draws(self, stream: Stream) -> Array:
        """Return log weights (10, 100) of draws from Gaussians around noise_std² (intercept + h @
        filters), alike.

        The h are where 100 Gibbs chains of the mean units, without covariance units, are after 50
        sweeps from units that are on with a probability of each chain's own. Many of them on at
        once can pull most of the mass far out, where neither the base nor forward chains from
        it, nor those of training, ever are.

        Parameters
        ----------
        stream : Stream
            Source of the random numbers.

        Returns
        -------
        log_weights : ndarray of shape (10, 100)
            In nats; the mean weight of each of the ten rows is unbiased for Z.
        """
        units = self.units
        rng = stream.generator()
        variance = units.noise_std**2
        d = self.n_dimensions
        on = rng.random((N_CENTRES, len(units.filters))) < rng.random((N_CENTRES, 1))
        for _ in range(CENTRE_SWEEPS):
            z = variance * (units.intercept + on @ units.filters)
            z += units.noise_std * rng.standard_normal(z.shape)
            on = rng.random(on.shape) < expit(units.intercept_mean + z @ units.filters.T)
        centres = variance * (units.intercept + on @ units.filters)
        log_weights = []
        for _ in range(BOUND_GROUPS):
            z = centres + units.noise_std * rng.standard_normal((N_CENTRES, d))
            parts = (z @ centres.T - 0.5 * np.sum(centres**2, axis=1)) / variance
            log_mixture = log_mean_exp(parts, axis=1) - np.sum(z**2, axis=1) / (2 * variance)
            log_f = self.constant + density_at(units.packed(), z)[0]
            log_weights.append(log_f - log_mixture)
        return np.array(log_weights) + d / 2 * np.log(2 * np.pi * variance)

    def _base_to_mix(self) -> Any:
        base = self.base
        if not isinstance(base, PeakMixture):
            return base
        first, *others = base.precisions
        parts = [Gaussian(np.zeros(len(first)), 1 / precision) for precision in others]
        return Mixture([Gaussian(base.center, 1 / first), *parts])


def _check_sizes(units: Units) -> None:
    """Raise ValueError if a parameter is so large or small that log f can't be computed."""
    smallest_noise = 1e-50
    for name, most in _LARGEST.items():
        largest = float(np.max(np.abs(getattr(units, name)), initial=0.0))
        if largest > most:
            raise ValueError(
                f"{_SHOWN.get(name, name)} must be at most {most:g} in size, got {largest:.3g}:"
                " rescale X or the parameters"
            )
    if units.noise_std < smallest_noise:
        raise ValueError(
            f"noise_std must be at least {smallest_noise:g}, got {units.noise_std:.3g}: rescale X"
            " or raise it"
        )
