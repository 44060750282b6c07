"""Numba kernels that train RBMs of discrete units by persistent contrastive divergence.

All parameters are one matrix of float32, padded with zeros to multiples of a register: weights by
visible and hidden unit, and behind these the visible units' biases as one more column and the
hidden units' as one more row. Chains and rows of the data are one block of units.
"""

import functools
from typing import NamedTuple

import numpy as np

from sklpf.kernels import (
    BORROWS,
    FIRST,
    SECOND,
    WIDE,
    Layer,
    add_layer,
    borrowing,
    draw_categories,
    exp32,
    list_units,
    njit,
    random_bits,
    transpose,
    uniform,
)
from sklpf.kernels._teams import wait_for_all

_HIDDEN = FIRST
_VISIBLE = SECOND
_A_PART = np.int64(256)  # between the purposes of draws of two parts of the visible units
PANEL = 128  # visible units whose weights are transposed at a time, and stay in the cache


class Updates(NamedTuple):
    """Steps along the gradient, one for each batch edges[t] <= row < edges[t + 1] of the data."""

    edges: np.ndarray  # (n + 1,) int64
    rates: np.ndarray  # (n, 2) float64: what a row of the batch and what a chain is multiplied by
    # (n,) float32: of the new weights in the running average, 0 leaves it as it is
    shares: np.ndarray
    shrinkages: np.ndarray  # (n,) float32: of the weights by their decay, 0 leaves them as they are


class Values(NamedTuple):
    """The non-zero values of the data by row, as in a CSR matrix with sorted indices."""

    indptr: np.ndarray  # (n + 1,) int64
    indices: np.ndarray  # (nnz,) int32
    values: np.ndarray  # (nnz,) float32


class Block(NamedTuple):
    """Work space for the chains and the largest batch behind them, R rows, with visible units in S
    parts, and for T threads.
    """

    visible: np.ndarray  # (R padded, M padded) float32: units
    # first unit of each part, and the end, (S + 1,) int64, multiples of a register
    parts: np.ndarray
    # what each part of the rows adds to the inputs of hidden units; units are those of `visible`
    by_part: Layer  # all else with a first axis S
    fields: np.ndarray  # (S, R, J padded) float32: inputs by each part
    # (R, J padded) float32: probabilities times what each row counts; with one thread the first of
    # the inputs
    hidden: np.ndarray
    width: int  # J padded
    chains: Layer  # units (B, J padded)
    by_unit: Layer  # the visible units of all rows, by unit, those of a panel; first axis T
    panel: np.ndarray  # (T, J padded + 16, PANEL) float32: weights of a panel by hidden unit
    coefficients: np.ndarray  # (R,) float32: of each row in the gradient
    changes: np.ndarray  # (T, PANEL) float32: of the biases of a panel's visible units
    bits: np.ndarray  # (T, most units and 4) uint32
    units: np.ndarray  # (T, most units) uint8


@njit
def compress(X, indptr, indices, values):
    """The non-zero values of a dense X, row after row: indptr (n + 1,), indices and
    values (nnz,).
    """
    count = 0
    for r in range(X.shape[0]):
        for i in range(X.shape[1]):
            if X[r, i] != 0:
                indices[count] = i
                values[count] = X[r, i]
                count += 1
        indptr[r + 1] = count


# ---- units
@borrowing
def _copy_row(data, row, first, visible):
    """Write units of one row of the data, from `first` on, to those of a row; all others are
    off.
    """
    n = visible.shape[0]
    for i in range(n):
        visible[i] = 0.0
    stop = data.indptr[row + 1]
    p = data.indptr[row]
    if first > 0:
        p += np.searchsorted(data.indices[p:stop], first)
    while p < stop and data.indices[p] < first + n:
        visible[data.indices[p] - first] = data.values[p]
        p += 1


@borrowing
def _draw_visible(visible, bits):
    """Draw visible units of a chain in place of their inputs."""
    one = np.float32(1.0)
    for i in range(visible.shape[0]):
        visible[i] = np.float32(uniform(bits[i]) * (one + exp32(-visible[i])) < one)


@borrowing
def _draw_groups(visible, n, starts, bits, units):
    """Draw n visible units of a chain, in groups with one unit on, in place of their inputs."""
    draw_categories(visible, starts, bits, units)
    for i in range(n):
        visible[i] = np.float32(units[i])


@borrowing
def _draw_hidden(hidden, chain, n, bits):
    """Draw n hidden units of a chain with their probabilities."""
    for j in range(n):
        chain[j] = np.float32(uniform(bits[j]) < hidden[j])


@borrowing
def _to_probability(field, n):
    """Replace n inputs by their sigmoids, of which none is so small that products take longer."""
    one = np.float32(1.0)
    for j in range(n):
        field[j] = one / (one + exp32(-max(field[j], np.float32(-40.0))))


@borrowing
def _scale(values, factor):
    for j in range(values.shape[0]):
        values[j] *= factor


@borrowing
def _add_multiple(total, factor, values):
    for j in range(total.shape[0]):
        total[j] += factor * values[j]


@borrowing
def _copy(target, values):
    for j in range(target.shape[0]):
        target[j] = values[j]


@borrowing
def _move_average(average, share, values):
    """average += share * (values - average)."""
    for j in range(average.shape[0]):
        average[j] += share * (values[j] - average[j])


# ---- products of a thread
@borrowing
def _some_rows(layer, n):
    """The first n rows of a layer."""
    return Layer(layer.indices[:n], layer.factors[:n], layer.counts[:n], layer.units[:n], layer.off)


@borrowing
def _to_visible(parameters, block, first, last, panel):
    """Write the inputs of the chains' visible units first <= i < last."""
    chains = block.chains
    n_chains = chains.units.shape[0]
    transpose(parameters[first:last, : panel.shape[0]], panel[:, : last - first])
    for c in range(n_chains):
        _copy(block.visible[c, first:last], panel[block.width])
    sums = block.visible[:n_chains, first:last]
    add_layer(sums, panel[: chains.off.shape[0], : last - first], chains)


@borrowing
def _to_hidden(parameters, block, n_rows, part):
    """Write what one part of the visible units of all rows adds to the inputs of hidden units, the
    first one with their biases.
    """
    first = block.parts[part]
    by_part = block.by_part
    n = min(block.parts[part + 1], by_part.off.shape[0]) - first
    width = block.width
    sums = block.fields[part, :n_rows, :width]
    for r in range(n_rows):
        own = block.fields[part, r, :width]
        if part == 0:
            _copy(own, parameters[block.parts[-1], :width])
        else:
            for j in range(width):
                own[j] = 0.0
    products = Layer(
        by_part.indices[part],
        by_part.factors[part],
        by_part.counts[part],
        block.visible[:, first : first + n],
        by_part.off,
    )
    list_units(products, n_rows, n)
    add_layer(sums, parameters[first : first + n, :width], _some_rows(products, n_rows))


@borrowing
def _add_gradient(parameters, block, n_rows, first, last, by_unit, change):
    """Add to the weights and biases of visible units first <= i < last what all rows contribute."""
    visible = block.visible
    units = by_unit.units
    n = min(last, block.by_part.off.shape[0]) - first
    transpose(visible[:, first:last], units[: last - first, : visible.shape[0]])
    list_units(by_unit, n, n_rows)
    width = block.width
    weights = parameters[first : first + n, :width]
    add_layer(weights, block.hidden[:n_rows, :width], _some_rows(by_unit, n))
    for i in range(n):
        change[i] = 0.0
    for r in range(n_rows):
        _add_multiple(change[:n], block.coefficients[r], visible[r, first : first + n])
    for i in range(n):
        parameters[first + i, width] += change[i]


# ---- persistent contrastive divergence
@functools.partial(njit, **BORROWS, **WIDE)
def train(parameters, average, data, block, starts, updates, first, last, key, step, team):
    """Make the updates first <= t < last of persistent contrastive divergence (Tieleman 2008) in
    place.

    The hidden units of the persistent chains are `block.chains`. Visible units are in groups with
    one unit on, group g from starts[g] to starts[g + 1]; with a single start there are no groups.
    Random numbers depend on (key, step + t, chain) alone, and the bits of results on nothing else
    but the parts. A thread has the same of these throughout, so that others need little of what it
    writes: its sums for hidden units, and the units of its share of the rows. All threads of a team
    make the same call, which does nothing without updates.
    """
    if first == last:
        return
    key0, key1 = key
    edges = updates.edges
    thread = team.thread
    visible = block.visible
    hidden = block.hidden
    fields = block.fields
    parts = block.parts
    chains = block.chains.units
    n_chains = chains.shape[0]
    n_visible = block.by_part.off.shape[0]
    n_hidden = block.chains.off.shape[0]
    width = block.width
    bits = block.bits[thread]
    units = block.units[thread]
    panel = block.panel[thread]
    change = block.changes[thread]
    by_unit = Layer(
        block.by_unit.indices[thread],
        block.by_unit.factors[thread],
        block.by_unit.counts[thread],
        block.by_unit.units[thread],
        block.by_unit.off,
    )
    n_parts = len(parts) - 1
    first_part = n_parts * thread // team.n_threads
    end_part = n_parts * (thread + 1) // team.n_threads
    begin = parts[first_part]
    end = parts[end_part]
    grouped = starts.shape[0] > 1

    list_units(block.chains, n_chains, n_hidden, thread, team.n_threads)
    wait_for_all(team)
    for start in range(begin, end, PANEL):
        _to_visible(parameters, block, start, min(start + PANEL, end), panel)
    for t in range(first, last):
        n_rows = n_chains + edges[t + 1] - edges[t]

        if grouped:  # which may lie in several parts
            wait_for_all(team)
            for c in range(thread, n_chains, team.n_threads):
                random_bits(bits, n_visible, key0, key1, step + t, c, _VISIBLE)
                _draw_groups(visible[c], n_visible, starts, bits, units)
            wait_for_all(team)
        for part in range(first_part, end_part):
            place = parts[part]
            n = min(parts[part + 1], n_visible) - place
            for r in range(n_rows):
                own = visible[r, place : place + n]
                if r >= n_chains:
                    _copy_row(data, edges[t] + r - n_chains, place, own)
                elif not grouped:
                    random_bits(bits, n, key0, key1, step + t, r, _VISIBLE + _A_PART * part)
                    _draw_visible(own, bits)
            _to_hidden(parameters, block, n_rows, part)
        wait_for_all(team)

        for r in range(thread, n_rows, team.n_threads):
            field = hidden[r, :width]
            if team.n_threads > 1:
                _copy(field, fields[0, r, :width])
            for part in range(1, n_parts):
                _add_multiple(field, np.float32(1.0), fields[part, r, :width])
            _to_probability(field, n_hidden)
            coefficient = np.float32(updates.rates[t, 0])
            if r < n_chains:
                coefficient = np.float32(-updates.rates[t, 1])
                random_bits(bits, n_hidden, key0, key1, step + t, r, _HIDDEN)
                _draw_hidden(field, chains[r], n_hidden, bits)
            _scale(field, coefficient)
            block.coefficients[r] = coefficient
        list_units(block.chains, n_chains, n_hidden, thread, team.n_threads)
        wait_for_all(team)

        # Parameters, and with them the inputs of the next visible units, which need no others.
        if thread == 0:
            bias = parameters[parts[-1], :width]
            for r in range(n_rows):
                _add_multiple(bias, np.float32(1.0), hidden[r, :width])
            if updates.shares[t] > 0:
                _move_average(average[parts[-1], :width], updates.shares[t], bias)
        for start in range(begin, end, PANEL):
            stop = min(start + PANEL, end)
            if updates.shrinkages[t] > 0:
                for i in range(start, stop):
                    _scale(parameters[i, :width], np.float32(1.0) - updates.shrinkages[t])
            _add_gradient(parameters, block, n_rows, start, stop, by_unit, change)
            if updates.shares[t] > 0:
                for i in range(start, stop):
                    _move_average(average[i], updates.shares[t], parameters[i])
            if t + 1 < last:
                _to_visible(parameters, block, start, stop, panel)
    wait_for_all(team)
