"""CategoricalRBM: a restricted Boltzmann machine of categorical variables with a log-likelihood."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.utils import check_random_state

from sklpf._utils.numbers import Array, Integers
from sklpf._utils.progress import reporting
from sklpf._utils.random import draw_seed
from sklpf._utils.sklearn import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    at_least,
)
from sklpf.models._learning import StreamMixin, all_or_nothing
from sklpf.models._validation import check_fitted, check_parameter, check_vector, validate_data
from sklpf.models.categorical_rbm._path import CategoricalRBMPath, CategoricalUnits
from sklpf.models.rbm._free_energy import log_f, short_run_mean
from sklpf.models.rbm._visible import TRAINING, TrainedByChains
from sklpf.models.rbm.learning._contrastive_divergence import Trainer
from sklpf.models.scoring._likelihood import LogLikelihoodMixin
from sklpf.models.scoring._scored import SCORING
from sklpf.training import train

_MOST_INDICATORS = 1 << 16


@dataclass(eq=False, repr=False)
class CategoricalRBM(
    TrainedByChains,
    StreamMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    LogLikelihoodMixin,
    BaseEstimator,
):
    """Restricted Boltzmann machine of categorical (Potts) visible and binary hidden units.

    p(v, h) = exp(-E(v, h)) / Z with

        E(v, h) = -sum_i b_i(v_i) - sum_j c_j h_j - sum_ij h_j W_ji(v_i)

    for features v_i of categories 0, 1, …, as `sklearn.preprocessing.OrdinalEncoder` gives them,
    where b = `intercept_visible_`, c = `intercept_hidden_` and W = `components_` (Salakhutdinov,
    Mnih & Hinton 2007, section 2). Features may have different numbers of categories. It is used
    for ratings, surveys and aligned sequences of proteins (Tubiana, Cocco & Monasson 2019). Of two
    categories a feature it is a `BernoulliRBM` whose units are the differences of the parameters.
    Training is persistent contrastive divergence (Tieleman 2008).

    Parameters
    ----------
    n_components : int, default=16
        Number of hidden units.
    learning_rate : float, default=0.1
        Length of a step along the gradient.
    batch_size : int, default=10
        Rows in a minibatch.
    n_iter : int, default=100
        Passes over the data. Training takes some thousands of minibatches: with few rows raise
        this.
    verbose : int, default=0
        Whether to report after a pass but at most once a second, and the progress of the
        estimation of log Z; see `AIS`.
    random_state : int, RandomState or None, default=None
        Seed of the weights, the chains and the estimate of log Z.
    partition_estimator : PartitionEstimator or None, default=None
        How log Z is estimated. None is `Exact` of at most 20 hidden units, else
        `ParallelTempering`. If its `random_state` or `n_jobs` is None, that of the model is used.
    on_nonconvergence : {"warn", "nan", "raise"}, default="warn"
        What `score` and `score_samples` do when log Z can't be trusted: return the number with a
        ConvergenceWarning, return NaN and log why (logger "sklpf"), or raise RuntimeError.
    n_jobs : int or None, default=None
        For the estimation of log Z, in threads unless ``joblib.parallel_config`` says otherwise.
    average : bool or int, default=True
        Whether the parameters are averages over the updates of training, as of `BernoulliRBM`.
    learning_rate_schedule : {"constant", "linear"}, default="constant"
        "linear" lowers the learning rate with every update, to 0 after `n_iter` passes.
    n_chains : int or None, default=None
        Persistent chains. None takes `batch_size`.
    weight_decay : float, default=0.0
        Strength of an L2 penalty, per row of data, on the weights but not on the biases.
    min_categories : int, array-like of shape (n_features,) or None, default=None
        Least number of categories of each feature, as of `sklearn.naive_bayes.CategoricalNB`: for
        categories that rows to score may hold and rows to train on may not. None counts those of
        the training data, up to the largest.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_indicators)
        Weights. Columns are the categories of the first feature, then those of the second, and so
        on: n_indicators is the sum of `n_categories_`.
    intercept_visible_, intercept_hidden_ : ndarray of shape (n_indicators,) and (n_components,)
        Biases.
    n_categories_ : ndarray of shape (n_features,)
        Number of categories of each feature.
    h_samples_ : ndarray of shape (n_chains, n_components)
        Hidden units of the persistent chains.
    visible_mean_ : ndarray of shape (n_indicators,)
        Smoothed shares (count + 1) / (n + n_categories) of the training data: the base from which
        log Z is computed.
    log_partition_, log_partition_std_error_, log_partition_interval_ : float, float, tuple of float
        log Z in nats, its standard error and 95 % interval; exist once log Z has been estimated.
    partition_estimator_ : PartitionEstimator
        The fitted estimator of log Z, its ``result_`` without samples; exists once log Z has been
        estimated.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Salakhutdinov, R., Mnih, A. & Hinton, G. (2007). Restricted Boltzmann machines for collaborative
    filtering. ICML. Tieleman, T. (2008). Training restricted Boltzmann machines using
    approximations to the likelihood gradient. ICML. Tubiana, J., Cocco, S. & Monasson, R. (2019).
    Learning protein constitutive motifs from sequence data. eLife 8.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import OrdinalEncoder
    >>> from sklpf import CategoricalRBM
    >>> X = np.array([["red", "small"], ["green", "large"], ["blue", "large"]] * 50)
    >>> rbm = CategoricalRBM(2, random_state=0)
    >>> model = make_pipeline(OrdinalEncoder(), rbm).fit(X)
    >>> round(model.score(X), 1)  # at most -log 3
    -1.2
    """

    n_components: int = 16
    _: KW_ONLY
    n_iter: int = 100
    verbose: int = 0
    average: bool | int = True
    weight_decay: float = 0.0
    min_categories: int | ArrayLike | None = None

    _parameter_constraints = {
        **SCORING,
        **TRAINING,
        "n_iter": [at_least(1)],
        "min_categories": [at_least(1), "array-like", None],
    }

    # -- training
    @all_or_nothing
    @reporting
    def fit(self, X, y=None) -> Self:
        """Fit to X by persistent contrastive divergence, from new weights and chains.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Categories of each feature: integers 0, 1, ….
        y : ignored
            Not used; there for scikit-learn's conventions.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If X holds anything else, or training diverges; the model then stays as it was before.
        """
        self._validate_params()
        X = self._indicators(X, reset=True)
        rng = check_random_state(self.random_state)
        self._begin(X, rng)
        trainer = Trainer(self, X, self.batch_size, rng, self.n_iter)
        train(trainer, self.n_iter, store=trainer.store)
        trainer.store(self)
        return self

    @all_or_nothing
    def partial_fit(self, X, y=None) -> Self:
        """Make one step of persistent contrastive divergence on X, one minibatch.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            A batch, of about as many rows as there are chains. The first one has all categories, or
            `min_categories` counts them.
        y : ignored
            Not used; there for scikit-learn's conventions.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If X holds new categories, training diverges, or with a linear schedule; the model then
            stays as it was before.
        """
        first = self._begins_stream()
        X = self._indicators(X, reset=first)
        rng = self._stream_of_numbers()
        if first:
            self._begin(X, rng)
        else:
            self._count(X)
        trainer = Trainer(self, X, X.shape[0], rng)
        trainer.run()
        trainer.store(self)
        return self

    def _begin(self, X, rng) -> None:
        """Draw weights; the biases are those of independent features."""
        weights = rng.normal(0, 0.01, (self.n_components, X.shape[1]))
        self._set_weights(weights, np.zeros(X.shape[1]), np.zeros(self.n_components))
        self._partition_seed = draw_seed(rng)
        self._count(X)
        self.intercept_visible_ = np.log(self.visible_mean_)

    @classmethod
    def from_parameters(
        cls,
        components,
        intercept_visible,
        intercept_hidden,
        n_categories,
        visible_mean=None,
        **parameters,
    ) -> Self:
        """Return a fitted model with known parameters.

        Parameters
        ----------
        components : array-like of shape (n_components, n_indicators)
            Weights, columns as in `components_`.
        intercept_visible, intercept_hidden : array-like of shape (n_indicators,) and \
                (n_components,)
            Biases.
        n_categories : array-like of shape (n_features,)
            Number of categories of each feature.
        visible_mean : array-like of shape (n_indicators,) or None, default=None
            Positive shares of the categories in the data, for the base of log Z. None: those of
            short Gibbs runs from random hidden units, pulled a tenth of the way to equal ones.
        **parameters
            Parameters of the constructor, such as `partition_estimator` or `random_state`.

        Returns
        -------
        model : CategoricalRBM

        Raises
        ------
        ValueError
            If a value is not finite or a shape does not fit.
        """
        components = check_parameter(components, "components", dtype=np.float64, copy=True)
        n_components, n_indicators = components.shape
        model = cls(n_components=n_components, **parameters)
        model._validate_params()
        model.n_categories_ = np.array(n_categories)
        model.n_features_in_ = np.size(n_categories)
        visible = check_vector(intercept_visible, n_indicators, "intercept_visible")
        hidden = check_vector(intercept_hidden, n_components, "intercept_hidden")
        model._set_weights(components, visible, hidden)
        model._partition_seed = draw_seed(check_random_state(model.random_state))
        model.visible_mean_ = check_vector(visible_mean, n_indicators, "visible_mean", default=1.0)
        model.path()
        if visible_mean is None:
            model.visible_mean_ = short_run_mean(model)
        return model

    # -- use
    def transform(self, X) -> Array:
        """Probabilities of the hidden units given X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Categories.

        Returns
        -------
        h : ndarray of shape (n_samples, n_components)
        """
        return expit(self._validate(X) @ self.components_.T + self.intercept_hidden_)

    def path(self, weights="marginal") -> CategoricalRBMPath:
        """Return the tempered path from independent features to this model.

        Parameters
        ----------
        weights : {"marginal", "joint"}, default="marginal"
            Whether the hidden layer is summed out of the densities. With "joint" all estimates
            scatter more.

        Returns
        -------
        path : CategoricalRBMPath
        """
        check_fitted(self)
        arrays = (getattr(self, name) for name in self._fitted_shapes)
        path = CategoricalRBMPath(*arrays, weights=weights, starts=self._starts())
        path.base_is_ours = True
        return path

    def sample(self, n_samples=1, random_state=None) -> Integers:
        """Draw rows from the model.

        Exact and independent of at most 20 hidden units; else from tempered chains
        (`ParallelTempering`), nearly independent if these mix. A `partition_estimator` that can
        sample is used instead.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState or None, default=None

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Categories.
        """
        _, state = self._draw(n_samples, random_state)
        return self._visible_units.codes(state.v)

    # -- what the likelihood asks for
    _fitted_shapes = {
        "components_": ("n_components", "n_indicators"),
        "intercept_visible_": ("n_indicators",),
        "intercept_hidden_": ("n_components",),
        "visible_mean_": ("n_indicators",),
        "n_categories_": ("n_features",),
    }
    _positive = ("visible_mean_", "n_categories_")
    _discrete = True
    _states_are_points = False

    @property
    def _visible_units(self) -> CategoricalUnits:  # type: ignore[override]  # by what was fitted
        return CategoricalUnits(self.n_categories_)

    def _log_f(self, X) -> tuple[Array, NDArray[np.bool_]]:
        X = self._validate(X)
        return log_f(self, X), np.ones(X.shape[0], dtype=bool)

    # -- rows
    def _validate(self, X) -> sp.csr_matrix:
        check_fitted(self)
        return self._indicators(X, reset=False)

    def _indicators(self, X, reset: bool) -> sp.csr_matrix:
        """Indicators (n_samples, n_indicators) of the categories of X."""
        X = validate_data(self, X, dtype=np.float64, reset=reset)
        if np.any(X < 0) or np.any(X % 1 != 0):
            raise ValueError(
                f"{'Negative values' if np.any(X < 0) else 'Fractions'} in data X, which must hold"
                " categories 0, 1, … in each column: encode it by scikit-learn's OrdinalEncoder"
                " (real numbers by KBinsDiscretizer with encode='ordinal') before the model in a"
                " pipeline"
            )
        if reset:
            self.n_categories_ = _category_counts(self.min_categories, X.max(axis=0) + 1)
        _check_known(X, self.n_categories_)
        codes = (X + self._visible_units.starts[:-1]).astype(np.int32)
        edges = np.arange(0, codes.size + 1, codes.shape[1])
        shape = len(X), int(self.n_categories_.sum())
        return sp.csr_matrix((np.ones(codes.size), codes.ravel(), edges), shape=shape)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.categorical = True
        tags.input_tags.positive_only = True
        return tags


def _category_counts(least, found) -> Integers:
    """Numbers of categories (n_features,): those found, raised to given ones."""
    given = np.asarray(1 if least is None else least)
    if given.dtype.kind not in "iu" or given.shape not in ((), found.shape):
        raise ValueError(
            f"min_categories must be an integer, or {len(found)} of them to fit X, got"
            f" {least!r:.80}"
        )
    counts = np.maximum(given, found)
    if counts.sum() > _MOST_INDICATORS:
        raise ValueError(
            f"X has categories up to {counts.max() - 1:g}, {counts.sum():g} in all, more than"
            f" {_MOST_INDICATORS}: encode it by scikit-learn's OrdinalEncoder, which leaves out"
            " those that don't occur, or leave out columns that are no categories"
        )
    return counts.astype(np.int64)


def _check_known(X, n_categories) -> None:
    """Raise ValueError if rows hold categories that the model was not fitted to."""
    largest_codes = X.max(axis=0)
    new = np.flatnonzero(largest_codes > n_categories - 1)
    if new.size:
        column = int(new[0])
        largest = int(largest_codes[column])
        raise ValueError(
            f"column {column} of X holds category {largest}, but the model was fitted to categories"
            f" 0 to {n_categories[column] - 1}: fit it with min_categories, at least"
            f" {largest + 1} there"
        )
