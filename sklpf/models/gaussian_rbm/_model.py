"""GaussianRBM: a restricted Boltzmann machine of real numbers with a log-likelihood."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal, Self

import numpy as np
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from sklpf._utils.context import reporting
from sklpf._utils.numbers import Array, Booleans
from sklpf._utils.random import draw_seed
from sklpf._utils.sklearn import StrOptions
from sklpf._utils.validation import (
    INSIDE_0_1,
    TOO_FAR,
    check_components,
    check_fitted,
    check_positive,
    check_vector,
)
from sklpf._utils.warnings import warn
from sklpf.models._enumerable_path import missing_values
from sklpf.models._learning import all_or_nothing
from sklpf.models._missing import KnownRows, check_columns_known, column_moments
from sklpf.models.gaussian_rbm._learning import (
    Coordinates,
    Parameters,
    Trainer,
    completed_by_gaussian,
)
from sklpf.models.gaussian_rbm._missing import GaussianLayers
from sklpf.models.gaussian_rbm._path import GaussianRBMPath, check_basis, columns_of
from sklpf.models.rbm import RBM
from sklpf.training import train

_ARRAYS = {
    "components_": ("n_components", "n_features"),
    "intercept_visible_": ("n_features",),
    "intercept_hidden_": ("n_components",),
    "variances_": ("n_features",),
    "visible_mean_": ("n_features",),
    "visible_variance_": ("n_features",),
}
_BASIS = {"visible_basis_": ("n_features", "n_features")}


@dataclass(eq=False, repr=False)
class GaussianRBM(RBM):
    """Restricted Boltzmann machine of real visible and binary hidden units.

    p(v, h) = exp(-E(v, h)) / Z with

        E(v, h) = sum_i (v_i - b_i)² / (2 s_i²) - sum_j c_j h_j
                  - sum_ij h_j W_ji (v_i - b_i) / s_i²

    where W = `components_`, b = `intercept_visible_`, c = `intercept_hidden_` and s² =
    `variances_`. This is the energy of Cho et al. (2011), with v - b in place of v in the last
    term: c then does not depend on the mean of the data. Given h, v is normal around b + h @ W with
    the variances s²: the model is a mixture of 2 ** n_components Gaussians with one common
    covariance, whose means are sums of components. Its weights are proportional to exp(c @ h +
    sum_i (h @ W)_i² / (2 s_i²)): hidden units are independent only where components are orthogonal
    in units of s. With ``axes="principal"`` v, b and the rows of W stand for their coordinates v B,
    b B and W B, B = `visible_basis_`. The likelihood has local maxima, so compare fits with several
    seeds by their scores. NaN is a value that is not known: scores are those of the known ones.

    Parameters
    ----------
    n_components : int, default=16
        Number of hidden units.
    learning_rate : float, default=0.1
        Length of a step along the gradient. Columns are scaled to variance 1 during training, so
        that it does not depend on the units of the data.
    batch_size : int, default=20
        Rows in a minibatch.
    n_iter : int, default=100
        Passes over the data. Training takes some thousands of minibatches: with few rows raise
        this.
    verbose : int, default=0
        Whether to report, after a pass but at most once a second, which share of the data's
        variance the hidden units leave unexplained, and the progress of the estimation of log Z;
        see `AIS`.
    random_state : int, RandomState or None, default=None
        Seed of the weights, the chains and the estimate of log Z.
    partition_estimator : PartitionEstimator or None, default=None
        How log Z is estimated. None is `Exact` of at most 20 hidden units, else
        `ParallelTempering`. If its `random_state` or `n_jobs` is None, that of the model is used.
    on_nonconvergence : {"warn", "nan", "raise"}, default="warn"
        What `score` and `score_samples` do when log Z can't be trusted: return the number with a
        ConvergenceWarning, return NaN and log why (logger "sklpf"), or raise RuntimeError.
    n_jobs : int or None, default=None
        For the estimation of log Z, in threads unless ``joblib.parallel_config`` says otherwise,
        and for training, always in threads. Never changes a number.
    average : bool or int, default=True
        Whether the parameters are averages over the updates of training, whose log-likelihood
        varies far less than that of the last ones. With True the k-th update has a weight
        proportional to k ** 2. With an int greater than 1 all updates have equal weights, once that
        many rows have been seen.
    learning_rate_schedule : {"constant", "linear"}, default="constant"
        "linear" lowers the learning rate with every update, to 0 after `n_iter` passes.
    n_chains : int or None, default=None
        Persistent chains. None takes `batch_size`.
    axes : {"columns", "principal"}, default="columns"
        Axes along which visible units are independent given the hidden ones. "principal" takes the
        principal axes of the standardised training rows, so that training begins near one Gaussian
        with their covariance: of strongly correlated columns the likelihood is then far higher,
        about that of one Gaussian or above it. Hidden units are left with the rest, and so are
        worse features for a classifier; and where noise is independent by column, "columns" is
        better. The axes are those of the first rows, shrunk where these are few; fewer than three
        distinct ones give none, and train as with "columns". They take ``n_features ** 3``
        operations once, and ``n_features ** 2`` a row. Rows with NaN are completed for the axes by
        draws from one Gaussian, and make training several times as long; `partial_fit` takes none.
    variance_floor : float, default=1e-3
        Least variance of a visible unit given the hidden ones, as a share of its column's variance
        in the data. Without a floor the likelihood has no maximum if a column repeats a value, or
        is determined by others.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Weights: what each hidden unit adds to the means, in the units of the data.
    intercept_visible_, intercept_hidden_ : ndarray of shape (n_features,) and (n_components,)
        Biases.
    variances_ : ndarray of shape (n_features,)
        Variances of the visible units given the hidden ones, of principal axes those of the
        coordinates.
    visible_basis_ : ndarray of shape (n_features, n_features) or None
        B, whose coordinates v B are independent given the hidden units; its determinant is 1 or -1.
        None where they are the columns themselves.
    covariance_ : ndarray of shape (n_features, n_features)
        Covariance of the visible units given the hidden ones.
    visible_mean_, visible_variance_ : ndarray of shape (n_features,)
        Mean and variances of the base from which log Z is computed: those of the training data, of
        principal axes the variances of the coordinates, raised to `variances_` where they are
        smaller.
    log_partition_, log_partition_std_error_, log_partition_interval_ : float, float, tuple of float
        log Z in nats, its standard error and 95 % interval; exist once log Z has been estimated.
    partition_estimator_ : PartitionEstimator
        The fitted estimator of log Z, its ``result_`` without samples; exists once log Z has been
        estimated.
    n_iter_ : int
        Passes of the last `fit`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Cho, K., Ilin, A. & Raiko, T. (2011). Improved learning of Gaussian-Bernoulli restricted
    Boltzmann machines. ICANN. Tieleman, T. (2008). Training restricted Boltzmann machines using
    approximations to the likelihood gradient. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import GaussianRBM
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2)) + 4 * rng.integers(2, size=(500, 1))
    >>> rbm = GaussianRBM(1, random_state=0).fit(X)
    >>> bool(np.all(rbm.variances_ < 0.5 * X.var(axis=0)))
    True
    >>> round(rbm.score(X), 1)
    -3.6
    """

    n_components: int = 16
    _: KW_ONLY
    batch_size: int = 20
    n_iter: int = 100
    axes: Literal["columns", "principal"] = "columns"
    variance_floor: float = 1e-3

    _parameter_constraints = {
        **RBM._parameter_constraints,
        "axes": [StrOptions({"columns", "principal"})],
        "variance_floor": [INSIDE_0_1],
    }

    # -- training
    @all_or_nothing
    @reporting
    def fit(self, X, y=None) -> Self:
        """Fit to X by persistent contrastive divergence, from new weights and chains.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows. NaN is a value that is not known: such values are draws from the model given the
            known ones of their row, which go on for a few Gibbs sweeps before every step
            (stochastic approximation), and begin at the means of their columns, or for principal
            axes at draws from one Gaussian.
        y : ignored
            Not used; there for scikit-learn's conventions.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If X can't be used, or training diverges; the model then stays as it was before.

        Warns
        -----
        ConvergenceWarning
            If a variance has arrived at `variance_floor`, or if rows, of which there are more than
            columns, do not vary along a principal axis.
        """
        X = self._validate(X, reset=True)
        rng = check_random_state(self.random_state)
        missing = self._missing(X)
        check_columns_known(missing)
        if self.axes == "principal" and missing is not None:
            X = completed_by_gaussian(X, rng)
        trainer = self._begin(X, rng, self._choose_coordinates(X), missing=missing)
        self.n_iter_, _ = train(
            trainer,
            self.n_iter,
            report=_report,
            store=lambda model: model._store(trainer),
        )
        self._keep(trainer)
        return self

    @all_or_nothing
    def partial_fit(self, X, y=None) -> Self:
        """Make one step of persistent contrastive divergence on X, one minibatch.

        It goes on from where `fit` or the last call ended. Columns are scaled by the means and
        variances of the rows of the first call.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : ignored
            Not used; there for scikit-learn's conventions.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If training diverges, with a linear schedule, or if rows hold NaN and the axes are
            principal ones; the model then stays as it was before.
        """
        first = self._begins_stream()
        X = self._validate(X, reset=first)
        missing = self._missing(X)
        is_principal = self.axes == "principal" if first else self._basis is not None
        if is_principal and missing is not None:
            raise ValueError(
                "partial_fit takes no NaN along principal axes, as fit does: fill them in by impute"
                ' or take axes="columns" from the first rows on'
            )
        if first:
            check_columns_known(missing)
            trainer = self._begin(X, self._stream_of_numbers(), self._choose_coordinates(X))
        elif "_training" in vars(self):
            trainer = self._training
            trainer.go_on(self)
            self._count(X)
        else:
            coordinates = Coordinates.of_columns(self._coordinates_of(X))
            start = self._parameters
            trainer = self._begin(X, self._stream_of_numbers(), coordinates, start)
        trainer.step(self._coordinates_of(X))
        self._keep(trainer)
        return self

    def _choose_coordinates(self, X) -> Coordinates:
        """Choose the coordinates in which visible units are independent, by rows to train on."""
        is_principal = self.axes == "principal"
        chosen = Coordinates.principal(X) if is_principal else Coordinates.of_columns(X)
        self.visible_basis_ = chosen.basis
        if chosen.n_constant:
            warn(
                f"rows do not vary along {chosen.n_constant} of their {X.shape[1]} principal"
                " axes: the score depends on how their covariance is shrunk; drop columns that are"
                ' constant or determined by others, or take axes="columns"',
                ConvergenceWarning,
            )
        return chosen

    def _begin(self, X, rng, coordinates, start=None, missing=None) -> Trainer:
        """Trainer of the model from new chains."""
        self._partition_seed = draw_seed(rng)
        rows = self._coordinates_of(X)
        trainer = Trainer(self, rows, draw_seed(rng), coordinates, start, missing)
        self._moments = 0, np.zeros(X.shape[1]), np.zeros(X.shape[1])
        self._count(X)
        return trainer

    def _count(self, X) -> None:
        """Add rows to the means and variances of the visible units."""
        n_before, mean_before, variance_before = self._moments
        n_known, mean_known, variance_known = column_moments(self._coordinates_of(X))
        n = n_before + n_known
        share = n_known / np.maximum(n, 1)
        step = mean_known - mean_before
        mean = mean_before + share * step
        within = variance_before + share * (variance_known - variance_before)
        self._moments = n, mean, within + share * (1 - share) * step**2

    def _keep(self, trainer) -> None:
        """Store what was learned, and the chains that `partial_fit` goes on with; no rows."""
        self._store(trainer)
        trainer.forget_rows()
        trainer.shown = Parameters(*map(np.copy, self._parameters))
        self._training = trainer
        n_low = int(np.sum(trainer.current.variances <= self.variance_floor))
        if n_low:
            warn(
                f"the variances of {n_low} of {len(self.variances_)} visible units are at their"
                f" floor, {self.variance_floor:g} of the data's variance: the score depends on"
                " the floor; drop columns that are constant or repeat others, or lower"
                " n_components or variance_floor",
                ConvergenceWarning,
            )

    def _store(self, trainer) -> None:
        learned = trainer.parameters
        _, mean, variance = self._moments
        self._set_parameters(
            learned._replace(
                components=self._columns_of(learned.components),
                intercept_visible=self._columns_of(learned.intercept_visible),
            )
        )
        self.visible_mean_ = self._columns_of(mean)
        self.visible_variance_ = np.maximum(variance, self.variances_)

    @classmethod
    def from_parameters(
        cls,
        components,
        intercept_visible,
        intercept_hidden,
        variances,
        visible_mean=None,
        visible_variance=None,
        visible_basis=None,
        **parameters,
    ) -> Self:
        """Return a fitted model with known parameters.

        Parameters
        ----------
        components : array-like of shape (n_components, n_features)
            Weights.
        intercept_visible, intercept_hidden : array-like of shape (n_features,) and (n_components,)
            Biases, of the energy above: an energy with v in place of v - b in its last term has the
            hidden biases c - W @ (b / s²) in place of c.
        variances : array-like of shape (n_features,)
            Variances of the visible units given the hidden ones.
        visible_mean, visible_variance : array-like of shape (n_features,) or None, default=None
            Means and variances of the data for the base of log Z. None: those of short Gibbs runs
            from random hidden units.
        visible_basis : array-like of shape (n_features, n_features) or None, default=None
            Matrix B of determinant 1 or -1, whose coordinates v B are independent given the hidden
            units; the variances are then those of the coordinates. None: the columns themselves.
        **parameters
            Parameters of the constructor, such as `partition_estimator` or `random_state`.

        Returns
        -------
        model : GaussianRBM

        Raises
        ------
        ValueError
            If a value is not finite, a shape does not fit, a variance is not positive, or the
            parameters are so large that log f overflows.
        """
        components = check_components(components)
        n_components, n_features = components.shape
        model = cls(n_components=n_components, **parameters)
        model._be_known(n_features)
        model.visible_basis_ = None
        if visible_basis is not None:
            model.visible_basis_ = check_basis(visible_basis, n_features, "visible_basis")
        weights = Parameters(
            components,
            check_vector(intercept_visible, n_features, "intercept_visible"),
            check_vector(intercept_hidden, n_components, "intercept_hidden"),
            _check_variances(variances, n_features, "variances"),
        )
        model._set_parameters(weights)
        model.visible_mean_ = weights.intercept_visible
        model.visible_variance_ = weights.variances
        model.path()  # whose checks the short runs need
        mean, variance = _short_run_moments(model._parameters)
        if visible_mean is None:
            visible_mean = model._columns_of(mean)
        if visible_variance is None:
            visible_variance = variance
        model.visible_mean_ = check_vector(visible_mean, n_features, "visible_mean")
        model.visible_variance_ = _check_variances(visible_variance, n_features, "visible_variance")
        model.path()
        return model

    # -- units
    @property
    def covariance_(self) -> Array:
        """Covariance of the visible units given the hidden ones, (n_features, n_features)."""
        check_fitted(self)
        root = self._columns_of(np.diag(np.sqrt(self.variances_)))
        return root.T @ root

    @property
    def _basis(self) -> Array | None:
        """`visible_basis_`, None also where somebody has set the other attributes alone."""
        return vars(self).get("visible_basis_")

    def _coordinates_of(self, X) -> Array:
        """Coordinates of rows, (n, n_features), in which units are independent."""
        return X if self._basis is None else X @ self._basis

    def _columns_of(self, coordinates) -> Array:
        """Rows of coordinates, of the same shape."""
        return columns_of(coordinates, self._basis)

    def _hidden_inputs(self, X) -> Array:
        return self._parameters.hidden_fields(self._coordinates_of(X))

    def _rows_given(self, h, rng) -> Array:
        drawn = rng.normal(self._parameters.visible_means(h), np.sqrt(self.variances_))
        return self._columns_of(drawn)

    # -- missing values
    def _missing(self, X) -> Booleans | None:
        return missing_values(X)

    def _without_missing(self, X) -> Array:
        return np.where(np.isnan(X), self.intercept_visible_, X)

    def _known(self, X) -> KnownRows:
        return GaussianLayers(self.path()).known(X)

    def _part_values(self, part, units, row) -> Array:
        return part.layers.axes.values(part, units, row)

    def _part_units(self, part, rows) -> Array:
        return rows / part.units.scales

    # -- log-likelihood
    def path(self) -> GaussianRBMPath:
        """Return the tempered path from independent normal columns to this model.

        Returns
        -------
        path : GaussianRBMPath
        """
        check_fitted(self)
        return GaussianRBMPath(
            self.components_,
            self.intercept_visible_,
            self.intercept_hidden_,
            self.variances_,
            self.visible_mean_,
            self.visible_variance_,
            basis=self._basis,
        )

    _positive = ("variances_", "visible_variance_")

    @property
    def _fitted_shapes(self) -> dict[str, tuple[str, ...]]:  # type: ignore[override]
        """Dimensions of the fitted attributes: a basis is one of them where there is any."""
        return _ARRAYS if self._basis is None else {**_ARRAYS, **_BASIS}

    _impossible = TOO_FAR

    def _log_f(self, X) -> tuple[Array, Booleans]:
        with np.errstate(all="ignore"):
            values = self._parameters.log_f(self._coordinates_of(X))
        return values, np.isfinite(values)

    # -- what is shared
    @property
    def _parameters(self) -> Parameters:
        """In the coordinates in which visible units are independent."""
        return Parameters(
            self._coordinates_of(self.components_),
            self._coordinates_of(self.intercept_visible_),
            self.intercept_hidden_,
            self.variances_,
        )

    def _set_parameters(self, parameters: Parameters) -> None:
        for name, value in zip(_ARRAYS, parameters):
            setattr(self, name, value)
        self._n_features_out = len(parameters.components)


def _report(trainer, iteration) -> str:
    """The line that `verbose` prints after a pass."""
    return f"variance given hidden units = {trainer.current.variances.mean():.3f} of the data's"


def _short_run_moments(parameters: Parameters):
    """Means and variances of 100 chains after 20 Gibbs sweeps from random hidden units.

    The variance of the means is doubled, as a base should rather be too wide.
    """
    rng = np.random.default_rng(0)
    hidden = rng.random((100, len(parameters.components))) < 0.5
    spread = np.sqrt(parameters.variances)
    for _ in range(20):
        v = rng.normal(parameters.visible_means(hidden), spread)
        hidden = rng.random(hidden.shape) < expit(parameters.hidden_fields(v))
    means = parameters.visible_means(hidden)
    with np.errstate(over="ignore", invalid="ignore"):
        variances = parameters.variances + 2 * means.var(axis=0)
    if not np.all(np.isfinite(variances)):
        raise ValueError(
            "components or intercept_visible are so large that squares of the visible means"
            " overflow: rescale X or the parameters"
        )
    return means.mean(axis=0), variances


def _check_variances(values, n_features: int, name: str) -> Array:
    """Return positive values (n_features,), or raise ValueError by the name of the parameter."""
    values = check_vector(values, n_features, name)
    check_positive(values, name)
    return values
