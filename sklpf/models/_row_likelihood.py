"""What models share whose rows each have an intractable likelihood: the score, its error, and what is not trusted."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.base import DensityMixin, clone
from sklearn.exceptions import ConvergenceWarning

from sklpf._warnings import warn
from sklpf.models._likelihood import ScoreInterval, score_interval
from sklpf.partition import AIS, Exact, PartitionEstimator

MAX_EXACT_ROWS = 18  # units to enumerate for every row


class RowLikelihoodMixin(DensityMixin):
    """score, score_samples and score_interval of a model in which log p(x) of every row is a log Z of its own.

    A model has the parameters `partition_estimator`, `on_nonconvergence` and `n_jobs`, sets `_partition_seed` in
    ``fit``, and defines ``path(X)``: a path with one target a row, whose normaliser is that row's likelihood.
    """

    def score_samples(self, X) -> NDArray[np.float64]:
        """Log-likelihood of every row.

        A row's value depends on that row and the model alone, not on the other rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        log_likelihood : ndarray of shape (n_samples,)
            In nats; NaN for rows that are not trusted if ``on_nonconvergence="nan"``.

        Raises
        ------
        RuntimeError
            If rows are not trusted and ``on_nonconvergence="raise"``.
        """
        return self._trusted(self._row_partition(X))

    def score(self, X, y=None) -> float:
        """Mean log-likelihood per row, in nats.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        score : float
            Mean of `score_samples`.
        """
        return float(self._trusted(self._row_partition(X)).mean())

    def score_interval(self, X, level: float = 0.95) -> ScoreInterval:
        """Mean log-likelihood per row with its sampling error over rows and its Monte-Carlo error, apart and combined.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            At least 2 rows.
        level : float, default=0.95

        Returns
        -------
        interval : ScoreInterval
            ``partition`` is the Monte-Carlo part: zero where rows are enumerated; else it shrinks with more rows, but
            for the bias of a logarithm of estimates (half the mean squared standard error), which widens it upwards.
        """
        return score_interval(*self._scored(X, level), level)

    def _scored(self, X, level: float) -> tuple[NDArray[np.float64], float, float]:
        """Log-likelihood of every row, and how far the Monte-Carlo error of their mean reaches below and above it."""
        estimator = self._row_partition(X)
        return self._trusted(estimator), *_mean_error(estimator.result_, level)

    def _row_partition(self, X) -> PartitionEstimator:
        """The partition estimator fitted to the rows, with the model's seed and number of jobs where it sets none."""
        path = self.path(X)
        self._validate_params()
        estimator = clone(self.partition_estimator) if self.partition_estimator is not None else _default(path)
        current = estimator.get_params(deep=False)
        defaults = {"random_state": self._partition_seed, "n_jobs": self.n_jobs}
        estimator.set_params(
            **{name: value for name, value in defaults.items() if name in current and current[name] is None}
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # on_nonconvergence decides
            return estimator.fit(path)

    def _trusted(self, estimator) -> NDArray[np.float64]:
        values = estimator.log_partition_
        if estimator.converged_:
            return values
        if self.on_nonconvergence == "nan":
            return np.where(estimator.result_.diagnostics["converged"], values, np.nan)
        reasons = "; ".join(estimator.result_.reasons)
        message = f"likelihoods are not to be trusted, {type(estimator).__name__} did not converge: {reasons}"
        if self.on_nonconvergence == "raise":
            raise RuntimeError(message)
        warn(message, ConvergenceWarning)
        return values


def _default(path) -> PartitionEstimator:
    if hasattr(path, "default_estimator"):
        return path.default_estimator()
    return Exact() if path.n_enumerable <= MAX_EXACT_ROWS else AIS()


def _mean_error(result, level: float) -> tuple[float, float]:
    """How far the Monte-Carlo error reaches below and above the mean over rows."""
    if result.statement not in ("exact", "estimate"):
        low, high = result.interval(level)
        return float(np.mean(result.log_partition - low)), float(np.mean(high - result.log_partition))
    half = float(norm.ppf(0.5 + level / 2)) * result.diagnostics["mean_std_error"]
    return half, half - result.diagnostics["mean_bias"]
