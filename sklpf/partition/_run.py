"""Run: what sampling leaves of one log Z, which says itself what it is worth; and what runs over
levels share.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.numbers import Array
from sklpf._utils.parallel import one_blas_thread
from sklpf._utils.tables import Fields, imported
from sklpf._utils.warnings import Alarm
from sklpf.partition._result import FIRST_TRY, PLAIN_BOUND, Diagnostic, PartitionResult
from sklpf.partition.checks._beside import checked, single_state_alarms
from sklpf.paths import Regions
from sklpf.programs import Draws, LevelRound
from sklpf.programs._plan import NO_ROUNDS, with_round
from sklpf.programs._rounds import Samples
from sklpf.reweighting import MeanWeight, bar_ratios, level_process, mbar, stepping_stones
from sklpf.uncertainty import between_groups

_LARGEST_ERROR = 10.0  # nats
_FEWEST_STATES = 100  # of a group at the target, where groups are compared by U


@dataclass(frozen=True, repr=False, kw_only=True)
class Run(Fields):
    """What sampling leaves of one log Z: arrays, from which the result is read without further
    chains.

    A subclass adds its arrays, and defines ``_read``, which ends in `conclude`. It may name in
    `options` those of its fields that are parameters of the estimator, and describe in `described`
    what its diagnostics mean.

    Attributes
    ----------
    method : str
        The estimator that made it, or that reads it anew.
    ladder : ndarray of shape (K,) or None
        Inverse temperatures; None where there are none.
    base_log_partition : float
        log Z_0 in nats.
    n_sweeps : int
        Sweeps of all chains together, everything included.
    check_evaluations : int
        How often checks asked for the log density, or its gradient, at a point, and sweeps of their
        chains.
    failed_evaluations : int
        Points at which it raised an error then.
    history : ndarray of shape (R, 3)
        log Z in nats, its standard error and the sweeps of all chains after each earlier stage: a
        round, or a pilot.
    plain_bound : ndarray or None
        Logs of independent estimates of Z whose mean is at most Z, from chains that do not start at
        the base.
    log_f_rounding : float
        Size of the rounding errors of log_f in nats, where the path names one.
    first_ratio : MeanWeight or None
        log Z_1 / Z_0 from base draws, where some of these fall on points at which the target is 0.
    base : str
        Name of the base that the library has chosen; empty where it was given.
    earlier_alarms : tuple of Alarm
        Alarms that were found before chains were run, or by an earlier run.
    is_checked : bool
        Whether checks have looked for what the run can't show itself.
    draws : Draws or None
        At most a thousand draws from the target, where the estimator keeps them.
    regions : Regions or None
        Regions of the target whose mass is known, which its draws should have found.
    weight_there : ndarray of shape (R,) or None
        Mean weight, over that of the run's chains, of reverse chains from each region; NaN where
        none were needed, since the run has draws there.
    region_remedy : str
        What to do where they have not.
    first_try : float or None
        log Z of a run before, in nats, where this one is from a base that covers what that one has
        missed.
    """

    options: ClassVar[tuple[str, ...]] = ()
    described: ClassVar[dict[str, Diagnostic]] = {}
    # the remedy where the error is so large that the number is useless
    better_start: ClassVar[str] = (
        "give a base that is closer to the target, or many more levels; else take ParallelTempering"
    )

    method: str = ""
    ladder: Array = None  # type: ignore[assignment]  # only of runs without levels
    base_log_partition: float = 0.0
    n_sweeps: int = 0
    check_evaluations: int = 0
    failed_evaluations: int = 0
    history: Array = field(default_factory=NO_ROUNDS.copy)
    plain_bound: Array | None = None
    log_f_rounding: float = 0.0
    first_ratio: MeanWeight | None = None
    base: str = ""
    earlier_alarms: tuple[Alarm, ...] = ()
    is_checked: bool = False
    draws: Draws | None = None
    regions: Regions | None = None
    weight_there: Array | None = None
    region_remedy: str = ""
    first_try: float | None = None

    def read(self) -> PartitionResult:
        """Return what the run says of log Z, with the alarms of what checks have found beside it: a
        pure function of its fields.

        Returns
        -------
        PartitionResult
        """
        # Ratios of levels that do not overlap are infinite, and sums of them NaN: alarms say so.
        with one_blas_thread(), np.errstate(invalid="ignore", over="ignore"):
            return checked(self, self._read())

    def _read(self) -> PartitionResult:
        raise NotImplementedError(f"{type(self).__name__} must define _read()")

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
        bias: float = 0.0,
    ) -> PartitionResult:
        """Return the result of what was found in the run itself.

        Parameters
        ----------
        log_partition, std_error, degrees_of_freedom, statement, bias
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
        if statement == "estimate" and not std_error <= _LARGEST_ERROR:  # also a NaN
            seen = f"there is no usable estimate: the standard error is {std_error:.2g} nats"
            alarms = [*alarms, Alarm("no-usable-estimate", seen, self.better_start)]
        return PartitionResult(
            method=self.method if method is None else method,
            log_partition=float(log_partition),
            std_error=float(std_error),
            degrees_of_freedom=degrees_of_freedom,
            statement=statement,
            alarms=(*alarms, *single_state_alarms(self.draws, std_error)),
            n_sweeps=self.n_sweeps,
            ladder=self.ladder,
            log_partition_curve=levels,
            diagnostics={name: _plain(value) for name, value in diagnostics.items()},
            bias=bias,
            draws=self.draws,
            described=self.described | PLAIN_BOUND | FIRST_TRY,
        )

    def to_reach(self) -> str:
        """Return what to do so that the next run reaches a region that this one has missed.

        Returns
        -------
        str
            The remedy of an alarm.
        """
        earlier = [each.kind for each in self.earlier_alarms]
        if self.first_try is None and "second-try-failed" not in earlier:
            return self.region_remedy
        return "give a base that covers it"

    def _rounds(self, log_partition: float, std_error: float) -> dict[str, NDArray]:
        """Diagnostics: the estimate after every earlier round and at last the result's own, shape
        (R + 1,).
        """
        rounds = with_round(self.history, log_partition, std_error, self.n_sweeps)
        values, errors, sweeps = rounds.T.copy()
        return {
            "round_log_partition": values,
            "round_std_error": errors,
            "round_sweeps": sweeps.astype(np.int64),
        }


def _plain(value: Any) -> Any:
    """A number of NumPy as Python's; all else as it is."""
    is_number = isinstance(value, (np.generic, np.ndarray)) and not value.ndim
    return value.item() if is_number else value


# log Z_k - log Z_0 (K,), or other numbers, of the independent groups to use
Curve = Callable[[NDArray], NDArray]


@dataclass(frozen=True, repr=False, kw_only=True)
class LevelRun(Run):
    """A run whose chains are in equilibrium at K levels, in G independent groups: what reweighting
    reads, from its last round.

    Attributes
    ----------
    has_boundary : bool
        Whether states of level 0 may have f_1 = 0.
    """

    # remedies where states at some levels are too few, and where levels are too far apart
    more_states: ClassVar[str] = "raise n_sweeps"
    more_levels: ClassVar[str] = "raise n_temperatures"

    has_boundary: bool = False

    if TYPE_CHECKING:  # a field or a property of the classes that extend it

        @property
        def last(self) -> LevelRound:
            """The last round."""

    def curve(self) -> Curve:
        """Return log Z_k - log Z_0 as the sampler estimates it.

        Returns
        -------
        callable
            A function of the indices of the groups to use, which returns the curve, shape (K,), in
            nats.
        """
        raise NotImplementedError

    @property
    def n_groups(self) -> int:
        """Independent groups G: ladders, or groups of chains."""
        return self.last.n_groups

    @property
    def samples(self) -> Samples:
        """The states that were kept."""
        return self.last.samples(self.ladder)

    def pair_alarms(self) -> list[Alarm]:
        """Return what speaks against ratios of neighbouring levels, beside what speaks against the
        run.

        Returns
        -------
        list of Alarm
        """
        return []

    def to_xarray(self) -> Any:
        """Return an xarray.Dataset of the states that were kept, with the dimensions chain, draw
        and level.

        ``log_f`` (chain, draw, level) is log f_k(x) at every level, but for a constant of every x
        (nats); ``moved_at`` (chain, draw) the level that x was moved at; ``slope`` d log f / d beta
        where the path has derivatives, at all levels, or one number where it is the same at all. A
        chain is a ladder of `ParallelTempering`, whose draws are those of its levels in turn. ArviZ
        takes the dataset as it is: ``arviz.ess(run.to_xarray()["log_f"])``.

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
        samples = self.samples
        levels = self.last.vector_levels
        variables: dict[str, Any] = {
            "log_f": (("chain", "draw", "level"), samples.vectors.reshape(*levels.shape, -1)),
            "moved_at": (("chain", "draw"), levels),
        }
        n_slopes = samples.slopes.shape[1]
        if n_slopes:
            slopes = samples.slopes.reshape(*levels.shape, n_slopes)
            one = n_slopes < len(self.ladder)
            variables["slope"] = (
                (("chain", "draw"), slopes[..., 0]) if one else (("chain", "draw", "level"), slopes)
            )
        return xarray.Dataset(variables, coords={"beta": ("level", self.ladder)})


def single_result(name: str, given: Any, remedy: str) -> PartitionResult:
    """The result of a fitted estimator, of a run, or as it is given; an error names what is none,
    or has rows.
    """
    result = getattr(given, "result_", given)
    if isinstance(result, Run):
        result = result.read()
    if not isinstance(result, PartitionResult):
        raise TypeError(
            f"{name} must be a fitted estimator of log Z, its run_ or its result_, got"
            f" {type(given).__name__}"
        )
    if np.ndim(result.log_partition):
        raise ValueError(f"{name} has a log Z for each of {len(result.log_partition)} rows{remedy}")
    return result


def check_run(run: Any) -> None:
    """Raise TypeError or ValueError unless a run can be reweighted."""
    if hasattr(run, "betas"):
        raise ValueError(
            "run must be one with levels, got one with continuous beta, which RTS and"
            ' rule="continuous" of ThermodynamicIntegration read: take RTS(continuous=False)'
        )
    if not isinstance(run, LevelRun):
        raise TypeError(
            "run must be run_ of a fitted ParallelTempering or RTS, or made by from_pymbar, got"
            f" {type(run).__module__}.{type(run).__name__}"
        )
    if run.n_groups < 2:
        raise ValueError(
            f"run must have at least 2 independent groups, got {run.n_groups}: raise n_ladders"
        )
    if not run.last.pairs()[1].sum(axis=1).min() > 0:
        raise ValueError("run holds no states: fit the sampler anew")


def chained(run: LevelRun, ratios: Curve) -> Curve:
    """Curve of ratios of neighbouring levels; of the first one as base draws say, where a run has
    made these.
    """
    known = [] if run.first_ratio is None else [run.first_ratio.log_mean]
    return lambda keep: np.r_[0.0, np.cumsum(np.r_[known, ratios(keep)[len(known) :]])]


def bar_curve(run: LevelRun) -> Curve:
    """Curve of log Z by Bennett's acceptance ratio of neighbouring levels."""
    pair_sums, counts = run.last.pairs()
    return chained(run, bar_ratios(pair_sums, run.last.shift, counts))


def stepping_ratios(run: LevelRun, half: int | None = None, direction: str = "both") -> Curve:
    """log Z_(k+1) / Z_k (K - 1,) by stepping stones; by forward ones at least where no reverse one
    can be had.
    """
    pair_sums, counts = run.last.pairs(half)
    both = stepping_stones(pair_sums, run.last.shift, counts)
    first = first_pair(run)

    def ratios(keep):
        forward, reverse = both(keep)
        by_direction = {"forward": forward, "reverse": reverse, "both": (forward + reverse) / 2}
        return np.r_[forward[:first], by_direction[direction][first:]]

    return ratios


def mbar_curve(run: LevelRun) -> Curve:
    """Curve of log Z by MBAR of the kept states."""
    samples = kept_samples(run)
    start = mbar(samples.vectors, samples.counts)

    def curve(keep):
        chosen = samples.of(keep)
        return mbar(chosen.vectors, chosen.counts, start)

    return curve


def level_process_curve(run: LevelRun) -> Curve:
    """Curve of log Z by the stationary law of the level process of the kept states."""
    samples = kept_samples(run)

    def curve(keep):
        chosen = samples.of(keep)
        return level_process(chosen.vectors, chosen.levels, run.last.log_pseudo_prior)

    return curve


def first_pair(run: LevelRun) -> int:
    """Index of the first pair of levels whose ratio can be estimated in both directions.

    It is 1 where some draws of the base have f_1 = 0, which no state at level 1 has; the slopes of
    the base's draws show them. Where an exchange run has no slopes, it is 1 for any path whose
    support has a boundary.
    """
    unseen = run.has_boundary and not run.last.slopes.shape[-1]
    return int(unseen or np.any(run.last.level_sums[:, :, 0, 1] == -np.inf))


def between_by_slope(level_sums: Array) -> float:
    """Share of the variance of U at the target that lies between groups, by sums (2, G, K, 4).

    It tells apart modes at nearly the same place of which one is much higher and narrower.
    """
    n, sums, squares, _ = level_sums[:, :, -1].sum(axis=0).T
    # Means of few states differ by chance.
    if n.min() < _FEWEST_STATES or not np.isfinite(squares).all():
        return 0.0
    return between_groups(sums[:, np.newaxis], squares[:, np.newaxis], n)


def kept_samples(run: LevelRun) -> Samples:
    """The states that a run kept; ValueError if it kept none."""
    samples = run.samples
    if not len(samples.levels):
        raise ValueError("run has kept no states with their vectors: fit the sampler anew")
    return samples
