"""The parameters of a Gaussian RBM, and what they say of rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sklpf._utils.numbers import Array


class Parameters(NamedTuple):
    """log f(v, h) = c @ h - sum (v - b)² / 2 s² + h @ W @ ((v - b) / s²)."""

    components: Array  # W (J, M)
    intercept_visible: Array  # b (M,)
    intercept_hidden: Array  # c (J,)
    variances: Array  # s² (M,)

    def hidden_fields(self, v) -> Array:
        """Inputs of the hidden units, (n, J)."""
        return self._residuals(v) @ self.components.T + self.intercept_hidden

    def visible_means(self, h) -> Array:
        """Means of the visible units given hidden ones, (n, M)."""
        return self.intercept_visible + h @ self.components

    def log_f(self, v) -> Array:
        """log f(v), the hidden units summed out, (n,), in nats."""
        away = v - self.intercept_visible
        square = np.einsum("ij,ij->i", away, self._residuals(v))
        return np.logaddexp(0, self.hidden_fields(v)).sum(axis=1) - 0.5 * square

    def _residuals(self, v):
        return (v - self.intercept_visible) / self.variances

    def rescaled(self, location, scale) -> Parameters:
        """The same model of rows location + scale * v, for scales (M,)."""
        return Parameters(
            self.components * scale,
            location + scale * self.intercept_visible,
            self.intercept_hidden,
            scale**2 * self.variances,
        )
