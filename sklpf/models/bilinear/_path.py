"""The path of the bilinear generative model: one target, log p(x), for each row of data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklpf._utils.numbers import LOG_TAU, Array
from sklpf._utils.random import Stream
from sklpf._utils.validation import check_components, check_scale
from sklpf.models._generative import LatentRowsPath
from sklpf.partition import HAIS, PartitionEstimator
from sklpf.paths import Box, Points, read_only

_N_TEMPERATURES = 30_000
_TOL = 0.1
# With 98 latent variables a quarter of the rows would need more levels for that.
_MANY = 40
_TOL_OF_MANY = 0.2


class BilinearPath(LatentRowsPath):
    """Content c and style d >= 0 of x = Phi a + noise_std N(0, I) with a = (Theta c) * (Psi d), for
    each row x.

    Sohl-Dickstein & Culpepper 2012, eq. 33 to 35: c_i has the density ``exp(-|c_i|) / 2`` and d_j
    the density exp(-d_j). The base is this prior, and log f_1 - log f_0 the log-likelihood. Chains
    live at (c, d) and are reflected at d = 0.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
        Rows whose likelihood is wanted, less the model's mean.
    components : array-like of shape (n_components, n_features)
        The transpose of Phi.
    content_weights : array-like of shape (n_components, n_content)
        Theta.
    style_weights : array-like of shape (n_components, n_style)
        Psi.
    noise_std : float
        Positive.
    ladder : array-like of shape (n_levels,)
        Inverse temperatures, increasing in [0, 1].

    Raises
    ------
    ValueError
        If shapes don't match, or a number isn't finite or in its range.

    Examples
    --------
    >>> from sklpf.models import BilinearPath
    >>> path = BilinearPath(
    ...     [[1.0], [2.0]],
    ...     [[1.0]],
    ...     content_weights=[[1.0]],
    ...     style_weights=[[1.0]],
    ...     noise_std=0.5,
    ... )
    >>> path.n_rows, path.n_dimensions
    (2, 2)
    """

    _kernels = "sklpf.models.bilinear._path_kernels"

    def __init__(
        self,
        X: ArrayLike,
        components: ArrayLike,
        content_weights: ArrayLike,
        style_weights: ArrayLike,
        noise_std: float,
        ladder: ArrayLike = (0.0, 1.0),
    ):
        self.components = check_components(components)
        self.noise_std = check_scale(noise_std, "noise_std")
        self.content_weights = _check_weights(
            content_weights, len(self.components), "content_weights"
        )
        self.style_weights = _check_weights(style_weights, len(self.components), "style_weights")
        self.n_features = self.components.shape[1]
        self.n_content = self.content_weights.shape[1]
        self.n_dimensions = self.n_content + self.style_weights.shape[1]
        super().__init__(X, ladder)
        self.bounds = bounds_of(self.n_content, self.style_weights.shape[1])
        self.log_norm = -self.n_features * (np.log(self.noise_std) + LOG_TAU / 2)

    def _prior(self, n, rng):
        shapes = (n, self.n_content), (n, self.n_dimensions - self.n_content)
        return np.concatenate(
            [rng.laplace(size=shapes[0]), rng.exponential(size=shapes[1])], axis=1
        )

    def simulate(self, n: int, rng: np.random.Generator) -> Array:
        """Return n rows drawn from the model, less its mean, shape (n, n_features)."""
        return self.means(self._prior(n, rng)) + self.noise_std * rng.normal(
            size=(n, self.n_features)
        )

    def means(self, position: Array) -> Array:
        """Return Phi a, the means of rows.

        Parameters
        ----------
        position : ndarray of shape (n, n_dimensions)
            Content and style.

        Returns
        -------
        ndarray of shape (n, n_features)
            Of the rows, less the model's mean.
        """
        content = position[:, : self.n_content] @ self.content_weights.T
        style = position[:, self.n_content :] @ self.style_weights.T
        return (content * style) @ self.components

    def default_estimator(self) -> PartitionEstimator:
        """Return `HAIS` with a standard error of 0.1 nats, of 0.2 nats with more than 40 latent
        variables, for which a row takes at most 30,000 levels.

        Returns
        -------
        PartitionEstimator
            Not fitted.
        """
        tol = _TOL if self.n_dimensions <= _MANY else _TOL_OF_MANY
        return HAIS(n_temperatures=_N_TEMPERATURES, tol=tol)

    # -- one row's densities
    def sample_base(self, n: int, stream: Stream) -> Points:
        """Return n exact draws from the prior."""
        return self.at(self._prior(n, stream.generator()))

    def _pack(self):
        parameters = self.components, self.content_weights, self.style_weights
        return pack_row(self.X[np.newaxis], parameters, self.noise_std, self.log_norm)


def bounds_of(n_content: int, n_style: int) -> Box:
    """Return the box of content and style, of n_content + n_style coordinates."""
    low = np.repeat([-np.inf, 0.0], [n_content, n_style])
    return Box(low, np.full(len(low), np.inf))


def pack_row(X: NDArray, parameters: tuple, noise_std: float, log_norm: float) -> Any:
    """Return the density of content and style, of a row (1, n_features) or of one for every chain
    (n, n_features), as compiled programs take it.

    `parameters` are components, content_weights and style_weights; log_norm is the likelihood's.
    """
    from sklpf.models.bilinear._path_kernels import Row

    components, content_weights, style_weights = (read_only(matrix) for matrix in parameters)
    return Row(
        x=read_only(X),
        components=components,
        content_weights=content_weights,
        style_weights=style_weights,
        precision=float(noise_std) ** -2,
        log_norm=float(log_norm),
        log_base_norm=float(-content_weights.shape[1] * np.log(2)),
    )


def _check_weights(weights, n_components, name):
    weights = check_components(weights, name)
    if len(weights) != n_components:
        raise ValueError(
            f"{name} must have a row for each of {n_components} components, got shape"
            f" {weights.shape}"
        )
    return weights
