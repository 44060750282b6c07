"""MeanCovarianceRBM: hidden units that modulate the mean and the covariance of a Gaussian."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import expit

from sklpf._utils.numbers import Array
from sklpf._utils.validation import (
    at_least,
    check_components,
    check_fitted,
    check_scale,
    check_vector,
)
from sklpf.models._energy_based import CompiledFamily, EnergyBasedModel
from sklpf.models.mcrbm._path import MeanCovariancePath, Units
from sklpf.paths import density_at

_POOLING = 0.01  # share of the weights that training starts from
_COUNT = [at_least(1), None]


@dataclass(eq=False, repr=False)
class MeanCovarianceRBM(EnergyBasedModel):
    """Mean-covariance restricted Boltzmann machine (Ranzato & Hinton 2010; Sohl-Dickstein &
    Culpepper 2012, eq. 39-40).

    A density of real rows, marginalised over binary hidden units: covariance units, which say which
    filter outputs are small, and mean units, which shift the mean. A Gaussian bounds it. With ``z =
    (x - mean_) / scale_`` and ``n² = |z|² / n_features + ½``::

        log f(x) = sum_k softplus(intercept_covariance_[k] - ½ sum_f pooling_[f, k] (factors_[f] @
        z)² / n²)
                   + sum_j softplus(intercept_mean_[j] + mean_components_[j] @ z)
                   + intercept_visible_ @ z - |z|² / (2 noise_std_²)

    Far out the Gaussian dominates, so that every such f has a finite normaliser. It is estimated.

    Parameters
    ----------
    n_factors : int or None, default=None
        Filters whose squared outputs are pooled. None: n_features.
    n_covariance : int or None, default=None
        Covariance units. None: n_features.
    n_mean : int or None, default=None
        Mean units. None: n_features.
    algorithm : {"pcd", "mpf"}, default="pcd"
        Persistent contrastive divergence with Hamiltonian Monte Carlo, or minimum probability flow
        with Hamiltonian connectivity.
    learning_rate : float, default=0.01
        Initial learning rate of "pcd". It is lowered twice, when the log-likelihood no longer
        rises.
    batch_size : int, default=200
        Rows in a minibatch of "pcd". A pass goes through fewer than 50 minibatches several times.
    n_chains : int, default=500
        Persistent chains of "pcd".
    n_leapfrog : int, default=5
        Steps of their trajectories.
    max_iter : int, default=200
        Largest number of passes over the data; for "mpf" of rounds of L-BFGS.
    tol : float or None, default=0.01
        Training has settled when the mean log-likelihood of 5 passes ("mpf": 15) exceeds that of
        the 5 (15) before by less than this (nats a row).
        None makes `max_iter` passes, with learning rates that are lowered after a half and three
        quarters of them: log Z, which takes most of the time, is then not estimated on the way,
        and there are no `loss_curve_` and `converged_`.
    verbose : int, default=0
        Whether to print the log-likelihood after a pass, at most once a second.
    random_state : int, RandomState or None, default=None
        Seed of training and of the estimate of log Z.
    partition_estimator : PartitionEstimator or None, default=None
        How log Z is estimated; None is `HAIS` with 5000 levels. If its `random_state` or `n_jobs`
        is None, that of the model is used.
    on_nonconvergence : {"warn", "nan", "raise"}, default="warn"
        What `score` and `score_samples` do when log Z can't be trusted: return the number with a
        ConvergenceWarning, return NaN and log why (logger "sklpf"), or raise RuntimeError.
    n_jobs : int or None, default=None
        For the chains that estimate log Z, in threads unless ``joblib.parallel_config`` says
        otherwise, and for those of training, always in threads. Never changes a number.

    Attributes
    ----------
    factors_ : ndarray of shape (n_factors, n_features)
    pooling_ : ndarray of shape (n_factors, n_covariance)
        Weights of the factors in the covariance units, not negative.
    mean_components_ : ndarray of shape (n_mean, n_features)
    intercept_covariance_ : ndarray of shape (n_covariance,)
    intercept_mean_ : ndarray of shape (n_mean,)
    intercept_visible_ : ndarray of shape (n_features,)
    noise_std_ : float
        Standard deviation of the Gaussian, in units of `scale_`; it is learned.
    mean_ : ndarray of shape (n_features,)
        Mean of the rows.
    scale_ : float
        Standard deviation of all values of X about it, one number for all features.
    loss_curve_ : ndarray of shape (`n_iter_`,)
        Mean negative log-likelihood of X after every pass, in nats, by a short estimate of log Z.
    n_iter_ : int
        Passes made.
    converged_ : bool
        Whether training has settled.
    log_partition_, log_partition_std_error_, log_partition_interval_, partition_estimator_
        See `estimate_log_partition`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The model is for features of equal scale: whiten or standardise rows before, as in
    ``make_pipeline(PCA(whiten=True), MeanCovarianceRBM())``. `fit` subtracts the mean and divides
    by one number, which makes it independent of the unit that all features are measured in, and of
    nothing else. The ½ in n² is then half the mean square of the rows. With ``mean_ = 0`` and
    ``scale_ = 1``, as `from_parameters` has them, f is the published form.

    Training starts from one factor for every covariance unit, with little pooling besides, and
    learns the square roots of `pooling_`, which keeps it from turning negative. The published code
    has the negative of `pooling_`, ``noise_std_ = 1``, and factors of equal lengths.

    Rows with most covariance units on are short: a narrow peak around `mean_` with much of the mass
    (half of it in a model of 10-dimensional image patches). Chains from the wide Gaussian that is
    left of f without units seldom find it; with that base parallel tempering was 20 standard errors
    off and called converged. The base is therefore a mixture: that Gaussian, and ten whose
    precision has ever more of the curvature that the covariance units give f at 0.

    Mean units that pull alike can hold most of the mass far from all rows, where no chain of
    training or of `HAIS` goes: a model of 36 units of a kind on patches of two photographs has a
    log Z above 93, and `HAIS` found 60.5. Draws around such points bound log Z from below
    (`bound_draws`), and an estimate that is below them is not converged.

    References
    ----------
    Ranzato, M. & Hinton, G. E. (2010). Modeling pixel means and covariances using factorized
    third-order Boltzmann machines. CVPR. Sohl-Dickstein, J. & Culpepper, B. J. (2012). Hamiltonian
    annealed importance sampling for partition function estimation. arXiv:1205.1925.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import MeanCovarianceRBM
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3)) * rng.choice([0.3, 1.5], size=(500, 1))
    >>> model = MeanCovarianceRBM(algorithm="mpf", tol=0.1, random_state=0).fit(X)
    >>> model.transform(X).shape
    (500, 6)
    """

    n_factors: int | None = None
    n_covariance: int | None = None
    n_mean: int | None = None

    _rescale_chains = True  # rows with all covariance units on are short, with few on they are long
    _parameter_constraints = {
        **EnergyBasedModel._parameter_constraints,
        "n_factors": _COUNT,
        "n_covariance": _COUNT,
        "n_mean": _COUNT,
    }

    @classmethod
    def from_parameters(
        cls,
        factors,
        pooling,
        mean_components,
        *,
        intercept_covariance=None,
        intercept_mean=None,
        intercept_visible=None,
        noise_std=1.0,
        mean=None,
        scale=1.0,
        **parameters,
    ) -> Self:
        """Return a fitted model with known parameters.

        Parameters
        ----------
        factors : array-like of shape (n_factors, n_features)
            Filters of the covariance units.
        pooling : array-like of shape (n_factors, n_covariance)
            Not negative.
        mean_components : array-like of shape (n_mean, n_features)
            Weights of the mean units.
        intercept_covariance, intercept_mean, intercept_visible, mean : array-like, optional
            Intercepts and mean, of shapes (n_covariance,), (n_mean,), (n_features,) and
            (n_features,). None is 0.
        noise_std, scale : float, default=1.0
            The attributes `noise_std_` and `scale_`.
        **parameters
            Parameters of the constructor, such as `partition_estimator` or `random_state`.

        Returns
        -------
        model : MeanCovarianceRBM

        Raises
        ------
        ValueError
            If a value is not finite or not in its range, or a shape does not fit.
        """
        arrays = {"factors": factors, "pooling": pooling, "mean_components": mean_components}
        factors, pooling, filters = (
            check_components(array, name) for name, array in arrays.items()
        )
        n_factors, n_features = factors.shape
        n_covariance = pooling.shape[1]
        n_mean = len(filters)
        shapes = {"pooling": (n_factors, n_covariance), "mean_components": (n_mean, n_features)}
        for name, array in zip(shapes, (pooling, filters)):
            if array.shape != shapes[name]:
                raise ValueError(
                    f"{name} must have shape {shapes[name]} to fit the others, got {array.shape}"
                )
        if not np.all(pooling >= 0):
            raise ValueError("pooling must not be negative: it adds squares of factor outputs up")
        for name, value in {"noise_std": noise_std, "scale": scale}.items():
            check_scale(value, name)
        sizes = {"n_factors": n_factors, "n_covariance": n_covariance, "n_mean": n_mean}
        model = cls(**{**sizes, **parameters})
        model._be_known(n_features)
        units = Units(
            factors,
            pooling,
            filters,
            check_vector(intercept_covariance, n_covariance, "intercept_covariance", default=0.0),
            check_vector(intercept_mean, n_mean, "intercept_mean", default=0.0),
            check_vector(intercept_visible, n_features, "intercept_visible", default=0.0),
            float(noise_std),
        )
        model._n_features_out = n_covariance + n_mean
        model.mean_ = check_vector(mean, n_features, "mean", default=0.0)
        model.scale_ = float(scale)
        model._keep(units)
        return model

    # -- training
    def _begin(self, X, rng):
        n_features = X.shape[1]
        sizes = (self.n_factors, self.n_covariance, self.n_mean)
        n_factors, n_covariance, n_mean = (n_features if n is None else n for n in sizes)
        self.mean_ = X.mean(axis=0)
        self.scale_ = float(np.sqrt(np.mean((X - self.mean_) ** 2))) or 1.0
        self._n_features_out = n_covariance + n_mean
        family = UnitsFamily(n_factors, n_covariance, n_mean, n_features)
        return family, family.pack(_first_units(family, rng))

    def _shown(self):
        units = self._units()
        family = UnitsFamily(*units.pooling.shape, *units.filters.shape)
        return family, family.pack(units)

    def _coordinates(self, X):
        return (X - self.mean_) / self.scale_

    @property
    def _log_volume(self) -> float:  # type: ignore[override]
        return -len(self.mean_) * float(np.log(self.scale_))

    def _family_path(self, family, parameters):
        return MeanCovariancePath(family.unpack(parameters), np.zeros(family.n_features), 1.0)

    def _store(self, family, parameters):
        self._keep(family.unpack(parameters))

    def _keep(self, units):
        for name, value in zip(self._unit_attributes, units):
            setattr(self, name, value)

    _positive = ("noise_std_", "scale_")
    _not_negative = ("pooling_",)
    _fitted_shapes = {
        "factors_": ("n_factors", "n_features"),
        "pooling_": ("n_factors", "n_covariance"),
        "mean_components_": ("n_mean", "n_features"),
        "intercept_covariance_": ("n_covariance",),
        "intercept_mean_": ("n_mean",),
        "intercept_visible_": ("n_features",),
        "noise_std_": (),
        "mean_": ("n_features",),
        "scale_": (),
    }

    # -- use
    def transform(self, X) -> Array:
        """Probabilities that hidden units are on, given the rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_covariance + n_mean)
            Probabilities of the covariance units, then of the mean units, to be on.
        """
        return expit(
            np.concatenate(self._units().inputs(self._coordinates(self._scorable(X))), axis=1)
        )

    def path(self) -> MeanCovariancePath:
        """Return the path from a Gaussian to this model.

        Returns
        -------
        path : MeanCovariancePath

        Raises
        ------
        ValueError
            If a fitted attribute holds NaN or infinity.
        """
        check_fitted(self)
        return MeanCovariancePath(self._units(), self.mean_, self.scale_)

    _unit_attributes = tuple(_fitted_shapes)[: len(Units._fields)]  # in the order of `Units`

    def _units(self):
        return Units(*(getattr(self, name) for name in self._unit_attributes))

    def _log_density(self, X):
        return density_at(self._units().packed(), self._coordinates(X))[0]


class UnitsFamily(CompiledFamily):
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
        self.ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes])[:-1]

    def pack(self, units: Units) -> Array:
        """Return the vector of some units."""
        free = units._replace(pooling=np.sqrt(units.pooling), noise_std=np.log(units.noise_std))
        return np.concatenate([np.ravel(part) for part in free])

    def unpack(self, parameters: Array) -> Units:
        """Return the units of a vector."""
        free = Units(*self._parts(parameters))
        return free._replace(pooling=free.pooling**2, noise_std=float(np.exp(free.noise_std)))

    def _parts(self, parameters):
        parts = np.split(parameters, self.ends)
        return [part.reshape(shape) for part, shape in zip(parts, self.shapes)]

    def packed(self, parameters: Array) -> Any:
        """Return the units as a compiled density."""
        return self.unpack(parameters).packed()

    def grad_parameters(self, parameters: Array, x: Array, weights: Array) -> Array:
        """Return the gradient of weights @ log f by the parameters, shape (P,)."""
        units = self.unpack(parameters)
        roots = self._parts(parameters)[1]
        norms, u, covariance, mean = units._forward(x)
        covariance, mean = (expit(inputs) * weights[:, np.newaxis] for inputs in (covariance, mean))
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


def _first_units(family, rng) -> Units:
    """Every covariance unit sees a factor of its own, and every factor is seen."""
    factor_length = 0.2
    mean_component = 0.05
    covariance_intercept = 2.0  # these units are on, mean units off
    mean_intercept = -2.0
    (n_factors, n_features), (_, n_covariance), (n_mean, _) = family.shapes[:3]
    factors = rng.standard_normal((n_factors, n_features))
    factors *= factor_length / np.linalg.norm(factors, axis=1, keepdims=True)
    pooling = _POOLING * rng.random((n_factors, n_covariance))
    pairs = np.arange(max(n_factors, n_covariance))
    pooling[pairs % n_factors, pairs % n_covariance] = 1.0
    return Units(
        factors,
        pooling,
        mean_component * rng.standard_normal((n_mean, n_features)),
        np.full(n_covariance, covariance_intercept),
        np.full(n_mean, mean_intercept),
        np.zeros(n_features),
        1.0,
    )
