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
from sklpf.kernels import exp32, implements, njit, random_bits, tempered, uniform


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
    """Work space of one sweep of n chains."""

    units: np.ndarray  # (M, n) float64, 0 or 1
    uniforms: np.ndarray  # (M, n) float32
    bits: np.ndarray  # (M + 4,) uint32
    before: np.ndarray  # (n,): sum over a unit's neighbours before it
    after: np.ndarray  # (n,): and over those after it


@njit
def _add_neighbours(model, units, first, last, sums):
    """sums_c = sum over some neighbours of coupling times unit."""
    for c in range(sums.shape[0]):
        sums[c] = 0.0
    for p in range(first, last):
        value = model.values[p]
        neighbour = units[model.neighbours[p]]
        for c in range(sums.shape[0]):
            sums[c] += value * neighbour[c]


@njit
def _draw_unit(fields_before, fields_after, intercept, base_logit, betas, uniforms, units):
    """Draw one unit of every chain given its neighbours."""
    one = np.float32(1.0)
    for c in range(units.shape[0]):
        field = intercept + fields_before[c] + fields_after[c]
        logit = np.float32(base_logit + betas[c] * (field - base_logit))
        units[c] = np.float64(uniforms[c] * (one + exp32(-logit)) < one)


@njit
def _add_energies(units, field, base_logit, log_base, gain):
    """Add what one unit of every chain contributes; field (n,) holds each pair of units once."""
    for c in range(units.shape[0]):
        log_base[c] += units[c] * base_logit
        gain[c] += units[c] * field[c]


@implements(programs.scratch, Couplings)
def _scratch(model, state):
    n, n_units = state.x.shape
    return Work(
        np.empty((n_units, n)),
        np.empty((n_units, n), np.float32),
        np.empty(n_units + 4, np.uint32),
        np.empty(n),
        np.empty(n),
    )


@implements(programs.sweep, Couplings)
def _sweep(model, state, betas, reverse, keys, work):
    """Draw all units in turn, each given all others; the time reversal goes backwards."""
    n, n_units = state.x.shape
    for c in range(n):
        random_bits(work.bits, n_units, keys.key0, keys.key1, keys.step, keys.chain + c, _UNITS)
        for i in range(n_units):
            work.uniforms[i, c] = uniform(work.bits[i])
            work.units[i, c] = np.float64(state.x[c, i])
        state.log_base[c] = -model.base_constant
        state.gain[c] = model.base_constant + model.offset
    for step in range(n_units):
        i = n_units - 1 - step if reverse else step
        units = work.units[i]
        intercept = model.intercept[i]
        base_logit = model.base_logit[i]
        _add_neighbours(model, work.units, model.starts[i], model.middles[i], work.before)
        _add_neighbours(model, work.units, model.middles[i], model.starts[i + 1], work.after)
        _draw_unit(work.before, work.after, intercept, base_logit, betas, work.uniforms[i], units)
        # Neighbours that were drawn before this unit keep their values until the sweep ends.
        settled = work.after if reverse else work.before
        for c in range(n):
            settled[c] += intercept - base_logit
        _add_energies(units, settled, base_logit, state.log_base, state.gain)
    for c in range(n):
        for i in range(n_units):
            state.x[c, i] = np.uint8(work.units[i, c])


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
