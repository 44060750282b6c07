"""SMC: sequential Monte Carlo samplers, populations of particles that are resampled on their way
through the ladder.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sklpf._utils.context import note
from sklpf._utils.numbers import Array, Integers
from sklpf._utils.parallel import running
from sklpf._utils.random import seeded, systematic
from sklpf._utils.validation import Interval, at_least
from sklpf._utils.warnings import Alarm
from sklpf.partition._base import ANNEALING, SamplingEstimator
from sklpf.partition._result import PartitionResult, Run, move_diagnostics
from sklpf.partition.alarms import (
    modes_alarms,
    raised,
    threshold,
)
from sklpf.paths import require_base
from sklpf.programs import (
    FEWEST_REVERSE,
    SETTLING,
    Draws,
    Plan,
    ancestor_weights_of,
    anneal_populations,
    anneal_reverse,
    check_alive,
    draws_of,
    n_settling,
    settle,
    target_summaries,
)
from sklpf.uncertainty import (
    MOST_BETWEEN,
    between_groups,
    effective_sample_size,
    jackknife,
    log_mean_exp,
    mean_weight,
    population_seen_from_target,
)


@dataclass(frozen=True, repr=False, kw_only=True)
class PopulationRun(Run):
    """Record of G independent populations of N particles on a ladder of K levels.

    Attributes
    ----------
    log_means : ndarray of shape (G, K)
        Every population's log Z_k / Z_0; its exponential is unbiased.
    effective_sizes : ndarray of shape (G, K)
        Effective number of particles at every level, before they are resampled there; 0 if all
        weights are.
    resampled : ndarray of shape (G, K)
        1 where the particles were resampled.
    log_weights : ndarray of shape (G, N)
        Log of the weight of all descendants of each particle that started, -inf where there are
        none: their mean within a population is its estimate. Without resampling these are the
        weights of annealed importance sampling.
    summaries : ndarray of shape (G, 2, S)
        Weighted means of the path's summaries of the states at the target, and of their squares.
    reverse : ndarray of shape (n, K - 1)
        log f_(k+1) - log f_k of reverse chains, where they left level k + 1.
        None of them without checks.
    acceptance : ndarray or None
        Mean acceptance probability at every level but the first; None if no move is rejected.
    pilot : object or None
        Step sizes of the moves at some inverse temperatures, of moves that were tuned.
    """

    family = "population"

    log_means: Array
    effective_sizes: Array
    resampled: Integers
    log_weights: Array
    summaries: Array
    reverse: Array
    acceptance: Array | None = None
    pilot: Any = None

    def _read(self) -> PartitionResult:
        by_population = log_mean_exp(self.log_weights, axis=1)
        groups = mean_weight(by_population)
        ancestors = mean_weight(self.log_weights.ravel())
        log_partition = self.base_log_partition + groups.log_mean
        std_error = max(groups.std_error, ancestors.delta)
        alive = by_population > -np.inf
        n_populations, n_particles = self.log_weights.shape
        from_target: dict[str, float] = {}
        if len(self.reverse):
            variance = population_seen_from_target(
                self.reverse, self.resampled[alive], self.log_means[alive], n_particles
            )
            reverse = np.sqrt(variance / n_populations)
            std_error = max(std_error, np.sqrt((std_error**2 + reverse**2) / 2))
            from_target = {
                "effective_ancestors_from_target": n_populations / (variance + 1 / n_particles),
                "reverse_std_error": reverse,
            }
        curve, curve_error = jackknife(
            lambda keep: log_mean_exp(self.log_means[keep], axis=0), n_populations
        )
        means, squares = self.summaries[alive].swapaxes(0, 1)
        diagnostics = {
            "curve_std_error": curve_error,
            "log_partition_by_population": self.base_log_partition + by_population,
            "effective_sizes": self.effective_sizes,
            "n_resamplings": self.resampled.sum(axis=1),
            "ancestors": np.sum(self.log_weights > -np.inf, axis=1),
            "effective_ancestors": effective_sample_size(self.log_weights.ravel()),
            **from_target,
            "between_populations": (
                between_groups(means, squares, 1) if len(means) > 1 else np.nan
            ),
            "group_std_error": groups.std_error,
            "ancestor_std_error": ancestors.delta,
            "lower_bound": log_partition - np.log(20),
            **move_diagnostics(self),
        }
        return self.conclude(
            log_partition,
            std_error,
            n_populations - 1,
            alarms=_alarms(self, diagnostics),
            diagnostics=diagnostics,
            levels=self.base_log_partition + curve,
        )


@dataclass(eq=False, repr=False)
class SMC(SamplingEstimator):
    """Sequential Monte Carlo sampler (Del Moral, Doucet & Jasra 2006).

    Independent populations of particles start at exact base draws. At every level each particle's
    weight is multiplied by the ratio f_(k+1)(x) / f_k(x). If the weights have become uneven, the
    population is resampled in proportion to them (systematic resampling). Then each particle moves.
    The product of a population's mean weights is unbiased for Z / Z_0 on a fixed ladder. Without
    resampling this is `AIS`.

    Parameters
    ----------
    n_particles : int, default=100
        Particles N of every population.
    n_temperatures : int, default=100
        Levels K of the ladder, base and target included: each particle makes K - 1 sweeps.
    n_populations : int, default=10
        Independent populations G, at least 2. The error bar is the spread between them.
    ladder : str or array-like, default="adaptive"
        "linear", "power", "sigmoid", "salakhutdinov-murray" or "adaptive", or inverse temperatures.
        As in `AIS`: "adaptive" is placed by a pilot and then frozen, so that estimates stay
        unbiased.
    resample_at : float, default=0.5
        A population is resampled if its effective number of particles is below this share of N:
        with 0 never, with 1 at nearly every level.
    transition, checkpoint, checks, max_evaluations, max_seconds, random_state, n_jobs, verbose
        As in `AIS`.

    Attributes
    ----------
    log_partition_, log_partition_std_error_, log_partition_interval_, converged_, result_, run_
        See `PartitionEstimator`. The estimate is the log of the mean of the populations' estimates,
        and the interval uses Student t with G - 1 degrees of freedom. ``result_.diagnostics`` holds
        ``log_partition_by_population`` (G,); ``curve_std_error`` (K,), by the jackknife, of
        ``result_.log_partition_curve``; ``effective_sizes`` (G, K), of the particles at every level
        before they are resampled; ``n_resamplings`` and ``ancestors`` (G,), how often particles
        were resampled, and how many of those that started have descendants at the target;
        ``effective_ancestors``, the effective number of ancestors, and
        ``effective_ancestors_from_target``, that by the reverse chains; ``between_populations``,
        the share of the target states' variance that lies between populations; the standard errors
        ``group_std_error``, ``ancestor_std_error`` and ``reverse_std_error``; ``acceptance`` and
        ``step_sizes`` of moves that have them; ``lower_bound``: log Z is below it with probability
        at most 5 %, even if the particles have missed modes; and ``plain_bound`` where the path has
        one.

    Notes
    -----
    The standard error is the larger of two: that of the mean of G estimates, and that of the mean
    of G N weights, each the weight of all descendants of one particle that started (Lee & Whiteley
    2018). Neither shows weights that the run has missed. Therefore N particles (at least 10), drawn
    by weight, make K / 4 sweeps at the target (at least 100) and then move down the ladder as
    reverse chains. Their ratios show how the estimate of a population that held them would vary. If
    that variance is larger, the mean of the two is taken.

    Not converged if the effective number of ancestors is below 100 (two thirds of all particles if
    that is less), or below half of that by the reverse chains; if more than a tenth of the variance
    of the states at the target (``path.summary``), or 2 / N if that is more, lies between
    populations, which then are in different modes; or if the estimate is below the path's lower
    bound of log Z that does not depend on its base (`bound_draws`). A mode that no population has
    entered raises an alarm only if the path knows the mass there (`regions`).

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import SMC, BernoulliRBM
    >>> rng = np.random.default_rng(0)
    >>> weights = rng.normal(size=(4, 6))
    >>> rbm = BernoulliRBM.from_parameters(weights, np.zeros(6), np.zeros(4))
    >>> smc = SMC(random_state=0).fit(rbm)
    >>> bool(smc.log_partition_std_error_ < 0.05)
    True
    """

    n_particles: int = 100
    n_temperatures: int = 100
    n_populations: int = 10
    _: KW_ONLY
    ladder: str | ArrayLike = "adaptive"
    resample_at: float = 0.5

    _parameter_constraints = {
        **ANNEALING,
        "n_particles": [at_least(2)],
        "n_populations": [at_least(2)],
        "resample_at": [Interval(Real, 0, 1, closed="both")],
    }

    _run_class = PopulationRun
    _shortens_ladder = True

    def _sample(self, path, seed) -> PopulationRun:
        run, plan, populations = self._run_forward(path, seed)
        run = replace(run, draws=self._draws(plan.path, populations))
        if not self.checks:
            return run
        note(run)
        checkpoint = self._checkpoint(path, seed)
        n_moves = len(plan.path.ladder) - 1
        n_reverse = max(FEWEST_REVERSE, self.n_particles)
        rng = seeded(seed).of("reverse", "starts").generator()
        starts = drawn(plan.path, populations, n_reverse, rng)
        reverse = reverse_ratios(plan, starts, self.n_jobs, checkpoint, settles=True)
        return replace(
            run,
            reverse=reverse,
            sweeps=run.sweeps | {"reverse chains": n_reverse * (n_settling(n_moves) + n_moves)},
        )

    @running()
    def sample(self, path, n: int, rng: np.random.Generator) -> Any:
        """Return a state of n chains, drawn from the populations of a run on `path` in proportion
        to their weights.

        They make 100 sweeps at the target after that. Draws are as good as the run: approximate,
        and not independent.
        """
        plan, populations = self._run_forward(path, int(rng.integers(2**31)))[1:]
        plan = plan._replace(seed=int(rng.integers(2**31)))
        return settle(plan, drawn(plan.path, populations, n, rng), SETTLING, "draws", self.n_jobs)

    def _draws(self, path, populations) -> Draws | None:
        if not self._keeps_draws:
            return None
        groups = np.repeat(np.arange(self.n_populations), self.n_particles)
        return draws_of(path, populations.state, log_weights_of(populations), groups)

    def _run_forward(self, path, seed):
        base_log_partition = require_base(path, "SMC")
        checkpoint = self._checkpoint(path, seed)
        plan = self._plan(path, seed, self.n_particles)
        size = self.n_populations, self.n_particles, self.resample_at
        populations = anneal_populations(plan, *size, self.n_jobs, checkpoint)
        log_weights = ancestor_weights_of(populations)
        check_alive(log_weights.ravel())
        records = populations.records
        n_moves = self.n_particles * (len(plan.path.ladder) - 1) * self.n_populations
        run = PopulationRun(
            ladder=plan.path.ladder,
            base_log_partition=base_log_partition,
            log_means=_from_base(records[..., 0], 0),
            effective_sizes=_from_base(records[..., 1], self.n_particles),
            resampled=_from_base(records[..., 2], 0).astype(np.int64),
            log_weights=log_weights,
            summaries=target_summaries(path, populations),
            reverse=np.empty((0, len(plan.path.ladder) - 1)),
            acceptance=populations.acceptance,
            pilot=plan.transition.pilot,
            sweeps={"chains": n_moves, "pilot": plan.n_sweeps},
        )
        return run, plan, populations


def reverse_ratios(plan: Plan, starts, n_jobs=None, checkpoint=None, settles=False) -> Array:
    """log f_(k+1) - log f_k (n, K - 1) of reverse chains from some states; as `PopulationRun` keeps
    them.
    """
    steps = anneal_reverse([plan], [starts], 1, "reverse", n_jobs, checkpoint, settles, True)
    return -steps[0][:, ::-1]


def drawn(path, populations, n: int, rng: np.random.Generator) -> Any:
    """The state of n particles of all populations, drawn by weight."""
    chosen = rng.permutation(systematic(log_weights_of(populations), n, rng.random()))
    return path.take(populations.state, chosen)


def log_weights_of(populations) -> Array:
    """Log weights of all particles at the target, one population after the other."""
    return (populations.log_mean[:, np.newaxis] + populations.log_weights).ravel()


def _from_base(records, first: float):
    """Numbers of every population at the levels above the base (G, K - 1), with those of the base
    before them.
    """
    return np.pad(records, ((0, 0), (1, 0)), constant_values=first)


def _alarms(run, diagnostics) -> list[Alarm]:
    n_all = run.log_weights.size
    share = threshold("few-effective", "ancestor_share")
    needed = min(threshold("few-effective", "ancestors"), share * n_all)
    here = diagnostics["effective_ancestors"]
    there = diagnostics.get("effective_ancestors_from_target", np.inf)
    alarms = []
    if here < needed:
        alarms.append(
            raised("few-effective", "ancestors", run.family, here=here, n=n_all, needed=needed)
        )
    elif there < needed / 2:
        needed = needed / 2
        alarms.append(
            raised(
                "few-effective",
                "ancestors from target",
                run.family,
                there=there,
                n=n_all,
                needed=needed,
            )
        )
    between = diagnostics["between_populations"]
    independent = threshold("not-mixed", "times_independent") / run.log_weights.shape[1]
    most = max(MOST_BETWEEN, independent)
    alarms += modes_alarms("populations", between, run.family, most)
    return alarms
