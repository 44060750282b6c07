"""BAR: Bennett's acceptance ratio between neighbouring levels of a run."""

from __future__ import annotations

from sklpf.partition._level_run import bar_curve
from sklpf.partition._reweighting import ReweightingEstimator


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

    def _curve(self, run):
        return bar_curve(run)

    def _alarms(self, run, curve, diagnostics, std_error):
        return run.pair_alarms()
