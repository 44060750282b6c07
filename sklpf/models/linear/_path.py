"""The path of the linear generative model: one target, log p(x), for each row of data."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklpf._utils.numbers import LOG_TAU, Array
from sklpf._utils.random import Stream
from sklpf._utils.validation import check_components, check_option, check_scale
from sklpf.models._generative import LatentRowsPath
from sklpf.partition import HAIS
from sklpf.paths import Points, read_only

WIDTH = (
    2.0  # variance of a Laplace density, and of the Gaussian prior that stands for it in the base
)


class LinearPath(LatentRowsPath):
    """Causes a of x = Phi a + noise_std N(0, I) for each row x (Sohl-Dickstein & Culpepper 2012,
    eq. 30 to 32).

    The base is the posterior of the causes under a Gaussian prior N(0, tau^2 I) of the same
    variance: tau^2 = 2 where their prior is Laplace, and 1 where it is Gaussian, when base and
    target are the same. Chains live in coordinates y with a = mu(x) + R y, in which the base is
    N(0, I); R Rᵀ = (Phiᵀ Phi / noise_std² + I / tau²)⁻¹ is shared by all rows. The likelihood is a
    part of base and target, and log f_1 - log f_0 is a sum over the causes.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
        Rows whose likelihood is wanted, less the model's mean.
    components : array-like of shape (n_components, n_features)
        The transpose of Phi.
    noise_std : float
        Positive.
    prior : {"laplace", "gaussian"}, default="laplace"
        ``exp(-|a_i|) / 2``, or N(0, 1), for each cause.
    ladder : array-like of shape (n_levels,)
        Inverse temperatures, increasing in [0, 1].

    Raises
    ------
    ValueError
        If shapes don't match, or a number isn't finite or in its range.

    Examples
    --------
    >>> from sklpf import Exact
    >>> from sklpf.models import LinearPath
    >>> path = LinearPath(
    ...     [[1.0], [2.0]], [[1.0]], noise_std=1.0, prior="gaussian"
    ... )  # x ~ N(0, 2)
    >>> Exact().fit(path).log_partition_.round(4)
    array([-1.5155, -2.2655])
    """

    _kernels = "sklpf.models.linear._path_kernels"
    center: Array  # of one row: mu(x)
    # of one row: log p(x) under the Gaussian prior, and by what the norms of the priors differ
    constant: float

    def __init__(
        self,
        X: ArrayLike,
        components: ArrayLike,
        noise_std: float,
        prior: Literal["laplace", "gaussian"] = "laplace",
        ladder: ArrayLike = (0.0, 1.0),
    ):
        self.components = check_components(components)
        self.noise_std = check_scale(noise_std, "noise_std")
        check_option(prior, ("laplace", "gaussian"), "prior")
        self.prior: Literal["laplace", "gaussian"] = prior
        self.n_dimensions, self.n_features = self.components.shape
        super().__init__(X, ladder)
        self.posterior = GaussianPosterior(
            self.components, self.noise_std, 1.0 if prior == "gaussian" else WIDTH
        )

    def _at_row(self):
        self.center = self.posterior.center(self.X)
        self.constant = float(self.posterior.log_likelihood(self.X))
        if self.prior == "laplace":
            self.constant += self.n_dimensions * (0.5 * (LOG_TAU + np.log(WIDTH)) - np.log(2))

    def simulate(self, n: int, rng: np.random.Generator) -> Array:
        """Return n rows drawn from the model, less its mean, shape (n, n_features)."""
        shape = n, self.n_dimensions
        causes = rng.normal(size=shape) if self.prior == "gaussian" else rng.laplace(size=shape)
        return causes @ self.components + self.noise_std * rng.normal(size=(n, self.n_features))

    @property
    def closed_log_partition(self):
        """A function without arguments: log p(x) of one row, in nats, where the prior is
        Gaussian.
        """
        if self.prior != "gaussian":
            raise AttributeError(
                "log p(x) has no closed form where the prior is Laplace: choose HAIS"
            )
        return lambda: self.constant

    def default_estimator(self) -> HAIS:
        """Return `HAIS`, which `score` takes where the prior is Laplace."""
        return HAIS()

    # -- one row's densities
    def sample_base(self, n: int, stream: Stream) -> Points:
        """Return n exact draws from the base."""
        return self.at(stream.generator().standard_normal((n, self.n_dimensions)))

    def causes(self, position: Array) -> Array:
        """Return the causes at points.

        Parameters
        ----------
        position : ndarray of shape (n, n_components)
            Coordinates y of the chains.

        Returns
        -------
        ndarray of shape (n, n_components)
            The causes a.
        """
        return self.center + position @ self.posterior.root

    def _pack(self):
        return pack_causes(
            self.posterior, self.center[np.newaxis], self.constant, self.prior == "laplace"
        )


def pack_causes(
    posterior: GaussianPosterior, center: NDArray, constant: float, is_laplace: bool
) -> Any:
    """Return the density of causes in coordinates y, for a row's center (1, n_components) or that
    of every chain (n, n_components), as compiled programs take it.
    """
    from sklpf.models.linear._path_kernels import Row

    return Row(
        root=read_only(posterior.root),
        center=read_only(center),
        constant=float(constant),
        log_norm=-len(posterior.root) / 2 * LOG_TAU,
        absolute=1.0 if is_laplace else 0.0,
        square=1 / (2 * WIDTH) if is_laplace else 0.0,
    )


class GaussianPosterior:
    """Causes a given x where a ~ N(0, width I) and x = componentsᵀ a + noise_std N(0, I).

    From the singular values of the components, so that it stands any scale of them.

    Attributes
    ----------
    root : ndarray of shape (n_components, n_components)
        Symmetric root of the posterior covariance, the same for every x.
    """

    def __init__(self, components: Array, noise_std: float, width: float):
        left, self._values, self._right = np.linalg.svd(components, full_matrices=False)
        self._noise_std = noise_std
        self._width = width
        self._n_features = components.shape[1]
        with np.errstate(over="ignore"):
            # of x along the right vectors
            self._scales = np.hypot(np.sqrt(width) * self._values, noise_std)
        stds = noise_std * np.sqrt(width) / self._scales
        self.root = (left * stds) @ left.T
        if len(components) > len(stds):  # directions that x says nothing about
            self.root += np.sqrt(width) * (np.eye(len(components)) - left @ left.T)
        self.root = (self.root + self.root.T) / 2
        shrunk = (np.sqrt(width) * self._values / self._scales) * (np.sqrt(width) / self._scales)
        self._gain = (left * shrunk) @ self._right

    def center(self, X: Array) -> Array:
        """Return the posterior mean of rows (..., n_features), shape (..., n_components)."""
        return X @ self._gain.T

    def log_likelihood(self, X: Array) -> Array:
        """Return log N(x; 0, width componentsᵀ components + noise_std² I) of rows (...,
        n_features), in nats.
        """
        along = X @ self._right.T
        off = X - along @ self._right
        with np.errstate(over="ignore"):  # the likelihood is then 0
            squares = np.sum((along / self._scales) ** 2, axis=-1) + np.sum(
                (off / self._noise_std) ** 2, axis=-1
            )
        n_off = self._n_features - len(self._scales)
        log_norm = (
            np.log(self._scales).sum()
            + n_off * np.log(self._noise_std)
            + self._n_features / 2 * LOG_TAU
        )
        return -0.5 * squares - log_norm
