"""AIS: annealed importance sampling; its run, of chains from the base to the target and of reverse
chains from there, which HAIS and ImportanceSampling leave too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from sklpf._utils.context import note
from sklpf._utils.numbers import Array
from sklpf._utils.random import systematic
from sklpf._utils.validation import POSITIVE, at_least
from sklpf.partition._base import ANNEALING, SamplingEstimator
from sklpf.partition._result import (
    PartitionResult,
    RunInRounds,
    move_diagnostics,
    weight_diagnostics,
)
from sklpf.partition.alarms import (
    misses_tol,
    raised,
    weight_alarms,
)
from sklpf.partition.checks.missed_mass import with_missed_mass
from sklpf.paths import require_base
from sklpf.programs import (
    FEWEST_REVERSE,
    Arrivals,
    Plan,
    anneal_forward,
    anneal_reverse,
    check_alive,
    draws_of,
    enough_levels,
    n_settling,
)
from sklpf.transitions import HMC, Transition
from sklpf.uncertainty import mean_weight, seen_from_target

if TYPE_CHECKING:
    from sklpf.partition._base import PartitionEstimator
    from sklpf.partition.weights._independent import ImportanceSampling


@dataclass(frozen=True, repr=False, kw_only=True)
class AnnealingRun(RunInRounds):
    """Log weights of independent forward chains, and of reverse chains.

    Attributes
    ----------
    forward : ndarray of shape (n,)
        Log weights of chains from the base to the target: the mean weight is unbiased for Z / Z_0.
    reverse : ndarray of shape (n_starts, 1) or None
        Log weights of reverse chains, from where forward chains arrived, drawn by weight; none with
        ``checks=False``. None where the path has no moves: the estimate is then a lower bound.
    acceptance : ndarray or None
        Mean acceptance probability of the forward chains at every level but the first, as a mean
        over each segment of their way; None if no move is rejected.
    pilot : object or None
        Step sizes of the moves at some inverse temperatures, of moves that were tuned.
    history : ndarray of shape (R, 3)
        log Z in nats, its standard error and the sweeps of all chains after each pilot.
    n_temperatures : int or None
    tol : float or None
        As in `HAIS`.
    """

    options: ClassVar[tuple[str, ...]] = ("n_temperatures", "tol")
    family = "annealing"

    forward: Array
    reverse: Array | None = None
    acceptance: Array | None = None
    pilot: Any = None
    n_temperatures: int | None = None
    tol: float | None = None

    def _read(self) -> PartitionResult:
        """log Z by the mean weight, with an error that the reverse chains may raise."""
        n = len(self.forward)
        estimate = mean_weight(self.forward)
        alive = float(np.mean(self.forward > -np.inf))
        log_partition = self.base_log_partition + estimate.log_mean
        std_error = estimate.delta
        from_target: dict[str, float] = {}
        if self.reverse is not None and len(self.reverse):
            seen = seen_from_target(-np.ravel(self.reverse), estimate.log_mean, alive)
            reverse = np.sqrt(seen.variance / n)
            std_error = max(std_error, np.sqrt((std_error**2 + reverse**2) / 2))
            from_target = {
                "effective_sample_size_from_target": n * seen.share,
                "reverse_std_error": reverse,
            }
        std_error = with_missed_mass(self, log_partition, std_error)
        diagnostics = {
            **weight_diagnostics(self.forward),
            **from_target,
            "delta_std_error": estimate.delta,
            "jackknife_std_error": estimate.jackknife,
            "lower_bound": log_partition - np.log(20),
            **move_diagnostics(self),
        }
        if len(self.history):
            diagnostics |= self._rounds(log_partition, std_error)
        n_levels = len(self.ladder)
        alarms = weight_alarms(n, diagnostics, self.family)
        if misses_tol(std_error, self.tol):
            # With fewer levels than it may have the pilot asked for no more.
            has_most = n_levels >= (self.n_temperatures or 0)
            more = "levels" if has_most else "chains"
            missed = raised("tol-missed", "most levels", more, error=std_error, n=n_levels)
            alarms.insert(0, missed)
        return self.conclude(
            log_partition,
            std_error,
            n - 1,
            alarms=alarms,
            diagnostics=diagnostics,
            statement="lower bound" if self.reverse is None else "estimate",
        )


@dataclass(eq=False, repr=False)
class AIS(SamplingEstimator):
    """Annealed importance sampling (Neal 2001; Carlson et al. 2016, eq. 23).

    Chains start at exact base draws and move up the ladder. The weight of a chain is the product of
    the ratios f_(k+1)(x) / f_k(x) on its way. The mean weight is unbiased for Z / Z_0, so the log
    of the mean bounds log Z from below in expectation.

    Parameters
    ----------
    n_chains : int, default=100
        Independent chains M.
    n_temperatures : int, default=1000
        Levels K of the ladder, base and target included: each chain makes K - 1 sweeps.
    ladder : str or array-like, default="linear"
        "linear", "power", "sigmoid", "salakhutdinov-murray" or "adaptive", or an array of inverse
        temperatures from 0 to 1. "adaptive" measures the spread of log f_(k+1) - log f_k in a pilot
        of 5 % of the sweeps, and places the levels at equal cumulative spread. The ladder is then
        fixed, so that weights stay unbiased.
    transition : Transition or None, default=None
        The move at each level. None is the path's Gibbs sweep; on R^d it is `HMC`, or without
        gradients `RandomWalk`.
    checkpoint : str, path-like or None, default=None
        Directory that keeps finished segments. An interrupted run continues from there, with the
        same bits.
    checks : bool, default=True
        Whether to look for what the run itself can't show: tails of the base that are too light, a
        target without an integral, a lower bound of log Z above the estimate, regions of the target
        that it has missed; and reverse chains (see Notes). False makes M (K - 1) sweeps and no
        more; the result then says that it was not checked, a target without an integral gets a
        finite log Z, and large weights that no chain has met raise neither alarm nor error.
    max_evaluations : int or None, default=None
        Evaluations of the density (and of its gradient) at points, at most, with pilot, reverse
        chains and checks, of a density of the user's on R^d: others don't count them. Where they
        are not enough for all levels there are fewer; where they are spent all the same the best
        number until then is the result, which is not trusted and says how many more were needed.
    max_seconds : float or None, default=None
        The same of wall time; a compiled run looks at the clock after each segment.
    random_state : int, RandomState or None, default=None
        Seed of the chains.
    n_jobs : int or None, default=None
        Number of blocks of chains that run in parallel, in threads. It changes no number.
    verbose : int, default=0
        Whether `fit` reports its progress: a line after each round, or within a long one at most
        once a second, by the logger "sklpf" at level INFO, printed where logging would not show it.

    Attributes
    ----------
    log_partition_, log_partition_std_error_, log_partition_interval_, converged_, result_, run_
        See `PartitionEstimator`. The interval uses Student t with M - 1 degrees of freedom.
        ``result_.diagnostics`` holds ``log_weights`` (M,), ``effective_sample_size``,
        ``effective_sample_size_from_target``, ``pareto_shape``, the standard errors
        ``delta_std_error``, ``jackknife_std_error`` and ``reverse_std_error``, ``lower_bound``: log
        Z is below it with probability at most 5 %, even if the chains have missed modes; and
        ``plain_bound`` where the path has one.

    Notes
    -----
    The weights of a run can't show large weights that it has missed: runs whose weights pass every
    test tend to be low. Therefore reverse chains are run too, a quarter as many (at least 10), or
    up to a hundred where their log weights have a standard deviation above 0.5. They start from
    forward chains drawn in proportion to their weights, make K / 4 sweeps at the target (at least
    100), and then move down the ladder. Their weights w' occur in proportion to their size, E w' /
    Z = E w^2 / Z^2, so that large ones are found first. The variance is the mean of the forward
    chains' and of E w' E 1 / w' - 1, or the forward chains' own if that is larger.

    Not converged if the effective sample size of either direction is below 25, or M / 4 if that is
    less, or 5; or if the estimate is below the path's lower bound of log Z that does not depend on
    its base (`bound_draws`). Where the path knows the mass of regions (`regions`), ten reverse
    chains start in each of the two (or M / 40) of which the run's draws lack most, more than .015
    of Z. The standard error holds what these add to the variance, at most what is lacking, and an
    alarm names the region where with them the effective sample size would be too small. A mode that
    the path does not know raises no alarm. See also `RAISE`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import AIS, BernoulliRBM
    >>> rng = np.random.default_rng(0)
    >>> weights = rng.normal(size=(4, 6))
    >>> rbm = BernoulliRBM.from_parameters(weights, np.zeros(6), np.zeros(4))
    >>> ais = AIS(random_state=0).fit(rbm)
    >>> bool(ais.log_partition_std_error_ < 0.05)
    True
    """

    n_chains: int = 100
    n_temperatures: int = 1000
    _: KW_ONLY
    ladder: str | ArrayLike = "linear"

    _parameter_constraints = {**ANNEALING, "n_chains": [at_least(2)]}

    _run_class: ClassVar[type[AnnealingRun]] = AnnealingRun
    _shortens_ladder = True

    def _sample_rows(self, paths, seeds) -> list[AnnealingRun]:
        return annealing_runs(self, paths, self.n_chains, seeds)

    def _move_from_target(self, path, run) -> Transition:
        move: Any = self._transition(path)
        return move if run.pilot is None else move.with_pilot(run.pilot)


def annealing_runs(
    estimator: AIS | ImportanceSampling,
    paths: Sequence[Any],
    n: int,
    seeds: Sequence[int],
    *,
    most_reverse: int = 100,  # chains, where their log weights differ more
) -> list[AnnealingRun]:
    """A run on the path of every row: n chains from the base, and with checks reverse chains from
    where these ended.
    """
    n_reverse = min(n, max(FEWEST_REVERSE, n // 4))
    n_more = min(n, most_reverse) - n_reverse

    def run_of(plan, forward, reverse):
        draws = None
        if estimator._keeps_draws:
            draws = draws_of(plan.path, forward.state, forward.log_weights, np.arange(n))
        return estimator._run_class(
            draws=draws,
            history=plan.history + [plan.path.base_log_partition, 0.0, 0.0],
            acceptance=forward.acceptance,
            pilot=plan.transition.pilot,
            **fields_of_run(plan, forward, reverse, True),
        )

    def starts(plan, forward):
        note(run_of(plan, forward, np.empty((0, 1))))
        return _ends_by_weight(plan, forward, n_reverse, "reverse")

    reverse_starts = starts if estimator.checks else None
    plans, arrivals, reverses = anneal_both_ways(estimator, paths, n, seeds, reverse_starts, True)
    # Few reverse chains whose log weights differ much show no rare ones.
    wide = [
        t for t, reverse in enumerate(reverses) if n_more and reverse.size and reverse.std() > 0.5
    ]
    if wide:
        chosen = [plans[t] for t in wide]
        states = [_ends_by_weight(plans[t], arrivals[t], n_more, "more reverse") for t in wide]
        more = anneal_reverse(chosen, states, 1, "more reverse", estimator.n_jobs, settles=True)
        for t, further in zip(wide, more):
            reverses[t] = np.concatenate([reverses[t], further])
    return [run_of(*each) for each in zip(plans, arrivals, reverses)]


def anneal_both_ways(
    estimator: PartitionEstimator,
    paths: Sequence[Any],
    n: int,
    seeds: Sequence[int],
    starts: Callable[[Plan, Arrivals], Any] | None,
    settles: bool,
) -> tuple[list[Plan], list[Arrivals], list[Array]]:
    """Anneal n forward chains of every row, and then reverse chains from the states that
    starts(plan, arrived) gives, none without `starts`.

    Returns every row's plan, its forward chains, and the log weights of its reverse chains.
    """
    require_base(paths[0], type(estimator).__name__)
    options = estimator.n_jobs, estimator._checkpoint(paths[0], seeds[0])
    plans = estimator._plans(paths, seeds, n)
    arrivals = anneal_forward(plans, n, "forward", *options)
    if starts is None:
        return plans, arrivals, [np.empty((0, 1)) for _ in plans]
    states = [starts(plan, forward) for plan, forward in zip(plans, arrivals)]
    return plans, arrivals, anneal_reverse(plans, states, 1, "reverse", *options, settles)


def fields_of_run(plan: Plan, forward: Arrivals, reverse: Array, settles: bool) -> dict[str, Any]:
    """Shared fields of runs of chains that were annealed both ways."""
    n_moves = len(plan.path.ladder) - 1
    n_reverse = n_moves + (n_settling(n_moves) if settles else 0)
    return {
        "ladder": plan.path.ladder,
        "base_log_partition": plan.path.base_log_partition,
        "sweeps": {
            "chains": len(forward.log_weights) * n_moves,
            "pilot": plan.n_sweeps,
            "reverse chains": len(reverse) * n_reverse,
        },
        "forward": forward.log_weights,
        "reverse": reverse,
    }


def _ends_by_weight(plan, forward, n, stream):
    """The state of n forward chains where they ended, drawn in proportion to their weights
    (systematic resampling).

    A chain that was left behind in a tail has hardly any weight, and is no draw from the target.
    """
    check_alive(forward.log_weights)
    uniform = plan.stream(stream, "starts").generator().random()
    return plan.path.take(forward.state, systematic(forward.log_weights, n, uniform))


@dataclass(eq=False, repr=False, kw_only=True)
class HAIS(AIS):
    """Hamiltonian annealed importance sampling (Sohl-Dickstein & Culpepper 2012, eq. 17 to 25), for
    densities on R^d.

    `AIS` whose chains move by `HMC`. Velocities are kept from level to level and partly refreshed,
    so that chains move in long trajectories instead of a random walk. Paths need gradients, as
    `GeometricPath` may have.

    With a log Z for each row, moves are tuned once, on a row that the model simulates, if it can.
    So no row's numbers depend on the others.

    Parameters
    ----------
    n_chains : int, default=100
        Independent chains M.
    n_temperatures : int, default=1000
        Levels K of the ladder, base and target included: each chain makes K - 1 moves. With `tol`
        the largest number of levels.
    ladder : str or array-like, default="adaptive"
        "linear", "power", "sigmoid", "salakhutdinov-murray" or "adaptive", or an array of inverse
        temperatures from 0 to 1. "adaptive" places the levels at equal cumulative standard
        deviation of log f_1 - log f_0, as measured by the pilot that tunes the moves.
    transition : Transition or None, default=None
        The move at each level; None is ``HMC()``.
    tol : float or None, default=None
        Target standard error in nats. Pilot chains, which never enter the estimate, then find how
        many levels it needs, separately for each row, and the ladder is thinned to these.
    checkpoint, checks, max_evaluations, max_seconds, random_state, n_jobs, verbose
        As in `AIS`.

    Attributes
    ----------
    log_partition_, log_partition_std_error_, log_partition_interval_, converged_, result_, run_
        As in `AIS`. ``result_.diagnostics`` also holds ``acceptance`` and ``step_sizes`` (K,): at
        every level the mean acceptance probability of its segment of at most 100 moves, and the
        step size in units of the metric.

    Notes
    -----
    Not converged if `AIS` would not be, or if `tol` is missed. With rows, also if a move that was
    tuned on another row is accepted too rarely (below 0.4 on average over 100 moves, for a target
    of 0.8) or too often (above 0.98).

    Raises
    ------
    TypeError
        If the path has no gradients, which `HMC` needs.

    References
    ----------
    Sohl-Dickstein, J. & Culpepper, B. J. (2012). Hamiltonian annealed importance sampling for
    partition function estimation. arXiv:1205.1925.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import HAIS, Gaussian, GeometricPath
    >>> log_f, slope = lambda x: -np.sum(x**4, axis=1), lambda x: -4 * x**3
    >>> base = Gaussian(np.zeros(5), 1.0)
    >>> path = GeometricPath(log_f, grad=slope, base=base)
    >>> hais = HAIS(n_temperatures=200, random_state=0).fit(path)
    >>> bool(hais.log_partition_std_error_ < 0.05)
    True
    """

    ladder: str | ArrayLike = "adaptive"
    tol: float | None = None

    _parameter_constraints = {
        **AIS._parameter_constraints,
        "tol": [POSITIVE, None],
    }

    def _move(self, path) -> Transition:
        return HMC() if self.transition is None else self.transition

    def _plans(self, paths, seeds, n_chains) -> list[Plan]:
        plans = super()._plans(paths, seeds, n_chains)
        if self.tol is None:
            return plans
        return enough_levels(plans, n_chains, self.tol, self.n_jobs)
