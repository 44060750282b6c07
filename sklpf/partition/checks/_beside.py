"""The checks beside a run: which there are, what they look at, and the alarms that follow.

==========  ==========================================  ============================
check       applies to                                  file
==========  ==========================================  ============================
tails       densities on R^d, before they are sampled   `_tails`
the bound   paths with `BoundDraws`                     this one
regions     paths with `LocalMasses`, of runs that      `_regions`
            keep draws
rounding    all                                         `_alarms`
==========  ==========================================  ============================

What they find is kept in the run, so that `checked` is a pure function of it.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.alarm import Alarm
from sklpf._utils.numbers import Array
from sklpf._utils.random import Stream, stream_key
from sklpf.partition.checks._alarms import rounding_alarms
from sklpf.partition.checks._regions import (
    FOR_ALARM,
    FOR_SECOND_TRY,
    missed_regions,
    region_alarms,
)
from sklpf.partition.checks._tails import nan_alarms, tail_alarms
from sklpf.paths import BoundDraws, GeometricPath, LocalMasses, Rebased, Regions
from sklpf.paths._capabilities import has
from sklpf.paths._climbs import Evaluations
from sklpf.uncertainty import log_mean_exp

# random streams; those of estimators are below 8, and 10 and 12
BOUND = 8
TAILS = 9  # rays and their points near the mass
REGIONS = 11
_MATERIAL = 0.05  # nats by which the bound must be above the estimate
# a false alarm in at most 0.13 % of the runs, 0.75 % if both errors come from ten groups
_STD_ERRORS = 3.0
_LEAST_MASS = np.log(0.002)  # of a region that a second base covers, over Z


class Checks:
    """The checks beside one run, with random streams of their own, and what they cost.

    Parameters
    ----------
    path : Path
        Its tails are looked at at once.
    seed : int
        Of the run.
    wanted : bool, default=True
        False leaves all out that cost evaluations.

    Attributes
    ----------
    evaluations : Evaluations
        Of the density, so far.

    Raises
    ------
    ValueError
        If the target has no integral.
    """

    def __init__(self, path: Any, seed: int, wanted: bool = True):
        self._path = path
        self._seed = seed
        self._wanted = wanted
        self.evaluations = Evaluations()
        self._tails: tuple[Alarm, ...] = ()
        if wanted and isinstance(path, GeometricPath):
            self._path = copy.copy(path)
            self._path.evaluations = self.evaluations
            known = path.tail_alarms
            if known is not None and path.may_be_nan:
                known = (*known, *nan_alarms(self._path, stream_key(seed, TAILS)))
            self._tails = (
                tail_alarms(self._path, stream_key(seed, TAILS)) if known is None else known
            )

    def beside(self, run: Any) -> Any:
        """Return the run with what was found beside it.

        Parameters
        ----------
        run : Run
            As sampling has left it.

        Returns
        -------
        Run
        """
        run = replace(run, log_f_rounding=self._path.log_f_rounding, base=self._path.base_chosen)
        if not self._wanted:
            return run
        bound = run.plain_bound
        if bound is None:
            bound = plain_bound(self._path, self._seed)
        cost = 0 if bound is None else self._path.bound_cost
        regions = run.regions
        if regions is None and run.draws is not None and has(self._path, LocalMasses):
            regions = self._path.regions(Stream(stream_key(self._seed, REGIONS)))
            cost += self._path.regions_cost
        return replace(
            run,
            is_checked=True,
            earlier_alarms=(*self._tails, *run.earlier_alarms),
            plain_bound=bound,
            regions=regions,
            check_evaluations=self.evaluations.n + cost,
            failed_evaluations=self.evaluations.n_failed,
        )


def checked(run: Any, result: Any) -> Any:
    """Return the result of a run with the alarms of what was found beside it: of the bound, of
    regions, of what was found earlier, and of rounding.

    Parameters
    ----------
    run : Run
    result : PartitionResult
        What the run says by itself.

    Returns
    -------
    PartitionResult
    """
    diagnostics = dict(result.diagnostics)
    threshold = FOR_ALARM
    if run.first_try is not None:  # of a run that was chosen for what another one missed
        diagnostics["first_try"] = run.first_try
        threshold = FOR_SECOND_TRY
    if run.failed_evaluations:
        diagnostics["failed_evaluations"] = run.failed_evaluations
    value = result.log_partition, result.std_error
    alarms = [
        *result.alarms,
        *_bound_alarms(run.plain_bound, result, diagnostics),
        *region_alarms(run.regions, run.draws, *value, diagnostics, threshold, run.to_reach()),
        *run.earlier_alarms,
        *rounding_alarms(result.log_partition, run.log_f_rounding),
    ]
    return replace(
        result,
        alarms=tuple(dict.fromkeys(alarms)),
        diagnostics=diagnostics,
        check_evaluations=run.check_evaluations,
        is_checked=run.is_checked,
        base=run.base,
    )


def plain_bound(path: Any, seed: int) -> Array | None:
    """Logs of G independent estimates of Z (G,) whose mean is at most log Z; None where the path
    has none.
    """
    if not has(path, BoundDraws):
        return None
    return log_mean_exp(path.bound_draws(Stream(stream_key(seed, BOUND))), axis=1)


def _bound_alarms(bound: NDArray | None, result: Any, diagnostics: dict) -> list[Alarm]:
    """An alarm if an estimate is below the bound by more than chance; the bound goes to the
    diagnostics.

    Each estimate has the expectation Z, so that the expectation of its log is at most log Z,
    whatever its draws miss.
    """
    if bound is None:
        return []
    mean = float(bound.mean())
    error = float(bound.std(ddof=1) / np.sqrt(len(bound)))
    diagnostics.update(plain_bound=mean, plain_bound_std_error=error)
    if result.statement != "estimate" or not np.isfinite(result.log_partition):
        return []
    chance = _STD_ERRORS * float(np.hypot(error, result.std_error))
    if not mean - result.log_partition > max(_MATERIAL, chance):  # also of a NaN
        return []
    seen = f"chains from random starts show that log Z is at least {mean:.2f} +- {error:.2f}"
    remedy = "the base or the moves miss a part of the model; give another base"
    return [Alarm("below-the-bound", seen, remedy)]


def regions_to_cover(path: Any, run: Any, result: Any) -> list[Regions]:
    """Return what the bases of second tries should cover, in turn; empty where the run has missed
    nothing, or its base is the user's.

    The first covers every region with material mass. If its run is not trusted the next one covers
    only those that were certainly missed.
    """
    if run.regions is None or not path.base_is_ours or not has(path, Rebased):
        return []
    missed = missed_regions(
        run.regions, run.draws, result.log_partition, result.std_error, FOR_SECOND_TRY
    )
    if not missed:
        return []
    masses = np.logaddexp.reduce(run.regions.log_masses, axis=1)
    masses -= np.log(run.regions.log_masses.shape[1]) + result.log_partition
    certain = {each.place for each in missed}
    everything = certain | set(np.flatnonzero(masses > _LEAST_MASS).tolist())
    attempts = [everything] if everything == certain else [everything, certain]
    return [run.regions.take(sorted(places)) for places in attempts]
