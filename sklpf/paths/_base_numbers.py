"""What base densities do with their parameters: checks that name them, factors, masses of
intervals.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, stats
from scipy.special import erf, log_ndtr

from sklpf._utils.numbers import Array, as_float64

# interquartile range of the standard normal
_NORMAL_RANGE = float(np.diff(stats.norm.ppf([0.25, 0.75]))[0])


def frozen(value: ArrayLike) -> Array:
    array = np.array(value, order="C")
    array.setflags(write=False)
    return array


def numbers_of(name: str, value: ArrayLike, infinite: bool = False) -> Array:
    """The numbers of a parameter as a read-only copy."""
    try:
        array = frozen(as_float64(value, name))
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be a number or a rectangular array of numbers, got {value!r}"
        ) from None
    if np.any(np.isnan(array)) or (not infinite and np.any(np.isinf(array))):
        raise ValueError(
            f"{name} must be free of NaN{'' if infinite else ' and infinite numbers'}; replace them"
        )
    return array


def checked_points(x: ArrayLike, d: int) -> Array:
    """Points (n, d) that a base was given."""
    points = np.asarray(x, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != d:
        raise ValueError(f"x must have shape (n, {d}), a row for each point, got {points.shape}")
    return points


def positive_number(name: str, value: float) -> float:
    number = numbers_of(name, value, infinite=True)
    if number.ndim or not 0 < number < np.inf:
        raise ValueError(f"{name} must be a positive finite number, got {value!r}")
    return float(number)


def vector_of(name: str, value: ArrayLike, d: int | None = None, infinite: bool = False) -> Array:
    """A vector (d,); a number stands for one of length 1, or d times for itself where d
    is known.
    """
    array = numbers_of(name, value, infinite)
    if array.ndim == 0:
        array = frozen(np.full(d or 1, array))
    if array.ndim != 1 or len(array) != (d or max(len(array), 1)):
        raise ValueError(
            f"{name} must have shape ({d or 'd'},), one number per dimension, got {array.shape}"
        )
    return array


def box_of(low: ArrayLike, high: ArrayLike, d: int | None = None) -> tuple[Array, Array]:
    """Corners of a box; where d isn't known, the longer of both says what it is."""
    lows = numbers_of("low", low, infinite=True)
    highs = numbers_of("high", high, infinite=True)
    d = d or max(lows.size, highs.size)
    lows = vector_of("low", lows, d, infinite=True)
    highs = vector_of("high", highs, d, infinite=True)
    if not np.all(lows < highs):
        i = int(np.argmin(lows < highs))
        raise ValueError(
            f"low must be below high, but is {lows[i]:g} >= {highs[i]:g} in column {i}; swap them?"
        )
    return lows, highs


def is_inside(points: Array, low: Array, high: Array) -> NDArray[np.bool_]:
    return np.all((points >= low) & (points <= high), axis=1)


def matrix_of(name: str, value: ArrayLike, d: int) -> Array:
    """A symmetric matrix (d, d), or (d,) where it is diagonal; its diagonal is positive."""
    matrix = numbers_of(name, value)
    if matrix.ndim == 0:
        matrix = np.full(d, matrix)
    if matrix.shape not in ((d,), (d, d)):
        raise ValueError(
            f"{name} must be a number or have shape ({d},) or ({d}, {d}), as mean has length {d},"
            f" got {matrix.shape}"
        )
    variances = matrix if matrix.ndim == 1 else np.diag(matrix)
    if not np.all(variances > 0):
        raise ValueError(
            f"{name} must be positive{' on its diagonal' if matrix.ndim == 2 else ''}: give"
            " variances above 0, and leave out coordinates that have none"
        )
    if matrix.ndim == 2:
        spread = np.sqrt(variances)
        if np.any(np.abs(matrix - matrix.T) > 1e-8 * spread * spread[:, np.newaxis]):
            raise ValueError(
                f"{name} must be symmetric; average it with its transpose if the difference means"
                " nothing"
            )
        matrix = 0.5 * (matrix + matrix.T)
    return frozen(
        variances if matrix.ndim == 1 or not np.any(matrix - np.diag(variances)) else matrix
    )


def factors_of(name: str, matrix: Array, spread: Array) -> tuple[Array, Array]:
    """Lower triangular L with matrix = L L', and its inverse; both (d,) where the matrix is."""
    if matrix.ndim == 1:
        return spread, frozen(1 / spread)
    try:  # of the correlations, so that units don't matter
        factor = linalg.cholesky(matrix / np.outer(spread, spread), lower=True)
    except linalg.LinAlgError:
        factor = np.zeros_like(matrix)
    if np.min(np.diag(factor)) ** 2 < 10 * len(matrix) * np.finfo(np.float64).eps:
        raise ValueError(
            f"{name} must be positive definite; drop dimensions that depend on others, or add a"
            " little to its diagonal"
        )
    root = linalg.solve_triangular(factor, np.eye(len(matrix)), lower=True)
    return frozen(spread[:, np.newaxis] * factor), frozen(root / spread)


def full_matrix(matrix: Array) -> Array:
    return matrix if matrix.ndim == 2 else frozen(np.diag(matrix))


def times_matrix(x: Array, matrix: Array) -> Array:
    """The matrix, or the diagonal matrix, times every row of x."""
    return x * matrix if matrix.ndim == 1 else x @ matrix.T


def typical(quartiles: Array) -> tuple[Array, Array]:
    """Medians and, from interquartile ranges, standard deviations of normal distributions:
    quartiles are (3, d).
    """
    return frozen(quartiles[1]), frozen((quartiles[2] - quartiles[0]) / _NORMAL_RANGE)


def log_mass(low: Array, high: Array) -> Array:
    """Log probability of (low, high) under the standard normal, exact to rounding in far tails and
    narrow ranges.
    """
    # reflected to the left, where logs are accurate
    a = np.where(low > 0, -high, low)
    b = np.where(low > 0, -low, high)
    nodes, weights = np.polynomial.legendre.leggauss(20)
    with np.errstate(all="ignore"):  # of the three, each fails where it isn't used
        both_sides = np.log((erf(b / np.sqrt(2)) - erf(a / np.sqrt(2))) / 2)
        far = log_ndtr(b) + np.log1p(-np.exp(log_ndtr(a) - log_ndtr(b)))
        half = (b - a) / 2
        middle = a + (b - a) / 2
        t = half * nodes[:, np.newaxis]
        narrow = stats.norm.logpdf(middle) + np.log(
            half * (weights @ np.exp(-t * (middle + t / 2)))
        )
        return np.where(b > 0, both_sides, np.where(-a * (b - a) < 1, narrow, far))
