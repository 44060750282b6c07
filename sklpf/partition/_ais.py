"""AIS: annealed importance sampling."""

from __future__ import annotations

import functools
import os
from numbers import Integral
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from sklpf._parallel import run_segments
from sklpf._random import Stream, stream_key
from sklpf._sklearn import Interval, StrOptions
from sklpf.partition._base import PartitionEstimator, check_base, equal_blocks, segments
from sklpf.partition._result import PartitionResult
from sklpf.paths import LADDERS, make_ladder
from sklpf.paths._ladders import respace
from sklpf.transitions import Transition
from sklpf.uncertainty import log_mean_exp, pareto_shape

_PILOT, _MAIN = 0, 1  # stages: each has its own random stream
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
    weights : {"marginal", "joint"}, default="marginal"
        For models with latent variables: whether these are summed out of the weights (less variance, same chain).
    base : {"data", "uniform"} or array-like, default="data"
        The model's base: its (smoothed) data marginals, the uniform distribution or given means. Ignored for a path.
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

    _parameter_constraints = {
        "n_chains": [Interval(Integral, 2, None, closed="left")],
        "n_temperatures": [Interval(Integral, 2, None, closed="left")],
        "ladder": [StrOptions({*LADDERS, "adaptive"}), "array-like"],
        "weights": [StrOptions({"marginal", "joint"})],
        "base": [StrOptions({"data", "uniform"}), "array-like"],
        "transition": [Transition, None],
        "checkpoint": [str, os.PathLike, None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        n_chains: int = 100,
        n_temperatures: int = 1000,
        *,
        ladder: str | ArrayLike = "linear",
        weights: Literal["marginal", "joint"] = "marginal",
        base: Literal["data", "uniform"] | ArrayLike = "data",
        transition: Transition | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
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

    def _estimate(self, path, seed) -> PartitionResult:
        base_log_partition = check_base(path, "AIS")
        checkpoint, transition = self._checkpoint(path, seed), self._transition(path)
        path, n_pilot = plan_ladder(path, transition, self.ladder, self.n_temperatures, self.n_chains, seed)
        log_weights = anneal_from_base(
            path, transition, self.n_chains, stream_key(seed, _MAIN), self.n_jobs, checkpoint
        )
        n_sweeps = n_pilot + self.n_chains * (len(path.ladder) - 1)
        return combine(log_weights, base_log_partition, path.ladder, n_sweeps)


def plan_ladder(path, transition, ladder, n_temperatures, n_chains, seed):
    """Fix the ladder; returns the path on it and the sweeps that this took."""
    if not isinstance(ladder, str) or ladder != "adaptive":
        path = path.with_ladder(make_ladder(ladder, n_temperatures))
        if path.ladder[0] != 0 or path.ladder[-1] != 1:
            raise ValueError("ladder must begin at 0 (the base, which is sampled) and end at 1 (the target)")
        return path, 0
    n_levels = max(2, n_temperatures // 20)
    path = path.with_ladder(make_ladder("linear", n_levels))
    spread = pilot_spread(path, transition, n_chains, stream_key(seed, _PILOT))
    return path.with_ladder(respace(path.ladder, spread, n_temperatures)), n_chains * (n_levels - 1)


def pilot_spread(path, transition, n_chains, key):
    """Standard deviation over chains of log f_(k+1) - log f_k during one annealing pass, shape (K - 1,)."""
    stream = Stream(key)
    state = path.sample_base(n_chains, stream)
    spread = np.empty(len(path.ladder) - 1)
    for k in range(len(spread)):
        levels = np.full((2, n_chains), [[k], [k + 1]])
        with np.errstate(invalid="ignore"):
            state, increments = transition.anneal(path, state, levels, stream.at(k + 1))
        _check_finite(increments)
        spread[k] = increments.std()
    return spread


def anneal_from_base(path, transition, n_chains, key, n_jobs=None, checkpoint=None):
    """Log weights (n_chains,) of chains that go up the whole ladder from exact base draws."""
    start = functools.partial(_start, path, key)
    return anneal(path, transition, start, n_chains, key, n_jobs, checkpoint)


def anneal(path, transition, start, n_chains, key, n_jobs=None, checkpoint=None, reverse=False):
    """Log weights (n_chains,) of chains that go through the whole ladder: up, or down if `reverse`.

    start(first, n) returns the state of the chains first, …, first + n - 1; sweep 0 of the stream is its own.
    """
    blocks = equal_blocks(n_chains, largest=32)
    first = np.concatenate([[0], np.cumsum(blocks)])
    bounds = segments(len(path.ladder) - 1, path.n_moves_per_segment)
    carries = run_segments(
        functools.partial(_begin, start, blocks, first),
        functools.partial(_advance, path, transition, key, first, bounds, reverse),
        len(blocks),
        len(bounds) - 1,
        n_jobs=n_jobs,
        checkpoint=checkpoint,
        stage="reverse" if reverse else "anneal",
    )
    return np.concatenate([log_weights for _, log_weights in carries])


def _start(path, key, first, n):
    return path.sample_base(n, Stream(key, first))


def _begin(start, blocks, first, block):
    return start(int(first[block]), blocks[block]), np.zeros(blocks[block])


def _advance(path, transition, key, first, bounds, reverse, block, segment, carry):
    state, log_weights = carry
    passed = np.arange(bounds[segment], bounds[segment + 1] + 1)
    order = len(path.ladder) - 1 - passed if reverse else passed
    levels = np.repeat(order[:, np.newaxis], len(log_weights), axis=1)
    stream = Stream(key, int(first[block]), bounds[segment] + 1)
    with np.errstate(invalid="ignore"):  # inf - inf: reported here, after this segment
        state, increments = transition.anneal(path, state, levels, stream, reverse)
    _check_finite(increments)
    return state, log_weights + increments


def _check_finite(log_weights):
    if not np.all(np.isfinite(log_weights)):
        raise ValueError("log_f gave values that are not finite; check the model's parameters and the path's log_f")


def combine(log_weights, base_log_partition, ladder, n_sweeps) -> PartitionResult:
    """The estimate, its errors and its alarms from the log weights."""
    diagnostics, reasons = judge_weights(log_weights)
    n = len(log_weights)
    log_mean = float(log_mean_exp(log_weights))
    relative = np.exp(log_weights - log_mean)
    delta = float(relative.std(ddof=1) / np.sqrt(n))
    without = np.log(np.maximum(n - relative, np.finfo(float).tiny) / (n - 1))  # log mean of the others, less log_mean
    jack = float(np.sqrt((n - 1) / n * np.sum((without - without.mean()) ** 2)))
    log_partition = base_log_partition + log_mean
    return PartitionResult(
        method="AIS",
        log_partition=log_partition,
        std_error=max(delta, jack),
        degrees_of_freedom=n - 1,
        converged=not reasons,
        reasons=tuple(reasons),
        n_sweeps=n_sweeps,
        ladder=ladder,
        diagnostics={
            **diagnostics,
            "delta_std_error": delta,
            "jackknife_std_error": jack,
            "lower_bound": log_partition - np.log(20),
        },
    )


def judge_weights(log_weights) -> tuple[dict, list[str]]:
    """Diagnostics of the log weights (n,) and the alarms that they raise."""
    n = len(log_weights)
    effective = float(np.exp(2 * logsumexp(log_weights) - logsumexp(2 * log_weights)))
    shape = pareto_shape(log_weights)
    reasons = []
    if shape > _MAX_SHAPE:
        reasons.append(
            f"the weights have a heavy tail (Pareto shape {shape:.2f} > {_MAX_SHAPE}): raise n_temperatures or n_chains"
        )
    if effective < min(_MIN_EFFECTIVE, n / 4):
        reasons.append(f"only {effective:.1f} of {n} weights count: raise n_temperatures or n_chains")
    return {"log_weights": log_weights, "effective_sample_size": effective, "pareto_shape": shape}, reasons
