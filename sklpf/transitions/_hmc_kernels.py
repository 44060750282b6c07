"""HMC as a part of the compiled programs, for densities that implement `evaluate`."""

import math
from typing import NamedTuple

from sklpf._utils.limits import LARGEST_KICK
from sklpf._utils.random import FIRST
from sklpf.kernels import implements, inlined
from sklpf.kernels._densities import evaluate
from sklpf.kernels._random import normals
from sklpf.transitions._continuous_kernels import (
    Steps,
    copy_row,
    decide,
    move_chains,
    reflect,
    rotate,
    set_steps,
)


class HMCMove(NamedTuple):
    """The move as the pilot froze it."""

    steps: Steps
    n_leapfrog: int
    half_life: float  # 0: the velocity is drawn anew


@inlined
def _refresh(move, velocity, keys, work):
    """Turn the velocity around and renew a part of it."""
    drawn = work.normals
    first = work.steps.first
    sizes = work.steps.sizes
    normals(keys, FIRST, drawn)
    time = move.n_leapfrog / move.half_life if move.half_life > 0 else 0.0
    kept = 0.0
    renewed = 1.0
    for c in range(velocity.shape[0]):
        if time > 0 and first[c] == c:
            share = -math.expm1(-sizes[c] * time * math.log(2.0))
            kept = -math.sqrt(1.0 - share)
            renewed = math.sqrt(share)
        for j in range(velocity.shape[1]):
            velocity[c, j] = kept * velocity[c, j] + renewed * drawn[c, j]


@inlined
def _kick(move, betas, base_slope, gain_slope, work):
    """Half a step of the velocity, without kicks that are too large."""
    pace = work.pace
    lengths = work.steps.lengths
    first = work.steps.first
    n, d = pace.shape
    if move.steps.matrices.shape[0] == 0:
        for c in range(n):
            beta = betas[c]
            i = first[c]
            for j in range(d):
                kick = 0.5 * lengths[i, j] * (base_slope[c, j] + beta * gain_slope[c, j])
                pace[c, j] += kick if abs(kick) < LARGEST_KICK else 0.0
        return
    force = work.normals
    turned = work.moved
    for c in range(n):
        for j in range(d):
            force[c, j] = base_slope[c, j] + betas[c] * gain_slope[c, j]
    rotate(move.steps.matrices, work.steps.knots, force, True, turned)
    for c in range(n):
        for j in range(d):
            kick = 0.5 * lengths[first[c], j] * turned[c, j]
            pace[c, j] += kick if abs(kick) < LARGEST_KICK else 0.0


@inlined
def _drift(move, start, work):
    """A step of the position, reflected; a chain whose position is not finite is lost, and goes
    back to its start.
    """
    position = work.position
    pace = work.pace
    lost = work.lost
    lengths = work.steps.lengths
    first = work.steps.first
    steps = move.steps
    n, d = pace.shape
    way = pace
    if steps.matrices.shape[0] > 0:
        way = work.normals
        rotate(steps.matrices, work.steps.knots, pace, False, way)
    for c in range(n):
        i = first[c]
        is_finite = True
        for j in range(d):
            position[c, j] += lengths[i, j] * way[c, j]
            is_finite &= math.isfinite(position[c, j])
        lost[c] |= not is_finite
        if lost[c]:
            copy_row(start, position, c)
    if steps.low.shape[0] > 0:
        reflect(steps.low, steps.high, position, pace)


@inlined
def _turn_or_stay(points, auxiliary, betas, keys, work):
    """Accept the end of every trajectory, its velocity turned around, or stay."""
    velocity, base_slope, gain_slope, rates = auxiliary
    _, _, new_base_slope, new_gain_slope = work.values
    pace = work.pace
    lost = work.lost
    log_ratios = work.log_ratios
    accepted = work.accepted
    n, d = pace.shape
    for c in range(n):
        fall = 0.0  # twice that of the kinetic energy
        for j in range(d):
            fall += velocity[c, j] * velocity[c, j] - pace[c, j] * pace[c, j]
        log_ratios[c] = math.nan if lost[c] else 0.5 * fall
    decide(points, rates, betas, keys, work)
    for c in range(n):
        if accepted[c]:
            copy_row(new_base_slope, base_slope, c)
            copy_row(new_gain_slope, gain_slope, c)
            for j in range(d):
                velocity[c, j] = -pace[c, j]


@inlined
def _copy_all(source, target):
    """Sooner than an assignment to a slice."""
    for i in range(target.shape[0]):
        target[i] = source[i]


@implements(move_chains, HMCMove)
def _move_chains(move, density, state, betas, reverse, keys, work):
    points, auxiliary = state
    values = work.values
    set_steps(move.steps, betas, work.steps)
    if reverse:
        _refresh(move, auxiliary[0], keys, work)
    work.lost[:] = False
    _copy_all(points.position.reshape(-1), work.position.reshape(-1))
    _copy_all(auxiliary[0].reshape(-1), work.pace.reshape(-1))
    for step in range(move.n_leapfrog):
        if step == 0:
            _kick(move, betas, auxiliary[1], auxiliary[2], work)
        else:
            _kick(move, betas, values.base_slope, values.gain_slope, work)
        _drift(move, points.position, work)
        evaluate(density, work.position, values)
        _kick(move, betas, values.base_slope, values.gain_slope, work)
    _turn_or_stay(points, auxiliary, betas, keys, work)
    if not reverse:
        _refresh(move, auxiliary[0], keys, work)
