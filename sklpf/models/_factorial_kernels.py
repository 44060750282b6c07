"""Numba kernels for the posterior activations of the factorial mixture.

Arrays have components first, (K, n), and the kernels work on tiles of `_LANES` rows side by side: the components of a
row must be updated in turn, but rows are independent, so that a tile fills the registers.
"""

import math

import numpy as np

from sklpf._kernels import exp64
from sklpf._numba import njit

_LANES = 32
_MOST_FACTORS = 512  # of a product of numbers in [1, 2]
_LARGEST_LOGIT = 300.0  # beyond, products with the smaller probability would be subnormal, which is slow
# parts of the work array of a tile, one value a lane; in one array so that the compiler sees that they don't overlap
_FIELD, _FACTOR, _REST, _CHANGE, _INVERSE, _MOVING = range(0, 6 * _LANES, _LANES)


@njit
def _update_tile(products, activations, gram, log_odds, half_precision, work):
    """Update a tile's activations (K, lanes) in turn, but only where _MOVING; returns their entropy.

    products holds means @ x, _INVERSE b; _CHANGE gets the largest step of every lane. The logit of component k is
    b (log_odds_k + (products_k - sum of the others' gram - gram_kk / 2) / noise variance).
    """
    for lane in range(_LANES):
        work[_FACTOR + lane], work[_REST + lane], work[_CHANGE + lane] = 1.0, 0.0, 0.0
    for k in range(gram.shape[0]):
        _set_fields(work, products, activations, gram, k)
        for lane in range(_LANES):
            logit = work[_INVERSE + lane] * (log_odds[k] + 2.0 * half_precision * work[_FIELD + lane])
            size, old = min(abs(logit), _LARGEST_LOGIT), activations[k, lane]
            small = exp64(-size)
            share = 1.0 / (1.0 + small)
            new = share if logit >= 0.0 else small * share
            new = new if work[_MOVING + lane] > 0.0 else old
            work[_FACTOR + lane] *= 1.0 + small
            work[_REST + lane] += size * small * share
            work[_CHANGE + lane] = max(work[_CHANGE + lane], abs(new - old))
            activations[k, lane] = new
        if (k + 1) % _MOST_FACTORS == 0:
            _fold_factors(work)
    _fold_factors(work)
    entropy = 0.0
    for lane in range(_LANES):
        entropy += work[_REST + lane] if work[_MOVING + lane] > 0.0 else 0.0
    return entropy


@njit
def _set_fields(work, products, activations, gram, k):
    """products[k] - sum_j gram[k, j] activations[j] over j != k - gram[k, k] / 2, four components at a time."""
    n_components = gram.shape[0]
    for lane in range(_LANES):
        work[_FIELD + lane] = products[k, lane] + (activations[k, lane] - 0.5) * gram[k, k]
    for j in range(0, n_components - 3, 4):
        g0, g1, g2, g3 = gram[k, j], gram[k, j + 1], gram[k, j + 2], gram[k, j + 3]
        for lane in range(_LANES):
            first = g0 * activations[j, lane] + g1 * activations[j + 1, lane]
            work[_FIELD + lane] -= first + (g2 * activations[j + 2, lane] + g3 * activations[j + 3, lane])
    for j in range(n_components - n_components % 4, n_components):
        for lane in range(_LANES):
            work[_FIELD + lane] -= gram[k, j] * activations[j, lane]


@njit
def _fold_factors(work):
    for lane in range(_LANES):
        work[_REST + lane] += math.log(work[_FACTOR + lane])
        work[_FACTOR + lane] = 1.0


@njit
def _load(source, first, width, tile):
    """Copy `width` columns of (K, n) to a tile, zeros behind them; a full tile by a loop of known length, for speed."""
    for k in range(tile.shape[0]):
        if width == _LANES:
            for lane in range(_LANES):
                tile[k, lane] = source[k, first + lane]
        else:
            for lane in range(_LANES):
                tile[k, lane] = source[k, first + lane] if lane < width else 0.0


@njit
def _store(tile, first, width, target):
    for k in range(tile.shape[0]):
        if width == _LANES:
            for lane in range(_LANES):
                target[k, first + lane] = tile[k, lane]
        else:
            for lane in range(width):
                target[k, first + lane] = tile[k, lane]


@njit
def update_activations(products, activations, gram, log_odds, half_precision, inverse):
    """Update all activations (K, n) once, in place; returns their entropy in nats.

    products (K, n) = means @ x.T, inverse (n,), half_precision = 1 / (2 noise variance).
    """
    n_components, n = products.shape
    fixed, tile = np.empty((n_components, _LANES)), np.empty((n_components, _LANES))
    work, entropy = np.zeros(6 * _LANES), 0.0
    for first in range(0, n, _LANES):
        width = min(_LANES, n - first)
        _load(products, first, width, fixed)
        _load(activations, first, width, tile)
        for lane in range(_LANES):
            work[_INVERSE + lane] = inverse[first + lane] if lane < width else 0.0
            work[_MOVING + lane] = 1.0 if lane < width else 0.0
        entropy += _update_tile(fixed, tile, gram, log_odds, half_precision, work)
        _store(tile, first, width, activations)
    return entropy


@njit
def settle_activations(products, activations, gram, log_odds, half_precision, tol, max_iter):
    """Update the activations (K, n), in place, each row until none of its own changes by more than `tol`."""
    n_components, n = products.shape
    fixed, tile = np.empty((n_components, _LANES)), np.empty((n_components, _LANES))
    work = np.zeros(6 * _LANES)
    work[_INVERSE : _INVERSE + _LANES] = 1.0
    for first in range(0, n, _LANES):
        width = min(_LANES, n - first)
        _load(products, first, width, fixed)
        _load(activations, first, width, tile)
        for lane in range(_LANES):
            work[_MOVING + lane] = 1.0 if lane < width else 0.0
        for _ in range(max_iter):
            _update_tile(fixed, tile, gram, log_odds, half_precision, work)
            n_moving = 0
            for lane in range(width):
                if work[_CHANGE + lane] <= tol:
                    work[_MOVING + lane] = 0.0
                else:
                    n_moving += 1
            if n_moving == 0:
                break
        _store(tile, first, width, activations)
