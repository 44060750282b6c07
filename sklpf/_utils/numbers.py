"""Checks of numbers that callers give: errors name the parameter."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

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


def check_count(n: Any, name: str) -> int:
    """Return a number of things, at least 1, or raise ValueError."""
    if not isinstance(n, Integral) or isinstance(n, bool) or n < 1:
        raise ValueError(f"{name} must be an integer of at least 1, got {n!r}")
    return int(n)


def check_level(level: Any) -> None:
    """Raise ValueError unless intervals can cover with this probability."""
    if not isinstance(level, Real) or not 0 < float(level) < 1:
        raise ValueError(
            f"level must lie strictly between 0 and 1, got {level!r}: a 95 % interval has"
            " level=0.95"
        )
