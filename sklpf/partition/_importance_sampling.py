"""ImportanceSampling: the mean weight of independent draws from the base, or from a proposal."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np

from sklpf._utils.numbers import Array
from sklpf._utils.random import Stream, stream_key
from sklpf._utils.sklearn import at_least
from sklpf.partition._ais import AnnealingRun, annealing_runs
from sklpf.partition._base import SAMPLING, SamplingEstimator
from sklpf.partition._result import PartitionResult
from sklpf.partition.checks._beside import weight_alarms, weight_diagnostics
from sklpf.paths import Continuous, DataRows, GeometricPath, GibbsMove
from sklpf.paths._as_base import as_base
from sklpf.paths._capabilities import has, require_base
from sklpf.programs._draws import draws_of
from sklpf.programs._plan import check_finite
from sklpf.reweighting import mean_weight
from sklpf.transitions._pilot import reflect

_DRAWS = 1  # random stream
_TWO_LEVELS = np.array([0.0, 1.0])
_N_COVER = 1000  # draws of which the neighbourhood is looked at


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
    ladder = _TWO_LEVELS
    n_temperatures = 2

    def _as_path(self, path):
        return proposing(super()._as_path(path), self.proposal)

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


class BaseDraws(NamedTuple):
    """Draws x from the base, log f_1(x) - log f_0(x) of each (n,), and log Z_0."""

    state: Any
    log_weights: Array
    base_log_partition: float


def base_draws(path: Any, n: int, stream: Stream, who: str) -> BaseDraws:
    """Return n draws from the base with their weights."""
    base_log_partition = require_base(path, who)
    path = path.with_ladder([0.0, 1.0])
    state = path.sample_base(n, stream)
    vectors = path.log_f_ladder(state)
    log_weights = check_finite(vectors[:, 1] - vectors[:, 0], allow_zero=path.has_boundary)
    return BaseDraws(state, log_weights, base_log_partition)


def check_cover(path: Any, state: Any, stream: Stream) -> None:
    """Raise ValueError if the target of a `GeometricPath` has mass next to the base's draws where
    the base has none: draws alone can't show it.
    """
    if not isinstance(path, GeometricPath):
        return
    position = path.position(state)[:_N_COVER]
    moves = np.asarray(path.base.scale) * stream.generator().standard_normal(position.shape)
    path.at(reflect(path.bounds, position + moves, moves)[0])


def proposing(path: Any, proposal: Any) -> Any:
    """Return the path to the same density from a proposal in the place of its base.

    Raises
    ------
    TypeError
        If the path is not to a density on R^d, or the proposal is none.
    ValueError
        If the proposal doesn't fit the path.
    """
    if proposal is None:
        return path
    if not isinstance(path, GeometricPath) or has(path, DataRows):
        # a model's path has coordinates of its own
        raise TypeError(
            f"proposal must be None for a {type(path).__name__}: proposals are for a GeometricPath,"
            " a density on R^d; give the path or the model another base"
        )
    try:
        base = as_base(proposal, path.n_dimensions)
    except (TypeError, ValueError) as error:
        raise type(error)(f"proposal can't be used: {error}") from error
    return path.with_base(base)
