"""CategoricalRBM: a restricted Boltzmann machine of categorical variables with a log-likelihood."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from sklpf._utils.numbers import Integers
from sklpf._utils.validation import at_least
from sklpf.models._enumerable_path import CategoricalUnits
from sklpf.models.rbm import DiscreteRBM

_MOST_INDICATORS = 1 << 16


@dataclass(eq=False, repr=False)
class CategoricalRBM(DiscreteRBM):
    """Restricted Boltzmann machine of categorical (Potts) visible and binary hidden units.

    p(v, h) = exp(-E(v, h)) / Z with

        E(v, h) = -sum_i b_i(v_i) - sum_j c_j h_j - sum_ij h_j W_ji(v_i)

    for features v_i of categories 0, 1, …, as `sklearn.preprocessing.OrdinalEncoder` gives them,
    where b = `intercept_visible_`, c = `intercept_hidden_` and W = `components_` (Salakhutdinov,
    Mnih & Hinton 2007, section 2). Features may have different numbers of categories. It is used
    for ratings, surveys and aligned sequences of proteins (Tubiana, Cocco & Monasson 2019). Of two
    categories a feature it is a `BernoulliRBM` whose units are the differences of the parameters.
    Training is persistent contrastive divergence (Tieleman 2008). NaN is an answer that is not
    known: scores are those of the known ones, and `impute` fills in others.

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
    partition_estimator : PartitionEstimator or None, default=None
        How log Z is estimated. None is `Exact` of at most 20 hidden units, else
        `ParallelTempering`. If its `random_state` or `n_jobs` is None, that of the model is used.
    average : bool or int, default=True
        Whether the parameters are averages over the updates of training, as of `BernoulliRBM`.
    learning_rate_schedule, n_chains, intercept_init, weight_decay
        As of `BernoulliRBM`: how the rate falls, the number of chains, what `intercept_visible_`
        starts from ("log-odds" are logarithms of the categories' shares), and an L2 penalty.
    early_stopping, validation_fraction, n_iter_no_change, tol
        As of `BernoulliRBM`: whether held-out rows end training, how many there are, and when.
    track_log_partition, track_trajectory
        As of `BernoulliRBM`: what is followed and kept during training.
    verbose, random_state, on_nonconvergence, n_jobs
        As of `BernoulliRBM`. Rows of other values than categories are errors.
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
    visible_mean_ : ndarray of shape (n_indicators,)
        Smoothed shares (count + 1) / (n + n_categories) of the training data: the base from which
        log Z is computed.
    log_partition_, log_partition_std_error_, log_partition_interval_ : float, float, tuple of float
        log Z in nats, its standard error and 95 % interval; exist once log Z has been estimated.
    h_samples_, partition_estimator_, n_iter_, best_iteration_, log_likelihood_scatter_
        And what `track_log_partition` and `early_stopping` leave: as of `BernoulliRBM`.
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
    min_categories: int | ArrayLike | None = None

    _parameter_constraints = {
        **DiscreteRBM._parameter_constraints,
        "min_categories": [at_least(1), "array-like", None],
    }

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
            Shares of the categories in the data for the base of log Z, moved to at least 0.001.
            None: those of short Gibbs runs from random hidden units, pulled a tenth of the way to
            equal ones.
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
        n_categories = np.array(n_categories)
        CategoricalUnits(n_categories)  # raises by the name of this parameter
        return cls._with_weights(
            components,
            intercept_visible,
            intercept_hidden,
            visible_mean,
            parameters,
            n_categories_=n_categories,
            n_features_in_=n_categories.size,
        )

    # -- what the likelihood asks for
    _fitted_shapes = {
        "components_": ("n_components", "n_indicators"),
        "intercept_visible_": ("n_indicators",),
        "intercept_hidden_": ("n_components",),
        "visible_mean_": ("n_indicators",),
        "n_categories_": ("n_features",),
    }
    _positive = ("visible_mean_", "n_categories_")

    @property
    def _visible_units(self) -> CategoricalUnits:  # type: ignore[override]
        return CategoricalUnits(self.n_categories_)

    # -- rows
    def _validate(self, X, reset: bool = False) -> sp.csr_matrix:
        """Indicators (n_samples, n_indicators) of the categories of X."""
        if sp.issparse(X):
            raise TypeError(
                "X is a sparse matrix, as OneHotEncoder gives, where a column must hold the"
                " categories of one feature: encode it by scikit-learn's OrdinalEncoder instead"
            )
        X = super()._validate(X, reset)
        known = ~np.isnan(X)
        if np.any(X == -1) and (not reset or np.any(X == 0)):  # -1 and 1 alone are spins
            raise ValueError(
                "Negative values in data X: -1 is no category, but what OrdinalEncoder gives for"
                " those that it has not seen (unknown_value=-1) or that are missing"
                " (encoded_missing_value=-1): let it give NaN, which the model sums over, or give"
                " it all of them by its parameter categories, and the model their number by"
                " min_categories"
            )
        if np.any(X < 0) or np.any(X[known] % 1 != 0):
            raise ValueError(
                f"{'Negative values' if np.any(X < 0) else 'Fractions'} in data X, which must hold"
                " categories 0, 1, … in each column: encode it by scikit-learn's OrdinalEncoder"
                " (real numbers by KBinsDiscretizer with encode='ordinal') before the model in a"
                " pipeline"
            )
        if reset:
            self.n_categories_ = _category_counts(
                self.min_categories, X.max(axis=0, initial=0, where=known) + 1
            )
        _check_known(X, known, self.n_categories_)
        return self._units_of(X)

    def _units_of(self, X) -> sp.csr_matrix:
        known = ~np.isnan(X)
        codes = (X + self._visible_units.starts[:-1])[known].astype(np.int32)
        edges = np.r_[0, np.cumsum(known.sum(axis=1))]
        shape = len(X), int(self.n_categories_.sum())
        return sp.csr_matrix((np.ones(codes.size), codes, edges), shape=shape)

    def _data_rows(self, X):
        return super()._validate(X).copy()

    def _part_values(self, part, units, row):
        return part.units.codes(part.units.modes(units))

    _centre = "mode"

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


def _check_known(X, known, n_categories) -> None:
    """Raise ValueError if rows hold categories that the model was not fitted to."""
    largest_codes = X.max(axis=0, initial=0, where=known)
    new = np.flatnonzero(largest_codes > n_categories - 1)
    if new.size:
        column = int(new[0])
        largest = largest_codes[column]
        raise ValueError(
            f"column {column} of X holds category {largest:.15g}, but the model was fitted to"
            f" categories 0 to {n_categories[column] - 1}: fit it with min_categories, at least"
            f" {largest + 1:.15g} there"
        )
