"""Outliers: rows of which a model's likelihood is low."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import OutlierMixin, clone
from sklearn.utils.validation import check_is_fitted

from sklpf._utils.numbers import Array, Integers
from sklpf._utils.sklearn import BaseEstimator, HasMethods
from sklpf._utils.validation import Interval


@dataclass(eq=False, repr=False)
class LikelihoodOutliers(OutlierMixin, BaseEstimator):
    """Outlier detector by the log-likelihood of a model, in scikit-learn's conventions.

    Rows with missing values are judged by the likelihood of what is known of them, where the model
    takes them. Fewer known values make the likelihood of a row of categories larger: compare rows
    that miss about as much.

    Parameters
    ----------
    estimator : model or pipeline with ``score_samples``
        Such as `CategoricalRBM`, or scikit-learn's `GaussianMixture`. A copy of it is fitted.
    contamination : float, default=0.1
        Share of the training rows that are outliers, in (0, 0.5].

    Attributes
    ----------
    estimator_ : model
        The fitted copy.
    offset_ : float
        Log-likelihood in nats below which a row is an outlier.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import BernoulliRBM, LikelihoodOutliers
    >>> X = np.repeat([[0, 0, 0, 0], [1, 1, 1, 1], [1, 0, 0, 1]], [50, 45, 5], axis=0)
    >>> rbm = BernoulliRBM(2, n_iter=200, random_state=0)
    >>> detector = LikelihoodOutliers(rbm, contamination=0.05).fit(X)
    >>> detector.predict([[1, 1, 1, 1], [0, 1, 0, 1]])
    array([ 1, -1])
    """

    estimator: Any
    contamination: float = 0.1

    _parameter_constraints = {
        "estimator": [HasMethods(["fit", "score_samples"])],
        "contamination": [Interval(Real, 0, 0.5, closed="right")],
    }

    def fit(self, X, y=None) -> Self:
        """Fit a copy of the estimator, and take the quantile `contamination` of its scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : ignored
            Not used; there for scikit-learn's conventions.

        Returns
        -------
        self
        """
        self._validate_params()
        self.estimator_ = clone(self.estimator).fit(X)
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        scores = self.estimator_.score_samples(X)
        scores = scores[~np.isnan(scores)]
        if not scores.size:
            raise ValueError("no row of X has a likelihood that can be trusted: fit to other rows")
        self.offset_ = float(np.percentile(scores, 100 * self.contamination))
        return self

    def score_samples(self, X) -> Array:
        """Log-likelihood of every row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_likelihood : ndarray of shape (n_samples,)
            In nats.
        """
        check_is_fitted(self)
        return self.estimator_.score_samples(X)

    def decision_function(self, X) -> Array:
        """Log-likelihood of every row less `offset_`: negative for outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        decision : ndarray of shape (n_samples,)
            In nats; -inf of rows without a likelihood (NaN), which no training row is like.
        """
        scores = self.score_samples(X)
        return np.where(np.isnan(scores), -np.inf, scores) - self.offset_

    def predict(self, X) -> Integers:
        """Say which rows are outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            -1 for outliers, 1 for others.
        """
        return np.where(self.decision_function(X) < 0, -1, 1)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        inner = getattr(self.estimator, "__sklearn_tags__", None)
        if inner is not None:
            tags.input_tags = inner().input_tags
        return tags
