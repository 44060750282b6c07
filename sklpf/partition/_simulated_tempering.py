"""SimulatedTempering: what RTS, SAMS and WangLandau share. Chains walk up and down the ladder, and
barriers between levels show.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_softmax

from sklpf._utils.numbers import Array, as_float64
from sklpf._utils.progress import round_done
from sklpf._utils.random import Stream, stream_key
from sklpf._utils.sklearn import POSITIVE, Interval, StrOptions, at_least
from sklpf._utils.warnings import Alarm
from sklpf.partition._base import ANNEALING, FIRST_RATIO, SamplingEstimator
from sklpf.partition._tempering_run import (
    ALL,
    N_GROUPS,
    TemperingRun,
    value_and_error,
)
from sklpf.partition.checks._beside import weight_alarms, weight_diagnostics
from sklpf.paths._capabilities import require_base
from sklpf.programs import TemperingRound
from sklpf.programs._plan import NO_ROUNDS, check_alive, with_round
from sklpf.programs._populations import log_rises
from sklpf.programs._programs import Chains
from sklpf.programs._tempering import Setup, first_pass, pool_groups, run_round
from sklpf.reweighting import MeanWeight, Pooled, mean_weight

PRIOR: list[Any] = [
    StrOptions({"uniform"}),
    Interval(Real, None, None, closed="neither"),
    "array-like",
]
_MOST_SWEEPS_PER_REDRAW = 3
_MAX_VECTORS = 5_000
_LOOK = 1000  # base draws that show whether it has such points
_MATERIAL = 0.01  # share of them that is worth the work: less moves log Z by less than 0.01 nats
_COST = 4  # so many sweeps of the chains to one draw
_MOST_DRAWS = 1_000_000
_TOL_SHARE = 3  # the ratio's standard error is to be so many times smaller than `tol`


class Start(NamedTuple):
    """What production begins with.

    Chains, weights log Z_k - log Z_0 (K,), an estimate of them, a chain's sweeps, and of every
    round until then log Z / Z_0, its standard error and a chain's sweeps (R, 3).
    """

    chains: list[Chains]
    curve: Array
    estimate: Pooled
    used: int
    history: Array
    adaptation: dict[str, Any] | None = None


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
        ratio, n_draws, alarms = self._first_ratio(path, stream_key(seed, FIRST_RATIO))
        first = np.arange(N_GROUPS + 1) * self.n_chains // N_GROUPS
        redraws = self._sweeps_per_redraw(path)
        log_prior = log_prior_of(self.prior, path.ladder)
        setup = Setup(path, transition, log_prior, first, seed, redraws, options, ratio)
        start = self._initialise(setup)
        run, used, history = self._produce(setup, start)
        n_before = n_moves + n_draws
        return replace(
            run,
            base_log_partition=base_log_partition,
            n_sweeps=n_before + used * self.n_chains,
            history=history * [1, 1, self.n_chains] + [base_log_partition, 0.0, n_before],
            earlier_alarms=alarms,
        )

    def _first_ratio(self, path, key) -> FirstRatio:
        """The mean of f_1 / f_0 over independent base draws, where these fall on points with
        f_1 = 0.

        Such points are seen from level 0 alone. Chains that have left them seldom return, so that
        what their visits say of Z_1 / Z_0 is noise that does not show how large it is.
        """
        if not path.has_boundary:
            return FirstRatio()
        stream = Stream(key)
        log_weights = _log_weights(path, stream)
        if np.mean(log_weights == -np.inf) < _MATERIAL:
            return FirstRatio()
        check_alive(log_weights)
        n = max(_LOOK, self.n_chains * self.n_sweeps // _COST)
        if self.tol is not None:
            variance = mean_weight(log_weights).std_error ** 2 * _LOOK
            n = max(n, min(_MOST_DRAWS, int(variance * (_TOL_SHARE / self.tol) ** 2)))
        further = [_log_weights(path, stream.at(i)) for i in range(1, -(-n // _LOOK))]
        log_weights = np.concatenate([log_weights, *further])
        n = len(log_weights)
        remedy = (
            "the others lie where the target is 0, or nearly: give a base that covers the target"
            " more closely"
        )
        alarms = weight_alarms(n, weight_diagnostics(log_weights), remedy)
        return FirstRatio(mean_weight(log_weights), n, tuple(alarms))

    def _sweeps_per_redraw(self, path) -> int:
        n = self.sweeps_per_redraw
        if n is None:
            n = int(np.clip(np.ceil(4 * path.ladder_cost), 1, _MOST_SWEEPS_PER_REDRAW))
        if self.n_sweeps < 16 * n:
            raise ValueError(
                f"n_sweeps must be at least {16 * n} with {n} sweeps per redraw, got"
                f" {self.n_sweeps}"
            )
        return int(n)

    def _first_pass(self, setup) -> Start:
        """Annealed chains, which take a quarter of the sweeps, and what they say."""
        used = self.n_sweeps // 4
        chains, log_weights = first_pass(setup, used)
        sums = pool_groups(setup.first, log_weights)[np.newaxis]
        estimate = Pooled(np.zeros((1, len(setup.log_prior))), sums, first_ratio=setup.first_ratio)
        history = self._with_round(NO_ROUNDS, setup, "pilot", value_and_error(estimate), used)
        return Start(chains, estimate(ALL), estimate, used, history)

    def _with_round(self, history, setup, name, value, used, n_redraws=None):
        """The history with one more round, said where somebody listens; production goes on for so
        many redraws.
        """
        n_left = self.n_sweeps - used if n_redraws is None else n_redraws * setup.sweeps_per_redraw
        log_partition = setup.path.base_log_partition + value[0]
        round_done(name, log_partition, value[1], used * self.n_chains, n_left * self.n_chains)
        return with_round(history, value[0], value[1], used)

    def _produce(self, setup, start):
        """A run of one round, or with `tol` of as many as it takes, a chain's sweeps, and the
        history.
        """
        max_sweeps = 50 * self.n_sweeps if self.max_sweeps is None else self.max_sweeps
        most = max(self.n_sweeps, max_sweeps)
        chains, curve, estimate, used, history, _ = start
        n_redraws = (self.n_sweeps - used) // setup.sweeps_per_redraw
        rounds: list[TemperingRound] = []
        while True:
            n_kept = _MAX_VECTORS // 2 if rounds else _MAX_VECTORS
            name = 1, len(rounds)
            chains, last = run_round(
                setup, name, chains, curve, n_redraws, n_kept, self._keeps_draws
            )
            rounds = [*(earlier.thinned() for earlier in rounds), last]
            used += n_redraws * setup.sweeps_per_redraw
            run = TemperingRun(
                ladder=setup.path.ladder,
                first_ratio=setup.first_ratio,
                rounds=tuple(rounds),
                previous=estimate,
                sweeps_per_redraw=setup.sweeps_per_redraw,
                rao_blackwell=self.rao_blackwell,
                tol=self.tol,
            )
            if self.tol is None:
                break
            result = run._read()
            estimate = run.curve()
            curve = estimate(ALL)
            n_redraws = min(
                sum(r.n_redraws for r in rounds), (most - used) // setup.sweeps_per_redraw
            )
            if (result.std_error <= self.tol and not result.alarms) or n_redraws < 2:
                break
            value = float(curve[-1]), result.std_error
            history = self._with_round(
                history, setup, f"round {len(rounds)}", value, used, n_redraws
            )
        return replace(run, draws=last.draws), used, history


class FirstRatio(NamedTuple):
    """log Z_1 / Z_0 and its errors, where it is needed, how many draws it took, and what speaks
    against it.
    """

    mean: MeanWeight | None = None
    n_draws: int = 0
    alarms: tuple[Alarm, ...] = ()


def _log_weights(path, stream) -> Array:
    """log f_1 - log f_0 of base draws."""
    return log_rises(path, path.sample_base(_LOOK, stream), 0)


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
