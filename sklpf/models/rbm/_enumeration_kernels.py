"""Numba kernels that enumerate the states of one layer of a Bernoulli RBM."""

import math

import numpy as np

from sklpf.kernels import exp64, njit


@njit
def log1p_exp_sum(x, n, lanes):
    """Sum of log(1 + exp(x_i)), i < n, in float64: one log per 512 units."""
    positive = 0.0
    total = 0.0
    for start in range(0, n, 512):
        stop = min(start + 512, n)
        for lane in range(8):
            lanes[lane] = 1.0
            lanes[8 + lane] = 0.0
        whole = start + (stop - start) // 8 * 8
        for j in range(start, whole, 8):
            for lane in range(8):
                lanes[lane] *= 1.0 + exp64(-abs(x[j + lane]))
                lanes[8 + lane] += max(x[j + lane], 0.0)
        for j in range(whole, stop):
            lanes[0] *= 1.0 + exp64(-abs(x[j]))
            positive += max(x[j], 0.0)
        for lane in range(8):
            total += math.log(lanes[lane])
            positive += lanes[8 + lane]
    return positive + total


@njit
def enumerate_states(rows, unit_bias, field, prefix, n_low, out):
    """Log weights of the 2^n_low states whose upper bits are `prefix`, in Gray-code order of the
    lower bits.

    A state s of the enumerated layer weighs unit_bias @ s + sum_i log(1 + exp(field_i + (s @
    rows)_i)); rows is (n_units, n_other). `field` is overwritten.
    """
    n_units, n_other = rows.shape
    lanes = np.empty(16)
    state = np.zeros(n_units, np.bool_)
    linear = 0.0
    for j in range(n_low, n_units):
        if (prefix >> (j - n_low)) & 1:
            state[j] = True
            linear += unit_bias[j]
            for i in range(n_other):
                field[i] += rows[j, i]
    out[0] = linear + log1p_exp_sum(field, n_other, lanes)
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
        out[code] = linear + log1p_exp_sum(field, n_other, lanes)
