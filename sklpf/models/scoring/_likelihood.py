"""LogLikelihoodMixin and RowLikelihoodMixin: what models with one intractable log Z share, and
those whose rows each have one.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.utils.validation import check_is_fitted

from sklpf._utils.numbers import Array, Integers, check_count
from sklpf._utils.parallel import fingerprint
from sklpf._utils.random import draw_seed
from sklpf._utils.sklearn import CallbackSupportMixin, DensityMixin, Versioned
from sklpf.models._validation import check_fitted, named_by_model, validate_data
from sklpf.models.scoring._scored import (
    Scored,
    ScoredParameters,
    ScoreInterval,
    check_interval,
    configured_estimator,
    default_estimator,
    distrust,
    fit_quietly,
    impossible,
    interval_of,
    is_estimate,
    log,
    report,
)
from sklpf.partition import ParallelTempering, PartitionEstimator, PartitionResult
from sklpf.paths import Stream, TargetDraws, stream_key
from sklpf.paths._capabilities import has

# Largest effect of untrusted rows on the mean over rows, in units of its sampling error, and the
# largest share of those whose error is unknown, so that errors that no check sees are small too.
_NEGLIGIBLE = 0.1
_MOST_UNTRUSTED = 0.05
_ERRORS_OFF = 5.0  # standard errors that a row that is only imprecise is taken to be off


class RowLikelihoodMixin(Versioned, ScoredParameters, CallbackSupportMixin, DensityMixin):
    """score, score_samples and score_interval of a model in which log p(x) of every row is a log Z
    of its own.

    A model has the parameters `partition_estimator`, `on_nonconvergence` and `n_jobs`, sets
    `_partition_seed` in ``fit``, and defines ``path(X)``: a path with one log Z a row, that row's
    likelihood. A model that has no likelihood of some rows overrides ``_targets(X)`` and says why
    in ``_impossible``.
    """

    path_takes_rows = True
    path: Callable[..., Any]
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
        return self._kept_partition[1]

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
            In nats; NaN, with a warning, for rows that have no likelihood. With
            ``on_nonconvergence="nan"`` also for rows that are not trusted, and reasons are logged.

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
            Mean over the rows. Rows that are not trusted are tolerated, with a line in the log,
            where they can move the mean by at most a tenth of its sampling error: a row that is
            only imprecise (``result_.diagnostics["imprecise"]``) by five of its standard errors,
            another one by its distance from the mean of the trusted ones if that is more; of the
            latter at most 5 %.
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
            standard error), which widens it upwards, and for the effect of rows that are not
            trusted but tolerated, which widens it both ways.
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
        values = np.where(usable, values, np.nan)
        return Scored(values, below, above, reasons, self._unit)

    def _targets(self, X) -> tuple[Any, NDArray[np.bool_]]:
        """The path of rows, and which of them have a likelihood at all, (n,)."""
        path = self.path(X)
        return path, np.ones(path.n_rows, dtype=bool)

    def _row_partition(self, path) -> PartitionEstimator:
        """The partition estimator fitted to the rows, which is kept: these rows are not estimated
        again.
        """
        self._validate_params()
        estimator = configured_estimator(self, path)
        digest = self._digest(path, estimator)
        kept = self.__dict__.get("_kept_partition")
        if digest is None or kept is None or kept[0] != digest:
            self._kept_partition = digest, fit_quietly(estimator, path)
        return self._kept_partition[1]

    def _digest(self, path, estimator: PartitionEstimator) -> str | None:
        """Digest of all that an estimate of these rows depends on; None if that is not known."""
        parameters = estimator._number_parameters()
        try:
            return fingerprint(type(estimator), parameters, self._identity(path))
        except ValueError:  # a part can't be pickled
            return None

    def _identity(self, path) -> Any:
        """What tells rows with their model apart from others."""
        return path

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

    def _exclusive(self, path) -> Integers | None:
        """Groups (n_rows,) of rows that exclude each other unless they are the same, so that their
        probabilities sum to at most 1; None where rows have densities.
        """
        return None


def _largest_effect(result: PartitionResult, trusted: NDArray[np.bool_]) -> float:
    """How far rows that are not trusted may move the mean over all rows, in nats."""
    if trusted.all() or not trusted.any():
        return 0.0
    values = np.asarray(result.log_partition)
    off = _ERRORS_OFF * np.asarray(result.std_error)
    # Where more is wrong than noise, the standard error says nothing of a row's error.
    apart = np.abs(values - values[trusted].mean())
    off = np.where(result.diagnostics["imprecise"], off, np.maximum(off, apart))
    return float(np.sum(off[~trusted])) / len(trusted)


def _is_negligible(effect: float, values: Array, trusted: NDArray[np.bool_]) -> bool:
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


class LogLikelihoodMixin(Versioned, ScoredParameters, CallbackSupportMixin, DensityMixin):
    """score, score_samples, score_interval and the kept log Z of a model p(x) = f(x) / Z.

    A model has the parameters `partition_estimator`, `on_nonconvergence` and `n_jobs`, sets
    `_partition_seed` in ``fit``, and defines

    - ``path(**options)``: its path, with defaults for all options;
    - ``_log_f(X)``: log f of every row, in nats, and whether it has a density at all, both (n,);
    - ``_fitted_shapes``: dimensions of the fitted attributes, of which the path is made;
      ``_positive`` names those that are divided by.

    A model that has no density for some rows says why in ``_impossible``.

    log Z is estimated at the first need and kept with a digest of the model's arrays and the
    estimator's parameters; what does not match the digest is not used.
    """

    path: Callable[..., Any]
    _log_f: Callable[..., Any]
    _partition_seed: int
    _fitted_shapes: dict[str, tuple[str, ...]]
    _positive: tuple[str, ...] = ()  # fitted attributes that are divided by
    # Whether rows have probabilities, which sum to 1, or densities; None where it is not said.
    _discrete: bool | None = None
    _impossible = "the model's density is 0 there"  # why rows have none, for results

    # -- log Z
    def estimate_log_partition(self) -> Self:
        """Estimate log Z now (again, if it has been before) and keep it.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self.__dict__.pop("_kept_partition", None)
        reason = distrust(self._partition().result_)
        if reason is not None:
            report(self, f"log Z is not to be trusted: {reason}")
        return self

    @property
    def partition_estimator_(self) -> PartitionEstimator:
        """The fitted partition estimator; its ``result_`` holds the diagnostics. AttributeError
        before there is one.
        """
        check_is_fitted(self)
        kept = self.__dict__.get("_kept_partition")
        if kept is None or kept[0] != self._digest():
            raise AttributeError(
                "log Z has not been estimated for the model as it is now: call score or"
                " estimate_log_partition first"
            )
        return kept[1]

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

    def _partition(self) -> PartitionEstimator:
        """The fitted partition estimator, fitted now if none is kept."""
        self._validate_params()
        digest = self._digest()
        kept = self.__dict__.get("_kept_partition")
        if kept is None or kept[0] != digest:
            path = self.path() if self.partition_estimator is None else self
            kept = digest, fit_quietly(configured_estimator(self, path), path)
            self._kept_partition = kept
        return kept[1]

    def _digest(self) -> tuple:
        """Digest of the fitted arrays, and of all parameters that an estimate depends on."""
        arrays = [np.ascontiguousarray(getattr(self, name)) for name in self._fitted_shapes]
        estimator = self.partition_estimator
        parameters = {} if estimator is None else estimator._number_parameters()
        if not isinstance(parameters.get("random_state"), Integral):
            parameters.pop("random_state", None)  # a generator prints as its address
        parts = (
            type(estimator).__name__,
            parameters,
            self._partition_seed,
            [(a.shape, a.dtype.str) for a in arrays],
        )
        return fingerprint(parts), *(zlib.crc32(array) for array in arrays)

    def _draw(self, n_samples: int, random_state) -> tuple[Any, Any]:
        """The path, and the state of chains at its target: exact draws where there are any, else
        by the model's own estimator if it can draw, or by the default one.
        """
        path = self.path()
        check_count(n_samples, "n_samples")
        seed = draw_seed(random_state)
        if has(path, TargetDraws):
            return path, path.sample_target(n_samples, Stream(stream_key(seed)))
        estimators = (self.partition_estimator, default_estimator(path), ParallelTempering())
        sampler: Any = next(each for each in estimators if hasattr(each, "sample"))
        if sampler is not self.partition_estimator:
            sampler.set_params(n_jobs=self.n_jobs)
        elif isinstance(sampler, PartitionEstimator):
            path = sampler._as_path(path)
        return path, sampler.sample(path, n_samples, np.random.default_rng(seed))

    @named_by_model
    def sample(self, n_samples=1, random_state=None) -> NDArray:
        """Draw rows from the model.

        Exact and independent where the default of `partition_estimator` is `Exact`; else from
        tempered chains (`ParallelTempering`), nearly independent if these mix. A
        `partition_estimator` that can sample is used instead.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState or None, default=None

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            As rows of training.
        """
        path, state = self._draw(n_samples, random_state)
        return self._as_data(path.rows(state))

    def _as_data(self, rows) -> NDArray:
        """Rows as `sample` returns them, from those of the path."""
        return np.asarray(rows, dtype=np.float64)

    def _validate(self, X):
        """Rows to score as float64, of a fitted model."""
        check_fitted(self)
        return validate_data(self, X, dtype=np.float64, reset=False)

    # -- log-likelihood
    @named_by_model
    def score_samples(self, X) -> Array:
        """Log-likelihood of every row.

        Parameters
        ----------
        X : array-like, or sparse matrix where the model takes one, of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_likelihood : ndarray of shape (n_samples,)
            log f(x) - log Z in nats; NaN, with a warning, for rows that the model has no density
            for. With ``on_nonconvergence="nan"`` all are NaN if log Z is not trusted, and reasons
            are logged; ``partition_estimator_.result_`` has that of log Z.

        Raises
        ------
        RuntimeError
            If a number is not trusted and ``on_nonconvergence="raise"``.
        """
        return self._scored(X)[0]

    @named_by_model
    def score(self, X, y=None) -> float:
        """Mean log-likelihood per row, in nats.

        Parameters
        ----------
        X : array-like, or sparse matrix where the model takes one, of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        score : float
            Mean of `score_samples`. The error of log Z is common to all rows; see `score_interval`.
        """
        return float(self._scored(X)[0].mean())

    @named_by_model
    def score_interval(self, X, level: float = 0.95) -> ScoreInterval:
        """Mean log-likelihood per row with the sampling error over rows and the error of log Z,
        apart and combined.

        Parameters
        ----------
        X : array-like, or sparse matrix where the model takes one, of shape (n_samples, n_features)
            At least 2 rows.
        level : float, default=0.95
            Probability with which each interval covers.

        Returns
        -------
        interval : ScoreInterval
            ``mean``, its intervals ``sampling``, ``partition`` (log Z) and ``combined``,
            ``converged`` and ``reasons``.
        """
        return interval_of(self._scored(X, level), level)

    def _scored(self, X, level: float | None = None) -> Scored:
        values, possible = self._log_f(X)
        if level is not None:
            check_interval(len(values), level)
        without = (
            f"{np.sum(~possible)} of {len(values)} rows of X have no likelihood: {self._impossible}"
        )
        if not possible.any():  # whatever log Z is, which takes time
            report(self, without)
            return Scored(np.full(len(values), np.nan), below=0.0, above=0.0, reasons=(without,))
        result = self._partition().result_
        reason = distrust(result)
        reasons = []
        if reason is not None:
            reasons.append(f"log Z is not to be trusted: {reason}")
        elif self._discrete:
            alarm = impossible(values[possible] - result.log_partition, result.std_error)
            if alarm is not None:
                reason = str(alarm)
                reasons.append(f"log Z is not to be trusted: {reason}")
        if not possible.all():
            reasons.append(without)
        for sentence in reasons:
            report(self, sentence)
        values = np.where(possible, values, np.nan)
        if self.on_nonconvergence == "nan" and reason is not None:
            values = np.full_like(values, np.nan)
        low, high = result.interval(0.95 if level is None else level)
        log_partition = result.log_partition
        return Scored(
            values - log_partition,
            below=high - log_partition,
            above=log_partition - low,
            reasons=tuple(reasons),
            scatter=vars(self).get("log_likelihood_scatter_", np.nan),
        )
