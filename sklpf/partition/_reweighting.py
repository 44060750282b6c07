"""Estimators that read a run of a sampler, without chains of their own."""

from __future__ import annotations

import functools
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import clone

from sklpf._utils.sklearn import N_JOBS, Instance, StrOptions
from sklpf._utils.warnings import Alarm
from sklpf.partition._base import PartitionEstimator
from sklpf.partition._parallel_tempering import ParallelTempering
from sklpf.partition._potential_run import PotentialRun
from sklpf.partition._result import CURVE, PAIR, PLAIN_BOUND, Diagnostic, PartitionResult
from sklpf.partition._run import (
    Curve,
    LevelRun,
    bar_curve,
    chained,
    check_run,
    level_process_curve,
    mbar_curve,
    stepping_ratios,
)
from sklpf.partition._simulated_tempering import SimulatedTempering
from sklpf.partition.checks._beside import checked
from sklpf.programs._rounds import Samples
from sklpf.reweighting import (
    overlap,
    overlap_matrix,
    with_first_error,
    with_first_ratio,
)
from sklpf.uncertainty import Difference, jackknife, t_ratio

_LEAST_OVERLAP = 0.03
_FEWEST_STATES = 10


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
        sampler_curve = run.curve()
        from_run = self._curve(run)

        @functools.cache
        def known(keep: tuple[int, ...]):
            return with_first_ratio(from_run(np.array(keep)), run.first_ratio)

        def curve_of(keep):
            return known(tuple(keep))

        def with_difference(keep):
            curve = curve_of(keep)
            return np.r_[curve, curve[-1] - sampler_curve(keep)[-1]]

        values, errors = jackknife(with_difference, run.n_groups)
        curve = values[:-1]
        curve_error = with_first_error(errors[:-1], run.first_ratio)
        between = Difference(values[-1], t_ratio(values[-1], errors[-1]))
        log_partition = run.base_log_partition + curve[-1]
        std_error = curve_error[-1]

        diagnostics = {
            "curve_std_error": curve_error,
            "sampler_log_partition": own.log_partition,
            "difference": between.value,
            "difference_std_error": errors[-1],
        }
        alarms = [*own.alarms, *self._alarms(run, curve_of, diagnostics, std_error)]
        # The error of a quadrature is the same in all groups, so that the jackknife can't see it.
        quadrature = diagnostics.get("quadrature_error", 0.0)
        is_estimate = all(alarm.kind != "quadrature-error" for alarm in alarms)
        if np.isfinite(quadrature) and is_estimate:
            std_error = np.hypot(std_error, quadrature)
        if not np.isfinite([log_partition, std_error]).all():
            alarms.append(_missing_states(run))
        elif between.alarms(run.n_groups):
            seen = (
                f"{self._method} differs from {own.method} on the same run by"
                f" {between.value:+.2g} nats (t = {between.t:.1f})"
            )
            remedy = f"{run.more_states}, or {run.more_levels}"
            alarms.append(Alarm("readings-differ", seen, remedy))

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
        seen = np.count_nonzero(run.last.pairs()[1][:, int(run.first_ratio is not None) :], axis=0)
        few = int(np.sum(seen < 2))
    if not few:
        return Alarm(
            "no-overlap",
            "the states of neighbouring levels do not overlap at all",
            getattr(run, "more_levels", "raise n_temperatures"),
        )
    found = f"{few} of {len(seen)} levels have states of fewer than two groups of chains"
    return Alarm("few-states", found, run.more_states)


class MBAR(ReweightingEstimator):
    """Multistate Bennett acceptance ratio (Shirts & Chodera 2008; Carlson et al. 2016, eq. 18).

    The states of all levels are pooled, and every log Z_k maximises one likelihood. It uses the
    states that the run kept, systematically thinned: at most 20,000 of `ParallelTempering` and
    5,000 of `RTS`, so that memory is bounded for runs of any length. Thinning costs precision (up
    to two or three times the error of `BAR` if one state of 16 is kept), which the error bar
    includes.

    Parameters
    ----------
    sampler, random_state, n_jobs, verbose
        See `ReweightingEstimator`.

    Attributes
    ----------
    log_partition_, log_partition_std_error_, log_partition_interval_, converged_, result_,
    sampler_, run_
        See `ReweightingEstimator`. ``result_.diagnostics`` also holds the ``overlap_matrix`` of all
        levels with states (symmetric form; Klimovich, Shirts & Mobley 2015), its
        ``second_eigenvalue``, the ``neighbour_overlap`` (K - 1,) of every pair by itself, which is
        1/2 for equal levels, and ``n_states``.

    Notes
    -----
    Not converged, besides what `ReweightingEstimator` says, if a pair of neighbours overlaps by
    less than 0.03. Entries of the matrix of all levels fall as 1 / K if levels are close, and so do
    not measure this overlap.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import BernoulliRBM, ParallelTempering
    >>> from sklpf.partition import MBAR
    >>> rng = np.random.default_rng(0)
    >>> rbm = BernoulliRBM.from_parameters(
    ...     rng.normal(size=(4, 6)), np.zeros(6), np.zeros(4)
    ... )
    >>> tempering = ParallelTempering(random_state=0).fit(rbm)
    >>> mbar = MBAR().fit(tempering.run_)
    >>> bool(abs(mbar.log_partition_ - tempering.log_partition_) < 0.05)
    True
    """

    _described = ReweightingEstimator._described | {
        "overlap_matrix": Diagnostic(dimensions=("level", "other_level")),
        "neighbour_overlap": Diagnostic(
            "overlap of neighbouring levels, lowest (0.5: full)", "high", PAIR
        ),
        "n_states": Diagnostic("states that were read"),
    }

    def _beside(self, run, own):
        if isinstance(run, PotentialRun):
            return replace(own, method="MBAR")  # which it is
        return super()._beside(run, own)

    _curve = staticmethod(mbar_curve)

    def _alarms(self, run, curve, diagnostics, std_error):
        samples = run.samples
        zeta = curve(np.arange(run.n_groups))
        matrix = overlap_matrix(samples.vectors, samples.counts, zeta)
        pairs = np.array([_pair_overlap(samples, zeta, k) for k in range(len(zeta) - 1)])
        second = np.linalg.eigvalsh(matrix)[-2] if len(matrix) > 1 else np.nan
        diagnostics.update(
            overlap_matrix=matrix,
            second_eigenvalue=second,
            neighbour_overlap=pairs,
            n_states=len(samples.levels),
        )
        empty = int(np.sum(samples.counts == 0))
        if empty:
            return [
                Alarm(
                    "few-states",
                    f"{empty} of {len(zeta)} levels have no kept states",
                    run.more_states,
                )
            ]
        if pairs.min() >= _LEAST_OVERLAP:
            return []
        seen = (
            f"neighbouring levels overlap by {pairs.min():.2g} (at least {_LEAST_OVERLAP} needed)"
        )
        return [Alarm("little-overlap", seen, "raise n_temperatures")]


def _pair_overlap(samples: Samples, zeta, k: int) -> float:
    """Overlap of levels k and k + 1 by themselves: an off-diagonal entry of their own matrix,
    averaged over both.
    """
    up, down = (samples.vectors[samples.levels == level] for level in (k, k + 1))
    if not len(up) or not len(down):
        return 0.0
    return overlap(up[:, k + 1] - up[:, k], down[:, k] - down[:, k + 1], zeta[k + 1] - zeta[k]) / 2


class BAR(ReweightingEstimator):
    """Bennett's acceptance ratio between neighbouring levels (Bennett 1976; Carlson et al. 2016,
    eq. 17).

    The ratio Z_(k+1) / Z_k of every pair comes from all states of its two levels, by a bridge whose
    reference is an earlier estimate (Meng & Wong 1996), from sums that the run kept while it moved.
    On a run of `ParallelTempering` this is that estimator's own number, to the bit; on one of `RTS`
    it needs equilibrium at each level only, however often the levels were visited.

    Parameters
    ----------
    sampler, random_state, n_jobs, verbose
        See `ReweightingEstimator`.

    Attributes
    ----------
    log_partition_, log_partition_std_error_, log_partition_interval_, converged_, result_,
    sampler_, run_
        See `ReweightingEstimator`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import BernoulliRBM, ParallelTempering
    >>> from sklpf.partition import BAR
    >>> rng = np.random.default_rng(0)
    >>> rbm = BernoulliRBM.from_parameters(
    ...     rng.normal(size=(4, 6)), np.zeros(6), np.zeros(4)
    ... )
    >>> tempering = ParallelTempering(random_state=0).fit(rbm)
    >>> BAR().fit(tempering.run_).log_partition_ == tempering.log_partition_
    True
    """

    _curve = staticmethod(bar_curve)

    def _alarms(self, run, curve, diagnostics, std_error):
        return run.pair_alarms()


class LevelProcess(ReweightingEstimator):
    """Stationary law of the process level → state → level (Carlson et al. 2016, appendix G).

    `RTS` takes the average of q(k | x) over all states for the share of level k, which is right
    once the chains have spread over the ladder. Here the average is taken separately over the
    states of each level. This gives a transition matrix between levels, whose stationary
    distribution is the share. States need to be in equilibrium only at their own levels. It uses
    the states that the run kept, as `MBAR` does.

    Parameters
    ----------
    sampler, random_state, n_jobs, verbose
        See `ReweightingEstimator`.

    Attributes
    ----------
    log_partition_, log_partition_std_error_, log_partition_interval_, converged_, result_,
    sampler_, run_
        See `ReweightingEstimator`. ``result_.diagnostics["fewest_states"]`` is the number of kept
        states at the level that has the fewest.

    Notes
    -----
    Not converged, besides what `ReweightingEstimator` says, if fewer than 10 kept states are at
    some level.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import RTS, BernoulliRBM
    >>> from sklpf.partition import LevelProcess
    >>> rng = np.random.default_rng(0)
    >>> rbm = BernoulliRBM.from_parameters(
    ...     rng.normal(size=(4, 6)), np.zeros(6), np.zeros(4)
    ... )
    >>> rts = RTS(n_temperatures=20, n_sweeps=1000, random_state=0).fit(rbm)
    >>> difference = LevelProcess().fit(rts.run_).log_partition_ - rts.log_partition_
    >>> bool(abs(difference) < 0.05)
    True
    """

    _curve = staticmethod(level_process_curve)

    def _alarms(self, run, curve, diagnostics, std_error):
        fewest = int(run.samples.counts.min())
        diagnostics["fewest_states"] = fewest
        if fewest >= _FEWEST_STATES:
            return []
        seen = f"{fewest} kept states at some level (at least {_FEWEST_STATES} needed)"
        return [Alarm("few-states", seen, run.more_states)]


@dataclass(eq=False, repr=False, kw_only=True)
class SteppingStone(ReweightingEstimator):
    """Chaining of ratios of neighbouring levels (Bishop 2006, eqs. 11.72 and 11.74; Xie et al.
    2011).

    Forward, Z_(k+1) / Z_k is the mean of f_(k+1) / f_k over the states of level k; in reverse its
    inverse is the mean of f_k / f_(k+1) over those of level k + 1. `BAR` is at least as precise;
    what one learns is whether both agree.

    Parameters
    ----------
    sampler : ParallelTempering, RTS or None, default=None
        See `ReweightingEstimator`.
    direction : {"forward", "reverse", "both"}, default="both"
        "both" averages the two logs. Where base draws may have f_1 = 0 the first ratio is the
        forward one.
    random_state, n_jobs, verbose
        See `ReweightingEstimator`.

    Attributes
    ----------
    log_partition_, log_partition_std_error_, log_partition_interval_, converged_, result_,
    sampler_, run_
        See `ReweightingEstimator`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import BernoulliRBM, ParallelTempering
    >>> from sklpf.partition import SteppingStone
    >>> rng = np.random.default_rng(0)
    >>> rbm = BernoulliRBM.from_parameters(
    ...     rng.normal(size=(4, 6)), np.zeros(6), np.zeros(4)
    ... )
    >>> tempering = ParallelTempering(random_state=0).fit(rbm)
    >>> chained = SteppingStone(direction="forward").fit(tempering.run_)
    >>> bool(abs(chained.log_partition_ - tempering.log_partition_) < 0.05)
    True
    """

    direction: Literal["forward", "reverse", "both"] = "both"

    _parameter_constraints = {
        **ReweightingEstimator._parameter_constraints,
        "direction": [StrOptions({"forward", "reverse", "both"})],
    }

    def _curve(self, run):
        return chained(run, stepping_ratios(run, direction=self.direction))

    def _alarms(self, run, curve, diagnostics, std_error):
        return run.pair_alarms()
