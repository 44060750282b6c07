"""RAISE, annealing from the target down to the base, and BDMC, which anneals both ways."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from scipy.stats import t as student_t

from sklpf._utils.numbers import Array
from sklpf._utils.random import Stream, seeded
from sklpf._utils.validation import as_float64, at_least
from sklpf._utils.warnings import Alarm
from sklpf.partition._base import ANNEALING, SamplingEstimator
from sklpf.partition._result import PartitionResult, Run, weight_diagnostics
from sklpf.partition.alarms import (
    raised,
    threshold,
    weight_alarms,
)
from sklpf.partition.exact import MAX_LOG2_STATES, Exact
from sklpf.partition.levels import ParallelTempering
from sklpf.partition.weights._ais import anneal_both_ways, fields_of_run
from sklpf.paths import has, map_state, n_chains, require_base
from sklpf.programs import anneal_reverse
from sklpf.reweighting import bar, overlap
from sklpf.uncertainty import FALSE_ALARM, jackknife, log_mean_exp, mean_weight

if TYPE_CHECKING:
    from sklpf.partition._base import PartitionEstimator

STATEMENTS = {
    "exact": "upper bound",
    "tempered": "approximate",
    "given": "conservative, not a bound",
}


@dataclass(frozen=True, repr=False, kw_only=True)
class ReverseRun(Run):
    """Log weights of chains from the target to the base.

    Attributes
    ----------
    reverse : ndarray of shape (n_starts, n_chains_per_start)
        Log weights of the reverse chains, in nats: from exact starts the mean weight is unbiased
        for Z_0 / Z.
    starts : {"exact", "tempered", "given"}
        Where the chains started.
    """

    family = "reverse"

    reverse: Array
    starts: str

    def _read(self) -> PartitionResult:
        by_start = log_mean_exp(self.reverse, axis=1)

        def estimate(keep):
            log_mean = (
                by_start[keep].mean() if self.starts == "given" else log_mean_exp(by_start[keep])
            )
            return self.base_log_partition - log_mean

        log_partition, std_error = jackknife(estimate, len(self.reverse))
        diagnostics = {
            **weight_diagnostics(self.reverse.ravel()),
            "starts": self.starts,
            "log_weights": self.reverse,
            "log_partition_by_start": self.base_log_partition - by_start,
        }
        result = self.conclude(
            log_partition,
            std_error,
            len(self.reverse) - 1,
            alarms=weight_alarms(self.reverse.size, diagnostics, self.family),
            diagnostics=diagnostics,
            statement=STATEMENTS[self.starts],
        )
        if self.starts == "exact":
            return result
        return result.no_estimate(result.statement, raised("inexact-starts", "of a bound"))


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
    ladder, transition, checkpoint, checks, max_evaluations, max_seconds
        As in `AIS`.
    random_state, n_jobs, verbose
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
    >>> weights = rng.normal(size=(4, 6))
    >>> rbm = BernoulliRBM.from_parameters(weights, np.zeros(6), np.zeros(4))
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
    _shortens_ladder = True

    def _sample(self, path, seed) -> ReverseRun:
        base_log_partition = require_base(path, "RAISE")
        checkpoint = self._checkpoint(path, seed)
        n_pilot_chains = self.n_starts * self.n_chains_per_start
        plan = self._plan(path, seed, n_pilot_chains)
        starts, kind = find_starts(self, plan.path, self.n_starts, seed)
        m = self.n_chains_per_start
        reverse = anneal_reverse([plan], [starts], m, "reverse", self.n_jobs, checkpoint)[0]
        n_sweeps = reverse.size * (len(plan.path.ladder) - 1)
        return ReverseRun(
            ladder=plan.path.ladder,
            base_log_partition=base_log_partition,
            sweeps={"chains": n_sweeps, "pilot": plan.n_sweeps},
            reverse=reverse,
            starts=kind,
        )


def find_starts(estimator: PartitionEstimator, path, n: int, seed: int) -> tuple[Any, str]:
    """The state of n chains at the target, or at `estimator.starts`, and what it is: exact,
    tempered or given.
    """
    if estimator.starts is not None:
        return _given_starts(path, estimator.starts), "given"
    key = seeded(seed).of("starts").key
    if has(path, "sample_target"):
        return path.sample_target(n, Stream(key)), "exact"
    rng = np.random.default_rng(key)
    if has(path, "sample_enumerated") and path.log2_states <= MAX_LOG2_STATES:
        return Exact(n_jobs=estimator.n_jobs).sample(path, n, rng), "exact"
    tempering = ParallelTempering(
        transition=estimator.transition, checkpoint=estimator.checkpoint, n_jobs=estimator.n_jobs
    )
    return tempering.sample(path, n, rng), "tempered"


def _given_starts(path, starts):
    rows = starts.toarray() if issparse(starts) else starts
    if not isinstance(rows, tuple) and has(path, "state_from_rows"):
        try:
            state = path.state_from_rows(rows)
        except ValueError as error:
            raise ValueError(f"starts can't be used: {error}") from error
    elif not isinstance(rows, tuple) and has(path, "position"):
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


@dataclass(frozen=True, repr=False, kw_only=True)
class BidirectionalRun(Run):
    """Log weights of forward chains, and of reverse chains from samples of the model.

    Attributes
    ----------
    forward : ndarray of shape (n,)
        Log weights of the chains from the base to the target, in nats: the mean weight is unbiased
        for Z / Z_0.
    reverse : ndarray of shape (n_starts, 1)
        Log weights of the reverse chains, in nats: from exact starts the mean weight is unbiased
        for Z_0 / Z.
    starts : {"exact", "tempered", "given"}
        Where the reverse chains started.
    most_groups : int
        Largest number of groups of chains in a direction, for the jackknife; of `BetweenDraws`
        those of the draws.
    """

    options = ("most_groups",)

    forward: Array
    reverse: Array
    starts: str
    most_groups: int = 100

    def _read(self) -> PartitionResult:
        """The estimate, its jackknife error and the alarms from the log weights of both
        directions.
        """
        forward = self.forward
        reverse = self.reverse.ravel()
        from_base, from_target = mean_weight(forward), mean_weight(reverse)
        log_ratio, error_forward = _jackknife(
            lambda kept: bar(kept, reverse), forward, self.most_groups
        )
        _, error_reverse = _jackknife(lambda kept: bar(forward, kept), reverse, self.most_groups)

        n = min(len(forward), len(reverse))
        degrees = min(n, self.most_groups) - 1
        gap = -from_target.log_mean - from_base.log_mean
        gap_std_error = np.hypot(from_base.std_error, from_target.std_error)
        shared = overlap(forward, reverse, log_ratio)
        alarms = _gap_alarms(gap, gap_std_error, degrees, self.starts == "exact")
        needed = min(threshold("few-effective", "overlapping"), n / 2)
        if shared * n < needed:
            alarms.append(
                raised("few-effective", "both directions", shared=shared * n, n=n, needed=needed)
            )

        result = self.conclude(
            self.base_log_partition + log_ratio,
            np.hypot(error_forward, error_reverse),
            degrees,
            alarms=alarms,
            diagnostics={
                "forward_log_partition": self.base_log_partition + from_base.log_mean,
                "forward_std_error": from_base.std_error,
                "reverse_log_partition": self.base_log_partition - from_target.log_mean,
                "reverse_std_error": from_target.std_error,
                "gap": gap,
                "gap_std_error": gap_std_error,
                "overlap": shared,
                "starts": self.starts,
                "forward_log_weights": forward,
                "reverse_log_weights": reverse,
            },
        )
        if self.starts == "exact":
            return result
        return result.no_estimate("approximate", raised("inexact-starts", "of an estimate"))


@dataclass(eq=False, repr=False)
class BDMC(SamplingEstimator):
    """Bidirectional Monte Carlo (Grosse, Ghahramani & Adams 2015) with Bennett's acceptance ratio.

    `AIS` runs up the ladder and reverse annealing runs down the same one, from independent samples
    of the model. From exact samples the two numbers bound log Z from below and from above in
    expectation; their gap bounds the bias of each. The estimate combines the weights of both
    directions by Bennett's acceptance ratio, which has a smaller error than either.

    Parameters
    ----------
    n_chains : int, default=100
        Forward chains, and reverse chains from as many samples of the model.
    n_temperatures : int, default=1000
        Levels K of the ladder: each chain makes K - 1 sweeps.
    starts : None, array-like of shape (n_starts, n_features) or state, default=None
        Where the reverse chains start, as in `RAISE`; each given row starts one chain.
    ladder, transition, checkpoint, checks, max_evaluations, max_seconds
        As in `AIS`.
    random_state, n_jobs, verbose
        As in `AIS`.

    Attributes
    ----------
    log_partition_, log_partition_std_error_, log_partition_interval_, converged_, result_
        See `PartitionEstimator`. ``result_.statement`` is "estimate" with exact starts (those that
        `RAISE` labels "upper bound") and with others "approximate": such a number has neither a
        standard error nor an interval, and is never converged. The standard error joins a jackknife
        over the chains of each direction (in at most 100 groups), and the interval uses Student t
        with one degree of freedom less than the groups of the smaller direction.
        ``result_.diagnostics`` holds ``forward_log_partition``, ``reverse_log_partition`` and the
        ``forward_std_error`` and ``reverse_std_error`` of these two, ``gap`` (reverse less forward)
        and ``gap_std_error``, ``overlap`` of the two sets of weights (0 to 1), ``starts`` ("exact",
        "tempered" or "given"), ``forward_log_weights``, ``reverse_log_weights``, and
        ``plain_bound`` where the path has one.

    Notes
    -----
    Rows that a model has drawn, with their latent variables (`DecoderModel.simulated_path`), have
    one exact start each. From it chains make K / 4 sweeps at the target (at least 100), before they
    move down the ladder. The mean gap over such rows, ``result_.diagnostics["gap"]`` with
    ``gap_std_error``, says whether settings are good enough for real rows (Wu et al. 2017).

    Not converged if the gap is negative beyond chance (a false alarm in 0.1 % of runs), which shows
    that the starts are not samples of the model; if the weights of the two directions do not
    overlap; and, with starts that are not exact, if the gap exceeds 4 of its standard errors. Moves
    that don't leave their level invariant can bias both directions alike, without a gap:
    `sklpf.testing.check_transition` finds them. Starts from held-out data show modes that forward
    runs never visit. ``result_.n_sweeps`` does not include the sweeps that drew the starts.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import BDMC, BernoulliRBM
    >>> rng = np.random.default_rng(0)
    >>> weights = rng.normal(size=(4, 6))
    >>> rbm = BernoulliRBM.from_parameters(weights, np.zeros(6), np.zeros(4))
    >>> both = BDMC(random_state=0).fit(rbm)
    >>> bool(both.log_partition_std_error_ < 0.05)
    True
    """

    n_chains: int = 100
    n_temperatures: int = 1000
    _: KW_ONLY
    starts: Any = None
    ladder: str | ArrayLike = "linear"

    _parameter_constraints = {
        **ANNEALING,
        "n_chains": [at_least(2)],
        "starts": RAISE._parameter_constraints["starts"],
    }

    _run_class = BidirectionalRun
    _shortens_ladder = True

    def _sample_rows(self, paths, seeds) -> list[BidirectionalRun]:
        known = self.starts is None and has(paths[0], "exact_start")
        n = self.n_chains
        kinds = []

        def starts(plan, forward):
            path = plan.path
            if known:
                state = path.take(path.exact_start(), np.zeros(n, dtype=np.int64))
                kind = "exact"
            else:
                state, kind = find_starts(self, path, n, plan.seed)
            kinds.append(kind)
            return state

        both = anneal_both_ways(self, paths, n, seeds, starts, known)
        return [
            BidirectionalRun(starts=kind, **fields_of_run(*row, known))
            for kind, row in zip(kinds, zip(*both))
        ]


def _jackknife(log_ratio, log_weights, most_groups):
    """Jackknife over chains, or over groups of them where they are many; the error is NaN where one
    of them has all of the weight.
    """
    groups = np.array_split(log_weights, min(len(log_weights), most_groups))

    def estimate(keep):
        kept = np.concatenate([groups[g] for g in keep])
        return log_ratio(kept) if np.any(kept > -np.inf) else np.nan

    return jackknife(estimate, len(groups))


def _gap_alarms(
    gap: float,
    std_error: float,
    degrees: int,
    exact: bool,
    *,
    rounding: float = 1e-6,  # nats
) -> list[Alarm]:
    """Alarms of the gap between the two directions."""
    alarms = []
    if gap < -max(student_t.isf(FALSE_ALARM, degrees) * std_error, rounding):
        cause = "exact" if exact else ""
        alarms.append(raised("directions-disagree", "negative", cause, gap=gap, error=std_error))
    if not exact and gap > max(threshold("directions-disagree", "wide_gap") * std_error, rounding):
        alarms.append(raised("directions-disagree", "wide", "wide", gap=gap, error=std_error))
    return alarms
