"""Numba kernels of a Bernoulli RBM's log densities: free energies and pseudo-likelihoods of rows,
and of all states of one layer.
"""

import math

import numpy as np

from sklpf.kernels import exp64, inlined, njit, softplus_sum, summing

_ROWS_IN_CACHE = 16


@njit
def softplus_sums(fields, out):
    """out_r = sum over j of log(1 + exp(fields[r, j])), float64."""
    for r in range(fields.shape[0]):
        out[r] = softplus_sum(fields[r], 1.0)


@inlined
def _log_product_of_sums(off, on, factors, most, terms):
    """Sum over j of log(off_j + on_j * factors_j), a log for up to `most` terms: halves are folded
    onto each other.
    """
    length = off.shape[0]
    folded = 1
    total = 0.0
    for j in range(length):
        terms[j] = off[j] + on[j] * factors[j]
    while length > 1 and 2 * folded <= most:
        half = (length + 1) // 2
        head = terms[:half]
        tail = terms[half:length]
        for j in range(tail.shape[0]):
            head[j] *= tail[j]
        length = half
        folded = 2 * folded
    for j in range(length):
        total += math.log(terms[j])
    return total


@inlined
def _log_sigmoid(x):
    """log(1 / (1 + exp(-x))), for any finite x."""
    return min(x, 0.0) - math.log1p(math.exp(-abs(x)))


@njit
def pseudo_log_likelihood_binary(turned_on, turned_off, visible_bias, X, off, on, most, out):
    """out_r = sum over i of log p(x_i | the other x) for binary X (n, M), in float64.

    turned_on = exp(by_visible) and turned_off = exp(-by_visible) (M, J); on and off (n, J) are the
    probabilities of h_j = 1 and 0 given x. Products of `most` entries of turned_on or turned_off
    must be finite and positive.
    """
    terms = np.empty(off.shape[1])
    out[:] = 0.0
    for first in range(0, X.shape[0], _ROWS_IN_CACHE):
        for i in range(X.shape[1]):
            for r in range(first, min(first + _ROWS_IN_CACHE, X.shape[0])):
                factors = turned_off[i] if X[r, i] else turned_on[i]
                change = _log_product_of_sums(off[r], on[r], factors, most, terms)
                out[r] += _log_sigmoid(-change + (visible_bias[i] if X[r, i] else -visible_bias[i]))


@njit
def pseudo_log_likelihood(by_visible, visible_bias, X, fields, out):
    """out_r = sum over i of log p(x_i | the other x): x against x with its i-th value replaced by 1
    - x_i.

    by_visible (M, J), X (n, M) and fields = hidden bias + X @ by_visible (n, J), all float64.
    """
    n_visible, n_hidden = by_visible.shape
    flipped = np.empty(n_hidden)
    for r in range(X.shape[0]):
        here = softplus_sum(fields[r], 1.0)
        out[r] = 0.0
        for i in range(n_visible):
            change = 1.0 - 2.0 * X[r, i]
            for j in range(n_hidden):
                flipped[j] = fields[r, j] + change * by_visible[i, j]
            out[r] += _log_sigmoid(here - change * visible_bias[i] - softplus_sum(flipped, 1.0))


@summing
def _log_sum_exp(x, first, last):
    """log of the sum of exp(x_i) over first <= i < last."""
    largest = x[first]
    for i in range(first + 1, last):
        largest = max(largest, x[i])
    total = 0.0
    for i in range(first, last):
        total += exp64(x[i] - largest)
    return largest + math.log(total)


@inlined
def _log_sum_of_layer(field, starts):
    """Log of the sum over states of the other layer, in which each unit is on or off, or one unit
    of each group is on.
    """
    if starts.shape[0] == 1:
        return softplus_sum(field, 1.0)
    total = 0.0
    for g in range(starts.shape[0] - 1):
        total += _log_sum_exp(field, starts[g], starts[g + 1])
    return total


@njit
def enumerate_states(rows, unit_bias, field, starts, prefix, n_low, out):
    """Write log weights of the 2^n_low states whose upper bits are `prefix` to out, that of the
    lower bits i to out[i]. Each differs from the one before it, in Gray-code order, by one bit.

    A state s of the enumerated layer weighs unit_bias @ s + sum_i log(1 + exp(field_i + (s @
    rows)_i)); rows is (n_units, n_other). Where the other layer is in groups, starts[g] <= i <
    starts[g + 1], of which one unit is on, it weighs unit_bias @ s + sum_g log sum_i exp(field_i +
    (s @ rows)_i). `field` is overwritten.
    """
    n_units, n_other = rows.shape
    state = np.zeros(n_units, np.bool_)
    linear = 0.0
    for j in range(n_low, n_units):
        if (prefix >> (j - n_low)) & 1:
            state[j] = True
            linear += unit_bias[j]
            for i in range(n_other):
                field[i] += rows[j, i]
    out[0] = linear + _log_sum_of_layer(field, starts)
    for code in range(1, 1 << n_low):
        bit = 0
        while not (code >> bit) & 1:
            bit += 1
        state[bit] = not state[bit]
        sign = 1.0 if state[bit] else -1.0
        linear += sign * unit_bias[bit]
        row = rows[bit]
        for i in range(n_other):
            field[i] += sign * row[i]
        out[code ^ (code >> 1)] = linear + _log_sum_of_layer(field, starts)
