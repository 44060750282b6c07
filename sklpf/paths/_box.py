"""Box: the region that a density is integrated over."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.numbers import Array, Booleans


class Box(NamedTuple):
    """Region of R^d between sides that may be infinite.

    Parameters
    ----------
    low, high : ndarray of shape (d,)
        Sides; infinite where there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf.paths import Box
    >>> box = Box(np.array([0.0, -np.inf]), np.array([1.0, np.inf]))
    >>> box.contains(np.array([[0.5, 9.0], [1.5, 0.0]]))
    array([ True, False])
    """

    low: Array
    high: Array

    @classmethod
    def everywhere(cls, d: int) -> Box:
        """Return R^d.

        Parameters
        ----------
        d : int
            Number of dimensions.

        Returns
        -------
        Box
        """
        return cls(np.full(d, -np.inf), np.full(d, np.inf))

    @property
    def has_sides(self) -> bool:
        """True if any side is finite."""
        return bool(np.isfinite(self).any())

    @property
    def is_open(self) -> Booleans:
        """Mask of the sides that are infinite, low and high ones, (2, d)."""
        return np.isinf(self)

    def contains(self, points: Array) -> NDArray[np.bool_]:
        """Return which points lie in it, sides included.

        Parameters
        ----------
        points : ndarray of shape (n, d)
            In the coordinates of the sides.

        Returns
        -------
        ndarray of shape (n,), bool
        """
        return ~np.any((points < self.low) | (points > self.high), axis=1)

    def clip(self, points: Array) -> Array:
        """Return the nearest points in it.

        Parameters
        ----------
        points : ndarray of shape (n, d)
            In the coordinates of the sides.

        Returns
        -------
        ndarray of shape (n, d)
        """
        return np.clip(points, self.low, self.high)

    def scaled(self, factor: float | Array) -> Box:
        """Return the box in coordinates that are multiplied by a factor.

        Parameters
        ----------
        factor : float or ndarray of shape (d,)
            Positive.

        Returns
        -------
        Box
        """
        return Box(self.low * factor, self.high * factor)
