"""Bases on R^d: normalised densities that can be sampled, from which a path to a user's density may
start.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from sklpf.paths._base_numbers import (
    Array,
    box_of,
    checked_points,
    frozen,
    is_inside,
)


class Density(Protocol):
    """What a base offers. Any object with these members is one.

    Two more members are used where they exist and aren't None: ``grad_log_density(x)``, the
    gradient of `log_density` at points (n, d), shape (n, d); and ``axes``, an array (d, d) whose
    orthonormal columns are principal directions.

    Attributes
    ----------
    n_dimensions : int
        Number d of coordinates.
    normalised : bool
        Whether the integral of exp(log_density) is 1.
    center, scale : ndarray of shape (d,)
        A typical point, and standard deviations or half widths around it: for rays and first step
        sizes.

    Examples
    --------
    >>> base: Density = Uniform([0, 0], [1, 2])
    >>> base.n_dimensions, base.normalised, base.center
    (2, True, array([0.5, 1. ]))
    """

    @property
    def n_dimensions(self) -> int:
        """Number d of coordinates."""
        ...

    @property
    def normalised(self) -> bool:
        """Whether the integral of exp(log_density) is 1."""
        ...

    @property
    def center(self) -> Array:
        """A typical point, shape (d,)."""
        ...

    @property
    def scale(self) -> Array:
        """Standard deviations or half widths around it, shape (d,)."""
        ...

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Return n independent draws, shape (n, d)."""
        ...

    def log_density(self, x: Array) -> Array:
        """Return the log density at points (n, d), shape (n,), in nats."""
        ...


class GaussianParameters(NamedTuple):
    """A Gaussian for compiled programs: mean (d,), lower triangular root R (d, d) with precision
    R'R, and its diagonal (d,), which is all of it where is_diagonal is 1; log_norm is the log
    density at the mean, in nats.
    """

    mean: Array
    root: Array
    diagonal: Array
    is_diagonal: int
    log_norm: float


class StudentTParameters(NamedTuple):
    """A t distribution for compiled programs, as `GaussianParameters` with R'R the inverse of the
    scale matrix.
    """

    mean: Array
    root: Array
    diagonal: Array
    is_diagonal: int
    df: float
    log_norm: float


class UniformParameters(NamedTuple):
    """A box for compiled programs: low (d,), high (d,) and the log density inside, in nats."""

    low: Array
    high: Array
    log_norm: float


class TruncatedParameters(NamedTuple):
    """A Gaussian in a box for compiled programs: mean (d,), diagonal (d,) with 1 / standard
    deviations, low (d,) and high (d,). Inside, the log density in nats is log_norm less half the
    square of |(x - mean) * diagonal|.
    """

    mean: Array
    diagonal: Array
    low: Array
    high: Array
    log_norm: float


class Base:
    """What all bases here share. Their arrays are read-only, in copies and unpickled ones too."""

    normalised = True
    n_dimensions: int

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_dimensions={self.n_dimensions})"

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, frozen(value) if isinstance(value, np.ndarray) else value)


class Uniform(Base):
    """The uniform distribution on a finite box, its faces included.

    Parameters
    ----------
    low, high : array-like of shape (d,), or float for d = 1
        Corners of the box.

    Raises
    ------
    ValueError
        If shapes disagree, the box isn't finite, or low isn't below high everywhere.

    Examples
    --------
    >>> Uniform([0, 0], [1, 2]).log_density(np.array([[0.5, 0.5], [2.0, 0.5]])).round(4)
    array([-0.6931,    -inf])
    """

    def __init__(self, low: ArrayLike, high: ArrayLike) -> None:
        self.low, self.high = box_of(low, high)
        with np.errstate(over="ignore"):
            width = self.high - self.low
        if not np.all(np.isfinite(width)):
            raise ValueError(
                "low and high of Uniform must be finite; take Gaussian or StudentT on an open range"
            )
        self.n_dimensions = len(width)
        self.center = frozen(self.low + 0.5 * width)
        self.scale = frozen(0.5 * width)
        self._log_norm = float(-np.sum(np.log(width)))

    @property
    def packed(self) -> UniformParameters:
        """The parameters as compiled programs take them."""
        return UniformParameters(self.low, self.high, self._log_norm)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Return n independent draws, shape (n, d)."""
        return rng.uniform(self.low, self.high, size=(n, self.n_dimensions))

    def log_density(self, x: Array) -> Array:
        """Return the log density at points (n, d), shape (n,), in nats; -inf outside the box."""
        return np.where(
            is_inside(checked_points(x, self.n_dimensions), self.low, self.high),
            self._log_norm,
            -np.inf,
        )

    def grad_log_density(self, x: Array) -> Array:
        """Return the gradient of `log_density` within the box.

        Parameters
        ----------
        x : ndarray of shape (n, d)
            Points.

        Returns
        -------
        ndarray of shape (n, d)
            Zeros.
        """
        return np.zeros_like(checked_points(x, self.n_dimensions))
