"""Scores of models: ScoredModel, LogLikelihoodMixin of those with one intractable log Z, and
RowLikelihoodMixin of those whose rows each have a log Z of their own.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from sklpf._utils.context import hand_on, of_a_score
from sklpf._utils.numbers import Array, Booleans, Integers
from sklpf._utils.parallel import fingerprint, own_arithmetic
from sklpf._utils.random import draw_seed, seeded
from sklpf._utils.sklearn import CallbackSupportMixin, DensityMixin, StrOptions, in_container
from sklpf._utils.validation import (
    N_JOBS,
    FittedAttributes,
    Instance,
    Versioned,
    check_count,
    check_fitted,
    validate_data,
)
from sklpf._utils.warnings import warn
from sklpf.partition import (
    HAIS,
    BridgeSampling,
    LeftToRight,
    ParallelTempering,
    PartitionEstimator,
    PartitionResult,
    default_estimator,
)
from sklpf.partition.alarms import raised, threshold
from sklpf.paths import has
from sklpf.scoring._baseline import BaselineScore, RowsBaseline, new_baseline
from sklpf.scoring._scored import Scored, ScoreInterval, check_interval, interval_of

log_warning = logging.getLogger("sklpf").warning

# share of the rows whose error may be unknown: errors that no check sees are then small too
_MOST_UNTRUSTED = 0.05

SCORING: dict[str, Any] = {  # rules for the parameters that all models share
    "verbose": ["verbose"],
    "random_state": ["random_state"],
    "partition_estimator": [
        Instance(PartitionEstimator, "an estimator of log Z (such as AIS())"),
        None,
    ],
    "on_nonconvergence": [StrOptions({"warn", "nan", "raise"})],
    "n_jobs": N_JOBS,
}


@dataclass(eq=False, repr=False, kw_only=True)
class ScoredModel(Versioned, FittedAttributes, CallbackSupportMixin, DensityMixin):
    """score, score_samples and score_interval of a model.

    A model has the parameters below, of which `partition_estimator` must suit it, sets
    `_partition_seed` in ``fit``, and defines ``path`` and ``_scored``. A model that has no
    likelihood of some rows says why in ``_impossible``.
    """

    random_state: int | np.random.RandomState | None = None
    partition_estimator: PartitionEstimator | None = None
    on_nonconvergence: Literal["warn", "nan", "raise"] = "warn"
    n_jobs: int | None = None

    _discrete = False  # whether rows have probabilities, which sum to 1, or else densities
    _states_are_points = True  # of R^d
    _takes_missing = False  # NaN
    _unit = "row"  # what a row is, for results
    # Fitted attributes that are divided by, that may also be 0, and that lie between 0 and 1.
    _positive: ClassVar[tuple[str, ...]] = ()
    _not_negative: ClassVar[tuple[str, ...]] = ()
    _shares: ClassVar[tuple[str, ...]] = ()
    _may_be_sparse: ClassVar[tuple[str, ...]] = ()
    _impossible = ""
    path: ClassVar[Callable[..., Any]]
    get_params: ClassVar[Callable[..., dict[str, Any]]]

    def score_samples(self, X) -> Array:
        """Log-likelihood of every row.

        Parameters
        ----------
        X : array-like, or sparse matrix where the model takes one, of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_likelihood : ndarray of shape (n_samples,)
            In nats; NaN, with a warning, for rows that have no likelihood. With
            ``on_nonconvergence="nan"`` also for rows whose log Z is not trusted, and reasons are
            logged; ``partition_estimator_.result_`` has those of log Z. Where every row has a log Z
            of its own, its value depends on that row and the model alone, not on the other rows.

        Raises
        ------
        RuntimeError
            If a number is not trusted, and ``on_nonconvergence="raise"``.
        ValueError
            If a row has no likelihood, and ``on_nonconvergence="raise"``.
        """
        return self._scored(X, tolerates=False).values

    def score(self, X, y=None) -> float:
        """Mean log-likelihood per row, in nats.

        Parameters
        ----------
        X : array-like, or sparse matrix where the model takes one, of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        score : float
            Mean over the rows. An error of a log Z that all rows share is common to them; see
            `score_interval`. Where every row has its own, rows that are not trusted are tolerated,
            with a line in the log, where they can move the mean by at most a tenth of its sampling
            error: a row that is only imprecise (``result_.diagnostics["imprecise"]``) by five of
            its standard errors, another one by its distance from the mean of the trusted ones if
            that is more; of the latter at most 5 %.
        """
        scored = self._scored(X)
        mean = float(scored.values.mean())
        if scored.baseline is not None:
            self._say_if_worse(scored.baseline.compare(scored.values, scored.above), mean)
        return mean

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
            ``converged`` and ``reasons``. Where every row has a log Z of its own, ``partition`` is
            zero if rows are enumerated; else it shrinks with more rows, but for the bias of a
            logarithm of estimates (half the mean squared standard error), which widens it upwards,
            and for the effect of rows that are not trusted but tolerated, which widens it both
            ways.
        """
        interval = interval_of(self._scored(X, level), level)
        if interval.baseline is not None:
            self._say_if_worse(interval.baseline, interval.mean)
        return interval

    # -- the baseline
    def _see_rows(self, X, begins: bool) -> None:
        """Count training rows for the baseline of scores, after others unless a fit begins."""
        seen = None if begins else vars(self).get("_rows_seen")
        self._rows_seen = (seen or new_baseline(self)).seen(self._validate(X))

    def _with_baseline(self, scored: Scored, X) -> Scored:
        """Scores of rows by the model, beside those by its baseline."""
        seen = vars(self).get("_rows_seen")
        if seen is None:
            return scored
        with np.errstate(all="ignore"):
            values = seen.log_likelihood(X)
        if values is None:
            return scored
        return scored._replace(baseline=RowsBaseline(seen.name, values, self._remedy_of_worse()))

    def _remedy_of_worse(self) -> str:
        """Advice on what to change about a model that is worse than its baseline."""
        parameters = self.get_params(deep=False)
        sizes = [name for name in ("n_iter", "max_iter", "n_components") if name in parameters]
        remedies = [f"raise {' or '.join(sizes)}"] if sizes else []
        if "learning_rate" in parameters:
            remedies.insert(0, "lower learning_rate")
        if parameters.get("axes") == "columns":
            remedies.append('take axes="principal"')
        elif not self._discrete and "axes" not in parameters:
            remedies.append("take correlations out of X by PCA(whiten=True)")
        return ", or ".join(remedies) or "train it on rows like these"

    def _say_if_worse(self, baseline: BaselineScore, score: float) -> None:
        """Warn once of a model that is worse than its baseline."""
        message = baseline.sentence(score, self._unit)
        if message and self.on_nonconvergence == "nan":
            log_warning(message)
        elif message:
            warn(message)

    def _scored(self, X, level: float | None = None, tolerates: bool = True) -> Scored:
        """Scores of rows, for an interval of some level.

        Where every row has a log Z, `tolerates` says whether some may be untrusted: those that
        hardly move a mean.
        """
        raise NotImplementedError

    def _row_partition(self, path, name: str = "_kept_partition") -> PartitionEstimator:
        """The partition estimator fitted to rows, kept by a name: they are not estimated again."""
        self._validate_params()
        estimator = configured_estimator(self, path)
        parameters = estimator._number_parameters()
        try:
            digest = fingerprint(type(estimator), parameters, self._identity(path))
        except ValueError:  # a part can't be pickled
            digest = None
        kept = None if digest is None else self._kept(digest, name)
        if kept is None:
            kept = fit_for_model(estimator, path)
            setattr(self, name, (digest, kept))
        return kept

    def _kept(self, digest: object, name: str = "_kept_partition") -> PartitionEstimator | None:
        """The fitted estimator that is kept by a name, if it is that of the digest."""
        kept = vars(self).get(name)
        return kept[1] if kept is not None and kept[0] == digest else None

    def _identity(self, path) -> Any:
        """Key that tells rows with their model apart from others."""
        return path

    def _validate(self, X, reset=False) -> Any:
        """Rows as float64."""
        return validate_data(self, X, reset=reset, dtype=np.float64)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = self._takes_missing
        return tags

    def _scorable(self, X) -> Any:
        """Rows to score, of a fitted model."""
        check_fitted(self)
        return self._validate(X)

    def _validate_params(self) -> None:
        super()._validate_params()
        estimator = self.partition_estimator
        why_not = self._why_not(estimator)
        if why_not:
            raise TypeError(
                f"partition_estimator can't be {type(estimator).__name__}, which {why_not}: choose"
                " AIS, RTS or ParallelTempering, with transition=None"
            )

    def _why_not(self, estimator: PartitionEstimator | None) -> str:
        """Why an estimator can't score this model; empty where it may."""
        move = getattr(estimator, "transition", None)
        moves_points = isinstance(estimator, HAIS) or "position" in getattr(move, "requires", ())
        if moves_points and not self._states_are_points:
            return f"moves points of R^d, where the states of {type(self).__name__} are discrete"
        if isinstance(estimator, BridgeSampling):
            return "needs draws"
        if isinstance(estimator, LeftToRight) and self._unit != "document":
            return "reads documents"
        return ""


# -- the estimator
def configured_estimator(model: Any, path: Any) -> PartitionEstimator:
    """Return the model's partition estimator, with the model's seed and number of jobs, and what
    listens to the model.

    What the estimator sets itself stays.
    """
    estimator = model.partition_estimator
    if estimator is None:
        estimator = default_estimator(path) or ParallelTempering()
    else:
        estimator = clone(estimator)
    current = estimator.get_params(deep=False)
    defaults = {"random_state": model._partition_seed, "n_jobs": model.n_jobs}
    chosen = {name: value for name, value in defaults.items() if current.get(name, "") is None}
    if "verbose" in current:
        chosen["verbose"] = max(current["verbose"], getattr(model, "verbose", 0))
    hand_on(model, estimator)
    return estimator.set_params(**chosen)


def fit_for_model(estimator: PartitionEstimator, path: Any) -> PartitionEstimator:
    """Fit an estimator for a model that decides itself what to say, and keep no samples."""
    with of_a_score():
        estimator._fit(path)
    estimator.result_ = estimator.result_.without_samples()
    for name in ("run_", "samples_", "sampler_", "_skl_callbacks"):
        estimator.__dict__.pop(name, None)
    return estimator


# -- trust
def reason_not_trusted(result: PartitionResult) -> str | None:
    """Why a result can't make a score, or None: it must have converged and be an estimate, since a
    bound or an approximation would move the score to one side.
    """
    if not result.converged:
        return f"{result.method} did not converge: {'; '.join(result.reasons)}"
    if not result.is_estimate:
        return (
            f'{result.method} gave a number that is "{result.statement}" where a score needs an'
            " estimate"
        )
    return None


def impossible(log_probabilities: Array, std_error: Any) -> str | None:
    """An alarm if the probabilities of distinct outcomes sum to more than 1, by more than their
    error.

    Equal probabilities count once: they may be those of the same outcome.

    Parameters
    ----------
    log_probabilities : ndarray of shape (n,)
        In nats, of outcomes that exclude each other where they are not the same.
    std_error : float or ndarray of shape (n,)
        One error that all share, or independent ones.
    """
    # Rows that are the same may differ in their last bits, by their place in a block.
    _, first = np.unique(np.round(log_probabilities, 6), return_index=True)
    log_sum = float(logsumexp(log_probabilities[first]))
    if np.ndim(std_error):
        shares = np.exp(log_probabilities[first] - log_sum)
        std_error = float(np.sqrt(np.sum((shares * std_error[first]) ** 2)))
    most = threshold("below-the-bound", "sum_errors") * std_error
    if not log_sum > most + threshold("below-the-bound", "rounding"):  # also a NaN
        return None
    alarm = raised(
        "below-the-bound",
        "probabilities",
        "probabilities",
        n=len(first),
        log_sum=log_sum,
        error=std_error,
    )
    return str(alarm)


def report(
    model: Any,
    message: str,
    error: type[Exception] = RuntimeError,
    category: type[Warning] = ConvergenceWarning,
) -> None:
    """Do what the model's `on_nonconvergence` says about numbers that are not trusted."""
    if model.on_nonconvergence == "raise":
        raise error(message)
    if model.on_nonconvergence == "nan":
        log_warning(message)
    else:
        warn(message, category)


def report_impossible(model: Any, possible: Booleans) -> str:
    """Report rows that have no likelihood, which no longer run would give them, and return the
    sentence.
    """
    n = f"{np.sum(~possible)} of {len(possible)}"
    sentence = f"{n} rows of X have no likelihood: {model._impossible}"
    report(model, sentence, ValueError, UserWarning)
    return sentence


# -- one log Z
class Marginals(NamedTuple):
    """log f of rows as far as they are known, summed over values that are not."""

    log_f: Array  # (n,) nats
    possible: Booleans  # (n,) rows that have a density at all
    missing: Any = None  # (n, n_features) values that are not known; None where all are
    rows: Any = ()  # rows whose sum has a further factor, which can only be estimated
    path: Any = None  # with a row for each of these, whose log Z is the log of the factor


class LogLikelihoodMixin(ScoredModel):
    """The likelihood and the kept log Z of a model p(x) = f(x) / Z.

    Besides what `ScoredModel` asks for, a model defines

    - ``path(**options)``: its path, with defaults for all options;
    - ``_log_f(X)``: log f of every row of validated X, in nats, and whether it has a density at
      all, both (n,); a model that takes missing values overrides ``_marginals(X)``;
    - ``_fitted_shapes``: dimensions of the fitted attributes, of which the path is made.

    log Z is estimated at the first need and kept with a digest of the model's arrays and the
    estimator's parameters; what does not match the digest is not used.
    """

    _log_f: Callable[..., Any]
    _partition_seed: int
    _fitted_shapes: dict[str, tuple[str, ...]]
    _impossible = "the model's density is 0 there"

    def _be_known(self, n_features: int) -> None:
        """Check the parameters of a model that is made from known weights, and draw its seed."""
        self._validate_params()
        self.n_features_in_ = n_features
        self._partition_seed = draw_seed(self.random_state)

    # -- log Z
    def estimate_log_partition(self) -> Self:
        """Estimate log Z now (again, if it has been before) and keep it.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self.__dict__.pop("_kept_partition", None)
        reason = reason_not_trusted(self._partition().result_)
        if reason is not None:
            report(self, f"log Z is not to be trusted: {reason}")
        return self

    @property
    def partition_estimator_(self) -> PartitionEstimator:
        """The fitted partition estimator; its ``result_`` holds the diagnostics. AttributeError
        before there is one.
        """
        check_is_fitted(self)
        estimator = self._kept(self._digest())
        if estimator is None:
            raise AttributeError(
                "log Z has not been estimated for the model as it is now: call score or"
                " estimate_log_partition first"
            )
        return estimator

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
        estimator = self._kept(self._digest())
        if estimator is None:
            path = self.path() if self.partition_estimator is None else self
            estimator = fit_for_model(configured_estimator(self, path), path)
            self._kept_partition = self._digest(), estimator
        return estimator

    def _digest(self) -> str:
        """Digest of the fitted arrays, and of all parameters that an estimate depends on."""
        arrays: list[NDArray] = []
        for name in self._fitted_shapes:
            value = getattr(self, name)
            if sp.issparse(value):
                arrays += [value.data, value.indices, value.indptr]
            else:
                arrays.append(np.ascontiguousarray(value))
        estimator = self.partition_estimator
        parameters = {} if estimator is None else estimator._number_parameters()
        contents = [(a.shape, a.dtype.str, zlib.crc32(a)) for a in arrays]
        return fingerprint(type(estimator).__name__, parameters, self._partition_seed, contents)

    # -- draws
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
            As rows of training; a frame where ``set_output(transform=...)`` asks for one.
        """
        path = self.path()
        check_count(n_samples, "n_samples")
        seed = draw_seed(random_state)
        if has(path, "sample_target"):
            state = path.sample_target(n_samples, seeded(seed))
            return in_container(self, self._as_data(path.rows(state)))
        estimators = self.partition_estimator, default_estimator(path), ParallelTempering()
        sampler: Any = next(each for each in estimators if hasattr(each, "sample"))
        if self.partition_estimator is not sampler:
            sampler.set_params(n_jobs=self.n_jobs)
        path = sampler._as_path(path)
        with own_arithmetic():
            state = sampler.sample(path, n_samples, np.random.default_rng(seed))
        return in_container(self, self._as_data(path.rows(state)))

    def _as_data(self, rows) -> NDArray:
        """Rows as `sample` returns them, from those of the path."""
        return np.asarray(rows, dtype=np.float64)

    # -- log-likelihood
    def _marginals(self, X) -> Marginals:
        return Marginals(*self._log_f(X))

    def _scored(self, X, level: float | None = None, tolerates: bool = True) -> Scored:
        X = self._scorable(X)
        log_f, possible, missing, rows, path = self._marginals(X)
        n = len(log_f)
        if level is not None:
            check_interval(n, level)
        if not possible.any():  # whatever log Z is, which takes time
            refused = report_impossible(self, possible)
            return Scored(np.full(n, np.nan), below=0.0, above=0.0, reasons=(refused,))

        result = self._partition().result_
        log_partition = result.log_partition
        values = log_f - log_partition
        complete = possible
        share = 1.0  # of the rows that the error of log Z moves
        if missing is not None:
            complete = possible & ~missing.any(axis=1)
            empty = missing.all(axis=1)
            values[empty] = 0.0
            share = float(np.mean(~empty))
        reason = reason_not_trusted(result)
        if reason is None and self._discrete and complete.any():
            reason = impossible(values[complete], result.std_error)
        reasons = [] if reason is None else [f"log Z is not to be trusted: {reason}"]
        for sentence in reasons:
            report(self, sentence)
        if not possible.all():
            reasons.append(report_impossible(self, possible))
        usable = possible & (reason is None or self.on_nonconvergence != "nan")

        low, high = result.interval(0.95 if level is None else level)
        below = share * (high - log_partition)
        above = share * (log_partition - low)
        if path is not None:
            sums = self._row_partition(path, "_kept_sums").result_
            np.add.at(values, rows, sums.log_partition)
            trusted = sums.diagnostics["converged"]
            judged = judge_rows(
                self, sums, trusted, reason_not_trusted(sums), values[rows], level, tolerates
            )
            below = float(np.hypot(below, judged.below * len(rows) / n))
            above = float(np.hypot(above, judged.above * len(rows) / n))
            reasons += judged.reasons
            usable[rows[~judged.usable]] = False
        scored = Scored(
            np.where(usable, values, np.nan),
            below=below,
            above=above,
            reasons=tuple(reasons),
            scatter=vars(self).get("log_likelihood_scatter_", np.nan),
        )
        return self._with_baseline(scored, X)


# -- a log Z for every row
class RowLikelihoodMixin(ScoredModel):
    """The likelihood of a model in which log p(x) of every row is a log Z of its own.

    Besides what `ScoredModel` asks for, a model defines ``path(X)``: a path with one log Z a row,
    that row's likelihood. A model that has no likelihood of some rows overrides ``_targets(X)``.
    """

    path_takes_rows = True
    _kept_partition: tuple[Any, PartitionEstimator]

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

    def _scored(
        self,
        X,
        level: float | None = None,
        tolerates: bool = True,
    ) -> Scored:
        path, possible = self._targets(X)
        if level is not None:
            check_interval(path.n_rows, level)
        reasons = () if possible.all() else (report_impossible(self, possible),)

        result = self._row_partition(path).result_
        values = result.log_partition
        judged = judge_rows(self, result, *self._trust(path, result), values, level, tolerates)
        scored = Scored(
            np.where(possible & judged.usable, values, np.nan),
            judged.below,
            judged.above,
            reasons + judged.reasons,
            self._unit,
        )
        return self._with_baseline(scored, self._validate(X))

    def _targets(self, X) -> tuple[Any, Booleans]:
        """The path of rows, and which of them have a likelihood at all, (n,)."""
        path = self.path(X)
        return path, np.ones(path.n_rows, dtype=bool)

    def _trust(self, path, result: PartitionResult) -> tuple[Booleans, str | None]:
        """Return the mask of trusted rows, and the reasons of the others."""
        trusted = result.diagnostics["converged"]
        reason = reason_not_trusted(result)
        if not result.is_estimate:
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


class RowErrors(NamedTuple):
    """The error of a mean over rows that comes from their log Z."""

    below: float
    above: float
    reasons: tuple[str, ...]  # why the mean is not trusted
    usable: Booleans  # (n,) rows that have a number


def judge_rows(
    model: Any,
    result: PartitionResult,
    trusted: Booleans,
    reason: str | None,
    values: Array,
    level: float | None,
    tolerates: bool,
) -> RowErrors:
    """Return the error of a mean over rows with these scores, (n,), and report rows that are not
    trusted, unless these are tolerated: they hardly move the mean.
    """
    below, above = _mean_error(result, 0.95 if level is None else level)
    usable = np.ones(len(trusted), dtype=bool)
    if reason is None:
        return RowErrors(below, above, (), usable)
    off = _largest_effect(result, values, trusted)
    unknown = ~trusted & ~result.diagnostics["imprecise"]
    few = np.mean(unknown) <= _MOST_UNTRUSTED
    if tolerates and few and _is_negligible(off, values, trusted):
        log_warning(f"rows that are not trusted hardly move the mean: {reason}")
        return RowErrors(below + off, above + off, (), usable)
    untrusted = f"likelihoods are not to be trusted: {reason}"
    report(model, untrusted)
    if model.on_nonconvergence == "nan":
        usable = trusted
    return RowErrors(below, above, (untrusted,), usable)


def _largest_effect(
    result: PartitionResult,
    values: Array,
    trusted: Booleans,
    *,
    # standard errors that a row that is only imprecise is taken to be off
    tolerated_errors: float = 5.0,
) -> float:
    """Bound the effect of untrusted rows on the mean over all rows, in nats."""
    if trusted.all() or not trusted.any():
        return 0.0
    off = tolerated_errors * np.asarray(result.std_error)
    # Where more is wrong than noise, the standard error says nothing of a row's error.
    apart = np.abs(values - values[trusted].mean())
    off = np.where(result.diagnostics["imprecise"], off, np.maximum(off, apart))
    return float(np.sum(off[~trusted])) / len(trusted)


def _is_negligible(
    effect: float,
    values: Array,
    trusted: Booleans,
    *,
    negligible: float = 0.1,  # of its sampling error
) -> bool:
    """True if an effect on the mean over all rows is small beside its sampling error."""
    if trusted.sum() < 2 or not np.all(np.isfinite(values)):
        return False
    return bool(effect <= negligible * values[trusted].std(ddof=1) / np.sqrt(trusted.sum()))


def _mean_error(result: PartitionResult, level: float) -> tuple[float, float]:
    """Return the Monte-Carlo error below and above the mean over rows."""
    if result.statement not in ("exact", "estimate"):
        low, high = result.interval(level)
        return float(np.mean(result.log_partition - low)), float(
            np.mean(high - result.log_partition)
        )
    half = float(norm.ppf(0.5 + level / 2)) * result.diagnostics["mean_std_error"]
    return half, half - float(np.mean(result.bias))
