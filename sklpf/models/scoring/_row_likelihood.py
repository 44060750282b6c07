"""RowLikelihoodMixin: what models share whose rows each have an intractable likelihood."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from sklpf._utils.numbers import Array
from sklpf._utils.saving import Versioned
from sklpf._utils.sklearn import CallbackSupportMixin, FittedAttributes
from sklpf.models._validation import named_by_model
from sklpf.models.scoring._scored import (
    Scored,
    ScoreInterval,
    check_interval,
    configured_estimator,
    distrust,
    fit_quietly,
    impossible,
    interval_of,
    is_estimate,
    log,
    report,
)
from sklpf.partition import PartitionEstimator, PartitionResult

# Largest effect of untrusted rows on the mean over rows, in units of its sampling error, and their
# largest share, so that errors that no check sees are small as well.
_NEGLIGIBLE = 0.1
_MOST_UNTRUSTED = 0.05


class RowLikelihoodMixin(Versioned, FittedAttributes, CallbackSupportMixin, DensityMixin):
    """score, score_samples and score_interval of a model in which log p(x) of every row is a log Z
    of its own.

    A model has the parameters `partition_estimator`, `on_nonconvergence` and `n_jobs`, sets
    `_partition_seed` in ``fit``, and defines ``path(X)``: a path with one log Z a row, that row's
    likelihood. A model that has no likelihood of some rows overrides ``_targets(X)`` and says why
    in ``_impossible``.
    """

    path_takes_rows = True
    _unit = "row"  # what a row is, for results
    _discrete: bool | None = None  # as in `LogLikelihoodMixin`
    _positive: tuple[str, ...] = ()
    _impossible = ""

    @property
    def partition_estimator_(self) -> PartitionEstimator:
        """The partition estimator of the rows that were scored last; AttributeError before any
        were.

        ``result_.diagnostics["converged"]`` says which rows are trusted, ``result_.reasons`` why
        others are not.
        """
        check_is_fitted(self)
        if "_kept_partition" not in self.__dict__:
            raise AttributeError(
                "no rows have been scored yet: call score, score_samples or score_interval first"
            )
        return self._kept_partition

    @named_by_model
    def score_samples(self, X) -> Array:
        """Log-likelihood of every row.

        A row's value depends on that row and the model alone, not on the other rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_likelihood : ndarray of shape (n_samples,)
            In nats; with ``on_nonconvergence="nan"`` NaN for rows that are not trusted or have no
            likelihood, and the reason is logged.

        Raises
        ------
        RuntimeError
            If rows are not trusted or have no likelihood, and ``on_nonconvergence="raise"``.
        """
        return self._scored(X, tolerates=False)[0]

    @named_by_model
    def score(self, X, y=None) -> float:
        """Mean log-likelihood per row, in nats.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        score : float
            Mean over the rows. At most 5 % of them that are not trusted are tolerated, with a line
            in the log, where the mean with and without them differs by at most a tenth of its
            sampling error.
        """
        return float(self._scored(X)[0].mean())

    @named_by_model
    def score_interval(self, X, level: float = 0.95) -> ScoreInterval:
        """Mean log-likelihood per row with its sampling error over rows and its Monte-Carlo error,
        apart and combined.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            At least 2 rows.
        level : float, default=0.95
            Probability with which each interval covers.

        Returns
        -------
        interval : ScoreInterval
            ``partition`` is the Monte-Carlo part: zero where rows are enumerated; else it shrinks
            with more rows, but for the bias of a logarithm of estimates (half the mean squared
            standard error), which widens it upwards.
        """
        return interval_of(self._scored(X, level), level)

    def _scored(self, X, level: float | None = None, tolerates: bool = True) -> Scored:
        """Values of all rows. Whether a few that are not trusted are tolerated depends on what they
        are for.
        """
        path, possible = self._targets(X)
        if level is not None:
            check_interval(path.n_rows, level)
        reasons: tuple[str, ...] = ()
        if not possible.all():
            refused = (
                f"{np.sum(~possible)} of {len(possible)} rows of X have no likelihood:"
                f" {self._impossible}"
            )
            reasons = (refused,)
            report(self, refused)
        result = self._row_partition(path).result_
        values = result.log_partition
        trusted, reason = self._trust(path, result)
        if reason is not None and tolerates and _is_negligible(values, trusted):
            log(f"rows that are not trusted are too few to move the mean: {reason}")
        elif reason is not None:
            untrusted = f"likelihoods are not to be trusted: {reason}"
            reasons += (untrusted,)
            report(self, untrusted)
            possible = possible & trusted
        if self.on_nonconvergence == "nan":
            values = np.where(possible, values, np.nan)
        below, above = _mean_error(result, 0.95 if level is None else level)
        return Scored(values, below, above, reasons, self._unit)

    def _targets(self, X) -> tuple[Any, NDArray[np.bool_]]:
        """The path of rows, and which of them have a likelihood at all, (n,)."""
        path = self.path(X)
        return path, np.ones(path.n_rows, dtype=bool)

    def _row_partition(self, path) -> PartitionEstimator:
        """The partition estimator fitted to the rows."""
        self._validate_params()
        self._kept_partition = fit_quietly(configured_estimator(self, path), path)
        return self._kept_partition

    def _trust(self, path, result: PartitionResult) -> tuple[NDArray[np.bool_], str | None]:
        """Which rows are trusted, and why the others are not."""
        trusted = result.diagnostics["converged"]
        reason = distrust(result)
        if not is_estimate(result):
            return np.zeros_like(trusted), reason
        groups = self._exclusive(path)
        for group in [] if groups is None else np.unique(groups[trusted]):
            rows = trusted & (groups == group)
            alarm = impossible(result.log_partition[rows], result.std_error[rows])
            if alarm is not None:
                trusted = trusted & ~rows
                reason = reason or str(alarm)
        return trusted, reason

    def _exclusive(self, path) -> NDArray[np.int64] | None:
        """Groups (n_rows,) of rows that exclude each other unless they are the same, so that their
        probabilities sum to at most 1; None where rows have densities.
        """
        return None


def _is_negligible(values: Array, trusted: NDArray[np.bool_]) -> bool:
    """Whether rows that are not trusted are few and hardly move the mean over all rows."""
    if trusted.sum() < 2 or np.mean(~trusted) > _MOST_UNTRUSTED or not np.all(np.isfinite(values)):
        return False
    moved = abs(values.mean() - values[trusted].mean())
    return bool(moved <= _NEGLIGIBLE * values[trusted].std(ddof=1) / np.sqrt(trusted.sum()))


def _mean_error(result: PartitionResult, level: float) -> tuple[float, float]:
    """How far the Monte-Carlo error reaches below and above the mean over rows."""
    if result.statement not in ("exact", "estimate"):
        low, high = result.interval(level)
        return float(np.mean(result.log_partition - low)), float(
            np.mean(high - result.log_partition)
        )
    half = float(norm.ppf(0.5 + level / 2)) * result.diagnostics["mean_std_error"]
    return half, half - float(np.mean(result.bias))
