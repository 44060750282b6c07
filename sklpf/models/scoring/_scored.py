"""How models score: the estimator that they use, what is trusted, and what is done about what is
not.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import logsumexp
from scipy.stats import t as student_t
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sklpf._utils.numbers import Array, check_level
from sklpf._utils.progress import hand_on
from sklpf._utils.sklearn import N_JOBS, FittedAttributes, Instance, StrOptions
from sklpf._utils.tables import Readable, Rows, decimals, from_to, imported
from sklpf._utils.warnings import Alarm, warn
from sklpf.partition import (
    HAIS,
    BridgeSampling,
    LeftToRight,
    ParallelTempering,
    PartitionEstimator,
    PartitionResult,
)
from sklpf.paths import Continuous, DefaultEstimator
from sklpf.paths._capabilities import has

# by how many standard errors, and by how many nats of rounding more, probabilities may exceed 1
_IMPOSSIBLE_ERRORS = 4.0
_IMPOSSIBLE = 0.01

log = logging.getLogger("sklpf").warning

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


class IntervalOfMean(Readable):
    """What the interval of a mean says of itself in words."""

    mean: float
    combined: tuple[float, float]
    level: float
    converged: bool
    reasons: tuple[str, ...]
    unit: str

    @property
    def notes(self) -> tuple[str, ...]:
        """What else should be known, one sentence each."""
        return ()

    def _line(self) -> str:
        trust = "" if self.converged else f", not converged: {'; '.join(self.reasons)}"
        notes = "".join(f"; {note}" for note in self.notes)
        return f"{100 * self.level:g} % interval {from_to(*self.combined)}{trust}{notes}"

    def _title(self) -> str:
        digits = decimals(self.mean, (self.combined[1] - self.combined[0]) / 4)
        per = "of entropy" if self.unit == "entropy" else f"per {self.unit}"
        return f"{self.mean:.{digits}f} nats {per}"

    def _table_of(self, parts: dict[str, tuple[float, float]]) -> list[tuple[str, str]]:
        """The interval, its parts by what they come from, and whether it can be trusted."""
        rows = [(f"{100 * self.level:g} % interval", from_to(*self.combined))]
        rows += [(f"from {name}", from_to(*ends)) for name, ends in parts.items()]
        return [*rows, ("converged", "yes" if self.converged else "no")]


@dataclass(frozen=True, repr=False)
class ScoreInterval(IntervalOfMean):
    """A mean log-likelihood per row or word, or a mean difference of two, with its two sources of
    error (nats).

    If the mean is not finite all intervals consist of it alone, and `reasons` says why.

    Attributes
    ----------
    mean : float
    sampling : tuple of float
        Interval from the spread over the rows, Student t; it shrinks as rows are added.
    partition : tuple of float
        Interval from the error of log Z, which all rows share: more rows do not shrink it.
    combined : tuple of float
        Interval from both errors: the half-widths of each side are added in quadrature.
    level : float
        Probability with which each interval covers.
    converged : bool
        Whether the numbers can be trusted.
    reasons : tuple of str
        Why not, one sentence a reason; empty when converged.
    method : str
        For a difference: how that of the two log Z was estimated. "direct" is a run along a path
        from one model to the other, "difference" the difference of two estimates. Empty for one
        model.
    unit : {"row", "document", "word", "entropy"}
        The unit of the mean. Rows are documents where all models are topic models; an entropy is a
        mean over draws from the model.
    scatter : float
        Standard deviation (nats) of the mean over the last passes of training, as in a model's
        `log_likelihood_scatter_`; for a difference that of both models. NaN if it is not known. No
        interval includes it: they are all for the weights as they are.
    """

    mean: float
    sampling: tuple[float, float]
    partition: tuple[float, float]
    combined: tuple[float, float]
    level: float
    converged: bool = True
    reasons: tuple[str, ...] = ()
    method: str = ""
    unit: str = "row"
    scatter: float = np.nan

    @property
    def notes(self) -> tuple[str, ...]:
        """What else should be known, one sentence each: where training has not settled."""
        low, high = self.combined
        if not self.scatter > 0.5 * (high - low):
            return ()
        return (
            (
                f"training has not settled: this number scattered by {self.scatter:.2g} nats"
                " between its last passes, more than the interval's half-width, so that a fit with"
                " another seed may say the opposite; fit for longer, with average=True, or compare"
                " procedures by compare_fits"
            ),
        )

    @property
    def perplexity(self) -> float:
        """exp of minus the mean, of a score per word; AttributeError of any other.

        Returns
        -------
        float
            At least 1; smaller is better.
        """
        self._check_per_word()
        return _perplexity(self.mean)

    @property
    def perplexity_interval(self) -> tuple[float, float]:
        """Interval of the perplexity with both errors, of a score per word; AttributeError of any
        other.

        Returns
        -------
        tuple of float
            The ends of `combined`, turned into perplexities.
        """
        self._check_per_word()
        low, high = self.combined
        return _perplexity(high), _perplexity(low)

    def _check_per_word(self) -> None:
        if self.unit != "word" or self.method:
            raise AttributeError(
                "perplexity is that of a score per word:"
                ' LatentDirichletAllocation.score_interval(X, per="word")'
            )

    def _title(self) -> str:
        return super()._title() + (f", {self.method}, of these two fits" if self.method else "")

    def _table(self) -> Rows:
        parts = {f"the {sampled_units(self.unit)}": self.sampling, "log Z": self.partition}
        rows = self._table_of(parts)
        if self.unit == "word" and not self.method:
            low, high = self.perplexity_interval
            digits = decimals(self.perplexity, (high - low) / 4)
            rows.append(("perplexity", f"{self.perplexity:.{digits}f} {from_to(low, high)}"))
        if np.isfinite(self.scatter):
            rows.append(("between the last passes of training", f"± {self.scatter:.2g}"))
        return rows + [("", sentence) for sentence in (*self.reasons, *self.notes)]

    def to_frame(self) -> Any:
        """Return a pandas.DataFrame with one row.

        Columns: mean, low and high (combined interval), sampling_low, sampling_high, partition_low
        and partition_high (nats), level, converged, reasons in one string, method, unit and
        scatter.

        Returns
        -------
        pandas.DataFrame
            Numbers in nats.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pd = imported("pandas", "to_frame")

        row: dict[str, Any] = {"mean": self.mean, **dict(zip(("low", "high"), self.combined))}
        for name in ("sampling", "partition"):
            row |= dict(zip((f"{name}_low", f"{name}_high"), getattr(self, name)))
        row |= {
            "level": self.level,
            "converged": self.converged,
            "reasons": "; ".join(self.reasons),
        }
        return pd.DataFrame(
            [row | {"method": self.method, "unit": self.unit, "scatter": self.scatter}]
        )


def sampled_units(unit: str) -> str:
    """What the sampling error of a mean comes from, in the plural: words come in documents, which
    are drawn whole.
    """
    return {"word": "documents", "entropy": "draws"}.get(unit, f"{unit}s")


def _perplexity(mean: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.exp(-mean))


class Scored(NamedTuple):
    """What a model says of rows."""

    values: Array  # (n,) log-likelihoods in nats
    below: float  # how far the error that they share reaches below their mean
    above: float  # and above it
    reasons: tuple[str, ...] = ()  # why the numbers are not trusted
    unit: str = "row"  # what a row is
    scatter: float = np.nan  # of the mean between the last passes of training


def check_interval(n_rows: int, level: float) -> None:
    """Raise ValueError if no interval can be made, before anything is estimated."""
    check_level(level)
    if n_rows < 2:
        raise ValueError("X must have at least 2 rows, else its sampling error can't be estimated")


def interval_of(scored: Scored, level: float, method: str = "") -> ScoreInterval:
    """Return the interval of a mean over rows, given how far a common error reaches below and above
    it.
    """
    values, below, above, reasons, unit, scatter = scored
    check_interval(len(values), level)
    mean = float(values.mean())
    n = len(values)
    if np.isfinite(mean):
        with np.errstate(over="ignore"):  # of rows outside the domain
            half = float(student_t.ppf(0.5 + level / 2, n - 1) * values.std(ddof=1) / np.sqrt(n))
    else:
        reasons = reasons or (f"the mean is {mean}, since some rows have the likelihood 0",)
        half = below = above = 0.0
    return ScoreInterval(
        mean=mean,
        sampling=(mean - half, mean + half),
        partition=(mean - float(below), mean + float(above)),
        combined=(mean - float(np.hypot(half, below)), mean + float(np.hypot(half, above))),
        level=level,
        converged=not reasons,
        reasons=reasons,
        method=method,
        unit=unit,
        scatter=scatter,
    )


def best_first(scores: Mapping[str, Any]) -> list[str]:
    """Return the names of scores by their means: those that did not converge last, then NaN."""

    def rank(name):
        score = scores[name]
        return not score.converged, np.inf if np.isnan(score.mean) else -score.mean

    return sorted(scores, key=rank)


# -- the estimator
@dataclass(eq=False, repr=False, kw_only=True)
class ScoredParameters(FittedAttributes):
    """Parameters of a model that is scored: `partition_estimator` must suit the model."""

    random_state: int | np.random.RandomState | None = None
    partition_estimator: PartitionEstimator | None = None
    on_nonconvergence: Literal["warn", "nan", "raise"] = "warn"
    n_jobs: int | None = None

    _states_are_points = True  # of R^d

    def _validate_params(self) -> None:
        super()._validate_params()
        estimator = self.partition_estimator
        why_not = self._why_not(estimator)
        if why_not:
            raise TypeError(
                f"partition_estimator can't be {type(estimator).__name__}, which {why_not}: choose"
                " AIS, RTS or ParallelTempering, with transition=None"
            )

    def _why_not(self, estimator: Any) -> str:
        """Why an estimator can't score this model; empty where it may."""
        move = getattr(estimator, "transition", None)
        moves_points = isinstance(estimator, HAIS) or Continuous in getattr(move, "requires", ())
        if moves_points and not self._states_are_points:
            return f"moves points of R^d, where the states of {type(self).__name__} are discrete"
        if isinstance(estimator, BridgeSampling):
            return "needs draws"
        if isinstance(estimator, LeftToRight) and getattr(self, "_unit", "row") != "document":
            return "reads documents"
        return ""


def default_estimator(path: Any) -> PartitionEstimator:
    """Return what ``partition_estimator=None`` stands for: the path's own word, else
    `ParallelTempering`.
    """
    return path.default_estimator() if has(path, DefaultEstimator) else ParallelTempering()


def configured_estimator(model: Any, path: Any) -> PartitionEstimator:
    """Return the model's partition estimator, with the model's seed and number of jobs, and what
    listens to the model.

    What the estimator sets itself stays.
    """
    estimator = model.partition_estimator
    estimator = default_estimator(path) if estimator is None else clone(estimator)
    defaults = {"random_state": model._partition_seed, "n_jobs": model.n_jobs}
    current = estimator.get_params(deep=False)
    chosen = {
        name: value for name, value in defaults.items() if name in current and current[name] is None
    }
    if "verbose" in current:
        chosen["verbose"] = max(current["verbose"], getattr(model, "verbose", 0))
    hand_on(model, estimator)
    return estimator.set_params(**chosen)


def fit_quietly(estimator: PartitionEstimator, path: Any) -> PartitionEstimator:
    """Fit an estimator for a model that decides itself what to say, and keep no samples."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(path)
    estimator.result_ = estimator.result_.without_samples()
    for name in ("run_", "samples_", "sampler_", "_skl_callbacks"):
        estimator.__dict__.pop(name, None)
    return estimator


# -- trust
def is_estimate(result: PartitionResult) -> bool:
    """Whether a result is no bound and no approximation."""
    return result.statement in ("exact", "enclosed", "estimate")


def distrust(result: PartitionResult) -> str | None:
    """Why a result can't make a score, or None: it must have converged and be an estimate, since a
    bound or an approximation would move the score to one side.
    """
    if not result.converged:
        return f"{result.method} did not converge: {'; '.join(result.reasons)}"
    if not is_estimate(result):
        return (
            f'{result.method} gave a number that is "{result.statement}" where a score needs an'
            " estimate"
        )
    return None


def impossible(log_probabilities: Array, std_error: Any) -> Alarm | None:
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
    if not log_sum > _IMPOSSIBLE_ERRORS * std_error + _IMPOSSIBLE:  # also a NaN
        return None
    seen = (
        f"the probabilities of {len(first)} distinct rows sum to exp({log_sum:.3g} +-"
        f" {std_error:.2g}), more than 1"
    )
    remedy = "the estimator missed a part of the model; raise n_sweeps, or give another base"
    return Alarm("impossible-probabilities", seen, remedy)


def report(model: Any, message: str) -> None:
    """Do what the model's `on_nonconvergence` says about numbers that are not trusted."""
    if model.on_nonconvergence == "raise":
        raise RuntimeError(message)
    if model.on_nonconvergence == "nan":
        log(message)
    else:
        warn(message, ConvergenceWarning)
