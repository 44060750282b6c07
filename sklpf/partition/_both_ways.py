"""Chains from the base to the target and reverse chains from there: what AIS, HAIS and
ImportanceSampling share.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sklpf._utils.random import Stream, stream_key
from sklpf._utils.sampling import systematic
from sklpf.partition._base import BOUND, PartitionEstimator
from sklpf.paths._capabilities import require_base
from sklpf.readings import Reading, conclude
from sklpf.readings._alarms import lower_bound
from sklpf.readings._diagnostics import (
    LOWER_BOUND,
    MOVES,
    PLAIN_BOUND,
    WEIGHTS,
    Diagnostic,
    round_diagnostics,
)
from sklpf.readings._weights import move_diagnostics, weight_alarms, weight_diagnostics
from sklpf.reweighting import mean_weight, seen_from_target
from sklpf.runs import AnnealingRun
from sklpf.runs._annealing import anneal_down, anneal_up
from sklpf.runs._draws import draws_of
from sklpf.runs._plan import check_alive

BOTH_WAYS = {
    **WEIGHTS,
    "effective_sample_size_from_target": Diagnostic("… by the reverse chains", "high"),
    **LOWER_BOUND,
    **PLAIN_BOUND,
    **MOVES,
}
_MAIN, _CHECK = 1, 7  # random streams; that of the pilot is 0
_FEWEST_BACK = 10  # reverse chains, or a quarter of all
_SETTLING = 100  # sweeps at the target before they begin


def anneal_both_ways(estimator: PartitionEstimator, path, n: int, seed: int) -> AnnealingRun:
    """The weights of n chains from the base, and of reverse chains from where they ended."""
    base_log_partition = require_base(path, type(estimator).__name__)
    checkpoint = estimator._checkpoint(path, seed)
    path, transition, n_pilot, history = estimator._plan(path, seed, n)
    bound = lower_bound(path, stream_key(seed, BOUND))
    key = stream_key(seed, _MAIN)
    checks = stream_key(seed, _CHECK)
    up, state, acceptance = anneal_up(path, transition, n, key, estimator.n_jobs, checkpoint)
    ends = path.take(state, _going_back(up, Stream(checks).aside("starts").generator()))
    down = anneal_down(
        path, transition, ends, 1, checks, estimator.n_jobs, checkpoint, n_settling=_SETTLING
    )
    n_sweeps = n_pilot + (len(up) + len(down)) * (len(path.ladder) - 1) + len(down) * _SETTLING
    return AnnealingRun(
        ladder=path.ladder,
        base_log_partition=base_log_partition,
        n_sweeps=n_sweeps,
        history=history + [base_log_partition, 0.0, 0.0],
        bound=bound,
        draws=draws_of(path, state, up, np.arange(n)) if estimator._keeps_draws else None,
        up=up,
        down=down,
        starts="ends",
        acceptance=acceptance,
        pilot=transition.pilot,
    )


def read_both_ways(run: Any, method: str, remedy: str) -> Reading:
    """log Z by the mean weight, with an error that the reverse chains may raise."""
    n = len(run.up)
    estimate = mean_weight(run.up)
    seen = seen_from_target(-run.down.ravel(), estimate.log_mean, float(np.mean(run.up > -np.inf)))
    log_partition = run.base_log_partition + estimate.log_mean
    std_error = max(estimate.delta, float(np.sqrt((estimate.delta**2 + seen.variance / n) / 2)))
    diagnostics = {
        **weight_diagnostics(run.up),
        "effective_sample_size_from_target": n * seen.share,
        "delta_std_error": estimate.delta,
        "jackknife_std_error": estimate.jackknife,
        "reverse_std_error": float(np.sqrt(seen.variance / n)),
        "lower_bound": log_partition - np.log(20),
        **move_diagnostics(run),
    }
    if len(run.history):
        diagnostics |= round_diagnostics(run, log_partition, std_error)
    alarms = weight_alarms(n, diagnostics, remedy)
    return conclude(
        run, method, log_partition, std_error, n - 1, alarms=alarms, diagnostics=diagnostics
    )


def _going_back(log_weights, rng):
    """A quarter of the chains, at least 10, drawn in proportion to their weights (systematic
    resampling).

    A chain that was left behind in a tail has hardly any weight, and is no draw from the target.
    """
    check_alive(log_weights)
    n_chains = len(log_weights)
    return systematic(log_weights, min(n_chains, max(_FEWEST_BACK, n_chains // 4)), rng.random())
