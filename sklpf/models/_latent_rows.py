"""LatentRowsPath: what the paths of generative models share whose rows each have latent variables
on R^d.
"""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from sklpf._utils.numbers import Array, as_float64, check_finite, check_squares
from sklpf._utils.random import Stream
from sklpf.paths._base import CompiledPrograms, Points, PointsPath, check_ladder, values_at


class LatentRowsPath(CompiledPrograms, PointsPath):
    """One target for each row of X, the latent variables of that row: log Z is log p(x).

    Chains live in coordinates of their own, in which the base is easy to draw from. A subclass
    names its kernels' module in `_kernels`, sets `n_dimensions` and `n_features`, and defines
    `_at_row` (computes what all chains of a row share), `simulate` (draws rows from the model),
    `_pack` (a row's compiled density, with `evaluate`) and `sample_base`.
    """

    base_log_partition = 0.0
    bounds: Array | None = None
    n_chains_per_block = 64
    n_dimensions: int
    n_features: int

    def __init__(self, X: ArrayLike, ladder: ArrayLike):
        X = as_float64(X, "X", copy=True)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ValueError(
                f"X must have the shape (n_rows, {self.n_features}) to match components, got"
                f" {X.shape}"
            )
        check_squares(X)
        self.X = np.ascontiguousarray(X)
        self.ladder = check_ladder(ladder)
        self.n_rows: int | None = len(self.X)

    # -- rows
    def row(self, t: int) -> Self:
        """Return the path of row t alone."""
        return self._alone(self.X[t])

    def row_content(self, t: int) -> bytes:
        """Return row t."""
        return self.X[t].tobytes()

    def simulated_row(self, stream: Stream) -> Self:
        """Return the path of one row drawn from the model."""
        return self._alone(self.simulate(1, stream.generator())[0])

    def _alone(self, x):
        row = copy.copy(self)
        row.X = np.array(x)
        row.n_rows = None
        row._at_row()
        return row

    def _at_row(self) -> None:
        """Compute what all chains of a row share, of a path whose X is that row."""

    def simulate(self, n: int, rng: np.random.Generator) -> Array:
        """Return n rows drawn from the model, shape (n, n_features)."""
        raise NotImplementedError

    # -- states
    def at(self, position: Array) -> Points:
        """Return the state of chains at some points (n, n_dimensions)."""
        values = values_at(self.packed, position)
        return Points(position, values.log_base, values.gain)

    def gradients(self, state: Points) -> tuple[Array, Array]:
        """Return the gradients of log f_0 and of log f_1 - log f_0, both (n, n_dimensions)."""
        values = values_at(self.packed, state.position)
        return values.base_slope, values.gain_slope


class LatentDensity:
    """The density of latent variables of every row, as `sklpf.training.EM` asks for it."""

    _density: Any  # compiled

    def log_density(self, position: Array) -> Array:
        """Return log p(row, latent) of every chain up to a constant, shape (n,)."""
        values = values_at(self._density, position)
        return values.log_base + values.gain

    def grad(self, position: Array) -> Array:
        """Return its gradient, shape (n, d)."""
        values = values_at(self._density, position)
        return values.base_slope + values.gain_slope


def check_components(components: ArrayLike, name: str = "components") -> Array:
    """Return a copy of a matrix with finite entries or raise ValueError."""
    components = as_float64(components, name, copy=True)
    if components.ndim != 2 or 0 in components.shape:
        raise ValueError(
            f"{name} must be a matrix with at least one row and column, got shape"
            f" {components.shape}"
        )
    check_finite(components, name)
    return components
