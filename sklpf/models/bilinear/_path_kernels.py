"""The density of the bilinear generative model's content and style, compiled."""

from typing import NamedTuple

import numpy as np

from sklpf.kernels import SUMS, implements
from sklpf.kernels._densities import evaluate


class Row(NamedTuple):
    """A row that all chains share, or one for each chain, and the model; read-only."""

    x: np.ndarray  # (1, D) or (n, D)
    components: np.ndarray  # (K, D)
    content_weights: np.ndarray  # (K, C)
    style_weights: np.ndarray  # (K, S)
    precision: float
    log_norm: float  # of the likelihood
    log_base_norm: float


@implements(evaluate, Row, **SUMS)
def _evaluate(row, position, values):
    precision = row.precision
    n_content = row.content_weights.shape[1]
    content = np.dot(np.ascontiguousarray(position[:, :n_content]), row.content_weights.T)
    style = np.dot(np.ascontiguousarray(position[:, n_content:]), row.style_weights.T)
    residual = np.dot(content * style, row.components)
    n, d = position.shape
    for c in range(n):
        x = row.x[c if row.x.shape[0] > 1 else 0]
        square = 0.0
        length = 0.0
        for j in range(residual.shape[1]):
            r = x[j] - residual[c, j]
            square += r * r
            residual[c, j] = r * precision
        for j in range(d):
            z = position[c, j]
            length += abs(z)
            values.base_slope[c, j] = -1.0 if z > 0.0 or j >= n_content else 1.0
        values.log_base[c] = row.log_base_norm - length
        values.gain[c] = row.log_norm - 0.5 * precision * square
    slope = np.dot(residual, row.components.T)
    for c in range(n):
        for k in range(slope.shape[1]):
            u = content[c, k]
            s = slope[c, k]
            content[c, k] = s * style[c, k]
            style[c, k] = s * u
    of_content = np.dot(content, row.content_weights)
    of_style = np.dot(style, row.style_weights)
    for c in range(n):
        for j in range(n_content):
            values.gain_slope[c, j] = of_content[c, j]
        for j in range(n_content, d):
            values.gain_slope[c, j] = of_style[c, j - n_content]
