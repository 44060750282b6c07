"""TemperingRun: what rounds of simulated tempering leave, the estimate, its errors, and the
alarms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student_t

from sklpf._utils.numbers import Array, Integers
from sklpf._utils.warnings import Alarm
from sklpf.partition._result import (
    CURVE,
    LEVEL,
    PAIR,
    ROUNDS,
    Diagnostic,
    PartitionResult,
)
from sklpf.partition._run import Curve, LevelRun, bar_curve, between_by_slope
from sklpf.partition.checks._beside import halves_alarms, modes_alarms, tol_alarms
from sklpf.programs import TemperingRound
from sklpf.programs._rounds import Samples
from sklpf.programs._tempering import pool_groups
from sklpf.reweighting import (
    Pooled,
    bias,
    influence,
    mbar,
    neighbour_overlap,
    rts_curve,
    standard_error,
    with_first_error,
    with_first_ratio,
)
from sklpf.uncertainty import (
    Difference,
    between_groups,
    difference,
    effective_sample_size,
    jackknife,
    t_bound,
    t_ratio,
)

N_GROUPS = 10
ALL = np.arange(N_GROUPS)
CROSSED = 0.9  # share of the chains that must visit both ends of the ladder
TOLERANCE = 0.1  # nats that log Z_k may move in a round, and the paper's bound on K |r_k - c_k|
_COMPARED = 0.5  # effective share of the groups that must have been at the target
_LOG_EXTRA_COUNT = np.log(0.1)  # what the paper adds to counts that are not Rao-Blackwellised
_ROUNDING = 1e-12  # nats: of an error that is 0, as where the base is the target
_LARGEST_OFF = (
    1.0  # nats that a frozen log Z_k may differ from the result: levels are then visited unevenly
)

_UPDATES = ("n_draws", "gain", "evenness", "log_partition")  # numbers of each

TEMPERING = {
    **CURVE,
    "between_groups": Diagnostic("share of the variance between groups of chains", "low"),
    "effective_draws": Diagnostic("effective number of independent draws of a chain", "high"),
    "overlap": Diagnostic("overlap of neighbouring levels, lowest (1: full)", "high", PAIR),
    "mbar_log_partition": Diagnostic("log Z_target - log Z_base by MBAR (nats)"),
    "bar_log_partition": Diagnostic("log Z_target - log Z_base by BAR (nats)"),
    "crossed": Diagnostic("share of chains that crossed the ladder, by group", "", ("group",)),
    "n_rounds": Diagnostic("rounds of production"),
    "shares": Diagnostic(dimensions=LEVEL),
    "log_pseudo_prior": Diagnostic(dimensions=LEVEL),
    **ROUNDS,
}


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
    described = TEMPERING

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

    def _pooled(self) -> tuple[list[TemperingRound], NDArray, Pooled]:
        """The rounds whose chains crossed the ladder, or else the last one, every chain's shares in
        each, and the estimate from all of them.
        """
        used = [r for r in self.rounds if r.crossed.mean() >= CROSSED] or [self.last]
        shares = np.array([r.shares(self.rao_blackwell) for r in used])
        sizes = [1.0]
        if len(used) > 1:
            origin = self.previous.origin
            errors = [
                standard_error(_own_influence(r, own, origin)) for r, own in zip(used, shares)
            ]
            sizes = [max(error, _ROUNDING) ** -2 for error in errors]
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
        mbar_value, from_mbar = _cross_check([r.samples(self.ladder) for r in used], pooled)
        by_bar, bar_errors = jackknife(bar_curve(self), N_GROUPS)
        by_place = between_target_states(
            last.summaries, pool_groups(last.first, last.log_sums(True))[:, -1]
        )
        alarms = []
        if not shares[:, :, [origin, -1]].any(axis=(0, 1)).all():
            seen = "no chain drew one of the ladder's ends in production"
            alarms.append(Alarm("end-never-drawn", seen, "raise n_sweeps"))
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
            says="MBAR gives",
            alarms=alarms,
            diagnostics={
                "bias": bias(shares[-1], origin),
                "shares": np.exp(pooled.log_shares(ALL)[-1]),
                "overlap": neighbour_overlap(*last.pairs()),
                "effective_draws": _effective_draws(last, shares[-1], origin),
                "mbar_log_partition": mbar_value,
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

    described = TEMPERING | {
        f"adaptive_{name}": Diagnostic(dimensions=("update",)) for name in _UPDATES
    }

    frozen: Array
    updates: dict[str, Array]
    settled: bool

    def _read(self) -> PartitionResult:
        result = super()._read()
        alarms = []
        if not self.settled:
            seen = (
                "weights had not settled when they were frozen (evenness"
                f" {self.updates['evenness'][-1]:.2f})"
            )
            alarms.append(Alarm("weights-unsettled", seen, "raise n_sweeps"))
        curve = np.asarray(result.log_partition_curve) - self.base_log_partition
        off = np.abs(curve - self.frozen).max()
        if off > _LARGEST_OFF:
            seen = f"the frozen weights were off by {off:.1f} nats"
            alarms.append(Alarm("weights-off", seen, "raise n_sweeps"))
        updates = {f"adaptive_{name}": self.updates[name] for name in _UPDATES}
        updates["adaptive_log_partition"] = self.base_log_partition + self.updates["log_partition"]
        return replace(
            result,
            alarms=(*alarms, *result.alarms),
            diagnostics=result.diagnostics | updates,
        )


def concluded(
    run: Any,
    estimate: Pooled,
    newest: Pooled,
    *,
    chain_error: float,
    first: Integers,
    crossed: NDArray,
    between: float,
    drift: Difference,
    other: Difference,
    says: str,
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
        From another estimate by the same samples; `says` begins the sentence on it.
    says : str
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
    return run.conclude(
        log_partition,
        error,
        degrees,
        method=run.method if run.rao_blackwell else "TS",
        alarms=[
            *_tempering_alarms(by_group, crossed.mean(), move, drift, other, says),
            *modes_alarms("groups of chains", between, "raise n_sweeps"),
            *alarms,
            *tol_alarms(error, run.tol, "raise max_sweeps"),
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


def value_and_error(pooled: Pooled) -> tuple[float, float]:
    """log Z_target - log Z_base of an estimate and its standard error by the jackknife."""
    curve, jackknifed = jackknife(pooled, N_GROUPS)
    return float(curve[-1]), float(with_first_error(jackknifed, pooled.first_ratio)[-1])


def between_target_states(summaries: NDArray, log_weights: NDArray) -> float:
    """Share of the variance of the target's states that lies between groups: sums (G, 2, S), log
    weights (G,).

    NaN where few groups have nearly all of the weight, which can't show where the others are.
    """
    if not effective_sample_size(log_weights) > _COMPARED * len(log_weights):
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


def _cross_check(samples: Sequence[Samples], pooled: Pooled) -> tuple[float, Difference]:
    """MBAR's log Z_target - log Z_base from the kept states, and RTS minus it."""

    def estimate(keep, start):
        chosen = [each.of(keep) for each in samples]
        vectors = np.concatenate([each.vectors for each in chosen])
        curve = mbar(vectors, np.sum([each.counts for each in chosen], axis=0), start)
        return with_first_ratio(curve, pooled.first_ratio)

    everything = estimate(ALL, pooled(ALL))
    off = difference(lambda keep: pooled(keep)[-1] - estimate(keep, everything)[-1], N_GROUPS)
    return everything[-1], off


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


def _tempering_alarms(
    crossed, share, move, drift: Difference, other: Difference, says: str
) -> list[Alarm]:
    """What speaks against a run; `says` begins the sentence on another estimate from the same
    samples.
    """
    found = []
    if share < CROSSED or crossed.min() < CROSSED / 2:
        seen = (
            f"{share:.0%} of the chains ({crossed.min():.0%} in one group) visited both ends of the"
            f" ladder in production (at least {CROSSED:.0%} and {CROSSED / 2:.0%} needed)"
        )
        found.append(Alarm("ladder-not-crossed", seen, "raise n_sweeps"))
    if move > 1:
        seen = (
            f"burn-in was too short (production moved a log Z_k {move:.1f} times as far as its"
            " noise does)"
        )
        found.append(Alarm("short-burn-in", seen, "raise n_sweeps"))
    found += halves_alarms(drift, N_GROUPS)
    if other.alarms(N_GROUPS):
        seen = f"{says} another value from the same samples (t = {other.t:.1f})"
        found.append(Alarm("other-reading", seen, "raise n_sweeps"))
    return found
