"""What a round of replica exchange says: the ratios of neighbouring levels, their error, and the
alarms.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.alarm import Alarm
from sklpf.readings._alarms import halves_alarms, modes_alarms, tol_alarms
from sklpf.readings._diagnostics import round_diagnostics
from sklpf.readings._levels import between_by_slope, first_pair
from sklpf.readings._reading import Curve, Reading, conclude
from sklpf.reweighting import bar_ratios, neighbour_overlap, stepping_stones
from sklpf.runs import ExchangeRun
from sklpf.uncertainty import (
    Difference,
    between_groups,
    difference,
    groups_persist,
    jackknife,
)

# log Z_(k+1) / Z_k (K - 1,) of the independent ladders to use
Ratios = Callable[[NDArray], NDArray]
# nats by which a ratio may differ from its reference; sums of exp are cut off beyond 600
MOST_SHIFTED = 300.0


def read_exchange(run: ExchangeRun) -> Reading:
    """The reading of a run of `ParallelTempering`."""
    ratios = pair_ratios(run)
    curve, errors = _level_curve(run, ratios)
    log_partition = float(curve[-1])
    std_error = float(errors[-1])
    if np.isnan(std_error):  # levels that don't overlap: anything may be
        std_error = np.inf
    own_error = std_error
    std_error = max(own_error, _typical_error(run, own_error))

    drift, direction = differences(run, ratios)
    by_place = between_groups(run.summaries[:, 0], run.summaries[:, 1], run.n_scans)
    between = max(by_place, between_by_slope(run.level_sums))
    diagnostics = {
        "curve_std_error": errors,
        "rejection": run.rejection,
        "overlap": neighbour_overlap(*run.pairs()),
        "barrier": float(run.rejection.sum()),
        "round_trips": run.round_trips,
        "ladder_log_partitions": _by_ladder(run, ratios),
        "between_ladders": between,
        "drift_t": drift.t,
        "direction_t": direction.t,
        **round_diagnostics(run, log_partition, own_error),
    }

    alarms = _round_trip_alarms(run)
    modes = modes_alarms("ladders", between, "raise n_sweeps")
    by_half = np.array([_by_ladder(run, pair_ratios(run, half)) for half in (0, 1)])
    if not modes and groups_persist(by_half):
        seen = (
            "log Z differs more between ladders than between the halves of each, so they sit in"
            " different modes"
        )
        modes = [Alarm("different-modes", seen, "raise n_sweeps")]
    alarms += modes
    if cut_off(run, ratios(np.arange(run.n_groups))).any():
        alarms.append(
            Alarm("no-overlap", "neighbouring levels do not overlap at all", "raise n_temperatures")
        )
    alarms += halves_alarms(drift, run.n_groups)
    if direction.alarms(run.n_groups):
        seen = f"forward and reverse ratios disagree (t = {direction.t:.1f})"
        alarms.append(Alarm("directions-disagree", seen, "raise n_sweeps"))
    alarms += tol_alarms(std_error, run.options["tol"], "raise n_sweeps")

    return conclude(
        run,
        "ParallelTempering",
        log_partition,
        std_error,
        run.n_groups - 1,
        alarms=alarms,
        diagnostics=diagnostics,
        levels=curve,
        curve=_cumulative(ratios),
    )


def pair_ratios(run: ExchangeRun, half: int | None = None) -> Ratios:
    """log Z_(k+1) / Z_k (K - 1,) by the run's bridge, as a function of the ladders to use."""
    pair_sums, counts = run.pairs(half)
    if run.options["bridge"] == "bar":
        return bar_ratios(pair_sums, run.shift, counts)
    both = stepping_stones(pair_sums, run.shift, counts)
    first = first_pair(run)
    return lambda keep: np.r_[both(keep)[0, :first], both(keep)[:, first:].sum(axis=0) / 2]


def _level_curve(run: ExchangeRun, ratios: Ratios) -> tuple[NDArray, NDArray]:
    """log Z at every level, and its standard errors."""
    curve, errors = jackknife(_cumulative(ratios), run.n_groups)
    return run.base_log_partition + curve, errors


def at_target(run: ExchangeRun, ratios: Ratios) -> tuple[float, float]:
    """log Z and its standard error."""
    curve, errors = _level_curve(run, ratios)
    return float(curve[-1]), float(errors[-1])


def cut_off(run: ExchangeRun, log_ratios: NDArray) -> NDArray[np.bool_]:
    """Pairs whose ratio is too far from their reference, which sums of exp don't reach."""
    return ~(np.abs(log_ratios - run.shift) <= MOST_SHIFTED)


def differences(run: ExchangeRun, ratios: Ratios) -> tuple[Difference, Difference]:
    """First less second half of a round, and forward less reverse ratios.

    Bennett's ratio may be right where one of the two stepping stones is not, as the variance of one
    direction is often infinite. Then it is compared with both, and the smaller difference counts.
    """
    first, second = (pair_ratios(run, half) for half in (0, 1))
    pair_sums, counts = run.pairs()
    both = stepping_stones(pair_sums, run.shift, counts)
    pair = first_pair(run)
    drift = difference(lambda keep: first(keep).sum() - second(keep).sum(), run.n_groups)
    if run.options["bridge"] == "stepping-stone":
        return drift, difference(lambda keep: np.subtract(*both(keep))[pair:].sum(), run.n_groups)

    def beside(side):
        return difference(lambda keep: (ratios(keep) - both(keep)[side])[pair:].sum(), run.n_groups)

    with np.errstate(invalid="ignore"):  # levels that don't overlap
        against = [beside(0), beside(1)]
    return drift, min(against, key=lambda one: abs(one.t))


def _typical_error(run: ExchangeRun, own_error: float) -> float:
    """The median standard error of the last three rounds, for as many sweeps as the last has.

    A round in which hardly any ladder meets a rare mode is low, and its ladders agree, so that its
    own error is small when it should be large. The rounds before know nothing of that, and the
    variance of each is inversely proportional to its length.
    """
    errors = np.r_[run.history[:, 1], own_error]
    lengths = np.diff(np.r_[0, run.history[:, 2], run.n_sweeps])
    with np.errstate(invalid="ignore"):
        scaled = (errors * np.sqrt(lengths / lengths[-1]))[-3:]
    return float(np.median(scaled)) if np.all(np.isfinite(scaled)) else 0.0


def _by_ladder(run: ExchangeRun, ratios: Ratios) -> NDArray[np.float64]:
    """log Z_K / Z_1 of every ladder (G,)."""
    return np.array([ratios(np.array([g])).sum() for g in range(run.n_groups)])


def _cumulative(ratios: Ratios) -> Curve:
    return lambda keep: np.r_[0.0, np.cumsum(ratios(keep))]


def _round_trip_alarms(run: ExchangeRun) -> list[Alarm]:
    n_without = int(np.sum(run.round_trips == 0))
    if not n_without:
        return []
    seen = (
        f"{n_without} of {run.n_groups} ladders made no round trip between base and target in the"
        " last round"
    )
    return [Alarm("no-round-trip", seen, "raise n_sweeps")]
