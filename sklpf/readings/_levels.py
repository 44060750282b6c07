"""log Z at the levels of a run as functions of the independent groups to use, by one
method each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklpf.readings._reading import Curve
from sklpf.reweighting import bar_ratios, level_process, mbar
from sklpf.runs import ContinuousRun, LevelRun
from sklpf.runs._samples import Samples
from sklpf.uncertainty import between_groups

_FEWEST_STATES = 100  # of a group at the target, where groups are compared by U


def check_run(run: Any) -> None:
    """Raise TypeError or ValueError unless a run can be reweighted."""
    if isinstance(run, ContinuousRun):
        raise ValueError(
            "run must be one with levels, got one with continuous beta, which RTS and"
            ' rule="continuous" of ThermodynamicIntegration read: take RTS(continuous=False)'
        )
    if not isinstance(run, LevelRun):
        raise TypeError(
            "run must be run_ of a fitted ParallelTempering or RTS, got"
            f" {type(run).__module__}.{type(run).__name__}"
        )
    if run.n_groups < 2:
        raise ValueError(
            f"run must have at least 2 independent groups, got {run.n_groups}: raise n_ladders"
        )
    if not run.pairs()[1].sum(axis=1).min() > 0:
        raise ValueError("run holds no states: fit the sampler anew")


def bar_curve(run: LevelRun) -> Curve:
    """By Bennett's acceptance ratio of neighbouring levels."""
    pair_sums, counts = run.pairs()
    ratios = bar_ratios(pair_sums, run.shift, counts)
    known = known_ratio(run)
    return lambda keep: np.r_[0.0, np.cumsum(np.r_[known, ratios(keep)[len(known) :]])]


def mbar_curve(run: LevelRun) -> Curve:
    """By MBAR of the kept states."""
    samples = kept_samples(run)
    start = mbar(samples.vectors, samples.counts)

    def curve(keep):
        chosen = samples.of(keep)
        return mbar(chosen.vectors, chosen.counts, start)

    return curve


def level_process_curve(run: LevelRun) -> Curve:
    """By the stationary law of the process that redraws the levels of the kept states."""
    samples = kept_samples(run)
    log_pseudo_prior = -np.r_[0.0, np.cumsum(run.shift)]

    def curve(keep):
        chosen = samples.of(keep)
        return level_process(chosen.vectors, chosen.levels, log_pseudo_prior)

    return curve


def known_ratio(run: LevelRun) -> list[float]:
    """log Z_1 / Z_0 where a run knows it from base draws, else nothing."""
    return [] if run.first_ratio is None else [run.first_ratio.log_mean]


def first_pair(run: LevelRun) -> int:
    """The first pair with a reverse ratio: 1 where the base has draws with f_1 = 0, which level 1
    does not see.

    The slopes say so; of an exchange run on a path without them any walls count.
    """
    unseen = run.has_walls and not run.slopes.shape[-1]
    return int(unseen or np.any(run.level_sums[:, :, 0, 1] == -np.inf))


def between_by_slope(level_sums: NDArray[np.float64]) -> float:
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
