"""RowLikelihoodMixin: what models share whose rows each have a log Z of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.utils.validation import check_is_fitted

from sklpf._utils.numbers import Array, Booleans, Integers
from sklpf._utils.parallel import fingerprint
from sklpf.models.scoring._likelihood import (
    ScoredModel,
    configured_estimator,
    distrust,
    fit_quietly,
    impossible,
    is_estimate,
    log,
    report,
)
from sklpf.models.scoring._scored import Scored, check_interval
from sklpf.partition import PartitionEstimator, PartitionResult

# Largest effect of untrusted rows on the mean over rows, in units of its sampling error, and the
# largest share of those whose error is unknown, so that errors that no check sees are small too.
_NEGLIGIBLE = 0.1
_MOST_UNTRUSTED = 0.05
_ERRORS_OFF = 5.0  # standard errors that a row that is only imprecise is taken to be off


class RowLikelihoodMixin(ScoredModel):
    """The likelihood of a model in which log p(x) of every row is a log Z of its own.

    A model has what `ScoredModel` says, and defines ``path(X)``: a path with one log Z a row, that
    row's likelihood. A model that has no likelihood of some rows overrides ``_targets(X)``.
    """

    path_takes_rows = True
    path: Callable[..., Any]

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
        return self._kept_partition[1]

    def _scored(self, X, level: float | None = None, tolerates: bool = True) -> Scored:
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

        usable = possible
        result = self._row_partition(path).result_
        values = result.log_partition
        below, above = _mean_error(result, 0.95 if level is None else level)
        trusted, reason = self._trust(path, result)
        off = _largest_effect(result, trusted)
        unknown = ~trusted & ~result.diagnostics["imprecise"]
        few = np.mean(unknown) <= _MOST_UNTRUSTED
        if reason is not None and tolerates and few and _is_negligible(off, values, trusted):
            log(f"rows that are not trusted hardly move the mean: {reason}")
            below += off
            above += off
        elif reason is not None:
            untrusted = f"likelihoods are not to be trusted: {reason}"
            reasons += (untrusted,)
            report(self, untrusted)
            if self.on_nonconvergence == "nan":
                usable = possible & trusted
        return Scored(np.where(usable, values, np.nan), below, above, reasons, self._unit)

    def _targets(self, X) -> tuple[Any, Booleans]:
        """The path of rows, and which of them have a likelihood at all, (n,)."""
        path = self.path(X)
        return path, np.ones(path.n_rows, dtype=bool)

    def _row_partition(self, path) -> PartitionEstimator:
        """The partition estimator fitted to the rows, which is kept: these rows are not estimated
        again.
        """
        self._validate_params()
        estimator = configured_estimator(self, path)
        parameters = estimator._number_parameters()
        try:
            digest = fingerprint(type(estimator), parameters, self._identity(path))
        except ValueError:  # a part can't be pickled
            digest = None
        kept = vars(self).get("_kept_partition")
        if digest is None or kept is None or kept[0] != digest:
            self._kept_partition = digest, fit_quietly(estimator, path)
        return self._kept_partition[1]

    def _identity(self, path) -> Any:
        """What tells rows with their model apart from others."""
        return path

    def _trust(self, path, result: PartitionResult) -> tuple[Booleans, str | None]:
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
                reason = reason or alarm
        return trusted, reason

    def _exclusive(self, path) -> Integers | None:
        """Groups (n_rows,) of rows that exclude each other unless they are the same, so that their
        probabilities sum to at most 1; None where rows have densities.
        """
        return None


def _largest_effect(result: PartitionResult, trusted: Booleans) -> float:
    """How far rows that are not trusted may move the mean over all rows, in nats."""
    if trusted.all() or not trusted.any():
        return 0.0
    values = np.asarray(result.log_partition)
    off = _ERRORS_OFF * np.asarray(result.std_error)
    # Where more is wrong than noise, the standard error says nothing of a row's error.
    apart = np.abs(values - values[trusted].mean())
    off = np.where(result.diagnostics["imprecise"], off, np.maximum(off, apart))
    return float(np.sum(off[~trusted])) / len(trusted)


def _is_negligible(effect: float, values: Array, trusted: Booleans) -> bool:
    """Whether an effect on the mean over all rows is small beside its sampling error."""
    if trusted.sum() < 2 or not np.all(np.isfinite(values)):
        return False
    return bool(effect <= _NEGLIGIBLE * values[trusted].std(ddof=1) / np.sqrt(trusted.sum()))


def _mean_error(result: PartitionResult, level: float) -> tuple[float, float]:
    """How far the Monte-Carlo error reaches below and above the mean over rows."""
    if result.statement not in ("exact", "estimate"):
        low, high = result.interval(level)
        return float(np.mean(result.log_partition - low)), float(
            np.mean(high - result.log_partition)
        )
    half = float(norm.ppf(0.5 + level / 2)) * result.diagnostics["mean_std_error"]
    return half, half - float(np.mean(result.bias))
