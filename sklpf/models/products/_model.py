"""ProductOfExperts: linear filters whose outputs follow heavy-tailed densities, multiplied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma

from sklpf._utils.numbers import Array
from sklpf._utils.sklearn import StrOptions
from sklpf._utils.validation import at_least, check_components, check_fitted, check_vector
from sklpf._utils.warnings import warn
from sklpf.models._energy_based import CompiledFamily, EnergyBasedModel
from sklpf.models.products._path import (
    SMALLEST_TRUSTED_INDEX,
    Experts,
    ProductPath,
    closed_log_partition,
    dependent_flats,
    index_of_bases,
)
from sklpf.paths import density_at
from sklpf.scoring import Scored, report

_LARGEST_LOG_EXPONENT = 20.0  # such an expert is a Gaussian


@dataclass(eq=False, repr=False)
class ProductOfExperts(EnergyBasedModel):
    """Product of experts, a density of sparse filter outputs (Hinton 2002; Sohl-Dickstein &
    Culpepper 2012, eq. 36-38).

    log f(x) = -sum_l E_l(u_l) with ``u = components_ @ (x - mean_)`` and Student-t experts ``E_l(u)
    = exponents_[l] log(1 + u²)``, or Laplace ones ``E_l(u) = |u|``. With as many components as
    features it is independent component analysis with these densities, and log Z is known in closed
    form; with more, log Z is estimated.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of experts. None: n_features. With fewer experts than features the filters are in the
        space of as many principal components of X, and rows have no likelihood: `score` is -inf,
        since the density has no normaliser.
    expert : {"student_t", "laplace"}, default="student_t"
    algorithm : {"pcd", "mpf", "ml"}, default="pcd"
        Persistent contrastive divergence with Hamiltonian Monte Carlo; minimum probability flow
        with Hamiltonian connectivity; or maximum likelihood by L-BFGS, if log Z has a closed form
        (n_components = n_features).
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
        Largest number of passes over the data; for "mpf" and "ml" of rounds of L-BFGS.
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
        How log Z is estimated. None is `Exact` with n_features components, else `HAIS`. If its
        `random_state` or `n_jobs` is None, that of the model is used.
    on_nonconvergence : {"warn", "nan", "raise"}, default="warn"
        What `score` and `score_samples` do when log Z can't be trusted: return the number with a
        ConvergenceWarning, return NaN and log why (logger "sklpf"), or raise RuntimeError.
    n_jobs : int or None, default=None
        For the chains that estimate log Z, in threads unless ``joblib.parallel_config`` says
        otherwise, and for those of training, always in threads. Never changes a number.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Filters; `transform` returns their outputs.
    exponents_ : ndarray of shape (n_components,)
        Exponents of the Student-t experts; 1 for Laplace ones.
    mean_ : ndarray of shape (n_features,)
        Mean of the rows, which is subtracted.
    loss_curve_ : ndarray of shape (`n_iter_`,)
        Mean negative log-likelihood of X after every pass, in nats, by a short estimate of log Z if
        it isn't closed. With fewer components than features, where rows have none, that of their
        projections onto the span of the filters, a density on a space of n_components dimensions.
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
    A product of Student-t experts has a finite integral if its tail index is above 0. Along a
    direction the experts whose filters are orthogonal to it stay as they are, and all others fall;
    so the index is the minimum of 2 (sum of the exponents outside F) - (n_features - rank F) over
    all F, sets of filters that hold every filter in their span, but the set of all. If any
    n_features of the filters are independent, that is the minimum over r = 1 … n_features of 2 (sum
    of the n_components - n_features + r smallest exponents) - r; repeated filters make it smaller.
    `score` raises an error for a product without normaliser. Training raises the smallest exponents
    if the index would fall below 1 (0.5 if log Z has a closed form): with a smaller index chains
    can't be trusted. The base for the estimate of log Z is a multivariate t with this index (at
    most 8) as its degrees of freedom: with lighter tails estimates would be wrong without an alarm.

    Training runs in coordinates in which the rows have unit covariance.

    References
    ----------
    Hinton, G. E. (2002). Training products of experts by minimizing contrastive divergence. Neural
    Computation 14. Sohl-Dickstein, J. & Culpepper, B. J. (2012). Hamiltonian annealed importance
    sampling for partition function estimation. arXiv:1205.1925.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import ProductOfExperts
    >>> mixing = np.array([[1, 0.5, 0], [0, 1, 0], [0, 0.3, 2]])
    >>> X = np.random.default_rng(0).laplace(size=(500, 3)) @ mixing
    >>> model = ProductOfExperts(expert="laplace", algorithm="ml", random_state=0)
    >>> model = model.fit(X)
    >>> bool(model.score(X) > -6.0)
    True
    """

    n_components: int | None = None
    expert: Literal["student_t", "laplace"] = "student_t"

    _parameter_constraints = {
        **EnergyBasedModel._parameter_constraints,
        "n_components": [at_least(1), None],
        "expert": [StrOptions({"student_t", "laplace"})],
        "algorithm": [StrOptions({"pcd", "mpf", "ml"})],
    }

    @classmethod
    def from_parameters(cls, components, exponents=None, mean=None, **parameters) -> Self:
        """Return a fitted model with known parameters.

        Parameters
        ----------
        components : array-like of shape (n_components, n_features)
            Filters of the experts.
        exponents : array-like of shape (n_components,) or None, default=None
            Exponents of the Student-t experts, above 0. None: the experts are Laplace ones.
        mean : array-like of shape (n_features,) or None, default=None
            None is 0.
        **parameters
            Parameters of the constructor, such as `partition_estimator` or `random_state`.

        Returns
        -------
        model : ProductOfExperts

        Raises
        ------
        ValueError
            If a value is not finite, a shape does not fit, or the product has no normaliser.
        """
        components = check_components(components)
        n_components, n_features = components.shape
        expert = "laplace" if exponents is None else "student_t"
        model = cls(**{"n_components": n_components, "expert": expert, **parameters})
        model._be_known(n_features)
        model.components_ = components
        model._n_features_out = n_components
        model.exponents_ = check_vector(exponents, n_components, "exponents", default=1.0)
        if not np.all(model.exponents_ > 0):
            raise ValueError("exponents must be above 0: raise the smallest ones")
        model.mean_ = check_vector(mean, n_features, "mean", default=0.0)
        model._heavy = exponents is not None
        model.path()
        return model

    # -- training
    def _begin(self, X, rng):
        strength = 1.5  # sum of the exponents, in n_features
        n_features = X.shape[1]
        n_components = n_features if self.n_components is None else self.n_components
        if self.algorithm == "ml" and n_components > n_features:
            raise ValueError(
                'algorithm="ml" needs n_components = n_features, for which log Z is closed: choose'
                ' "pcd"'
            )
        self.mean_ = X.mean(axis=0)
        self._whitening = _whitening(X, min(n_components, n_features))
        self._n_features_out = n_components
        self._heavy = self.expert == "student_t"
        improper = _why_improper(n_components, n_features)
        if improper:
            warn(improper)
        d = self._whitening.shape[1]
        filters = rng.standard_normal((n_components, d))
        filters /= np.linalg.norm(filters, axis=1, keepdims=True)
        exponents = np.full(n_components, strength * d / n_components) if self._heavy else None
        family = ProductFamily(n_components, d, self._heavy)
        return family, family.pack(Experts(filters, exponents).whitened()[0])

    def _shown(self):
        experts = self._experts()
        if not hasattr(self, "_whitening"):  # known parameters: coordinates in which f is round
            self._whitening = np.linalg.inv(experts.whitened()[1]).T
        filters = np.linalg.lstsq(self._whitening, experts.filters.T, rcond=None)[0].T
        n_components, d = filters.shape
        family = ProductFamily(n_components, d, self._heavy)
        return family, family.pack(experts._replace(filters=np.ascontiguousarray(filters)))

    def _check_goes_on(self):
        super()._check_goes_on()
        if self._heavy != (self.expert == "student_t"):
            fitted = "student_t" if self._heavy else "laplace"
            raise ValueError(
                f'expert is "{self.expert}", but "{fitted}" was fitted; call fit to begin anew'
            )

    def _coordinates(self, X):
        return (X - self.mean_) @ self._whitening

    @property
    def _log_volume(self) -> float:  # type: ignore[override]
        return 0.5 * float(np.linalg.slogdet(self._whitening.T @ self._whitening)[1])

    def _family_path(self, family, parameters):
        return ProductPath(family.unpack(parameters), np.zeros(family.n_features))

    def _family_log_partition(self, family, parameters):
        experts = family.unpack(parameters)
        if len(experts.filters) == family.n_features:
            return closed_log_partition(experts)
        return super()._family_log_partition(family, parameters)

    def _store(self, family, parameters):
        experts = family.unpack(parameters)
        self.components_ = experts.filters @ self._whitening.T
        self.exponents_ = (
            np.ones(len(experts.filters)) if experts.exponents is None else experts.exponents
        )

    _positive = ("exponents_",)
    _fitted_shapes = {
        "components_": ("n_components", "n_features"),
        "exponents_": ("n_components",),
        "mean_": ("n_features",),
    }

    # -- use
    def transform(self, X) -> Array:
        """Outputs of the filters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        u : ndarray of shape (n_samples, n_components)
            ``components_ @ (x - mean_)`` of every row.
        """
        return (self._scorable(X) - self.mean_) @ self.components_.T

    def path(self) -> ProductPath:
        """Return the path from a base with the right tails to this model.

        Returns
        -------
        path : ProductPath

        Raises
        ------
        ValueError
            If the product has no normaliser.
        """
        check_fitted(self)
        return ProductPath(self._experts(), self.mean_)

    def _scored(self, X, level=None, tolerates=True):
        check_fitted(self)
        improper = _why_improper(*self.components_.shape)
        if not improper:
            return super()._scored(X, level, tolerates)
        n_rows = len(self._validate(X))
        reason = f"rows have no likelihood: {improper}"
        report(self, reason)
        value = np.nan if self.on_nonconvergence == "nan" else -np.inf
        return Scored(np.full(n_rows, value), below=0.0, above=0.0, reasons=(reason,))

    def _experts(self):
        return Experts(self.components_, self.exponents_ if self._heavy else None)

    def _log_density(self, X):
        return density_at(self._experts().packed, X - self.mean_)[0]


def _why_improper(n_components: int, n_features: int) -> str:
    """Why a product has no normaliser, where it has too few experts; else empty."""
    if n_components >= n_features:
        return ""
    return (
        f"n_components={n_components} is below n_features={n_features}, so that the density is"
        " constant along some direction and has no normaliser; raise it, or project X onto"
        " fewer features before"
    )


@dataclass(eq=False, repr=False)
class ProductFamily(CompiledFamily):
    """Products of K experts on R^d with parameters [filters, log exponents] in one vector, to be
    trained.

    Parameters
    ----------
    n_components, n_features : int
        K and d.
    heavy : bool
        Student-t experts, which have exponents, instead of Laplace ones.
    """

    n_components: int
    n_features: int
    heavy: bool

    def pack(self, experts: Experts) -> Array:
        """Return the vector of some experts."""
        parts = [experts.filters.ravel()]
        if experts.exponents is not None:
            parts.append(np.log(experts.exponents))
        return np.concatenate(parts)

    def unpack(self, parameters: Array) -> Experts:
        """Return the experts of a vector."""
        n_weights = self.n_components * self.n_features
        filters = parameters[:n_weights].reshape(self.n_components, self.n_features)
        rest = parameters[n_weights:]
        exponents = np.exp(np.minimum(rest, _LARGEST_LOG_EXPONENT)) if self.heavy else None
        return Experts(filters, exponents)

    def packed(self, parameters: Array) -> Any:
        """Return the product as a compiled density."""
        return self.unpack(parameters).packed

    def grad_parameters(self, parameters: Array, x: Array, weights: Array) -> Array:
        """Return the gradient of weights @ log f by the parameters, shape (P,)."""
        experts = self.unpack(parameters)
        u = x @ experts.filters.T
        parts = [-((experts.forces(u) * weights[:, np.newaxis]).T @ x).ravel()]
        if experts.exponents is not None:
            parts.append(-experts.exponents * (weights @ np.log1p(u**2)))
        return np.concatenate(parts)

    def project(self, parameters: Array) -> Array:
        """Return parameters of a product with a normaliser: exponents that are too small are raised
        to a common one. Filters must span R^d, else none has.
        """
        smallest_closed_index = 0.5  # of tails, that training allows where log Z is closed
        if not self.heavy or not np.all(np.isfinite(parameters)):
            return parameters
        experts = self.unpack(parameters)
        assert experts.exponents is not None  # checked by heavy
        smallest = (
            smallest_closed_index
            if self.n_components == self.n_features
            else SMALLEST_TRUSTED_INDEX
        )
        exponents = experts.exponents
        if index_of_bases(experts.filters, exponents) >= smallest:
            return parameters
        flats = dependent_flats(experts.filters, exponents)

        def excess(log_floor):
            return flats.smallest_index(np.maximum(exponents, np.exp(log_floor))) - smallest

        if excess(-np.inf) >= 0 or excess(_LARGEST_LOG_EXPONENT) < 0:
            return parameters
        floor = brentq(excess, -_LARGEST_LOG_EXPONENT, _LARGEST_LOG_EXPONENT)
        raised = np.maximum(parameters[experts.filters.size :], floor + 1e-9)
        return np.concatenate([parameters[: experts.filters.size], raised])

    def log_partition(self, parameters: Array) -> tuple[float, Array]:
        """Return log Z of a complete product and its gradient (P,); infinite where there is no
        normaliser.
        """
        experts = self.unpack(parameters)
        if experts.exponents is not None and experts.exponents.min() <= 0.5:
            return np.inf, np.zeros_like(parameters)
        parts = [-np.linalg.inv(experts.filters).T.ravel()]
        if experts.exponents is not None:
            parts.append(
                experts.exponents * (digamma(experts.exponents - 0.5) - digamma(experts.exponents))
            )
        return closed_log_partition(experts), np.concatenate(parts)


def _whitening(X, n: int) -> Array:
    """A matrix W with rows (x - mean) @ W of n principal components, of standardised columns, with
    unit variances.

    Directions without variance count as if they had a small one.
    """
    smallest_variance = 1e-6  # of a direction, of standardised columns
    smallest_spread = 1e-90  # of a column of X: of its inverse even products are numbers
    spread = np.ptp(X, axis=0)
    scale = X.std(axis=0)
    if np.any((spread > 0) & (spread < smallest_spread)):
        raise ValueError(
            f"X has columns that vary by less than {smallest_spread:g}, of which squares vanish:"
            " rescale it"
        )
    scale = np.where(scale > 0, scale, 1.0)
    variances, axes = np.linalg.eigh(np.atleast_2d(np.cov((X / scale).T, bias=True)))
    n_flat = int(np.sum(variances[-n:] < smallest_variance))
    if n_flat:
        warn(
            f"X has no variance along {n_flat} of {n} directions (constant columns, or fewer rows"
            " than features): the likelihood there is that of a small one assumed, so drop such"
            " columns or project X onto fewer features"
        )
    return (axes / np.sqrt(np.maximum(variances, smallest_variance)) / scale[:, np.newaxis])[:, -n:]
