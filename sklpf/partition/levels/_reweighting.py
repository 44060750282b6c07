"""Estimators that read a run of a sampler, without chains of their own: the reweighting of its
states, and the integral of slopes over its ladder.
"""

from __future__ import annotations

import functools
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import clone

from sklpf._utils.sklearn import N_JOBS, Instance, StrOptions
from sklpf._utils.warnings import Alarm
from sklpf.partition._base import PartitionEstimator
from sklpf.partition._result import (
    Curve,
    LevelRun,
    PartitionResult,
    bar_curve,
    chained,
    check_run,
    first_pair,
    level_process_curve,
    mbar_curve,
    reading,
    readings_alarms,
)
from sklpf.partition.alarms import raised, threshold
from sklpf.partition.checks import judge
from sklpf.partition.levels._parallel_tempering import ExchangeRun, ParallelTempering
from sklpf.partition.levels._potential_run import PotentialRun
from sklpf.partition.levels._rts import RTS, ContinuousRun, continuous_integral
from sklpf.partition.levels._simulated_tempering import SimulatedTempering
from sklpf.programs import Samples
from sklpf.reweighting import (
    RULES,
    integrate,
    level_moments,
    overlap,
    overlap_matrix,
    reweighted_slopes,
    stepping_stones,
    with_first_error,
    with_first_ratio,
)
from sklpf.uncertainty import Difference, jackknife, t_ratio

_NOT_OF_ONE_DENSITY = {"not-of-this-density", "readings-differ"}  # alarms of the run itself
_OTHER_RUN = (
    'rule="continuous" needs a run of RTS(continuous=True), and the other rules need one with'
    " levels: give such a run, or such a sampler"
)


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
    Not converged if the run by itself raises an alarm; if what checks have found speaks against
    this number; or if the two methods differ by more than 0.01 nats and by chance in less than
    0.1 % of the runs.
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
    _run_class: ClassVar[Any] = LevelRun
    _reads_continuous = False

    # -- what a subclass defines
    def _curve(self, run: LevelRun) -> Curve:
        raise NotImplementedError(f"{type(self).__name__} must define _curve(run)")

    def _alarms(
        self, run: LevelRun, curve: Curve, diagnostics: dict[str, Any], std_error: float
    ) -> list[Alarm]:
        """Return alarms of the number; their statistics go to the diagnostics. Unless a subclass
        says better, neighbouring levels need draws that they share.
        """
        return run.pair_alarms()

    def _check(self, run: LevelRun) -> None:
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
        with reading():
            own = run._read()
            if hasattr(self, "sampler_"):
                self.sampler_._keep(judge(run, own))
        return self._compared(run, own)

    def _compared(self, run, own: PartitionResult) -> PartitionResult:
        """The result of a run that says `own` by itself."""
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
        errors = errors * getattr(run, "error_factor", 1.0)
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
        elif not any(alarm.kind in _NOT_OF_ONE_DENSITY for alarm in own.alarms):
            alarms += readings_alarms(self._method, own.method, between, run)

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
        return judge(run, result)


def _missing_states(run) -> Alarm:
    """Why a number can't be had."""
    few = 0
    if isinstance(run, LevelRun):
        seen = np.count_nonzero(run.last.pairs()[1][:, int(run.first_ratio is not None) :], axis=0)
        few = int(np.sum(seen < 2))
    if not few:
        return raised("little-overlap", "none of states", run.family)
    return raised("few-states", "groups", run.family, few=few, n=len(seen))


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

    def _compared(self, run, own):
        if isinstance(run, PotentialRun):
            return judge(run, replace(own, method="MBAR"))  # which it is
        return super()._compared(run, own)

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
            return [raised("few-states", "empty levels", run.family, empty=empty, n=len(zeta))]
        if pairs.min() >= threshold("little-overlap", "overlap"):
            return []
        return [raised("little-overlap", "neighbours", least=pairs.min())]


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
        if fewest >= threshold("few-states", "kept"):
            return []
        return [raised("few-states", "kept", run.family, fewest=fewest)]


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
        pair_sums, counts = run.last.pairs()
        both = stepping_stones(pair_sums, run.last.shift, counts)
        first = first_pair(run)

        def ratios(keep):
            forward, reverse = both(keep)
            by_direction = {"forward": forward, "reverse": reverse, "both": (forward + reverse) / 2}
            return np.r_[forward[:first], by_direction[self.direction][first:]]

        return chained(run, ratios)


@dataclass(eq=False, repr=False, kw_only=True)
class ThermodynamicIntegration(ReweightingEstimator):
    """Thermodynamic integration (Carlson et al. 2016, eqs. 20 and 21; Friel, Hurn & Wyse 2014).

    log Z is the integral over beta of d log Z / d beta = E U, where U = d log f / d beta. The run
    kept the sums of U, U^2 and dU / d beta at every level (of every fourth scan of
    `ParallelTempering`), and so also knows d^2 log Z / d beta^2 = Var U + E dU / d beta.

    Parameters
    ----------
    sampler : ParallelTempering, RTS or None, default=None
        See `ReweightingEstimator`.
    rule : {"left", "right", "trapezoid", "corrected", "simpson", "continuous"}, default="corrected"
        How the slopes at the levels are integrated. "corrected" is the trapezoidal rule less h^2 /
        12 times the change of the second derivative. "left" and "right" are sums of Riemann: too
        small and too large, where log f is linear in beta. "continuous" is no quadrature but log Z
        = log Z_0 + E[U / p(beta)] over a run whose beta was drawn from a density p, that of
        ``RTS(continuous=True)``, and from no other; p is estimated from the run.
    rao_blackwell : bool, default=False
        Take E U at every level from the kept states of all levels (TI-RB), instead of the states of
        that level. On a run of `RTS` this gives its number, but for thinning and quadrature. On one
        of `ParallelTempering` the weights of the states are those of `MBAR`.
    random_state, n_jobs, verbose
        See `ReweightingEstimator`.

    Attributes
    ----------
    log_partition_, log_partition_std_error_, log_partition_interval_, converged_, result_,
    sampler_, run_
        See `ReweightingEstimator`. ``result_.diagnostics`` also holds ``left_log_partition`` and
        ``right_log_partition``, between which log Z lies, but for noise, where log f is linear in
        beta; and ``quadrature_error``, the difference from `BAR` or `LevelProcess` on the same run,
        which have none, or from the corrected rule, which has less: from the one where it has the
        smallest standard error. It is part of `log_partition_std_error_`, which is the square root
        of the sum of its square and that of the jackknife's, ``curve_std_error[-1]``.

    Notes
    -----
    Not converged, besides what `ReweightingEstimator` says, if the error of quadrature is larger
    than half the standard error and than three of its own. The statement is then "approximate", and
    the interval infinite.

    Raises
    ------
    ValueError
        If the run's path has no `derivatives`, or its base draws points where the target is 0; if
        the run has continuous beta and the rule is another, or the other way round.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import BernoulliRBM, ParallelTempering
    >>> from sklpf.partition import ThermodynamicIntegration
    >>> rng = np.random.default_rng(0)
    >>> rbm = BernoulliRBM.from_parameters(
    ...     rng.normal(size=(4, 6)), np.zeros(6), np.zeros(4)
    ... )
    >>> tempering = ParallelTempering(random_state=0).fit(rbm)
    >>> corrected = ThermodynamicIntegration().fit(tempering.run_)
    >>> bool(abs(corrected.log_partition_ - tempering.log_partition_) < 0.05)
    True
    """

    rule: Literal["left", "right", "trapezoid", "corrected", "simpson", "continuous"] = "corrected"
    rao_blackwell: bool = False

    _parameter_constraints = {
        **ReweightingEstimator._parameter_constraints,
        "rule": [StrOptions({*RULES, "continuous"})],
        "rao_blackwell": ["boolean"],
    }

    _run_class = (LevelRun, ContinuousRun)
    _reads_continuous = True

    def _as_path(self, path):
        tempers = isinstance(self.sampler, RTS) and self.sampler.continuous
        if tempers != (self.rule == "continuous"):
            raise ValueError(_OTHER_RUN)
        return super()._as_path(path)

    def _check(self, run):
        if isinstance(run, ContinuousRun) != (self.rule == "continuous"):
            raise ValueError(_OTHER_RUN)
        if self.rule != "continuous":
            super()._check(run)
            if self.rao_blackwell and isinstance(run, PotentialRun):
                raise ValueError(
                    "rao_blackwell must be False where slopes are known at the draws' own states"
                    " alone"
                )
        elif self.rao_blackwell:
            raise ValueError(
                'rao_blackwell must be False with rule="continuous": averaged over q it is RTS'
                " itself"
            )

    @property
    def _method(self):
        return (
            "ThermodynamicIntegration"
            f" ({self.rule}{', Rao-Blackwell' if self.rao_blackwell else ''})"
        )

    def _curve(self, run):
        if self.rule == "continuous":
            return continuous_integral(run)
        moments = self._moments(run)
        return lambda keep: integrate(run.ladder, moments(keep), self.rule)

    def _moments(self, run):
        samples = run.samples
        sums = run.last.level_sums.sum(axis=0)
        if not samples.slopes.shape[1]:
            raise ValueError(
                "run must come from a path with the method derivatives(state, levels): take BAR"
            )
        if not np.isfinite(sums).all():
            raise ValueError(
                "run must come from a base without draws where the target is 0: take BAR, or"
                " another base"
            )
        if not self.rao_blackwell:
            return lambda keep: level_moments(sums[keep].sum(axis=0), run.ladder)
        zeta = mbar_curve(run) if isinstance(run, ExchangeRun) else None

        def moments(keep):
            chosen = samples.of(keep)
            own = level_moments(sums[keep].sum(axis=0), run.ladder)
            mixture = (
                run.last.log_pseudo_prior if zeta is None else np.log(chosen.counts) - zeta(keep)
            )
            return own._replace(slope=reweighted_slopes(chosen.vectors, chosen.slopes, mixture))

        return moments

    def _alarms(self, run, curve, diagnostics, std_error):
        if self.rule == "continuous":
            return []
        moments = self._moments(run)
        everything = np.arange(run.n_groups)
        for side in ("left", "right"):
            value = run.base_log_partition + integrate(run.ladder, moments(everything), side)[-1]
            diagnostics[f"{side}_log_partition"] = value
        closest = [bar_curve(run), level_process_curve(run)]
        if self.rule != "corrected":
            closest.append(lambda keep: integrate(run.ladder, moments(keep), "corrected"))
        error, noise = _quadrature_error(curve, closest, run.n_groups)
        diagnostics["quadrature_error"] = error
        if not np.isfinite([error, noise]).all():
            return [raised("few-states", "of an integral", run.family)]
        of_error = threshold("quadrature-error", "share") * std_error
        of_noise = threshold("quadrature-error", "noise") * noise
        if not abs(error) > max(of_error, of_noise, 1e-9):
            return []
        return [
            raised(
                "quadrature-error",
                "large",
                run.family,
                n=len(run.ladder),
                error=error,
                std_error=std_error,
                better_rule="" if self.rule == "corrected" else 'take rule="corrected", or ',
            )
        ]


def _quadrature_error(integral, closest, n_groups):
    """Difference from what has less of it, and its standard error: of those given the one with the
    smallest.
    """

    def differences(keep):
        return [integral(keep)[-1] - curve(keep)[-1] for curve in closest]

    pairs = [pair for pair in zip(*jackknife(differences, n_groups)) if np.isfinite(pair).all()]
    return min(pairs, key=lambda pair: pair[1], default=(np.nan, np.nan))
