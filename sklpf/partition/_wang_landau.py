"""WangLandau: flat histograms over the levels."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np

from sklpf._utils.sklearn import Interval
from sklpf.partition._adaptive import AdaptiveTempering

_LARGEST_GAMMA = 1.0  # nats
_LEAST_GAMMA = 1e-6


class HalvingGain:
    """gamma for every visit, halved when the histogram since the last halving is flat; K / t once
    it is less.

    A visit of each level tells its log Z to about a nat. Estimates with a standard error below it
    are thus worth K / error^2 draws, and gamma begins where it would be after so many.
    """

    def __init__(self, n_levels, flatness, pilot_error):
        self.n_levels = n_levels
        self.flatness = flatness
        self.gamma = _LARGEST_GAMMA
        if np.isfinite(pilot_error):
            self.gamma = float(np.clip(pilot_error**2, _LEAST_GAMMA, _LARGEST_GAMMA))
        self.n_draws = n_levels / self.gamma
        self.settled = False
        self.histogram = np.zeros(n_levels)

    def gain(self, n_draws):
        gamma = self.n_levels / (self.n_draws + n_draws) if self.settled else self.gamma
        return n_draws * gamma / self.n_levels

    def observe(self, shares, n_draws):
        self.n_draws += n_draws
        self.histogram = self.histogram + n_draws * shares
        evenness = self.histogram.min() / self.histogram.mean()
        if not self.settled and evenness > self.flatness:
            self.gamma /= 2
            self.histogram = np.zeros(self.n_levels)
            self.settled = self.gamma < self.n_levels / self.n_draws
        return evenness


@dataclass(eq=False, repr=False, kw_only=True)
class WangLandau(AdaptiveTempering):
    """Wang-Landau sampling of the levels, with a frozen phase that gives the estimate and its
    error.

    Chains move along the ladder as in `RTS`. Every visit of a level adds gamma to its log Z_k, so
    that chains go where they have been less (Wang & Landau 2001). gamma is halved whenever the
    histogram of the visits since the last halving is flat, and is K / t after t draws once it is
    less than that (Belardinelli & Pereyra 2007): further halving would freeze an error. A pilot
    that takes a quarter of the sweeps gives the first estimates and places the chains, as in `RTS`.
    gamma therefore begins at the largest squared standard error of the pilot's log Z_k, or at 1
    where that is less, and t at K / gamma: what the pilot's draws are worth. Another quarter
    adapts. The estimates are then frozen, and the other half of the
    sweeps gives the result: its value, its error and its alarms are those of `RTS`.

    Parameters
    ----------
    n_chains : int, default=100
        At least 10, in 10 groups. All chains update the same estimates; the groups share nothing
        else.
    n_temperatures, n_sweeps, tol, max_sweeps, ladder, sweeps_per_redraw
        As in `RTS`. With `tol` later rounds use the weights that earlier rounds have found.
    flatness : float, default=0.2
        A histogram, of the probabilities q(k | x) of the visits, is flat when every level has more
        than this share of the mean. 0.8 is that of the first paper; it takes many more draws for
        the same accuracy.
    transition, checkpoint, checks, random_state, n_jobs, verbose
        As in `AIS`.

    Attributes
    ----------
    log_partition_, log_partition_std_error_, log_partition_interval_, converged_, result_
        See `PartitionEstimator` and `RTS`, with the same diagnostics (nats); and for every update

        - ``adaptive_n_draws``, the draws of all chains until then, without the pilot's;
        - ``adaptive_gain``, by which K times the share of the visits was multiplied: gamma / K of
          its draws together;
        - ``adaptive_evenness``, the smallest over the mean of the histogram;
        - ``adaptive_log_partition``, the estimate of log Z. It is not a result: its error is
          unknown.

    Raises
    ------
    ValueError
        If a parameter can't be used.

    Notes
    -----
    Not converged if gamma has not come down to K / t within the adaptive phase, if a frozen log Z_k
    differs from the result by more than 1 nat, or for the reasons of `RTS`.

    An update takes one redraw of every chain at first, a tenth of those before it later; it moves
    no level by more than 1 nat.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import BernoulliRBM
    >>> from sklpf.partition import WangLandau
    >>> rng = np.random.default_rng(0)
    >>> rbm = BernoulliRBM.from_parameters(
    ...     rng.normal(size=(4, 6)), np.zeros(6), np.zeros(4)
    ... )
    >>> flat = WangLandau(n_sweeps=1000, random_state=0).fit(rbm)
    >>> bool(flat.log_partition_std_error_ < 0.05)
    True
    """

    flatness: float = 0.2

    _parameter_constraints = {
        **AdaptiveTempering._parameter_constraints,
        "flatness": [Interval(Real, 0, 1, closed="left")],
    }

    def _rule(self, log_prior, pilot_error):
        return HalvingGain(len(log_prior), self.flatness, pilot_error)
