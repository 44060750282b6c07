"""The path of the bilinear generative model: one target, log p(x), for each row of data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist

from sklpf._utils.numbers import LOG_TAU, Array, Integers
from sklpf._utils.random import Stream
from sklpf._utils.validation import check_components, check_scale
from sklpf.models._generative import LatentRowsPath
from sklpf.partition import PartitionEstimator
from sklpf.paths import Box, Points, read_only, values_at

_N_TEMPERATURES = 30_000
_EULER = 0.57722  # minus the mean of log d
_SPREAD = np.pi / np.sqrt(6)  # its standard deviation
_LARGEST_LOG = 300.0  # of a style, whose square is a float64
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

    encode = None  # there is no encoder
    n_draws = 10_000  # of a batch of importance sampling: with 1000, intervals are too narrow
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

    @property
    def network(self) -> ProductChart:
        """Joint density of a row, content and style, as `DecoderImportance` takes it."""
        return ProductChart(self)

    def default_estimator(self) -> PartitionEstimator:
        """Return `DecoderImportance` with a standard error of 0.1 nats, of 0.2 nats with more than
        40 latent variables. Rows for which it anneals take at most 30,000 levels.

        Returns
        -------
        PartitionEstimator
            Not fitted.
        """
        from sklpf.models.decoder import DecoderImportance

        tol = _TOL if self.n_dimensions <= _MANY else _TOL_OF_MANY
        return DecoderImportance(n_temperatures=_N_TEMPERATURES, tol=tol)

    # -- one row's densities
    def sample_base(self, n: int, stream: Stream) -> Points:
        """Return n exact draws from the prior."""
        return self.at(self._prior(n, stream.generator()))

    def _pack(self):
        return self._density_of(self.X[np.newaxis])

    def _density_of(self, X: Array) -> Any:
        """Return the density of content and style of rows, as `pack_row` does."""
        parameters = self.components, self.content_weights, self.style_weights
        return pack_row(X, parameters, self.noise_std, self.log_norm)


class ProductChart:
    """Coordinates z of content and style in which what the likelihood says of their product, and
    what the prior alone says of their ratio, are apart.

    These are content times the mean style, and the logs of styles, in units of the prior. The log
    of the joint density of a row, content and style by z, less that of N(0, I), stands for the
    log-likelihood of a decoder with latent variables z ~ N(0, I).

    Parameters
    ----------
    path : BilinearPath
        Whose model it is.
    """

    def __init__(self, path: BilinearPath):
        self._path = path
        n_style = path.n_dimensions - path.n_content
        self._content_scale = np.sqrt(2 * (1 + 1 / n_style))

    def log_densities(self, latents: Array, X: Array, rows: Integers) -> Array:
        """Return the log densities at points z, (n,), in nats, of the row of X that belongs to
        each.
        """
        return self.log_likelihood(latents, X[rows])[0]

    def log_densities_of_all(self, latents: Array, X: Array) -> Array:
        """Return the log density of every row of X at every point, (n_rows, n), in nats."""
        position, log_volume = self._position(latents)
        values = values_at(self._path._density_of(X[:1]), position)
        fixed = values.log_base + log_volume + 0.5 * np.sum(latents**2 + LOG_TAU, axis=1)
        squares = cdist(X, self._path.means(position), "sqeuclidean")
        return self._path.log_norm - 0.5 * squares / self._path.noise_std**2 + fixed

    def log_likelihood(self, latents: Array, X: Array) -> tuple[Array, Array]:
        """Return the log densities of rows x at points z, (n,), in nats, and their gradients by z,
        (n, n_dimensions).
        """
        n_content = self._path.n_content
        position, log_volume = self._position(latents)
        values = values_at(self._path._density_of(X), position)
        log_density = values.log_base + values.gain + log_volume
        by_position = values.base_slope + values.gain_slope
        content, style = np.split(position, [n_content], axis=1)
        by_content, by_style = np.split(by_position, [n_content], axis=1)
        size = style.mean(axis=1, keepdims=True)
        share = style / style.sum(axis=1, keepdims=True)
        by_size = np.sum(by_content * content, axis=1, keepdims=True) + n_content
        slopes = np.concatenate(
            [
                self._content_scale * by_content / size,
                _SPREAD * (1 + by_style * style - share * by_size),
            ],
            axis=1,
        )
        of_normal = 0.5 * np.sum(latents**2 + LOG_TAU, axis=1)
        return log_density + of_normal, slopes + latents

    def _position(self, latents: Array) -> tuple[Array, Array]:
        """Content and style at points z, and log |d(content, style) / dz|, (n,)."""
        n_content = self._path.n_content
        logs = _SPREAD * latents[:, n_content:] - _EULER
        style = np.exp(np.clip(logs, -_LARGEST_LOG, _LARGEST_LOG))
        size = style.mean(axis=1, keepdims=True)
        content = self._content_scale * latents[:, :n_content] / size
        log_volume = n_content * (np.log(self._content_scale) - np.log(size[:, 0]))
        log_volume += logs.sum(axis=1) + logs.shape[1] * np.log(_SPREAD)
        return np.concatenate([content, style], axis=1), log_volume


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
