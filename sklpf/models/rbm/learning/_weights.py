"""Weights of an RBM while it trains: in the layouts of the kernel, and averaged over the
updates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.layout import LANES, aligned_zeros, padded

_FADING = 2  # power of an update's number that its share of the average is proportional to


class Parameters(NamedTuple):
    """Weights and biases."""

    components: NDArray[np.floating]  # (J, M)
    intercept_visible: NDArray[np.floating]  # (M,)
    intercept_hidden: NDArray[np.floating]  # (J,)


class Layouts(NamedTuple):
    """The weights in both layouts of the kernel, each with the biases of the other layer's units as
    its last row.
    """

    by_visible: NDArray[np.float32]  # (M + 1, J padded)
    by_hidden: NDArray[np.float32]  # (J + 1, M padded)

    @classmethod
    def of(cls, parameters: Parameters) -> Layouts:
        """Lay out the parameters."""
        n_hidden, n_visible = parameters.components.shape
        by_visible = zeros(n_visible + 1, n_hidden)
        by_visible[:-1, :n_hidden] = parameters.components.T
        by_visible[-1, :n_hidden] = parameters.intercept_hidden
        by_hidden = zeros(n_hidden + 1, n_visible)
        by_hidden[:-1, :n_visible] = parameters.components
        by_hidden[-1, :n_visible] = parameters.intercept_visible
        return cls(by_visible, by_hidden)

    @property
    def parameters(self) -> Parameters:
        """Views of the parameters."""
        n_visible = len(self.by_visible) - 1
        n_hidden = len(self.by_hidden) - 1
        return Parameters(
            self.by_hidden[:-1, :n_visible],
            self.by_hidden[-1, :n_visible],
            self.by_visible[-1, :n_hidden],
        )


class RunningAverage:
    """The average of the weights after every update (Polyak & Juditsky 1992).

    The kernel moves it by a share of the distance to the weights after each update. With
    `average=True` the k-th update counts in proportion to k ** 2 (polynomial decay, Shamir & Zhang
    2013), so that the average forgets where training began, and may end at any time. With a number
    of rows all updates after these count alike.

    Parameters
    ----------
    average : bool or int
        As of the model.
    layouts : Layouts
        Of the average as it is, if there is one yet. Without averages nothing is written to them.
    n_rows : int
        Rows that training has seen.
    n_averaged : int
        Updates in the average.
    """

    def __init__(self, average: bool | int, layouts: Layouts, n_rows: int, n_averaged: int):
        self.first_row = int(average)
        self.power = _FADING if average is True else 0
        self.n_rows = n_rows
        self.n_averaged = n_averaged if average else 0
        self.layouts = layouts

    def shares(self, batches: NDArray[np.integer]) -> NDArray[np.float32]:
        """Shares of the next updates, which see batches of as many rows; 0 where none is averaged
        yet.
        """
        n_rows = self.n_rows + np.cumsum(batches)
        averaged = (self.first_row > 0) & (n_rows >= self.first_row)
        number = self.n_averaged + np.cumsum(averaged)
        self.n_rows = int(n_rows[-1])
        self.n_averaged = int(number[-1])
        shares = (self.power + 1) / (self.power + np.maximum(number, 1))
        return np.where(averaged, shares, 0).astype(np.float32)

    @property
    def parameters(self) -> Parameters:
        """Views of the average, of which the kernel keeps the weights by visible unit only."""
        n_hidden = len(self.layouts.by_hidden) - 1
        averaged = self.layouts.parameters
        return averaged._replace(components=self.layouts.by_visible[:-1, :n_hidden].T)


def zeros(n_rows: int, n_columns: int) -> NDArray[np.float32]:
    """Zeros with rows an odd number of cache lines apart, so that a column of tiles uses all of the
    cache's sets.
    """
    return aligned_zeros(n_rows, LANES * (padded(n_columns) // LANES | 1))
