"""SteppingStone: means of ratios of neighbouring levels, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from sklpf._utils.sklearn import StrOptions
from sklpf.partition._level_run import first_pair, known_ratio
from sklpf.partition._reweighting import ReweightingEstimator
from sklpf.reweighting import stepping_stones


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
        known = known_ratio(run)
        first = max(first_pair(run), len(known))
        weights = {"forward": (1.0, 0.0), "reverse": (0.0, 1.0), "both": (0.5, 0.5)}[self.direction]

        def curve(keep):
            forward, reverse = both(keep)
            mean = weights[0] * forward[first:] + weights[1] * reverse[first:]
            return np.r_[0.0, np.cumsum(np.r_[known or forward[:first], mean])]

        return curve

    def _alarms(self, run, curve, diagnostics, std_error):
        return run.pair_alarms()
