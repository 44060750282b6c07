"""Particles that look for the target: an adaptive pass from the base.

No estimate is taken from it, so that temperatures, steps and proposals may follow the particles.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from sklpf._utils.context import current_budget, report
from sklpf._utils.numbers import Array
from sklpf._utils.parallel import Checkpoint
from sklpf._utils.random import Stream, systematic
from sklpf.paths import COVER, GeometricPath, choose, fit_base, has, take
from sklpf.programs._outward_walks import MixtureWalk, walk_outwards
from sklpf.transitions import (
    Transition,
    acceptance,
    fixed_pilot,
    next_beta,
    note_on_the_way,
    root_of,
)
from sklpf.uncertainty import log_mean_exp

_FEWEST_NOTED, _MOST_NOTED = 100, 400  # base draws, from which climbs begin


class Learned(NamedTuple):
    """Base that particles found, and its cost.

    Attributes
    ----------
    points : ndarray of shape (n, d)
        At the target, of all particles several times, one time after the other.
    found : ndarray of shape (k, d)
        Where walks from the outermost of them have been.
    climb_starts : ndarray of shape (m, d)
        Base draws, and some particles of every later level.
    drift : float
        The largest difference of a mean or a variance between the first half of the time at the
        target and the second, in standard errors.
    exploration_incomplete : bool
        Whether these walks still got further when they ended.
    beta : float
        Where they stand: 1 unless sweeps ran out.
    n_sweeps : int
        Of all particles together.
    """

    points: Array
    found: Array
    climb_starts: Array
    drift: float
    exploration_incomplete: bool
    beta: float
    n_sweeps: int


class _Carry(NamedTuple):
    """Particles that stand at an inverse temperature. Numbers come back from a checkpoint as
    arrays (), which are taken for numbers.
    """

    state: Any
    auxiliary: tuple
    beta: float
    log_mean: float  # of the product of mean weights so far
    log_step: float
    n_sweeps: int
    climb_starts: Array  # (m, d)
    # positions and gains at the target, each time that they have forgotten where they were
    times: Array  # (t, n, d + 1)
    # what walks found there, and to what proposals are fitted
    found: Array  # (m, d)
    fitted: Array  # (k, d)
    exploration_incomplete: bool
    n_times: int  # that they are to forget
    stage: int
    n_evaluations: int  # of the budget, if there is one


def learn(
    path: GeometricPath,
    transition: Transition,
    n_particles: int,
    key: tuple[int, int],
    max_sweeps: int,
    checkpoint: Checkpoint | None = None,
    *,
    most_levels: int = 500,
    most_stages: int = 8,  # of walking outwards and forgetting at the target
    share_of_sweeps: float = 0.5,  # of the most, after which particles don't go on at the target
    share_of_budget: float = 0.4,  # after which they stay where they are
    largest_drift: float = 2.5,  # standard errors of a mean or variance
) -> Learned:
    """Take particles from base draws to the target, by steps of beta that leave half of them
    effective.

    At each level they are resampled, and move until they have forgotten where they were: by the
    transition, in units of their own spread, by steps in units of the part of a mixture where they
    are, and by draws from this mixture, which is fitted to them. At the target walks first look for
    what lies beyond the particles.

    Parameters
    ----------
    path : GeometricPath
        With a base that can be sampled.
    transition : TunedTransition
        Not tuned.
    n_particles : int
        How many.
    key : tuple of two int
        Of all random numbers.
    max_sweeps : int
        Of all particles together, after which they stay where they are.
    checkpoint : Checkpoint or None
        Where each level is kept.

    Returns
    -------
    Learned

    Raises
    ------
    ValueError
        If hardly any base draw lies where the target has mass, of as many as are tried.
    """
    stream = Stream(key)
    carry = _begun(path, transition, n_particles, stream, max_sweeps)
    kept = _Kept(checkpoint, share_of_budget)
    level, carry = kept.load(carry)  # and times at the target
    note_on_the_way(carry.log_mean, carry.beta, path.ends(carry.state)[1])
    while carry.beta < 1 and level < most_levels and carry.n_sweeps < max_sweeps:
        if kept.is_spent:
            break
        level += 1
        carry = _step_forward(path, transition, carry, stream.at(level))
        note_on_the_way(carry.log_mean, carry.beta, path.ends(carry.state)[1])
        report(functools.partial(_place, carry))
        kept.save(level, carry)
    drift = 0.0
    last_stage = most_stages if carry.beta == 1 else 0
    path = path.with_ladder([0.0, 1.0])
    for stage in range(max(1, int(carry.stage)), last_stage + 1):
        if carry.stage < stage:
            carry = _walk_outwards(path, carry, stream.at(stage).of("exploring"))
            kept.save(level, carry)
        rng = stream.at(stage).of("proposal").generator()
        level, carry = _stay(path, transition, carry, level, stream, rng, kept)
        report(functools.partial(_place, carry))
        early, late = np.array_split(carry.times, 2)
        drift = drift_between(early, late, n_particles, n_particles)
        is_done = drift < largest_drift and not carry.exploration_incomplete
        if is_done or carry.n_sweeps > share_of_sweeps * max_sweeps or kept.is_spent:
            break
    return Learned(
        points=_latest(carry, path),
        found=carry.found,
        climb_starts=carry.climb_starts,
        drift=drift,
        exploration_incomplete=bool(carry.exploration_incomplete),
        beta=float(carry.beta),
        n_sweeps=int(carry.n_sweeps),
    )


class _Kept:
    """The place that particles have reached, kept in a checkpoint if there is one, with their share
    of the budget.
    """

    def __init__(self, checkpoint: Checkpoint | None, share_of_budget: float):
        self.checkpoint = checkpoint
        self.budget = current_budget()
        self.n_before = 0 if self.budget is None else self.budget.n
        self.share_of_budget = share_of_budget

    def load(self, carry: _Carry) -> tuple[int, _Carry]:
        """The level that was saved last, and where particles stood."""
        if self.checkpoint is None:
            return 0, carry
        level, carry = self.checkpoint.load("learning", carry)
        if self.budget is not None:
            self.budget.add(int(carry.n_evaluations))
        return level, carry

    def save(self, level: int, carry: _Carry) -> None:
        if self.checkpoint is not None:
            n = 0 if self.budget is None else self.budget.n - self.n_before
            self.checkpoint.save("learning", level, carry._replace(n_evaluations=n))

    @property
    def is_spent(self) -> bool:
        return self.budget is not None and self.budget.share > self.share_of_budget


def _begun(path, transition, n_particles: int, stream: Stream, max_sweeps: int) -> _Carry:
    """Particles at base draws."""
    state, climb_starts, n_drawn, log_share = _start(path, n_particles, stream, max_sweeps)
    none = np.empty((0, path.n_dimensions))
    return _Carry(
        state=state,
        auxiliary=transition.start(path, state, stream),
        beta=0.0,
        log_mean=log_share,
        log_step=float(np.log(transition.first_step(path.n_dimensions))),
        n_sweeps=n_drawn,
        climb_starts=climb_starts,
        times=np.empty((0, n_particles, path.n_dimensions + 1)),
        found=none,
        fitted=none,
        exploration_incomplete=True,
        n_times=0,
        stage=0,
        n_evaluations=0,
    )


def _stay(path, transition, carry, level, stream, rng, kept: _Kept) -> tuple[int, _Carry]:
    """Particles that move at the target as often as they are to forget where they were."""
    n_effective = len(np.unique(carry.fitted, axis=0))
    proposal = fit_base(carry.fitted, n_effective, path.bounds, rng)
    while len(carry.times) < carry.n_times and not (kept.is_spent and len(carry.times) > 1):
        level += 1
        own = stream.at(level).of("at the target")
        carry = _forget(path, transition, carry, own, proposal)
        new = np.column_stack([path.position(carry.state), path.ends(carry.state)[1]])
        carry = carry._replace(times=np.concatenate([carry.times, new[np.newaxis]]))
        kept.save(level, carry)
    return level, carry


def _start(
    path,
    n,
    stream,
    max_sweeps,
    *,
    least_share=0.1,  # of the particles that lie where the target has mass
    most_chunks=200,  # base draws for each particle, until so many do
):
    """The state of n base draws, some of their points, how many were drawn, and the log of the
    share of draws that the state stands for.

    Where the target has mass at few of them more are drawn, and those with mass are repeated.
    """
    state = path.sample_base(n, stream)
    n_noted = _n_noted(path, max_sweeps)
    climb_starts = path.position(state)[:n_noted]
    is_alive = path.ends(state)[1] > -np.inf
    wanted = max(path.n_dimensions + 2, int(least_share * n))
    if is_alive.sum() >= wanted:
        return state, climb_starts, n, 0.0
    n_drawn = n
    points = [path.position(state)[is_alive]]
    for chunk in range(1, most_chunks):
        if sum(map(len, points)) >= wanted or n_drawn + n > max_sweeps:
            break
        more = path.sample_base(n, stream.at(chunk).of("further draws"))
        points.append(path.position(more)[path.ends(more)[1] > -np.inf])
        n_drawn += n
    alive = np.concatenate(points)
    if len(alive) <= path.n_dimensions + 1:  # too few to begin with
        return state, climb_starts, n_drawn, 0.0
    log_share = float(np.log(len(alive) / n_drawn))
    return path.at(np.resize(alive, (n, path.n_dimensions))), alive[:n_noted], n_drawn, log_share


def _n_noted(
    path,
    max_sweeps,
    *,
    share_of_sweeps=0.1,  # of the most, for climbs
    steps_of_climb=30,
):
    """Number of base draws from which climbs begin: fewer where a slope takes many evaluations."""
    n_evaluations = 2 if has(path, "gradients") else 2 * path.n_dimensions + 1
    n = share_of_sweeps * max_sweeps / (steps_of_climb * n_evaluations)
    return int(np.clip(n, _FEWEST_NOTED, _MOST_NOTED))


def _latest(carry, path):
    """Positions in the second half of the time at the target, (n, d), or of the particles now."""
    if not len(carry.times):
        return path.position(carry.state)
    late = carry.times[len(carry.times) // 2 :, :, :-1]
    return late.reshape(-1, path.n_dimensions)


def _walk_outwards(
    path,
    carry,
    stream,
    *,
    n_times: int = 8,  # that particles forget, doubled until the second half is like the first
) -> _Carry:
    """Walks from the outermost particles, and what proposals are then fitted to.

    If walks find more of the target the time that particles have spent there begins anew.
    """
    walked = walk_outwards(path, _latest(carry, path), carry.found, stream.generator())
    times = carry.times[:0] if walked.is_new else carry.times
    return carry._replace(
        times=times,
        found=walked.found,
        fitted=walked.points,
        exploration_incomplete=walked.exploration_incomplete,
        n_times=2 * len(times) or n_times,
        stage=carry.stage + 1,
        n_sweeps=carry.n_sweeps + walked.n_sweeps,
    )


def _place(carry) -> str:
    return f"particles at inverse temperature {carry.beta:.2g} after {carry.n_sweeps:,} sweeps"


def _step_forward(
    path,
    transition,
    carry,
    stream,
    *,
    effective_share: float = 0.5,  # of the particles at the next level
) -> _Carry:
    """One level up."""
    log_ratio = path.ends(carry.state)[1]
    if np.sum(log_ratio > -np.inf) <= path.n_dimensions + 1:
        raise ValueError(
            f"base draws hardly any point where the target has mass: raise n_particles, or {COVER}"
        )
    beta = next_beta(log_ratio, float(carry.beta), effective_share)
    uniform = stream.of("resampling").generator().random()
    log_weights = (beta - carry.beta) * log_ratio
    chosen = systematic(log_weights, len(log_weights), uniform)
    carry = carry._replace(
        state=path.take(carry.state, chosen),
        auxiliary=take(carry.auxiliary, chosen),
        beta=beta,
        log_mean=carry.log_mean + float(log_mean_exp(log_weights)),
    )
    path = path.with_ladder(np.unique([0.0, beta, 1.0]))
    return _forget(path, transition, carry, stream)


def _forget(
    path,
    transition,
    carry,
    stream,
    proposal=None,
    *,
    n_local: int = 2,  # moves between two draws from the fitted proposal
    most_moves: int = 200,  # of a particle
    # of the fitted proposal, below which the level goes on without it
    least_acceptance: float = 0.02,
    largest_step: float = 1.0,  # of the log of a step size
    n_starts: int = 2,  # of climbs, from every later level
) -> _Carry:
    """Particles that have moved at level 1 of a path until they have forgotten where they were.

    Without a proposal one is fitted to them.
    """
    state = carry.state
    auxiliary = carry.auxiliary
    start = path.position(state)
    n = len(start)
    levels = np.ones(n, dtype=np.int64)
    rng = stream.of("proposals").generator()
    root = root_of([start], [], transition.metric, path.bounds)
    if proposal is None:
        proposal = fit_base(start, n, path.bounds, rng, is_rough=True)
    walk = MixtureWalk(proposal) if len(proposal.components) > 1 else None
    uses_proposal = True
    log_ratio = path.ends(state)[1]
    log_step = float(carry.log_step)
    n_moves = 0
    while n_moves < most_moves:
        for _ in range(n_local):
            move = transition.with_pilot(fixed_pilot(log_step, root))
            before = transition.accepted(auxiliary)
            own = stream.of(f"move {n_moves}")
            state, auxiliary = move.move(path, state, auxiliary, levels, own)
            n_moves += 1
            if before is not None:
                rate = float(np.mean(transition.accepted(auxiliary) - before))
                log_step += largest_step * (rate - transition.target_acceptance) * n_moves**-0.5
        if walk is not None:
            state = walk.move(path, state, levels, rng)
            n_moves += 1
        if uses_proposal:
            state, rate = _propose(path, state, levels, proposal, rng)
            n_moves += 1
            uses_proposal = rate >= least_acceptance
        if _is_forgotten(start, path.position(state), log_ratio, path.ends(state)[1]):
            break
    chosen = rng.permutation(n)[:n_starts]
    return carry._replace(
        state=state,
        auxiliary=auxiliary,
        log_step=log_step,
        n_sweeps=carry.n_sweeps + n * n_moves,
        climb_starts=np.concatenate([carry.climb_starts, path.position(state)[chosen]]),
    )


def _propose(path, state, levels, proposal, rng):
    """The state after independent draws from a proposal that were accepted or rejected, and the
    share that was accepted.
    """
    old = path.position(state)
    new_state = path.at(proposal.sample(len(old), rng))
    new = path.position(new_state)
    with np.errstate(invalid="ignore"):
        log_ratio = proposal.log_density(old) - proposal.log_density(new)
    rate = acceptance(path, state, new_state, levels, log_ratio)
    return choose(rng.random(len(old)) < rate, new_state, state), float(rate.mean())


def _is_forgotten(
    start,
    position,
    first_log_ratio,
    log_ratio,
    *,
    # correlation with where particles began, root mean square over coordinates
    of_coordinates: float = 0.15,
    of_log_ratio: float = 0.3,  # the same, of log f_1 - log f_0
) -> bool:
    """True if particles are where they are whatever their start was."""
    correlations = _correlations(start, position)
    alive = np.isfinite(first_log_ratio) & np.isfinite(log_ratio)
    correlation_of_ratio = _correlations(
        first_log_ratio[alive, np.newaxis], log_ratio[alive, np.newaxis]
    )
    typical = np.sqrt(np.mean(np.maximum(correlations, 0.0) ** 2))
    return bool(typical < of_coordinates and correlation_of_ratio.max(initial=0.0) < of_log_ratio)


def _correlations(first, last):
    """Correlations of each column; 0 of one that is constant."""
    tiny = np.finfo(np.float64).tiny
    z = [(x - x.mean(axis=0)) / np.maximum(x.std(axis=0), tiny) for x in (first, last)]
    return np.mean(z[0] * z[1], axis=0)


def drift_between(early: Array, late: Array, n_early: float, n_late: float) -> float:
    """Return the largest difference of the means, or of the variances, of a column of two sets of
    points, in standard errors.

    Parameters
    ----------
    early, late : ndarray of shape (t, n, d)
        Points n of several times t, over which each is averaged.
    n_early, n_late : float
        How many of the points are independent.
    """
    d = early.shape[-1]
    pooled = np.concatenate([early.reshape(-1, d), late.reshape(-1, d)])
    center = pooled.mean(axis=0)
    scale = pooled.std(axis=0) + np.finfo(np.float64).tiny
    moments = []
    for points, n in ((early, n_early), (late, n_late)):
        z = (points - center) / scale
        averages = np.concatenate([z, z**2], axis=2).mean(axis=0)
        moments.append((averages.mean(axis=0), averages.var(axis=0) / n))
    (first, first_variance), (last, last_variance) = moments
    return float(np.max(np.abs(last - first) / np.sqrt(first_variance + last_variance + 1e-300)))
