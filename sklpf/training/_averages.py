"""Averages of parameters over the updates of training."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_FADING = 2  # power of an update's number that its share of the average is proportional to


class RunningAverage:
    """By how much each update moves the average of the parameters (Polyak & Juditsky 1992).

    A trainer moves the average by a share of its distance to the parameters after each update. With
    `average=True` the k-th update counts in proportion to k ** 2 (polynomial decay, Shamir & Zhang
    2013), so that the average forgets where training began, and may end at any time. With a number
    of rows all updates after these count alike.

    Parameters
    ----------
    average : bool or int
        As of the model.
    n_rows : int, default=0
        Rows that training has seen.
    n_averaged : int, default=0
        Updates in the average.

    """

    def __init__(self, average: bool | int, n_rows: int = 0, n_averaged: int = 0):
        self.first_row = int(average)
        self.power = _FADING if average is True else 0
        self.n_rows = n_rows
        self.n_averaged = n_averaged if average else 0

    def shares(self, batches: NDArray[np.integer]) -> NDArray[np.float32]:
        """Shares of the next updates, which see batches of as many rows; 0 where none is averaged
        yet.

        Parameters
        ----------
        batches : ndarray of shape (n,)
            Rows of each batch.

        Returns
        -------
        ndarray of shape (n,)
            In float32.
        """
        n_rows = self.n_rows + np.cumsum(batches)
        averaged = (self.first_row > 0) & (n_rows >= self.first_row)
        number = self.n_averaged + np.cumsum(averaged)
        self.n_rows = int(n_rows[-1])
        self.n_averaged = int(number[-1])
        shares = (self.power + 1) / (self.power + np.maximum(number, 1))
        return np.where(averaged, shares, 0).astype(np.float32)
