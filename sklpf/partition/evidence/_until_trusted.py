"""UntilTrusted: estimators in turn, until one can be trusted."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from itertools import product
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from sklpf._utils.context import Budget, BudgetSpent, current_budget, report, within
from sklpf._utils.random import seeded
from sklpf._utils.validation import POSITIVE
from sklpf._utils.warnings import warn
from sklpf.partition._base import (
    BUDGET,
    SAMPLING,
    PartitionEstimator,
    default_estimator,
    evaluations_of_own_densities,
)
from sklpf.partition._result import PartitionResult, total_cost
from sklpf.partition.alarms import (
    MATERIAL_BOUND,
    misses_tol,
    raised,
    threshold,
    tol_alarms,
)
from sklpf.partition.levels import ParallelTempering
from sklpf.partition.populations import SMC, AdaptiveSMC
from sklpf.partition.weights import (
    AIS,
    HAIS,
    BridgeSampling,
    ImportanceSampling,
    path_and_draws,
    posterior_draws,
)
from sklpf.paths import GeometricPath, defensive, fit_base, has, is_own_density


@dataclass(eq=False, repr=False)
class UntilTrusted(PartitionEstimator):
    """Estimators in turn, each more expensive than the one before, until one can be trusted.

    Parameters
    ----------
    estimators : sequence of PartitionEstimator or None, default=None
        In their order. None chooses by the path:

        - draws are given: `BridgeSampling`, with a Gaussian and with a mixture as proposal, before
          the others;
        - a density on R^d, d up to 20: `ImportanceSampling` with an explored proposal, if no draws
          are given;
        - then, with a gradient and d above 20: `HAIS`, `AdaptiveSMC` with 1000 particles,
          `HAIS` with 10,000 levels, `ParallelTempering` with 16,384 and with 65,536 sweeps;
        - then, for other densities on R^d: `AdaptiveSMC` with 500 and with 2000 particles, and the
          same `ParallelTempering`;
        - other paths: what the model's score takes by default, or `AIS`; `SMC` with 1000 levels;
          and the same `ParallelTempering`.

        Each is tried on ``path.cheaper_path`` first where there is one: for a `BernoulliRBM` with
        `track_trajectory` in inverse temperature, then along training.
    tol : float, default=0.1
        Standard error of log Z in nats up to which a number is precise enough.
    max_evaluations : int or None, default=None
        Evaluations of a density of the user's on R^d, at most, of all attempts and their checks.
        The attempt that would take more ends with the best number that it has, and is not trusted.
    max_seconds : float or None, default=None
        The same of wall time. A run that was interrupted counts anew.
    warm_start : bool, default=False
        As in `ImportanceSampling`, of all attempts. Moves that run in other processes are made
        again.
    checkpoint : str, path-like or None, default=None
        As in `AIS`: the directory of each estimator whose own is None, if it keeps segments and its
        `random_state` is None or an int. All stay there until the last attempt is over: what
        earlier ones had finished is read, and only their tuning and checks are repeated.
    random_state : int, RandomState or None, default=None
        Seed. An estimator whose own `random_state` is None takes one from this.
    n_jobs : int or None, default=None
        As in `AIS`, of each estimator.
    verbose : int, default=0
        As in `AIS`, of each estimator, with the evaluations of a density of the user's and the time
        that is left of a budget.

    Attributes
    ----------
    log_partition_, log_partition_std_error_, log_partition_interval_, converged_, result_
        Of the first estimator that converges with a standard error of at most `tol`. If there is
        none, of the converged one with the smallest error, which raises the alarm that `tol` is
        missed; if none has converged, of the one with the smallest error. See
        `PartitionEstimator`. ``result_.n_sweeps``, ``seconds`` and ``check_evaluations`` count all
        attempts.
    attempts_ : list of PartitionResult
        Result of each estimator, in turn. Not there for paths with rows.

    Notes
    -----
    An estimate tends to be too low where something is wrong. Not converged, therefore, if an
    earlier attempt with a standard error below 1 nat is higher than the final one by 4 standard
    errors of the difference and .05 nats. What no estimator has found stays unseen: a spike within
    a wide mode, or modes of very different widths, are missed and trusted. After exploring or
    `AdaptiveSMC`, ``result_.diagnostics["smallest_basin"]`` is the smallest basin of attraction,
    as a share of the points where climbs begin, that one of them meets with a probability of 95 %.

    An estimator that ends with an error is passed over, with a warning; if all do, the first error
    is raised.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import Gaussian, GeometricPath
    >>> from sklpf.partition import UntilTrusted
    >>> base = Gaussian([0, 0], 4.0)
    >>> path = GeometricPath(lambda x: -np.sum((x - 5) ** 2, axis=1) / 2e-4, base=base)
    >>> estimator = UntilTrusted(random_state=0).fit(path)
    >>> [attempt.method for attempt in estimator.attempts_]
    ['ImportanceSampling']
    >>> bool(abs(estimator.log_partition_ - np.log(2 * np.pi * 1e-4)) < 0.1)
    True
    """

    estimators: Sequence[PartitionEstimator] | None = None
    tol: float = 0.1
    max_evaluations: int | None = None
    max_seconds: float | None = None
    _: KW_ONLY
    warm_start: bool = False
    checkpoint: str | os.PathLike[str] | None = None
    random_state: int | np.random.RandomState | None = None
    n_jobs: int | None = None
    verbose: int = 0

    _parameter_constraints = {
        "estimators": "no_validation",
        "tol": [POSITIVE],
        **BUDGET,
        "warm_start": ["boolean"],
        **{name: SAMPLING[name] for name in ("checkpoint", "random_state", "n_jobs", "verbose")},
    }

    def fit(self, path, y=None, *, draws: object = None) -> Self:
        """Estimate the log partition function of a path's target or of a fitted model.

        Parameters
        ----------
        path : Path, fitted model or callable
            As of any `PartitionEstimator`; with draws also a log density, as `BridgeSampling` takes
            it.
        y : ignored
            Not used; there for scikit-learn's conventions.
        draws : object or None, default=None
            Draws of the target, as `BridgeSampling` takes them. After the bridges they are part of
            the base of a `GeometricPath`.

        Returns
        -------
        self

        Raises
        ------
        TypeError
            If `estimators` holds something else.

        Warns
        -----
        ConvergenceWarning
            If no estimator could be trusted, or `tol` is missed.
        """
        return self._fit(path, draws)._warn()

    def _as_path(self, path):
        if self._given_draws is not None:
            path, self._given_draws = path_and_draws(path, self._given_draws, self._seed())
        return super()._as_path(path)

    def _estimate(self, path, seed) -> PartitionResult:
        budget = Budget(self.max_evaluations, self.max_seconds, current_budget(), self._memory)
        if self.max_evaluations is not None and not is_own_density(path):
            raise evaluations_of_own_densities(path)
        with within(budget):
            return self._attempts(path, seed, budget)

    def _attempts(self, path, seed, budget: Budget) -> PartitionResult:
        """The result of all attempts."""
        self._checkpoint(path, seed)  # what it can't use is no error of an attempt
        if self._given_draws is not None:
            self._given_draws = posterior_draws(self._given_draws, path, seed)
        attempts: list[PartitionResult] = []
        errors: list[tuple[str, Exception]] = []
        cheaper = getattr(path, "cheaper_path", None)
        ways = [path] if cheaper is None else [cheaper, path]
        starts = [functools.cache(functools.partial(self._start, way, seed)) for way in ways]
        for place, (estimator, start) in enumerate(product(self._turns(path), starts)):
            try:
                attempts.append(
                    self._attempt(estimator, start, path, seeded(seed).of("attempt", place).seed)
                )
            except Exception as error:  # of what it needs, or a user's function; others may not
                errors.append((type(estimator).__name__, error))
                continue
            last = attempts[-1]
            if not hasattr(estimator, "verbose"):  # which then says it itself
                report(functools.partial("{}: {}".format, last.method, last._line()))
            if self._is_enough(last) or budget.is_spent:
                break
        if not attempts:
            raise errors[0][1]
        for name, failure in errors:
            warn(f"{name} failed, and other estimators were tried: {failure!r}")
        self.attempts_ = attempts
        result = self._of_all(attempts, "late attempts" if budget.is_spent else "attempts")
        if budget.n:
            result.diagnostics["n_evaluations"] = budget.n
        return result

    def _turns(
        self,
        path,
        *,
        few_dimensions: int = 20,  # beyond which exploring loses modes, and gradients are needed
    ) -> list[PartitionEstimator]:
        if self.estimators is not None:
            estimators: Any = self.estimators
            given = list(estimators) if isinstance(estimators, Iterable) else []
            if not given or not all(isinstance(each, PartitionEstimator) for each in given):
                raise TypeError(
                    "estimators must be a list of at least one estimator of log Z, such as"
                    f" [AIS()], or None, got {self.estimators!r:.80}"
                )
            return given
        bridges: list[PartitionEstimator] = []
        if self._given_draws is not None:
            bridges = [BridgeSampling(), BridgeSampling(proposal="mixture")]
        tempering = [ParallelTempering(n_sweeps=n, tol=self.tol) for n in (16_384, 65_536)]
        if not is_own_density(path):
            first_of_all = default_estimator(path) or AIS()
            return [*bridges, first_of_all, SMC(n_temperatures=1000), *tempering]
        are_few = path.n_dimensions <= few_dimensions
        if has(path, "gradients") and not are_few:
            first = [HAIS(), AdaptiveSMC(1000, self.tol, 3_000_000), HAIS(n_temperatures=10_000)]
        else:
            first = [AdaptiveSMC(tol=self.tol), AdaptiveSMC(2000, self.tol, 5_000_000)]
        if are_few and not bridges:
            first = [ImportanceSampling(200_000, proposal="explored", tol=self.tol), *first]
        return [*bridges, *first, *tempering]

    def _start(self, path, seed) -> Any:
        """Return the path of all estimators but bridges: from the draws, if there are any."""
        if self._given_draws is None or not isinstance(path, GeometricPath):
            return path
        points = self._given_draws.points.reshape(-1, path.n_dimensions)
        fitted = fit_base(points, len(points) / 2, path.bounds, np.random.default_rng(seed))
        base = defensive(fitted, path.base, path.bounds)
        return path.from_mixture(base, "a mixture fitted to the draws")

    def _attempt(self, estimator, start, path, seed) -> PartitionResult:
        estimator = clone(estimator)
        known = estimator.get_params(deep=False)
        own: dict[str, Any] = {"random_state": seed, "n_jobs": self.n_jobs}
        if isinstance(known.get("random_state"), (Integral, type(None))):
            own["checkpoint"] = self.checkpoint
        unset = {name: value for name, value in own.items() if known.get(name, 0) is None}
        if self.verbose and not known.get("verbose", 1):
            unset["verbose"] = self.verbose
        estimator.set_params(**unset)
        try:
            if isinstance(estimator, BridgeSampling):
                return estimator._fit(path, self._given_draws).result_
            return estimator._fit(start()).result_
        except BudgetSpent as spent:  # of an estimator that leaves no run
            return estimator._stopped(path, [], spent)

    def _is_enough(self, result: PartitionResult) -> bool:
        is_trusted = result.converged and result.is_estimate
        return is_trusted and not misses_tol(float(result.std_error), self.tol)

    def _of_all(self, attempts: list[PartitionResult], family: str) -> PartitionResult:
        """The best of all attempts, with what they cost together."""

        def rank(each):
            error = math.inf if math.isnan(each.std_error) else each.std_error  # of no estimate
            return not self._is_enough(each), not each.converged, error

        best = min(attempts, key=rank)
        alarms = [each for each in best.alarms if each.kind != "tol-missed"]
        alarms += [each for each in attempts[-1].alarms if each.kind == "budget-spent"]
        alarms += tol_alarms(float(best.std_error), self.tol, family)
        for each in attempts:
            error = float(np.hypot(each.std_error, best.std_error))
            above = each.log_partition - best.log_partition
            chance = threshold("runs-disagree", "attempt_errors") * error
            is_known = each.std_error < threshold("runs-disagree", "attempt_std_error")
            if is_known and above > max(chance, MATERIAL_BOUND):
                alarms.append(
                    raised(
                        "runs-disagree",
                        "attempts",
                        "attempts",
                        method=each.method,
                        value=each.log_partition,
                        error=each.std_error,
                    )
                )
        columns = {
            f"attempt_{name}": np.array([getattr(each, name) for each in attempts])
            for name in ("log_partition", "std_error", "converged")
        }
        return replace(
            best,
            alarms=tuple(dict.fromkeys(alarms)),
            **total_cost(attempts),
            diagnostics=best.diagnostics | columns,
        )
