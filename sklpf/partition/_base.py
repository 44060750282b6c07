"""PartitionEstimator: what all estimators of log Z share, and the one that a path has by default. A
new one is one file with one class.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from sklpf._utils import __version__
from sklpf._utils import context as _context
from sklpf._utils.context import Budget, BudgetSpent, current_budget, within
from sklpf._utils.parallel import (
    Checkpoint,
    evaluating,
    fingerprint,
    own_arithmetic,
    running,
)
from sklpf._utils.random import draw_seed, seeded
from sklpf._utils.sklearn import BaseEstimator, CallbackSupportMixin, StrOptions
from sklpf._utils.validation import (
    N_JOBS,
    POSITIVE,
    FittedAttributes,
    Instance,
    Versioned,
    at_least,
)
from sklpf._utils.warnings import warn
from sklpf.partition._path_rows import each_row, estimate_rows
from sklpf.partition._result import Finding, Findings, Judgement, PartitionResult, Run, Work
from sklpf.partition.alarms import has_not_mixed, raised
from sklpf.partition.checks import CHECKS
from sklpf.partition.checks.missed_mass import regions_to_cover
from sklpf.paths import Memory, Path, has, is_own_density
from sklpf.programs import ADAPTIVE_LADDERS, Plan, plan_runs, thinned
from sklpf.transitions import Transition, default_move, note_on_the_way

# parameters on which no number depends
EXECUTION_PARAMETERS = ("n_jobs", "verbose", "checkpoint", "warm_start")
BUDGET: dict[str, Any] = {"max_evaluations": [at_least(1), None], "max_seconds": [POSITIVE, None]}
SAMPLING: dict[str, Any] = {
    "transition": [Instance(Transition, "a move (such as HMC())"), None],
    "checkpoint": [str, os.PathLike, None],
    "checks": ["boolean"],
    **BUDGET,
    "random_state": ["random_state"],
    "n_jobs": N_JOBS,
    "verbose": ["verbose"],
}
ANNEALING: dict[str, Any] = {
    **SAMPLING,
    "n_temperatures": [at_least(2)],
    "ladder": [StrOptions(set(ADAPTIVE_LADDERS)), "array-like"],
}


class PartitionEstimator(Versioned, FittedAttributes, CallbackSupportMixin, BaseEstimator):
    """Base class of the estimators of a log partition function.

    A subclass sets its parameters in ``__init__``, or declares them as the fields of a dataclass
    (without ``__eq__`` and ``__repr__``), among them `random_state` and `n_jobs` where it samples,
    declares `_parameter_constraints`, and defines ``_estimate(path, seed) ->
    PartitionResult``; or ``_sample(path, seed)``, which returns a `Run` that reads itself, of the
    class that `_run_class` names. With ``_sample_rows(paths, seeds)`` chains of several rows move
    in one array, where the path and the move can do that.

    Attributes
    ----------
    log_partition_ : float or ndarray of shape (n_rows,)
        Estimate of log Z in nats; an array for a path with rows.
    log_partition_std_error_ : float or ndarray of shape (n_rows,)
        Its standard error in nats.
    log_partition_interval_ : tuple of float or of ndarray of shape (n_rows,)
        95 % interval in nats.
    converged_ : bool
        Whether the numbers (of all rows) can be trusted; ``result_.reasons`` says why not. With
        ``checks=False`` by what the run itself shows alone, and ``result_`` says that.
    result_ : PartitionResult
        The numbers, what they are, and why they may not be trusted.
    run_ : Run
        What sampling has left, for estimators that sample and a path with one log Z. Other
        estimators can read it.

    Examples
    --------
    >>> from sklpf import BernoulliRBM, PartitionEstimator, PartitionResult
    >>> class Guess(PartitionEstimator):
    ...     def _estimate(self, path, seed):
    ...         return PartitionResult("Guess", log_partition=2.0, std_error=0.5)
    >>> rbm = BernoulliRBM.from_parameters([[1.0, -1.0]], [0.0, 0.0], [0.0])
    >>> Guess().fit(rbm).log_partition_
    2.0
    """

    _parameter_constraints: dict[str, Any] = {}
    ladder: Any  # of those that plan runs on one
    n_temperatures: Any
    run_: Any

    def fit(self, path, y=None) -> Self:
        """Estimate the log partition function of a path's target or of a fitted model.

        Parameters
        ----------
        path : Path, fitted model or run
            A model is anything with a method ``path(**options)``; of a model with a likelihood for
            each row give ``model.path(X)``. A run of this estimator's kind, ``run_`` of a fitted
            one (of `ParallelTempering` or `RTS` where the estimator only reweights), is only read
            anew, by this estimator's parameters.
        y : ignored
            Not used; there for scikit-learn's conventions.

        Returns
        -------
        self

        Raises
        ------
        TypeError
            If the path lacks a capability that this estimator needs, or the model an option of this
            estimator's; if it is a run of an estimator whose runs this one can't read.
        ValueError
            If a parameter can't be used.

        Warns
        -----
        ConvergenceWarning
            If the result should not be trusted.
        """
        return self._fit(path)._warn()

    _given_draws: Any = None
    _memory: Memory | None = None  # of values of the density, with `warm_start`

    @_context.reporting
    def _fit(self, path: Path, draws: object = None) -> Self:
        """`fit` without its warning, for callers that read the result themselves; with draws of the
        target, which are not kept.
        """
        self._validate_params()
        self._forget()
        self._given_draws = draws
        started = time.perf_counter()
        try:
            with own_arithmetic(), running():
                result = self._result_of(path)
        finally:
            del self._given_draws
        self._keep(replace(result, seconds=time.perf_counter() - started))
        _context.report(lambda: self.result_._line())
        return self

    def _result_of(self, path: Path) -> PartitionResult:
        """The result of a run that is given, or of one on a path."""
        if isinstance(path, Run):
            self._check_reads(path)
            result = self._read(path)
            self.run_ = path
            return result
        path = self._as_path(path)
        with path.unchanged():
            return self._estimate_path(path)

    def _warn(self) -> Self:
        """Warn of a result that is not trusted."""
        if not self.result_.converged:
            reasons = "; ".join(self.result_.reasons)
            warn(f"{self.result_.method} did not converge: {reasons}", ConvergenceWarning)
        return self

    def _forget(self) -> None:
        """Drop what an earlier fit has set, so that none of it is left if this one fails."""
        for name in list(self.__dict__):
            if name.endswith("_") and not name.startswith("_"):
                delattr(self, name)

    def _keep(self, result: PartitionResult) -> None:
        self.result_ = result
        self.log_partition_ = result.log_partition
        self.log_partition_std_error_ = result.std_error
        self.log_partition_interval_ = result.interval()
        self.converged_ = result.converged

    # -- what a subclass defines: _sample, or _estimate alone
    # of the runs that it makes or can read
    _run_class: ClassVar[type[Run] | tuple[type[Run], ...]] = ()
    _keeps_draws = True  # where it can: not of many rows
    _shortens_ladder = False  # where the budget is too small for all levels

    def _sample(self, path: Path, seed: int) -> Run:
        """Run chains on the path and return what they leave."""
        if not hasattr(self, "_sample_rows"):
            raise NotImplementedError(f"{type(self).__name__} must define _estimate or _sample")
        return self._sample_rows([path], [seed])[0]

    def _estimate(self, path: Path, seed: int) -> PartitionResult:
        return self._read(self._run(path, seed))

    # -- runs
    @classmethod
    def _reads(cls, run: Run) -> bool:
        """True if a run is of a kind that it can read."""
        return isinstance(run, cls._run_class)

    def _check_reads(self, run: Run) -> None:
        """Raise TypeError unless this estimator can read a run."""
        if self._reads(run):
            return
        instead = f": give it to {run.method}" if run.method else ""
        raise TypeError(
            f"path must be a model, a path or a run that {type(self).__name__} can read, got a run"
            f" of {run.method or 'no estimator'}{instead}"
        )

    def _with_reading_options(self, run: Run) -> Any:
        """Return a run with the name and the parameters of this estimator, which reads it."""
        options = {name: getattr(self, name) for name in run.options if hasattr(self, name)}
        return replace(run, method=type(self).__name__, **options)

    def _run(self, path: Path, seed: int) -> Run:
        """The run that _sample leaves, with what checks have found before and after it."""
        self._look_from_base(path, seed)
        before = _collect(Work(path, seed), {}) if self._is_checked else {}
        run = self._with_reading_options(self._sample(path, seed))
        return self._with_findings(path, seed, run, before)

    def _look_from_base(self, path: Path, seed: int, *, n: int = 64, most: float = 0.1) -> None:
        """Note what a few base draws say of a density, before checks and tuning may take the whole
        of a limited budget. Estimators from given draws use no base.
        """
        budget = current_budget()
        if budget is None or np.isinf(min(budget.left(), budget.seconds_left())):
            return
        if not is_own_density(path) or self._given_draws is not None:
            return
        n = int(np.clip(most * budget.left(), 2, n))
        state = path.sample_base(n, seeded(seed).of("first look"))
        note_on_the_way(0.0, 0.0, path.ends(state)[1])

    @property
    def _is_checked(self) -> bool:
        return getattr(self, "checks", True)

    def _with_findings(
        self, path: Path, seed: int, run: Run, before: Findings | None = None
    ) -> Any:
        """A run of a path with what checks find, beside what is known already."""
        run = replace(run, base=path.base_chosen, log_f_rounding=path.log_f_rounding)
        if not self._is_checked:
            return run
        move = self._move_from_target(path, run)
        work = Work(path, seed, run, move, getattr(self, "n_jobs", None))
        known = {**(before or {}), **(run.findings or {})}
        return replace(run, findings=_collect(work, known))

    def _move_from_target(self, path: Path, run: Run) -> Transition | None:
        """The move of reverse chains from regions, where their weights say what these add."""
        return None

    def _read(self, run: Run) -> PartitionResult:
        """The result of a run, as this estimator's parameters say."""
        return self._with_reading_options(run).read()

    def _estimate_rows(self, path: Path, rows, seeds) -> Iterator[PartitionResult]:
        """One result for each of some rows of a path with rows."""
        return each_row(self, path, rows, seeds)

    def _estimate_path(self, path: Path) -> PartitionResult:
        self._remember(path)
        seed = self._seed()
        budget = self._budget(path)
        if path.n_rows is not None:
            if getattr(self, "starts", None) is not None:
                raise ValueError(
                    "starts must be None for a path with rows: each row has starts of its own,"
                    " drawn for it"
                )
            return estimate_rows(self, path, seed)
        with within(budget) as noted, evaluating(getattr(self, "n_jobs", None)):
            if not self._run_class:
                return self._estimate(path, seed)
            try:
                self.run_, result = _run_and_cover(self, path, seed)
            except BudgetSpent as spent:
                result = self._stopped(path, noted, spent)
        if budget is not None and budget.n:
            result.diagnostics["n_evaluations"] = budget.n
        return result

    def _remember(self, path: Path) -> None:
        """Keep values of the density from now on where that is asked for, else forget them."""
        if not getattr(self, "warm_start", False):
            self._memory = None
        elif not is_own_density(path):
            raise ValueError(
                "warm_start keeps values of a density of your own on R^d, and must be False for a"
                f" {type(path).__name__}"
            )
        elif self._memory is None:
            self._memory = Memory(path, self._seed())
        else:
            self._memory.check(path)

    def _budget(self, path: Path) -> Budget | None:
        """The budget of a fit: its own, or that of the fit that it is a part of."""
        max_evaluations, max_seconds = (getattr(self, name, None) for name in BUDGET)
        outer = current_budget()
        limits = max_evaluations, max_seconds, self._memory
        if not self._run_class or limits == (None, None, None):
            return outer and Budget(None, None, outer)
        if max_evaluations is not None and not is_own_density(path):
            raise evaluations_of_own_densities(path)
        if path.n_rows is not None:
            raise ValueError("max_seconds must be None for a path with rows, which are all needed")
        return Budget(max_evaluations, max_seconds, outer, self._memory)

    def _stopped(self, path: Path, noted: list[Any], spent: BudgetSpent) -> PartitionResult:
        """The best that was noted until the budget was spent, which is not trusted."""
        best = noted[-1] if noted else None
        seen = {name: getattr(spent, name) for name in ("spent", "parameter", "needed")}
        alarm = raised("budget-spent", "nothing yet" if best is None else "stopped", **seen)
        if best is None:
            return PartitionResult(type(self).__name__, np.nan, np.nan, alarms=(alarm,))
        if not isinstance(best, Run):
            value = (path.base_log_partition or 0.0) + best.log_ratio
            sentence = "on the way" if best.beta else "at the base"
            rough = raised(
                "no-usable-estimate", sentence, "stopped", beta=best.beta, parameter=spent.parameter
            )
            return PartitionResult(type(self).__name__, value, np.inf, alarms=(alarm, rough))
        run = self._with_reading_options(best)
        findings = {**(run.findings or {}), "budget": Finding(alarms=(alarm,))}
        run = replace(run, base=path.base_chosen, findings=findings)
        self.run_ = run
        return self._read(run)

    def _as_path(self, path) -> Path:
        """The path that is meant, of points of R^d where moves need these."""
        if not isinstance(path, Path):
            path = self._path_of(path)
        if has(path, "as_density") and "position" in self._move(path).requires:
            return path.as_density()
        return path

    def _path_of(self, model) -> Any:
        """The path of a model, which need not be an estimator of scikit-learn."""
        kind = type(model)
        if isinstance(model, PartitionEstimator):
            raise TypeError(
                f"path must be a model, a path or a run, got a fitted {kind.__name__}: give its"
                " run_"
            )
        if not callable(getattr(model, "path", None)):
            raise TypeError(
                "path must be a fitted model of sklpf or a path, such as model.path(X), got "
                f"{kind.__module__}.{kind.__name__}{_instead(kind)}"
            )
        if hasattr(model, "__sklearn_tags__"):
            check_is_fitted(model)
        if getattr(model, "path_takes_rows", False):
            raise TypeError(
                "path must be model.path(X), the rows whose likelihoods are wanted: a"
                f" {kind.__name__} has one for each row"
            )
        return model.path()

    def _seed(self) -> int:
        if not hasattr(self, "random_state"):
            return 0  # nothing is sampled, and the global generator is left alone
        if isinstance(self.random_state, (int, np.integer)):
            return int(self.random_state)
        if getattr(self, "checkpoint", None) is not None:
            raise ValueError(
                "checkpoint needs random_state to be an int, else an interrupted run can't be"
                " resumed"
            )
        if self._memory is not None:
            return self._memory.seed
        return draw_seed(self.random_state)

    def _move(self, path: Path) -> Transition:
        """The move that was chosen, or the default one, which may not suit the path."""
        return getattr(self, "transition", None) or default_move(path)

    def _transition(self, path: Path) -> Transition:
        move = self._move(path)
        move.check(path)
        return move

    def _plan(self, path: Path, seed: int, n_chains: int) -> Plan:
        """The path on its ladder, the move that is frozen for it, and the sweeps that this took."""
        return self._plans([path], [seed], n_chains)[0]

    def _plans(self, paths: Sequence[Path], seeds: Sequence[int], n_chains: int) -> list[Plan]:
        """The plans of several rows."""
        move = self._transition(paths[0])
        budget = current_budget()
        n_before = 0 if budget is None else budget.n
        began = time.time()
        plans = plan_runs(paths, move, self.ladder, self.n_temperatures, n_chains, seeds)
        n_sweeps = sum(plan.n_sweeps for plan in plans)
        if budget is None or not self._shortens_ladder or not n_sweeps:
            return plans
        seconds = (time.time() - began) / n_sweeps
        n_affordable = budget.affords((budget.n - n_before) / n_sweeps, seconds)
        n_most = len(plans[0].path.ladder)
        # Reverse chains and checks follow.
        n_levels = int(min(0.35 * n_affordable / n_chains, n_most))
        if n_levels == n_most:
            return plans
        _context.report(lambda: f"{n_levels} levels, for which the budget is enough")
        return [thinned(plan, max(2, n_levels)) for plan in plans]

    def _number_parameters(self) -> dict[str, Any]:
        """The parameters that numbers depend on, also of estimators among them."""
        return {
            name: _that_numbers_depend_on(value)
            for name, value in self.get_params(deep=False).items()
            if name not in EXECUTION_PARAMETERS
        }

    def _checkpoint(self, path: Path, seed: int) -> Checkpoint | None:
        """Files are named by all that the numbers depend on: path, parameters, seed and
        versions.
        """
        directory = getattr(self, "checkpoint", None)
        if directory is None:
            return None
        import numba

        parameters = self._number_parameters()
        parameters.pop("random_state", None)
        versions = (__version__, np.__version__, numba.__version__)
        # the number of moves may belong to the path's class
        parts = (type(self), path, path.ladder, path.n_moves_per_segment, path.probe())
        return Checkpoint(directory, fingerprint(parts, parameters, seed, versions))


def _that_numbers_depend_on(parameter: object) -> object:
    """A parameter; of an estimator, or a list of them, its class and such parameters."""
    if isinstance(parameter, PartitionEstimator):
        return type(parameter).__name__, parameter._number_parameters()
    if isinstance(parameter, (list, tuple)):
        return [_that_numbers_depend_on(each) for each in parameter]
    return parameter


@dataclass(eq=False, repr=False, kw_only=True)
class SamplingEstimator(PartitionEstimator):
    """An estimator that moves chains: the parameters that all of these share, as `AIS` says."""

    transition: Transition | None = None
    checkpoint: str | os.PathLike[str] | None = None
    checks: bool = True
    max_evaluations: int | None = None
    max_seconds: float | None = None
    random_state: int | np.random.RandomState | None = None
    n_jobs: int | None = None
    verbose: int = 0

    _parameter_constraints = SAMPLING


def _collect(work: Work, known: Findings) -> dict[str, Finding]:
    """Findings that are known, and those of all other checks that can look already."""
    findings = dict(known)
    for name, check in CHECKS.items():
        can_look = work.run is not None or not check.needs_run
        if name in findings or not can_look or not has(work.path, *check.requires):
            continue
        finding = check.collect(work)
        if finding is not None:
            findings[name] = finding
    return findings


@dataclass(frozen=True, kw_only=True)
class SecondTry(Finding):
    """There were several runs; this is one of them, and these are the evaluations of the others.

    Attributes
    ----------
    first_log_partition : float or None
        log Z of the first one, in nats, where this is a later one.
    """

    first_log_partition: float | None = None

    def judge(self, run: Run, result: PartitionResult) -> Judgement:
        first = self.first_log_partition
        return self.alarms, {} if first is None else {"first_try": first}


def _run_and_cover(estimator: PartitionEstimator, path: Path, seed: int) -> tuple[Any, Any]:
    """Return a run of an estimator and its result: of a second try where the first one has missed
    a region and the base is not the user's, unless none can be trusted and the first one's standard
    error is smaller.
    """
    first = estimator._run(path, seed)
    result = estimator._read(first)
    attempts = regions_to_cover(path, first, result)
    if not attempts:
        return first, result
    _context.report(lambda: f"{result._line()}; a second try, from a base that covers it")

    runs = [first]
    best = 0
    lowest = result.std_error
    sentence = "second try"
    seen: dict[str, Any] = {}
    for regions in attempts:
        seed = seeded(seed).of("second try").seed  # each run has its own
        try:
            runs.append(estimator._run(path.with_regions(regions), seed))
            run = _one_of(runs, -1, first_log_partition=result.log_partition)
            again = estimator._read(run)
        except Exception as error:  # the numbers before, which took as long, are kept
            sentence = "second try failed"
            seen = {"error": error}
            break
        if again.converged:
            return run, again
        seen = {"again": _number(again), "first": _number(result)}
        if again.std_error < lowest:
            best = len(runs) - 1
            lowest = again.std_error
        if has_not_mixed(again.alarms):
            break  # a base that covers fewer regions does not let them mix

    other = "SMC" if first.method == "ParallelTempering" else "ParallelTempering"
    base = "draws of the posterior" if has(path, "constrain") else "a base that covers it"
    alarm = raised("missed-region", sentence, "second try", other=other, base=base, **seen)
    first_log_partition = result.log_partition if best else None
    run = _one_of(runs, best, first_log_partition=first_log_partition, alarms=(alarm,))
    return run, estimator._read(run)


def _one_of(runs: Sequence[Any], place: int, **found: Any) -> Any:
    """Return one of the runs, with the cost of all."""
    run = runs[place]
    others = [each for each in runs if each is not run]
    theirs = [finding for each in others for finding in each.findings.values()]
    second_try = SecondTry(
        n_evaluations=sum(finding.n_evaluations for finding in theirs),
        n_failed=sum(finding.n_failed for finding in theirs),
        **found,
    )
    return replace(
        run,
        sweeps=run.sweeps | {"other tries": sum(each.n_sweeps for each in others)},
        findings={**run.findings, "second_try": second_try},
    )


def default_estimator(path: Path) -> PartitionEstimator | None:
    """Return `Exact` where log Z has a closed form, `LeftToRight` where there are filters, `Exact`
    for at most 2^20 states, else the path's own `default_estimator`; None where nothing follows.
    """
    from sklpf.partition import Exact, LeftToRight  # which extend the class above

    if has(path, "closed_log_partition"):
        return Exact()
    if has(path, "left_to_right"):
        return LeftToRight()
    if has(path, "enumerate_block") and path.log2_states <= 20:  # about a second
        return Exact()
    return path.default_estimator() if has(path, "default_estimator") else None


def evaluations_of_own_densities(path: Path) -> ValueError:
    """Return the error that evaluations of this path are not counted."""
    return ValueError(
        "max_evaluations counts calls of a density of your own on R^d, and must be None for a"
        f" {type(path).__name__}: give max_seconds"
    )


def _number(result: PartitionResult) -> str:
    return f"{result.log_partition:.2f} +- {result.std_error:.2g}"


def _instead(kind: type) -> str:
    """Advice on a model of another library, where its name says what it is."""
    name = kind.__name__
    of_sklearn = kind.__module__.startswith("sklearn.")
    if "function" in name:
        return "; GeometricPath(log_density, base=…) makes a path of a function"
    if of_sklearn and name in ("BernoulliRBM", "LatentDirichletAllocation"):
        return "; sklpf.interop.from_sklearn(model) makes one of it"
    if of_sklearn and name == "Pipeline":
        return "; take the last step, pipeline[-1], and transform rows by the others"
    if name.endswith("SearchCV"):
        return "; take the model that the search found, its best_estimator_"
    if "rbm" in name.lower() or "boltzmann" in name.lower():
        return "; BernoulliRBM.from_parameters takes the weights of another library's RBM"
    if "lda" in name.lower() or "dirichlet" in name.lower():
        return (
            "; of another library's topic model take sklpf.models.LDAPath(topics,"
            " doc_topic_prior, X)"
        )
    return ""
