"""A Run, which sampling leaves of one log Z, what checks find of it, and a PartitionResult, which
is read from it: how sure it is, why it may not be trusted, and the diagnostics that say so.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student_t

from sklpf._utils.numbers import Array
from sklpf._utils.parallel import one_blas_thread
from sklpf._utils.random import Stream, seeded
from sklpf._utils.tables import (
    Fields,
    Readable,
    Rows,
    duration_text,
    from_to,
    imported,
    short,
    with_error,
)
from sklpf._utils.validation import check_level
from sklpf._utils.warnings import Alarm
from sklpf.partition._diagnostics import DIAGNOSTICS
from sklpf.partition.alarms import raised, rounding_alarms, single_state_alarms, threshold
from sklpf.paths import Regions
from sklpf.programs import NO_ROUNDS, Draws
from sklpf.transitions import Transition
from sklpf.uncertainty import effective_sample_size, pareto_shape

STATEMENTS = (
    "exact",
    "enclosed",
    "estimate",
    "lower bound",
    "upper bound",
    "approximate",
    "conservative, not a bound",
)

_NUMBERS = ("log_partition", "std_error", "degrees_of_freedom")
_IN_JSON = ("method", *_NUMBERS, "statement", "sweeps", "check_evaluations", "seconds")
_DIAGNOSTICS_IN_JSON = ("log_bias", "base")
# which of several values are shown, by the side that is good
_ENDS: dict[str, tuple] = {"high": (np.nanmin,), "low": (np.nanmax,), "": (np.nanmin, np.nanmax)}


@dataclass(frozen=True, repr=False)
class PartitionResult(Readable):
    """The outcome of one estimation of a log partition function, or of one for each of T rows.

    It prints as one line; `summary` is a table, which notebooks show.

    Attributes
    ----------
    method : str
        Name of the estimator.
    log_partition : float or ndarray of shape (T,)
        log Z in nats.
    std_error : float or ndarray of shape (T,)
        Standard error of `log_partition` in nats; 0 for exact results, NaN for numbers that are no
        estimate.
    degrees_of_freedom : float or ndarray of shape (T,)
        Degrees of freedom of the Student t quantile in `interval`; inf for a normal quantile or an
        exact value.
    statement : str
        "exact", "enclosed", "estimate", "lower bound", "upper bound", "approximate" or
        "conservative, not a bound".
        What kind of number this is. One that is enclosed lies half-way between two certain bounds,
        `std_error` from either, and these are its `interval` at any level. A bound holds in
        expectation, and `interval` turns it into a one-sided one. Of rows that differ in kind
        "approximate", unless some are exact and the others estimates.
    alarms : tuple of Alarm
        Why the numbers should not be trusted: empty where they may be. With rows each alarm counts
        those that raise it.
    sweeps : dict of str to int
        Sweeps of all chains together by purpose, everything included: "chains" are those that
        parameters ask for, others such as "pilot" and "reverse chains" are named. `n_sweeps` is
        their sum.
    check_evaluations : int or None
        How often checks asked for the log density, or its gradient, at a point, and sweeps of their
        chains: of the tails, of the lower bound and for missed regions; beside `n_sweeps`.
        ``diagnostics["failed_evaluations"]`` says at how many of them it raised an error, if any.
        None where ``checks=False`` has left out what looks for mass that the run itself can't show
        to be missing: `converged` then rests on the run alone.
    seconds : float
        Wall time.
    diagnostics : dict
        What else there is, by name; `DIAGNOSTICS` says what it means, and each estimator's
        documentation lists its own. ``ladder`` and ``log_partition_curve``, both (K,), the inverse
        temperatures and log Z there in nats, and ``draws`` are attributes too. With rows:
        ``converged`` (T,), ``n_distinct`` rows that were computed, and the ``mean`` of all log Z (a
        held-out score) with its Monte-Carlo standard error ``mean_std_error``, which shrinks with
        T.

    Raises
    ------
    TypeError
        If `log_partition` or `std_error` is no number.
    ValueError
        If `std_error` is negative or of another shape than `log_partition`, or if `statement` is
        none of the above.

    Examples
    --------
    >>> from sklpf import PartitionResult
    >>> result = PartitionResult("AIS", 2.0, 0.1, degrees_of_freedom=99)
    >>> low, high = result.interval()
    >>> print(f"{low:.2f} to {high:.2f} nats")
    1.80 to 2.20 nats
    """

    method: str
    log_partition: Any
    std_error: Any
    degrees_of_freedom: Any = math.inf
    statement: str = "estimate"
    alarms: tuple[Alarm, ...] = ()
    sweeps: dict[str, int] = field(default_factory=dict)
    check_evaluations: int | None = 0
    seconds: float = 0.0
    diagnostics: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("log_partition", "std_error"):
            values = np.asarray(getattr(self, name))
            if values.dtype.kind not in "fiu" or not values.size:
                given = repr(getattr(self, name))
                raise TypeError(f"{name} must be real numbers in nats, got {given:.40}")
        if not all(isinstance(number, Real) for number in self.sweeps.values()):
            raise TypeError(f"sweeps must be numbers by purpose, got {self.sweeps!r:.80}")
        # of NumPy's integers, which JSON does not know
        object.__setattr__(self, "sweeps", {key: int(n) for key, n in self.sweeps.items()})
        if not isinstance(self.alarms, tuple):
            raise TypeError(f"alarms must be a tuple of Alarm, got {self.alarms!r:.80}")
        if str(self.statement) not in STATEMENTS:
            raise ValueError(
                f"statement must be one of {', '.join(map(repr, STATEMENTS))}, got"
                f" {self.statement!r:.80}"
            )
        error = np.asarray(self.std_error)
        shape = np.shape(self.log_partition)
        if np.any(error < 0):
            raise ValueError(f"std_error must not be negative, got {np.min(error)}")
        if error.shape not in ((), shape):
            raise ValueError(
                f"std_error must be one number or have shape {shape}, as log_partition has, got"
                f" {error.shape}"
            )

    @property
    def n_sweeps(self) -> int:
        """Sweeps of all chains together, everything included."""
        return sum(self.sweeps.values())

    @property
    def bias(self) -> Any:
        """Expected difference of `log_partition` from log Z in nats, a float or (T,); where it is
        low this is below 0, and `interval` reaches so much farther up. With rows it is minus half
        the squared standard error, by which the log of an unbiased estimate is low: the mean of it
        over rows, unlike that of their errors, does not shrink with T.
        """
        return self.diagnostics.get("log_bias", 0.0)

    @property
    def ladder(self) -> Array | None:
        """Inverse temperatures that were used, shape (K,); None without levels."""
        return self.diagnostics.get("ladder")

    @property
    def log_partition_curve(self) -> Array | None:
        """log Z at every level in nats, shape (K,), where it is known."""
        return self.diagnostics.get("log_partition_curve")

    @property
    def draws(self) -> Draws | None:
        """At most a thousand draws from the target with their weights and independent groups, of
        every estimator that moves chains or weighs draws. None with rows: fit on ``path.row(t)``
        for those of row t. None in the result that a model keeps.
        """
        return self.diagnostics.get("draws")

    @property
    def converged(self) -> bool:
        """True if the numbers can be trusted; with rows, all of them. NaN never is, nor a
        number whose error is NaN.
        """
        is_nan = np.isnan(self.log_partition) | np.isnan(self.std_error)
        return not self.alarms and not np.any(is_nan)

    @property
    def is_estimate(self) -> bool:
        """True if the number is no bound and no approximation, so that its error holds to both
        sides.
        """
        return self.statement in ("exact", "enclosed", "estimate")

    @property
    def reasons(self) -> tuple[str, ...]:
        """The alarms in words, one sentence each; of a NaN without one, that it is NaN."""
        if not self.alarms and not self.converged:
            return ("log Z or its error is NaN: look for NaN in what it was computed from",)
        return tuple(map(str, self.alarms))

    def to_frame(self) -> Any:
        """Return a pandas.DataFrame with a row for every log Z: one, or one for each row of data.

        Columns: log_partition, std_error, low and high (95 % interval), and converged; of one log Z
        also statement, reasons in one string, n_sweeps and seconds, with the method as its index.

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

        columns = self._numbers()
        if np.ndim(self.log_partition):
            return pd.DataFrame(columns | {"converged": each_converged(self)}).rename_axis("row")
        columns |= {
            "converged": self.converged,
            "statement": self.statement,
            "reasons": "; ".join(self.reasons),
            "n_sweeps": self.n_sweeps,
            "seconds": self.seconds,
        }
        return pd.DataFrame(columns, index=pd.Index([self.method], name="method"))

    def to_xarray(self) -> Any:
        """Return an xarray.Dataset of all numbers, with the dimensions level and row where there
        are such.

        ``draws`` (draw, feature) come with their ``draw_log_weight`` and ``draw_group`` where they
        were kept. Of the diagnostics there is what is numeric, with the dimensions level, pair (of
        neighbouring levels), round, update, ladder, group, population, start and chain; an array
        that is none of this package's estimators has dimensions named after it. The rest is in
        `attrs`.

        Returns
        -------
        xarray.Dataset
            Numbers in nats.

        Raises
        ------
        ImportError
            If xarray is not installed.
        """
        xarray = imported("xarray", "to_xarray")
        rows = ("row",) if np.ndim(self.log_partition) else ()
        variables: dict[str, Any] = {name: (rows, value) for name, value in self._numbers().items()}
        for name, value in self.diagnostics.items():
            if _numeric(value) and name not in (*variables, "ladder"):
                value = np.asarray(value)
                variables[name] = (self._dimensions(name, value), value)
        if self.draws is not None:
            variables["draws"] = (("draw", "feature"), self.draws.points)
            variables["draw_log_weight"] = (("draw",), self.draws.log_weights)
            variables["draw_group"] = (("draw",), self.draws.groups)
        names = ("method", "statement", "n_sweeps", "seconds")
        attributes = {name: getattr(self, name) for name in names}
        attributes |= {"converged": int(self.converged), "reasons": "\n".join(self.reasons)}
        coordinates = {} if self.ladder is None else {"beta": (("level",), self.ladder)}
        return xarray.Dataset(variables, coords=coordinates, attrs=attributes)

    def to_json(self) -> str:
        """Return the numbers and the alarms as JSON, without curve, diagnostics and draws: what
        `pool` and `compare_evidence` need of a run on another machine.

        Returns
        -------
        str
            An object; of numbers that are not finite the names, such as "inf".
        """
        values = {name: _as_json(getattr(self, name)) for name in _IN_JSON}
        beside = (name for name in _DIAGNOSTICS_IN_JSON if name in self.diagnostics)
        values["diagnostics"] = {name: _as_json(self.diagnostics[name]) for name in beside}
        return json.dumps(values | {"alarms": [asdict(alarm) for alarm in self.alarms]})

    @classmethod
    def from_json(cls, text: str) -> PartitionResult:
        """Return the result whose `to_json` was written.

        Parameters
        ----------
        text : str
            JSON.

        Returns
        -------
        PartitionResult

        Raises
        ------
        ValueError
            If the text is no JSON of a result.
        """
        try:
            given = json.loads(text)
            values = {name: given[name] for name in (*_IN_JSON, "diagnostics")}
            values["alarms"] = tuple(Alarm(**alarm) for alarm in given["alarms"])
            for name in _NUMBERS:
                values[name] = _from_json(values[name])
            beside = values["diagnostics"]
            if "log_bias" in beside:
                beside["log_bias"] = _from_json(beside["log_bias"])
            return cls(**values)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"text must be what PartitionResult.to_json has given: {error!r}"
            ) from error

    def without_samples(self) -> PartitionResult:
        """Return the result without draws, and without diagnostics that hold a number for every
        chain or start.

        Returns
        -------
        PartitionResult
            All else is the same.
        """
        kept = {
            name: value
            for name, value in self.diagnostics.items()
            if name not in DIAGNOSTICS or not DIAGNOSTICS[name].per_chain
        }
        return replace(self, diagnostics=kept)

    def no_estimate(self, statement: str, alarm: Alarm) -> PartitionResult:
        """Return the result of a number that is neither an estimate nor a bound: no error, and not
        converged.

        Parameters
        ----------
        statement : str
            Kind of the number, as in `PartitionResult`.
        alarm : Alarm
            Why it is no estimate.

        Returns
        -------
        PartitionResult
            With this alarm after the others.
        """
        return replace(self, statement=statement, std_error=math.nan, alarms=(*self.alarms, alarm))

    def interval(self, level: float = 0.95) -> tuple[Any, Any]:
        """Return the interval that covers log Z.

        Two-sided with Student t quantiles for an estimate, for an enclosed number its two bounds. A
        bound gives a one-sided interval by Markov's inequality (P(log Z < lower bound - log(1 /
        delta)) <= delta); a statement that is neither gives (-inf, inf).

        Parameters
        ----------
        level : float, default=0.95
            Probability with which it covers.

        Returns
        -------
        low, high : float or ndarray of shape (T,)
            In nats.
        """
        check_level(level)
        markov = -math.log1p(-level)
        if self.statement == "lower bound":
            below, above = markov, math.inf
        elif self.statement == "upper bound":
            below, above = math.inf, markov
        elif self.statement == "enclosed":
            below = above = self.std_error
        elif self.statement in ("conservative, not a bound", "approximate"):
            below = above = math.inf
        else:
            below = student_t.ppf(0.5 + level / 2, self.degrees_of_freedom) * self.std_error
            above = below - self.bias
        with np.errstate(invalid="ignore"):  # -inf + inf, of a number that may be anything
            low = np.where(np.isposinf(below), -np.inf, self.log_partition - below)
            high = np.where(np.isposinf(above), np.inf, self.log_partition + above)
        return (low, high) if np.ndim(self.log_partition) else (float(low), float(high))

    def _numbers(self) -> dict[str, Any]:
        low, high = self.interval()
        return {
            "log_partition": self.log_partition,
            "std_error": self.std_error,
            "low": low,
            "high": high,
        }

    def _line(self) -> str:
        trust = "converged"
        if self.check_evaluations is None:
            trust = "converged by the run alone, without checks"
        if not self.converged:
            trust = f"not converged: {_first(self.reasons)}"
        name, value = self._number()
        return f"{name} = {value}, {trust} ({self._cost()})"

    def _table(self) -> Rows:
        rows = [self._number(" nats")]
        if np.ndim(self.log_partition):
            own = each_converged(self)
            rows.append(("rows that converged", f"{int(np.sum(own))} of {len(own)}"))
        else:
            rows.append(("95 % interval", from_to(*self.interval())))
        rows += [("statement", self.statement), ("converged", "yes" if self.converged else "no")]
        rows += [("", reason) for reason in self.reasons]
        if self.diagnostics.get("base"):
            rows.append(("base", self.diagnostics["base"]))
        rows.append(("cost", self._cost()))
        if set(self.sweeps) - {"chains"}:
            parts = (f"{number:,} {purpose}" for purpose, number in self.sweeps.items())
            rows.append(("sweeps", ", ".join(parts)))
        if self.check_evaluations is None:
            rows.append(("checks beside the run", "left out"))
        elif self.check_evaluations:
            rows.append(("evaluations by checks", f"{self.check_evaluations:,}"))
        if self.ladder is not None:
            rows.append(("levels", str(len(self.ladder))))
        for name, described in DIAGNOSTICS.items():
            value: Any = self.diagnostics.get(name)
            if described.meaning and _numeric(value) and np.isfinite(value).any():
                rows.append((described.meaning, _shown(value, described.good)))
        return rows

    def _title(self) -> str:
        return self.method

    def _number(self, unit: str = "") -> tuple[str, str]:
        """Name and text of log Z with its error; of rows of their mean."""
        if not np.ndim(self.log_partition):
            error = self.std_error if self.std_error > 0 else 0.0
            return "log Z", with_error(self.log_partition, error) + unit
        mean = self.diagnostics.get("mean", np.mean(self.log_partition))
        error = self.diagnostics.get("mean_std_error", 0.0)
        text = with_error(mean, error if error > 0 else 0.0)
        return "mean log Z", f"{text}{unit} of {len(self.log_partition)} rows"

    def _cost(self) -> str:
        seconds = duration_text(self.seconds)
        return f"{self.n_sweeps:,} sweeps, {seconds}" if self.n_sweeps else seconds

    def _dimensions(self, name: str, value: NDArray) -> tuple[str, ...]:
        """Those of the table; of rows "row", else named after the diagnostic itself."""
        if value.ndim and value.shape == np.shape(self.log_partition):
            return ("row",)
        named = DIAGNOSTICS[name].dimensions if name in DIAGNOSTICS else ()
        if len(named) >= value.ndim:
            return named[len(named) - value.ndim :]
        return tuple(f"{name}_{axis}" for axis in range(value.ndim))


def _as_json(value: Any) -> Any:
    """A number or an array as JSON has it, which knows no infinity and no NaN."""
    if np.ndim(value):
        return [_as_json(each) for each in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else str(float(value))
    return value.item() if isinstance(value, np.generic) else value


def _from_json(value: object) -> Any:
    """A float or an array of what `_as_json` made of it."""
    number = np.asarray(value, dtype=float)
    return number if number.ndim else float(number)


def total_cost(results: Sequence[PartitionResult], **shared: int) -> dict[str, Any]:
    """Return the fields `sweeps` and `check_evaluations` of what several results together took,
    with sweeps by purpose that they shared.
    """
    sweeps = Counter(shared)
    for result in results:
        sweeps.update(result.sweeps)
    checks = [result.check_evaluations for result in results]
    unchecked = None in checks
    return {"sweeps": dict(+sweeps), "check_evaluations": None if unchecked else sum(checks)}


def each_converged(result: PartitionResult) -> NDArray[np.bool_]:
    """True for each row whose log Z is trusted, (T,); where only all together were judged, the
    same for all.
    """
    each = result.diagnostics.get("converged")
    return np.broadcast_to(
        result.converged if each is None else each, np.shape(result.log_partition)
    )


def _first(
    reasons,
    *,
    n_shown: int = 3,  # reasons in one line
) -> str:
    more = len(reasons) - n_shown
    return "; ".join(reasons[:n_shown]) + (f"; and {more} more" if more > 0 else "")


def _numeric(value) -> bool:
    try:
        value = np.asarray(value)
    except ValueError:  # lists of different lengths
        return False
    return value.dtype.kind in "iufb" and value.size > 0


def _shown(values, good: str) -> str:
    """A number; of several the worst, or where no side is good the smallest and the largest."""
    ends = {_number(end(values)): None for end in _ENDS[good]}
    return " to ".join(ends)


def _number(value) -> str:
    return short(value.item()) if value.dtype.kind in "iub" else f"{float(value):.6g}"


# -- findings of checks
class Work(NamedTuple):
    """Input of a check.

    Attributes
    ----------
    path : Path
    seed : int
        Of the run: a check takes a stream of its own name.
    run : Run or None
        None before chains are run.
    move : Transition or None
        The tuned move of reverse chains, where weights of independent chains are what is read.
    n_jobs : int or None
    """

    path: Any
    seed: int
    run: Any = None
    move: Transition | None = None
    n_jobs: int | None = None

    def stream(self, name: str) -> Stream:
        """Random stream of this name."""
        return seeded(self.seed).of(name)


Judgement = tuple[Sequence[Alarm], dict[str, Any]]  # alarms, and numbers for the diagnostics


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Finding of a check: arrays and numbers, and their cost.

    A check extends it. `requires` names the optional methods of paths without which it does not
    apply; `needs_run` is False if it looks before chains are run.

    Attributes
    ----------
    alarms : tuple of Alarm
        Those that depend on no result.
    n_evaluations : int
        How often the check asked for the log density, or its gradient, at a point, and sweeps of
        its chains.
    n_failed : int
        Points at which the density raised an error then.
    """

    requires: ClassVar[tuple[str, ...]] = ()
    needs_run: ClassVar[bool] = True

    alarms: tuple[Alarm, ...] = ()
    n_evaluations: int = 0
    n_failed: int = 0

    @classmethod
    def collect(cls, work: Work) -> Self | None:
        """Return what is found; None where the check does not apply."""
        return None

    def judge(self, run: Run, result: PartitionResult) -> Judgement:
        """Return what this says of a run and of the result that the run shows by itself."""
        return self.alarms, {}


Findings = Mapping[str, Finding]  # by the names of checks


# -- runs
@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Read a run with one thread of BLAS and without NumPy's warnings: ratios of levels that do not
    overlap are infinite, and sums of them NaN, which alarms say.
    """
    with one_blas_thread(), np.errstate(invalid="ignore", over="ignore"):
        yield


@dataclass(frozen=True, repr=False, kw_only=True)
class Run(Fields):
    """Record of sampling for one log Z: arrays, from which the result is read without further
    chains.

    A subclass adds its arrays, and defines ``_read``, which ends in `conclude`. It may name in
    `options` those of its fields that are parameters of the estimator.

    Attributes
    ----------
    method : str
        The estimator that made it, or that reads it anew.
    ladder : ndarray of shape (K,) or None
        Inverse temperatures; None where there are none.
    base_log_partition : float
        log Z_0 in nats.
    sweeps : dict of str to int
        Sweeps of all chains together by purpose, as in `PartitionResult`.
    log_f_rounding : float
        Size of the rounding errors of log_f in nats, where the path names one.
    base : str
        Name of the base that the library has chosen; empty where it was given.
    earlier_alarms : tuple of Alarm
        Alarms that sampling has found before the chains of the run.
    draws : Draws or None
        At most a thousand draws from the target, where the estimator keeps them.
    findings : dict of str to Finding or None
        What checks have found that the run can't show itself, by their names; None where none has
        looked.
    """

    options: ClassVar[tuple[str, ...]] = ()
    family: ClassVar[str] = ""  # of remedies

    method: str = ""
    ladder: Array = None  # type: ignore[assignment]  # only of runs without levels
    base_log_partition: float = 0.0
    sweeps: dict[str, int] = field(default_factory=dict)
    log_f_rounding: float = 0.0
    base: str = ""
    earlier_alarms: tuple[Alarm, ...] = ()
    draws: Draws | None = None
    findings: Findings | None = None

    @property
    def n_sweeps(self) -> int:
        """Sweeps of all chains together, everything included."""
        return sum(self.sweeps.values())

    @property
    def regions(self) -> Regions | None:
        """Regions of the target whose mass is known, which its draws should have found."""
        found = self.finding("missed_mass")
        return None if found is None else found.regions

    def finding(self, check: str) -> Any:
        """Return what a check has found.

        Parameters
        ----------
        check : str
            Its name.

        Returns
        -------
        Finding or None
            None where it has not looked, or does not apply.
        """
        return (self.findings or {}).get(check)

    def read(self) -> PartitionResult:
        """Return what the run says of log Z, with the alarms of what checks have found: a pure
        function of its fields.

        Returns
        -------
        PartitionResult
        """
        with reading():
            return self.judge(self._read())

    def _read(self) -> PartitionResult:
        raise NotImplementedError(f"{type(self).__name__} must define _read()")

    def judge(self, result: PartitionResult) -> PartitionResult:
        """Return a result with the alarms and the numbers of what checks have found.

        Parameters
        ----------
        result : PartitionResult
            What the run says by itself.

        Returns
        -------
        PartitionResult
        """
        alarms = list(result.alarms)
        diagnostics = dict(result.diagnostics)
        findings = (self.findings or {}).values()
        for finding in findings:
            found, numbers = finding.judge(self, result)
            alarms += found
            diagnostics |= numbers
        n_failed = sum(finding.n_failed for finding in findings)
        if n_failed:
            diagnostics["failed_evaluations"] = n_failed
        if self.base:
            diagnostics["base"] = self.base
        alarms += self.earlier_alarms
        alarms += rounding_alarms(result.log_partition, self.log_f_rounding)
        n_evaluations = sum(finding.n_evaluations for finding in findings)
        return replace(
            result,
            alarms=tuple(dict.fromkeys(alarms)),
            diagnostics=diagnostics,
            check_evaluations=None if self.findings is None else n_evaluations,
        )

    def conclude(
        self,
        log_partition: Any,
        std_error: Any,
        degrees_of_freedom: float = math.inf,
        *,
        alarms: list[Alarm],
        diagnostics: dict[str, Any],
        method: str | None = None,
        levels: Array | None = None,
        statement: str = "estimate",
    ) -> PartitionResult:
        """Return the result of what was found in the run itself.

        Parameters
        ----------
        log_partition, std_error, degrees_of_freedom, statement
            As in `PartitionResult`.
        alarms : list of Alarm
            Reasons not to trust the number.
        diagnostics : dict
            Further numbers.
        method : str or None, default=None
            As in `PartitionResult`; None is the run's own.
        levels : ndarray of shape (K,) or None, default=None
            log Z at every level in nats.

        Returns
        -------
        PartitionResult
        """
        if statement == "estimate" and not std_error <= threshold(
            "no-usable-estimate", "std_error"
        ):  # also a NaN
            useless = raised("no-usable-estimate", "error", self.family, error=std_error)
            alarms = [*alarms, useless]
        known = {"ladder": self.ladder, "log_partition_curve": levels, "draws": self.draws}
        diagnostics = {**known, **diagnostics}
        return PartitionResult(
            method=self.method if method is None else method,
            log_partition=float(log_partition),
            std_error=float(std_error),
            degrees_of_freedom=degrees_of_freedom,
            statement=statement,
            alarms=(*alarms, *single_state_alarms(self.draws, std_error)),
            sweeps={purpose: number for purpose, number in self.sweeps.items() if number},
            diagnostics={
                name: _plain(value) for name, value in diagnostics.items() if value is not None
            },
        )


def _plain(value: Any) -> Any:
    """A number of NumPy as Python's; all else as it is."""
    is_number = isinstance(value, (np.generic, np.ndarray)) and not value.ndim
    return value.item() if is_number else value


@dataclass(frozen=True, repr=False, kw_only=True)
class RunInRounds(Run):
    """A run that estimates log Z more than once.

    Attributes
    ----------
    history : ndarray of shape (R, 3)
        log Z in nats, its standard error and the sweeps of all chains after each earlier stage: a
        round, or a pilot.
    """

    history: Array = field(default_factory=NO_ROUNDS.copy)

    def _rounds(self, log_partition: float, std_error: float) -> dict[str, NDArray]:
        """Diagnostics: the estimate after every earlier round and at last the result's own, shape
        (R + 1,).
        """
        rounds = np.vstack([self.history, [log_partition, std_error, self.n_sweeps]])
        values, errors, sweeps = rounds.T.copy()
        return {
            "round_log_partition": values,
            "round_std_error": errors,
            "round_sweeps": sweeps.astype(np.int64),
        }


def weight_diagnostics(log_weights) -> dict[str, Any]:
    """The log weights (n,), their effective sample size and the shape of their tail."""
    return {
        "log_weights": log_weights,
        "effective_sample_size": effective_sample_size(log_weights),
        "pareto_shape": pareto_shape(log_weights),
    }


def move_diagnostics(run: Any) -> dict[str, Any]:
    """Acceptance and step sizes by level, shape (K,), of an `AnnealingRun` or a `PopulationRun`
    whose moves have them; the base's acceptance is NaN.
    """
    found = {}
    if run.acceptance is not None:
        found["acceptance"] = np.append(np.nan, run.acceptance)
    if run.pilot is not None:
        found["step_sizes"] = run.pilot.step(run.ladder)
    return found
