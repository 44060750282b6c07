"""ExchangeRun: what replica exchange leaves, and log Z from the ratios of neighbouring levels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.numbers import Array
from sklpf._utils.warnings import Alarm
from sklpf.partition._result import CURVE, PAIR, ROUNDS, Diagnostic, PartitionResult
from sklpf.partition._run import (
    Curve,
    LevelRun,
    between_by_slope,
    chained,
    first_pair,
    stepping_ratios,
)
from sklpf.partition.checks._beside import halves_alarms, modes_alarms, tol_alarms
from sklpf.programs import ExchangeRound
from sklpf.reweighting import bar_ratios, neighbour_overlap, stepping_stones
from sklpf.uncertainty import (
    Difference,
    between_groups,
    difference,
    groups_persist,
    jackknife,
)

# nats by which a ratio may differ from its reference; sums of exp are cut off beyond 600
MOST_SHIFTED = 300.0


@dataclass(frozen=True, repr=False, kw_only=True)
class ExchangeRun(LevelRun):
    """The last round of replica exchange on G ladders with K levels, half of all scans.

    Attributes
    ----------
    last : ExchangeRound
    bridge : {"bar", "stepping-stone"}
    tol : float or None
        As in `ParallelTempering`.
    """

    options = ("bridge", "tol")
    better_start = "give a base that is closer to the target, or many more levels"
    described = {
        **CURVE,
        "barrier": Diagnostic("communication barrier (sum of rejection rates)", "low"),
        "between_ladders": Diagnostic("share of the variance between ladders", "low"),
        "overlap": Diagnostic("overlap of neighbouring levels, lowest (1: full)", "high", PAIR),
        "rejection": Diagnostic("rejection rate of swaps by pairs of levels", "", PAIR),
        "round_trips": Diagnostic("round trips of a ladder", "", ("ladder",)),
        "ladder_log_partitions": Diagnostic(dimensions=("ladder",), per_chain=True),
        **ROUNDS,
    }

    last: ExchangeRound
    bridge: str = "bar"
    tol: float | None = None

    def curve(self) -> Curve:
        """Return log Z_k - log Z_0 by the bridges between neighbouring levels."""
        return chained(self, pair_ratios(self))

    def _read(self) -> PartitionResult:
        last = self.last
        ratios = pair_ratios(self)
        curve, errors = jackknife(self.curve(), self.n_groups)
        curve = self.base_log_partition + curve
        log_partition = curve[-1]
        std_error = errors[-1]
        if np.isnan(std_error):  # levels that don't overlap: anything may be
            std_error = np.inf
        own_error = std_error
        std_error = max(own_error, _typical_error(self, own_error))

        drift, direction = differences(self, ratios)
        by_place = between_groups(last.summaries[:, 0], last.summaries[:, 1], last.n_scans)
        between = max(by_place, between_by_slope(last.level_sums))
        diagnostics = {
            "curve_std_error": errors,
            "rejection": last.rejection,
            "overlap": neighbour_overlap(*last.pairs()),
            "barrier": last.rejection.sum(),
            "round_trips": last.round_trips,
            "ladder_log_partitions": _by_ladder(self, ratios),
            "between_ladders": between,
            "drift_t": drift.t,
            "direction_t": direction.t,
            **self._rounds(log_partition, own_error),
        }

        alarms = _round_trip_alarms(self)
        modes = modes_alarms("ladders", between, "raise n_sweeps")
        by_half = np.array([_by_ladder(self, pair_ratios(self, half)) for half in (0, 1)])
        if not modes and groups_persist(by_half):
            seen = (
                "log Z differs more between ladders than between the halves of each: they have not"
                " mixed, or sit in different modes"
            )
            modes = [Alarm("different-modes", seen, "raise n_sweeps")]
        alarms += modes
        if cut_off(self, ratios(np.arange(self.n_groups))).any():
            alarms.append(
                Alarm(
                    "no-overlap",
                    "neighbouring levels do not overlap at all",
                    "raise n_sweeps, or n_temperatures",
                )
            )
        alarms += halves_alarms(drift, self.n_groups)
        if direction.alarms(self.n_groups):
            seen = f"forward and reverse ratios disagree (t = {direction.t:.1f})"
            alarms.append(Alarm("directions-disagree", seen, "raise n_sweeps"))
        alarms += tol_alarms(std_error, self.tol, "raise n_sweeps")

        return self.conclude(
            log_partition,
            std_error,
            self.n_groups - 1,
            alarms=alarms,
            diagnostics=diagnostics,
            levels=curve,
        )


def pair_ratios(run: ExchangeRun, half: int | None = None) -> Curve:
    """log Z_(k+1) / Z_k (K - 1,) by the run's bridge, as a function of the ladders to use."""
    if run.bridge == "stepping-stone":
        return stepping_ratios(run, half)
    pair_sums, counts = run.last.pairs(half)
    return bar_ratios(pair_sums, run.last.shift, counts)


def value_and_error(run: ExchangeRun) -> tuple[float, float]:
    """log Z and its standard error."""
    curve, errors = jackknife(run.curve(), run.n_groups)
    return float(run.base_log_partition + curve[-1]), float(errors[-1])


def cut_off(run: ExchangeRun, log_ratios: NDArray) -> NDArray[np.bool_]:
    """Pairs whose ratio is too far from their reference, which sums of exp don't reach."""
    return ~(np.abs(log_ratios - run.last.shift) <= MOST_SHIFTED)


def differences(run: ExchangeRun, ratios: Curve) -> tuple[Difference, Difference]:
    """First less second half of a round, and forward less reverse ratios.

    Bennett's ratio may be right where one of the two stepping stones is not, as the variance of one
    direction is often infinite. Then it is compared with both, and the smaller difference counts.
    """
    first, second = (pair_ratios(run, half) for half in (0, 1))
    pair_sums, counts = run.last.pairs()
    both = stepping_stones(pair_sums, run.last.shift, counts)
    pair = first_pair(run)
    drift = difference(lambda keep: first(keep).sum() - second(keep).sum(), run.n_groups)
    if run.bridge == "stepping-stone":
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


def _by_ladder(run: ExchangeRun, ratios: Curve) -> Array:
    """log Z_K / Z_1 of every ladder (G,)."""
    return np.array([ratios(np.array([g])).sum() for g in range(run.n_groups)])


def _round_trip_alarms(run: ExchangeRun) -> list[Alarm]:
    n_without = int(np.sum(run.last.round_trips == 0))
    if not n_without:
        return []
    seen = (
        f"{n_without} of {run.n_groups} ladders made no round trip between base and target in the"
        " last round"
    )
    return [Alarm("no-round-trip", seen, "raise n_sweeps")]
