"""AIS: annealed importance sampling."""

from __future__ import annotations

import os
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike

from sklpf._utils.random import Stream, stream_key
from sklpf._utils.sklearn import Interval
from sklpf.partition._base import BOUND, PartitionEstimator
from sklpf.partition._options import ANNEALING
from sklpf.paths._capabilities import require_base
from sklpf.readings import Reading, conclude
from sklpf.readings._bound import lower_bound
from sklpf.readings._diagnostics import LOWER_BOUND, MOVES, PLAIN_BOUND, WEIGHTS, Diagnostic
from sklpf.readings._weights import move_diagnostics, weight_alarms, weight_diagnostics
from sklpf.reweighting import mean_weight, seen_from_target
from sklpf.runs import AnnealingRun
from sklpf.runs._annealing import anneal_down, anneal_up
from sklpf.runs._draws import draws_of
from sklpf.runs._history import round_diagnostics
from sklpf.runs._plan import check_alive
from sklpf.runs._resampling import systematic
from sklpf.transitions import Transition

_MAIN, _CHECK = 1, 7  # random streams; that of the pilot is 0
_FEWEST_BACK = 10  # chains that go back down, or a quarter of all
_SETTLING = 100  # sweeps at the target before they do


class AIS(PartitionEstimator):
    """Annealed importance sampling (Neal 2001; Carlson et al. 2016, eq. 23).

    Chains start at exact base draws and move up the ladder; each multiplies the ratios f_(k+1)(x) /
    f_k(x) on its way. The mean weight is unbiased for Z / Z_0, so the log of the mean bounds log Z
    from below in expectation.

    Parameters
    ----------
    n_chains : int, default=100
        Independent chains M.
    n_temperatures : int, default=1000
        Levels K of the ladder, base and target included: each chain makes K - 1 sweeps.
    ladder : str or array-like, default="linear"
        "linear", "power", "sigmoid", "salakhutdinov-murray" or "adaptive", or inverse temperatures.
        Inverse temperatures from 0 to 1. "adaptive" measures the spread of log f_(k+1) - log f_k in
        a pilot of 5 % of the sweeps, places the levels at equal cumulative spread, and is then
        frozen, so that weights stay unbiased.
    transition : Transition or None, default=None
        The move at each level; None is the path's Gibbs sweep, or on R^d `HMC`, without gradients
        `RandomWalk`.
    checkpoint : str, path-like or None, default=None
        Directory that keeps finished segments; an interrupted run goes on from there with the same
        bits.
    random_state : int, RandomState or None, default=None
        Seed of the chains.
    n_jobs : int or None, default=None
        Blocks of chains that move at the same time, in threads; the numbers are the same for all.
    verbose : int, default=0
        Whether `fit` says how far it is: a line a round, or every five seconds, by the logger
        "sklpf" at level INFO, printed where logging would not show it.

    Attributes
    ----------
    log_partition_, log_partition_std_error_, log_partition_interval_, converged_, result_, run_
        See `PartitionEstimator`. The interval uses Student t with M - 1 degrees of freedom.
        ``result_.diagnostics`` holds ``log_weights`` (M,), ``effective_sample_size``,
        ``effective_sample_size_from_target``, ``pareto_shape``, the standard errors
        ``delta_std_error``, ``jackknife_std_error`` and ``reverse_std_error``, ``lower_bound``: log
        Z is below it with probability at most 5 %, whatever the chains have missed; and
        ``plain_bound`` where the path has one.

    Notes
    -----
    Weights that a run has not met don't show in its own: those that pass every test on them lie
    low. Therefore a quarter as many chains (at least 10), drawn in proportion to their weights,
    move on for 100 sweeps at the target and go back down the ladder. Seen from the target, weights
    w' are in proportion to their size, E w' / Z = E w^2 / Z^2, so that those chains meet the large
    ones first. The variance is the mean of the forward chains' and of the one that E w' E 1 / w' -
    1 says, or the forward chains' own where that is larger.

    Not converged if either direction leaves fewer effective weights than 25, or M / 4 if that is
    less, or 5; or if the path has a lower bound of log Z that owes nothing to its base
    (`BoundDraws`) and it is exceeded. A mode that no chain has ended in raises no alarm. Compare
    `RAISE`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import AIS, BernoulliRBM
    >>> rng = np.random.default_rng(0)
    >>> rbm = BernoulliRBM.from_parameters(rng.normal(size=(4, 6)), np.zeros(6), np.zeros(4))
    >>> ais = AIS(random_state=0).fit(rbm)
    >>> bool(ais.log_partition_std_error_ < 0.05)
    True
    """

    _parameter_constraints = {**ANNEALING, "n_chains": [Interval(Integral, 2, None, closed="left")]}

    def __init__(
        self,
        n_chains: int = 100,
        n_temperatures: int = 1000,
        *,
        ladder: str | ArrayLike = "linear",
        transition: Transition | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.n_chains = n_chains
        self.n_temperatures = n_temperatures
        self.ladder = ladder
        self.transition = transition
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    _diagnostics = {
        **WEIGHTS,
        "effective_sample_size_from_target": Diagnostic("… by the reverse chains", "high"),
        **LOWER_BOUND,
        **PLAIN_BOUND,
        **MOVES,
    }
    _run_class = AnnealingRun
    _remedy = "raise n_temperatures or n_chains"

    def _sample(self, path, seed) -> AnnealingRun:
        return self._up_and_down(path, self.n_chains, seed)

    def _up_and_down(self, path, n, seed) -> AnnealingRun:
        """The weights of n chains that go up, and of those that go back down from where
        they ended.
        """
        base_log_partition = require_base(path, type(self).__name__)
        checkpoint = self._checkpoint(path, seed)
        path, transition, n_pilot, history = self._plan(path, seed, n)
        bound = lower_bound(path, stream_key(seed, BOUND))
        key = stream_key(seed, _MAIN)
        checks = stream_key(seed, _CHECK)
        up, state, acceptance = anneal_up(path, transition, n, key, self.n_jobs, checkpoint)
        ends = path.take(state, _going_back(up, Stream(checks).generator()))
        down = anneal_down(
            path, transition, ends, 1, checks, self.n_jobs, checkpoint, n_settling=_SETTLING
        )
        n_sweeps = n_pilot + (len(up) + len(down)) * (len(path.ladder) - 1) + len(down) * _SETTLING
        return AnnealingRun(
            ladder=path.ladder,
            base_log_partition=base_log_partition,
            n_sweeps=n_sweeps,
            history=history + [base_log_partition, 0.0, 0.0],
            bound=bound,
            draws=draws_of(path, state, up, np.arange(n)) if self._keeps_draws else None,
            up=up,
            down=down,
            starts="ends",
            acceptance=acceptance,
            pilot=transition.pilot,
        )

    @classmethod
    def _reading(cls, run) -> Reading:
        if run.up is None or run.down is None:
            raise ValueError(
                "path must be a run with chains in both directions, such as another AIS's run_"
            )
        n = len(run.up)
        estimate = mean_weight(run.up)
        seen = seen_from_target(
            -run.down.ravel(), estimate.log_mean, float(np.mean(run.up > -np.inf))
        )
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
        alarms = weight_alarms(n, diagnostics, cls._remedy)
        return conclude(
            run,
            cls.__name__,
            log_partition,
            std_error,
            n - 1,
            alarms=alarms,
            diagnostics=diagnostics,
        )


def _going_back(log_weights, rng):
    """A quarter of the chains, at least 10, drawn in proportion to their weights (systematic
    resampling).

    A chain that was left behind in a tail has hardly any weight, and is no draw from the target.
    """
    check_alive(log_weights)
    n_chains = len(log_weights)
    return systematic(log_weights, min(n_chains, max(_FEWEST_BACK, n_chains // 4)), rng.random())
