"""Numba kernels that train the Bernoulli RBM by persistent contrastive divergence.

Every product with a layer of units is a sum of weight rows over the units that are not zero. The
weights are kept in both layouts, each with one more row for the biases of the other axis, the
weights of a unit that is always on: by_visible (M + 1, J padded) and by_hidden (J + 1, M padded),
float32 with zeros in the padding, which may go beyond the next multiple of 16.
"""

from typing import NamedTuple

import numpy as np

from sklpf._utils import random as _random
from sklpf._utils.layout import LANES
from sklpf.kernels import add_rows, draw_units, exp32, inlined, njit, random_bits, uniform
from sklpf.kernels._vectors import transpose_tile

# draws of each layer; typed, since numba compiles a function anew for each literal number that it
# is given
_HIDDEN = np.int64(_random.FIRST)
_VISIBLE = np.int64(_random.SECOND)
# columns of sums that are kept in registers: many where many rows are added to few sums
_LONG_TILE = np.int64(256)
_BLOCK_TILE = np.int64(128)
_SHORT_TILE = np.int64(64)
# Hidden units whose weights, _BLOCK_TILE columns at a time, stay in the first-level cache
_BLOCK = 64


class Updates(NamedTuple):
    """Steps along the gradient, one for each batch edges[t] <= row < edges[t + 1] of the data."""

    edges: np.ndarray  # (n + 1,) int64
    rates: np.ndarray  # (n, 2) float64: what a row of the batch and what a chain is multiplied by
    # (n,) float32: of the new weights in the running average, 0 leaves it as it is
    shares: np.ndarray
    shrinkages: np.ndarray  # (n,) float32: of the weights by their decay, 0 leaves them as they are


class Lists(NamedTuple):
    """For each of n accumulators the rows that it takes and their coefficients, as `add_rows` wants
    them.
    """

    indices: np.ndarray  # (n, most) int32
    values: np.ndarray  # (n, most) float32
    counts: np.ndarray  # (n,) int64


@inlined
def _empty_lists(n, most):
    """Lists of n accumulators with room for as many rows, coefficients 1."""
    return Lists(
        np.empty((n, most), np.int32), np.ones((n, most), np.float32), np.zeros(n, np.int64)
    )


# ---- lists of the units that are not zero
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


@inlined
def _list_on(units, first, indices):
    """List the units that are on, numbered from `first`; returns how many."""
    count = 0
    for j in range(units.shape[0]):
        indices[count] = first + j
        count += np.int64(units[j])
    return count


@inlined
def _list_row(indptr, indices, values, row, n, lists, r):
    """List the non-zero values of one row of the data, and behind them the bias row n."""
    first = indptr[row]
    count = indptr[row + 1] - indptr[row]
    for p in range(count):
        lists.indices[r, p] = indices[first + p]
        lists.values[r, p] = values[first + p]
    lists.indices[r, count] = n
    lists.values[r, count] = 1.0
    lists.counts[r] = count + 1


@inlined
def _list_by_unit(rows, n_positive, n_rows, rates, units, totals):
    """Turn the lists of the rows into lists of the visible units; rates are those of the data's
    rows and of the chains.

    totals (M + 1,) is each unit's sum, the step of its bias.
    """
    units.counts[:] = 0
    totals[:] = 0.0
    for r in range(n_rows):
        signed = np.float32(rates[0]) if r < n_positive else -np.float32(rates[1])
        for p in range(rows.counts[r]):
            i = rows.indices[r, p]
            k = units.counts[i]
            value = signed * rows.values[r, p]
            units.indices[i, k] = r
            units.values[i, k] = value
            units.counts[i] = k + 1
            totals[i] += value


@inlined
def _add_rows(accumulators, rows, lists, n_columns, tile):
    """Add the listed rows, `tile` (a multiple of 16) columns at a time; the padding is
    left alone.
    """
    width = (n_columns + LANES - 1) // LANES * LANES
    for first in range(0, width, tile):
        here = slice(first, min(first + tile, width))
        add_rows(accumulators[:, here], rows[:, here], lists.indices, lists.values, lists.counts)


# ---- units and probabilities


@inlined
def _to_probability(field, n):
    """Replace inputs by their sigmoids."""
    one = np.float32(1.0)
    for j in range(n):
        field[j] = one / (one + exp32(-field[j]))


# ---- transposition
@inlined
def _transpose(source, n_rows, n_columns, target):
    """target[j, i] = source[i, j] for i < n_rows, j < n_columns; both float32 and C-contiguous."""
    whole_rows = n_rows // LANES * LANES
    whole_columns = n_columns // LANES * LANES
    for i in range(0, whole_rows, LANES):
        for j in range(0, whole_columns, LANES):
            first = i * source.shape[1] + j
            place = j * target.shape[1] + i
            transpose_tile(source, first, source.shape[1], target, place, target.shape[1])
    for i in range(n_rows):
        for j in range(whole_columns if i < whole_rows else 0, n_columns):
            target[j, i] = source[i, j]


# ---- persistent contrastive divergence
@inlined
def _negative_phase(by_hidden, h, visible, starts, keys, chains, rows, first):
    """Draw v given h for every persistent chain and append the lists of its units to `rows`."""
    key0, key1, step = keys
    n_visible = rows.indices.shape[1] - 1
    bits = np.empty(n_visible + 4, np.uint32)
    units = np.empty(n_visible, np.uint8)
    bias = by_hidden[h.shape[1]]
    for c in range(h.shape[0]):
        # assigning arrays to arrays would compile numba's formatting of errors, for 5 s
        for i in range(n_visible):
            visible[c, i] = bias[i]
    for first_unit in range(0, h.shape[1], _BLOCK):
        for c in range(h.shape[0]):
            chains.counts[c] = _list_on(
                h[c, first_unit : first_unit + _BLOCK], first_unit, chains.indices[c]
            )
        _add_rows(visible, by_hidden, chains, n_visible, _BLOCK_TILE)
    for c in range(h.shape[0]):
        random_bits(bits, n_visible, key0, key1, step, c, _VISIBLE)
        draw_units(visible[c], starts, bits, n_visible, units)
        count = _list_on(units, np.int64(0), rows.indices[first + c])
        rows.indices[first + c, count] = n_visible
        rows.counts[first + c] = count + 1
        rows.values[first + c] = 1.0


@inlined
def _hidden_phase(by_visible, h, hidden, keys, rows, n_positive):
    """Probabilities of the hidden units for the data's and the chains' rows; the chains draw
    theirs.
    """
    key0, key1, step = keys
    n_hidden = h.shape[1]
    bits = np.empty(n_hidden + 4, np.uint32)
    hidden[:] = 0.0
    _add_rows(hidden, by_visible, rows, n_hidden, _LONG_TILE)
    for r in range(hidden.shape[0]):
        _to_probability(hidden[r], n_hidden)
    for c in range(h.shape[0]):
        random_bits(bits, n_hidden, key0, key1, step, c, _HIDDEN)
        for j in range(n_hidden):
            h[c, j] = np.uint8(uniform(bits[j]) < hidden[n_positive + c, j])


@inlined
def _move_average(average, share, values):
    """average += share * (values - average) for arrays of one shape (n, m)."""
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            average[i, j] += share * (values[i, j] - average[i, j])


@njit
def train(
    by_visible,
    by_hidden,
    h,
    visible,
    hidden,
    starts,
    indptr,
    indices,
    values,
    updates,
    first,
    last,
    average_by_visible,
    average_by_hidden,
    key0,
    key1,
    step,
):
    """Make the updates first <= t < last of persistent contrastive divergence (Tieleman 2008) in
    place.

    h (B, J) uint8 are the persistent chains; the data's rows are given by their non-zero values
    (indptr, indices, values); visible (B, M padded) and hidden (largest batch + B, J padded) are
    scratch. Visible units are in groups with one unit on, group g from starts[g] to starts[g + 1];
    with a single start there are no groups. Of average_by_hidden only the last row, the visible
    biases, follows the updates. Random numbers depend on (key, step + t, chain) alone.
    """
    edges = updates.edges
    n_visible = by_visible.shape[0] - 1
    n_hidden = by_hidden.shape[0] - 1
    n_chains = h.shape[0]
    rows = _empty_lists(hidden.shape[0], n_visible + 1)
    chains = _empty_lists(n_chains, _BLOCK + 1)
    units = _empty_lists(n_visible + 1, hidden.shape[0])
    totals = np.empty(n_visible + 1, np.float32)
    for t in range(first, last):
        n = edges[t + 1] - edges[t]
        keys = key0, key1, step + t
        for r in range(n):
            _list_row(indptr, indices, values, edges[t] + r, n_visible, rows, r)
        _negative_phase(by_hidden, h, visible, starts, keys, chains, rows, n)
        _hidden_phase(by_visible, h, hidden[: n + n_chains], keys, rows, n)
        _list_by_unit(rows, n, n + n_chains, updates.rates[t], units, totals)
        bias = by_hidden[n_hidden]
        for i in range(n_visible):
            bias[i] += totals[i]
        if updates.shrinkages[t] > 0:
            keep = np.float32(1.0) - updates.shrinkages[t]
            for i in range(n_visible):
                for j in range(n_hidden):
                    by_visible[i, j] *= keep
        _add_rows(by_visible, hidden, units, n_hidden, _SHORT_TILE)
        _transpose(by_visible, n_visible, n_hidden, by_hidden)
        if updates.shares[t] > 0:
            _move_average(average_by_visible, updates.shares[t], by_visible)
            _move_average(average_by_hidden[n_hidden:], updates.shares[t], by_hidden[n_hidden:])
