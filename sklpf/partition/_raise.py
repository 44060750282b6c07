"""RAISE: annealing from the target down to the base."""

from __future__ import annotations

import functools
import os
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse

from sklpf._random import Stream, stream_key
from sklpf._sklearn import Interval
from sklpf.partition._ais import AIS, anneal, judge_weights, plan_ladder
from sklpf.partition._base import PartitionEstimator, check_base
from sklpf.partition._exact import MAX_UNITS, Exact
from sklpf.partition._parallel_tempering import ParallelTempering
from sklpf.partition._result import PartitionResult
from sklpf.paths._base import map_state, n_chains
from sklpf.transitions import Transition
from sklpf.uncertainty import jackknife, log_mean_exp

_STARTS, _DOWN = 2, 3  # stages; those of AIS are 0 and 1
_STATEMENTS = {"exact": "upper bound", "tempered": "approximate", "given": "conservative, not a bound"}


class RAISE(PartitionEstimator):
    """Reverse annealed importance sampling (Burda, Grosse & Salakhutdinov 2015).

    Chains start at samples of the target and move down the ladder, each move the time reversal of the one that `AIS`
    makes; a chain multiplies the ratios f_(k-1)(x) / f_k(x) on its way. From exact samples of the model the
    mean weight is unbiased for Z_0 / Z, so that minus its log bounds log Z from above in expectation.

    Parameters
    ----------
    n_starts : int, default=10
        Samples that are drawn from the model. Ignored where `starts` is given.
    n_chains_per_start : int, default=10
        Chains from every start, at least 10: with fewer, starts from data inflate log Z however many there are.
    n_temperatures : int, default=1000
        Levels K of the ladder: each chain makes K - 1 sweeps.
    starts : None, array-like of shape (n_starts, n_features) or state, default=None
        Where the chains start. None draws from the model: exactly if the path has a method
        ``sample_target(n, stream)`` or can be enumerated (at most 25 units), else by `ParallelTempering`.
        Given rows, such as held-out data, are all used. A path without ``state_from_visible`` takes its own states.
    ladder, weights, base, transition, checkpoint, random_state, n_jobs
        As in `AIS`.

    Attributes
    ----------
    log_partition_, log_partition_std_error_, log_partition_interval_, converged_, result_
        See `PartitionEstimator`. What is reported depends on the starts, and ``result_.statement`` says it:

        - exact: "upper bound", log Z_0 - log mean w over all chains. log Z lies above it by more than t nats with a
          probability of at most e^-t, whatever the chains do; the interval is one-sided.
        - tempered: "approximate", the same number. It is no bound, and there is no interval.
        - given: "conservative, not a bound", log Z_0 - mean over the starts of log mean w (the chains of one
          start). The mean of log f minus it over the same rows is, in expectation, at most their log-likelihood
          under the model that annealing draws from. As a statement about log Z it may err either way: no interval.

        The standard error is a jackknife over the starts. ``result_.diagnostics`` holds ``starts`` ("exact",
        "tempered" or "given"), ``log_weights`` (n_starts, n_chains_per_start), ``log_partition_by_start`` (n_starts,),
        ``effective_sample_size`` and ``pareto_shape``.

    Notes
    -----
    Alarms are those of `AIS`. ``result_.n_sweeps`` leaves out what drawing the starts took. `BDMC` runs both
    directions and is the better estimate of log Z.

    A path of your own needs the move (for a Gibbs sweep that is not reversible with its argument ``reverse``, see
    `Gibbs`). A path with latent variables defines ``complete(state, level, stream)``, which draws what a start leaves
    open from its conditional distribution: each chain of a start then has its own draw.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import RAISE, BernoulliRBM
    >>> rng = np.random.default_rng(0)
    >>> rbm = BernoulliRBM.from_parameters(rng.normal(size=(4, 6)), np.zeros(6), np.zeros(4))
    >>> reverse = RAISE(random_state=0).fit(rbm)
    >>> reverse.result_.statement
    'upper bound'
    """

    _parameter_constraints = {
        **{name: rule for name, rule in AIS._parameter_constraints.items() if name != "n_chains"},
        "n_starts": [Interval(Integral, 2, None, closed="left")],
        "n_chains_per_start": [Interval(Integral, 10, None, closed="left")],
        "starts": [None, "array-like", "sparse matrix"],
    }

    def __init__(
        self,
        n_starts: int = 10,
        n_chains_per_start: int = 10,
        n_temperatures: int = 1000,
        *,
        starts: Any = None,
        ladder: str | ArrayLike = "linear",
        weights: Literal["marginal", "joint"] = "marginal",
        base: Literal["data", "uniform"] | ArrayLike = "data",
        transition: Transition | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ):
        self.n_starts = n_starts
        self.n_chains_per_start = n_chains_per_start
        self.n_temperatures = n_temperatures
        self.starts = starts
        self.ladder = ladder
        self.weights = weights
        self.base = base
        self.transition = transition
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _estimate(self, path, seed) -> PartitionResult:
        base_log_partition = check_base(path, "RAISE")
        checkpoint, transition = self._checkpoint(path, seed), self._transition(path)
        n_pilot_chains = self.n_starts * self.n_chains_per_start
        path, n_pilot = plan_ladder(path, transition, self.ladder, self.n_temperatures, n_pilot_chains, seed)
        starts, kind = find_starts(self, path, self.n_starts, seed)
        log_weights = anneal_from_starts(
            path, transition, starts, self.n_chains_per_start, stream_key(seed, _DOWN), self.n_jobs, checkpoint
        )
        n_sweeps = n_pilot + log_weights.size * (len(path.ladder) - 1)
        return combine_reverse(log_weights, base_log_partition, kind, path.ladder, n_sweeps)


def find_starts(estimator: PartitionEstimator, path, n: int, seed: int) -> tuple[Any, str]:
    """The state of n chains at the target, or at `estimator.starts`, and what it is: exact, tempered or given."""
    if estimator.starts is not None:
        return _given_starts(path, estimator.starts), "given"
    key = stream_key(seed, _STARTS)
    if hasattr(path, "sample_target"):
        return path.sample_target(n, Stream(key)), "exact"
    rng = np.random.default_rng(key)
    if hasattr(path, "sample_enumerated") and path.n_enumerable <= MAX_UNITS:
        return path.state_from_visible(Exact(n_jobs=estimator.n_jobs).sample(path, n, rng)), "exact"
    tempering = ParallelTempering(
        transition=estimator.transition, checkpoint=estimator.checkpoint, n_jobs=estimator.n_jobs
    )
    return tempering.sample(path, n, rng), "tempered"


def _given_starts(path, starts):
    rows = starts.toarray() if issparse(starts) else starts
    if not isinstance(rows, tuple) and hasattr(path, "state_from_visible"):
        try:
            state = path.state_from_visible(rows)
        except ValueError as error:
            raise ValueError(f"starts can't be used: {error}") from error
    else:
        state = map_state(np.asarray, rows)
    n = n_chains(state)
    if n < 2:
        raise ValueError(f"starts must hold at least 2 rows for an error bar, got {n}")
    impossible = ~np.isfinite(path.log_f(state, np.full(n, len(path.ladder) - 1)))
    if impossible.any():
        raise ValueError(f"starts must be possible under the model: log f of row {impossible.argmax()} is not finite")
    return state


def anneal_from_starts(path, transition, starts, n_chains_per_start, key, n_jobs=None, checkpoint=None):
    """Log weights (n_starts, n_chains_per_start) of chains that go down the whole ladder."""
    start = functools.partial(_start, path, key, starts, n_chains_per_start)
    n = n_chains(starts) * n_chains_per_start
    log_weights = anneal(path, transition, start, n, key, n_jobs, checkpoint, reverse=True)
    return log_weights.reshape(-1, n_chains_per_start)


def _start(path, key, starts, n_chains_per_start, first, n):
    state = path.take(starts, (first + np.arange(n)) // n_chains_per_start)
    if hasattr(path, "complete"):
        return path.complete(state, len(path.ladder) - 1, Stream(key, first))
    return state


def combine_reverse(log_weights, base_log_partition, kind, ladder, n_sweeps) -> PartitionResult:
    """The estimate and its jackknife error from the log weights (n_starts, n_chains_per_start)."""
    diagnostics, reasons = judge_weights(log_weights.ravel())
    by_start = log_mean_exp(log_weights, axis=1)

    def estimate(keep):
        return base_log_partition - (by_start[keep].mean() if kind == "given" else log_mean_exp(by_start[keep]))

    log_partition, std_error = jackknife(estimate, len(log_weights))
    return PartitionResult(
        method="RAISE",
        log_partition=float(log_partition),
        std_error=float(std_error),
        degrees_of_freedom=len(log_weights) - 1,
        statement=_STATEMENTS[kind],
        converged=not reasons,
        reasons=tuple(reasons),
        n_sweeps=n_sweeps,
        ladder=ladder,
        diagnostics={
            **diagnostics,
            "starts": kind,
            "log_weights": log_weights,
            "log_partition_by_start": base_log_partition - by_start,
        },
    )
