"""HMC as a part of the compiled programs, for densities that implement `evaluate`."""

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from sklpf._utils.limits import LARGEST_KICK
from sklpf._utils.random import ACCEPT, FIRST
from sklpf.kernels import SUMS, implements, inlined, njit, uniform
from sklpf.kernels import _programs as programs
from sklpf.kernels._densities import Values, evaluate
from sklpf.kernels._random import chains_bits, normals


class Move(NamedTuple):
    """The move as the pilot froze it."""

    betas: np.ndarray  # (J,)
    log_steps: np.ndarray  # (J,)
    scales: np.ndarray  # (J, 1) or (J, d): of matrices their size
    matrices: np.ndarray  # (J, d, d), or empty: divided by their size
    n_leapfrog: int
    half_life: float  # 0: the velocity is drawn anew
    low: np.ndarray  # (d,), or empty without bounds
    high: np.ndarray


class HMCModel(NamedTuple):
    """A density and its move. A state is (points, memory), as the plain loops have them."""

    density: Any
    move: Move


class Work(NamedTuple):
    """Work space of n chains. Loops take its arrays out before they begin: an access counts
    references.
    """

    values: Values
    position: np.ndarray  # (n, d)
    pace: np.ndarray  # (n, d): the velocity on its way
    moved: np.ndarray  # (n, d)
    normals: np.ndarray  # (n, d)
    drifts: (
        np.ndarray
    )  # (n, d): step size times scale, written at the first chain of those that share them
    first: np.ndarray  # (n,): that chain
    steps: np.ndarray  # (n,)
    knots: np.ndarray  # (n,)
    lost: np.ndarray  # (n,)
    rates: np.ndarray  # (n,): of acceptance
    bits: np.ndarray  # (4, n)


@implements(programs.scratch, HMCModel)
def _scratch(model, state):
    n, d = state[0].position.shape
    values = Values(np.empty(n), np.empty(n), np.empty((n, d)), np.empty((n, d)))
    points = (
        np.empty((n, d)),
        np.empty((n, d)),
        np.empty((n, d)),
        np.empty((n, d)),
        np.empty((n, d)),
    )
    numbers = np.empty(n, np.int64), np.empty(n), np.empty(n, np.int64)
    return Work(
        values, *points, *numbers, np.empty(n, np.bool_), np.empty(n), np.empty((4, n), np.uint32)
    )


@njit
def _interpolate(betas, log_steps, scales, beta, step_at, scale_at):
    """Step size and scales (m,) at an inverse temperature; returns the knot below."""
    last = betas.shape[0] - 1
    upper = np.searchsorted(betas, beta, side="right")
    knot = upper - 1
    upper = min(max(upper, 1), last)
    lower = max(upper - 1, 0)
    width = betas[upper] - betas[lower] if upper > lower else 1.0
    share = (beta - betas[lower]) / width
    step_at[0] = math.exp(log_steps[lower] + share * (log_steps[upper] - log_steps[lower]))
    for j in range(scale_at.shape[0]):
        i = j if scales.shape[1] > 1 else 0
        low, high = scales[lower, i], scales[upper, i]
        scale_at[j] = 1.0 / math.sqrt((1.0 - share) / (low * low) + share / (high * high))
    return knot


@inlined
def _set_scales(move, betas, work):
    """Step sizes, scales and matrices of all chains at their inverse temperatures."""
    drifts, first, steps, knots = work.drifts, work.first, work.steps, work.knots
    for c in range(betas.shape[0]):
        if c > 0 and betas[c] == betas[c - 1]:
            first[c], steps[c], knots[c] = first[c - 1], steps[c - 1], knots[c - 1]
        else:
            at = steps[c : c + 1], drifts[c]
            knots[c] = _interpolate(move.betas, move.log_steps, move.scales, betas[c], *at)
            first[c] = c
            for j in range(drifts.shape[1]):
                drifts[c, j] *= steps[c]


@njit
def _rotate(matrices, knots, velocity, transpose, out):
    """matrix @ velocity of every chain, or matrix.T @ it."""
    start, n = 0, velocity.shape[0]
    while start < n:
        end = start + 1
        while end < n and knots[end] == knots[start]:
            end += 1
        root = matrices[knots[start]]
        if transpose:
            np.dot(velocity[start:end], root, out[start:end])
        else:
            np.dot(velocity[start:end], root.T, out[start:end])
        start = end


@inlined
def _refresh(move, velocity, keys, work):
    """Turn the velocity around and renew a part of it."""
    drawn, first, steps = work.normals, work.first, work.steps
    normals(keys, FIRST, drawn)
    kept, renewed, time = 0.0, 1.0, move.n_leapfrog / move.half_life if move.half_life > 0 else 0.0
    for c in range(velocity.shape[0]):
        if time > 0 and first[c] == c:
            share = -math.expm1(-steps[c] * time * math.log(2.0))
            kept, renewed = -math.sqrt(1.0 - share), math.sqrt(share)
        for j in range(velocity.shape[1]):
            velocity[c, j] = kept * velocity[c, j] + renewed * drawn[c, j]


@inlined
def _kick(move, betas, base_slope, gain_slope, work):
    """Half a step of the velocity, without kicks that are too large."""
    pace, drifts, first, force = work.pace, work.drifts, work.first, work.normals
    n, d = pace.shape
    if move.matrices.shape[0] == 0:
        for c in range(n):
            beta, i = betas[c], first[c]
            for j in range(d):
                kick = 0.5 * drifts[i, j] * (base_slope[c, j] + beta * gain_slope[c, j])
                pace[c, j] += kick if abs(kick) < LARGEST_KICK else 0.0
        return
    for c in range(n):
        for j in range(d):
            force[c, j] = base_slope[c, j] + betas[c] * gain_slope[c, j]
    moved = work.moved
    _rotate(move.matrices, work.knots, force, True, moved)
    for c in range(n):
        for j in range(d):
            kick = 0.5 * drifts[first[c], j] * moved[c, j]
            pace[c, j] += kick if abs(kick) < LARGEST_KICK else 0.0


@inlined
def _drift(move, start, work):
    """A step of the position, reflected; a chain whose position is not finite is lost, and goes
    back to its start.
    """
    position, pace, drifts, first, lost = (
        work.position,
        work.pace,
        work.drifts,
        work.first,
        work.lost,
    )
    n, d = pace.shape
    way = pace
    if move.matrices.shape[0] > 0:
        way = work.normals
        _rotate(move.matrices, work.knots, pace, False, way)
    for c in range(n):
        i = first[c]
        for j in range(d):
            position[c, j] += drifts[i, j] * way[c, j]
    if math.isnan(_not_finite(position.reshape(-1))):
        for c in range(n):
            lost[c] = lost[c] or math.isnan(_not_finite(position[c]))
            if lost[c]:
                _copy(start, position, c)
    if move.low.shape[0] > 0:
        for c in range(n):
            _reflect(move.low, move.high, position[c], pace[c])


@inlined
def _copy_all(source, target):
    for i in range(target.shape[0]):
        target[i] = source[i]


@inlined
def _copy(source, target, c):
    for j in range(target.shape[1]):
        target[c, j] = source[c, j]


@functools.partial(njit, forceinline=True, **SUMS)
def _not_finite(numbers):
    """0, or NaN where one of the numbers is none."""
    total = 0.0
    for i in range(numbers.shape[0]):
        total += 0.0 * numbers[i]
    return total


@njit
def _reflect(low, high, position, velocity):
    """Fold a point (d,) back into the box; the velocity turns at every side that is met."""
    for j in range(position.shape[0]):
        x, turned = position[j], False
        if math.isfinite(low[j]) and math.isfinite(high[j]):
            width = high[j] - low[j]
            lap = (x - low[j]) % (2.0 * width)
            turned = lap > width
            x = min(max(low[j] + (2.0 * width - lap if turned else lap), low[j]), high[j])
        elif x < low[j]:
            x, turned = 2.0 * low[j] - x, True
        elif x > high[j]:
            x, turned = 2.0 * high[j] - x, True
        position[j] = x
        if turned:
            velocity[j] = -velocity[j]


@inlined
def _log_density(beta, log_base, gain):
    return log_base if beta == 0.0 and gain == -np.inf else log_base + beta * gain


@inlined
def _decide(points, memory, betas, keys, work):
    """Accept the end of every trajectory, its velocity turned around, or stay."""
    position, log_base, gain = points
    velocity, base_slope, gain_slope, accepted = memory
    new_log_base, new_gain, new_base_slope, new_gain_slope = work.values
    end, pace, lost, rates, bits = work.position, work.pace, work.lost, work.rates, work.bits
    chains_bits(bits, 1, keys, ACCEPT)
    for c in range(betas.shape[0]):
        total = 0.0
        for j in range(pace.shape[1]):
            total += velocity[c, j] * velocity[c, j] - pace[c, j] * pace[c, j]
        new, old = (
            _log_density(betas[c], new_log_base[c], new_gain[c]),
            _log_density(betas[c], log_base[c], gain[c]),
        )
        log_accept = new - old + 0.5 * total
        rates[c] = 0.0 if lost[c] or math.isnan(log_accept) else math.exp(min(log_accept, 0.0))
        accepted[c] += rates[c]
    for c in range(betas.shape[0]):
        if uniform(bits[0, c]) < rates[c]:
            log_base[c], gain[c] = new_log_base[c], new_gain[c]
            _copy(end, position, c)
            _copy(new_base_slope, base_slope, c)
            _copy(new_gain_slope, gain_slope, c)
            for j in range(pace.shape[1]):
                velocity[c, j] = -pace[c, j]


@implements(programs.sweep, HMCModel)
def _sweep(model, state, betas, reverse, keys, work):
    (points, memory), move, values = state, model.move, work.values
    _set_scales(move, betas, work)
    if reverse:
        _refresh(move, memory[0], keys, work)
    work.lost[:] = False
    _copy_all(points.position.reshape(-1), work.position.reshape(-1))
    _copy_all(memory[0].reshape(-1), work.pace.reshape(-1))
    for step in range(move.n_leapfrog):
        if step == 0:
            _kick(move, betas, memory[1], memory[2], work)
        else:
            _kick(move, betas, values.base_slope, values.gain_slope, work)
        _drift(move, points.position, work)
        evaluate(model.density, work.position, values)
        _kick(move, betas, values.base_slope, values.gain_slope, work)
    _decide(points, memory, betas, keys, work)
    if not reverse:
        _refresh(move, memory[0], keys, work)


@implements(programs.log_base, HMCModel)
def _log_base(model, state, c):
    return state[0].log_base[c]


@implements(programs.log_gain, HMCModel)
def _log_gain(model, state, c):
    return state[0].gain[c]


@implements(programs.log_ratio, HMCModel, forceinline=True)
def _log_ratio(model, state, c, old, new, work):
    here = _log_density(new, state[0].log_base[c], state[0].gain[c])
    return (
        here
        if here == -np.inf
        else here - _log_density(old, state[0].log_base[c], state[0].gain[c])
    )


@implements(programs.log_ladder, HMCModel)
def _log_ladder(model, state, c, ladder, work, out):
    for k in range(ladder.shape[0]):
        out[k] = _log_density(ladder[k], state[0].log_base[c], state[0].gain[c])


@implements(programs.derivatives, HMCModel, forceinline=True)
def _derivatives(model, state, c, beta, work):
    return state[0].gain[c], 0.0


@implements(programs.summarise, HMCModel)
def _summarise(model, state, c, out):
    for j in range(out.shape[0]):
        out[j] = state[0].position[c, j]
