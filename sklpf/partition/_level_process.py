"""LevelProcess: shares of levels as the stationary law of the process that redraws them."""

from __future__ import annotations

from sklpf._utils.alarm import Alarm
from sklpf.partition._level_run import level_process_curve
from sklpf.partition._reweighting import ReweightingEstimator

_FEWEST_STATES = 10


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

    def _curve(self, run):
        return level_process_curve(run)

    def _alarms(self, run, curve, diagnostics, std_error):
        fewest = int(run.samples.counts.min())
        diagnostics["fewest_states"] = fewest
        if fewest >= _FEWEST_STATES:
            return []
        seen = f"{fewest} kept states at some level (at least {_FEWEST_STATES} needed)"
        return [Alarm("few-states", seen, "raise n_sweeps")]
