"""Numba kernels that train RBMs of discrete units by persistent contrastive divergence.

All parameters are one matrix (M + 1, J + 1) of float32, in rows that are padded with zeros: weights
by visible unit and, as its last column and row, the biases of the visible and of the hidden units,
which are weights of units that are always on. Rows of the data and chains are one block of units.
Where many of these are on its products with the weights are BLAS's, else sums of weight rows.
"""

from typing import NamedTuple

import numpy as np

from sklpf._utils import random as _random
from sklpf.kernels import add_rows, draw_units, exp32, inlined, njit, random_bits, uniform
from sklpf.kernels._products import add_product, wait_for_all

# draws of each layer; typed, since numba compiles a function anew for each literal number that it
# is given
_HIDDEN = np.int64(_random.FIRST)
_VISIBLE = np.int64(_random.SECOND)
_TILE = 64  # columns of weights that stay in registers while rows are added to them
# Share of the visible units' values that are not zero, below which weight rows are added one by one
_FEW_ON = 0.25


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


class Lists(NamedTuple):
    """For each of n accumulators the rows that it takes and their coefficients, as `add_rows` wants
    them.
    """

    indices: np.ndarray  # (n, most) int32
    values: np.ndarray  # (n, most) float32
    counts: np.ndarray  # (n,) int64


class Block(NamedTuple):
    """Work space for the largest batch and the chains behind it, R rows, and for T threads."""

    visible: np.ndarray  # (R, M + 1 padded) float32
    hidden: np.ndarray  # (R, J + 1 padded) float32
    on: Lists  # visible units of every row that are not zero, R lists
    by_unit: Lists  # the same by visible unit for those of one task: arrays with first axis T
    bits: np.ndarray  # (T, most units and 4) uint32
    units: np.ndarray  # (T, most units) uint8
    # first unit of each task, and the end, (n + 1,) int64: they are the same for any number of
    # threads
    visible_tasks: np.ndarray  # of the M + 1 units
    hidden_tasks: np.ndarray  # of the J + 1 units padded, multiples of a register


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
@inlined
def _copy_row(data, row, visible):
    """Write one row of the data to a row of visible units; all others are off."""
    for i in range(visible.shape[0]):
        visible[i] = 0.0
    for p in range(data.indptr[row], data.indptr[row + 1]):
        visible[data.indices[p]] = data.values[p]


@inlined
def _draw_visible(visible, n, starts, bits, units):
    """Draw n visible units of a chain in place of their inputs."""
    draw_units(visible, starts, bits, n, units)
    for i in range(n):
        visible[i] = np.float32(units[i])


@inlined
def _list_on(visible, n, on, r):
    """List those of n units that are not zero as number r."""
    count = 0
    indices = on.indices[r]
    for i in range(n):
        indices[count] = i
        count += np.int64(visible[i] != 0)
    for p in range(count):
        on.values[r, p] = visible[indices[p]]
    on.counts[r] = count


@inlined
def _list_by_unit(on, n_rows, first, last, by_unit):
    """Turn the lists of rows into lists of the units first <= i < last."""
    for i in range(last - first):
        by_unit.counts[i] = 0
    for r in range(n_rows):
        indices = on.indices[r]
        p = np.searchsorted(indices[: on.counts[r]], first)
        while p < on.counts[r] and indices[p] < last:
            i = indices[p] - first
            k = by_unit.counts[i]
            by_unit.indices[i, k] = r
            by_unit.values[i, k] = on.values[r, p]
            by_unit.counts[i] = k + 1
            p += 1


@inlined
def _draw_hidden(hidden, chain, n, bits):
    """Draw n hidden units of a chain with their probabilities."""
    for j in range(n):
        chain[j] = np.float32(uniform(bits[j]) < hidden[j])


@inlined
def _to_probability(field, n):
    """Replace n inputs by their sigmoids, of which none is so small that products take longer."""
    one = np.float32(1.0)
    for j in range(n):
        field[j] = one / (one + exp32(-max(field[j], np.float32(-40.0))))


@inlined
def _scale(values, n, factor):
    for j in range(n):
        values[j] *= factor


@inlined
def _move_average(average, share, values, n):
    """average += share * (values - average) for n columns."""
    for i in range(values.shape[0]):
        for j in range(n):
            average[i, j] += share * (values[i, j] - average[i, j])


# ---- persistent contrastive divergence
@njit
def train(
    parameters,
    average,
    chains,
    n_hidden,
    data,
    block,
    starts,
    updates,
    first,
    last,
    key,
    step,
    team,
):
    """Make the updates first <= t < last of persistent contrastive divergence (Tieleman 2008) in
    place.

    chains (B, J + 1 padded) float32 are the hidden units of the persistent chains, the last one
    always on. Visible units are in groups with one unit on, group g from starts[g] to starts[g +
    1]; with a single start there are no groups. Random numbers depend on (key, step + t, chain)
    alone, and the bits of results on nothing else, as every number is the result of one task. All
    threads of a team make the same call.
    """
    key0, key1 = key
    edges = updates.edges
    n_visible = block.visible_tasks[-1] - 1
    n_chains = chains.shape[0]
    bits = block.bits[team.thread]
    units = block.units[team.thread]
    by_unit = Lists(
        block.by_unit.indices[team.thread],
        block.by_unit.values[team.thread],
        block.by_unit.counts[team.thread],
    )
    one = np.float32(1.0)
    for t in range(first, last):
        n = edges[t + 1] - edges[t]
        n_rows = n + n_chains
        visible = block.visible[:n_rows]
        hidden = block.hidden[:n_rows]

        # Inputs of the chains' visible units.
        for task in range(team.thread, block.visible_tasks.shape[0] - 1, team.n_threads):
            here = slice(block.visible_tasks[task], block.visible_tasks[task + 1])
            add_product(visible[n:, here], 0.0, chains, parameters[here], False, True)
        wait_for_all(team)

        # Visible units.
        few = _FEW_ON * n_rows * n_visible
        n_on = data.indptr[edges[t + 1]] - data.indptr[edges[t]]
        may_list = n_on < few
        for r in range(team.thread, n_rows, team.n_threads):
            if r < n:
                _copy_row(data, edges[t] + r, visible[r])
            else:
                random_bits(bits, n_visible, key0, key1, step + t, r - n, _VISIBLE)
                _draw_visible(visible[r], n_visible, starts, bits, units)
            visible[r, n_visible] = one
            if may_list:
                _list_on(visible[r], n_visible + 1, block.on, r)
        wait_for_all(team)

        # Inputs of the hidden units.
        if may_list:
            n_on = block.on.counts[:n_rows].sum() - n_rows
        lists = n_on < few
        for task in range(team.thread, block.hidden_tasks.shape[0] - 1, team.n_threads):
            here = slice(block.hidden_tasks[task], block.hidden_tasks[task + 1])
            if lists:
                hidden[:, here] = 0.0
                on = block.on
                add_rows(hidden[:, here], parameters[:, here], on.indices, on.values, on.counts)
            else:
                units_of_rows = visible[:, : n_visible + 1]
                add_product(hidden[:, here], 0.0, units_of_rows, parameters[:, here], False, False)
        wait_for_all(team)

        # Probabilities of the hidden units, each row times its coefficient in the gradient.
        for r in range(team.thread, n_rows, team.n_threads):
            _to_probability(hidden[r], n_hidden)
            if r >= n:
                random_bits(bits, n_hidden, key0, key1, step + t, r - n, _HIDDEN)
                _draw_hidden(hidden[r], chains[r - n], n_hidden, bits)
            coefficient = np.float32(updates.rates[t, 0] if r < n else -updates.rates[t, 1])
            hidden[r, n_hidden] = one
            _scale(hidden[r], n_hidden + 1, coefficient)
        wait_for_all(team)

        # Parameters.
        for task in range(team.thread, block.visible_tasks.shape[0] - 1, team.n_threads):
            start = block.visible_tasks[task]
            end = block.visible_tasks[task + 1]
            if updates.shrinkages[t] > 0:
                for i in range(start, min(end, n_visible)):
                    _scale(parameters[i], n_hidden, one - updates.shrinkages[t])
            if lists:
                _list_by_unit(block.on, n_rows, start, end, by_unit)
                for column in range(0, block.hidden_tasks[-1], _TILE):
                    tile = slice(column, min(column + _TILE, block.hidden_tasks[-1]))
                    rows = parameters[start:end, tile]
                    add_rows(rows, hidden[:, tile], by_unit.indices, by_unit.values, by_unit.counts)
            else:
                add_product(
                    parameters[start:end, : n_hidden + 1],
                    1.0,
                    visible[:, start:end],
                    hidden[:, : n_hidden + 1],
                    True,
                    False,
                )
            if updates.shares[t] > 0:
                _move_average(
                    average[start:end], updates.shares[t], parameters[start:end], n_hidden + 1
                )
        wait_for_all(team)
