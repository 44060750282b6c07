"""Numba kernels of the Boltzmann machine's tempered path.

A sweep visits the units one after another, each at once in all chains: their units lie side by
side, so that the sum over a unit's neighbours is one vector operation a neighbour. The energy is
summed on the way, from the units that the sweep has already been to, and so holds no rounding
errors of earlier sweeps.
"""

from typing import NamedTuple

import numpy as np

from sklpf._utils.random import FIRST as _UNITS
from sklpf.kernels import _programs as programs
from sklpf.kernels import bits_of_one_chain, exp32, implements, inlined, tempered, uniform

_LANES = 8  # float32 in a vector; loops over the chains that are left take as long


class Couplings(NamedTuple):
    """The read-only arrays that the kernels need: each unit's neighbours, those before it first."""

    starts: np.ndarray  # (M + 1,) int64: unit i has the neighbours starts[i] to starts[i + 1]
    middles: np.ndarray  # (M,) int64: from here on they come after it
    neighbours: np.ndarray  # (nnz,) int64
    values: np.ndarray  # (nnz,) float64
    intercept: np.ndarray  # (M,) float64
    base_logit: np.ndarray  # (M,) float64
    base_constant: float  # log normaliser of the base
    offset: float  # of log f_1


class Work(NamedTuple):
    """Work space of one sweep of n chains, and of idle ones that fill up the last vector."""

    units: np.ndarray  # (M, n') float64, 0 or 1
    uniforms: np.ndarray  # (M, n') float32
    bits: np.ndarray  # (M + 4,) uint32
    betas: np.ndarray  # (n',)
    before: np.ndarray  # (n',): sum over a unit's neighbours before it
    after: np.ndarray  # (n',): and over those after it
    log_base: np.ndarray  # (n',)
    gain: np.ndarray  # (n',)


@inlined
def _add_neighbours(model, units, first, last, sums):
    """sums_c = sum over some neighbours of coupling times unit, in their order."""
    for c in range(sums.shape[0]):
        sums[c] = 0.0
    p = first
    while p + 4 <= last:  # four at once, for fewer loads and stores of the sums
        value0 = model.values[p]
        value1 = model.values[p + 1]
        value2 = model.values[p + 2]
        value3 = model.values[p + 3]
        j0 = model.neighbours[p]
        j1 = model.neighbours[p + 1]
        j2 = model.neighbours[p + 2]
        j3 = model.neighbours[p + 3]
        for c in range(sums.shape[0]):
            total = sums[c] + value0 * units[j0, c]
            total += value1 * units[j1, c]
            total += value2 * units[j2, c]
            sums[c] = total + value3 * units[j3, c]
        p += 4
    for q in range(p, last):
        value = model.values[q]
        j = model.neighbours[q]
        for c in range(sums.shape[0]):
            sums[c] += value * units[j, c]


@implements(programs.scratch, Couplings)
def _scratch(model, state):
    n, n_units = state.x.shape
    n_filled = (n + _LANES - 1) // _LANES * _LANES
    return Work(
        np.zeros((n_units, n_filled)),
        np.ones((n_units, n_filled), np.float32),
        np.empty(n_units + 4, np.uint32),
        np.zeros(n_filled),
        np.empty(n_filled),
        np.empty(n_filled),
        np.empty(n_filled),
        np.empty(n_filled),
    )


@implements(programs.sweep, Couplings)
def _sweep(model, state, betas, reverse, keys, work):
    """Draw all units in turn, each given all others; the time reversal goes backwards."""
    n, n_units = state.x.shape
    one = np.float32(1.0)
    for c in range(n):
        bits_of_one_chain(work.bits, n_units, keys, c, _UNITS)
        for i in range(n_units):
            work.uniforms[i, c] = uniform(work.bits[i])
            work.units[i, c] = np.float64(state.x[c, i])
        work.betas[c] = betas[c]
    work.log_base[:] = -model.base_constant
    work.gain[:] = model.base_constant + model.offset

    for step in range(n_units):
        i = n_units - 1 - step if reverse else step
        _add_neighbours(model, work.units, model.starts[i], model.middles[i], work.before)
        _add_neighbours(model, work.units, model.middles[i], model.starts[i + 1], work.after)
        # Neighbours that were drawn before this unit keep their values until the sweep ends, so
        # that these sums hold each pair of units once.
        settled = work.after if reverse else work.before
        intercept = model.intercept[i]
        base_logit = model.base_logit[i]
        for c in range(work.betas.shape[0]):
            field = intercept + work.before[c] + work.after[c]
            logit = np.float32(base_logit + work.betas[c] * (field - base_logit))
            unit = np.float64(work.uniforms[i, c] * (one + exp32(-logit)) < one)
            work.units[i, c] = unit
            work.log_base[c] += unit * base_logit
            work.gain[c] += unit * (settled[c] + (intercept - base_logit))

    for c in range(n):
        for i in range(n_units):
            state.x[c, i] = np.uint8(work.units[i, c])
        state.log_base[c] = work.log_base[c]
        state.gain[c] = work.gain[c]


@implements(programs.log_base, Couplings)
def _log_base(model, state, c):
    return state.log_base[c]


@implements(programs.log_gain, Couplings)
def _log_gain(model, state, c):
    return state.gain[c]


tempered(Couplings)


@implements(programs.summarise, Couplings)
def _summarise(model, state, c, out):
    """The units."""
    for i in range(out.shape[0]):
        out[i] = np.float64(state.x[c, i])
