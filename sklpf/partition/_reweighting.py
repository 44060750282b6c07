"""ReweightingEstimator: what estimators share that read a run of a sampler, without chains of their own."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from sklpf._parallel import one_blas_thread
from sklpf._sklearn import Instance
from sklpf.partition._base import PartitionEstimator, doubted
from sklpf.partition._bound import bound_alarms
from sklpf.partition._parallel_tempering import ParallelTempering
from sklpf.partition._result import PartitionResult
from sklpf.partition._rts import RTS
from sklpf.partition._rts_judge import judge, pool_crossed, started_from
from sklpf.partition._sams import SAMS
from sklpf.partition._wang_landau import WangLandau
from sklpf.reweighting import bar_ratios, with_first_error, with_first_ratio
from sklpf.runs._annealing import AnnealingRun
from sklpf.runs._continuous import ContinuousRun
from sklpf.runs._exchange import ExchangeRun
from sklpf.runs._samples import LevelRun, Samples
from sklpf.runs._tempering import TemperingRun
from sklpf.uncertainty import Difference, jackknife, t_ratio

_ADAPTIVE = {estimator.__name__: estimator for estimator in (SAMS, WangLandau)}

Curve = Callable[[NDArray], NDArray]  # log Z_k - log Z_0 (K,) of the groups to use


class Own(NamedTuple):
    """What the sampler of a run says: its result, and its estimate as a function of groups."""

    result: PartitionResult
    curve: Curve


def own_reading(run: Any) -> Own:
    """The estimate of the sampler that left a run, with its alarms."""
    check_run(run)
    if isinstance(run, ExchangeRun):
        sampler = ParallelTempering(**run.options)
        return Own(sampler._read(run), sampler._levels(run))
    reader = (RTS if run.adaptation is None else _ADAPTIVE[run.adaptation.method])(**run.options)
    verdict = judge(run.first, run.rounds, started_from(run), reader.rao_blackwell)
    return Own(doubted(reader._result(run, verdict), run), verdict.pooled)


def own_curve(run: Any) -> Curve:
    """The estimate of the sampler that left a run, without its alarms."""
    check_run(run)
    if isinstance(run, ExchangeRun):
        return ParallelTempering(**run.options)._levels(run)
    return pool_crossed(run.first, run.rounds, started_from(run), run.options.get("rao_blackwell", True))[-1]


def bar_curve(run: LevelRun) -> Curve:
    """The estimate from pairs of neighbouring levels."""
    pair_sums, counts = run.pairs()
    ratios, known = bar_ratios(pair_sums, run.shift, counts), known_ratio(run)
    return lambda keep: np.r_[0.0, np.cumsum(np.r_[known, ratios(keep)[len(known) :]])]


def known_ratio(run: LevelRun) -> list[float]:
    """log Z_1 / Z_0 where a run knows it from base draws, else nothing."""
    first = getattr(run, "first_ratio", None)
    return [] if first is None else [first.log_mean]


def kept_samples(run: LevelRun) -> Samples:
    """The states that a run kept; ValueError if it kept none."""
    samples = run.samples
    if not len(samples.levels):
        raise ValueError("run has kept no states with their vectors: fit the sampler anew")
    return samples


def check_run(run: Any) -> None:
    """Raise TypeError or ValueError unless a run can be reweighted."""
    if isinstance(run, ContinuousRun):
        raise ValueError(
            'run must be one with levels, got one with continuous beta, which RTS and rule="continuous" of '
            "ThermodynamicIntegration read: take RTS(continuous=False)"
        )
    if not isinstance(run, (ExchangeRun, TemperingRun)):
        raise TypeError(
            f"run must be run_ of a fitted ParallelTempering or RTS, got {type(run).__module__}.{type(run).__name__}"
        )
    if run.n_groups < 2:
        raise ValueError(f"run must have at least 2 independent groups, got {run.n_groups}: raise n_ladders")
    if not run.pairs()[1].sum(axis=1).min() > 0:
        raise ValueError("run holds no states: fit the sampler anew")


class ReweightingEstimator(PartitionEstimator):
    """Base class of the estimators that read what a sampler left.

    A subclass defines ``_curve(run)``, which returns log Z_k - log Z_0 (K,) as a function of the groups to use, and
    may define ``_doubts(run, curve, diagnostics, std_error)``, sentences that speak against its number.

    Parameters
    ----------
    sampler : ParallelTempering, RTS or None, default=None
        What moves the chains where `fit` gets a model or a path: it is cloned, fitted and kept as ``sampler_``. None is
        a ParallelTempering with this estimator's `random_state` and `n_jobs`. A run that `fit` gets is read as it is.
    random_state : int, RandomState or None, default=None
        Of the default sampler.
    n_jobs : int or None, default=None
        Of the default sampler.
    verbose : int, default=0
        As in `AIS`.

    Attributes
    ----------
    log_partition_, log_partition_std_error_, log_partition_interval_, converged_, result_
        See `PartitionEstimator`. The error is a jackknife over the run's independent groups (Student t with G - 1
        degrees of freedom), of ``result_.log_partition_curve`` too. ``result_.diagnostics`` holds that
        ``curve_std_error`` (K,), the ``sampler_log_partition`` and the ``difference`` from it with its
        ``difference_std_error`` (jackknife too, since both come from the same states), in nats.
    sampler_ : PartitionEstimator
        The fitted sampler, unless `fit` got a run; its run is ``run_``.
    run_ : ExchangeRun or TemperingRun

    Notes
    -----
    Not converged if the run's own sampler would not be, whatever this method says; or if the two differ by more than
    0.01 nats and by chance in less than 0.1 % of the runs.
    """

    _parameter_constraints = {
        "sampler": [Instance((ParallelTempering, RTS), "a ParallelTempering() or an RTS()"), None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }
    _run_class: tuple[type, ...] = (ExchangeRun, TemperingRun)

    def __init__(self, sampler=None, *, random_state=None, n_jobs=None, verbose=0):
        self.sampler = sampler
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, path, y=None):
        self.__dict__.pop("sampler_", None)
        return super().fit(path, y)

    fit.__doc__ = PartitionEstimator.fit.__doc__

    # -- what a subclass defines ---------------------------------------------------------------------
    def _curve(self, run: LevelRun) -> Curve:
        raise NotImplementedError(f"{type(self).__name__} must define _curve(run)")

    def _doubts(self, run: LevelRun, curve: Curve, diagnostics: dict[str, Any], std_error: float) -> list[str]:
        """Sentences against the number; what was found goes to the diagnostics."""
        return []

    @property
    def _method(self) -> str:
        return type(self).__name__

    # -- sampling ------------------------------------------------------------------------------------
    def _seed(self) -> int:
        return super()._seed() if self.sampler is None else 0  # a sampler has its own

    def _as_path(self, path):
        if isinstance(path, (AnnealingRun, ContinuousRun)):
            check_run(path)
        self.sampler_ = ParallelTempering(n_jobs=self.n_jobs) if self.sampler is None else clone(self.sampler)
        self.sampler_._validate_params()
        path = self.sampler_._as_path(path)
        if path.n_rows is not None:
            raise ValueError(
                f"path must have one log Z for {type(self).__name__}: give path.row(t) for row t, or take "
                "ParallelTempering, which estimates that of every row"
            )
        return path

    def _run(self, path, seed):
        if self.sampler is None:
            self.sampler_.random_state = seed
        run = self.sampler_._run(path, self.sampler_._seed())
        self.sampler_._keep(self.sampler_._read(run))
        return run

    # -- estimate ------------------------------------------------------------------------------------
    def _read(self, run) -> PartitionResult:
        if hasattr(self, "sampler_"):  # which has judged it
            return self._beside(run, Own(self.sampler_.result_, own_curve(run)))
        return self._beside(run, own_reading(run))

    def _beside(self, run, own: Own) -> PartitionResult:
        """The result of a run whose sampler says `own`."""
        with one_blas_thread():
            read, ratio = self._curve(run), getattr(run, "first_ratio", None)
            curve_of = _remembered(lambda keep: with_first_ratio(read(keep), ratio))
            values, errors = jackknife(lambda keep: _with_difference(curve_of(keep), own.curve(keep)), run.n_groups)
        curve, curve_error = values[:-1], with_first_error(errors[:-1], ratio)
        std_error = float(curve_error[-1])
        between = Difference(values[-1], t_ratio(values[-1], errors[-1]) if errors[-1] > 0 else 0.0)
        log_partition = float(run.base_log_partition + curve[-1])
        diagnostics = {
            "curve_std_error": curve_error,
            "sampler_log_partition": own.result.log_partition,
            "difference": float(between.value),
            "difference_std_error": float(errors[-1]),
        }
        reasons = [*own.result.reasons, *self._doubts(run, curve_of, diagnostics, std_error)]
        if not np.isfinite([log_partition, std_error]).all():
            reasons.append(_missing_states(run))
        elif between.alarms(run.n_groups):
            reasons.append(
                f"{self._method} differs from {own.result.method} on the same run by {between.value:+.2g} nats (t = "
                f"{between.t:.1f}): raise n_sweeps or n_temperatures"
            )
        statement = "approximate" if diagnostics.pop("approximate", False) else "estimate"
        if statement == "estimate":
            reasons += bound_alarms(run.bound, log_partition, std_error, diagnostics)
        return PartitionResult(
            method=self._method,
            log_partition=log_partition,
            std_error=std_error,
            degrees_of_freedom=run.n_groups - 1,
            statement=statement,
            converged=not reasons,
            reasons=tuple(dict.fromkeys(reasons)),
            n_sweeps=run.n_sweeps,
            ladder=run.ladder,
            log_partition_curve=run.base_log_partition + curve,
            diagnostics=diagnostics,
        )


def _missing_states(run) -> str:
    """Why a number can't be had."""
    seen = np.count_nonzero(run.pairs()[1][:, len(known_ratio(run)) :], axis=0)
    few = int(np.sum(seen < 2))
    if not few:
        return "the states of neighbouring levels do not overlap at all: raise n_temperatures"
    return f"{few} of {len(seen)} levels have states of fewer than two groups of chains: raise n_sweeps"


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
