"""Runs of importance sampling, and sampling from an explored cover."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sklpf._utils.context import BudgetSpent, current_budget, note, report
from sklpf._utils.numbers import Array, Integers
from sklpf._utils.random import Stream, seeded, systematic
from sklpf.exploration import (
    EFFICIENT,
    Cover,
    FreshDraws,
    Target,
    disagreement,
    draw_afresh,
    explore,
)
from sklpf.partition._result import PartitionResult, weight_diagnostics
from sklpf.partition.alarms import (
    raised,
    threshold,
    tol_alarms,
    weight_alarms,
)
from sklpf.partition.checks.tails import Scouts, Tails, tail_alarms
from sklpf.partition.weights._ais import AnnealingRun
from sklpf.paths import (
    GeometricPath,
    evaluate_bisecting_failures,
    require_base,
    require_own_density,
)
from sklpf.programs import Draws
from sklpf.uncertainty import log_mean_exp, pareto_shape, standard_error

if TYPE_CHECKING:
    from sklpf.partition._base import PartitionEstimator

TWO_LEVELS = np.array([0.0, 1.0])
_EXPLORING = (15_000, 3_000)  # evaluations at most, and for each dimension
_SHARE_OF_EXPLORING = 0.75  # of the most evaluations
_FEWEST_EFFECTIVE = 2.0  # draws, with which weights still say how far off their mean is
_MOST_GROWTH = 3.0  # times as many draws


@dataclass(frozen=True, repr=False, kw_only=True)
class ImportanceRun(AnnealingRun):
    """An `AnnealingRun` without levels between base and target."""

    family = "importance"


@dataclass(frozen=True, repr=False, kw_only=True)
class ExploredRun(ImportanceRun):
    """Run of importance sampling from an explored cover.

    Attributes
    ----------
    cover : Cover
        From which draws come.
    explorers : ndarray of shape (n,)
        The explorer whose half of the cover each draw is from.
    log_own : ndarray of shape (n,)
        Log of target over that half, in nats.
    is_short_of_time : bool
        True if exploring had fewer evaluations because of `max_seconds`.
    """

    options = ("tol",)
    family = "explored"

    cover: Cover
    explorers: Integers
    log_own: Array
    is_short_of_time: bool = False

    def _read(self) -> PartitionResult:
        n = len(self.forward)
        log_mean = float(log_mean_exp(self.forward))
        std_error = stratified_error(self.forward, self.explorers)
        diagnostics = weight_diagnostics(self.forward)
        shape = diagnostics["pareto_shape"]
        efficiency = diagnostics["effective_sample_size"] / n
        if diagnostics["effective_sample_size"] < _FEWEST_EFFECTIVE:
            std_error = np.inf
        differ = disagreement(self.log_own, self.explorers)
        diagnostics |= {
            "efficiency": efficiency,
            "disagreement": differ,
            "smallest_basin": self.cover.smallest_basin,
        }
        alarms = weight_alarms(n, diagnostics, "importance")
        is_stopped = self.finding("budget") is not None  # which says what to raise
        is_unknown = is_stopped and np.isnan(shape)  # of too few draws
        if self.cover.not_over and not is_stopped:
            n_spent = self.cover.n_evaluations
            why = self.cover.not_over
            family = "explored in time" if self.is_short_of_time else self.family
            alarms.append(raised("search-not-over", "explorers", family, n=n_spent, why=why))
        elif not is_stopped and differ > threshold("search-not-over", "explorers"):
            alarms.append(raised("search-not-over", "differ", self.family, t=differ))
        if efficiency < EFFICIENT:
            alarms.append(raised("little-overlap", "explored", self.family, share=efficiency))
        elif not is_unknown and not shape <= largest_shape(n):
            alarms.append(
                raised("little-overlap", "weights", self.family, shape=shape, most=largest_shape(n))
            )
        alarms += tol_alarms(std_error, self.tol, self.family)
        return self.conclude(log_mean, std_error, n - 1, alarms=alarms, diagnostics=diagnostics)


def largest_shape(n: int) -> float:
    """Return the shape of Pareto's distribution up to which n weights have a mean that can be
    relied on (Vehtari et al. 2024).
    """
    return min(1 - 1 / np.log10(n), threshold("little-overlap", "pareto_shape"))


def stratified_error(log_weights: Array, explorers: Integers) -> float:
    """Return the standard error of the log of the mean of weights, of which each explorer's half of
    the cover has as many.
    """
    relative = np.exp(log_weights - log_mean_exp(log_weights))
    errors = [standard_error(relative[explorers == k]) for k in np.unique(explorers)]
    return float(np.linalg.norm(errors) / len(errors))


def explored_run(estimator: PartitionEstimator, path: GeometricPath, seed: int) -> ExploredRun:
    """Explore a path for an `ImportanceSampling`, and draw from the cover.

    Parameters
    ----------
    estimator : ImportanceSampling
    path : GeometricPath
    seed : int

    Returns
    -------
    ExploredRun
        With what the check of tails finds.

    Raises
    ------
    TypeError
        If the path is none to a density of the user's, or its base is not normalised.
    """
    require_own_density(path, 'proposal="explored"')
    require_base(path, "ImportanceSampling")
    stream = seeded(seed)
    most = estimator.max_evaluations
    budget = _EXPLORING[0] + _EXPLORING[1] * path.n_dimensions
    if most is not None:
        budget = int(_SHARE_OF_EXPLORING * most)
    whole = current_budget()
    seconds = in_time = np.inf
    n_timed = 0
    # What is read from a checkpoint must not depend on time.
    if whole is not None and np.isfinite(whole.seconds_left()) and estimator.checkpoint is None:
        n_timed = measure_pace(path, path.base.sample(16, stream.of("pace").generator()))
        seconds = _SHARE_OF_EXPLORING * whole.seconds_left()
        in_time = seconds / whole.pace
    if whole is not None and np.isfinite(whole.left()):
        most = int(whole.left())
        budget = min(budget, int(_SHARE_OF_EXPLORING * most))
    is_short_of_time = in_time < budget
    budget = int(min(budget, in_time))

    def run_of(cover, fresh, findings=None, n_drawn=0):
        order = np.arange(len(fresh.log_weights))
        return ExploredRun(
            ladder=TWO_LEVELS,
            sweeps={"chains": n_drawn, "exploration": n_timed + cover.n_evaluations},
            log_f_rounding=path.log_f_rounding,
            draws=Draws(fresh.points, fresh.log_weights, order).thinned(),
            findings=findings,
            cover=cover,
            forward=fresh.log_weights,
            explorers=fresh.explorers,
            log_own=fresh.log_own,
            tol=estimator.tol,
            is_short_of_time=is_short_of_time or target.spent > target.n_evaluations,
        )

    memory = None if whole is None else whole.memory
    cover = None if memory is None else memory.covers.get(seed)
    if whole is None or cover is None:
        target = Target(path, estimator._checkpoint(path, seed), seconds / max(budget, 1))
        try:
            cover = explore(path, budget, stream.of("exploring"), target)
        except BudgetSpent as spent:
            if spent.best is not None:
                note(run_of(spent.best, spent.best.fresh))
            raise
        report(lambda: f"explored by {cover.n_evaluations} evaluations {cover.not_over}")
    else:
        target = Target(path)
        whole.spend(cover.n_evaluations)  # as when it was found
    n_before = target.n_evaluations
    is_found = cover.is_over and cover.efficiency >= EFFICIENT
    if memory is not None and is_found:
        memory.covers[seed] = cover
    fresh = cover.fresh

    findings = None
    if estimator.checks:
        note(run_of(cover, fresh))
        findings = {"tails": _tails(path, cover, seed)}
        if most is not None:
            most -= findings["tails"].n_evaluations
    if is_found:
        n_draws = estimator.n_samples
        if most is not None:
            n_draws = min(n_draws, most - cover.n_evaluations)
        if n_draws > 50:  # fewer add nothing to those that exploring leaves
            fresh = _drawn(cover, target, n_draws, estimator.tol, stream.of("draws"))
    return run_of(cover, fresh, findings, target.n_evaluations - n_before)


def measure_pace(path: GeometricPath, points: Array) -> int:
    """Evaluate two halves of some points, the first of which may compile the function, so that the
    budget knows how long an evaluation takes; returns their number.
    """
    for half in np.array_split(np.asarray(points, dtype=np.float64), 2):
        evaluate_bisecting_failures(path.raw_log_density, half)
    return len(points)


def _drawn(cover: Cover, target: Target, most: int, tol: float | None, stream: Stream) -> Any:
    """New draws of the cover, up to `tol`, in blocks of one size: those for a larger `tol` are the
    first of those for a smaller one.

    Those by which exploring has decided that it is over tend to have even weights.
    """
    blocks: list[FreshDraws] = []
    n_drawn = 0
    n_wanted = n_block = len(cover.fresh.log_weights)
    while n_drawn < min(n_wanted, most):
        while n_drawn < min(n_wanted, most):
            n = (min(n_block, most - n_drawn) + 1) // 2
            rng = stream.at(len(blocks)).generator()
            blocks.append(draw_afresh(cover, target, n, rng))
            n_drawn += 2 * n
        drawn = FreshDraws._make(map(np.concatenate, zip(*blocks)))
        growth = _MOST_GROWTH
        if tol is not None:
            shape = pareto_shape(drawn.log_weights)
            error = stratified_error(drawn.log_weights, drawn.explorers)
            if error <= tol and shape <= largest_shape(n_drawn):
                break
            growth = float(np.clip(1.1 * (error / tol) ** 2, 1.5, _MOST_GROWTH))
        n_wanted = int(growth * n_drawn)
    return drawn


def _tails(path: GeometricPath, cover: Cover, seed: int) -> Tails:
    """Return what the check of tails finds of the target against the cover, and against the base
    where there is no cover yet, of which all the weight may be that of one point.
    """
    covered = copy.copy(path)
    if cover.is_over:
        covered.base = cover
        covered.grad_base = None
    covered, evaluations = covered.counted()
    stream = seeded(seed).of("tails")
    rng = stream.of("scouts").generator()
    chosen = systematic(cover.fresh.log_weights, 64, rng.random())
    points = cover.fresh.points[rng.permutation(chosen)]
    log_f = cover.fresh.log_weights + cover.log_density(cover.fresh.points)
    scouts = Scouts(points, float(log_f.max()), cover.nan_share)
    alarms = tail_alarms(covered, stream.key, scouts)
    return Tails(alarms=alarms, n_evaluations=evaluations.n, n_failed=evaluations.n_failed)
