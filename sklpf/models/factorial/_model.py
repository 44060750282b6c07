"""FactorialMixture: rows as sums of components that are on or off, with annealed or tempered
variational inference.
"""

from __future__ import annotations

import functools
from dataclasses import KW_ONLY, dataclass
from typing import Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, gen_batches

from sklpf._utils.context import reporting
from sklpf._utils.numbers import Array
from sklpf._utils.parallel import one_blas_thread, parallel_map
from sklpf._utils.random import draw_seed
from sklpf._utils.sklearn import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    StrOptions,
    TransformerMixin,
    in_container,
)
from sklpf._utils.validation import (
    INSIDE_0_1,
    NOT_NEGATIVE,
    POSITIVE,
    SparseInput,
    at_least,
    check_count,
    check_fitted,
    check_option,
    check_parameter,
)
from sklpf._utils.warnings import warn
from sklpf.models._enumerable_path import bits, missing_values
from sklpf.models._learning import all_or_nothing, check_goes_on, fitted_values
from sklpf.models._missing import bit_means, check_columns_known
from sklpf.models.factorial._path import FactorialPath, check_probability
from sklpf.models.factorial.learning import (
    Trainer,
    Training,
    dense,
    known_grams,
    search_activations,
    settle_activations,
    update,
)
from sklpf.partition import Exact, ParallelTempering, default_estimator
from sklpf.scoring import SCORING, RowLikelihoodMixin
from sklpf.variational import TEMPERING, Tempering

_STARTING_PROBABILITY = 0.3


@dataclass(eq=False, repr=False)
class FactorialMixture(
    SparseInput,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    RowLikelihoodMixin,
    BaseEstimator,
):
    """Factorial mixture: every row is a sum of components, each on or off, plus noise; `score` is a
    log-likelihood.

    x = sum_k z_k mu_k + noise with independent z_k ~ Bernoulli(`activation_probability`), noise of
    variance `noise_variance` and mu_k ~ N(0, `component_variance` I) (Mandt et al. 2016, equation
    12). Variational inference for it has many poor optima, which annealing and tempering are meant
    to avoid.

    Parameters
    ----------
    n_components : int, default=10
        Number of components.
    noise_variance, component_variance : float or None, default=None
        Variances, not standard deviations. None learns them.
    activation_probability : float, array-like of shape (n_components,) or None, default=None
        Inside (0, 1). None learns one for every component.
    covariance : {"full", "diag"}, default="full"
        Whether the components may be correlated in the posterior ("diag" is the paper's mean
        field).
    tempering : Tempering, {"annealed", "global", "local"} or None, default=None
        Temperatures before the sweeps at T = 1 that always end `fit`: on a schedule, one that is
        learned, or one learned for every row. None begins at T = 1; a string is a `Tempering` with
        its defaults. The highest temperature is by default the largest eigenvalue of the covariance
        of X over the noise variance, but low enough that components do not vanish (see the notes),
        and at least 2. It lasts for 300 sweeps by default; learned temperatures end earlier if the
        bound no longer rises. On a schedule every sweep has another temperature; slower schedules
        find the best optimum more often.
    n_init : int, default=1
        Number of starts; the one with the highest evidence lower bound is kept.
    tol : float, default=1e-5
        fit ends when a sweep raises the evidence lower bound by less than this, in nats a row.
    max_iter : int, default=1000
        Largest number of sweeps at T = 1, before the moves and after them.
    n_moves : int, default=10
        After the sweeps fit makes moves (see the notes), until this number in a row has not raised
        the bound. 0 makes none.
    verbose : int, default=0
        Whether to report the bound, every five seconds and at the end of each start, and the
        progress of estimates; see `AIS`.
    random_state : int, RandomState or None, default=None
        Seed of the starts and of the Monte-Carlo estimates of `score`.
    partition_estimator : PartitionEstimator or None, default=None
        How log p(x) of a row is computed. None enumerates the 2^n_components activations of up to
        20 components, and estimates beyond. If its `random_state` or `n_jobs` is None, that of the
        model is used.
    on_nonconvergence : {"warn", "nan", "raise"}, default="warn"
        What `score` and `score_samples` do with rows whose estimate can't be trusted.
    n_jobs : int or None, default=None
        For blocks of rows, in threads unless ``joblib.parallel_config`` says otherwise. Never
        changes a number.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Posterior means of the mu_k.
    component_covariance_ : ndarray of shape (n_components, n_components)
        Posterior covariance of the components, the same for every feature.
    noise_variance_, component_variance_ : float
    activation_probability_ : ndarray of shape (n_components,)
        Given or learned.
    elbo_ : float
        Evidence lower bound of the training data at T = 1, in nats.
    elbo_curve_, temperatures_ : ndarray of shape (`n_iter_`,)
        The bound at T = 1 after every sweep, or move that was kept, and its temperature 1 / E[1 /
        T].
    converged_ : bool
    n_iter_ : int
        Sweeps of the best start, and its moves that were kept; one more for every batch of
        `partial_fit`.
    partition_estimator_ : PartitionEstimator
        Fitted to the rows that were scored last.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Annealing adds noise to the components before every sweep above T = 1. It lowers the
    log-likelihood of a row by about one nat for each component that the row has, at any
    temperature. Without this noise the first split of the rows that appears would be kept.

    High temperatures can switch components off permanently. The uncertainty of a component costs
    every row that has it about D / (2 n pi) nats at any temperature (D features, n rows, pi the
    activation probability), while its gain falls as 1 / T. So "auto" stays below n pi / D times the
    n_components-th eigenvalue over the noise variance. This is cautious: components were seen to
    vanish at several times that temperature.

    After the sweeps come moves. Each is followed by sweeps, and kept if it has raised the bound.
    First there are a few starts from the moments of X (projection pursuit). Then components are
    created where rows are badly explained, and those that are needed least are dropped: unused
    ones, duplicates, blends. From then on sweeps also look for better activations of every row by
    flips of up to three components.

    There is no intercept: centre X, or leave one component to be always on. Parameters that are
    learned stay at their starting values (half the mean variance of the features, 0.3, and a
    matching component variance) above T = 1. `score` is the log-likelihood of the fitted model with
    the components integrated over their posterior: log p(x) = log sum_z p(z) ``N(x; components_.T @
    z, (noise_variance_ + z @ component_covariance_ @ z) I)``.

    Examples
    --------
    >>> from sklpf import FactorialMixture
    >>> from sklpf.datasets import make_factorial_shapes
    >>> X, _, _ = make_factorial_shapes(500, random_state=0)
    >>> model = FactorialMixture(8, noise_variance=0.01, random_state=0).fit(X)
    >>> model.transform(X).shape
    (500, 8)
    """

    n_components: int = 10
    _: KW_ONLY
    noise_variance: float | None = None
    component_variance: float | None = None
    activation_probability: float | ArrayLike | None = None
    covariance: Literal["full", "diag"] = "full"
    tempering: Tempering | Literal["annealed", "global", "local"] | None = None
    n_init: int = 1
    tol: float = 1e-5
    max_iter: int = 1000
    n_moves: int = 10
    verbose: int = 0

    _parameter_constraints = {
        **SCORING,
        **TEMPERING,
        "n_components": [at_least(1)],
        "noise_variance": [POSITIVE, None],
        "component_variance": [POSITIVE, None],
        "activation_probability": [INSIDE_0_1, "array-like", None],
        "covariance": [StrOptions({"full", "diag"})],
        "n_init": [at_least(1)],
        "tol": [NOT_NEGATIVE],
        "max_iter": [at_least(1)],
        "n_moves": [at_least(0)],
    }

    # -- training
    @all_or_nothing
    @reporting
    def fit(self, X, y=None) -> Self:
        """Climb the evidence lower bound of X from `n_init` draws of the activations and keep the
        best.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows. In dense X NaN is a value that is not known; `elbo_` then is the bound of those
            that are.
        y : ignored
            Not used; there for scikit-learn's conventions.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter can't be used, or if values of X are too large; the model is then as it
            was.

        Warns
        -----
        ConvergenceWarning
            If the bound still rises by more than `tol` after `max_iter` sweeps at T = 1.
        """
        X = self._validate(X, reset=True)
        check_columns_known(missing_values(X))
        rng = check_random_state(self.random_state)
        given = self.activation_probability
        probability = check_probability(
            _STARTING_PROBABILITY if given is None else given, self.n_components
        )
        trainer = Trainer(self, X, probability)
        runs = (trainer.run(rng) for _ in range(self.n_init))
        posterior, steps = max(runs, key=lambda run: run[1][-1].elbo)
        self._store(posterior)
        self.elbo_curve_ = np.array([step.elbo for step in steps])
        self.temperatures_ = np.array([step.temperature for step in steps])
        self.elbo_ = steps[-1].elbo
        self.converged_ = steps[-1].converged
        self.n_iter_ = len(steps)
        self._partition_seed = draw_seed(rng)
        if not self.converged_:
            warn(
                f"the evidence lower bound still rises after {self.max_iter} sweeps at T = 1; raise"
                " max_iter or tol",
                ConvergenceWarning,
            )
        return self

    @all_or_nothing
    def partial_fit(self, X, y=None) -> Self:
        """Fit to the first batch of a stream, or update the fitted components with another one.

        The first call is `fit`: that batch should be large enough to find the components. A later
        one finds the activations of its rows with the components as they are, and updates these and
        what is learned from averages over all rows so far, in which a batch of a share r of them
        weighs r ** 0.7.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows of the batch.
        y : ignored
            Not used; there for scikit-learn's conventions.

        Returns
        -------
        self
            After the first batch without `converged_`, `elbo_`, `elbo_curve_` and `temperatures_`,
            which are those of one fit.

        Raises
        ------
        ValueError
            As in `fit`, or if X or `n_components` does not have the size of before; the model is
            then as it was.
        """
        if not hasattr(self, "components_"):
            return self.fit(X)
        check_goes_on(self)
        X = self._validate(X)
        self._store(update(self, X, self._activations(X)))
        for name in ("converged_", "elbo_", "elbo_curve_", "temperatures_"):
            self.__dict__.pop(name, None)
        self.n_iter_ += 1
        return self

    def _store(self, posterior) -> None:
        """Take what was learned from a posterior."""
        self.components_ = posterior.means
        self.component_covariance_ = posterior.covariance
        self.noise_variance_ = posterior.noise_variance
        self.component_variance_ = posterior.component_variance
        self.activation_probability_ = posterior.activation_probability
        self._training = Training(posterior.statistics, fitted_values(self))
        self._n_features_out = self.n_components

    _takes_missing = True
    _shares = ("activation_probability_",)
    _states_are_points = False
    _positive = ("noise_variance_", "component_variance_")
    _fitted_shapes = {
        "components_": ("n_components", "n_features"),
        "component_covariance_": ("n_components", "n_components"),
        "noise_variance_": (),
        "component_variance_": (),
        "activation_probability_": ("n_components",),
    }

    # -- activations
    def transform(self, X) -> NDArray:
        """Posterior probabilities that the components are on, for every row on its own.

        Mean field at T = 1, from the prior and from where flips of components lead; the better
        bound counts.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; NaN is a value that is not known, on which nothing depends.

        Returns
        -------
        activations : ndarray of shape (n_samples, n_components)
        """
        check_fitted(self)
        X = self._validate(X)
        with one_blas_thread():
            return self._activations(X)

    def _activations(self, X):
        """Activations of rows that were validated, in blocks."""
        rows_at_once = 1024
        settle = functools.partial(
            _settle_rows,
            means=self.components_,
            covariance=self.component_covariance_,
            probability=self.activation_probability_,
            noise_variance=self.noise_variance_,
        )
        blocks = [X[rows] for rows in gen_batches(X.shape[0], rows_at_once)]
        done = parallel_map(settle, blocks, n_jobs=self.n_jobs)
        return np.concatenate(done).astype(X.dtype, copy=False)

    def inverse_transform(self, X) -> NDArray:
        """Sums of the components, weighted by activations: the means of the rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Activations, such as `transform` returns.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_features)
        """
        check_fitted(self)
        X = check_parameter(X, "X", dtype=(np.float64, np.float32))
        if X.shape[1] != len(self.components_):
            raise ValueError(
                f"X must have a column for each of {len(self.components_)} components, got"
                f" {X.shape[1]}"
            )
        return (X @ self.components_).astype(X.dtype, copy=False)

    # -- log-likelihood
    def path(self, X) -> FactorialPath:
        """Return the path with one target a row, whose normaliser is that row's likelihood.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; NaN is a value that is not known.

        Returns
        -------
        path : FactorialPath
        """
        check_fitted(self)
        return FactorialPath(
            self._validate(X),
            self.components_,
            self.component_covariance_,
            self.noise_variance_,
            self.activation_probability_,
        )

    def impute(self, X, how: str | None = None, random_state=None) -> NDArray:
        """Fill in the values that are not known, given the known ones of the same row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is a value that is not known.
        how : {"draw", "mean"} or None, default=None
            "draw", which is the default, draws the missing values of a row jointly: only draws keep
            the spread of the data. "mean" takes the conditional mean of each missing value.
        random_state : int, RandomState or None, default=None
            Seed of the draws.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Without missing values, in the container of `set_output`. Exact up to 20 components;
            else from tempered chains (`ParallelTempering`), a run for each row.
        """
        how = "draw" if how is None else how
        check_option(how, ("draw", "mean"), "how")
        path = self.path(X)
        X = self._validate(X)
        filled = X.toarray() if sp.issparse(X) else X.copy()
        rng = np.random.default_rng(draw_seed(random_state))
        missing = np.isnan(filled)
        for t in np.flatnonzero(missing.any(axis=1)).tolist():
            z = self._components_given(path.row(t), how, rng)
            rows = z @ self.components_
            if how == "draw":
                rows += self._noise(z, rng)
            filled[t, missing[t]] = rows[0, missing[t]]
        return in_container(self, filled)

    def _components_given(self, path, how: str, rng) -> Array:
        """Components of the row of a path, (1, K): their posterior means, or a draw of them."""
        n_components = path.log2_states
        if not isinstance(default_estimator(path), Exact):
            n_draws = 1 if how == "draw" else 100
            state = ParallelTempering(n_jobs=self.n_jobs).sample(path, n_draws, rng)
            return state.z.mean(axis=0, keepdims=True)
        blocks = range(path.n_enumeration_blocks)
        shares = softmax(np.concatenate([path.enumerate_block(block, -1) for block in blocks]))
        if how == "mean":
            return bit_means(shares)[None]
        drawn = bits(rng.choice(len(shares), size=1, p=shares), n_components)
        return drawn.astype(np.float64)

    def _noise(self, z, rng) -> Array:
        """Noise of rows with these components, (n, D)."""
        variance = self.noise_variance_ + np.einsum("nk,kj,nj->n", z, self.component_covariance_, z)
        noise = rng.normal(size=(len(z), self.components_.shape[1]))
        return np.sqrt(variance)[:, None] * noise

    def sample(self, n_samples=1, random_state=None) -> Array:
        """Draw independent rows from the model.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState or None, default=None

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        """
        check_fitted(self)
        check_count(n_samples, "n_samples")
        rng = np.random.default_rng(draw_seed(random_state))
        on = rng.random((n_samples, len(self.components_))) < self.activation_probability_
        z = on.astype(np.float64)
        return in_container(self, z @ self.components_ + self._noise(z, rng))


def _settle_rows(X, *, means, covariance, probability, noise_variance):
    """Activations of some rows, (n, K): mean field, flips of components, and mean field again."""
    max_iter = 1000  # updates of the activations of a new row
    x = dense(X)
    gram = means @ means.T + x.shape[1] * covariance
    if np.isnan(x).any():
        known = np.where(np.isnan(x), 0.0, 1.0)
        gram = known_grams(known, means) + known.sum(axis=1)[:, None, None] * covariance
        x = np.nan_to_num(x)
    products = means @ x.T
    terms = (gram, logit(probability), 0.5 / noise_variance)
    activations = np.tile(probability[:, None], X.shape[0])
    settle_activations(products, activations, terms, max_iter)
    search_activations(products, activations, terms, forced=range(len(means)))
    settle_activations(products, activations, terms, max_iter)
    return activations.T
