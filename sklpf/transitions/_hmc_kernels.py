"""HMC as a part of the compiled programs, for densities that implement `evaluate`."""

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from sklpf._random import ACCEPT, FIRST
from sklpf.kernels import OPTIONS, implements, inlined, njit, random_bits, uniform
from sklpf.kernels import _programs as programs
from sklpf.kernels._random import normals

_reordered = functools.partial(njit, fastmath={*OPTIONS["fastmath"], "reassoc"})  # sums that vectorise


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


class Values(NamedTuple):
    """What `evaluate` writes: log f_0, log f_1 - log f_0 and their gradients."""

    log_base: np.ndarray  # (n,)
    gain: np.ndarray  # (n,)
    base_slope: np.ndarray  # (n, d)
    gain_slope: np.ndarray  # (n, d)


class Work(NamedTuple):
    """Work space of n chains. Arrays (n, d) are run through as one: rows are too short for vector loops."""

    values: Values
    position: np.ndarray  # (n, d)
    pace: np.ndarray  # (n, d): the velocity on its way
    moved: np.ndarray  # (n, d)
    normals: np.ndarray  # (n, d)
    betas: np.ndarray  # (n, d)
    drifts: np.ndarray  # (n, d): step size times scale
    steps: np.ndarray  # (n,)
    knots: np.ndarray  # (n,)
    lost: np.ndarray  # (n,)


@implements(programs.scratch, HMCModel)
def _scratch(model, state):
    n, d = state[0].position.shape
    values = Values(np.empty(n), np.empty(n), np.empty((n, d)), np.empty((n, d)))
    points = np.empty((n, d)), np.empty((n, d)), np.empty((n, d)), np.empty((n, d))
    scales = np.empty((n, d)), np.empty((n, d))
    return Work(values, *points, *scales, np.empty(n), np.empty(n, np.int64), np.empty(n, np.bool_))


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


@njit
def _set_scales(move, betas, work):
    """Step sizes, scales and matrices of all chains at their inverse temperatures."""
    d = work.drifts.shape[1]
    for c in range(betas.shape[0]):
        drifts, row = work.drifts[c], work.betas[c]
        if c > 0 and betas[c] == betas[c - 1]:
            work.steps[c], work.knots[c] = work.steps[c - 1], work.knots[c - 1]
            before = work.drifts[c - 1]
            for j in range(d):
                drifts[j] = before[j]
        else:
            at = work.steps[c : c + 1], drifts
            work.knots[c] = _interpolate(move.betas, move.log_steps, move.scales, betas[c], *at)
            for j in range(d):
                drifts[j] *= work.steps[c]
        for j in range(d):
            row[j] = betas[c]


@njit
def _rotate(move, knots, velocity, transpose, out):
    """matrix @ velocity of every chain, or matrix.T @ it."""
    start, n = 0, velocity.shape[0]
    while start < n:
        end = start + 1
        while end < n and knots[end] == knots[start]:
            end += 1
        root = move.matrices[knots[start]]
        if transpose:
            np.dot(velocity[start:end], root, out[start:end])
        else:
            np.dot(velocity[start:end], root.T, out[start:end])
        start = end


@njit
def _refresh(move, velocity, keys, work):
    """Turn the velocity around and renew a part of it."""
    normals(keys, FIRST, work.normals)
    kept, renewed = 0.0, 1.0
    for c in range(velocity.shape[0]):
        if move.half_life > 0 and (c == 0 or work.steps[c] != work.steps[c - 1]):
            share = -math.expm1(-work.steps[c] * move.n_leapfrog / move.half_life * math.log(2.0))
            kept, renewed = -math.sqrt(1.0 - share), math.sqrt(share)
        row, drawn = velocity[c], work.normals[c]
        for j in range(row.shape[0]):
            row[j] = kept * row[j] + renewed * drawn[j]


@inlined
def _force(pace, factors, betas, base_slope, gain_slope):
    for i in range(pace.shape[0]):
        pace[i] += 0.5 * factors[i] * (base_slope[i] + betas[i] * gain_slope[i])


@njit
def _kick(move, base_slope, gain_slope, work):
    """Half a step of the velocity."""
    if move.matrices.shape[0] == 0:
        flat = work.pace.reshape(-1), work.drifts.reshape(-1), work.betas.reshape(-1)
        _force(*flat, base_slope.reshape(-1), gain_slope.reshape(-1))
        return
    force, base, gain, betas = work.normals.reshape(-1), base_slope.reshape(-1), gain_slope.reshape(-1), work.betas
    betas = betas.reshape(-1)
    for i in range(force.shape[0]):
        force[i] = base[i] + betas[i] * gain[i]
    _rotate(move, work.knots, work.normals, True, work.moved)
    pace, moved, drifts = work.pace.reshape(-1), work.moved.reshape(-1), work.drifts.reshape(-1)
    for i in range(pace.shape[0]):
        pace[i] += 0.5 * drifts[i] * moved[i]


@_reordered
def _not_finite(row):
    """0, or NaN where a number in the row is none."""
    total = 0.0
    for j in range(row.shape[0]):
        total += 0.0 * row[j]
    return total


@_reordered
def _square(row):
    total = 0.0
    for j in range(row.shape[0]):
        total += row[j] * row[j]
    return total


@njit
def _drift(move, work):
    """A step of the position, reflected; a chain whose position is not finite stays, and is lost."""
    pace = work.pace
    if move.matrices.shape[0] > 0:
        _rotate(move, work.knots, work.pace, False, work.normals)
        pace = work.normals
    position, flat, drifts, moved = work.position.reshape(-1), pace.reshape(-1), work.drifts.reshape(-1), work.moved
    moved = moved.reshape(-1)
    for i in range(position.shape[0]):
        moved[i] = position[i] + drifts[i] * flat[i]
    for c in range(work.position.shape[0]):
        end = work.moved[c]
        work.lost[c] = work.lost[c] or math.isnan(_not_finite(end))
        if not work.lost[c]:
            here = work.position[c]
            for j in range(here.shape[0]):
                here[j] = end[j]
            if move.low.shape[0] > 0:
                _reflect(move.low, move.high, here, work.pace[c])


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
def _copy(source, target):
    for j in range(target.shape[0]):
        target[j] = source[j]


@njit
def _decide(points, memory, betas, keys, work):
    """Accept the end of every trajectory, its velocity turned around, or stay."""
    velocity, base_slope, gain_slope, accepted = memory
    bits = np.empty(4, np.uint32)
    for c in range(betas.shape[0]):
        new = _log_density(betas[c], work.values.log_base[c], work.values.gain[c])
        log_accept = new - _log_density(betas[c], points.log_base[c], points.gain[c])
        log_accept += 0.5 * (_square(velocity[c]) - _square(work.pace[c]))
        rate = 0.0 if work.lost[c] or math.isnan(log_accept) else math.exp(min(log_accept, 0.0))
        accepted[c] += rate
        random_bits(bits, 1, keys.key0, keys.key1, keys.step, keys.chain + c, ACCEPT)
        if uniform(bits[0]) < rate:
            points.log_base[c], points.gain[c] = work.values.log_base[c], work.values.gain[c]
            _copy(work.position[c], points.position[c])
            _copy(work.values.base_slope[c], base_slope[c])
            _copy(work.values.gain_slope[c], gain_slope[c])
            row, pace = velocity[c], work.pace[c]
            for j in range(row.shape[0]):
                row[j] = -pace[j]


@implements(programs.sweep, HMCModel)
def _sweep(model, state, betas, reverse, keys, work):
    points, memory = state
    _set_scales(model.move, betas, work)
    if reverse:
        _refresh(model.move, memory[0], keys, work)
    work.lost[:] = False
    _copy(points.position.reshape(-1), work.position.reshape(-1))
    _copy(memory[0].reshape(-1), work.pace.reshape(-1))
    for step in range(model.move.n_leapfrog):
        if step == 0:
            _kick(model.move, memory[1], memory[2], work)
        else:
            _kick(model.move, work.values.base_slope, work.values.gain_slope, work)
        _drift(model.move, work)
        programs.evaluate(model.density, work.position, work.values)
        _kick(model.move, work.values.base_slope, work.values.gain_slope, work)
    _decide(points, memory, betas, keys, work)
    if not reverse:
        _refresh(model.move, memory[0], keys, work)


@implements(programs.log_base, HMCModel)
def _log_base(model, state, c):
    return state[0].log_base[c]


@implements(programs.log_gain, HMCModel)
def _log_gain(model, state, c):
    return state[0].gain[c]


@implements(programs.log_ratio, HMCModel, forceinline=True)
def _log_ratio(model, state, c, old, new, work):
    here = _log_density(new, state[0].log_base[c], state[0].gain[c])
    return here if here == -np.inf else here - _log_density(old, state[0].log_base[c], state[0].gain[c])


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
