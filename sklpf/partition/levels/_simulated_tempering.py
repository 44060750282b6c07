"""Simulated tempering, where chains walk up and down the ladder: what RTS, SAMS and WangLandau
share, and what their rounds leave, with the estimate, its errors and the alarms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax
from scipy.stats import t as student_t

from sklpf._utils.context import note, round_done
from sklpf._utils.numbers import Array, Integers
from sklpf._utils.random import Stream, seeded
from sklpf._utils.sklearn import StrOptions
from sklpf._utils.validation import POSITIVE, Interval, as_float64, at_least
from sklpf._utils.warnings import Alarm
from sklpf.partition._base import ANNEALING, SamplingEstimator
from sklpf.partition._result import PartitionResult, weight_diagnostics
from sklpf.partition.alarms import (
    halves_alarms,
    modes_alarms,
    raised,
    threshold,
    tol_alarms,
    weight_alarms,
)
from sklpf.partition.levels._run import Curve, LevelRun, bar_curve, between_by_slope, mbar_of
from sklpf.paths import require_base
from sklpf.programs import (
    NO_ROUNDS,
    Chains,
    Setup,
    TemperingRound,
    check_alive,
    check_finite,
    first_pass,
    log_ratio,
    pool_groups,
    run_round,
    with_round,
)
from sklpf.reweighting import (
    Pooled,
    bias,
    influence,
    neighbour_overlap,
    rts_curve,
    with_first_error,
    with_first_ratio,
)
from sklpf.uncertainty import (
    Difference,
    MeanWeight,
    between_groups,
    difference,
    effective_sample_size,
    jackknife,
    mean_weight,
    standard_error,
    t_bound,
    t_ratio,
)

if TYPE_CHECKING:
    from sklpf.partition.levels._rts import ContinuousRun

N_GROUPS = 10
ALL = np.arange(N_GROUPS)
TOLERANCE = 0.1  # nats that log Z_k may move in a round, and the paper's bound on K |r_k - c_k|
_LOG_EXTRA_COUNT = np.log(0.1)  # what the paper adds to counts that are not Rao-Blackwellised

UPDATES = ("n_draws", "gain", "evenness", "log_partition")  # numbers of each
PRIOR: list[Any] = [
    StrOptions({"uniform"}),
    Interval(Real, None, None, closed="neither"),
    "array-like",
]
_MAX_VECTORS = 5_000
_LOOK = 1000  # base draws that show whether it has such points


@dataclass(frozen=True, repr=False, kw_only=True)
class TemperingRun(LevelRun):
    """Rounds of simulated tempering after burn-in.

    Reweighting reads the last round, which is half of the production or all of it.

    Attributes
    ----------
    rounds : tuple of TemperingRound
    previous : Pooled
        The estimate that the last round began with.
    sweeps_per_redraw : int
    rao_blackwell : bool
    tol : float or None
        As in `RTS`.
    """

    options = ("rao_blackwell", "tol")
    family = "tempering"
    draws_levels = True

    rounds: tuple[TemperingRound, ...]
    previous: Pooled
    sweeps_per_redraw: int
    rao_blackwell: bool = True
    tol: float | None = None

    @property
    def last(self) -> TemperingRound:
        """The last round."""
        return self.rounds[-1]

    def curve(self) -> Curve:
        """Return log Z_k - log Z_0 by the averages of q(k | x), or by counts."""
        return self._pooled()[2]

    def _pooled(
        self,
        *,
        rounding: float = 1e-12,  # nats: of an error that is 0, as where the base is the target
    ) -> tuple[list[TemperingRound], NDArray, Pooled]:
        """The rounds whose chains crossed the ladder, or else the last one, every chain's shares in
        each, and the estimate from all of them.
        """
        enough = threshold("not-mixed", "crossed")
        used = [r for r in self.rounds if r.crossed.mean() >= enough] or [self.last]
        shares = np.array([r.shares(self.rao_blackwell) for r in used])
        sizes = [1.0]
        if len(used) > 1:
            origin = self.previous.origin
            errors = [
                standard_error(_own_influence(r, own, origin)) for r, own in zip(used, shares)
            ]
            sizes = [max(error, rounding) ** -2 for error in errors]
        return used, shares, self._pool(used, sizes)

    def _pool(self, rounds, sizes=(1.0,), halves=(0, 1)) -> Pooled:
        return pool_rounds(rounds, self.rao_blackwell, sizes, halves, self.previous.first_ratio)

    def _read(self) -> PartitionResult:
        """The estimate of all rounds whose chains crossed the ladder, and tests of the last."""
        last = self.last
        used, shares, pooled = self._pooled()
        origin = pooled.origin
        chain_error = standard_error(
            influence(pooled.log_pseudo_prior, shares, pooled.sizes, pooled(ALL), -1, origin)
        )
        mbar_curve = mbar_of([r.samples(self.ladder) for r in used], pooled(ALL))

        def by_mbar(keep):
            return with_first_ratio(mbar_curve(keep), self.first_ratio)[-1]

        from_mbar = difference(lambda keep: pooled(keep)[-1] - by_mbar(keep), N_GROUPS)
        by_bar, bar_errors = jackknife(bar_curve(self), N_GROUPS)
        by_place = between_target_states(
            last.summaries, pool_groups(last.first, last.log_sums(True))[:, -1]
        )
        alarms = []
        if not shares[:, :, [origin, -1]].any(axis=(0, 1)).all():
            alarms.append(raised("few-states", "ends"))
        return concluded(
            self,
            pooled,
            self._pool([last]),
            chain_error=chain_error,
            first=last.first,
            crossed=last.crossed,
            between=np.maximum(by_place, between_by_slope(last.level_sums)),
            drift=self._drift(),
            other=from_mbar,
            by="MBAR",
            alarms=alarms,
            diagnostics={
                "bias": bias(shares[-1], origin),
                "shares": np.exp(pooled.log_shares(ALL)[-1]),
                "overlap": neighbour_overlap(*last.pairs()),
                "effective_draws": _effective_draws(last, shares[-1], origin),
                "mbar_log_partition": by_mbar(ALL),
                "mbar_t": from_mbar.t,
                "bar_log_partition": by_bar[-1],
                "bar_std_error": with_first_error(bar_errors, self.first_ratio)[-1],
                "n_rounds": len(self.rounds),
            },
        )

    def _drift(self) -> Difference:
        """Second half minus first half of the last round."""
        first, second = (self._pool([self.last], halves=(half,)) for half in (0, 1))
        value, jackknifed = _difference(second, first)
        of_first, of_second = (
            _own_influence(
                self.last, self.last.shares(self.rao_blackwell, halves=(half,)), first.origin
            )
            for half in (0, 1)
        )
        error = max(jackknifed[-1], standard_error(of_second - of_first))
        return Difference(float(value[-1]), t_ratio(value[-1], error))


@dataclass(frozen=True, repr=False, kw_only=True)
class AdaptedRun(TemperingRun):
    """Rounds of simulated tempering with weights that an adaptive phase has found.

    Attributes
    ----------
    frozen : ndarray of shape (K,)
        The estimates log Z_k - log Z_0 that were frozen.
    updates : dict
        Of each update of the weights, arrays of shape (n_updates,): "n_draws", draws of a level by
        all chains together, its own included; "gain", the factor of (share of visits) / r_k;
        "evenness" of the visits that the rule looked at, of which 1 is perfect; and
        "log_partition", log Z_target - log Z_base after it.
    settled : bool
        Whether the gain has begun to fall as 1 / draws.
    """

    frozen: Array
    updates: dict[str, Array]
    settled: bool

    def _read(self) -> PartitionResult:
        result = super()._read()
        alarms = []
        if not self.settled:
            evenness = self.updates["evenness"][-1]
            alarms.append(raised("not-stationary", "unsettled", evenness=evenness))
        curve = np.asarray(result.log_partition_curve) - self.base_log_partition
        off = np.abs(curve - self.frozen).max()
        if off > threshold("not-stationary", "largest_off"):
            alarms.append(raised("not-stationary", "off", off=off))
        updates = {f"adaptive_{name}": self.updates[name] for name in UPDATES}
        updates["adaptive_log_partition"] = self.base_log_partition + self.updates["log_partition"]
        return replace(
            result,
            alarms=(*alarms, *result.alarms),
            diagnostics=result.diagnostics | updates,
        )


def concluded(
    run: TemperingRun | ContinuousRun,
    estimate: Pooled,
    newest: Pooled,
    *,
    chain_error: float,
    first: Integers,
    crossed: NDArray,
    between: float,
    drift: Difference,
    other: Difference,
    by: str,
    alarms: Sequence[Alarm],
    diagnostics: dict[str, Any],
) -> PartitionResult:
    """The result of a `TemperingRun` or a `ContinuousRun`.

    Parameters
    ----------
    run : TemperingRun or ContinuousRun
    estimate, newest : Pooled
        From all rounds that are used, and from the last.
    chain_error : float
        Standard error by the variance between chains, in nats.
    first : ndarray of shape (G + 1,)
        First chain of every group, and the end.
    crossed : ndarray of shape (M,)
        Which chains visited both ends of the ladder.
    between : float
        Share of the variance at the target that lies between groups.
    drift : Difference
        Second less first half of the last round.
    other : Difference
        From another estimate by the same samples.
    by : {"MBAR", "averages"}
        Its sentence in the table of alarms.
    alarms : list of Alarm
        Further ones.
    diagnostics : dict
        Further ones.
    """
    curve, jackknifed = jackknife(estimate, N_GROUPS)
    jackknife_error = jackknifed[-1]
    error, degrees = max(
        (jackknife_error, N_GROUPS - 1),
        (chain_error, len(crossed) - 1),
        key=lambda pair: pair[0] * student_t.ppf(0.975, pair[1]),  # the wider interval
    )
    if run.first_ratio is not None:
        error = np.hypot(error, run.first_ratio.std_error)
    move = largest_move(newest, run.previous, t_bound(N_GROUPS, len(curve)))
    by_group = np.array([group.mean() for group in np.split(crossed, first[1:-1])])
    log_partition = run.base_log_partition + curve[-1]

    found = []
    few = crossed.mean() < threshold("not-mixed", "crossed")
    if few or by_group.min() < threshold("not-mixed", "crossed_in_a_group"):
        found.append(raised("not-mixed", "ends", share=crossed.mean(), fewest=by_group.min()))
    if move > 1:
        found.append(raised("not-stationary", "burn-in", move=move))
    found += halves_alarms(drift, N_GROUPS)
    if other.alarms(N_GROUPS):
        found.append(raised("readings-differ", by, "of one round", t=other.t))
    return run.conclude(
        log_partition,
        error,
        degrees,
        method=run.method if run.rao_blackwell else "TS",
        alarms=[
            *found,
            *modes_alarms("groups of chains", between),
            *alarms,
            *tol_alarms(error, run.tol, run.family),
        ],
        diagnostics={
            "curve_std_error": with_first_error(jackknifed, run.first_ratio),
            "chain_std_error": chain_error,
            "jackknife_std_error": jackknife_error,
            "log_pseudo_prior": newest.log_pseudo_prior[0],
            "crossed": by_group,
            "drift_t": drift.t,
            "largest_move": move,
            "between_groups": between,
            **diagnostics,
            "sweeps_per_redraw": run.sweeps_per_redraw,
            **run._rounds(log_partition, error),
        },
        levels=run.base_log_partition + curve,
    )


def pool_rounds(
    rounds: Sequence[TemperingRound],
    rao_blackwell: bool,
    sizes=(1.0,),
    halves=(0, 1),
    first_ratio=None,
) -> Pooled:
    """The estimate of rounds as a function of the groups to use."""
    sums = [pool_groups(r.first, r.log_sums(rao_blackwell, halves)) for r in rounds]
    log_extra = -np.inf if rao_blackwell else _LOG_EXTRA_COUNT
    priors = np.array([r.log_pseudo_prior for r in rounds])
    return Pooled(priors, np.array(sums), np.array(sizes), log_extra, first_ratio)


def between_target_states(
    summaries: NDArray,
    log_weights: NDArray,
    *,
    compared: float = 0.5,  # effective share of the groups that must have been at the target
) -> float:
    """Share of the variance of the target's states that lies between groups: sums (G, 2, S), log
    weights (G,).

    NaN where few groups have nearly all of the weight, which can't show where the others are.
    """
    if not effective_sample_size(log_weights) > compared * len(log_weights):
        return np.nan
    return between_groups(summaries[:, 0], summaries[:, 1], np.exp(log_weights))


# -- tests
def largest_move(new: Pooled, old: Pooled, n_errors: float) -> float:
    """Largest change of a log Z_k in units of 0.1 nats, or of `n_errors` standard errors where
    these are more.
    """
    moved, error = _difference(new, old)
    return float(np.max(np.abs(moved) / np.maximum(TOLERANCE, n_errors * error)))


def _difference(new, old):
    """new - old at every level and its jackknife standard error."""
    return jackknife(lambda keep: new(keep) - old(keep), N_GROUPS)


def _own_influence(r, shares, origin):
    """Influence of every chain on one round's estimate for the target."""
    zeta = rts_curve(r.log_pseudo_prior, np.log(_mean_shares(r, shares)))
    return influence(
        r.log_pseudo_prior[np.newaxis], shares[np.newaxis], np.ones(1), zeta, -1, origin
    )


def _mean_shares(r, shares):
    """Averages over chains; where no chain drew a level, that of the paper's tenth of a count."""
    mean = shares.mean(axis=0)
    return np.where(mean > 0, mean, np.exp(_LOG_EXTRA_COUNT) / (len(shares) * r.n_redraws))


def _effective_draws(r, shares, origin) -> float:
    """Independent draws that a chain was worth: the variance of its influence at one time over that
    of its average.
    """
    q = np.exp(r.log_q)
    mean = _mean_shares(r, shares)
    single = q[..., -1] / mean[-1] - q[..., origin] / mean[origin]
    variance = _own_influence(r, shares, origin).var(ddof=1)
    return single.var() / variance if variance > 0 else np.inf


# -- sampling
class Start(NamedTuple):
    """Start of production: chains, estimate and history.

    Chains, weights log Z_k - log Z_0 (K,), an estimate of them, a chain's sweeps, of every round
    until then log Z / Z_0, its standard error and a chain's sweeps (R, 3), and what an `AdaptedRun`
    says of the weights.
    """

    chains: list[Chains]
    curve: Array
    estimate: Pooled
    used: int = 0
    history: Array = NO_ROUNDS
    adaptation: dict[str, Any] = {}


@dataclass(eq=False, repr=False)
class SimulatedTempering(SamplingEstimator):
    """Simulated tempering: burn-in finds weights of the levels, production runs with these fixed.

    A subclass says how burn-in goes (`_initialise`); it may make parameters of `prior`, of the
    levels, and `rao_blackwell`: how visits of levels are counted.
    """

    n_chains: int = 100
    n_temperatures: int = 100
    n_sweeps: int = 4000
    _: KW_ONLY
    tol: float | None = None
    max_sweeps: int | None = None
    ladder: str | ArrayLike = "linear"
    sweeps_per_redraw: int | None = None
    prior: Any = field(default="uniform", init=False)
    rao_blackwell: bool = field(default=True, init=False)

    _parameter_constraints = {
        **ANNEALING,
        "n_chains": [at_least(N_GROUPS)],
        "n_sweeps": [at_least(16)],
        "tol": [POSITIVE, None],
        "max_sweeps": [at_least(1), None],
        "sweeps_per_redraw": [at_least(1), None],
    }

    def _initialise(self, setup: Setup) -> Start:
        """Burn-in."""
        raise NotImplementedError

    def _sample(self, path, seed):
        base_log_partition = require_base(path, type(self).__name__)
        options = {"n_jobs": self.n_jobs, "checkpoint": self._checkpoint(path, seed)}
        path, transition, _, n_moves, _ = self._plan(path, seed, self.n_chains)
        ratio, n_draws, alarms = self._first_ratio(path, seeded(seed).of("first ratio").key)
        first = np.arange(N_GROUPS + 1) * self.n_chains // N_GROUPS
        redraws = self._sweeps_per_redraw(path)
        log_prior = log_prior_of(self.prior, path.ladder)
        setup = Setup(path, transition, log_prior, first, seed, redraws, options, ratio)
        start = self._initialise(setup)
        n_before = n_moves + n_draws

        def whole(run):
            return replace(
                run,
                base_log_partition=base_log_partition,
                sweeps={
                    "chains": (run.n_sweeps - start.used) * self.n_chains,
                    "pilot": n_before,
                    "burn-in": start.used * self.n_chains,
                },
                history=run.history * [1, 1, self.n_chains] + [base_log_partition, 0.0, n_before],
                earlier_alarms=tuple(alarms),
            )

        for run in map(whole, self._produce(setup, start)):
            note(run)
        return run

    def _first_ratio(self, path, key) -> tuple[MeanWeight | None, int, list[Alarm]]:
        """The mean of f_1 / f_0 over independent base draws, where these fall on points with
        f_1 = 0, how many it took, and what speaks against it.

        Such points are seen from level 0 alone. Chains that have left them seldom return, so that
        what their visits say of Z_1 / Z_0 is noise that does not show how large it is.
        """
        if not path.has_boundary:
            return None, 0, []
        stream = Stream(key)
        log_weights = _log_weights(path, stream)
        # A smaller share moves log Z by less than 0.01 nats.
        if np.mean(log_weights == -np.inf) < 0.01:
            return None, 0, []
        check_alive(log_weights)
        n = max(_LOOK, self.n_chains * self.n_sweeps // 4)  # sweeps of the chains to one draw
        if self.tol is not None:
            variance = mean_weight(log_weights).std_error ** 2 * _LOOK
            # the ratio's standard error is to be three times smaller than tol
            n = max(n, min(1_000_000, int(variance * (3 / self.tol) ** 2)))
        further = [_log_weights(path, stream.at(i)) for i in range(1, -(-n // _LOOK))]
        log_weights = np.concatenate([log_weights, *further])
        n = len(log_weights)
        alarms = weight_alarms(n, weight_diagnostics(log_weights), TemperingRun.family)
        return mean_weight(log_weights), n, alarms

    def _sweeps_per_redraw(self, path, *, most: int = 3) -> int:
        n = self.sweeps_per_redraw
        if n is None:
            n = int(np.clip(np.ceil(4 * path.ladder_cost), 1, most))
        if self.n_sweeps < 16 * n:
            raise ValueError(
                f"n_sweeps must be at least {16 * n} with {n} sweeps per redraw, got"
                f" {self.n_sweeps}"
            )
        return int(n)

    def _first_pass(self, setup, n_sweeps: int) -> Start:
        """Annealed chains, and what they say."""
        chains, log_weights = first_pass(setup, n_sweeps)
        sums = pool_groups(setup.first, log_weights)[np.newaxis]
        estimate = Pooled(np.zeros((1, len(setup.log_prior))), sums, first_ratio=setup.first_ratio)
        return self._after(setup, "pilot", n_sweeps, Start(chains, estimate(ALL), estimate))

    def _after(self, setup, name: str, n_sweeps: int, start: Start) -> Start:
        """The start with so many more sweeps of a chain, and with its estimate in the history."""
        used = start.used + n_sweeps
        curve, errors = jackknife(start.estimate, N_GROUPS)
        value = curve[-1], with_first_error(errors, setup.first_ratio)[-1]
        history = self._with_round(start.history, setup, name, value, used, self.n_sweeps - used)
        return start._replace(used=used, history=history)

    def _with_round(self, history, setup, name, value, used, n_left):
        """The history with one more round, which is reported; sweeps are those of a chain."""
        log_partition = float(setup.path.base_log_partition + value[0])
        round_done(name, log_partition, value[1], used * self.n_chains, n_left * self.n_chains)
        return with_round(history, value[0], value[1], used)

    def _produce(self, setup, start) -> Iterator[Any]:
        """Runs of one round, and with `tol` of as many more as it takes; their sweeps and history
        are those of a chain, and of log Z / Z_0.
        """
        max_sweeps = 50 * self.n_sweeps if self.max_sweeps is None else self.max_sweeps
        most = max(self.n_sweeps, max_sweeps)
        chains, curve, estimate, used, history, _ = start
        n_redraws = (self.n_sweeps - used) // setup.sweeps_per_redraw
        rounds: list[TemperingRound] = []
        while True:
            n_kept = _MAX_VECTORS // 2 if rounds else _MAX_VECTORS
            key = 1, len(rounds)
            chains, last = run_round(
                setup, key, chains, curve, n_redraws, n_kept, self._keeps_draws
            )
            rounds = [*(earlier.thinned() for earlier in rounds), last]
            used += n_redraws * setup.sweeps_per_redraw
            run = self._with_reading_options(
                TemperingRun(
                    ladder=setup.path.ladder,
                    sweeps={"chains": used},
                    history=history,
                    draws=last.draws,
                    first_ratio=setup.first_ratio,
                    rounds=tuple(rounds),
                    previous=estimate,
                    sweeps_per_redraw=setup.sweeps_per_redraw,
                )
            )
            yield run
            if self.tol is None:
                return
            result = run._read()
            estimate = run.curve()
            curve = estimate(ALL)
            n_redraws = min(
                sum(r.n_redraws for r in rounds), (most - used) // setup.sweeps_per_redraw
            )
            if (result.std_error <= self.tol and not result.alarms) or n_redraws < 2:
                return
            value = curve[-1], result.std_error
            n_left = n_redraws * setup.sweeps_per_redraw
            name = f"round {len(rounds)}"
            history = self._with_round(history, setup, name, value, used, n_left)


def _log_weights(path, stream) -> Array:
    """log f_1 - log f_0 of base draws."""
    state = path.sample_base(_LOOK, stream)
    log_base, log_first = (path.log_f(state, np.full(_LOOK, level)) for level in (0, 1))
    return check_finite(log_ratio(log_base, log_first), allow_zero=path.has_boundary)


def log_prior_of(prior, ladder):
    """log r_k, normalised."""
    shares = as_float64(0.0 if isinstance(prior, str) else prior, "prior")
    if shares.ndim == 0:
        log_prior = log_softmax(shares * ladder)
    elif shares.shape != ladder.shape or not np.all((shares > 0) & np.isfinite(shares)):
        raise ValueError(
            f"prior must hold {len(ladder)} positive numbers, one for each level, or be a single"
            " number"
        )
    else:
        log_prior = log_softmax(np.log(shares))
    if not np.exp(log_prior).all():
        raise ValueError(
            "prior must leave each level a share that is a positive float64: take a smaller number,"
            " or shares that differ less"
        )
    return log_prior
