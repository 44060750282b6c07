"""Baselines of scores: the log-likelihood of the same rows by a model of the training rows without
structure.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from scipy.stats import norm
from sklearn.utils.extmath import safe_sparse_dot

from sklpf import paths
from sklpf._utils.numbers import Array, Matrix
from sklpf._utils.validation import rows_by_pattern
from sklpf.uncertainty import Variance

_MOST_COVARIANCES = 256  # columns of which all covariances are kept
_ROWS_PER_COLUMN = 5  # from which on they are used: few rows determine them badly
_ROWS_AT_ONCE = 1000  # of a sparse matrix that are made dense, of a wide one fewer:
_NUMBERS_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class IndependentUnits:
    """Independent discrete columns, with the smoothed shares of the training rows."""

    units: Any = None
    n_rows: Any = 0  # or those in which each unit is known
    sums: Any = 0.0
    name = "independent columns"

    def seen(self, X: Matrix) -> Self:
        """Return the baseline with more training rows, as units (n, n_units)."""
        sums, n = self.units.counts(X)
        return type(self)(self.units, self.n_rows + n, self.sums + sums)

    def log_likelihood(self, X: Matrix) -> Array:
        """Return the log-likelihood of rows, (n,), in nats."""
        logits = self.units.logits_of(self.units.smoothed_means(self.sums, self.n_rows))
        known = safe_sparse_dot(self.units.without_missing(X), logits)
        missing = self.units.missing(X)
        if missing is None:
            return known - self.units.log_norms(logits)
        return known - ~missing @ self.units.column_log_norms(logits)


class OneTopic(IndependentUnits):
    """One topic: the smoothed shares of the words in all training documents."""

    name = "one topic"

    def seen(self, X: Matrix) -> Self:
        """Return the baseline with more documents, of counts (n, n_words)."""
        sums = self.sums + np.asarray(X.sum(axis=0, dtype=np.float64)).ravel()
        return type(self)(sums=sums)

    def log_likelihood(self, X: Matrix) -> Array:
        """Return the log-likelihood of documents, (n,), in nats."""
        shares = (self.sums + 1) / np.sum(self.sums + 1)
        return safe_sparse_dot(X, np.log(shares))


@dataclass(frozen=True)
class GaussianBaseline:
    """One Gaussian with the moments of the training rows, of many columns or few rows independent
    ones.
    """

    n_rows: Any = 0  # (d,) in which each column is known
    mean: Any = 0.0
    covariance: Any = 0.0  # (d, d), or variances (d,)

    def seen(self, X: Matrix) -> Self:
        """Return the baseline with more training rows (n, d)."""
        if sp.issparse(X):
            n = max(1, min(_ROWS_AT_ONCE, _NUMBERS_AT_ONCE // X.shape[1]))
            parts = (X[i : i + n].toarray() for i in range(0, X.shape[0], n))
            return functools.reduce(type(self).seen, parts, self)
        missing = np.isnan(X)
        n = len(X) - missing.sum(axis=0)
        total = self.n_rows + n
        share = n / np.maximum(total, 1)
        away = np.subtract(X, self.mean, dtype=np.float64)
        away[missing] = 0.0
        step = away.sum(axis=0) / np.maximum(n, 1)
        away -= step
        away[missing] = 0.0
        before = self.covariance
        has_all = not missing.any() and np.ndim(before) != 1
        if has_all and X.shape[1] <= _MOST_COVARIANCES:
            within = away.T @ away / len(X)
            between = np.outer(step, step)
        else:
            before = np.diag(before) if np.ndim(before) == 2 else before
            within = np.einsum("ij,ij->j", away, away) / np.maximum(n, 1)
            between = step**2
        covariance = before + share * (within - before) + share * (1 - share) * between
        return type(self)(total, self.mean + share * step, covariance)

    @property
    def _is_full(self) -> bool:
        return np.ndim(self.covariance) == 2 and len(self.mean) * _ROWS_PER_COLUMN <= self.n_rows[0]

    @property
    def name(self) -> str:
        """Name in summaries."""
        return "one Gaussian" if self._is_full else "independent normal columns"

    def log_likelihood(self, X: Matrix) -> Array | None:
        """Return the log density of rows, (n,), in nats; None where the training rows leave a
        direction without variance.
        """
        covariance = self.covariance
        if covariance.ndim == 2 and not self._is_full:
            covariance = np.diag(covariance)
        spread = np.sqrt(covariance if covariance.ndim == 1 else np.diag(covariance))
        if np.any(spread <= 1e-10 * np.abs(self.mean)):  # rounding errors of a constant column
            return None
        X = X.toarray() if sp.issparse(X) else X
        values = np.zeros(len(X))
        for rows, missing in rows_by_pattern(np.isnan(X)):
            known = np.flatnonzero(~missing)
            if not known.size:
                continue
            part = covariance[known] if covariance.ndim == 1 else covariance[np.ix_(known, known)]
            try:
                fitted = paths.Gaussian(self.mean[known], part)
            except ValueError:
                return None
            values[rows] = fitted.log_density(X[np.ix_(rows, known)])
        return values


def new_baseline(model: Any) -> Any:
    """Return the baseline of a model's kind of rows, which has seen none."""
    if model._unit == "document":
        return OneTopic()
    if model._discrete:
        return IndependentUnits(model._visible_units)
    return GaussianBaseline()


class BaselineScore(NamedTuple):
    """A baseline's mean log-likelihood of the rows that a score is of.

    Attributes
    ----------
    name : str
        "independent columns", "one topic", "one Gaussian" or "independent normal columns", of the
        training rows.
    mean : float
        In nats, in the unit of the score.
    is_better : bool
        Whether the mean difference of the rows excludes, at 0.1 %, that the model is as good, or
        worse by no more than 0.005 nats.
    remedy : str
        What to change then.
    """

    name: str
    mean: float
    is_better: bool
    remedy: str

    def sentence(self, score: float, unit: str) -> str:
        """Say that the model is worse, where it is.

        Parameters
        ----------
        score : float
            Mean log-likelihood by the model, in nats.
        unit : str
            What the mean is over.

        Returns
        -------
        str
            Empty otherwise.
        """
        if not self.is_better:
            return ""
        return (
            f"the model is worse than {self.name} of the training rows, {score:.2f} and"
            f" {self.mean:.2f} nats a {unit}: {self.remedy}"
        )


class RowsBaseline(NamedTuple):
    """A baseline's log-likelihoods of the rows that a model has scored."""

    name: str
    values: Array  # (n,) log-likelihoods in nats
    remedy: str  # what to change about a model that is worse

    def compare(
        self,
        values: Array,
        above: float,
        level: float = 0.95,
        *,
        # probability of the interval that must exclude that a model is as good
        certain: float = 0.9973,
        negligible: float = 0.005,  # nats, half of the last decimal of the sentence
    ) -> BaselineScore:
        """Compare with log-likelihoods of the same rows by the model, (n,), whose mean has an error
        of log Z that reaches so far above it with the probability `level`.
        """
        gains = values - self.values
        is_better = False
        if len(gains) > 1 and np.all(np.isfinite(gains)):
            half = Variance(gains.var(ddof=1) / len(gains), len(gains) - 1).half_width(certain)
            wider = norm.ppf(0.5 + certain / 2) / norm.ppf(0.5 + level / 2)
            is_better = bool(gains.mean() + np.hypot(half, wider * above) < -negligible)
        return BaselineScore(self.name, float(self.values.mean()), is_better, self.remedy)
