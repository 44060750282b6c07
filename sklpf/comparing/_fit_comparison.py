"""FitComparison: procedures by the expected log-likelihood of what they fit, and its error.

A fit is scored on the rows that its split leaves out, and its mean there has three sources of
error, which repeat in different ways. Rows: every split has others, or some again. Fits: seeds, and
training sets, which share rows. log Z: one for each fit. What k-fold splits share has no unbiased
estimate (Bengio & Grandvalet 2004), so which rule covers was measured:
doc/benchmarks/calibration.md. One that adds to what the rows explain only what splits differ by
beyond it is half as wide for two splits, but covers 86 to 91 % where fits differ by far more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.numbers import Array
from sklpf._utils.tables import Rows
from sklpf._utils.validation import check_level
from sklpf.comparing._compare import Comparison, digits, half_width
from sklpf.scoring import BaselineScore, IntervalOfMean, best_first, sampled_units
from sklpf.uncertainty import Variance

_MOST_MISSING = 0.25  # of the fits: those that fail are not like the others


class Fits(NamedTuple):
    """Log-likelihoods of a split's held-out rows by its fits, or differences of two candidates."""

    groups: NDArray[np.intp]  # (n_test,): of every row; the row itself where there are none
    values: Array  # (n_fits, n_test), nats; a fit for each training seed
    partition: Array  # (n_fits,): standard error of the mean from log Z
    bias: Array  # (n_fits,): how far the mean may be off to one side
    baselines: Any = np.nan  # as values, by the fits' baselines; NaN where there is none


class FitError(NamedTuple):
    """A mean, its variance by source, and the half-width of the interval for their sum."""

    mean: float
    rows: float
    fits: float
    partition: float
    half_width: float

    @property
    def std_error(self) -> float:
        return float(np.sqrt(self.rows + self.fits + self.partition))


_NOTHING = FitError(*[np.nan] * 5)  # of a mean that can't be estimated


def error_of_mean(splits: Sequence[Fits], test_over_train: float, level: float) -> FitError:
    """Return the mean over at least 2 splits, each the mean of its fits, with its error.

    There are two estimates of its variance: the sum of what comes from rows, seeds and log Z, each
    from what repeats within a split; and what is seen between splits, corrected for what they
    share, which holds the effect of the training sets as well but has few degrees of freedom. The
    interval is the wider one of both Student t intervals.
    """
    means = np.array([fits.values.mean() for fits in splits])
    rows = rows_variance(splits)
    seeds = seeds_variance(splits)
    log_z = sum(float(np.mean(fits.partition**2)) / len(fits.partition) for fits in splits)
    partition = Variance(log_z / len(splits) ** 2)

    # the errors of log Z are among what differs between seeds
    within = rows.plus(seeds if seeds.value > partition.value else partition)
    between = corrected_variance(means, test_over_train)
    half_width = max(within.half_width(level), between.half_width(level))

    # the correction is no source of its own: it makes all parts larger alike
    seen = max(within.value, float(means.var(ddof=1)) / len(splits))
    scale = max(within.value, between.value) / seen if seen > 0 else 1.0

    # a bias does not average out over fits
    bias = float(np.mean(np.concatenate([fits.bias for fits in splits]))) ** 2
    return FitError(
        mean=float(means.mean()),
        rows=scale * rows.value,
        fits=scale * max(seen - rows.value - partition.value, 0.0),
        partition=scale * partition.value + bias,
        half_width=float(np.hypot(half_width, Variance(bias).half_width(level))),
    )


def rows_variance(splits: Sequence[Fits]) -> Variance:
    """Variance from the spread of rows within splits, summed by group; a row that several splits
    hold out counts once.
    """
    sums = np.zeros(1 + max(int(fits.groups.max()) for fits in splits))
    tested = np.zeros(len(sums), dtype=bool)
    for fits in splits:
        n_groups = len(np.unique(fits.groups))
        apart = fits.values.mean(axis=0) - fits.values.mean()
        scale = np.sqrt(n_groups / (n_groups - 1))
        np.add.at(sums, fits.groups, apart / len(apart) * scale)
        tested[fits.groups] = True
    return Variance(
        float(np.sum(sums**2)) / len(splits) ** 2, max(int(np.sum(tested)) - len(splits), 1)
    )


def seeds_variance(splits: Sequence[Fits]) -> Variance:
    """Variance from the spread of a split's fits beyond what its rows explain; 0 without repeated
    fits.
    """
    repeated = [fits for fits in splits if len(fits.values) > 1]
    if not repeated:
        return Variance(0.0)
    df = sum(len(fits.values) - 1 for fits in repeated)
    squares = [(len(fits.values) - 1) * fits.values.mean(axis=1).var(ddof=1) for fits in repeated]
    spread = sum(squares) / df
    from_rows = sum(_interaction(fits.values) / fits.values.shape[1] for fits in repeated) / df

    # the variance of the mean over splits, if each of their fits has that of one seed
    share = sum(1 / len(fits.values) for fits in splits) / len(splits) ** 2
    value = max(spread - from_rows, 0.0)
    return Variance(share * value, df * (value / spread) ** 2 if value > 0 else np.inf)


def _interaction(values: Array) -> float:
    """Interaction sum of squares of fits and rows in values (n_fits, n_test), over n_test - 1."""
    apart = values - values.mean(axis=0) - values.mean(axis=1, keepdims=True) + values.mean()
    return float(np.sum(apart**2)) / (values.shape[1] - 1)


def corrected_variance(scores: Array, test_over_train: float) -> Variance:
    """Variance of the mean of splits' scores, from their spread (the corrected resampled t-test).

    Splits share training rows, and may share rows that they hold out, so that s^2 / n_splits is too
    small.

    Parameters
    ----------
    scores : ndarray of shape (n_splits,)
    test_over_train : float
        Rows that are held out by a split for each that it trains on.

    References
    ----------
    Nadeau & Bengio (2003), Inference for the generalization error. Machine Learning 52.
    """
    n_splits = len(scores)
    return Variance(float(scores.var(ddof=1)) * (1 / n_splits + test_over_train), n_splits - 1)


@dataclass(frozen=True, repr=False, kw_only=True)
class FitInterval(IntervalOfMean):
    """Expected log-likelihood per row of a procedure's fits, or the difference of two (nats).

    The expectation is over training sets of the splits' size, training seeds and held-out rows.
    Half-widths of `sampling`, `fits` and `partition` add up to that of `combined` in quadrature.

    Attributes
    ----------
    mean : float
    std_error : float
        Standard error of the mean, from all sources.
    sampling : tuple of float
        Interval from the spread over the held-out rows.
    fits : tuple of float
        Interval from training seeds and training sets.
    partition : tuple of float
        Interval from the errors of log Z, a part of the spread between fits.
    combined : tuple of float
        All.
    level : float
        Probability with which `combined` covers.
    n_fits : int
        Fits, or pairs of fits, that the mean is over.
    converged : bool
        Whether the numbers can be trusted.
    reasons : tuple of str
        Why not, one sentence a reason; empty when converged.
    unit : {"row", "document", "word"}
        The unit of the means.
    baseline : BaselineScore or None
        As of `ScoreInterval`, whose mean is that of all fits; it ``is_better`` where the interval
        of the difference excludes that the candidate is. None for a difference.
    """

    std_error: float
    fits: tuple[float, float]
    n_fits: int

    def _title(self) -> str:
        fits = "fit" if self.n_fits == 1 else "fits"
        return f"{super()._title()}, expected from {self.n_fits} {fits}"

    def _table(self) -> Rows:
        parts = {
            f"the {sampled_units(self.unit)}": self.sampling,
            "the fits": self.fits,
            "log Z": self.partition,
        }
        known = {name: ends for name, ends in parts.items() if np.isfinite(ends[0])}
        return [*self._table_of(known), *(("", reason) for reason in self.reasons)]


class HeldOutRows(NamedTuple):
    """Log-likelihoods of every held-out row by every fit.

    Attributes
    ----------
    n_train : int
        Rows that a fit is trained on, of the smallest split.
    test_over_train : float
        Rows that a split holds out for each that it trains on.
    fits : dict of str to list of Fits
        By candidate: for every split all training seeds; the values of a missing fit are NaN.
    unit : {"row", "document", "word"}
    baseline_names : dict of str to str
        What the fits' baselines are, by candidate.
    """

    n_train: int
    test_over_train: float
    fits: Mapping[str, Sequence[Fits]]
    unit: str = "row"
    baseline_names: Mapping[str, str] = {}

    @property
    def size(self) -> str:
        """Numbers of splits, seeds and rows, in words."""
        splits = next(iter(self.fits.values()))
        n_seeds = len(splits[0].values)
        seeds = "1 training seed" if n_seeds == 1 else f"{n_seeds} training seeds"
        trained_on = f"{self.n_train} training {sampled_units(self.unit)}"
        return f"{len(splits)} splits, {seeds} each, {trained_on}"

    def means(self, name: str) -> Array:
        """Mean log-likelihood per row by fit, (n_splits, n_seeds); NaN where missing."""
        return np.array([fits.values.mean(axis=1) for fits in self.fits[name]])

    def interval(self, a: str, b: str | None, level: float) -> FitInterval:
        """The expected log-likelihood of `a`, or its difference from that of `b`."""
        if b is None:
            return self._interval(self.fits[a], level)
        return self._interval(list(map(_difference, self.fits[a], self.fits[b])), level)

    def score(self, name: str, level: float) -> FitInterval:
        """The expected log-likelihood of a candidate, with its baseline."""
        score = self.interval(name, None, level)
        what = self.baseline_names.get(name)
        if not what:
            return score
        gains = [fits._replace(values=fits.values - fits.baselines) for fits in self.fits[name]]
        gain = self._interval(gains, level)
        is_better = bool(gain.combined[1] < 0)
        baseline = BaselineScore(what, score.mean - gain.mean, is_better, remedy="")
        return replace(score, baseline=baseline)

    def _interval(self, pairs: Sequence[Fits], level: float) -> FitInterval:
        complete = [_complete(fits) for fits in pairs]
        complete = [fits for fits in complete if len(fits.values)]
        n_all = sum(len(fits.values) for fits in pairs)
        n_fits = sum(len(fits.values) for fits in complete)
        reasons = _missing(n_fits, n_all, len(complete))
        error = _NOTHING
        if len(complete) > 1:
            error = error_of_mean(complete, self.test_over_train, level)
        return _fit_interval(error, level, n_fits, reasons, self.unit)


@dataclass(frozen=True, repr=False)
class FitComparison(Comparison):
    """Procedures, compared by the expected held-out log-likelihood per row of their fits (nats).

    Attributes
    ----------
    scores : dict of str to FitInterval
        Every candidate's expected log-likelihood, the best first: by the mean, those that did not
        converge last.
    differences : dict of str to FitInterval
        Expected difference from the first of them, of every other one; usually negative.
    names : tuple of str
        The candidates in the order given, which should be the simplest first.
    means : dict of str to ndarray of shape (n_splits, n_seeds)
        Mean log-likelihood of the held-out rows by every fit; NaN where it is missing.
    missing : tuple of str
        Fits that raised an error or can't be trusted, and why; their pairs are left out.
    held_out : object
        Log-likelihoods of held-out rows by all fits, from which `difference` is computed.
    level : float
        Probability with which each interval covers.
    """

    scores: dict[str, FitInterval]
    differences: dict[str, FitInterval]
    names: tuple[str, ...]
    means: dict[str, Array]
    missing: tuple[str, ...]
    held_out: Any
    level: float

    _index = "candidate"

    @property
    def chosen(self) -> str:
        """Name of the first candidate, in the order given, that is not worse than the best.

        By the one-standard-error rule: it is not worse if its mean difference from the best is at
        most the standard error of that difference.
        """
        for name in self.names:
            if name == self.best:
                break
            apart = self.differences[name]
            if apart.converged and -apart.mean <= apart.std_error:
                return name
        return self.best

    @property
    def converged(self) -> bool:
        """True if all intervals can be trusted."""
        return not self.reasons

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why not, one sentence a reason; empty when converged."""
        intervals = {**self.scores, **self.differences}
        return tuple(
            f"{name}: {reason}" for name in self.names for reason in intervals[name].reasons
        )

    def difference(self, a: str, b: str, level: float | None = None) -> FitInterval:
        """Expected log-likelihood of one candidate less that of another, from pairs of fits.

        Parameters
        ----------
        a, b : str
            Names of candidates.
        level : float or None, default=None
            Probability with which the interval covers; None is that of the comparison.

        Returns
        -------
        difference : FitInterval
            Positive where `a` is better.

        Raises
        ------
        ValueError
            If there is no candidate of that name, or the level is none.
        """
        for name in (a, b):
            if name not in self.names:
                raise ValueError(
                    f"there is no candidate {name!r}: the names are"
                    f" {', '.join(map(repr, self.names))}"
                )
        if level is not None:
            check_level(level)
        return self.held_out.interval(a, b, self.level if level is None else level)

    def _details(self, name: str) -> dict[str, Any]:
        shown = self._shown(name)
        parts = ("sampling", "fits", "partition")
        return {
            "difference_std_error": 0.0 if name == self.best else shown.std_error,
            **{part: half_width(getattr(shown, part)) for part in parts},
            "n_fits": self.scores[name].n_fits,
            "chosen": name == self.chosen,
        }

    _header = (
        "procedure",
        "log-likelihood",
        "difference from the first",
        "rows",
        "fits",
        "log Z",
        "",
    )

    def _parts(self, name: str) -> list[str]:
        shown = self._shown(name)
        return [_half_text(shown, part) for part in ("sampling", "fits", "partition")]

    def _remarks(self, name: str) -> list[str]:
        chosen = ["chosen"] if name == self.chosen else []
        return [*chosen, *super()._remarks(name)]

    def _notes(self) -> list[str]:
        """A line each on fits that are missing, on intervals that are wide as splits are few, and
        on a best candidate at an end of the list.
        """
        notes = []
        if self.missing:
            n_fits = sum(of_fits.size for of_fits in self.means.values())
            first, *others = self.missing
            more = "; the others are listed in missing" if others else ""
            count = f"{len(self.missing)} of {n_fits} fits are missing"
            notes.append(f"{count}: {first.rstrip('.')}{more}")
        if len(next(iter(self.means.values()))) == 2:
            notes.append(
                "intervals are wide, as 2 splits hardly show how much fits differ: take cv=5"
            )
        has_ends = len(self.names) > 2 and self.scores[self.best].converged
        if has_ends and self.chosen == self.best and self.best in (self.names[0], self.names[-1]):
            place, beyond = (
                ("first", "before") if self.best == self.names[0] else ("last", "beyond")
            )
            notes.append(f"{self.best} is the {place} candidate: those {beyond} it were not tried")
        return notes

    def _title(self) -> str:
        held_out = self.held_out
        return f"expected log-likelihood per {held_out.unit} of procedures (nats): {held_out.size}"


def compare_held_out(held_out: HeldOutRows, missing: Sequence[str], level: float) -> FitComparison:
    """Return the comparison of all candidates, each with the best of those that converged.

    Scores are means over the same fits: those that no candidate with a score lacks. A candidate
    that lacks too many of them has no score, only a difference that is not trusted.
    """
    means = {name: held_out.means(name) for name in held_out.fits}
    there = {name: np.isfinite(of_fits) for name, of_fits in means.items()}
    comparable = _comparable(there)
    common = np.all([there[name] for name in comparable], axis=0)
    fits = {name: _only(held_out.fits[name], common) for name in comparable}
    alike = held_out._replace(fits={**held_out.fits, **fits})
    scores = {name: alike.score(name, level) for name in means}
    for name in means.keys() - set(comparable):
        n_left = int(np.sum(there[name]))
        reasons = scores[name].reasons or (_too_few(n_left, there[name].size),)
        scores[name] = _fit_interval(_NOTHING, level, n_left, reasons, held_out.unit)
    ranked = best_first(scores)
    return FitComparison(
        names=tuple(means),
        scores={name: scores[name] for name in ranked},
        differences={name: alike.interval(name, ranked[0], level) for name in ranked[1:]},
        means=means,
        missing=tuple(missing),
        held_out=held_out,
        level=level,
    )


def _comparable(there: Mapping[str, NDArray[np.bool_]]) -> list[str]:
    """Names of the candidates that have enough fits in common, the most complete ones first."""
    chosen: list[str] = []
    common = np.ones_like(next(iter(there.values())))
    for name in sorted(there, key=lambda name: int(np.sum(~there[name]))):
        if np.mean(common & there[name]) >= 1 - _MOST_MISSING:
            chosen.append(name)
            common = common & there[name]
    return chosen or list(there)


def _only(splits: Sequence[Fits], chosen: NDArray[np.bool_]) -> list[Fits]:
    """The splits' fits (n_splits, n_seeds) with NaN for those that are not chosen."""
    return [
        fits._replace(values=np.where(keep[:, np.newaxis], fits.values, np.nan))
        for fits, keep in zip(splits, chosen)
    ]


def _difference(a: Fits, b: Fits) -> Fits:
    """Differences of a split's fits in pairs, one of each candidate with the same seed."""
    return Fits(
        a.groups, a.values - b.values, np.hypot(a.partition, b.partition), np.hypot(a.bias, b.bias)
    )


def _complete(fits: Fits) -> Fits:
    there = np.isfinite(fits.values).all(axis=1)
    return Fits(fits.groups, fits.values[there], fits.partition[there], fits.bias[there])


def _missing(n_fits: int, n_all: int, n_splits: int) -> tuple[str, ...]:
    """Why a mean over so many fits of all is not trusted."""
    if n_splits < 2:
        return (f"{n_fits} of {n_all} fits are left, in fewer than 2 splits",)
    if n_fits < (1 - _MOST_MISSING) * n_all:
        return (_too_few(n_fits, n_all),)
    return ()


def _too_few(n_fits: int, n_all: int) -> str:
    return f"{n_fits} of {n_all} fits are left, which may not be like those that are missing"


def _fit_interval(
    error: FitError, level: float, n_fits: int, reasons: tuple[str, ...], unit: str
) -> FitInterval:
    """The interval of a mean; its parts are in proportion to the variances of their sources."""
    scale = error.half_width / error.std_error if error.std_error > 0 else 0.0
    parts = {"sampling": error.rows, "fits": error.fits, "partition": error.partition}
    halves = {name: scale * float(np.sqrt(variance)) for name, variance in parts.items()}
    ends: dict[str, Any] = {name: (error.mean - h, error.mean + h) for name, h in halves.items()}
    return FitInterval(
        mean=error.mean,
        std_error=error.std_error,
        **ends,
        combined=(error.mean - error.half_width, error.mean + error.half_width),
        level=level,
        n_fits=n_fits,
        converged=not reasons,
        reasons=reasons,
        unit=unit,
    )


def _half_text(interval: FitInterval, part: str) -> str:
    half = half_width(getattr(interval, part))
    return f"± {half:.{digits(interval)}f}" if np.isfinite(half) else ""
