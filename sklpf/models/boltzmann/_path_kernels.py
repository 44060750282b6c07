"""Numba kernels of the Boltzmann machine's tempered path.

A sweep visits the units one after another, each at once in all chains: their units lie side by
side, so that the sum over a unit's neighbours stays in registers. The energy is summed on the way,
from the units that the sweep has already been to, and so holds no rounding errors of earlier
sweeps.
"""

from typing import NamedTuple

import numpy as np

from sklpf.kernels import FIRST, exp32, implements, inlined, tempered, uniform
from sklpf.kernels import _programs as programs
from sklpf.kernels._random import bits_of_counter
from sklpf.kernels._vectors import load, multiply_add, store, to_float32, zeros

_LANES = 16  # chains whose sums stay in registers; idle ones fill up the last
_UNITS_OF_A_COUNTER = 4  # a counter of Philox gives so many numbers
_BLOCK = 32  # units of all chains that stay in the cache while they are copied


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
    """The units of n chains, which programs change by sweeps alone, and work space of a sweep, with
    idle chains that fill up the last vector.
    """

    units: np.ndarray  # (M, n') float64, 0 or 1
    bits: np.ndarray  # (4, n') uint32, of some units in a row
    drawn: np.ndarray  # (32, n') uint8: units on their way to the state
    betas: np.ndarray  # (n',)
    settled: np.ndarray  # (n',): sum over a unit's neighbours that were drawn before it
    logits: np.ndarray  # (n',) float32
    log_base: np.ndarray  # (n',)
    gain: np.ndarray  # (n',)


@implements(programs.scratch, Couplings)
def _scratch(model, state):
    n, n_units = state.x.shape
    n_filled = (n + _LANES - 1) // _LANES * _LANES
    units = np.zeros((n_units, n_filled))
    for first in range(0, n_units, _BLOCK):
        for c in range(n):
            for i in range(first, min(first + _BLOCK, n_units)):
                units[i, c] = np.float64(state.x[c, i])
    return Work(
        units,
        np.empty((_UNITS_OF_A_COUNTER, n_filled), np.uint32),
        np.empty((_BLOCK, n_filled), np.uint8),
        np.zeros(n_filled),
        np.empty(n_filled),
        np.empty(n_filled, np.float32),
        np.empty(n_filled),
        np.empty(n_filled),
    )


@inlined
def _sum_of_neighbours(model, units, first, last, c):
    """Sums over some neighbours of coupling times unit, in their order, of chains from c on."""
    total = zeros(units, _LANES)
    for p in range(first, last):
        unit = load(units, model.neighbours[p] * units.shape[1] + c, _LANES)
        total = multiply_add(model.values[p], unit, total)
    return total


@inlined
def _draw_unit(model, i, reverse, bits, drawn, work):
    """Draw unit i of all chains, and add its terms to their energies."""
    n = work.betas.shape[0]
    one = np.float32(1.0)
    units = work.units[i]
    intercept = model.intercept[i]
    base_logit = model.base_logit[i]
    for c in range(0, n, _LANES):
        before = _sum_of_neighbours(model, work.units, model.starts[i], model.middles[i], c)
        after = _sum_of_neighbours(model, work.units, model.middles[i], model.starts[i + 1], c)
        # Neighbours that were drawn before this unit keep their values until the sweep ends, so
        # that these sums hold each pair of units once.
        if reverse:
            store(work.settled, c, after)
        else:
            store(work.settled, c, before)
        gain = before + after + (intercept - base_logit)
        logits = multiply_add(load(work.betas, c, _LANES), gain, base_logit)
        store(work.logits, c, to_float32(logits))
    for c in range(n):
        drawn[c] = np.uint8(uniform(bits[c]) * (one + exp32(-work.logits[c])) < one)
    for c in range(n):
        units[c] = np.float64(drawn[c])
    for c in range(0, n, _LANES):
        unit = load(units, c, _LANES)
        log_base = load(work.log_base, c, _LANES)
        gain = load(work.gain, c, _LANES)
        own_gain = load(work.settled, c, _LANES) + (intercept - base_logit)
        store(work.log_base, c, multiply_add(unit, base_logit, log_base))
        store(work.gain, c, multiply_add(unit, own_gain, gain))


@implements(programs.sweep, Couplings)
def _sweep(model, state, betas, reverse, keys, work):
    """Draw all units in turn, each given all others; the time reversal goes backwards."""
    n, n_units = state.x.shape
    for c in range(n):
        work.betas[c] = betas[c]
    work.log_base[:] = -model.base_constant
    work.gain[:] = model.base_constant + model.offset

    n_blocks = (n_units + _BLOCK - 1) // _BLOCK
    for b in range(n_blocks):
        first = (n_blocks - 1 - b if reverse else b) * _BLOCK
        n_drawn = min(_BLOCK, n_units - first)
        for step in range(n_drawn):
            k = n_drawn - 1 - step if reverse else step
            word = k % _UNITS_OF_A_COUNTER
            if step == 0 or word == (_UNITS_OF_A_COUNTER - 1 if reverse else 0):
                bits_of_counter(work.bits, 0, 1, (first + k) // _UNITS_OF_A_COUNTER, keys, FIRST)
            _draw_unit(model, first + k, reverse, work.bits[word], work.drawn[k], work)
        for c in range(n):
            for k in range(n_drawn):
                state.x[c, first + k] = work.drawn[k, c]

    for c in range(n):
        state.log_base[c] = work.log_base[c]
        state.gain[c] = work.gain[c]


tempered(Couplings)


@implements(programs.summarise, Couplings)
def _summarise(model, state, c, out):
    """The units."""
    for i in range(out.shape[0]):
        out[i] = np.float64(state.x[c, i])
