"""Numba kernels of the Gaussian RBM's tempered path, in float64.

Visible units are u = (v - b) / s, in which the target is -|u|² / 2 + c @ h + h @ U @ u with U =
W / s. Their inputs to the hidden units are summed anew in every sweep, and so hold no rounding
errors of earlier ones.
"""

import math
from typing import NamedTuple

import numpy as np

from sklpf._utils.limits import LOG_2
from sklpf.kernels import (
    FIRST,
    SECOND,
    SUMS,
    bits_of_one_chain,
    exp64,
    implements,
    njit,
    softplus_sum,
    softplus_sum_and_sigmoids,
    summing,
    uniform,
)
from sklpf.kernels import _programs as programs
from sklpf.kernels._densities import evaluate_density
from sklpf.kernels._random import normals


class Packed(NamedTuple):
    """The read-only arrays that the kernels need."""

    by_hidden: np.ndarray  # (J, M): U
    by_visible: np.ndarray  # (M, J): its transpose
    intercept_hidden: np.ndarray  # (J,)
    base_mean: np.ndarray  # (M,), in units of u
    base_precision: np.ndarray  # (M,)
    base_constant: float  # log normaliser of the base, the hidden units' J log 2 among it


class Work(NamedTuple):
    """Work space of one sweep of n chains."""

    bits: np.ndarray  # (J + 4,) uint32
    h: np.ndarray  # (n, J) float64, 0 or 1
    pull: np.ndarray  # (n, M): what the hidden units add to the means
    noise: np.ndarray  # (n, M)


@summing
def _squares(u, mean, precision):
    """|u|² and the sum of precision (u - mean)²."""
    own = 0.0
    base = 0.0
    for i in range(u.shape[0]):
        away = u[i] - mean[i]
        own += u[i] * u[i]
        base += precision[i] * away * away
    return own, base


@njit
def write_fields(model, u, field, start, slope):
    """Write the inputs of the hidden units, (n, J), and what of log f is linear in beta, (n,)."""
    np.dot(u, model.by_visible, field)
    for c in range(u.shape[0]):
        for j in range(field.shape[1]):
            field[c, j] += model.intercept_hidden[j]
        own, base = _squares(u[c], model.base_mean, model.base_precision)
        start[c] = -0.5 * base - model.base_constant
        slope[c] = -0.5 * own - start[c]


@implements(programs.scratch, Packed)
def _scratch(model, state):
    n, n_visible = state.u.shape
    n_hidden = state.field.shape[1]
    return Work(
        np.empty(n_hidden + 4, np.uint32),
        np.empty((n, n_hidden)),
        np.empty((n, n_visible)),
        np.empty((n, n_visible)),
    )


@implements(programs.sweep, Packed)
def _sweep(model, state, betas, reverse, keys, work):
    """Block Gibbs: h given u, then u given h, which of u alone is its own time reversal."""
    bits = work.bits
    n, n_hidden = work.h.shape
    for c in range(n):
        bits_of_one_chain(bits, n_hidden, keys, c, FIRST)
        for j in range(n_hidden):
            odds = exp64(-betas[c] * state.field[c, j])
            work.h[c, j] = np.float64(np.float64(uniform(bits[j])) * (1.0 + odds) < 1.0)
    np.dot(work.h, model.by_hidden, work.pull)
    normals(keys, SECOND, work.noise)
    for c in range(n):
        beta = betas[c]
        for i in range(state.u.shape[1]):  # a product of two Gaussians
            base = (1.0 - beta) * model.base_precision[i]
            precision = base + beta
            mean = (base * model.base_mean[i] + beta * work.pull[c, i]) / precision
            state.u[c, i] = mean + work.noise[c, i] / math.sqrt(precision)
    write_fields(model, state.u, state.field, state.start, state.slope)


@implements(programs.log_base, Packed)
def _log_base(model, state, c):
    return state.start[c] + state.field.shape[1] * LOG_2


@implements(programs.log_ratios, Packed)
def _log_ratios(model, state, old, new, work, out):
    for c in range(old.shape[0]):
        field = state.field[c]
        here = softplus_sum(field, old[c])
        for i in range(new.shape[0]):
            out[i, c] = 0.0
            if new[i, c] != old[c]:
                bend = softplus_sum(field, new[i, c]) - here
                out[i, c] = (new[i, c] - old[c]) * state.slope[c] + bend


@implements(programs.log_ladder, Packed)
def _log_ladder(model, state, c, ladder, work, out):
    for k in range(ladder.shape[0]):
        out[k] = state.start[c] + ladder[k] * state.slope[c]
        out[k] += softplus_sum(state.field[c], ladder[k])


@implements(programs.derivatives, Packed)
def _derivatives(model, state, c, beta, work):
    """Each hidden unit adds g sigma(beta g) and g² sigma (1 - sigma)."""
    first = state.slope[c]
    second = 0.0
    for j in range(state.field.shape[1]):
        g = state.field[c, j]
        on = 1.0 / (1.0 + exp64(-beta * g))
        first += g * on
        second += g * g * on * (1.0 - on)
    return first, second


@implements(programs.summarise, Packed)
def _summarise(model, state, c, out):
    """Probabilities of the hidden units given the visible ones."""
    for j in range(out.shape[0]):
        out[j] = 1.0 / (1.0 + exp64(-state.field[c, j]))


# ---- the density of the visible units alone
class PackedDensity(NamedTuple):
    """log f(u) = constant - |u|² / 2 + the softplus functions of the hidden units' inputs."""

    units: Packed
    constant: float


@implements(evaluate_density, PackedDensity, **SUMS)
def _density(model, position, log_density, slope):
    units = model.units
    n, n_visible = position.shape
    field = np.dot(position, units.by_visible)
    for c in range(n):
        square = 0.0
        for i in range(n_visible):
            square += position[c, i] * position[c, i]
        for j in range(field.shape[1]):
            field[c, j] += units.intercept_hidden[j]
        log_density[c] = model.constant - 0.5 * square + softplus_sum_and_sigmoids(field[c])
    np.dot(field, units.by_hidden, slope)
    for c in range(n):
        for i in range(n_visible):
            slope[c, i] -= position[c, i]
