"""Numba kernels for the posterior activations of the factorial mixture."""

import math

import numpy as np

from sklpf._numba import njit


@njit
def _update_row(fields, activations, gram, log_odds, half_precision, inverse, row):
    """Update the activations of one row in turn; returns their entropy and the largest change.

    fields (n, K) holds x @ means.T - activations @ gram, and is kept so. half_precision = 1 / (2 noise variance).
    """
    entropy, change = 0.0, 0.0
    for k in range(gram.shape[0]):
        old = activations[row, k]
        own = gram[k, k]
        logit = inverse * (log_odds[k] + half_precision * (2.0 * (fields[row, k] + old * own) - own))
        small = math.exp(-abs(logit))
        share = 1.0 / (1.0 + small)
        new = share if logit >= 0 else small * share
        entropy += math.log1p(small) + abs(logit) * small * share
        step = new - old
        if step != 0.0:
            activations[row, k] = new
            change = max(change, abs(step))
            for j in range(gram.shape[0]):
                fields[row, j] -= step * gram[k, j]
    return entropy, change


@njit
def update_activations(fields, activations, gram, log_odds, half_precision, inverse):
    """Update all activations (n, K) once, in place, at inverse temperatures (n,); returns their entropy in nats."""
    entropy = 0.0
    for row in range(fields.shape[0]):
        of_row, _ = _update_row(fields, activations, gram, log_odds, half_precision, inverse[row], row)
        entropy += of_row
    return entropy


@njit
def settle_activations(fields, activations, gram, log_odds, half_precision, tol, max_iter):
    """Update the activations of every row, in place, until none of that row changes by more than `tol`."""
    for row in range(fields.shape[0]):
        for _ in range(max_iter):
            _, change = _update_row(fields, activations, gram, log_odds, half_precision, 1.0, row)
            if change <= tol:
                break


@njit
def expected_squares(products, activations, gram, squares):
    """E|x - sum_k z_k mu_k|^2 of every row, from products = x @ means.T (n, K); squares (n,) is |x|^2, overwritten."""
    n_components = gram.shape[0]
    for row in range(products.shape[0]):
        total = squares[row]
        for k in range(n_components):
            active = activations[row, k]
            product = 0.0
            for j in range(n_components):
                product += gram[k, j] * activations[row, j]
            total += active * (product + (1.0 - active) * gram[k, k] - 2.0 * products[row, k])
        squares[row] = total
    return np.sum(squares)
