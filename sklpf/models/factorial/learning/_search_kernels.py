"""Numba kernels that look for better activations of single rows, as 0 and 1, by flips of one or two
components.

The energy of z is bias @ z - z @ coupling @ z / 2, with a coupling of zero diagonal. Rows come
first, (n, K).
"""

import numpy as np

from sklpf.kernels import inlined, njit

_LEAST_GAIN = 1e-9  # nats


@inlined
def _set_fields(bias, coupling, z, fields):
    """fields_k = what the energy of z gains when component k goes from off to on."""
    for k in range(len(z)):
        field = bias[k]
        for j in range(len(z)):
            field -= coupling[k, j] * z[j]
        fields[k] = field


@inlined
def _flip(coupling, z, fields, k):
    """Flip unit k of a row, and move the fields of all units along."""
    sign = 1.0 - 2.0 * z[k]
    z[k] = 1 - z[k]
    for j in range(len(z)):
        fields[j] -= sign * coupling[k, j]


@inlined
def _climb(coupling, z, fields, sign, held):
    """Make the best flip of one or two components until none gains; `held` (-1: none) stays.
    Returns the gain.
    """
    total = 0.0
    while True:
        best = _LEAST_GAIN
        first = -1
        second = -1
        for k in range(len(z)):
            sign[k] = 1.0 - 2.0 * z[k]
        for k in range(len(z)):
            if k == held:
                continue
            own = sign[k] * fields[k]
            if own > best:
                best = own
                first = k
                second = -1
            for j in range(k):
                gain = own + sign[j] * (fields[j] - sign[k] * coupling[k, j])
                if gain > best and j != held:
                    best = gain
                    first = k
                    second = j
        if first < 0:
            return total
        total += best
        _flip(coupling, z, fields, first)
        if second >= 0:
            _flip(coupling, z, fields, second)


@njit
def climb_rows(bias, coupling, z):
    """Raise the energy of all rows of z (n, K), uint8, in place."""
    n, n_components = z.shape
    fields = np.empty(n_components)
    sign = np.empty(n_components)
    for row in range(n):
        _set_fields(bias[row], coupling, z[row], fields)
        _climb(coupling, z[row], fields, sign, -1)


@njit
def force_component(bias, coupling, z, k, values):
    """Set component k of all rows of z (n, K) to `values` (n,), in place, and let the others
    follow.

    Returns what the energy of every row gains, (n,); 0 where the component had the value.
    """
    n, n_components = z.shape
    fields = np.empty(n_components)
    sign = np.empty(n_components)
    gains = np.zeros(n)
    for row in range(n):
        if z[row, k] != values[row]:
            _set_fields(bias[row], coupling, z[row], fields)
            gains[row] = (1.0 - 2.0 * z[row, k]) * fields[k]
            _flip(coupling, z[row], fields, k)
            gains[row] += _climb(coupling, z[row], fields, sign, k)
    return gains
