"""AnnealingRun: chains from the base to the target and reverse chains from there, of AIS, HAIS and
ImportanceSampling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.alarm import Alarm
from sklpf._utils.random import Stream
from sklpf.partition._diagnostics import (
    LOWER_BOUND,
    MOVES,
    ROUNDS,
    WEIGHTS,
    Diagnostic,
)
from sklpf.partition._result import PartitionResult
from sklpf.partition._run import Run
from sklpf.partition._weights import move_diagnostics, weight_alarms, weight_diagnostics
from sklpf.partition.checks._alarms import tol_alarms
from sklpf.paths._capabilities import require_base
from sklpf.programs._annealing import (
    FEWEST_BACK,
    SETTLING,
    Arrivals,
    anneal_down,
    anneal_up,
)
from sklpf.programs._draws import draws_of
from sklpf.programs._plan import Plan, check_alive
from sklpf.reweighting import mean_weight, seen_from_target
from sklpf.sampling._elementary import systematic

_MAIN, _CHECK = 1, 7  # random streams; that of the pilot is 0


@dataclass(frozen=True, repr=False, kw_only=True)
class AnnealingRun(Run):
    """Log weights of independent chains that went up the ladder, and of reverse chains.

    Attributes
    ----------
    up : ndarray of shape (n,)
        Log weights of chains from the base to the target: the mean weight is unbiased for Z / Z_0.
    down : ndarray of shape (n_starts, 1) or None
        Log weights of reverse chains, from where forward chains arrived, drawn by weight.
    acceptance : ndarray or None
        Mean acceptance probability of the forward chains at every level but the first, as a mean
        over each segment of their way; None if no move is rejected.
    pilot : object or None
        Step sizes of the moves at some inverse temperatures, of moves that were tuned.
    n_temperatures : int or None
    tol : float or None
        As in `HAIS`.
    """

    options = ("n_temperatures", "tol")
    described = {
        **WEIGHTS,
        "effective_sample_size_from_target": Diagnostic("… by the reverse chains", "high"),
        **LOWER_BOUND,
        **MOVES,
        **ROUNDS,
    }
    remedy: ClassVar[str] = "raise n_temperatures or n_chains"

    up: NDArray[np.float64]
    down: NDArray[np.float64] | None = None
    acceptance: NDArray[np.float64] | None = None
    pilot: Any = None
    n_temperatures: int | None = None
    tol: float | None = None

    def _read(self) -> PartitionResult:
        """log Z by the mean weight, with an error that the reverse chains may raise."""
        n = len(self.up)
        estimate = mean_weight(self.up)
        alive = float(np.mean(self.up > -np.inf))
        down = np.ravel(self.down)  # type: ignore[arg-type]  # it is there
        seen = seen_from_target(-down, estimate.log_mean, alive)
        log_partition = self.base_log_partition + estimate.log_mean
        reverse = float(np.sqrt(seen.variance / n))
        std_error = max(estimate.delta, float(np.sqrt((estimate.delta**2 + seen.variance / n) / 2)))
        diagnostics = {
            **weight_diagnostics(self.up),
            "effective_sample_size_from_target": n * seen.share,
            "delta_std_error": estimate.delta,
            "jackknife_std_error": estimate.jackknife,
            "reverse_std_error": reverse,
            "lower_bound": log_partition - np.log(20),
            **move_diagnostics(self),
        }
        if len(self.history):
            diagnostics |= self._rounds(log_partition, std_error)
        return self.conclude(
            log_partition,
            std_error,
            n - 1,
            alarms=[
                *self._tol_alarms(std_error),
                *weight_alarms(n, diagnostics, self.remedy),
            ],
            diagnostics=diagnostics,
        )

    def _tol_alarms(self, std_error) -> list[Alarm]:
        if self.tol is None:
            return []
        n_levels = len(self.ladder)
        # With fewer levels than it may have the pilot asked for no more.
        most = self.n_temperatures or 0
        more = "n_temperatures" if n_levels >= most else "n_chains"
        return tol_alarms(std_error, self.tol, f"raise {more}", f" with {n_levels} levels")


def annealing_runs(
    estimator: Any, paths: Sequence[Any], n: int, seeds: Sequence[int]
) -> list[AnnealingRun]:
    """A run on the path of every row: n chains from the base, and reverse chains from where these
    ended.
    """

    def ends(plan, up):
        return plan.path.take(up.state, _going_back(up.log_weights, plan.key(_CHECK)))

    runs = []
    stages = (_MAIN,), (_CHECK,)
    for plan, up, fields in anneal_both_ways(estimator, paths, n, seeds, stages, ends, SETTLING):
        draws = None
        if estimator._keeps_draws:
            draws = draws_of(plan.path, up.state, up.log_weights, np.arange(n))
        history = plan.history + [fields["base_log_partition"], 0.0, 0.0]
        run = estimator._run_class(
            draws=draws,
            history=history,
            acceptance=up.acceptance,
            pilot=plan.transition.pilot,
            **fields,
        )
        runs.append(run)
    return runs


def anneal_both_ways(
    estimator: Any,
    paths: Sequence[Any],
    n: int,
    seeds: Sequence[int],
    stages: tuple[tuple[int, ...], tuple[int, ...]],
    starts: Callable[[Plan, Arrivals], Any],
    n_settling: int,
) -> Iterator[tuple[Plan, Arrivals, dict[str, Any]]]:
    """Anneal n chains of every row up, and then chains from the states that starts(plan, arrivals)
    gives down.

    Yields the row's plan, the chains that went up, and the fields that runs have in common.
    """
    base_log_partition = require_base(paths[0], type(estimator).__name__)
    options = estimator.n_jobs, estimator._checkpoint(paths[0], seeds[0])
    plans = estimator._plans(paths, seeds, n)
    ups = anneal_up(plans, n, stages[0], *options)
    states = [starts(plan, up) for plan, up in zip(plans, ups)]
    downs = anneal_down(plans, states, 1, stages[1], *options, n_settling)
    for plan, up, down in zip(plans, ups, downs):
        n_moves = len(plan.path.ladder) - 1
        fields = {
            "ladder": plan.path.ladder,
            "base_log_partition": base_log_partition,
            "n_sweeps": plan.n_sweeps + n * n_moves + len(down) * (n_moves + n_settling),
            "up": up.log_weights,
            "down": down,
        }
        yield plan, up, fields


def _going_back(log_weights, key):
    """A quarter of the chains, at least 10, drawn in proportion to their weights (systematic
    resampling).

    A chain that was left behind in a tail has hardly any weight, and is no draw from the target.
    """
    check_alive(log_weights)
    n_chains = len(log_weights)
    uniform = Stream(key).aside("starts").generator().random()
    return systematic(log_weights, min(n_chains, max(FEWEST_BACK, n_chains // 4)), uniform)
