"""Chains that stay with a model while its parameters change, and log Z from their weights or their
levels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_softmax, logsumexp

from sklpf._utils.numbers import Array
from sklpf._utils.random import REDRAW, Stream, seeded, systematic
from sklpf.paths import Path, State, has, require_base, take
from sklpf.programs import Chains, Setup, anneal, check_finite, first_pass, plan_runs, run_round
from sklpf.transitions import default_move, stream_uniforms
from sklpf.uncertainty import effective_sample_size, jackknife, log_mean_exp, mean_weight

_N_CHAINS = 100  # particles, or tempered chains
_N_GROUPS = 10


class Estimate(NamedTuple):
    """log Z in nats, its standard error (inf: unknown, NaN: there is none), and the groups' own
    estimates (G,).

    The exponentials of the latter are unbiased. A second standard error, that of all particles'
    weights, chooses between estimates: were those kept whose ten groups happen to agree, their
    intervals would be too narrow.
    """

    log_partition: float
    std_error: float
    groups: Array
    weights_error: float


class Particles:
    """Independent groups of particles at a model's target, weighted whenever its parameters change.

    `start` draws them from the base and takes them up a ladder; `update` weighs them by f_new /
    f_old where they stand, and moves them. Both are steps of one sequential Monte Carlo sampler
    (Jarzynski 1997; Del Moral et al. 2006): within a group particles are resampled when their
    effective number is below half of theirs. The 10 groups' estimates of Z are independent and
    unbiased.

    Parameters
    ----------
    seed : int
    n_temperatures : int
        Levels of the ladder, placed by a pilot.
    """

    n_chains = _N_CHAINS  # in all groups together, a multiple of 10

    def __init__(self, seed: int, n_temperatures: int):
        self.seed = seed
        self.n_temperatures = n_temperatures
        self.n_updates = 0
        self.n_moves = 0  # of all particles together

    def start(self, path: Path) -> None:
        """Draw the particles from the path's base and anneal them to its target."""
        levels_at_once = 5  # from one resampling to the next
        base_log_partition = require_base(path, "The tracking of log Z")
        n = self.n_chains
        move = default_move(path)
        n_levels = self.n_temperatures
        plan = plan_runs([path], move, "adaptive", n_levels, n, [self.seed])[0]
        self.path = plan.path
        self.transition = plan.transition
        self.n_moves = plan.n_sweeps
        self.log_weights = np.zeros(n)
        self.log_means = np.full(_N_GROUPS, base_log_partition)
        self.fewest = 1.0
        self.ancestors = np.arange(n)
        stream = seeded(self.seed).of("annealing")
        self.state = self.path.sample_base(n, stream)
        self.auxiliary = self.transition.start(self.path, self.state, stream)
        last = len(self.path.ladder) - 1
        for k in range(0, last, levels_at_once):
            self._move(np.arange(k, min(k + levels_at_once, last) + 1), stream.at(k + 1))

    def spread(self, path: Path) -> float:
        """Standard deviation over particles of log f_new - log f_old, in nats."""
        return float(np.std(self._gain(path)[0]))

    def update(self, path: Path) -> None:
        """Follow the model to its new parameters, those of the target of `path`, whose ladder is
        the same.
        """
        gain, state = self._gain(path)
        self.path = path
        self.state = state
        self._weigh(gain)
        stream = Stream(seeded(self.seed).of("following").key, 0, self.n_updates)
        self.auxiliary = self.transition.start(path, state, stream)
        self._move(np.full(2, len(path.ladder) - 1), stream)
        self.n_updates += 1

    def estimate(self) -> Estimate:
        """log Z of the target that was followed last, with the jackknife's error over groups, and
        that of all weights.

        The weights are added up by the particle that they descend from. The errors are unknown,
        inf, once a single step has left an effective number below half of all particles, or where
        groups differ by more than a nat: the mean then depends on weights that were not seen.
        """
        least_share = 0.5  # effective share of the particles after a single step
        most_apart = 1.0  # nats between groups
        groups = self.log_means + log_mean_exp(self.log_weights.reshape(_N_GROUPS, -1), axis=1)
        value, std_error = jackknife(lambda keep: log_mean_exp(groups[keep]), _N_GROUPS)
        lost = self.fewest < least_share or groups.std(ddof=1) > most_apart
        if lost:
            return Estimate(float(value), np.inf, groups, np.inf)
        ancestor_weights = np.full(self.n_chains, -np.inf)
        weights = np.repeat(self.log_means, self.n_chains // _N_GROUPS) + self.log_weights
        np.logaddexp.at(ancestor_weights, self.ancestors, weights)
        return Estimate(float(value), float(std_error), groups, mean_weight(ancestor_weights).delta)

    def _gain(self, path):
        """log f_new - log f_old of every particle, and their state on the new path."""
        state = carried(self.path, path, self.state)
        last = np.full(self.n_chains, len(path.ladder) - 1)
        gain = path.log_f(state, last) - self.path.log_f(self.state, last)
        return check_finite(gain, allow_zero=path.has_boundary), state

    def _move(self, levels, stream) -> None:
        """Resample where that is needed, then weigh and move at all levels but the first."""
        self._resample(stream.of("resampling"))
        levels = np.repeat(levels[:, np.newaxis], self.n_chains, axis=1)
        chains = Chains(self.state, self.auxiliary, levels[0])
        chains, gain = anneal(self.path, self.transition, chains, levels, stream)
        self.state, self.auxiliary, _ = chains
        self._weigh(gain)
        self.n_moves += gain.size * (len(levels) - 1)

    def _weigh(self, gain) -> None:
        """Multiply the weights, and note the effective share of particles of this step alone."""
        self.log_weights = check_finite(self.log_weights + gain, allow_zero=self.path.has_boundary)
        self.fewest = min(self.fewest, effective_sample_size(gain) / len(gain))

    def _resample(self, stream) -> None:
        """Resample the groups with a low effective number of particles (systematically)."""
        by_group = self.log_weights.reshape(_N_GROUPS, -1)
        n = by_group.shape[1]
        effective = effective_sample_size(by_group, axis=1)
        poor = np.flatnonzero((effective > 0) & (effective < n / 2))
        if not len(poor):
            return
        index = np.arange(self.n_chains).reshape(by_group.shape)
        uniforms = stream_uniforms(stream, _N_GROUPS, REDRAW)
        for g in poor:
            index[g] = g * n + systematic(by_group[g], n, uniforms[g])
        self.log_means[poor] += log_mean_exp(by_group[poor], axis=1)
        by_group[poor] = 0.0  # of `log_weights`
        chosen = index.ravel()
        self.state = self.path.take(self.state, chosen)
        self.auxiliary = take(self.auxiliary, chosen)
        self.ancestors = self.ancestors[chosen]


class TemperedChains:
    """Simulated tempering whose estimates of log Z_k follow the model (Carlson et al. 2016, section
    6, equation 24).

    After an update 100 chains make 5 sweeps and redraw their levels k after each. The averages c_k
    of q(k | x) then correct the curve by log Z_k += alpha (log r_1 - log r_k + log c_k - log c_1),
    with alpha = 0.2. That has no error bar of its own.

    Parameters
    ----------
    seed : int
    """

    n_chains = _N_CHAINS

    def __init__(self, seed: int):
        self.seed = seed
        self.n_updates = 0
        self.n_moves = 0

    def start(self, path: Path) -> None:
        """Anneal the chains from the path's base, which gives the first curve."""
        n_levels = 100
        slope = 2.0  # r_k is in proportion to exp(slope beta_k)
        pilot_sweeps = 400  # of every chain
        base_log_partition = require_base(path, "The tracking of log Z")
        ladder = np.linspace(0, 1, n_levels)
        transition = default_move(path).tune(path, seeded(self.seed).of("tuning").key)
        first = np.array([0, self.n_chains])
        path = path.with_ladder(ladder)
        log_prior = log_softmax(slope * ladder)
        self.setup = Setup(path, transition, log_prior, first, self.seed, 1, {"n_jobs": None})
        self.chains, log_weights = first_pass(self.setup, pilot_sweeps)
        self.curve = base_log_partition + log_mean_exp(log_weights, axis=0)
        self.n_moves = self.n_chains * pilot_sweeps

    @property
    def path(self) -> Any:
        """The path that was followed last."""
        return self.setup.path

    def update(self, path: Path) -> None:
        """Follow the model to its new parameters, those of the target of `path`, whose ladder is
        the same.
        """
        gain = 0.2  # alpha of equation 24
        n_sweeps = 5  # of every chain after an update
        chains = [old._replace(state=carried(self.path, path, old.state)) for old in self.chains]
        self.setup = self.setup._replace(path=path)
        name = (self.n_updates,)
        self.chains, left = run_round(self.setup, name, chains, self.curve, n_sweeps)
        log_shares = logsumexp(left.log_q_sums, axis=(0, 1)) - self.setup.log_prior
        self.curve = self.curve + gain * (log_shares - log_shares[0])
        self.n_updates += 1
        self.n_moves += self.n_chains * n_sweeps

    def estimate(self) -> Estimate:
        """log Z of the target that was followed last, without an error."""
        return Estimate(float(self.curve[-1]), float("nan"), np.empty(0), float("nan"))


def carried(old: State, new: State, state: State) -> Any:
    """The state on a path with other parameters: nothing is kept that depends on the old ones."""
    if has(new, "position"):
        return new.at(old.position(state))
    return new.state_from_rows(old.rows(state))
