"""Weights of an RBM while it trains, in the layouts of the kernel."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.layout import LANES, aligned_zeros, padded


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


def zeros(n_rows: int, n_columns: int) -> NDArray[np.float32]:
    """Zeros with rows an odd number of cache lines apart, so that a column of tiles uses all of the
    cache's sets.
    """
    return aligned_zeros(n_rows, LANES * (padded(n_columns) // LANES | 1))
