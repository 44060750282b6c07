"""Numba kernels that train the Bernoulli RBM by persistent contrastive divergence, and its pseudo-likelihood.

Every product with a layer of units is a sum of weight rows over the units that are not zero. The weights are kept in
both layouts, each with one more row for the biases of the other axis, the weights of a unit that is always on:
by_visible (M + 1, J padded) and by_hidden (J + 1, M padded), float32 with zeros in the padding.
"""

import math

import numpy as np

from sklpf import _random
from sklpf._kernels import add_rows, exp32, random_bits, uniform
from sklpf._numba import njit
from sklpf.models._rbm_kernels import _log1p_exp_sum

_HIDDEN, _VISIBLE = _random.HIDDEN, _random.VISIBLE


# ---- lists of the units that are not zero --------------------------------------------------------
@njit
def compress(X, indptr, indices, values):
    """The non-zero values of a dense X, row after row: indptr (n + 1,), indices and values (nnz,)."""
    count = 0
    for r in range(X.shape[0]):
        for i in range(X.shape[1]):
            if X[r, i] != 0:
                indices[count] = i
                values[count] = X[r, i]
                count += 1
        indptr[r + 1] = count


@njit
def _list_on(units, n, indices):
    """List the units that are on, and the bias row n behind them; returns the length of the list."""
    count = 0
    for j in range(n):
        indices[count] = j
        count += np.int64(units[j])
    indices[count] = n
    return count + 1


@njit
def _copy_row(indptr, indices, values, r, n, row_indices, row_values):
    """Copy row r of the data, and the bias row n behind it; returns the length of the list."""
    count = indptr[r + 1] - indptr[r]
    for p in range(count):
        row_indices[p] = indices[indptr[r] + p]
        row_values[p] = values[indptr[r] + p]
    row_indices[count], row_values[count] = n, 1.0
    return count + 1


# ---- one batch -----------------------------------------------------------------------------------
@njit
def _draw_visible(field, n, bits, units):
    one = np.float32(1.0)
    for i in range(n):
        units[i] = np.uint8(uniform(bits[i]) * (one + exp32(-field[i])) < one)


@njit
def _to_probability(field, n):
    one = np.float32(1.0)
    for j in range(n):
        field[j] = one / (one + exp32(-field[j]))


@njit
def _draw_hidden(probability, n, bits, units):
    for j in range(n):
        units[j] = np.uint8(uniform(bits[j]) < probability[j])


@njit
def _by_unit(rows, n_positive, n_rows, rate, units):
    """Turn the lists of every row into lists of every visible unit, with the rate as the sign of the phase."""
    indices, values, counts = rows
    unit_rows, unit_rates, unit_counts = units
    unit_counts[:] = 0
    for r in range(n_rows):
        signed = rate if r < n_positive else -rate
        for p in range(counts[r]):
            i = indices[r, p]
            k = unit_counts[i]
            unit_rows[i, k] = r
            unit_rates[i, k] = signed * values[r, p]
            unit_counts[i] = k + 1


@njit
def _transpose(source, n_rows, n_columns, target):
    for first in range(0, n_rows, 16):
        for start in range(0, n_columns, 16):
            for i in range(first, min(first + 16, n_rows)):
                for j in range(start, min(start + 16, n_columns)):
                    target[j, i] = source[i, j]


@njit
def train(by_visible, by_hidden, h, indptr, indices, values, edges, learning_rate, key0, key1, step):
    """Persistent contrastive divergence in place, a step for each batch edges[t] <= row < edges[t + 1].

    h (B, J) uint8 are the persistent chains; the data's rows are given by their non-zero values (indptr, indices,
    values). Random numbers depend on (key, step + t, chain) alone.
    """
    n_visible, n_hidden = by_visible.shape[0] - 1, by_hidden.shape[0] - 1
    n_chains = h.shape[0]
    largest = n_chains
    for t in range(edges.shape[0] - 1):
        largest = max(largest, edges[t + 1] - edges[t] + n_chains)
    indices_of_row = np.empty((largest, n_visible + 1), np.int32)
    values_of_row = np.empty((largest, n_visible + 1), np.float32)
    counts_of_row = np.empty(largest, np.int64)
    unit_rows = np.empty((n_visible + 1, largest), np.int32)
    unit_rates = np.empty((n_visible + 1, largest), np.float32)
    unit_counts = np.empty(n_visible + 1, np.int64)
    hidden = np.empty((largest, by_visible.shape[1]), np.float32)
    visible = np.empty((n_chains, by_hidden.shape[1]), np.float32)
    h_indices = np.empty((n_chains, n_hidden + 1), np.int32)
    h_values = np.ones((n_chains, n_hidden + 1), np.float32)
    h_counts = np.empty(n_chains, np.int64)
    bits = np.empty(max(n_visible, n_hidden) + 4, np.uint32)
    units = np.empty(n_visible, np.uint8)
    for t in range(edges.shape[0] - 1):
        start = edges[t]
        n = edges[t + 1] - start
        rate = np.float32(learning_rate / n)
        for r in range(n):
            counts_of_row[r] = _copy_row(
                indptr, indices, values, start + r, n_visible, indices_of_row[r], values_of_row[r]
            )
        for c in range(n_chains):
            h_counts[c] = _list_on(h[c], n_hidden, h_indices[c])
        visible[:] = 0.0
        add_rows(visible, by_hidden, h_indices, h_values, h_counts)
        for c in range(n_chains):
            random_bits(bits, n_visible, key0, key1, step + t, c, _VISIBLE)
            _draw_visible(visible[c], n_visible, bits, units)
            counts_of_row[n + c] = _list_on(units, n_visible, indices_of_row[n + c])
            values_of_row[n + c] = 1.0
        hidden[:] = 0.0
        add_rows(hidden[: n + n_chains], by_visible, indices_of_row, values_of_row, counts_of_row)
        for r in range(n + n_chains):
            _to_probability(hidden[r], n_hidden)
        for c in range(n_chains):
            random_bits(bits, n_hidden, key0, key1, step + t, c, _HIDDEN)
            _draw_hidden(hidden[n + c], n_hidden, bits, h[c])
        _by_unit(
            (indices_of_row, values_of_row, counts_of_row), n, n + n_chains, rate, (unit_rows, unit_rates, unit_counts)
        )
        add_rows(by_visible, hidden, unit_rows, unit_rates, unit_counts)
        for i in range(n_visible):
            for k in range(unit_counts[i]):
                by_hidden[n_hidden, i] += unit_rates[i, k]
        _transpose(by_visible, n_visible, n_hidden, by_hidden)


# ---- log densities of rows -------------------------------------------------------------------------
@njit
def log1p_exp_sums(fields, out):
    """out_r = sum over j of log(1 + exp(fields[r, j])), float64."""
    lanes = np.empty(16)
    for r in range(fields.shape[0]):
        out[r] = _log1p_exp_sum(fields[r], fields.shape[1], lanes)


@njit
def pseudo_log_likelihood(by_visible, visible_bias, X, fields, out):
    """out_r = sum over i of log p(x_i | the other x): x against x with its i-th value replaced by 1 - x_i.

    by_visible (M, J), X (n, M) and fields = hidden bias + X @ by_visible (n, J), all float64.
    """
    n_visible, n_hidden = by_visible.shape
    lanes, flipped = np.empty(16), np.empty(n_hidden)
    for r in range(X.shape[0]):
        here = _log1p_exp_sum(fields[r], n_hidden, lanes)
        total = 0.0
        for i in range(n_visible):
            change = 1.0 - 2.0 * X[r, i]
            for j in range(n_hidden):
                flipped[j] = fields[r, j] + change * by_visible[i, j]
            gain = change * visible_bias[i] + _log1p_exp_sum(flipped, n_hidden, lanes) - here
            total -= max(gain, 0.0) + math.log1p(math.exp(-abs(gain)))
        out[r] = total
