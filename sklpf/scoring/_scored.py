"""Scores of rows by models, and the interval of their mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np

from sklpf._utils.numbers import Array
from sklpf._utils.tables import Readable, Rows, decimals, from_to, imported
from sklpf._utils.validation import check_level
from sklpf.scoring._baseline import BaselineScore, RowsBaseline
from sklpf.uncertainty import Variance


@dataclass(frozen=True, repr=False)
class IntervalOfMean(Readable):
    """A mean with its intervals, and what they say of themselves in words."""

    mean: float
    sampling: tuple[float, float]
    partition: tuple[float, float]
    combined: tuple[float, float]
    level: float
    converged: bool = True
    reasons: tuple[str, ...] = ()
    _: KW_ONLY
    unit: str = "row"
    baseline: BaselineScore | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """Further notes, one sentence each."""
        return ()

    @property
    def digits(self) -> int:
        """Decimals that show two digits of the standard error."""
        low, high = self.combined
        return decimals(self.mean, (high - low) / 4)

    def _line(self) -> str:
        trust = "" if self.converged else f", not converged: {'; '.join(self.reasons)}"
        notes = "".join(f"; {note}" for note in self.notes)
        return f"{100 * self.level:g} % interval {from_to(*self.combined)}{trust}{notes}"

    def _title(self) -> str:
        per = "of entropy" if self.unit == "entropy" else f"per {self.unit}"
        return f"{self.mean:.{self.digits}f} nats {per}"

    def _table_of(self, parts: dict[str, tuple[float, float]]) -> list[tuple[str, str]]:
        """The interval, its parts by what they come from, and whether it can be trusted."""
        rows = [(f"{100 * self.level:g} % interval", from_to(*self.combined))]
        rows += [(f"from {name}", from_to(*ends)) for name, ends in parts.items()]
        return [*rows, ("converged", "yes" if self.converged else "no")]


@dataclass(frozen=True, repr=False)
class ScoreInterval(IntervalOfMean):
    """A mean log-likelihood per row or word with its two sources of error (nats).

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
    unit : {"row", "document", "word", "entropy"}
        The unit of the mean. Rows are documents where all models are topic models; an entropy is a
        mean over draws from the model.
    scatter : float
        Standard deviation (nats) of the mean over the last passes of training, as in a model's
        `log_likelihood_scatter_`; for a difference that of both models. NaN if it is not known. No
        interval includes it: they are all for the weights as they are.
    baseline : BaselineScore or None
        The mean log-likelihood of the same rows by a model of the training rows without structure,
        with its ``name`` ("independent columns", "one topic", "one Gaussian", "independent normal
        columns") and whether it ``is_better``. None for a difference, and for a model that was not
        fitted to rows.
    """

    scatter: float = np.nan

    @property
    def is_unsettled(self) -> bool:
        """True if `scatter` is larger than the half-width of `combined`."""
        low, high = self.combined
        return self.scatter > 0.5 * (high - low)

    @property
    def notes(self) -> tuple[str, ...]:
        """Further notes, one sentence each: where the model is worse than its baseline, and
        where training has not settled.
        """
        worse = "" if self.baseline is None else self.baseline.sentence(self.mean, self.unit)
        notes = (worse,) if worse else ()
        if not self.is_unsettled:
            return notes
        return (
            *notes,
            (
                f"training has not settled: this number scattered by {self.scatter:.2g} nats"
                " between its last passes, more than the interval's half-width, so that a fit with"
                " another seed may say the opposite; fit for longer, or compare"
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
        if not self._has_perplexity:
            raise AttributeError(
                "perplexity is that of a score per word:"
                ' LatentDirichletAllocation.score_interval(X, per="word")'
            )

    @property
    def _has_perplexity(self) -> bool:
        return self.unit == "word"

    def _table(self) -> Rows:
        parts = {f"the {sampled_units(self.unit)}": self.sampling, "log Z": self.partition}
        rows = self._table_of(parts)
        if self._has_perplexity:
            low, high = self.perplexity_interval
            digits = decimals(self.perplexity, (high - low) / 4)
            rows.append(("perplexity", f"{self.perplexity:.{digits}f} {from_to(low, high)}"))
        if self.baseline is not None:
            rows.append((self.baseline.name, f"{self.baseline.mean:.{self.digits}f}"))
        if np.isfinite(self.scatter):
            rows.append(("between the last passes of training", f"± {self.scatter:.2g}"))
        return rows + [("", sentence) for sentence in (*self.reasons, *self.notes)]

    def to_frame(self) -> Any:
        """Return a pandas.DataFrame with one row.

        Columns: mean, low and high (combined interval), sampling_low, sampling_high, partition_low
        and partition_high (nats), level, converged, reasons in one string, unit, scatter and
        baseline (its mean); of a difference also method.

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
        row: dict[str, Any] = {"mean": self.mean}
        parts = {"": self.combined, "sampling_": self.sampling, "partition_": self.partition}
        for name, (low, high) in parts.items():
            row |= {f"{name}low": low, f"{name}high": high}
        names = ("level", "converged", "reasons", "method", "unit", "scatter")
        row |= {name: getattr(self, name) for name in names if hasattr(self, name)}
        baseline = np.nan if self.baseline is None else self.baseline.mean
        return pd.DataFrame([row | {"reasons": "; ".join(self.reasons), "baseline": baseline}])


def sampled_units(unit: str) -> str:
    """Units of the sampling error of a mean, in the plural: words come in documents, which are
    drawn whole.
    """
    return {"word": "documents", "entropy": "draws"}.get(unit, f"{unit}s")


def _perplexity(mean: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.exp(-mean))


@dataclass(frozen=True, repr=False)
class ScoreDifference(ScoreInterval):
    """The mean difference between the log-likelihoods of the same rows by two models (nats).

    It is positive where the first model is better.

    Attributes
    ----------
    method : {"direct", "difference"}
        How the difference of the two log Z was estimated: "direct" is a run along a path from one
        model to the other, "difference" the difference of two estimates.
    mean, sampling, partition, combined, level, converged, reasons, unit, scatter
        As of `ScoreInterval`.
    remarks : tuple of str
        Which of the two models is worse than its baseline, one sentence each.
    """

    method: str = "difference"
    remarks: tuple[str, ...] = ()
    _has_perplexity = False

    @property
    def notes(self) -> tuple[str, ...]:
        """Further notes, one sentence each."""
        return (*self.remarks, *super().notes)

    def _title(self) -> str:
        return f"{super()._title()}, {self.method}, of these two fits"


class Scored(NamedTuple):
    """Scores of rows by a model."""

    values: Array  # (n,) log-likelihoods in nats
    below: float  # how far the error that they share reaches below their mean
    above: float  # and above it
    reasons: tuple[str, ...] = ()  # why the numbers are not trusted
    unit: str = "row"  # what a row is
    scatter: float = np.nan  # of the mean between the last passes of training
    baseline: RowsBaseline | None = None


def check_interval(n_rows: int, level: float) -> None:
    """Raise ValueError if no interval can be made, before anything is estimated."""
    check_level(level)
    if n_rows < 2:
        raise ValueError("X must have at least 2 rows, else its sampling error can't be estimated")


def interval_of(scored: Scored, level: float) -> ScoreInterval:
    """Return the interval of a mean over rows, given how far a common error reaches below and above
    it.
    """
    values, below, above, reasons, unit, scatter, baseline = scored
    check_interval(len(values), level)
    mean = float(values.mean())
    n = len(values)
    if np.isfinite(mean):
        with np.errstate(over="ignore"):  # of rows outside the domain
            half = Variance(values.var(ddof=1) / n, n - 1).half_width(level)
        against = None if baseline is None else baseline.compare(values, above, level)
    else:
        against = None
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
        unit=unit,
        scatter=scatter,
        baseline=against,
    )


def best_first(scores: Mapping[str, Any]) -> list[str]:
    """Return the names of scores by their means: those that did not converge last, then NaN."""

    def rank(name):
        score = scores[name]
        return not score.converged, np.inf if np.isnan(score.mean) else -score.mean

    return sorted(scores, key=rank)
