"""AdaptiveSMC: particles that look for the target, and sequential Monte Carlo from a base that is
fitted to them.
"""

from __future__ import annotations

import copy
import functools
import itertools
import time
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from sklpf._utils.context import current_budget, note, report
from sklpf._utils.numbers import Array
from sklpf._utils.random import seeded
from sklpf._utils.tables import with_error
from sklpf._utils.validation import POSITIVE, at_least
from sklpf._utils.warnings import Alarm
from sklpf.exploration import smallest_basin
from sklpf.partition._base import SAMPLING, SamplingEstimator
from sklpf.partition._result import PartitionResult
from sklpf.partition.alarms import (
    is_imprecise,
    raised,
    threshold,
    tol_alarms,
)
from sklpf.partition.checks import Findings, MissedMass, Tails, Work
from sklpf.partition.checks.missed_mass import LEAST_MASS
from sklpf.partition.populations._smc import SMC, PopulationRun, drawn, reverse_ratios
from sklpf.paths import (
    Evaluations,
    GeometricPath,
    Mixture,
    Regions,
    defensive,
    fit_base,
    functions_for_climbs,
    highest_of_draws,
    require_base,
    require_own_density,
    respace,
)
from sklpf.programs import Learned, drift_between, learn
from sklpf.transitions import TunedTransition, default_move
from sklpf.uncertainty import log_mean_exp

_N_POPULATIONS = 10
_N_PARTICLES = 100  # of each, in the first round, and reverse chains
_LEVEL_GROWTH = 4  # times as many levels in the next round, where weights are too uneven
_QUIET_SEARCHES = 2  # one after the other, that find none
_SEARCHED = 0.6  # share of the budget that is spent when searches are over


@dataclass(frozen=True, repr=False, kw_only=True)
class LearnedRun(PopulationRun):
    """Last round of `AdaptiveSMC`: a `PopulationRun` from a fitted base.

    Attributes
    ----------
    n_learning_sweeps : int
        Of the particles that looked for the target.
    reached : float
        The inverse temperature where these stopped: 1, unless sweeps ran out.
    drift : float
        The largest difference of a mean or a variance at the target, in standard errors: of
        particles that looked for it between the first half of their time there and the second, and
        between the points to which the base was fitted and the populations that came from it.
    exploration_incomplete : bool
        Whether walks from the outermost particles still got further when they ended, or the last
        search for modes still found some that particles had missed.
    n_rounds : int
        Rounds of populations.
    n_climbs : int
        Points away from modes at which the first climbs began.
    tol : float
        The standard error that was asked for.
    """

    options = ("tol",)
    family = "adaptive"

    n_learning_sweeps: int = 0
    reached: float = 1.0
    drift: float = 0.0
    exploration_incomplete: bool = False
    n_rounds: int = 1
    n_climbs: int = 0
    tol: float = 0.1

    def search_alarms(self) -> tuple[Alarm, ...]:
        """Return what the particles that looked for the target say against it.

        Returns
        -------
        tuple of Alarm
        """
        if self.reached < 1:
            return (raised("search-not-over", "stopped", "stopped", beta=self.reached),)
        if self.drift > threshold("search-not-over", "most_drift"):
            return (raised("search-not-over", "spread", drift=self.drift),)
        return (raised("search-not-over", "found more"),) if self.exploration_incomplete else ()

    def _read(self) -> PartitionResult:
        result = super()._read()
        alarms = [
            *result.alarms,
            *self.search_alarms(),
            *tol_alarms(result.std_error, self.tol, self.family),
        ]
        diagnostics = {
            **result.diagnostics,
            "n_learning_sweeps": self.n_learning_sweeps,
            "drift": self.drift,
            "n_rounds": self.n_rounds,
            "smallest_basin": smallest_basin(self.n_climbs),
        }
        return replace(result, alarms=tuple(alarms), diagnostics=diagnostics)


@dataclass(eq=False, repr=False)
class AdaptiveSMC(SamplingEstimator):
    """Sequential Monte Carlo that adapts its temperatures, its moves and its base to the target.

    For a density on R^d whose base is far from it, such as a posterior in a wide prior, with or
    without a gradient. First particles look for the target: they rise from base draws by steps of
    beta that leave half of them effective, are resampled, and move until they have forgotten where
    they were, also by draws from a mixture that is fitted to them at each level. From this pass no
    estimate is taken. Then a mixture of t distributions is fitted to the particles. It is the base
    of `SMC`, whose ladder and moves a pilot fixes, so that each round's estimate of Z is unbiased.

    Parameters
    ----------
    n_particles : int, default=500
        Particles that look for the target, at least 20. A mode is lost once none of them is there,
        unless a climb finds it.
    tol : float, default=0.1
        Standard error of log Z in nats that ends the rounds of populations.
    max_sweeps : int, default=3_000_000
        Sweeps of all particles, and evaluations by searches, at most: no round begins that would
        take more. A sweep of `RandomWalk` evaluates the density once.
    transition : HMC, RandomWalk, Slice or None, default=None
        The move. None is `HMC`, or `RandomWalk` without a gradient, in units of the particles'
        covariance (within bounds, of their variances).
    checkpoint, checks, max_evaluations, max_seconds, random_state, n_jobs, verbose
        As in `AIS`. Particles that look for the target move in one task, but jobs share the
        evaluations of a density that takes long. ``checks=False`` leaves out their search for
        modes, too. Of a budget particles take two fifths, and searches a fifth.

    Attributes
    ----------
    log_partition_, log_partition_std_error_, log_partition_interval_, converged_, result_, run_
        As of `SMC`, of the last round: its levels lead from the fitted base.
        ``result_.diagnostics`` holds ``n_learning_sweeps`` of the particles that looked for the
        target, the ``drift`` of those to which the base was fitted, and ``n_rounds`` of populations
        beside the diagnostics of `SMC`.

    Raises
    ------
    TypeError
        If the path is no `GeometricPath`, or the transition none of the above.
    ValueError
        If hardly any of 200 base draws for each particle lies where the target has mass.

    Notes
    -----
    Where the target has mass at less than a tenth of the base draws, more are drawn, and particles
    begin at those with mass, repeated: at most 200 for each particle, which count as sweeps.

    At the target, random walks start from the outermost particles, with steps fitted to the part of
    a mixture where they are. While they get to larger weights, target over mixture, their places
    join those that the mixture is fitted to. Particles then forget eight times where they were; if
    a mean or a variance differs by 2.5 standard errors between the first half and the second, or
    walks still get further, all goes on with twice the time, at most for half of `max_sweeps`.
    Climbs from base draws and from particles of every level look for modes, then climbs from 1.5
    differences between points away from modes, until two searches find none without particles (four
    once one was found), or half of `max_sweeps` was spent; if the last one found some, the next
    round searches again. Gaussians at modes without particles become parts of the base. A twentieth
    of it is the path's own base, and three hundredths a Cauchy distribution, so that weights stay
    bounded far out.

    Each round has 10 populations. A round whose weights are too uneven is followed by one with four
    times as many levels; one whose error is above `tol`, by one with more particles. The base of a
    later round is fitted to the populations of the one before. Reverse chains begin at particles
    that have looked for the target. Not converged for the reasons of `SMC`; if `tol` is missed; if
    sweeps ran out before the target; if walks still get further, or climbs still find modes; or if
    the drift is above 5: that of the particles, or between what the base was fitted to and the last
    populations. In the latter case another round follows, whose base is fitted to these.

    Not seen are parts of the target that particles and climbs have both not found. Climbs begin at
    400 base draws (without a gradient fewer in more than 12 dimensions, at least 100), so that a
    mode whose basin holds a hundredth of the base is found, and one with a thousandth in one run of
    three: ``result_.diagnostics["smallest_basin"]`` is the share that is met in 95 % of runs.
    Others begin at the 16 heaviest of 20,000 draws of the fitted base (2e6 / d in more than 100
    dimensions), so that a narrow mode within a wide one, where a draw lies with probability 1e-4,
    is met with probability 0.86.

    References
    ----------
    Cappe, O., Guillin, A., Marin, J.-M. & Robert, C. P. (2004). Population Monte Carlo. Journal of
    Computational and Graphical Statistics 13.
    Del Moral, P., Doucet, A. & Jasra, A. (2012). An adaptive sequential Monte Carlo method for
    approximate Bayesian computation. Statistics and Computing 22.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf.interop import from_prior_transform
    >>> from sklpf.partition import AdaptiveSMC
    >>> path = from_prior_transform(  # widths of .001 in a prior from -1 to 1
    ...     lambda x: -np.sum(x**2) / 2e-6, lambda u: 2 * u - 1, 2
    ... )
    >>> smc = AdaptiveSMC(random_state=0).fit(path)
    >>> bool(abs(smc.log_partition_ - np.log(2 * np.pi * 1e-6 / 4)) < 0.1)
    True
    """

    n_particles: int = 500
    tol: float = 0.1
    max_sweeps: int = 3_000_000

    _parameter_constraints = {
        **SAMPLING,
        "n_particles": [at_least(20)],
        "tol": [POSITIVE],
        "max_sweeps": [at_least(1)],
    }

    _run_class = LearnedRun

    def _as_path(self, path):
        path = super()._as_path(path)
        require_own_density(path, "AdaptiveSMC")
        require_base(path, "AdaptiveSMC")
        path = copy.copy(path)
        path.base_is_ours = False  # a second try would begin with the same particles
        return path

    def _transition(self, path) -> TunedTransition:
        move: Any = self.transition
        if move is None:
            move = default_move(path).set_params(
                metric="diag" if path.bounds.has_sides else "dense"
            )
        if not isinstance(move, TunedTransition) or move.pilot is not None:
            raise TypeError(
                f"transition must be HMC, RandomWalk or Slice, not tuned yet, got {move!r:.80}"
            )
        move.check(path)
        return move

    def _run(self, path, seed) -> LearnedRun:
        self._look_from_base(path, seed)
        # a target without an integral has no place for particles
        counted, evaluations = path.counted()
        if self.checks:
            Tails.collect(Work(counted, seed))
        key = seeded(seed).of("learning").key
        checkpoint = self._checkpoint(path, seed)
        move = self._transition(path)
        learned = learn(path, move, self.n_particles, key, self.max_sweeps, checkpoint)
        rebased, run = self._rounds(path, move, learned, seed, counted, evaluations)
        return self._with_findings(rebased, seed, self._with_reading_options(run))

    def _search(
        self, path, starts: Array, known: Array, base: Mixture, seed, evaluations, before: Search
    ) -> Search:
        """Modes that climbs find, and those that earlier rounds have found.

        The first begin at the starts, others away from modes by differences of points, as in
        differential evolution, until two searches (four, once there was one) find no mode where
        none of the known points is. `path` counts its `evaluations`.
        """
        log_density, _ = functions_for_climbs(path.raw_log_density, None)
        rng = seeded(seed).of("climbs").of("mass").generator()
        # Among the highest are draws in a mode that is too narrow for a climb to meet.
        highest, log_mass = highest_of_draws(log_density, base, rng)
        path.climbs_from = np.concatenate([starts, highest])
        least = LEAST_MASS + log_mass
        most = evaluations.n + 0.5 * self.max_sweeps
        budget = current_budget()
        if budget is not None:
            left = max(_SEARCHED - budget.share, 0.0) * budget.most
            most = min(most, evaluations.n + left)
            path.most_search_evaluations = left
        found: list[Regions] = []
        lost = []
        n_quiet = 0
        wanted = _QUIET_SEARCHES
        n_starts = 60  # of a search after the first, doubled where one finds modes
        for i in range(20):  # each around what the one before has found
            stream = seeded(seed).of("climbs", i)
            regions = path.regions(stream)
            log_masses = log_mean_exp(regions.log_masses, axis=1)
            new = np.flatnonzero((log_masses > least) & ~regions.contain(known).any(axis=0))
            found.append(regions)
            n_quiet += 1
            if len(new):
                n_quiet = 0
                lost.append(regions.take(new.tolist()))
                wanted = 2 * _QUIET_SEARCHES
                n_starts = min(2 * n_starts, 500)
            line = "search {} for modes: {} that particles have missed".format
            report(functools.partial(line, i + 1, sum(map(_n_regions, lost))))
            is_late = budget is not None and budget.share > _SEARCHED
            if n_quiet == wanted or evaluations.n > most or is_late:
                break
            known = np.concatenate([known, regions.centres])
            centres = np.concatenate([known[:1], *(each.centres for each in found)])
            rng = stream.of("next search").generator()
            first, second = rng.choice(known, (2, n_starts))
            # Differences of points, half as long again, lead away from modes.
            path.climbs_from = rng.choice(centres, n_starts) + 1.5 * (first - second)
        return Search(before.regions or found[0], before.lost + lost, n_quiet < wanted)

    def _rounds(
        self, path, move, learned: Learned, seed, counted: GeometricPath, evaluations: Evaluations
    ) -> tuple[GeometricPath, LearnedRun]:
        """The path from a fitted base and the run on it: the first that is precise enough, or the
        last before one that would take too long.
        """
        rng = seeded(seed).of("fit").generator()
        points = learned.points
        n_effective = len(np.unique(points, axis=0)) / 2
        starts = points[-self.n_particles :][rng.permutation(self.n_particles)[:_N_PARTICLES]]
        n_sweeps = learned.n_sweeps
        n_particles = _N_PARTICLES
        levels_per_step = 2  # of the pilot
        search = Search(None, [], False)
        budget = current_budget()
        for n_rounds in itertools.count(1):
            fitted = points[rng.permutation(len(points))[:4000]]
            n_fitted = min(n_effective, len(fitted)) + len(learned.found) / 2
            base = fit_base(np.concatenate([fitted, learned.found]), n_fitted, path.bounds, rng)
            base = defensive(base, path.base, path.bounds)
            own_seed = seeded(seed).of("round", n_rounds).seed
            if self.checks and (n_rounds == 1 or search.exploration_incomplete):
                search = self._search(
                    counted, learned.climb_starts, points, base, own_seed, evaluations, search
                )
            rebased = _from_base(path, base, search.lost, points)
            n_before, began = (0, 0.0) if budget is None else (budget.n, budget.seconds)
            known, populations, n_levels = self._sample_populations(
                rebased, move, starts, own_seed, n_particles, levels_per_step
            )
            own_sweeps = known["sweeps"]
            known |= {
                "sweeps": own_sweeps | {"learning": n_sweeps},
                "findings": _findings(search, evaluations),
            }
            n_sweeps += sum(own_sweeps.values())
            learned_run = LearnedRun(
                **known,
                n_learning_sweeps=learned.n_sweeps,
                reached=learned.beta,
                drift=learned.drift,
                exploration_incomplete=learned.exploration_incomplete
                or search.exploration_incomplete,
                n_rounds=n_rounds,
                n_climbs=len(learned.climb_starts) if self.checks else 0,
                tol=self.tol,
            )
            effective = learned_run.read().diagnostics["effective_ancestors"]
            if effective >= 50:  # enough to fit a base to them
                new = rebased.position(drawn(rebased, populations, 2000, rng))
                effective = min(effective, float(len(new)))
                moved = drift_between(points[np.newaxis], new[np.newaxis], n_effective, effective)
                learned_run = replace(learned_run, drift=max(learned.drift, moved))
                points = new
                n_effective = effective
            result = learned_run.read()
            value = with_error(result.log_partition, result.std_error)
            report(functools.partial("round {}: log Z = {}".format, n_rounds, value))
            of_search = learned_run.search_alarms()
            causes = [alarm for alarm in result.alarms if alarm not in of_search]
            # A base that is fitted to what has moved would cover more.
            most_drift = threshold("search-not-over", "most_drift")
            is_settled = not learned.exploration_incomplete and learned.drift <= most_drift
            grows = is_settled and (learned_run.drift > most_drift or search.exploration_incomplete)
            if not causes and not grows:
                break
            n_moves = n_levels * n_particles * _N_POPULATIONS
            growth = 1.0
            note(replace(learned_run, log_f_rounding=path.log_f_rounding))
            if is_imprecise(causes):
                # A fifth more than the error asks for, as it is noisy itself.
                growth = min(1.2 * (result.std_error / self.tol) ** 2, 16.0)
                n_particles = int(np.ceil(growth * n_particles))
            elif causes:
                growth = float(_LEVEL_GROWTH)
                levels_per_step *= _LEVEL_GROWTH
            if n_sweeps + evaluations.n + growth * n_moves > self.max_sweeps:
                break
            if budget is not None:
                seconds = budget.seconds - began
                budget.require(growth * (budget.n - n_before), growth * seconds)
        return rebased, learned_run

    def _sample_populations(self, path, move, starts, seed, n_particles, levels_per_step):
        """The arrays of a run of `SMC` with reverse chains from some points, its particles, and its
        number of levels.
        """
        budget = current_budget()
        n_before = 0 if budget is None else budget.n
        began = time.time()
        tuned = move.tune(path, seeded(seed).of("tuning").key)
        n_steps = len(tuned.pilot.betas) - 1
        n_levels = 1 + levels_per_step * n_steps
        if budget is not None:
            a_move = np.array([budget.n - n_before, time.time() - began]) / tuned.pilot.n_moves
            n_moves = 0.8 * budget.affords(*a_move) / n_levels - len(starts)
            most = max(n_moves / _N_POPULATIONS, 10)
            n_particles = int(min(n_particles, most))
        smc = SMC(
            n_particles,
            n_levels,
            _N_POPULATIONS,
            ladder=respace(tuned.pilot.betas, np.ones(n_steps), n_levels),
            transition=tuned,
            checkpoint=self.checkpoint,
            random_state=seed,
            n_jobs=self.n_jobs,
        )
        run, plan, populations = smc._run_forward(path, seed)
        reverse = reverse_ratios(plan, path.at(starts), self.n_jobs)
        known = vars(run) | {
            "reverse": reverse,
            "sweeps": run.sweeps | {"pilot": tuned.pilot.n_moves, "reverse chains": reverse.size},
            "draws": smc._draws(plan.path, populations),
        }
        return known, populations, n_levels


def _n_regions(regions: Regions) -> int:
    return len(regions.radii)


class Search(NamedTuple):
    """Modes that climbs have found.

    Attributes
    ----------
    regions : Regions or None
        Around modes, of the first climbs.
    lost : list of Regions
        Those that hold no particle, of each search.
    exploration_incomplete : bool
        Whether the last climbs still found some of these.
    """

    regions: Regions | None
    lost: list[Regions]
    exploration_incomplete: bool


def _findings(search: Search, evaluations: Evaluations) -> Findings | None:
    """Findings of climbs, with the evaluations of all searches and of what came before."""
    if search.regions is None:
        return None
    missed_mass = MissedMass(
        regions=search.regions,
        n_evaluations=evaluations.n,
        n_failed=evaluations.n_failed,
    )
    return {"missed_mass": missed_mass}


def _from_base(path: GeometricPath, base: Mixture, lost: list[Regions], points: Array) -> Any:
    """The path from a fitted base, and from Gaussians at regions where hardly any of the points
    is.
    """
    path = path.from_mixture(base, "a mixture fitted to particles that looked for the target")
    if not lost:
        return path
    regions = Regions(*map(np.concatenate, zip(*lost)))
    empty = np.flatnonzero(regions.contain(points).sum(axis=0) < 20).tolist()
    return path.with_regions(regions.take(empty)) if empty else path
