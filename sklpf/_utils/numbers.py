"""Numbers that callers give: what is none is refused under the parameter's name."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def as_float64(values: ArrayLike, name: str, copy: bool = False) -> NDArray[np.float64]:
    """Return an array of float64; `name` says in an error what was given.

    Raises
    ------
    TypeError
        If `values` holds anything but real numbers, or its rows differ in length.
    """
    try:
        if np.iscomplexobj(values):
            raise TypeError
        return np.array(values, dtype=np.float64, copy=True if copy else None)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must be real numbers in a rectangular array, got {type(values).__name__}"
        ) from None
