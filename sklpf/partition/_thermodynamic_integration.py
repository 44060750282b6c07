"""ThermodynamicIntegration: log Z as the integral of its slope over the ladder of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from sklpf._utils.sklearn import StrOptions
from sklpf._utils.warnings import Alarm
from sklpf.partition._parallel_tempering import ExchangeRun
from sklpf.partition._potential_run import PotentialRun
from sklpf.partition._result import Diagnostic
from sklpf.partition._reweighting import ReweightingEstimator
from sklpf.partition._rts import RTS, ContinuousRun, continuous_integral
from sklpf.partition._run import (
    LevelRun,
    bar_curve,
    level_process_curve,
    mbar_curve,
)
from sklpf.reweighting import RULES, integrate, level_moments, reweighted_slopes
from sklpf.uncertainty import jackknife

_LARGEST_SHARE = 0.5  # of the standard error that the error of quadrature may be
_NOISE = 3.0  # standard errors of it that are no error of quadrature
_OTHER_RUN = (
    'rule="continuous" needs a run of RTS(continuous=True), and the other rules need one with'
    " levels: give such a run, or such a sampler"
)


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

    _described = ReweightingEstimator._described | {
        "quadrature_error": Diagnostic("error of the quadrature (nats)"),
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
            seen = "nothing tells the error of the integral, as levels have too few states"
            return [Alarm("unknown-quadrature-error", seen, run.more_states)]
        if not abs(error) > max(_LARGEST_SHARE * std_error, _NOISE * noise, 1e-9):
            return []
        advice = "" if self.rule == "corrected" else 'take rule="corrected", or '
        seen = (
            f"the integral over {len(run.ladder)} levels is {error:+.2g} nats off for its standard"
            f" error of {std_error:.2g}"
        )
        return [Alarm("quadrature-error", seen, f"{advice}{run.more_levels}")]


def _quadrature_error(integral, closest, n_groups):
    """Difference from what has less of it, and its standard error: of those given the one with the
    smallest.
    """

    def differences(keep):
        return [integral(keep)[-1] - curve(keep)[-1] for curve in closest]

    pairs = [pair for pair in zip(*jackknife(differences, n_groups)) if np.isfinite(pair).all()]
    return min(pairs, key=lambda pair: pair[1], default=(np.nan, np.nan))
