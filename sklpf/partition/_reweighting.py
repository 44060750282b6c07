"""ReweightingEstimator: what estimators share that read a run of a sampler, without chains of their
own.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from sklpf._utils.alarm import Alarm
from sklpf._utils.parallel import one_blas_thread
from sklpf._utils.sklearn import N_JOBS, Instance
from sklpf.partition._base import PartitionEstimator
from sklpf.partition._diagnostics import CURVE, PLAIN_BOUND, Diagnostic
from sklpf.partition._level_run import Curve, LevelRun, check_run, known_ratio
from sklpf.partition._parallel_tempering import ParallelTempering
from sklpf.partition._result import PartitionResult
from sklpf.partition._simulated_tempering import SimulatedTempering
from sklpf.partition.checks._beside import checked
from sklpf.reweighting import with_first_error, with_first_ratio
from sklpf.uncertainty import Difference, jackknife, t_ratio


@dataclass(eq=False, repr=False)
class ReweightingEstimator(PartitionEstimator):
    """Base class of the estimators that reweight a sampler's run.

    A subclass defines ``_curve(run)``, which returns log Z_k - log Z_0 (K,) as a function of the
    groups to use, and may define ``_alarms(run, curve, diagnostics, std_error)``, the alarms of its
    estimate.

    Parameters
    ----------
    sampler : ParallelTempering, RTS or None, default=None
        The sampler to run if `fit` gets a model or a path. It is cloned, fitted and kept as
        ``sampler_``. None is a ParallelTempering with this estimator's `random_state` and `n_jobs`.
        Not used if `fit` gets a run.
    random_state : int, RandomState or None, default=None
        Seed of the default sampler.
    n_jobs : int or None, default=None
        Number of jobs of the default sampler.
    verbose : int, default=0
        As in `AIS`.

    Attributes
    ----------
    log_partition_, log_partition_std_error_, log_partition_interval_, converged_, result_
        See `PartitionEstimator`. The error is a jackknife over the run's independent groups
        (Student t with G - 1 degrees of freedom), of ``result_.log_partition_curve`` too.
        ``result_.diagnostics`` holds that ``curve_std_error`` (K,), the ``sampler_log_partition``
        and the ``difference`` from it with its ``difference_std_error`` (jackknife too, since both
        come from the same states), in nats.
    sampler_ : PartitionEstimator
        The fitted sampler, unless `fit` got a run; its run is ``run_``.
    run_ : ExchangeRun or TemperingRun

    Notes
    -----
    Not converged if the run's own sampler would not be, for any result of this method; or if the
    two differ by more than 0.01 nats and by chance in less than 0.1 % of the runs.
    """

    sampler: Any = None
    _: KW_ONLY
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0

    _parameter_constraints = {
        "sampler": [
            Instance((ParallelTempering, SimulatedTempering), "a ParallelTempering() or an RTS()"),
            None,
        ],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
    }
    _described = {
        **CURVE,
        "difference": Diagnostic("difference from the sampler's log Z (nats)"),
        **PLAIN_BOUND,
    }
    _run_class: ClassVar[Any] = LevelRun
    _reads_continuous = False

    def fit(self, path, y=None):
        self.__dict__.pop("sampler_", None)
        return super().fit(path, y)

    fit.__doc__ = PartitionEstimator.fit.__doc__

    @classmethod
    def _described_names(cls) -> set[str]:
        return set(cls._described)

    # -- what a subclass defines
    def _curve(self, run: LevelRun) -> Curve:
        raise NotImplementedError(f"{type(self).__name__} must define _curve(run)")

    def _alarms(
        self, run: LevelRun, curve: Curve, diagnostics: dict[str, Any], std_error: float
    ) -> list[Alarm]:
        """What speaks against the number; what was found goes to the diagnostics."""
        return []

    def _check(self, run: Any) -> None:
        """Raise TypeError or ValueError unless this method can read the run."""
        check_run(run)

    @property
    def _method(self) -> str:
        return type(self).__name__

    # -- sampling
    def _seed(self) -> int:
        return super()._seed() if self.sampler is None else 0  # a sampler has its own

    def _as_path(self, path):
        if getattr(self.sampler, "continuous", False) and not self._reads_continuous:
            raise ValueError(
                "sampler must be one with levels, got RTS(continuous=True), whose runs RTS and"
                ' ThermodynamicIntegration(rule="continuous") read: take RTS(continuous=False)'
            )
        self.sampler_ = (
            ParallelTempering(n_jobs=self.n_jobs) if self.sampler is None else clone(self.sampler)
        )
        self.sampler_._validate_params()
        path = self.sampler_._as_path(path)
        if path.n_rows is not None:
            raise ValueError(
                f"path must have one log Z for {type(self).__name__}: give path.row(t) for row t,"
                " or take ParallelTempering, which estimates that of every row"
            )
        return path

    def _run(self, path, seed):
        if self.sampler is None:
            self.sampler_.random_state = seed
        return self.sampler_._run(path, self.sampler_._seed())

    # -- estimate
    def _read(self, run) -> PartitionResult:
        self._check(run)
        own = run.read()
        if hasattr(self, "sampler_"):
            self.sampler_._keep(own)
        return self._beside(run, own)

    def _beside(self, run, own: PartitionResult) -> PartitionResult:
        """The result of a run of which its sampler says `own`."""
        with one_blas_thread():
            sampler_curve = run.curve()
            from_run = self._curve(run)
            curve_of = _remembered(lambda keep: with_first_ratio(from_run(keep), run.first_ratio))
            values, errors = jackknife(
                lambda keep: _with_difference(curve_of(keep), sampler_curve(keep)), run.n_groups
            )
        curve = values[:-1]
        curve_error = with_first_error(errors[:-1], run.first_ratio)
        between = Difference(values[-1], t_ratio(values[-1], errors[-1]))
        log_partition = float(run.base_log_partition + curve[-1])
        std_error = float(curve_error[-1])

        diagnostics = {
            "curve_std_error": curve_error,
            "sampler_log_partition": own.log_partition,
            "difference": float(between.value),
            "difference_std_error": float(errors[-1]),
        }
        alarms = [*own.alarms, *self._alarms(run, curve_of, diagnostics, std_error)]
        # The error of a quadrature is the same in all groups, so that the jackknife can't see it.
        quadrature = diagnostics.get("quadrature_error", 0.0)
        if np.isfinite(quadrature) and "approximate" not in diagnostics:
            std_error = float(np.hypot(std_error, quadrature))
        if not np.isfinite([log_partition, std_error]).all():
            alarms.append(_missing_states(run))
        elif between.alarms(run.n_groups):
            seen = (
                f"{self._method} differs from {own.method} on the same run by"
                f" {between.value:+.2g} nats (t = {between.t:.1f})"
            )
            remedy = f"{run.more_states}, or {run.more_levels}"
            alarms.append(Alarm("readings-differ", seen, remedy))

        is_estimate = not diagnostics.pop("approximate", False)
        result = run.conclude(
            log_partition,
            std_error,
            run.n_groups - 1,
            method=self._method,
            alarms=alarms,
            diagnostics=diagnostics,
            levels=run.base_log_partition + curve,
            statement="estimate" if is_estimate else "approximate",
        )
        return checked(run, replace(result, described=self._described))


def _missing_states(run) -> Alarm:
    """Why a number can't be had."""
    few = 0
    if isinstance(run, LevelRun):
        seen = np.count_nonzero(run.last.pairs()[1][:, len(known_ratio(run)) :], axis=0)
        few = int(np.sum(seen < 2))
    if not few:
        return Alarm(
            "no-overlap",
            "the states of neighbouring levels do not overlap at all",
            getattr(run, "more_levels", "raise n_temperatures"),
        )
    found = f"{few} of {len(seen)} levels have states of fewer than two groups of chains"
    return Alarm("few-states", found, run.more_states)


def _remembered(curve: Curve) -> Curve:
    """The same function, which computes no value twice."""
    known: dict[bytes, NDArray] = {}

    def remembered(keep):
        key = np.asarray(keep).tobytes()
        if key not in known:
            known[key] = curve(keep)
        return known[key]

    return remembered


def _with_difference(curve, own):
    return np.r_[curve, curve[-1] - own[-1]]
