"""RAISE: annealing from the target down to the base."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse

from sklpf._utils.numbers import Array, as_float64
from sklpf._utils.random import Stream, stream_key
from sklpf._utils.sklearn import at_least
from sklpf._utils.warnings import Alarm
from sklpf.partition._base import ANNEALING, SamplingEstimator
from sklpf.partition._exact import MAX_LOG2_STATES, Exact
from sklpf.partition._parallel_tempering import ParallelTempering
from sklpf.partition._result import WEIGHTS, Diagnostic, PartitionResult
from sklpf.partition._run import Run
from sklpf.partition.checks._beside import weight_alarms, weight_diagnostics
from sklpf.paths import Continuous, DataStarts, EnumeratedDraws, TargetDraws
from sklpf.paths._base import map_state, n_chains
from sklpf.paths._capabilities import has, require_base
from sklpf.programs._annealing import anneal_down
from sklpf.uncertainty import jackknife, log_mean_exp

_STARTS, _DOWN = 2, 3  # stages; those of AIS are 0 and 1
STATEMENTS = {
    "exact": "upper bound",
    "tempered": "approximate",
    "given": "conservative, not a bound",
}
_NO_ESTIMATE = Alarm(
    "inexact-starts",
    "the starts are not exact samples of the model, so that the number is neither a bound nor an"
    " estimate",
)
_REMEDY = "raise n_temperatures or n_chains_per_start"


@dataclass(frozen=True, repr=False, kw_only=True)
class ReverseRun(Run):
    """Log weights of chains from the target to the base.

    Attributes
    ----------
    down : ndarray of shape (n_starts, n_chains_per_start)
        Log weights of the reverse chains, in nats: from exact starts the mean weight is unbiased
        for Z_0 / Z.
    starts : {"exact", "tempered", "given"}
        Where the chains started.
    """

    described = WEIGHTS | {
        "log_weights": Diagnostic(dimensions=("start", "chain"), per_chain=True),
        "log_partition_by_start": Diagnostic(dimensions=("start",), per_chain=True),
    }

    down: Array
    starts: str

    def _read(self) -> PartitionResult:
        by_start = log_mean_exp(self.down, axis=1)

        def estimate(keep):
            log_mean = (
                by_start[keep].mean() if self.starts == "given" else log_mean_exp(by_start[keep])
            )
            return self.base_log_partition - log_mean

        log_partition, std_error = jackknife(estimate, len(self.down))
        diagnostics = {
            **weight_diagnostics(self.down.ravel()),
            "starts": self.starts,
            "log_weights": self.down,
            "log_partition_by_start": self.base_log_partition - by_start,
        }
        result = self.conclude(
            log_partition,
            std_error,
            len(self.down) - 1,
            alarms=weight_alarms(self.down.size, diagnostics, _REMEDY),
            diagnostics=diagnostics,
            statement=STATEMENTS[self.starts],
        )
        is_bound = self.starts == "exact"
        return result if is_bound else result.no_estimate(result.statement, _NO_ESTIMATE)


@dataclass(eq=False, repr=False)
class RAISE(SamplingEstimator):
    """Reverse annealed importance sampling (Burda, Grosse & Salakhutdinov 2015).

    Chains start at samples of the target and move down the ladder. Each move is the time reversal
    of that of `AIS`. The weight of a chain is the product of the ratios f_(k-1)(x) / f_k(x) on its
    way. From exact samples of the model the mean weight is unbiased for Z_0 / Z, so that minus its
    log bounds log Z from above in expectation.

    Parameters
    ----------
    n_starts : int, default=10
        Samples that are drawn from the model. Ignored where `starts` is given.
    n_chains_per_start : int, default=10
        Chains from every start, at least 10: with fewer, log Z from data is too large, for any
        number of starts.
    n_temperatures : int, default=1000
        Levels K of the ladder: each chain makes K - 1 sweeps.
    starts : None, array-like of shape (n_starts, n_features) or state, default=None
        Where the chains start. None draws from the model: exactly if the path has a method
        ``sample_target(n, stream)`` or can be enumerated (at most 25 units), else by
        `ParallelTempering`. Given rows, such as held-out data, are all used. A path without
        ``state_from_rows`` takes its own states.
    ladder, transition, checkpoint, checks, random_state, n_jobs, verbose
        As in `AIS`.

    Attributes
    ----------
    log_partition_, log_partition_std_error_, log_partition_interval_, converged_, result_
        See `PartitionEstimator`. The kind of result depends on the starts; ``result_.statement``
        says which it is:

        - exact: "upper bound", log Z_0 - log mean w over all chains. log Z lies above it by more
          than t nats with a probability of at most e^-t, for any behaviour of the chains; the
          interval is one-sided.
        - tempered: "approximate", the same number. It is no bound, and there is no interval.
        - given: "conservative, not a bound", log Z_0 - mean over the starts of log mean w (the
          chains of one start). The mean of log f minus it over the same rows is, in expectation, at
          most their log-likelihood under the model that annealing draws from. As a statement about
          log Z it may err either way: no interval.

        The standard error is a jackknife over the starts. ``result_.diagnostics`` holds ``starts``
        ("exact", "tempered" or "given"), ``log_weights`` (n_starts, n_chains_per_start),
        ``log_partition_by_start`` (n_starts,), ``effective_sample_size`` and ``pareto_shape``.

    Notes
    -----
    Not converged if the effective sample size is below 25 (a quarter of the chains if that is
    less), and never if the number is no bound. ``result_.n_sweeps`` does not include the sweeps
    that drew the starts. `BDMC` runs both directions and is the better estimate of log Z.

    A path of your own needs the move (for a Gibbs sweep that is not reversible with its argument
    ``reverse``, see `Gibbs`). A path with latent variables defines ``complete(state, level,
    stream)``, which draws what a start leaves open from its conditional distribution: each chain of
    a start then has its own draw.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import BernoulliRBM
    >>> from sklpf.partition import RAISE
    >>> rng = np.random.default_rng(0)
    >>> rbm = BernoulliRBM.from_parameters(
    ...     rng.normal(size=(4, 6)), np.zeros(6), np.zeros(4)
    ... )
    >>> reverse = RAISE(random_state=0).fit(rbm)
    >>> reverse.result_.statement
    'upper bound'
    """

    n_starts: int = 10
    n_chains_per_start: int = 10
    n_temperatures: int = 1000
    _: KW_ONLY
    starts: Any = None
    ladder: str | ArrayLike = "linear"

    _parameter_constraints = {
        **ANNEALING,
        "n_starts": [at_least(2)],
        "n_chains_per_start": [at_least(10)],
        "starts": [None, "array-like", "sparse matrix"],
    }

    _run_class = ReverseRun

    def _sample(self, path, seed) -> ReverseRun:
        base_log_partition = require_base(path, "RAISE")
        checkpoint = self._checkpoint(path, seed)
        n_pilot_chains = self.n_starts * self.n_chains_per_start
        plan = self._plan(path, seed, n_pilot_chains)
        starts, kind = find_starts(self, plan.path, self.n_starts, seed)
        m = self.n_chains_per_start
        down = anneal_down([plan], [starts], m, (_DOWN,), self.n_jobs, checkpoint)[0]
        n_sweeps = plan.n_sweeps + down.size * (len(plan.path.ladder) - 1)
        return ReverseRun(
            ladder=plan.path.ladder,
            base_log_partition=base_log_partition,
            n_sweeps=n_sweeps,
            down=down,
            starts=kind,
        )


def find_starts(estimator: Any, path, n: int, seed: int) -> tuple[Any, str]:
    """The state of n chains at the target, or at `estimator.starts`, and what it is: exact,
    tempered or given.
    """
    if estimator.starts is not None:
        return _given_starts(path, estimator.starts), "given"
    key = stream_key(seed, _STARTS)
    if has(path, TargetDraws):
        return path.sample_target(n, Stream(key)), "exact"
    rng = np.random.default_rng(key)
    if has(path, EnumeratedDraws) and path.log2_states <= MAX_LOG2_STATES:
        return Exact(n_jobs=estimator.n_jobs).sample(path, n, rng), "exact"
    tempering = ParallelTempering(
        transition=estimator.transition, checkpoint=estimator.checkpoint, n_jobs=estimator.n_jobs
    )
    return tempering.sample(path, n, rng), "tempered"


def _given_starts(path, starts):
    rows = starts.toarray() if issparse(starts) else starts
    if not isinstance(rows, tuple) and has(path, DataStarts):
        try:
            state = path.state_from_rows(rows)
        except ValueError as error:
            raise ValueError(f"starts can't be used: {error}") from error
    elif not isinstance(rows, tuple) and has(path, Continuous):
        points = as_float64(rows, "starts")
        if points.ndim != 2 or points.shape[1] != path.n_dimensions:
            raise ValueError(
                f"starts must be points (n, {path.n_dimensions}), got shape {points.shape}"
            )
        state = path.at(points)
    else:
        state = map_state(np.atleast_1d, rows)
    n = n_chains(state)
    if n < 2:
        raise ValueError(f"starts must hold at least 2 rows for an error bar, got {n}")
    impossible = ~np.isfinite(path.log_f(state, np.full(n, len(path.ladder) - 1)))
    if impossible.any():
        raise ValueError(
            f"starts must be possible under the model: log f of row {impossible.argmax()} is not"
            " finite"
        )
    return state
