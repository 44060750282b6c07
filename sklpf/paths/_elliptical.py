"""Gaussian and t distributions as bases, full, diagonal and in a box."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg, stats
from scipy.special import betaln, gammaln

from sklpf._utils.numbers import check_squares
from sklpf.paths._base_numbers import (
    Array,
    box_of,
    check_function,
    checked_points,
    factors_of,
    frozen,
    full_matrix,
    is_inside,
    log_mass,
    matrix_of,
    numbers_of,
    positive_number,
    times_matrix,
    typical,
    vector_of,
)
from sklpf.paths._bases import Base, GaussianParameters, StudentTParameters, TruncatedParameters
from sklpf.paths._mode import Function, checked_function, inverse_curvature, mode_and_widths

if TYPE_CHECKING:
    from sklpf.paths._mixture import Mixture


class _Elliptical(Base):
    """A function of |R (x - mean)|, where R'R is the inverse of a matrix; what is diagonal is kept
    as a vector.
    """

    def __init__(self, mean: ArrayLike, name: str, matrix: ArrayLike) -> None:
        self.mean = self.center = vector_of("mean", mean)
        self.n_dimensions = len(self.mean)
        self._matrix = matrix_of(name, matrix, self.n_dimensions)
        self.scale = frozen(
            np.sqrt(self._matrix if self._matrix.ndim == 1 else np.diag(self._matrix))
        )
        self._factor, self._root = factors_of(name, self._matrix, self.scale)
        self._diagonal = frozen(self._root if self._root.ndim == 1 else np.diag(self._root))

    @property
    def axes(self) -> Array:
        """Principal directions, columns of an array (d, d)."""
        return frozen(
            np.eye(self.n_dimensions) if self._matrix.ndim == 1 else linalg.eigh(self._matrix)[1]
        )

    def _packed_root(self) -> tuple[Array, Array, Array, int]:
        return self.mean, full_matrix(self._root), self._diagonal, int(self._root.ndim == 1)

    def _draw(self, n: int, rng: np.random.Generator) -> Array:
        return times_matrix(rng.standard_normal((n, self.n_dimensions)), self._factor)

    def _whiten(self, x: Array) -> tuple[Array, Array]:
        z = times_matrix(checked_points(x, self.n_dimensions) - self.mean, self._root)
        return z, np.einsum("ij,ij->i", z, z)


class Gaussian(_Elliptical):
    """The Gaussian distribution on R^d.

    Parameters
    ----------
    mean : array-like of shape (d,), or float for d = 1
        Where the density is highest.
    covariance : float, array-like of shape (d,) or (d, d)
        A number times the identity, variances, or a symmetric positive definite matrix. A matrix
        without entries off its diagonal counts as variances.

    Raises
    ------
    ValueError
        If shapes disagree, numbers aren't finite, or the covariance isn't symmetric and positive
        definite.

    Examples
    --------
    >>> base = Gaussian([0, 1], [[2, 1], [1, 2]])
    >>> base.log_density(np.array([[0.0, 1.0]])).round(4)
    array([-2.3872])
    """

    def __init__(self, mean: ArrayLike, covariance: ArrayLike) -> None:
        super().__init__(mean, "covariance", covariance)
        self._log_norm = float(
            np.sum(np.log(self._diagonal)) - 0.5 * self.n_dimensions * np.log(2 * np.pi)
        )

    @classmethod
    def fit(cls, points: ArrayLike) -> Self:
        """Return a Gaussian with the mean and the variances of points; correlations shrink as
        Ledoit and Wolf say.

        Columns are standardised before, so that units don't matter. Shrinkage vanishes as the
        number of points grows.

        Parameters
        ----------
        points : array-like of shape (n, d), n >= 3
            As they are.

        Returns
        -------
        Gaussian
            With these moments.

        Raises
        ------
        ValueError
            If points have another shape, aren't finite, or a column doesn't vary.

        Examples
        --------
        >>> Gaussian.fit([[0, 0], [2, 0], [0, 4], [2, 4]]).scale
        array([1., 2.])
        """
        from sklearn.covariance import ledoit_wolf  # slow to import

        array = numbers_of("points", points)
        if array.ndim != 2 or array.shape[0] < 3 or array.shape[1] < 1:
            raise ValueError(
                f"points must have shape (n, d) with n >= 3 and d >= 1, got {array.shape}"
            )
        check_squares(array, "points")
        mean = array.mean(axis=0)
        spread = array.std(axis=0)
        constant = np.flatnonzero(spread <= 1e-13 * np.abs(array).max(axis=0))
        if len(constant):
            raise ValueError(
                f"points must vary in every column, column {constant[0]} doesn't: drop it"
            )
        covariance, _ = ledoit_wolf((array - mean) / spread, assume_centered=True)
        return cls(mean, covariance * np.outer(spread, spread))

    @classmethod
    def at_mode(
        cls,
        log_density: Function,
        start: ArrayLike,
        *,
        grad: Function | None = None,
        factor: float = 1.0,
    ) -> Self:
        """Return a Gaussian with the mode and the curvature of a density (the Laplace
        approximation).

        Parameters
        ----------
        log_density : callable
            Log density, up to a constant, in nats: points (n, d) to (n,).
        start : array-like of shape (d,)
            Where to climb from; log_density must be finite there.
        grad : callable, optional
            Its gradient: points (n, d) to (n, d). By default central differences of log_density.
        factor : float, default=1.0
            The covariance is this times the inverse of the negative Hessian, by central
            differences.

        Raises
        ------
        ValueError
            If no mode was found, or the curvature there isn't positive definite.

        Examples
        --------
        >>> base = Gaussian.at_mode(lambda x: -np.sum((x - 3) ** 2, axis=1), [0, 0])
        >>> base.mean.round(4), base.scale.round(4)
        (array([3., 3.]), array([0.7071, 0.7071]))
        """
        mode = vector_of("start", start)
        factor = positive_number("factor", factor)
        log_density = checked_function("log_density", log_density, mode, (1,))
        grad = None if grad is None else checked_function("grad", grad, mode, (1, len(mode)))
        with np.errstate(all="ignore"):  # far from the mode anything may happen
            mode, widths = mode_and_widths(log_density, grad, mode)
            return cls(mode, factor * inverse_curvature(log_density, grad, mode, widths))

    @classmethod
    def at_modes(
        cls,
        log_density: Function,
        starts: ArrayLike,
        *,
        grad: Function | None = None,
        factor: float = 1.0,
    ) -> Mixture:
        """Return a mixture of Gaussians at all modes to which climbs from some points lead.

        Parameters
        ----------
        log_density : callable
            Log density, up to a constant, in nats: points (n, d) to (n,).
        starts : array-like of shape (n, d)
            Where to climb from, such as draws of a prior or a rough guess of each mode. Those that
            lead to no mode are left out.
        grad : callable, optional
            Its gradient: points (n, d) to (n, d). By default central differences of log_density.
        factor : float, default=1.0
            As of `at_mode`, for each mode.

        Returns
        -------
        Mixture
            Its weights are the Laplace approximations of the modes' masses, none of them below
            a hundredth.

        Raises
        ------
        ValueError
            If no start leads to a mode.

        Examples
        --------
        >>> def log_density(x):
        ...     return np.logaddexp(-8 * (x[:, 0] - 3) ** 2, -8 * (x[:, 0] + 3) ** 2)
        >>> base = Gaussian.at_modes(log_density, [[-5], [1], [4]])
        >>> sorted(float(part.mean[0].round(3)) for part in base.components)
        [-3.0, 3.0]
        """
        from sklpf.paths._modes import gaussians_at_modes

        check_function("log_density", log_density)
        if grad is not None:
            check_function("grad", grad)
        points = numbers_of("starts", starts)
        if points.ndim != 2 or points.size == 0:
            raise ValueError(
                f"starts must have shape (n, d), a row for each start, got {points.shape}"
            )
        check_squares(points, "starts")
        return gaussians_at_modes(log_density, points, grad, positive_number("factor", factor))

    @property
    def covariance(self) -> Array:
        """Covariance, shape (d, d)."""
        return full_matrix(self._matrix)

    @property
    def packed(self) -> GaussianParameters:
        """The parameters as compiled programs take them."""
        return GaussianParameters(*self._packed_root(), self._log_norm)

    def truncated(self, low: ArrayLike, high: ArrayLike) -> _TruncatedGaussian:
        """Return this Gaussian restricted to a box and normalised there.

        Parameters
        ----------
        low, high : array-like of shape (d,), or float
            Corners of the box; infinite ones leave a side open.

        Returns
        -------
        object
            A base, as `Gaussian` is.

        Raises
        ------
        ValueError
            If the covariance isn't diagonal, or the box is empty or too far from the mean for
            float64.

        Examples
        --------
        >>> half = Gaussian(0, 1).truncated(0, np.inf)
        >>> half.log_density(np.array([[0.0], [-1.0]])).round(4)
        array([-0.2258,    -inf])
        """
        if self._matrix.ndim == 2:
            raise ValueError(
                "truncated needs a diagonal covariance: give Gaussian a number or variances (d,)"
            )
        return _TruncatedGaussian(self, low, high)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Return n independent draws, shape (n, d)."""
        return self.mean + self._draw(n, rng)

    def log_density(self, x: Array) -> Array:
        """Return the log density at points (n, d), shape (n,), in nats."""
        return self._log_norm - 0.5 * self._whiten(x)[1]

    def grad_log_density(self, x: Array) -> Array:
        """Return the gradient of `log_density`.

        Parameters
        ----------
        x : ndarray of shape (n, d)
            Points.

        Returns
        -------
        ndarray of shape (n, d)
            In nats by the coordinates' unit.
        """
        return -times_matrix(self._whiten(x)[0], self._root.T)


class _TruncatedGaussian(Base):
    """A Gaussian with independent coordinates in a box; its gradient is the Gaussian's, outside the
    box too.
    """

    def __init__(self, gaussian: Gaussian, low: ArrayLike, high: ArrayLike) -> None:
        self.n_dimensions = gaussian.n_dimensions
        self._gaussian = gaussian
        self.low, self.high = box_of(low, high, self.n_dimensions)
        self._lowest, self._highest = (
            frozen((x - gaussian.mean) / gaussian.scale) for x in (self.low, self.high)
        )
        mass = log_mass(self._lowest, self._highest)
        if not np.min(mass) > -1e8:  # beyond, rounding of the log density would matter
            raise ValueError(
                "low and high must not cut off the whole Gaussian; move its mean towards the box"
            )
        self._log_norm = float(gaussian._log_norm - np.sum(mass))
        self.center, self.scale = typical(
            self._quantiles(np.full((self.n_dimensions, 3), [0.25, 0.5, 0.75]).T)
        )

    @property
    def packed(self) -> TruncatedParameters:
        """The parameters as compiled programs take them."""
        return TruncatedParameters(
            self._gaussian.mean, self._gaussian._diagonal, self.low, self.high, self._log_norm
        )

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Return n independent draws, shape (n, d)."""
        return self._quantiles(rng.random((n, self.n_dimensions)))

    def log_density(self, x: Array) -> Array:
        """Return the log density at points (n, d), shape (n,), in nats; -inf outside the box."""
        points = checked_points(x, self.n_dimensions)
        values = self._log_norm - 0.5 * self._gaussian._whiten(points)[1]
        return np.where(is_inside(points, self.low, self.high), values, -np.inf)

    def grad_log_density(self, x: Array) -> Array:
        """Return the Gaussian's gradient at points (n, d), shape (n, d)."""
        return self._gaussian.grad_log_density(x)

    def _quantiles(self, levels: Array) -> Array:
        # in logs, so that far tails are no trouble
        z = stats.truncnorm.ppf(levels, self._lowest, self._highest)
        return np.clip(self._gaussian.mean + self._gaussian.scale * z, self.low, self.high)


class StudentT(_Elliptical):
    """The multivariate t distribution, a base with heavy tails.

    Parameters
    ----------
    mean : array-like of shape (d,), or float for d = 1
        Its center, also where the tails are too heavy for a mean.
    scale : float, array-like of shape (d,) or (d, d)
        The scale matrix: a number times the identity, its diagonal, or a symmetric positive
        definite matrix; the covariance is df / (df - 2) times it. The attribute `scale` holds the
        square roots of its diagonal.
    df : float, at least 0.1
        Degrees of freedom; with less, draws overflow.

    Raises
    ------
    ValueError
        If shapes disagree, numbers aren't finite, the scale matrix isn't symmetric and positive
        definite, or df is too small.

    Examples
    --------
    >>> StudentT(0, 1, df=1).log_density(np.array([[0.0]])).round(4)
    array([-1.1447])
    """

    def __init__(self, mean: ArrayLike, scale: ArrayLike, df: float) -> None:
        super().__init__(mean, "scale", scale)
        self.df = positive_number("df", df)
        d = self.n_dimensions
        if self.df < 0.1:
            raise ValueError(f"df must be at least 0.1, as draws overflow with less, got {self.df}")
        log_gammas = gammaln(0.5 * d) - betaln(0.5 * self.df, 0.5 * d)
        self._log_norm = float(
            np.sum(np.log(self._diagonal)) + log_gammas - 0.5 * d * np.log(np.pi * self.df)
        )

    def __repr__(self) -> str:
        return f"StudentT(n_dimensions={self.n_dimensions}, df={self.df:g})"

    @property
    def scale_matrix(self) -> Array:
        """Scale matrix, shape (d, d)."""
        return full_matrix(self._matrix)

    @property
    def packed(self) -> StudentTParameters:
        """The parameters as compiled programs take them."""
        return StudentTParameters(*self._packed_root(), self.df, self._log_norm)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Return n independent draws, shape (n, d)."""
        stretch = np.sqrt(self.df / rng.chisquare(self.df, size=n))
        return self.mean + stretch[:, np.newaxis] * self._draw(n, rng)

    def log_density(self, x: Array) -> Array:
        """Return the log density at points (n, d), shape (n,), in nats."""
        return self._log_norm - 0.5 * (self.df + self.n_dimensions) * np.log1p(
            self._whiten(x)[1] / self.df
        )

    def grad_log_density(self, x: Array) -> Array:
        """Return the gradient of `log_density`.

        Parameters
        ----------
        x : ndarray of shape (n, d)
            Points.

        Returns
        -------
        ndarray of shape (n, d)
            In nats by the coordinates' unit.
        """
        z, squares = self._whiten(x)
        weights = (self.df + self.n_dimensions) / (self.df + squares)
        return -weights[:, np.newaxis] * times_matrix(z, self._root.T)
