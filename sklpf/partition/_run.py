"""Run: what sampling leaves of one log Z, which says itself what it is worth."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.alarm import Alarm
from sklpf._utils.numbers import Array
from sklpf._utils.tables import Fields
from sklpf.partition._diagnostics import FIRST_TRY, PLAIN_BOUND, Diagnostic
from sklpf.partition._result import PartitionResult
from sklpf.partition.checks._alarms import single_state_alarms
from sklpf.partition.checks._beside import checked
from sklpf.paths import Regions
from sklpf.programs import Draws
from sklpf.programs._plan import NO_ROUNDS, with_round
from sklpf.reweighting import MeanWeight

_LARGEST_ERROR = 10.0  # nats


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
    first_try: float | None = None

    def read(self) -> PartitionResult:
        """Return what the run says of log Z, with the alarms of what checks have found beside it: a
        pure function of its fields.

        Returns
        -------
        PartitionResult
        """
        # Ratios of levels that do not overlap are infinite, and sums of them NaN: alarms say so.
        with np.errstate(invalid="ignore", over="ignore"):
            return checked(self, self._read())

    def _read(self) -> PartitionResult:
        raise NotImplementedError(f"{type(self).__name__} must define _read()")

    def conclude(
        self,
        log_partition: float,
        std_error: float,
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
            log_partition=log_partition,
            std_error=std_error,
            degrees_of_freedom=degrees_of_freedom,
            statement=statement,
            alarms=(*alarms, *single_state_alarms(self.draws, std_error)),
            n_sweeps=self.n_sweeps,
            ladder=self.ladder,
            log_partition_curve=levels,
            diagnostics=diagnostics,
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
            return "fit path.with_regions(run_.regions), whose base covers it"
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
