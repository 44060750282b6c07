"""The density of the linear generative model's causes, and its maximum, compiled."""

from typing import NamedTuple

import numpy as np

from sklpf.kernels import SUMS, implements, njit
from sklpf.kernels._densities import evaluate


class Row(NamedTuple):
    """A row that all chains share, or one for each chain. log f_1 - log f_0 is constant + the sum
    over causes of square a² - absolute |a|.
    """

    root: np.ndarray  # (M, M), symmetric
    center: np.ndarray  # (1, M) or (n, M)
    constant: float
    log_norm: float  # of the base
    absolute: float
    square: float


@implements(evaluate, Row, **SUMS)
def _evaluate(row, position, values):
    absolute = row.absolute
    square = row.square
    causes = np.dot(position, row.root)
    n, d = causes.shape
    for c in range(n):
        center = row.center[c if row.center.shape[0] > 1 else 0]
        gain = 0.0
        length = 0.0
        for j in range(d):
            a = causes[c, j] + center[j]
            y = position[c, j]
            gain += (square * a) * a - absolute * abs(a)
            length += y * y
            values.base_slope[c, j] = -y
            causes[c, j] = 2.0 * square * a - (absolute if a > 0.0 else -absolute)
        values.log_base[c] = row.log_norm - 0.5 * length
        values.gain[c] = row.constant + gain
    np.dot(causes, row.root, values.gain_slope)


@njit
def descend_coordinates(causes, products, gram, threshold, tol, n_sweeps):
    """Move the causes (n, M) of every row, 0 at first, to where aᵀ gram a / 2 - productsᵀ a +
    threshold |a| is smallest, until a sweep moves none by more than `tol` times the largest.
    """
    n, n_causes = causes.shape
    for t in range(n):
        slopes = products[t].copy()
        for _ in range(n_sweeps):
            largest = 0.0
            largest_step = 0.0
            for k in range(n_causes):
                norm = gram[k, k]
                if norm == 0.0:
                    continue
                slope = slopes[k] + norm * causes[t, k]
                moved = 0.0
                if slope > threshold:
                    moved = (slope - threshold) / norm
                elif slope < -threshold:
                    moved = (slope + threshold) / norm
                step = moved - causes[t, k]
                if step != 0.0:
                    causes[t, k] = moved
                    for j in range(n_causes):
                        slopes[j] -= step * gram[k, j]
                largest = max(largest, abs(moved))
                largest_step = max(largest_step, abs(step))
            if largest_step <= tol * largest:
                break
