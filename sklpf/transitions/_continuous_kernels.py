"""Moves on R^d as a part of the compiled programs.

A move knows a density by the hook `evaluate` alone. It implements a hook of its own, `move_chains`.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from sklpf._utils.random import ACCEPT
from sklpf.kernels import _programs as programs
from sklpf.kernels import implements, inlined, njit, uniform
from sklpf.kernels._densities import Values
from sklpf.kernels._programs import log_density
from sklpf.kernels._random import bits_of_all_chains


class MovedDensity(NamedTuple):
    """A density and its move. A state is (points, auxiliary), as the plain loops have them."""

    density: Any
    move: Any


# ---- what a move implements
def move_chains(move, density, state, betas, reverse, keys, work):
    """One move of every chain at its own inverse temperature, in place; `reverse` asks for the time
    reversal.
    """


@implements(programs.scratch, MovedDensity)
def _scratch(model, state):
    n, d = state[0].position.shape
    values = Values(np.empty(n), np.empty(n), np.empty((n, d)), np.empty((n, d)))
    first = np.empty(n, np.int64)
    knots = np.empty(n, np.int64)
    steps = ChainSteps(first, np.empty((n, d)), np.empty(n), knots)
    position = np.empty((n, d))
    pace = np.empty((n, d))
    moved = np.empty((n, d))
    drawn = np.empty((n, d))
    log_ratios = np.zeros(n)
    lost = np.empty(n, np.bool_)
    accepted = np.empty(n, np.bool_)
    bits = np.empty((4, n), np.uint32)
    return Work(values, steps, position, pace, moved, drawn, log_ratios, lost, accepted, bits)


@implements(programs.sweep, MovedDensity)
def _sweep(model, state, betas, reverse, keys, work):
    move_chains(model.move, model.density, state, betas, reverse, keys, work)


# ---- densities at the chains
@implements(programs.log_base, MovedDensity)
def _log_base(model, state, c):
    return state[0].log_base[c]


@implements(programs.log_gain, MovedDensity)
def _log_gain(model, state, c):
    return state[0].gain[c]


programs.tempered_by_hooks(MovedDensity)


@implements(programs.summarise, MovedDensity)
def _summarise(model, state, c, out):
    for j in range(out.shape[0]):
        out[j] = state[0].position[c, j]


# ---- steps
class Steps(NamedTuple):
    """Step sizes and metric as the pilot froze them, and the boundary of the support."""

    betas: np.ndarray  # (J,)
    log_steps: np.ndarray  # (J,)
    scales: np.ndarray  # (J, 1) or (J, d): of matrices their size
    matrices: np.ndarray  # (J, d, d), or empty: divided by their size
    low: np.ndarray  # (d,), or empty without bounds
    high: np.ndarray


class ChainSteps(NamedTuple):
    """Steps of n chains at their inverse temperatures."""

    # Neighbours at one inverse temperature share the row of the first of them.
    first: np.ndarray  # (n,): that chain
    lengths: np.ndarray  # (n, d): step size times scale, in the rows of first chains
    sizes: np.ndarray  # (n,): step sizes
    knots: np.ndarray  # (n,): knots of the pilot below


class Work(NamedTuple):
    """Work space of n chains. Loops take its arrays out before they begin: an access counts
    references.
    """

    values: Values
    steps: ChainSteps
    position: np.ndarray  # (n, d): where the chains may go
    pace: np.ndarray  # (n, d): the velocity on its way
    moved: np.ndarray  # (n, d)
    normals: np.ndarray  # (n, d)
    log_ratios: np.ndarray  # (n,): what a move adds to the rise of log f
    lost: np.ndarray  # (n,)
    accepted: np.ndarray  # (n,)
    bits: np.ndarray  # (4, n)


@inlined
def set_steps(steps, betas, chains):
    """Write step sizes, scales and knots of all chains at their inverse temperatures."""
    first, lengths, sizes, knots = chains
    known = steps.betas
    log_steps = steps.log_steps
    scales = steps.scales
    last = known.shape[0] - 1
    for c in range(betas.shape[0]):
        if c > 0 and betas[c] == betas[c - 1]:
            first[c] = first[c - 1]
            sizes[c] = sizes[c - 1]
            knots[c] = knots[c - 1]
            continue
        upper = np.searchsorted(known, betas[c], side="right")
        first[c] = c
        knots[c] = upper - 1
        upper = min(max(upper, 1), last)
        lower = max(upper - 1, 0)
        width = known[upper] - known[lower] if upper > lower else 1.0
        share = (betas[c] - known[lower]) / width
        sizes[c] = math.exp(log_steps[lower] + share * (log_steps[upper] - log_steps[lower]))
        for j in range(lengths.shape[1]):
            i = j if scales.shape[1] > 1 else 0
            low, high = scales[lower, i], scales[upper, i]
            scale = 1.0 / math.sqrt((1.0 - share) / (low * low) + share / (high * high))
            lengths[c, j] = sizes[c] * scale


@njit
def rotate(matrices, knots, vectors, transpose, out):
    """Write matrix @ vector of every chain, or matrix.T @ vector, to out (n, d)."""
    n = vectors.shape[0]
    start = 0
    while start < n:
        end = start + 1
        while end < n and knots[end] == knots[start]:
            end += 1
        root = matrices[knots[start]]
        if transpose:
            np.dot(vectors[start:end], root, out[start:end])
        else:
            np.dot(vectors[start:end], root.T, out[start:end])
        start = end


@njit
def reflect(low, high, position, velocity):
    """Fold points (n, d) back into the box; velocities turn at every side that is met."""
    n, d = position.shape
    for c in range(n):
        for j in range(d):
            x = position[c, j]
            turned = False
            if math.isfinite(low[j]) and math.isfinite(high[j]):
                width = high[j] - low[j]
                lap = (x - low[j]) % (2.0 * width)
                turned = lap > width
                x = min(max(low[j] + (2.0 * width - lap if turned else lap), low[j]), high[j])
            elif x < low[j]:
                x = 2.0 * low[j] - x
                turned = True
            elif x > high[j]:
                x = 2.0 * high[j] - x
                turned = True
            position[c, j] = x
            if turned:
                velocity[c, j] = -velocity[c, j]


# ---- acceptance
@inlined
def decide(points, rates, betas, keys, work):
    """Accept the proposals at `work.position`, or stay, where log f and `work.log_ratios` rise
    (Hastings 1970), and add the probabilities to `rates`.
    """
    position, log_base, gain = points
    new_position = work.position
    new_log_base = work.values.log_base
    new_gain = work.values.gain
    log_ratios = work.log_ratios
    accepted = work.accepted
    bits = work.bits
    bits_of_all_chains(bits, 1, keys, ACCEPT)
    for c in range(betas.shape[0]):
        new = log_density(betas[c], new_log_base[c], new_gain[c])
        log_rate = new - log_density(betas[c], log_base[c], gain[c]) + log_ratios[c]
        rate = 0.0 if math.isnan(log_rate) else math.exp(min(log_rate, 0.0))
        rates[c] += rate
        accepted[c] = uniform(bits[0, c]) < rate
        if accepted[c]:
            log_base[c] = new_log_base[c]
            gain[c] = new_gain[c]
            copy_row(new_position, position, c)


@inlined
def copy_row(source, target, c):
    """Row c of an array (n, d)."""
    for j in range(target.shape[1]):
        target[c, j] = source[c, j]
