"""What models with one intractable log Z share: a held-out log-likelihood, its error, and the kept log Z."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student_t
from sklearn.base import DensityMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from sklpf._parallel import fingerprint
from sklpf._warnings import warn
from sklpf.partition import Exact, ParallelTempering, PartitionEstimator

MAX_EXACT_BY_DEFAULT = 20  # units of the smaller layer: 2^20 states take about a second


def default_partition_estimator(n_enumerable: int) -> PartitionEstimator:
    """Return what ``partition_estimator=None`` stands for in a model with `n_enumerable` units to enumerate."""
    return Exact() if n_enumerable <= MAX_EXACT_BY_DEFAULT else ParallelTempering()


@dataclass(frozen=True)
class ScoreInterval:
    """A mean log-likelihood per row, or a mean difference of two, with its two sources of error (nats).

    Attributes
    ----------
    mean : float
    sampling : tuple of float
        Interval from the spread over the rows, Student t; it shrinks as rows are added.
    partition : tuple of float
        Interval from the error of log Z, which all rows share: more rows do not shrink it.
    combined : tuple of float
        Both: the half-widths of each side are added in quadrature.
    level : float
        Probability with which each interval covers.
    """

    mean: float
    sampling: tuple[float, float]
    partition: tuple[float, float]
    combined: tuple[float, float]
    level: float


def score_interval(values: NDArray[np.float64], below: float, above: float, level: float) -> ScoreInterval:
    """Return the interval of a mean over rows, given how far a common error reaches below and above it."""
    if not 0 < level < 1:
        raise ValueError(f"level must lie strictly between 0 and 1, got {level}")
    if len(values) < 2:
        raise ValueError("X must have at least 2 rows, else its sampling error can't be estimated")
    mean, below, above = float(values.mean()), float(below), float(above)
    half = float(student_t.ppf(0.5 + level / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    return ScoreInterval(
        mean=mean,
        sampling=(mean - half, mean + half),
        partition=(mean - below, mean + above),
        combined=(mean - float(np.hypot(half, below)), mean + float(np.hypot(half, above))),
        level=level,
    )


class LogLikelihoodMixin(DensityMixin):
    """score, score_samples, score_interval and the kept log Z of a model p(x) = f(x) / Z.

    A model has the parameters `partition_estimator`, `on_nonconvergence` and `n_jobs`, defines ``path(base, weights)``
    and ``_log_f(X)`` (log f of every row, in nats), sets `_partition_seed` in ``fit``, and calls
    ``_forget_log_partition()`` whenever its parameters have changed. log Z is estimated at the first need and kept
    together with a digest of the estimator's and the model's parameters; what does not match the digest is not used.
    """

    # -- log Z ---------------------------------------------------------------------------------
    def estimate_log_partition(self) -> Self:
        """Estimate log Z now (again, if it has been before) and keep it.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self._forget_log_partition()
        self._warn_or_raise(self._partition())
        return self

    @property
    def partition_estimator_(self) -> PartitionEstimator:
        """The fitted partition estimator; its ``result_`` holds the diagnostics. AttributeError before there is one."""
        kept = self._kept()
        if kept is None:
            raise AttributeError(
                "log Z has not been estimated for the model as it is now: call score or estimate_log_partition first"
            )
        return kept

    @property
    def log_partition_(self) -> float:
        """log Z in nats; AttributeError until it has been estimated."""
        return self.partition_estimator_.log_partition_

    @property
    def log_partition_std_error_(self) -> float:
        """Standard error of log Z in nats; AttributeError until it has been estimated."""
        return self.partition_estimator_.log_partition_std_error_

    @property
    def log_partition_interval_(self) -> tuple[float, float]:
        """95 % interval of log Z in nats; AttributeError until it has been estimated."""
        return self.partition_estimator_.log_partition_interval_

    def _configured_estimator(self, path) -> PartitionEstimator:
        """The partition estimator, with the model's seed and number of jobs where it sets none itself."""
        estimator = self.partition_estimator
        estimator = default_partition_estimator(path.n_enumerable) if estimator is None else clone(estimator)
        defaults = {"random_state": self._partition_seed, "n_jobs": self.n_jobs}
        current = estimator.get_params(deep=False)
        return estimator.set_params(
            **{name: value for name, value in defaults.items() if name in current and current[name] is None}
        )

    def _configured(self) -> tuple[PartitionEstimator, str]:
        """The partition estimator, not fitted, and a digest of its parameters and the model's."""
        path = self.path()
        estimator = self._configured_estimator(path)
        parameters = estimator.get_params()
        for name in ("n_jobs", "checkpoint"):
            parameters.pop(name, None)
        if not isinstance(parameters.get("random_state"), Integral):
            parameters.pop("random_state", None)  # a generator prints as its address
        return estimator, fingerprint(type(estimator).__name__, parameters, path.__getstate__())

    def _kept(self) -> PartitionEstimator | None:
        """The fitted partition estimator if there is one for the model as it is now."""
        kept = self.__dict__.get("_kept_partition")
        return kept[1] if kept is not None and kept[0] == self._configured()[1] else None

    def _forget_log_partition(self) -> None:
        self.__dict__.pop("_kept_partition", None)

    def _partition(self) -> PartitionEstimator:
        """The fitted partition estimator, fitted now if none is kept."""
        self._validate_params()
        estimator, token = self._configured()
        kept = self.__dict__.get("_kept_partition")
        if kept is not None and kept[0] == token:
            return kept[1]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # on_nonconvergence decides
            estimator.fit(self)
        estimator.result_ = _without_samples(estimator.result_)
        self._kept_partition = token, estimator
        return estimator

    def _warn_or_raise(self, estimator: PartitionEstimator) -> None:
        if _trusted(estimator) or self.on_nonconvergence == "nan":
            return
        result, name = estimator.result_, type(estimator).__name__
        reasons = f"did not converge: {'; '.join(result.reasons)}"
        if result.converged:
            reasons = f'gave a number that is "{result.statement}" where a score needs an estimate'
        message = f"log Z is not to be trusted, {name} {reasons}"
        if self.on_nonconvergence == "raise":
            raise RuntimeError(message)
        warn(message, ConvergenceWarning)

    # -- log-likelihood --------------------------------------------------------------------------
    def score_samples(self, X) -> NDArray[np.float64]:
        """Log-likelihood of every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        log_likelihood : ndarray of shape (n_samples,)
            log f(x) - log Z in nats; NaN if log Z is not trusted and ``on_nonconvergence="nan"``.

        Raises
        ------
        RuntimeError
            If log Z is not trusted and ``on_nonconvergence="raise"``.
        """
        log_f = self._log_f(X)
        estimator = self._partition()
        self._warn_or_raise(estimator)
        if not _trusted(estimator) and self.on_nonconvergence == "nan":
            return np.full(len(log_f), np.nan)
        return log_f - estimator.log_partition_

    def score(self, X, y=None) -> float:
        """Mean log-likelihood per row, in nats.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        score : float
            Mean of `score_samples`. The error of log Z is common to all rows; see `score_interval`.
        """
        return float(self.score_samples(X).mean())

    def score_interval(self, X, level: float = 0.95) -> ScoreInterval:
        """Mean log-likelihood per row with the sampling error over rows and the error of log Z, apart and combined.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            At least 2 rows.
        level : float, default=0.95

        Returns
        -------
        interval : ScoreInterval
        """
        return score_interval(*self._scored(X, level), level)

    def _scored(self, X, level: float) -> tuple[NDArray[np.float64], float, float]:
        """Log-likelihood of every row, and how far the error that all rows share reaches below and above their mean."""
        values = self.score_samples(X)
        result = self.partition_estimator_.result_
        low, high = result.interval(level)
        return values, high - result.log_partition, result.log_partition - low


def _trusted(estimator: PartitionEstimator) -> bool:
    """Whether log Z converged and is an estimate: a bound or an approximation would move the score to one side."""
    return estimator.converged_ and estimator.result_.statement in ("exact", "estimate")


def _without_samples(result):
    """The result without arrays other than those along the ladder."""
    n_levels = 0 if result.ladder is None else len(result.ladder)
    keep = {
        name: value
        for name, value in result.diagnostics.items()
        if not isinstance(value, np.ndarray) or value.shape in ((n_levels,), (n_levels - 1,))
    }
    return replace(result, diagnostics=keep)
