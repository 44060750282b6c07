"""Checks of numbers that callers give: errors name the parameter."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Array32 = NDArray[np.float32]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]
Bits = NDArray[np.uint8]  # 0 and 1
Matrix = NDArray | sp.csr_matrix  # rows of a model, dense or sparse

LOG_TAU = np.log(2 * np.pi)

# by NumPy's kinds of arrays
_NOT_REAL = {"c": "complex numbers", "M": "dates", "m": "durations", "U": "text", "S": "text"}

# Of parameters, so that products of three are finite. A float64 also beside arrays of float32.
LARGEST = np.float64(1e100)


def as_float64(values: ArrayLike, name: str, copy: bool = False) -> Array:
    """Return an array of float64; `name` says in an error what was given.

    Raises
    ------
    TypeError
        If `values` holds anything but real numbers, or its rows differ in length.
    """
    try:
        return np.array(real_numbers(values), dtype=np.float64, copy=True if copy else None)
    except (TypeError, ValueError) as error:
        given = str(error) if isinstance(error, NotNumbers) else type(values).__name__
        raise TypeError(
            f"{name} must be real numbers in a rectangular array, got {given}"
        ) from None


class NotNumbers(TypeError):
    """An array of other things than real numbers, in words that go on after "got"."""


def real_numbers(values: object) -> NDArray:
    """Return an array as NumPy makes it, of tensors without their gradients.

    Raises
    ------
    NotNumbers
        If it holds masked entries, whose values NumPy would take, or complex numbers, dates or
        text, which it may make numbers of.
    """
    if np.ma.is_masked(values):
        raise NotNumbers("masked entries: fill them, or leave them out")
    array = np.asarray(without_gradients(values))
    if array.dtype.kind in _NOT_REAL:
        raise NotNumbers(f"{_NOT_REAL[array.dtype.kind]} ({array.dtype})")
    return array


def without_gradients(values: object) -> Any:
    """Return a tensor of PyTorch as NumPy can read it, and all else as it is."""
    return values.detach().cpu() if hasattr(values, "detach") else values


def check_finite(values: ArrayLike | sp.spmatrix | sp.sparray, name: str) -> None:
    """Raise ValueError unless parameters, and so their squares and products, are finite."""
    if isinstance(values, sp.spmatrix | sp.sparray):
        values = values.data
    if not np.all(np.isfinite(values)):
        raise ValueError(
            f"{name} must be finite; {name} holds NaN or infinity, so there is no likelihood: fit"
            " the model anew"
        )
    if not np.all(np.abs(values) <= LARGEST):
        raise ValueError(f"{name} must be at most {LARGEST:g} in absolute value: rescale X")


def check_squares(X: NDArray, name: str = "X") -> None:
    """Raise ValueError unless rows are finite, and the sum of their squares."""
    with np.errstate(over="ignore", invalid="ignore"):
        square = np.sum(X**2)
    if not np.isfinite(square):
        raise ValueError(
            f"{name} must be finite; it holds NaN or infinity, or values too large to be squared:"
            f" drop those rows, or rescale {name}"
        )


def check_positive(values: ArrayLike, name: str) -> None:
    """Raise ValueError unless parameters that are divided by are positive, and so their squares and
    reciprocals are finite.
    """
    values = np.asarray(values)
    wrong = values[~((values >= 1 / LARGEST) & (values <= LARGEST))]
    if len(wrong):
        raise ValueError(
            f"{name} must be positive and finite, between {1 / LARGEST:g} and {LARGEST:g}, got"
            f" {wrong[0]:g}"
        )


def check_number(value: ArrayLike, name: str, check: Callable = check_finite) -> float:
    """Return a finite number, or one that passes another check, or raise ValueError."""
    number = as_float64(value, name)
    if number.shape != ():
        raise ValueError(f"{name} must be a number, got an array of shape {number.shape}")
    check(number, name)
    return float(number)


def check_scale(value: Any, name: str) -> float:
    """Return a number that can be divided by or raise ValueError."""
    return check_number(value, name, check_positive)


def check_count(n: object, name: str, at_least: int = 1) -> int:
    """Return a number of things, or raise ValueError."""
    if isinstance(n, bool) or not isinstance(n, Integral) or n < at_least:
        raise ValueError(f"{name} must be an integer of at least {at_least}, got {n!r:.80}")
    return int(n)


def check_bool(value: object, name: str) -> None:
    """Raise TypeError unless a value is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r:.80}")


def check_option(option: object, options: tuple[str, ...], name: str) -> None:
    """Raise ValueError unless an option is one of some words."""
    if not isinstance(option, str) or option not in options:
        words = " or ".join(f'"{word}"' for word in options)
        raise ValueError(f"{name} must be {words}, got {option!r:.80}")


def check_level(level: object) -> None:
    """Raise ValueError unless intervals can cover with this probability."""
    if not isinstance(level, Real) or not 0 < float(level) < 1:
        raise ValueError(
            f"level must lie strictly between 0 and 1, got {level!r}: a 95 % interval has"
            " level=0.95"
        )
