"""Estimators that read a run of a sampler, without chains of their own: faces of the readings of
`LevelRun`.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Literal

from sklearn.base import clone

from sklpf._utils.sklearn import StrOptions
from sklpf._utils.validation import N_JOBS, Instance
from sklpf.partition._base import PartitionEstimator
from sklpf.partition._result import PartitionResult
from sklpf.partition.levels._parallel_tempering import ParallelTempering
from sklpf.partition.levels._rts import RTS, ContinuousRun
from sklpf.partition.levels._run import OTHER_RUN, LevelRun, check_run
from sklpf.partition.levels._simulated_tempering import SimulatedTempering
from sklpf.reweighting import RULES


@dataclass(eq=False, repr=False)
class ReweightingEstimator(PartitionEstimator):
    """Base class of the estimators that reweight a sampler's run.

    A subclass names its method of ``run.read(method)`` as `_method`, and in `_options` those of its
    parameters that this takes.

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

    _method: ClassVar[str]
    _options: ClassVar[tuple[str, ...]] = ()

    # -- sampling
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

    def _seed(self) -> int:
        return super()._seed() if self.sampler is None else self.sampler_._seed()

    def _run(self, path, seed):
        return self.sampler_._run(path, seed)

    def _read(self, run) -> PartitionResult:
        if isinstance(run, LevelRun):
            check_run(run)
        if hasattr(self, "sampler_"):
            self.sampler_._keep(run.read())
        return run.read(self._method, **{name: getattr(self, name) for name in self._options})


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
    >>> weights = rng.normal(size=(4, 6))
    >>> rbm = BernoulliRBM.from_parameters(weights, np.zeros(6), np.zeros(4))
    >>> tempering = ParallelTempering(random_state=0).fit(rbm)
    >>> mbar = MBAR().fit(tempering.run_)
    >>> bool(abs(mbar.log_partition_ - tempering.log_partition_) < 0.05)
    True
    """

    _method = "mbar"


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
    >>> weights = rng.normal(size=(4, 6))
    >>> rbm = BernoulliRBM.from_parameters(weights, np.zeros(6), np.zeros(4))
    >>> tempering = ParallelTempering(random_state=0).fit(rbm)
    >>> BAR().fit(tempering.run_).log_partition_ == tempering.log_partition_
    True
    """

    _method = "bar"


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
    >>> weights = rng.normal(size=(4, 6))
    >>> rbm = BernoulliRBM.from_parameters(weights, np.zeros(6), np.zeros(4))
    >>> rts = RTS(n_temperatures=20, n_sweeps=1000, random_state=0).fit(rbm)
    >>> difference = LevelProcess().fit(rts.run_).log_partition_ - rts.log_partition_
    >>> bool(abs(difference) < 0.05)
    True
    """

    _method = "level-process"


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
    >>> weights = rng.normal(size=(4, 6))
    >>> rbm = BernoulliRBM.from_parameters(weights, np.zeros(6), np.zeros(4))
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

    _method = "stepping-stone"
    _options = ("direction",)


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
    >>> weights = rng.normal(size=(4, 6))
    >>> rbm = BernoulliRBM.from_parameters(weights, np.zeros(6), np.zeros(4))
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
            raise ValueError(OTHER_RUN)
        return super()._as_path(path)

    _method = "thermodynamic-integration"
    _options = ("rule", "rao_blackwell")

    def _read(self, run):
        result = super()._read(run)
        how = f"{self.rule}{', Rao-Blackwell' if self.rao_blackwell else ''}"
        return replace(result, method=f"{result.method} ({how})")
