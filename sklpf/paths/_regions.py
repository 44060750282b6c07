"""Regions of a target whose mass is known without its base: what a run should have found."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_ROUNDING = 1e-6  # of squared distances


class Regions(NamedTuple):
    """Balls, or ellipsoids, with the part of Z that lies in each.

    A point in several of them belongs to the one whose centre is nearest in units of its radius, so
    that regions are disjoint: masses of several add up, and so do shares of draws.

    Attributes
    ----------
    centres : ndarray of shape (R, d)
        Rows or points in the middle of each.
    radii : ndarray of shape (R,)
        A point x lies in region r if ``|factors[r] @ (x - centres[r])|`` is at most ``radii[r]``,
        and a smaller part of it than of any other radius.
    log_masses : ndarray of shape (R, G)
        Logs of G independent estimates of the integral of f over each, in nats, unbiased or too
        low on average.
    factors : ndarray of shape (R, d, d) or None, default=None
        None is the identity: of binary rows, the squared radius counts the units that differ.
    """

    centres: NDArray
    radii: NDArray[np.float64]
    log_masses: NDArray[np.float64]
    factors: NDArray[np.float64] | None = None

    def take(self, chosen: list[int]) -> Regions:
        """Return some of the regions, with the masses that they have beside the others.

        Parameters
        ----------
        chosen : list of int
            Their places.

        Returns
        -------
        Regions
        """
        factors = None if self.factors is None else self.factors[chosen]
        return Regions(self.centres[chosen], self.radii[chosen], self.log_masses[chosen], factors)

    def contain(self, points: NDArray) -> NDArray[np.bool_]:
        """Return which points lie in which regions, each in one at most.

        Parameters
        ----------
        points : array-like of shape (n, d)
            Rows, or points of R^d.

        Returns
        -------
        inside : ndarray of bool of shape (n, R)
        """
        if not len(self.radii):
            return np.zeros((len(points), 0), dtype=bool)
        points = np.asarray(points, dtype=np.float64)
        centres = np.asarray(self.centres, dtype=np.float64)
        if self.factors is None:
            squares = np.sum(points**2, axis=1)[:, np.newaxis] - 2 * points @ centres.T
            squares += np.sum(centres**2, axis=1)
        else:
            squares = np.empty((len(points), len(centres)))
            for r, factor in enumerate(self.factors):
                squares[:, r] = np.sum(((points - centres[r]) @ factor.T) ** 2, axis=1)
        squares /= self.radii**2 + _ROUNDING
        nearest = squares.argmin(axis=1)
        is_nearest = nearest[:, np.newaxis] == np.arange(len(centres))
        return is_nearest & (squares <= 1)
