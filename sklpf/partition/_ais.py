"""AIS: annealed importance sampling."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from sklpf._random import stream_key
from sklpf._sklearn import Interval
from sklpf.partition._base import TUNE, PartitionEstimator
from sklpf.partition._options import ANNEALING
from sklpf.partition._result import PartitionResult
from sklpf.paths._capabilities import require_base
from sklpf.reweighting import effective_sample_size, mean_weight
from sklpf.runs._annealing import AnnealingRun, anneal_up
from sklpf.runs._plan import plan_ladder
from sklpf.uncertainty import pareto_shape

_MAIN = 1  # its random stream; that of the pilot is 0
_MAX_SHAPE = 0.7
_MIN_EFFECTIVE = 25.0  # or a quarter of the chains; on an RBM with 500 hidden units runs under 19 were up to 6 SE low


class AIS(PartitionEstimator):
    """Annealed importance sampling (Neal 2001; Carlson et al. 2016, eq. 23).

    Chains start at exact base draws and move up the ladder; each multiplies the ratios f_(k+1)(x) / f_k(x) on its
    way. The mean weight is unbiased for Z / Z_0, so the log of the mean bounds log Z from below in expectation.

    Parameters
    ----------
    n_chains : int, default=100
        Independent chains M.
    n_temperatures : int, default=1000
        Levels K of the ladder, base and target included: each chain makes K - 1 sweeps.
    ladder : {"linear", "power", "sigmoid", "salakhutdinov-murray", "adaptive"} or array-like, default="linear"
        Inverse temperatures from 0 to 1. "adaptive" measures the spread of log f_(k+1) - log f_k in a pilot of 5 % of
        the sweeps, places the levels at equal cumulative spread, and is then frozen, so that weights stay unbiased.
    weights, base : str, array-like or None, default=None
        Options handed to ``model.path``, which documents them; None leaves the path's own.
    transition : Transition or None, default=None
        The move at each level; None is the path's Gibbs sweep.
    checkpoint : str, path-like or None, default=None
        Directory that keeps finished segments; an interrupted run goes on from there with the same bits.
    random_state : int, RandomState or None, default=None
    n_jobs : int or None, default=None

    Attributes
    ----------
    log_partition_, log_partition_std_error_, log_partition_interval_, converged_, result_
        See `PartitionEstimator`. The standard error is the larger of the delta method's and the jackknife's, the
        interval uses Student t with M - 1 degrees of freedom. ``result_.diagnostics`` holds ``log_weights`` (M,),
        ``effective_sample_size``, ``pareto_shape``, ``delta_std_error``, ``jackknife_std_error`` and ``lower_bound``:
        log Z is below it with probability at most 5 %, whatever the chains have missed.

    Notes
    -----
    Not converged if the Pareto shape of the weights exceeds 0.7 or their effective sample size is under 25 (M / 4 with
    fewer than 100 chains). Chains that all miss a mode raise no alarm: no error bar computed from forward runs can see
    it. Compare `RAISE`.

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
        n_chains=100,
        n_temperatures=1000,
        *,
        ladder="linear",
        weights=None,
        base=None,
        transition=None,
        checkpoint=None,
        random_state=None,
        n_jobs=None,
    ):
        self.n_chains = n_chains
        self.n_temperatures = n_temperatures
        self.ladder = ladder
        self.weights = weights
        self.base = base
        self.transition = transition
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.n_jobs = n_jobs

    _run_class = AnnealingRun

    def _sample(self, path, seed) -> AnnealingRun:
        base_log_partition = require_base(path, "AIS")
        checkpoint, transition = self._checkpoint(path, seed), self._transition(path)
        path, n_pilot = plan_ladder(path, transition, self.ladder, self.n_temperatures, self.n_chains, seed)
        transition = transition.tune(path, stream_key(seed, TUNE))
        up = anneal_up(path, transition, self.n_chains, stream_key(seed, _MAIN), self.n_jobs, checkpoint)
        n_sweeps = n_pilot + self.n_chains * (len(path.ladder) - 1)
        return AnnealingRun(path.ladder, base_log_partition, up=up, n_sweeps=n_sweeps)

    def _combine(self, run) -> PartitionResult:
        if run.up is None:
            raise ValueError("path must be a run whose chains go up the ladder; this one's go down")
        estimate = mean_weight(run.up)
        diagnostics, reasons = judge_weights(run.up)
        log_partition = run.base_log_partition + estimate.log_mean
        return PartitionResult(
            method="AIS",
            log_partition=log_partition,
            std_error=estimate.std_error,
            degrees_of_freedom=len(run.up) - 1,
            converged=not reasons,
            reasons=tuple(reasons),
            n_sweeps=run.n_sweeps,
            ladder=run.ladder,
            diagnostics={
                **diagnostics,
                "delta_std_error": estimate.delta,
                "jackknife_std_error": estimate.jackknife,
                "lower_bound": log_partition - np.log(20),
            },
        )


def judge_weights(log_weights) -> tuple[dict, list[str]]:
    """Diagnostics of the log weights (n,) and the alarms that they raise."""
    n = len(log_weights)
    effective, shape = effective_sample_size(log_weights), pareto_shape(log_weights)
    reasons = []
    if shape > _MAX_SHAPE:
        reasons.append(
            f"the weights have a heavy tail (Pareto shape {shape:.2f} > {_MAX_SHAPE}): raise n_temperatures or n_chains"
        )
    if effective < min(_MIN_EFFECTIVE, n / 4):
        reasons.append(f"only {effective:.1f} of {n} weights count: raise n_temperatures or n_chains")
    return {"log_weights": log_weights, "effective_sample_size": effective, "pareto_shape": shape}, reasons
