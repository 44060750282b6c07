"""ImportanceSampling: the mean weight of independent draws from the base, or from a proposal."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from sklpf._utils.random import Stream, stream_key
from sklpf._utils.sklearn import at_least
from sklpf.partition._ais import AnnealingRun, annealing_runs
from sklpf.partition._base import SamplingEstimator
from sklpf.partition._options import SAMPLING, TUNE
from sklpf.partition._proposal import base_draws, proposing
from sklpf.partition._result import PartitionResult
from sklpf.partition.checks._alarms import weight_alarms, weight_diagnostics
from sklpf.paths import Continuous, GibbsMove
from sklpf.paths._capabilities import has
from sklpf.programs._draws import draws_of
from sklpf.programs._plan import Plan, plan_runs
from sklpf.reweighting import mean_weight

_DRAWS = 1  # random stream
_TWO_LEVELS = np.array([0.0, 1.0])


@dataclass(frozen=True, repr=False, kw_only=True)
class ImportanceRun(AnnealingRun):
    """An `AnnealingRun` without levels between base and target; without reverse chains where the
    path has no moves.
    """

    remedy = "give a proposal (or a base) that is nearer to the target, or anneal with AIS"

    def _read(self) -> PartitionResult:
        if self.down is not None:
            return super()._read()
        n = len(self.up)
        estimate = mean_weight(self.up)
        diagnostics = weight_diagnostics(self.up)
        return self.conclude(
            self.base_log_partition + estimate.log_mean,
            estimate.std_error,
            n - 1,
            alarms=weight_alarms(n, diagnostics, self.remedy),
            diagnostics=diagnostics,
            statement="lower bound",
        )


@dataclass(eq=False, repr=False)
class ImportanceSampling(SamplingEstimator):
    """Importance sampling from the path's base or from a proposal (Bishop 2006, eqs. 11.19 and
    11.72).

    log Z is the log of the mean of f(x) / q(x) over independent draws x from q: `AIS` without
    levels between. Use it if q is close to the target. For most models it is not, and the estimate
    is then tens of nats too low. To detect this, chains are run at the target, and their weights f
    / q are compared with those of the draws.

    Parameters
    ----------
    n_samples : int, default=10000
        Independent draws n.
    proposal : object or None, default=None
        The distribution to draw from instead of the base of a `GeometricPath`, with the same
        requirements: a `Gaussian`, a `StudentT`, a distribution of scipy.stats, or any object with
        ``sample(n, rng)``, ``log_density(x)``, ``n_dimensions``, ``normalised``, ``center`` and
        ``scale``. None draws from the base.
    transition : Transition or None, default=None
        The move of the chains at the target, as in `AIS`.
    checkpoint, checks, random_state, n_jobs, verbose
        As in `AIS`.

    Attributes
    ----------
    log_partition_, log_partition_std_error_, log_partition_interval_, converged_, result_, run_
        See `AIS`. On a path without moves the result is labelled a "lower bound", which it is in
        expectation, since there is no check of what the draws have missed.

    Raises
    ------
    TypeError
        If `proposal` is not a distribution, or the path is not on R^d.
    ValueError
        If the proposal has other dimensions than the path, or no mass at a point where the target
        has.

    Notes
    -----
    A quarter as many chains start at draws in proportion to their weights and make 100 moves at the
    target. Not converged if the effective sample size of their weights, or of those of the draws,
    is below 25 (n / 4 if that is less, or 5); and for the other reasons of `AIS`. A mode that no
    draw has met raises an alarm only if the path knows the mass there (`LocalMasses`).

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import Gaussian, GeometricPath, StudentT
    >>> from sklpf.partition import ImportanceSampling
    >>> path = GeometricPath(
    ...     lambda x: -np.sum(x**4, axis=1), base=Gaussian(np.zeros(2), 1.0)
    ... )
    >>> sampling = ImportanceSampling(
    ...     proposal=StudentT(np.zeros(2), 0.4, df=5), random_state=0
    ... ).fit(path)
    >>> bool(abs(sampling.log_partition_ - 2 * np.log(1.8128)) < 0.05)
    True
    """

    n_samples: int = 10_000
    _: KW_ONLY
    proposal: Any = None

    _parameter_constraints = {
        **SAMPLING,
        "n_samples": [at_least(2)],
        "proposal": "no_validation",
    }

    _run_class = ImportanceRun

    def _as_path(self, path):
        return proposing(super()._as_path(path), self.proposal)

    def _plans(self, paths, seeds, n_chains) -> list[Plan]:
        move = self._transition(paths[0])
        return plan_runs(paths, move, _TWO_LEVELS, 2, n_chains, seeds, TUNE)

    def _sample(self, path, seed) -> AnnealingRun:
        if self.transition is not None or has(path, GibbsMove) or has(path, Continuous):
            return annealing_runs(self, [path], self.n_samples, [seed])[0]
        draws = base_draws(
            path, self.n_samples, Stream(stream_key(seed, _DRAWS)), "ImportanceSampling"
        )
        return ImportanceRun(
            ladder=_TWO_LEVELS,
            base_log_partition=draws.base_log_partition,
            draws=draws_of(path, draws.state, draws.log_weights, np.arange(self.n_samples)),
            up=draws.log_weights,
        )
