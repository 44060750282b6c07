"""How models score: the estimator that they use, what is trusted, and what is done about what is not."""

from __future__ import annotations

import logging
import warnings
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student_t
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sklpf._progress import hand_on
from sklpf._sklearn import Instance, StrOptions
from sklpf._tables import Readable, Rows, decimals, from_to, import_pandas
from sklpf._warnings import warn
from sklpf.partition import ParallelTempering, PartitionEstimator, PartitionResult

log = logging.getLogger("sklpf").warning

SCORING: dict[str, Any] = {  # rules for the parameters that all models share
    "verbose": ["verbose"],
    "random_state": ["random_state"],
    "partition_estimator": [
        Instance(PartitionEstimator, "an estimator of log Z (such as AIS())"),
        None,
    ],
    "on_nonconvergence": [StrOptions({"warn", "nan", "raise"})],
    "n_jobs": [Integral, None],
}


@dataclass(frozen=True, repr=False)
class ScoreInterval(Readable):
    """A mean log-likelihood per row, or a mean difference of two, with its two sources of error (nats).

    Where the mean is not finite all intervals consist of it alone, and `reasons` says why it is not.

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
    converged : bool
        Whether the numbers can be trusted.
    reasons : tuple of str
        Why not, one sentence a reason; empty when converged.
    method : str
        Of a difference, where that of the two log Z is from: "direct" is a run along a path from one model to the
        other, "difference" are the two estimates. Empty for one model.
    """

    mean: float
    sampling: tuple[float, float]
    partition: tuple[float, float]
    combined: tuple[float, float]
    level: float
    converged: bool = True
    reasons: tuple[str, ...] = ()
    method: str = ""

    def _line(self) -> str:
        trust = "" if self.converged else f", not converged: {'; '.join(self.reasons)}"
        return f"{100 * self.level:g} % interval {from_to(*self.combined)}{trust}"

    def _title(self) -> str:
        digits = decimals(self.mean, (self.combined[1] - self.combined[0]) / 4)
        return f"{self.mean:.{digits}f} nats per row{f', {self.method}, of these two fits' if self.method else ''}"

    def _table(self) -> Rows:
        rows = [
            (f"{100 * self.level:g} % interval", from_to(*self.combined)),
            ("from the rows", from_to(*self.sampling)),
        ]
        rows += [("from log Z", from_to(*self.partition)), ("converged", "yes" if self.converged else "no")]
        return rows + [("", reason) for reason in self.reasons]

    def to_frame(self) -> Any:
        """Return a pandas.DataFrame with one row.

        Columns: mean, low and high (combined interval), sampling_low, sampling_high, partition_low and partition_high
        (nats), level, converged, reasons in one string, and method.

        Returns
        -------
        pandas.DataFrame
            Numbers in nats.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pd = import_pandas()

        row: dict[str, Any] = {"mean": self.mean, **dict(zip(("low", "high"), self.combined))}
        for name in ("sampling", "partition"):
            row |= dict(zip((f"{name}_low", f"{name}_high"), getattr(self, name)))
        row |= {"level": self.level, "converged": self.converged, "reasons": "; ".join(self.reasons)}
        return pd.DataFrame([row | {"method": self.method}])


class Scored(NamedTuple):
    """Log-likelihoods of rows (n,), how far the error that they share reaches below and above their mean, and why
    the numbers are not trusted."""

    values: NDArray[np.float64]
    below: float
    above: float
    reasons: tuple[str, ...] = ()


def check_interval(n_rows: int, level: float) -> None:
    """Raise ValueError if no interval can be made, before anything is estimated."""
    if not isinstance(level, Real) or not 0 < level < 1:
        raise ValueError(f"level must lie strictly between 0 and 1, got {level}: a 95 % interval has level=0.95")
    if n_rows < 2:
        raise ValueError("X must have at least 2 rows, else its sampling error can't be estimated")


def interval_of(scored: Scored, level: float, method: str = "") -> ScoreInterval:
    """Return the interval of a mean over rows, given how far a common error reaches below and above it."""
    values, below, above, reasons = scored
    check_interval(len(values), level)
    mean, n = float(values.mean()), len(values)
    if not np.isfinite(mean):
        reasons = reasons or (f"the mean is {mean}, since some rows have the likelihood 0",)
        return ScoreInterval(mean, (mean, mean), (mean, mean), (mean, mean), level, False, reasons, method)
    half = float(student_t.ppf(0.5 + level / 2, n - 1) * values.std(ddof=1) / np.sqrt(n))
    return ScoreInterval(
        mean=mean,
        sampling=(mean - half, mean + half),
        partition=(mean - float(below), mean + float(above)),
        combined=(mean - float(np.hypot(half, below)), mean + float(np.hypot(half, above))),
        level=level,
        converged=not reasons,
        reasons=reasons,
        method=method,
    )


# -- the estimator -----------------------------------------------------------------------------------
def default_estimator(path: Any) -> PartitionEstimator:
    """Return what ``partition_estimator=None`` stands for: the path's own word, else `ParallelTempering`."""
    return path.default_estimator() if hasattr(path, "default_estimator") else ParallelTempering()


def configured_estimator(model: Any, path: Any) -> PartitionEstimator:
    """Return the model's partition estimator, with the model's seed and number of jobs, and what listens to the model.

    What the estimator sets itself stays.
    """
    estimator = model.partition_estimator
    estimator = default_estimator(path) if estimator is None else clone(estimator)
    defaults = {"random_state": model._partition_seed, "n_jobs": model.n_jobs}
    current = estimator.get_params(deep=False)
    chosen = {name: value for name, value in defaults.items() if name in current and current[name] is None}
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


# -- trust -------------------------------------------------------------------------------------------
def is_estimate(result: PartitionResult) -> bool:
    """Whether a result is no bound and no approximation."""
    return result.statement in ("exact", "enclosed", "estimate")


def distrust(result: PartitionResult) -> str | None:
    """Why a result can't make a score, or None: it must have converged and be an estimate, since a bound or an
    approximation would move the score to one side."""
    if not result.converged:
        return f"{result.method} did not converge: {'; '.join(result.reasons)}"
    if not is_estimate(result):
        return f'{result.method} gave a number that is "{result.statement}" where a score needs an estimate'
    return None


def report(model: Any, message: str) -> None:
    """Do what the model's `on_nonconvergence` says about numbers that are not trusted."""
    if model.on_nonconvergence == "raise":
        raise RuntimeError(message)
    if model.on_nonconvergence == "nan":
        log(message)
    else:
        warn(message, ConvergenceWarning)
