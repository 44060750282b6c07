"""Bases on R^d: normalised densities that can be sampled, from which a path to a user's density may start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, optimize, stats
from scipy.special import betaln, erf, gammaln, log_ndtr

Array = NDArray[np.float64]
Function = Callable[[Array], Array]
_INSTEAD = "give another start, or the base itself as Gaussian(mean, covariance)"
_NORMAL_RANGE = float(np.diff(stats.norm.ppf([0.25, 0.75]))[0])  # interquartile range of the standard normal
_DIFFERENCE = 1e-3  # steps of numerical derivatives, in standard deviations


class Density(Protocol):
    """What a base offers. Any object with these members is one.

    Two more members are used where they exist and aren't None: ``grad_log_density(x)``, the gradient of `log_density`
    at points (n, d), shape (n, d); and ``axes``, an array (d, d) whose orthonormal columns are principal directions.

    Attributes
    ----------
    n_dimensions : int
        Number d of coordinates.
    normalised : bool
        Whether the integral of exp(log_density) is 1.
    center, scale : ndarray of shape (d,)
        A typical point, and standard deviations or half widths around it: for rays and first step sizes.

    Examples
    --------
    >>> base: Density = Uniform([0, 0], [1, 2])
    >>> base.n_dimensions, base.normalised, base.center
    (2, True, array([0.5, 1. ]))
    """

    @property
    def n_dimensions(self) -> int: ...
    @property
    def normalised(self) -> bool: ...
    @property
    def center(self) -> Array: ...
    @property
    def scale(self) -> Array: ...

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Return n independent draws, shape (n, d)."""
        ...

    def log_density(self, x: Array) -> Array:
        """Return the log density at points (n, d), shape (n,), in nats."""
        ...


class GaussianParameters(NamedTuple):
    """A Gaussian for compiled programs: mean (d,), lower triangular root R (d, d) with precision R'R, and its diagonal
    (d,), which is all of it where is_diagonal is 1; log_norm is the log density at the mean, in nats."""

    mean: Array
    root: Array
    diagonal: Array
    is_diagonal: int
    log_norm: float


class StudentTParameters(NamedTuple):
    """A t distribution for compiled programs, as `GaussianParameters` with R'R the inverse of the scale matrix."""

    mean: Array
    root: Array
    diagonal: Array
    is_diagonal: int
    df: float
    log_norm: float


class UniformParameters(NamedTuple):
    """A box for compiled programs: low (d,), high (d,) and the log density inside, in nats."""

    low: Array
    high: Array
    log_norm: float


class TruncatedParameters(NamedTuple):
    """A Gaussian in a box for compiled programs: mean (d,), diagonal (d,) with 1 / standard deviations, low (d,) and
    high (d,). Inside, the log density in nats is log_norm less half the square of |(x - mean) * diagonal|."""

    mean: Array
    diagonal: Array
    low: Array
    high: Array
    log_norm: float


class _Base:
    """What all bases here share. Their arrays are read-only, in copies and unpickled ones too."""

    normalised = True
    n_dimensions: int

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_dimensions={self.n_dimensions})"

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, _frozen(value) if isinstance(value, np.ndarray) else value)

    def _points(self, x: ArrayLike) -> Array:
        points = np.asarray(x, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != self.n_dimensions:
            raise ValueError(f"x must have shape (n, {self.n_dimensions}), a row for each point, got {points.shape}")
        return points


class _Elliptical(_Base):
    """A function of |R (x - mean)|, where R'R is the inverse of a matrix; what is diagonal is kept as a vector."""

    def __init__(self, mean: ArrayLike, name: str, matrix: ArrayLike) -> None:
        self.mean = self.center = _vector("mean", mean)
        self.n_dimensions = len(self.mean)
        self._matrix = _matrix(name, matrix, self.n_dimensions)
        self.scale = _frozen(np.sqrt(self._matrix if self._matrix.ndim == 1 else np.diag(self._matrix)))
        self._factor, self._root = _factors(name, self._matrix, self.scale)
        self._diagonal = _frozen(self._root if self._root.ndim == 1 else np.diag(self._root))

    @property
    def axes(self) -> Array:
        """Principal directions, columns of an array (d, d)."""
        return _frozen(np.eye(self.n_dimensions) if self._matrix.ndim == 1 else linalg.eigh(self._matrix)[1])

    def _packed_root(self) -> tuple[Array, Array, Array, int]:
        return self.mean, _full(self._root), self._diagonal, int(self._root.ndim == 1)

    def _draw(self, n: int, rng: np.random.Generator) -> Array:
        return _times(rng.standard_normal((n, self.n_dimensions)), self._factor)

    def _whiten(self, x: Array) -> tuple[Array, Array]:
        z = _times(self._points(x) - self.mean, self._root)
        return z, np.einsum("ij,ij->i", z, z)


class Gaussian(_Elliptical):
    """The Gaussian distribution on R^d.

    Parameters
    ----------
    mean : array-like of shape (d,), or float for d = 1
    covariance : float, array-like of shape (d,) or (d, d)
        A number times the identity, variances, or a symmetric positive definite matrix. A matrix without entries off
        its diagonal counts as variances.

    Raises
    ------
    ValueError
        If shapes disagree, numbers aren't finite, or the covariance isn't symmetric and positive definite.

    Examples
    --------
    >>> base = Gaussian([0, 1], [[2, 1], [1, 2]])
    >>> base.log_density(np.array([[0.0, 1.0]])).round(4)
    array([-2.3872])
    """

    def __init__(self, mean: ArrayLike, covariance: ArrayLike) -> None:
        super().__init__(mean, "covariance", covariance)
        self._log_norm = float(np.sum(np.log(self._diagonal)) - 0.5 * self.n_dimensions * np.log(2 * np.pi))

    @classmethod
    def fit(cls, points: ArrayLike) -> Self:
        """Return a Gaussian with the mean and the variances of points; correlations shrink as Ledoit and Wolf say.

        Columns are standardised before, so that units don't matter. Shrinkage vanishes as the number of points grows.

        Parameters
        ----------
        points : array-like of shape (n, d), n >= 3

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

        array = _array("points", points)
        if array.ndim != 2 or array.shape[0] < 3 or array.shape[1] < 1:
            raise ValueError(f"points must have shape (n, d) with n >= 3 and d >= 1, got {array.shape}")
        mean, spread = array.mean(axis=0), array.std(axis=0)
        constant = np.flatnonzero(spread <= 1e-13 * np.abs(array).max(axis=0))
        if len(constant):
            raise ValueError(f"points must vary in every column, column {constant[0]} doesn't: drop it")
        covariance, _ = ledoit_wolf((array - mean) / spread, assume_centered=True)
        return cls(mean, covariance * np.outer(spread, spread))

    @classmethod
    def at_mode(
        cls, log_density: Function, start: ArrayLike, *, grad: Function | None = None, factor: float = 1.0
    ) -> Self:
        """Return a Gaussian with the mode and the curvature of a density (the Laplace approximation).

        Parameters
        ----------
        log_density : callable
            Log density, up to a constant, in nats: points (n, d) to (n,).
        start : array-like of shape (d,)
            Where to climb from; log_density must be finite there.
        grad : callable, optional
            Its gradient: points (n, d) to (n, d). By default central differences of log_density.
        factor : float, default=1.0
            The covariance is this times the inverse of the negative Hessian, by central differences.

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
        mode, factor = _vector("start", start), _positive("factor", factor)
        log_density = _checked("log_density", log_density, mode, (1,))
        grad = None if grad is None else _checked("grad", grad, mode, (1, len(mode)))
        with np.errstate(all="ignore"):  # far from the mode anything may happen
            mode, widths = _mode_and_widths(log_density, grad, mode)
            return cls(mode, factor * _inverse_curvature(log_density, grad, mode, widths))

    @property
    def covariance(self) -> Array:
        """Covariance, shape (d, d)."""
        return _full(self._matrix)

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

        Raises
        ------
        ValueError
            If the covariance isn't diagonal, or the box is empty or too far from the mean for float64.

        Examples
        --------
        >>> half = Gaussian(0, 1).truncated(0, np.inf)
        >>> half.log_density(np.array([[0.0], [-1.0]])).round(4)
        array([-0.2258,    -inf])
        """
        if self._matrix.ndim == 2:
            raise ValueError("truncated needs a diagonal covariance: give Gaussian a number or variances (d,)")
        return _TruncatedGaussian(self, low, high)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Return n independent draws, shape (n, d)."""
        return self.mean + self._draw(n, rng)

    def log_density(self, x: Array) -> Array:
        """Return the log density at points (n, d), shape (n,), in nats."""
        return self._log_norm - 0.5 * self._whiten(x)[1]

    def grad_log_density(self, x: Array) -> Array:
        """Return the gradient of `log_density` at points (n, d), shape (n, d)."""
        return -_times(self._whiten(x)[0], self._root.T)


class _TruncatedGaussian(_Base):
    """A Gaussian with independent coordinates in a box; its gradient is the Gaussian's, outside the box too."""

    def __init__(self, gaussian: Gaussian, low: ArrayLike, high: ArrayLike) -> None:
        self.n_dimensions, self._gaussian = gaussian.n_dimensions, gaussian
        self.low, self.high = _box(low, high, self.n_dimensions)
        self._lowest, self._highest = (_frozen((x - gaussian.mean) / gaussian.scale) for x in (self.low, self.high))
        log_mass = _log_mass(self._lowest, self._highest)
        if not np.min(log_mass) > -1e8:  # beyond, rounding of the log density would matter
            raise ValueError("low and high must not cut off the whole Gaussian; move its mean towards the box")
        self._log_norm = float(gaussian._log_norm - np.sum(log_mass))
        self.center, self.scale = _typical(self._quantiles(np.full((self.n_dimensions, 3), [0.25, 0.5, 0.75]).T))

    @property
    def packed(self) -> TruncatedParameters:
        """The parameters as compiled programs take them."""
        return TruncatedParameters(self._gaussian.mean, self._gaussian._diagonal, self.low, self.high, self._log_norm)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Return n independent draws, shape (n, d)."""
        return self._quantiles(rng.random((n, self.n_dimensions)))

    def log_density(self, x: Array) -> Array:
        """Return the log density at points (n, d), shape (n,), in nats; -inf outside the box."""
        points = self._points(x)
        values = self._log_norm - 0.5 * self._gaussian._whiten(points)[1]
        return np.where(_inside(points, self.low, self.high), values, -np.inf)

    def grad_log_density(self, x: Array) -> Array:
        """Return the Gaussian's gradient at points (n, d), shape (n, d)."""
        return self._gaussian.grad_log_density(x)

    def _quantiles(self, levels: Array) -> Array:
        z = stats.truncnorm.ppf(levels, self._lowest, self._highest)  # in logs, so that far tails are no trouble
        return np.clip(self._gaussian.mean + self._gaussian.scale * z, self.low, self.high)


class StudentT(_Elliptical):
    """The multivariate t distribution, a base with heavy tails.

    Parameters
    ----------
    mean : array-like of shape (d,), or float for d = 1
        Its center, also where the tails are too heavy for a mean.
    scale : float, array-like of shape (d,) or (d, d)
        The scale matrix: a number times the identity, its diagonal, or a symmetric positive definite matrix; the
        covariance is df / (df - 2) times it. The attribute `scale` holds the square roots of its diagonal.
    df : float, at least 0.1
        Degrees of freedom; with less, draws overflow.

    Raises
    ------
    ValueError
        If shapes disagree, numbers aren't finite, the scale matrix isn't symmetric and positive definite, or df is
        too small.

    Examples
    --------
    >>> StudentT(0, 1, df=1).log_density(np.array([[0.0]])).round(4)
    array([-1.1447])
    """

    def __init__(self, mean: ArrayLike, scale: ArrayLike, df: float) -> None:
        super().__init__(mean, "scale", scale)
        self.df, d = _positive("df", df), self.n_dimensions
        if self.df < 0.1:
            raise ValueError(f"df must be at least 0.1, as draws overflow with less, got {self.df}")
        log_gammas = gammaln(0.5 * d) - betaln(0.5 * self.df, 0.5 * d)
        self._log_norm = float(np.sum(np.log(self._diagonal)) + log_gammas - 0.5 * d * np.log(np.pi * self.df))

    def __repr__(self) -> str:
        return f"StudentT(n_dimensions={self.n_dimensions}, df={self.df:g})"

    @property
    def scale_matrix(self) -> Array:
        """Scale matrix, shape (d, d)."""
        return _full(self._matrix)

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
        return self._log_norm - 0.5 * (self.df + self.n_dimensions) * np.log1p(self._whiten(x)[1] / self.df)

    def grad_log_density(self, x: Array) -> Array:
        """Return the gradient of `log_density` at points (n, d), shape (n, d)."""
        z, squares = self._whiten(x)
        weights = (self.df + self.n_dimensions) / (self.df + squares)
        return -weights[:, np.newaxis] * _times(z, self._root.T)


class Uniform(_Base):
    """The uniform distribution on a finite box, its faces included.

    Parameters
    ----------
    low, high : array-like of shape (d,), or float for d = 1
        Corners of the box.

    Raises
    ------
    ValueError
        If shapes disagree, the box isn't finite, or low isn't below high everywhere.

    Examples
    --------
    >>> Uniform([0, 0], [1, 2]).log_density(np.array([[0.5, 0.5], [2.0, 0.5]])).round(4)
    array([-0.6931,    -inf])
    """

    def __init__(self, low: ArrayLike, high: ArrayLike) -> None:
        self.low, self.high = _box(low, high)
        with np.errstate(over="ignore"):
            width = self.high - self.low
        if not np.all(np.isfinite(width)):
            raise ValueError("low and high of Uniform must be finite; take Gaussian or StudentT on an open range")
        self.n_dimensions = len(width)
        self.center, self.scale = _frozen(self.low + 0.5 * width), _frozen(0.5 * width)
        self._log_norm = float(-np.sum(np.log(width)))

    @property
    def packed(self) -> UniformParameters:
        """The parameters as compiled programs take them."""
        return UniformParameters(self.low, self.high, self._log_norm)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Return n independent draws, shape (n, d)."""
        return rng.uniform(self.low, self.high, size=(n, self.n_dimensions))

    def log_density(self, x: Array) -> Array:
        """Return the log density at points (n, d), shape (n,), in nats; -inf outside the box."""
        return np.where(_inside(self._points(x), self.low, self.high), self._log_norm, -np.inf)

    def grad_log_density(self, x: Array) -> Array:
        """Return zeros, shape (n, d)."""
        return np.zeros_like(self._points(x))


class _Independent(_Base):
    """A frozen univariate distribution of SciPy for every coordinate."""

    def __init__(self, parts: tuple[Any, ...]) -> None:
        self.n_dimensions, self._parts = len(parts), parts
        quartiles = [np.asarray(part.ppf([0.25, 0.5, 0.75])) for part in parts if np.shape(part.median()) == ()]
        if len(quartiles) < len(parts) or not np.all(np.isfinite(quartiles)):
            raise ValueError(
                "base must be frozen with valid numbers; give a list of distributions for several dimensions"
            )
        self.center, self.scale = _typical(np.transpose(quartiles))

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Return n independent draws, shape (n, d)."""
        return np.column_stack([part.rvs(size=n, random_state=rng) for part in self._parts])

    def log_density(self, x: Array) -> Array:
        """Return the log density at points (n, d), shape (n,), in nats."""
        return np.sum([part.logpdf(column) for part, column in zip(self._parts, self._points(x).T)], axis=0)


def as_base(base: Any, n_dimensions: int | None = None) -> Density:
    """Return a base: what is one already as it is, frozen distributions of `scipy.stats` in the form of one.

    Parameters
    ----------
    base : object with the members of `Density`, frozen distribution, or list of univariate ones
        ``multivariate_normal`` becomes a `Gaussian`, ``multivariate_t`` a `StudentT`; a univariate continuous
        distribution is a base for d = 1, a list of d of them a base with independent coordinates. If all of these
        are normal it is a `Gaussian`, if all are uniform a `Uniform`; else its gradient is unknown.
    n_dimensions : int, optional
        How many dimensions the base must have.

    Raises
    ------
    TypeError
        If base is none of these.
    ValueError
        If it has another number of dimensions or invalid parameters.

    Examples
    --------
    >>> as_base([stats.norm(0, 1), stats.norm(5, 2)])
    Gaussian(n_dimensions=2)
    """
    converted = _converted(base)
    if n_dimensions is not None and converted.n_dimensions != n_dimensions:
        raise ValueError(f"base must have {n_dimensions} dimensions, got {converted.n_dimensions}; give one that fits")
    return converted


_MEMBERS = ("sample", "log_density", "normalised", "n_dimensions", "center", "scale")


def _converted(base: Any) -> Density:
    missing = [name for name in _MEMBERS if not hasattr(base, name)]
    if not missing:
        return base
    if isinstance(base, type(stats.multivariate_normal())):
        return Gaussian(base.mean, base.cov)
    if isinstance(base, type(stats.multivariate_t())):
        return Gaussian(base.loc, base.shape) if np.isinf(base.df) else StudentT(base.loc, base.shape, base.df)
    parts = tuple(base) if isinstance(base, (list, tuple)) else (base,)
    families = [getattr(part, "dist", None) for part in parts]
    if families and all(isinstance(family, stats.rv_continuous) for family in families):
        return _from_parts(parts, families)
    lacks = f" without {', '.join(missing)}" if len(missing) < len(_MEMBERS) else ""
    raise TypeError(
        "base must be a Gaussian, StudentT or Uniform, a frozen distribution of scipy.stats (multivariate_normal, "
        "multivariate_t, or a univariate continuous one per dimension), or an object with "
        f"{', '.join(_MEMBERS[:-1])} and {_MEMBERS[-1]}; got {type(base).__name__}{lacks}"
    )


def _from_parts(parts: tuple[Any, ...], families: list[Any]) -> Density:
    """Independent coordinates, in a class with gradients where there is one."""
    independent = _Independent(parts)
    if all(isinstance(family, type(stats.norm)) for family in families):
        return Gaussian([part.mean() for part in parts], [part.var() for part in parts])
    if all(isinstance(family, type(stats.uniform)) for family in families):
        return Uniform(*np.transpose([part.support() for part in parts]))
    return independent


def _frozen(value: ArrayLike) -> Array:
    array = np.array(value, order="C")
    array.setflags(write=False)
    return array


def _array(name: str, value: ArrayLike, infinite: bool = False) -> Array:
    """The numbers of a parameter as a read-only copy."""
    try:
        array = _frozen(np.asarray(value, dtype=np.float64))
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number or a rectangular array of numbers, got {value!r}") from None
    if np.any(np.isnan(array)) or (not infinite and np.any(np.isinf(array))):
        raise ValueError(f"{name} must be free of NaN{'' if infinite else ' and infinite numbers'}; replace them")
    return array


def _positive(name: str, value: float) -> float:
    number = _array(name, value, infinite=True)
    if number.ndim or not 0 < number < np.inf:
        raise ValueError(f"{name} must be a positive finite number, got {value!r}")
    return float(number)


def _vector(name: str, value: ArrayLike, d: int | None = None, infinite: bool = False) -> Array:
    """A vector (d,); a number stands for one of length 1, or d times for itself where d is known."""
    array = _array(name, value, infinite)
    if array.ndim == 0:
        array = _frozen(np.full(d or 1, array))
    if array.ndim != 1 or len(array) != (d or max(len(array), 1)):
        raise ValueError(f"{name} must have shape ({d or 'd'},), one number per dimension, got {array.shape}")
    return array


def _box(low: ArrayLike, high: ArrayLike, d: int | None = None) -> tuple[Array, Array]:
    """Corners of a box; where d isn't known, the longer of both says what it is."""
    d = d or max(np.size(low), np.size(high))
    lows, highs = _vector("low", low, d, infinite=True), _vector("high", high, d, infinite=True)
    if not np.all(lows < highs):
        i = int(np.argmin(lows < highs))
        raise ValueError(f"low must be below high, but is {lows[i]:g} >= {highs[i]:g} in column {i}; swap them?")
    return lows, highs


def _inside(points: Array, low: Array, high: Array) -> NDArray[np.bool_]:
    return np.all((points >= low) & (points <= high), axis=1)


def _matrix(name: str, value: ArrayLike, d: int) -> Array:
    """A symmetric matrix (d, d), or (d,) where it is diagonal; its diagonal is positive."""
    matrix = _array(name, value)
    if matrix.ndim == 0:
        matrix = np.full(d, matrix)
    if matrix.shape not in ((d,), (d, d)):
        raise ValueError(
            f"{name} must be a number or have shape ({d},) or ({d}, {d}), as mean has length {d}, got {matrix.shape}"
        )
    variances = matrix if matrix.ndim == 1 else np.diag(matrix)
    if not np.all(variances > 0):
        raise ValueError(f"{name} must be positive{' on its diagonal' if matrix.ndim == 2 else ''}; remove what is not")
    if matrix.ndim == 2:
        spread = np.sqrt(variances)
        if np.any(np.abs(matrix - matrix.T) > 1e-8 * spread * spread[:, np.newaxis]):
            raise ValueError(f"{name} must be symmetric; average it with its transpose if the difference means nothing")
        matrix = 0.5 * (matrix + matrix.T)
    return _frozen(variances if matrix.ndim == 1 or not np.any(matrix - np.diag(variances)) else matrix)


def _factors(name: str, matrix: Array, spread: Array) -> tuple[Array, Array]:
    """Lower triangular L with matrix = L L', and its inverse; both (d,) where the matrix is."""
    if matrix.ndim == 1:
        return spread, _frozen(1 / spread)
    try:  # of the correlations, so that units don't matter
        factor = linalg.cholesky(matrix / np.outer(spread, spread), lower=True)
    except linalg.LinAlgError:
        factor = np.zeros_like(matrix)
    if np.min(np.diag(factor)) ** 2 < 10 * len(matrix) * np.finfo(np.float64).eps:
        raise ValueError(
            f"{name} must be positive definite; drop dimensions that depend on others, or add a little to its diagonal"
        )
    root = linalg.solve_triangular(factor, np.eye(len(matrix)), lower=True)
    return _frozen(spread[:, np.newaxis] * factor), _frozen(root / spread)


def _full(matrix: Array) -> Array:
    return matrix if matrix.ndim == 2 else _frozen(np.diag(matrix))


def _times(x: Array, matrix: Array) -> Array:
    """The matrix, or the diagonal matrix, times every row of x."""
    return x * matrix if matrix.ndim == 1 else x @ matrix.T


def _typical(quartiles: Array) -> tuple[Array, Array]:
    """Medians and, from interquartile ranges, standard deviations of normal distributions: quartiles are (3, d)."""
    return _frozen(quartiles[1]), _frozen((quartiles[2] - quartiles[0]) / _NORMAL_RANGE)


def _log_mass(low: Array, high: Array) -> Array:
    """Log probability of (low, high) under the standard normal, exact to rounding in far tails and narrow ranges."""
    a, b = np.where(low > 0, -high, low), np.where(low > 0, -low, high)  # to the left, where logs are accurate
    nodes, weights = np.polynomial.legendre.leggauss(20)
    with np.errstate(all="ignore"):  # of the three, each fails where it isn't used
        both_sides = np.log((erf(b / np.sqrt(2)) - erf(a / np.sqrt(2))) / 2)
        far = log_ndtr(b) + np.log1p(-np.exp(log_ndtr(a) - log_ndtr(b)))
        half, middle = (b - a) / 2, a + (b - a) / 2
        t = half * nodes[:, np.newaxis]
        narrow = stats.norm.logpdf(middle) + np.log(half * (weights @ np.exp(-t * (middle + t / 2))))
        return np.where(b > 0, both_sides, np.where(-a * (b - a) < 1, narrow, far))


def _checked(name: str, function: Function, start: Array, shape: tuple[int, ...]) -> Function:
    """The user's function with float64 arrays for values, once it gave a finite one of this shape for the start."""

    def checked(points: Array) -> Array:
        return np.asarray(function(points), dtype=np.float64)

    values = checked(start[np.newaxis])
    if values.shape != shape:
        returns = "(n,)" if len(shape) == 1 else "(n, d)"
        raise ValueError(f"{name} must take points (n, d) and return {returns}, but returned {values.shape} for n = 1")
    if not np.all(np.isfinite(values)):
        raise ValueError(f"{name} must be finite at start, got {values[0]}: {_INSTEAD}")
    return checked


def _slopes(function: Function, x: Array, steps: Array) -> Array:
    """Central differences of a function of points along every coordinate of x: (d,), or (d, …) if it gives rows."""
    moves = np.diag(steps)
    return ((function(x + moves) - function(x - moves)).T / (2 * steps)).T


def _gradients(log_density: Function, grad: Function | None, points: Array, steps: Array) -> Array:
    return np.stack([_slopes(log_density, x, steps) for x in points]) if grad is None else grad(points)


def _mode_and_widths(log_density: Function, grad: Function | None, start: Array) -> tuple[Array, Array]:
    """A mode and the widths there, found in rounds until the widths suit the steps that were made."""
    mode, widths = start, np.ones_like(start)
    for _ in range(10):
        mode, previous = _climb(log_density, grad, mode, widths), widths
        widths = _widths(log_density, mode, widths)
        if np.all(np.abs(np.log(widths / previous)) < 0.5):
            break
    return mode, widths


def _climb(log_density: Function, grad: Function | None, start: Array, widths: Array) -> Array:
    """Where BFGS from start ends, in coordinates of these widths."""

    def loss(u: Array) -> tuple[float, Array]:
        x = (start + widths * u)[np.newaxis]
        value = float(log_density(x)[0])
        slope = _gradients(log_density, grad, x, _DIFFERENCE * widths)[0]
        return -value if np.isfinite(value) else np.inf, -slope * widths

    return start + widths * optimize.minimize(loss, np.zeros_like(start), jac=True, method="BFGS").x


def _widths(log_density: Function, mode: Array, widths: Array) -> Array:
    """Distances along every coordinate at which the log density is half a nat lower than at its mode."""
    for _ in range(30):
        moves = np.diag(widths)
        drops = log_density(mode[np.newaxis]) - (log_density(mode + moves) + log_density(mode - moves)) / 2
        ratios = np.sqrt(0.5 / np.where(np.isnan(drops), np.inf, np.maximum(drops, 1e-300)))
        if np.all((ratios > 0.3) & (ratios < 20)):
            return widths * ratios
        widths = widths * np.clip(ratios, 0.01, 100)
    i = int(np.argmax(np.abs(np.log(ratios))))
    raise ValueError(f"no mode of log_density was found, as it has no maximum along column {i}: {_INSTEAD}")


def _inverse_curvature(log_density: Function, grad: Function | None, mode: Array, widths: Array) -> Array:
    """Inverse of the negative Hessian at the mode; ValueError if it's none."""

    def gradients(points: Array) -> Array:
        return _gradients(log_density, grad, points, _DIFFERENCE * widths)

    precision = -_slopes(gradients, mode, _DIFFERENCE * widths) * np.outer(widths, widths)
    try:
        factor = linalg.cho_factor((precision + precision.T) / 2)
    except (linalg.LinAlgError, ValueError):
        message = "the negative Hessian of log_density must be positive definite where the climb from start ended"
        raise ValueError(f"{message}: {_INSTEAD}") from None
    slope = gradients(mode[np.newaxis])[0] * widths
    if not slope @ linalg.cho_solve(factor, slope) < 2e-3:  # a quadratic function would rise by half of it
        raise ValueError(f"no mode of log_density was found, as it still rises where the climb ended: {_INSTEAD}")
    covariance = linalg.cho_solve(factor, np.eye(len(mode)))
    return (covariance + covariance.T) / 2 * np.outer(widths, widths)
