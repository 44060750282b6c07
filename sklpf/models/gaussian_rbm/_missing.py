"""Missing values of a Gaussian RBM: its layers given which columns are known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from sklpf._utils.numbers import Array, Booleans, Integers
from sklpf._utils.validation import rows_by_pattern
from sklpf.models._missing import KnownRows, Layers, NormalUnits, Part
from sklpf.models.gaussian_rbm._path import GaussianRBMPath, columns_of


class Axes(NamedTuple):
    """Independent units y of one pattern: v - b = L y, with L triangular if known columns come
    first, so that these determine the first units.
    """

    order: Integers  # (M,) known columns, then the missing ones
    n_known: int
    triangle: Array  # L (M, M), rows and columns in this order
    weights: Array  # (J, M) of the units
    mean: Array  # (M,) of the base
    variance: Array  # (M,)
    intercept: Array  # b (M,)

    def known_units(self, rows: Array) -> Array:
        """Return the units of the known columns of rows (n, M), (n, n_known)."""
        known = self.order[: self.n_known]
        away = (rows[:, known] - self.intercept[known]).T
        triangle = self.triangle[: self.n_known, : self.n_known]
        return solve_triangular(triangle, away, lower=True).T

    def values(self, part: Part, units: Array, row: Array) -> Array:
        """Return the values of a part's columns (m,), by its units (m,) and the row's known
        values.
        """
        columns = part.columns
        y = np.zeros(len(self.order))
        y[: self.n_known] = self.known_units(row[np.newaxis])[0]
        places = np.argsort(self.order)[columns]
        y[places] = units
        return self.intercept[columns] + self.triangle[places] @ y


class GaussianLayers:
    """Layers of a Gaussian RBM for each set of columns that is known.

    Given the hidden units v is normal with the covariance G Gᵀ. With the known columns first, G = L
    Q by a triangular L and an orthogonal Q, so that the units y = Q u are independent, and known
    columns are made of the first of them alone. The others, the missing units, are then an RBM
    with the hidden ones; without a basis they are the missing columns in units of s.

    Parameters
    ----------
    path : GaussianRBMPath
        Of the model.
    """

    def __init__(self, path: GaussianRBMPath):
        self.path = path
        self._layers: dict[bytes, Layers] = {}

    def known(self, X: Array) -> KnownRows:
        """Return rows (n, M) as far as they are known."""
        missing = np.isnan(X)
        fields = np.tile(self.path.intercept_hidden, (len(X), 1))
        log_f = np.zeros(len(X))
        for rows, pattern in rows_by_pattern(missing):
            axes = self._of(pattern).axes
            y = axes.known_units(X[rows])
            fields[rows] += y @ axes.weights[:, : axes.n_known].T
            log_f[rows] = -0.5 * np.sum(y**2, axis=1)
        return KnownRows(self, fields, log_f, missing)

    def parts(self, missing: Booleans) -> list[Part]:
        """Return the RBMs of the missing columns, those that depend on each other in one."""
        layers = self._of(missing)
        if self.path.basis is None:
            return layers.parts(missing)
        return [Part.of(layers, np.flatnonzero(missing), np.arange(len(layers.weights)))]

    def _of(self, missing: Booleans) -> Layers:
        """Layers whose units are the axes of a pattern, in the order of the columns."""
        content = missing.tobytes()
        if content not in self._layers:
            axes = self._axes(missing)
            place = np.argsort(axes.order)
            n_columns = len(place)
            self._layers[content] = Layers(
                axes.weights[:, place],
                np.zeros(n_columns),
                NormalUnits(np.diag(axes.triangle)[place]),
                np.arange(n_columns + 1),
                self._path_of_part,
                axes,
            )
        return self._layers[content]

    def _axes(self, missing: Booleans) -> Axes:
        path = self.path
        order = np.r_[np.flatnonzero(~missing), np.flatnonzero(missing)]
        weights = path._filters
        mean, precision = path._standard_base
        variance = 1 / precision
        if path.basis is None:
            triangle = np.diag(path._scale[order])
            weights = weights[:, order]
            mean = mean[order]
            variance = variance[order]
        else:
            roots = columns_of(np.diag(path._scale), path.basis).T[order]
            q, r = np.linalg.qr(roots.T)
            signs = np.where(np.diag(r) < 0, -1.0, 1.0)
            turn = q * signs
            triangle = r.T * signs
            weights = weights @ turn
            mean = mean @ turn
            variance = variance @ turn**2
        n_known = int(np.sum(~missing))
        return Axes(order, n_known, triangle, weights, mean, variance, path.intercept_visible)

    def _path_of_part(self, part: Part, fields: Array) -> GaussianRBMPath:
        """The path to the RBM of one row's missing units, in units of the triangle's diagonal."""
        axes = part.layers.axes
        scales = part.units.scales
        places = np.argsort(axes.order)[part.columns]
        return GaussianRBMPath(
            part.weights * scales,
            np.zeros(len(scales)),
            fields,
            scales**2,
            axes.mean[places] * scales,
            np.maximum(axes.variance[places], 1.0) * scales**2,
        )
