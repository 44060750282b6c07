"""From a run to a result: the samplers' own readings, and the one way to a `PartitionResult` of a
run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.alarm import Alarm
from sklpf.readings._alarms import bound_alarms, rounding_alarms, single_state_alarms
from sklpf.readings._diagnostics import FIRST_TRY
from sklpf.readings._regions import FOR_ALARM, FOR_SECOND_TRY, region_alarms
from sklpf.readings._result import PartitionResult
from sklpf.runs import Run

Curve = Callable[[NDArray], NDArray]  # log Z_k - log Z_0 (K,) of the independent groups to use

_LARGEST_ERROR = 10.0  # nats
# name -> class of every estimator that leaves runs: it registers itself
SAMPLERS: dict[str, Any] = {}


class Reading(NamedTuple):
    """What a run says of log Z.

    Attributes
    ----------
    result : PartitionResult
        The number with its error, its diagnostics and its alarms.
    curve : callable or None
        log Z_k - log Z_0 (K,) as a function of the groups to use, where other methods can read the
        run too.
    """

    result: PartitionResult
    curve: Any = None  # a Curve, or None

    def no_estimate(self, statement: str, alarm: Alarm) -> Reading:
        """Return the reading of a number that is neither an estimate nor a bound.

        Parameters
        ----------
        statement : str
            What the number is.
        alarm : Alarm
            Why it is no estimate.

        Returns
        -------
        Reading
            With this alarm after the others.
        """
        return self._replace(result=self.result.no_estimate(statement, alarm))

    def with_alarms(self, *alarms: Alarm) -> Reading:
        """Return the reading with further alarms.

        Parameters
        ----------
        *alarms : Alarm
            They come first.

        Returns
        -------
        Reading
            All else is the same.
        """
        return self._replace(result=replace(self.result, alarms=(*alarms, *self.result.alarms)))


def read(run: Run) -> Reading:
    """Return what the sampler of a run says of log Z, with the options that it had.

    Parameters
    ----------
    run : Run
        ``run_`` of a fitted estimator.

    Returns
    -------
    Reading
        A pure function of the run.

    Raises
    ------
    ValueError
        If the estimator is not known: it is another's, and not imported.
    """
    if run.sampler not in SAMPLERS:
        raise ValueError(
            f"run was made by {run.sampler or 'no estimator'}, which is not known here: import it"
            " first"
        )
    sampler = SAMPLERS[run.sampler]
    # Ratios of levels that do not overlap are infinite, and sums of them NaN: alarms say so.
    with np.errstate(invalid="ignore", over="ignore"):
        reading = sampler._reading(run)
    described = sampler._diagnostics | FIRST_TRY
    return reading._replace(result=replace(reading.result, described=described))


def conclude(
    run: Run,
    method: str,
    log_partition: float,
    std_error: float,
    degrees_of_freedom: float = math.inf,
    *,
    alarms: list[Alarm],
    diagnostics: dict[str, Any],
    levels: NDArray[np.float64] | None = None,
    statement: str = "estimate",
    bias: float = 0.0,
    curve: Curve | None = None,
) -> Reading:
    """Return the reading of a run from what was found in it and what was known before.

    Parameters
    ----------
    run : Run
        That was read.
    method, log_partition, std_error, degrees_of_freedom, statement, bias
        As in `PartitionResult`.
    alarms : list of Alarm
        What speaks against the number.
    diagnostics : dict
        Further numbers; those of the run's lower bound of log Z come to them.
    levels : ndarray of shape (K,) or None, default=None
        log Z at every level in nats.
    curve : callable or None, default=None
        As in `Reading`.

    Returns
    -------
    Reading
        With the alarms of the lower bound, of what was known before sampling and of rounding after
        the others.
    """
    if statement == "estimate" and std_error > _LARGEST_ERROR:
        seen = f"there is no usable estimate: the standard error is {std_error:.2g} nats"
        remedy = "give a base that is closer to the target, or many more levels"
        if run.sampler != "ParallelTempering":
            remedy += "; else take ParallelTempering"
        alarms = [*alarms, Alarm("no-usable-estimate", seen, remedy)]
    alarms = [*alarms, *single_state_alarms(run.draws, std_error)]
    bounded = bound_alarms(run.bound, log_partition, std_error, diagnostics)
    threshold = FOR_ALARM
    if run.first_try is not None:  # of a run that was chosen for what another one missed
        diagnostics = diagnostics | {"first_try": run.first_try}
        threshold = FOR_SECOND_TRY
    missed = region_alarms(
        run.regions, run.draws, log_partition, std_error, diagnostics, threshold, _to_reach(run)
    )
    rounded = rounding_alarms(log_partition, run.log_f_rounding)
    if run.failed_evaluations:
        diagnostics["failed_evaluations"] = run.failed_evaluations
    result = PartitionResult(
        method=method,
        log_partition=log_partition,
        std_error=std_error,
        degrees_of_freedom=degrees_of_freedom,
        statement=statement,
        alarms=tuple(dict.fromkeys([*alarms, *bounded, *missed, *run.known, *rounded])),
        n_sweeps=run.n_sweeps,
        check_evaluations=run.check_evaluations,
        ladder=run.ladder,
        log_partition_curve=levels,
        diagnostics=diagnostics,
        bias=bias,
        draws=run.draws,
        base=run.base,
    )
    return Reading(result, curve)


def _to_reach(run: Run) -> str:
    """What to do so that the next run reaches a region that this one has missed."""
    if run.sampler == "BridgeSampling":
        return "give draws that cover it"
    if run.first_try is None and "second-try-failed" not in [alarm.kind for alarm in run.known]:
        return "fit path.with_regions(run_.regions), whose base covers it"
    return "give a base that covers it"
