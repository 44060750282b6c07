"""SAMS and WangLandau: simulated tempering whose weights adapt, then are frozen."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from sklpf._utils.context import stage
from sklpf._utils.sklearn import StrOptions
from sklpf._utils.validation import Interval
from sklpf.partition.levels._simulated_tempering import (
    N_GROUPS,
    PRIOR,
    UPDATES,
    AdaptedRun,
    SimulatedTempering,
    Start,
    pool_rounds,
)
from sklpf.programs import TemperingRound, run_round
from sklpf.uncertainty import jackknife


class AdaptiveTempering(SimulatedTempering):
    """Simulated tempering whose weights follow the visits of the chains until they are frozen.

    After each of some short rounds gain * (share of level k) / r_k is added to log Z_k; a subclass
    says by which rule (`_rule`). The draws of all chains between two updates count together, as if
    chains took turns, but move no level by more than 1 nat. Shares are those of drawn levels,
    unless the parameter `update` is "rao-blackwell": then means of probabilities.
    """

    update: Literal["rao-blackwell", "binary"] = "binary"

    _run_class = AdaptedRun

    def _rule(self, log_prior, pilot_error: float) -> TwoStageGain | HalvingGain:
        """The rule for a ladder, and for estimates of which the worst has this standard error."""
        raise NotImplementedError

    def _initialise(
        self,
        setup,
        *,
        growth: int = 10,  # an update takes a tenth of the redraws before it, at least one
        largest_step: float = 1.0,  # nats that an update adds to a level
    ) -> Start:
        start = self._first_pass(setup, self.n_sweeps // 4)
        n_redraws = max(1, self.n_sweeps // 4 // setup.sweeps_per_redraw)
        _, errors = jackknife(start.estimate, N_GROUPS)
        rule = self._rule(setup.log_prior, float(errors.max()))
        prior = np.exp(setup.log_prior)

        chains = start.chains
        curve = start.curve
        done = 0
        recent: list[TemperingRound] = []  # of the last half
        updates: list[tuple[float, ...]] = []
        with stage("adaptation", n_redraws) as redraws_done:
            while done < n_redraws:
                n = min(max(1, done // growth), n_redraws - done)
                chains, last = run_round(setup, (0, len(updates)), chains, curve, n)
                done += n
                shares = last.shares(self.update == "rao-blackwell").mean(axis=0)
                gain = min(rule.gain(n * self.n_chains), largest_step / np.max(shares / prior))
                curve = curve + gain * shares / prior
                curve = curve - curve[0]
                # Probabilities, also where levels are counted: few draws can't be even.
                probabilities = last.shares(True).mean(axis=0)
                evenness = rule.observe(probabilities, n * self.n_chains)
                updates.append((done * self.n_chains, gain, evenness, curve[-1]))
                recent = [*recent, last] if 2 * done > n_redraws else [last]
                redraws_done(n)

        sizes = [float(r.n_redraws) for r in recent]
        start = start._replace(
            chains=chains,
            curve=curve,
            estimate=pool_rounds(recent, True, sizes, first_ratio=setup.first_ratio),
            adaptation={
                "frozen": curve,
                "updates": dict(zip(UPDATES, map(np.array, zip(*updates)))),
                "settled": rule.settled,
            },
        )
        return self._after(setup, "adaptation", n_redraws * setup.sweeps_per_redraw, start)

    def _produce(self, setup, start):
        for run in super()._produce(setup, start):
            yield AdaptedRun(**vars(run), **start.adaptation)

    @classmethod
    def _reads(cls, run) -> bool:
        """Only runs whose weights this rule has found can be read."""
        return super()._reads(run) and run.method == cls.__name__


class TwoStageGain:
    """The gain of the t-th draw: min(r_min, t^-b) until visits were even at t0, then min(r_min,
    1 / (t - t0 + t0^b)).
    """

    def __init__(self, prior, exponent):
        self.prior = prior
        self.exponent = exponent
        self.visits = np.zeros(len(prior))
        self.n_draws = 0
        self.settled_at = None

    @property
    def settled(self) -> bool:
        return self.settled_at is not None

    def gain(self, n_draws):
        t = self.n_draws + n_draws
        t0 = self.settled_at
        slow = t**-self.exponent if t0 is None else 1 / (t - t0 + t0**self.exponent)
        return n_draws * min(self.prior.min(), slow)

    def observe(
        self,
        shares,
        n_draws,
        *,
        even=0.8,  # of the visits, from which on the gain falls as 1 / t
    ):
        self.n_draws += n_draws
        self.visits = self.visits + n_draws * shares
        evenness = 1 - np.max(np.abs(self.visits / self.n_draws / self.prior - 1))
        if not self.settled and evenness > even:
            self.settled_at = self.n_draws
        return evenness


@dataclass(eq=False, repr=False, kw_only=True)
class SAMS(AdaptiveTempering):
    """Self-adjusted mixture sampling (Tan 2017), with a frozen phase that gives the estimate and
    its error.

    Chains move along the ladder as in `RTS`. The estimates that decide where they go are moved by
    stochastic approximation,

        log Z_k += gamma_t (q(k | x) / r_k - q(0 | x) / r_0),

    with gains gamma_t = min(r_min, t^-b) of the t-th draw until, at t0, every level has been
    visited within 20 % as often as it should be, and min(r_min, 1 / (t - t0 + t0^b)) then. A pilot
    that takes a quarter of the sweeps gives the first estimates and places the chains, as in `RTS`;
    another quarter adapts. The estimates are then frozen, and the other half of the sweeps gives
    the result: its value, its error and its alarms are those of `RTS`.

    Parameters
    ----------
    n_chains : int, default=100
        At least 10, in 10 groups. All chains update the same estimates; the groups share nothing
        else.
    n_temperatures, n_sweeps, tol, max_sweeps, ladder, prior, sweeps_per_redraw
        As in `RTS`. With `tol` later rounds use the weights that earlier rounds have found.
    update : {"rao-blackwell", "binary"}, default="rao-blackwell"
        How the estimates are updated: by the probabilities q(k | x), or the drawn levels, 1 for the
        level drawn and 0 for all others, which is noisier and has no part in the frozen phase.
    exponent : float, default=0.8
        b, between 1/2 and 1 (both excluded).
    transition, checkpoint, checks, max_evaluations, max_seconds, random_state, n_jobs, verbose
        As in `AIS`.

    Attributes
    ----------
    log_partition_, log_partition_std_error_, log_partition_interval_, converged_, result_
        See `PartitionEstimator` and `RTS`, with the same diagnostics (nats); and for every update

        - ``adaptive_n_draws``, the draws of all chains until then;
        - ``adaptive_gain``, by which the visits were multiplied: the gains of its draws together;
        - ``adaptive_evenness``, 1 - max_k abs(share_k / r_k - 1) of all visits until then, share_k
          being the mean of q(k | x);
        - ``adaptive_log_partition``, the estimate of log Z. It is not a result: its error is
          unknown.

    Raises
    ------
    ValueError
        If a parameter can't be used.

    Notes
    -----
    Not converged if visits have not become even within the adaptive phase, if a frozen log Z_k
    differs from the result by more than 1 nat, or for the reasons of `RTS`.

    Draws of all chains count together, as if the chains took turns. An update takes one redraw of
    every chain at first, a tenth of those before it later, when gains are small; it moves no level
    by more than 1 nat, the most that a single draw can. Without the pilot, estimates that are 50
    nats off would take more draws to move than most runs have.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import BernoulliRBM
    >>> from sklpf.partition import SAMS
    >>> rng = np.random.default_rng(0)
    >>> weights = rng.normal(size=(4, 6))
    >>> rbm = BernoulliRBM.from_parameters(weights, np.zeros(6), np.zeros(4))
    >>> sams = SAMS(n_sweeps=1000, random_state=0).fit(rbm)
    >>> bool(sams.log_partition_std_error_ < 0.05)
    True
    """

    prior: Literal["uniform"] | float | ArrayLike = "uniform"
    update: Literal["rao-blackwell", "binary"] = "rao-blackwell"
    exponent: float = 0.8

    _parameter_constraints = {
        **AdaptiveTempering._parameter_constraints,
        "prior": PRIOR,
        "update": [StrOptions({"rao-blackwell", "binary"})],
        "exponent": [Interval(Real, 0.5, 1, closed="neither")],
    }

    def _rule(self, log_prior, pilot_error):
        return TwoStageGain(np.exp(log_prior), self.exponent)


class HalvingGain:
    """gamma for every visit, halved when the histogram since the last halving is flat; K / t once
    it is less.

    A visit of each level tells its log Z to about a nat. Estimates with a standard error below it
    are thus worth K / error^2 draws, and gamma begins where it would be after so many.
    """

    def __init__(
        self,
        n_levels,
        flatness,
        pilot_error,
        *,
        largest=1.0,  # nats
        least=1e-6,
    ):
        self.n_levels = n_levels
        self.flatness = flatness
        self.gamma = largest
        if np.isfinite(pilot_error):
            self.gamma = float(np.clip(pilot_error**2, least, largest))
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
    transition, checkpoint, checks, max_evaluations, max_seconds, random_state, n_jobs, verbose
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
    >>> weights = rng.normal(size=(4, 6))
    >>> rbm = BernoulliRBM.from_parameters(weights, np.zeros(6), np.zeros(4))
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
