"""The density of the linear generative model's causes, compiled."""

from typing import NamedTuple

import numpy as np

from sklpf.kernels import SUMS, implements
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
