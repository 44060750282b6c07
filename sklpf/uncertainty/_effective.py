"""How many equal weights are worth as much as the weights at hand."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def effective_sample_size(log_weights: NDArray[np.float64], axis: int | None = None) -> Any:
    """Return (sum w)^2 / sum w^2 (Kong, Liu & Wong 1994).

    Parameters
    ----------
    log_weights : ndarray
        Logs of the weights.
    axis : int, optional
        Axis of the weights that belong together; all of them by default.

    Returns
    -------
    float or ndarray
        From 1 to the number of weights; 0 if all weights are 0.
    """
    largest = np.max(log_weights, axis=axis, keepdims=True)
    weights = np.exp(log_weights - np.where(largest == -np.inf, 0.0, largest))
    squares = np.sum(weights**2, axis=axis)
    # At least one square is 1, unless all weights are 0.
    size = np.sum(weights, axis=axis) ** 2 / np.where(squares == 0, 1.0, squares)
    return float(size) if axis is None else size
