"""Numba kernels of the linear generative model's path: the density of one row's causes, and the
programs on it.
"""

from typing import NamedTuple

import numpy as np

from sklpf.kernels import OPTIONS, implements
from sklpf.kernels import _programs as programs


class Row(NamedTuple):
    """What is known of one row. log f_1 - log f_0 is constant + the sum over causes of square a² -
    absolute |a|.
    """

    root: np.ndarray  # (M, M), symmetric
    center: np.ndarray  # (M,)
    constant: float
    log_norm: float  # of the base
    absolute: float
    square: float


@implements(
    programs.evaluate, Row, fastmath={*OPTIONS["fastmath"], "reassoc"}
)  # sums that vectorise
def _evaluate(row, position, values):
    causes = np.dot(position, row.root)
    center, absolute, square = row.center, row.absolute, row.square
    n, d = causes.shape
    for c in range(n):
        gain, length = 0.0, 0.0
        for j in range(d):
            a, y = causes[c, j] + center[j], position[c, j]
            gain += (square * a) * a - absolute * abs(a)
            length += y * y
            values.base_slope[c, j] = -y
            causes[c, j] = 2.0 * square * a - (absolute if a > 0.0 else -absolute)
        values.log_base[c] = row.log_norm - 0.5 * length
        values.gain[c] = row.constant + gain
    np.dot(causes, row.root, values.gain_slope)
