"""Delete-one-group jackknife."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray


def jackknife(estimate: Callable[[NDArray], ArrayLike], n_groups: int) -> tuple[NDArray, NDArray]:
    """Delete-one-group jackknife (Quenouille 1956, Tukey 1958).

    Parameters
    ----------
    estimate : callable
        Takes an index array of the groups to use; returns a float or an array.
    n_groups : int
        At least 2 independent groups.

    Returns
    -------
    value : ndarray
        The estimate from all groups.
    std_error : ndarray
        sqrt((G - 1) / G * sum_g (estimate without g - their mean) ** 2), of the same shape.
    """
    if n_groups < 2:
        raise ValueError(f"a jackknife needs at least 2 groups, got {n_groups}")
    everything = np.arange(n_groups)
    # An estimate that is infinite without some group has no error. Ratios of levels that do not
    # overlap are infinite, and their differences NaN: alarms say so.
    with np.errstate(invalid="ignore", over="ignore"):
        value = np.asarray(estimate(everything), dtype=float)
        without = np.array(
            [estimate(np.delete(everything, g)) for g in range(n_groups)], dtype=float
        )
        spread = np.sum((without - without.mean(axis=0)) ** 2, axis=0)
    return value, np.sqrt((n_groups - 1) / n_groups * spread)
