"""Numba kernels for the posterior activations of the factorial mixture: coordinate ascent, and
flips of one or two components of single rows.

In coordinate ascent arrays have components first, (K, n), and the kernels work on tiles of `_LANES`
rows side by side: the components of a row must be updated in turn, but rows are independent, so
that a tile fills the registers.

Flips take activations z of 0 and 1, rows first, (n, K). Their energy is bias @ z - z @ coupling @ z
/ 2, with a coupling of zero diagonal.

Rows with missing values are updated one by one: each has a Gram matrix of what it holds.
"""

import math

import numpy as np

from sklpf.kernels import exp64, inlined, njit
from sklpf.kernels._vectors import load, multiply_add, store, zeros

_LANES = 32
_LEAST_GAIN = 1e-9  # nats
_MOST_FACTORS = 256  # of a product of numbers in [1, 2]
# Beyond, products with the smaller probability would be subnormal, which is slow
_LARGEST_LOGIT = 300.0
# parts of the work array of a tile, one value a lane; in one array so that the compiler sees that
# they don't overlap
_FIELD, _FACTOR, _REST, _CHANGE, _INVERSE, _MOVING = range(0, 6 * _LANES, _LANES)


@inlined
def _update_tile(products, activations, gram, log_odds, half_precision, work):
    """Update a tile's activations (K, lanes) in turn, but only where _MOVING is 1; returns the
    entropy of those lanes.

    products holds means @ x, _INVERSE b; _CHANGE gets the largest step of every lane. The logit of
    component k is b (log_odds_k + (products_k - sum_j gram_kj activations_j over j != k - gram_kk /
    2) / noise variance).
    """
    for lane in range(_LANES):
        work[_FACTOR + lane] = 1.0
        work[_REST + lane] = 0.0
        work[_CHANGE + lane] = 0.0
    entropy = 0.0
    for k in range(gram.shape[0]):
        field = _less_rows(load(products, k * _LANES, _LANES), gram, k, activations)
        store(work, _FIELD, field)
        own = gram[k, k]
        bias = log_odds[k]
        for lane in range(_LANES):
            old = activations[k, lane]
            field = work[_FIELD + lane] + (old - 0.5) * own
            logit = work[_INVERSE + lane] * (bias + 2.0 * half_precision * field)
            size = min(abs(logit), _LARGEST_LOGIT)
            small = exp64(-size)
            share = 1.0 / (1.0 + small)
            new = share if logit >= 0.0 else small * share
            new = new if work[_MOVING + lane] > 0.0 else old
            work[_FACTOR + lane] *= 1.0 + small * work[_MOVING + lane]
            work[_REST + lane] += size * small * share * work[_MOVING + lane]
            work[_CHANGE + lane] = max(work[_CHANGE + lane], abs(new - old))
            activations[k, lane] = new
        if (k + 1) % _MOST_FACTORS == 0:
            entropy += _fold_entropy(work)
    return entropy + _fold_entropy(work)


@inlined
def _less_rows(start, weights, k, rows):
    """start - sum_j weights[k, j] rows[j], of _LANES float64: two sums side by side."""
    n = weights.shape[1]
    odd = zeros(rows, _LANES)
    for j in range(0, n - 1, 2):
        start = multiply_add(-weights[k, j], load(rows, j * _LANES, _LANES), start)
        odd = multiply_add(-weights[k, j + 1], load(rows, (j + 1) * _LANES, _LANES), odd)
    if n % 2 == 1:
        start = multiply_add(-weights[k, n - 1], load(rows, (n - 1) * _LANES, _LANES), start)
    return start + odd


@inlined
def _fold_entropy(work):
    """Sum of all lanes' _REST and log _FACTOR, which begin anew; few logarithms, as they
    are slow.
    """
    total = 0.0
    product = 1.0
    for lane in range(_LANES):
        total += work[_REST + lane]
        product *= work[_FACTOR + lane]
        if product > 1e150:
            total += math.log(product)
            product = 1.0
        work[_FACTOR + lane] = 1.0
        work[_REST + lane] = 0.0
    return total + math.log(product)


@njit
def update_activations(
    products, activations, gram, log_odds, half_precision, inverse, max_iter, tol
):
    """Update the activations (K, n), in place, `max_iter` times, each row until none of its own
    changes by more than `tol`; returns the entropy, in nats, of those that the last update moved.

    products (K, n) = means @ x.T, gram (K, K) contiguous, inverse (n,), half_precision = 1 / (2
    noise variance).
    """
    n_components, n = products.shape
    fixed = np.zeros((n_components, _LANES))
    tile = np.zeros((n_components, _LANES))
    work = np.zeros(6 * _LANES)
    total = 0.0
    for first in range(0, n, _LANES):
        width = min(_LANES, n - first)
        # The last tile keeps rows of the one before, which do not move.
        for k in range(n_components):
            for lane in range(width):
                fixed[k, lane] = products[k, first + lane]
                tile[k, lane] = activations[k, first + lane]
        for lane in range(_LANES):
            work[_INVERSE + lane] = inverse[first + lane] if lane < width else 0.0
            work[_MOVING + lane] = 1.0 if lane < width else 0.0
        entropy = 0.0
        for _ in range(max_iter):
            entropy = _update_tile(fixed, tile, gram, log_odds, half_precision, work)
            n_moving = 0
            for lane in range(width):
                if work[_CHANGE + lane] <= tol:
                    work[_MOVING + lane] = 0.0
                else:
                    n_moving += 1
            if n_moving == 0:
                break
        total += entropy
        for k in range(n_components):
            for lane in range(width):
                activations[k, first + lane] = tile[k, lane]
    return total


@njit
def update_rows(products, activations, grams, log_odds, half_precision, inverse, max_iter, tol):
    """`update_activations` of rows each of which has a Gram matrix of its own, grams (n, K, K)."""
    n_components, n = products.shape
    total = 0.0
    for row in range(n):
        gram = grams[row]
        entropy = 0.0
        for _ in range(max_iter):
            entropy = 0.0
            largest = 0.0
            for k in range(n_components):
                old = activations[k, row]
                field = products[k, row] + (old - 0.5) * gram[k, k]
                for j in range(n_components):
                    field -= gram[k, j] * activations[j, row]
                logit = inverse[row] * (log_odds[k] + 2.0 * half_precision * field)
                size = min(abs(logit), _LARGEST_LOGIT)
                small = math.exp(-size)
                share = 1.0 / (1.0 + small)
                new = share if logit >= 0.0 else small * share
                entropy += math.log1p(small) + size * small * share
                largest = max(largest, abs(new - old))
                activations[k, row] = new
            if largest <= tol:
                break
        total += entropy
    return total


# ---- flips
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
def climb_rows(bias, couplings, z, k, values):
    """Raise the energy of all rows of z (n, K), uint8, in place, with component k at `values` (n,);
    none is held where k is -1. couplings are (n, K, K), or (1, K, K) where rows share one.

    Returns what the energy of every row gains, (n,). Rows in which k has its value stay as they
    are.
    """
    n, n_components = z.shape
    fields = np.empty(n_components)
    sign = np.empty(n_components)
    gains = np.zeros(n)
    for row in range(n):
        if k >= 0 and z[row, k] == values[row]:
            continue
        coupling = couplings[min(row, len(couplings) - 1)]
        # fields_j = what the energy gains when component j goes from off to on
        for j in range(n_components):
            field = bias[row, j]
            for i in range(n_components):
                field -= coupling[j, i] * z[row, i]
            fields[j] = field
        if k >= 0:
            gains[row] = (1.0 - 2.0 * z[row, k]) * fields[k]
            _flip(coupling, z[row], fields, k)
        gains[row] += _climb(coupling, z[row], fields, sign, k)
    return gains
