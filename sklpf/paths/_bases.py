"""Bases on R^d: normalised densities that can be sampled, from which a path to a user's density may
start.

All are mixtures of K >= 1 elliptical parts, each within a box that may be open: `Parts` says what
the density is, once for NumPy and once for compiled programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg, stats
from scipy.special import betaln, erf, gammaln, log_ndtr, softmax

from sklpf._utils.numbers import LOG_TAU, Array
from sklpf._utils.validation import as_float64, check_scale, check_squares
from sklpf.paths._box import Box
from sklpf.paths._climbs import (
    Function,
    check_at_start,
    climb,
    functions_for_climbs,
    mode_and_covariance,
)
from sklpf.paths._functions import check_callable
from sklpf.uncertainty import log_mean_exp

# interquartile range of the standard normal
_NORMAL_RANGE = float(np.diff(stats.norm.ppf([0.25, 0.75]))[0])
# of mixtures at modes
_SAME = 1.0  # standard deviations between modes that count as one
# of covariances that are fitted to points
_SHARES_OF_SHRINKAGE = 10.0 ** -np.arange(10)


class Density(Protocol):
    """Normalised density that can be sampled. Any object with these members is one.

    Two more members are used where they exist and aren't None: ``grad_log_density(x)``, the
    gradient of `log_density` at points (n, d), shape (n, d); and ``axes``, an array (d, d) whose
    orthonormal columns are principal directions.

    Attributes
    ----------
    n_dimensions : int
        Number d of coordinates.
    normalised : bool
        Whether the integral of exp(log_density) is 1.
    center, scale : ndarray of shape (d,)
        A typical point, and standard deviations or half widths around it: for rays and first step
        sizes.

    Examples
    --------
    >>> base: Density = Uniform([0, 0], [1, 2])
    >>> base.n_dimensions, base.normalised, base.center
    (2, True, array([0.5, 1. ]))
    """

    @property
    def n_dimensions(self) -> int:
        """Number d of coordinates."""

    @property
    def normalised(self) -> bool:
        """True if the integral of exp(log_density) is 1."""

    @property
    def center(self) -> Array:
        """A typical point, shape (d,)."""

    @property
    def scale(self) -> Array:
        """Standard deviations or half widths around it, shape (d,)."""

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Return n independent draws, shape (n, d)."""

    def log_density(self, x: Array) -> Array:
        """Return the log density at points (n, d), shape (n,), in nats."""


class Parts(NamedTuple):
    """The density of a base, for compiled programs too: a sum over K parts.

    Part k is 0 outside of its box. Inside, with z = roots[k] @ (x - means[k]), its log is
    log_norms[k] - |z|^2 / 2, or where dfs[k] is finite log_norms[k] - (dfs[k] + d) / 2
    log(1 + |z|^2 / dfs[k]), in nats. Logs of weights are in log_norms.
    """

    means: Array  # (K, d)
    roots: Array  # (K, d, d), lower triangular; (K, 1, d), their diagonals, where they have no more
    dfs: Array  # (K,)
    log_norms: Array  # (K,)
    low: Array  # (K, d)
    high: Array  # (K, d)


class BaseDensity:
    """Base class of densities. Their arrays are read-only, in copies and unpickled ones too."""

    normalised = True
    n_dimensions: int

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_dimensions={self.n_dimensions})"

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            if isinstance(value, Parts):
                value = Parts(*map(frozen, value))
            setattr(self, name, frozen(value) if isinstance(value, np.ndarray) else value)


class _OfParts(BaseDensity):
    """A base with the density that `Parts` describes."""

    packed: Parts  # what compiled programs run on

    def _pack(
        self,
        mean: Array,
        root: Array,
        log_norm: float,
        df: float = np.inf,
        low: ArrayLike = -np.inf,
        high: ArrayLike = np.inf,
    ) -> None:
        """Set the density of one part; root is (d,) or (d, d)."""
        self.n_dimensions = len(mean)
        root = np.atleast_2d(root)
        box = [np.broadcast_to(side, mean.shape) for side in (low, high)]
        columns: tuple[Any, ...] = (mean, root, df, log_norm, *box)
        self.packed = Parts(*(frozen([column]) for column in columns))

    def _whiten(self, k: int, points: Array) -> tuple[Array, Array]:
        """z of a part, (n, d), and |z|^2, (n,)."""
        root = self.packed.roots[k]
        z = times_matrix(points - self.packed.means[k], root[0] if len(root) == 1 else root)
        return z, np.einsum("ij,ij->i", z, z)

    def _log_parts(self, points: Array) -> Array:
        """Log of weight times density of each part, (K, n)."""
        d = self.n_dimensions
        joint = np.empty((len(self.packed.dfs), len(points)))
        for k, (_, _, df, log_norm, low, high) in enumerate(zip(*self.packed)):
            with np.errstate(invalid="ignore"):  # of infinite points, in the root 0 of a box
                squares = self._whiten(k, points)[1]
            log_kernel = 0.5 * squares if df == np.inf else 0.5 * (df + d) * np.log1p(squares / df)
            joint[k] = log_norm - log_kernel
            if np.isfinite(low).any() or np.isfinite(high).any():
                inside = np.all((points >= low) & (points <= high), axis=1)
                joint[k] = np.where(inside, joint[k], -np.inf)
        return joint

    def log_density(self, x: Array) -> Array:
        """Return the log density at points (n, d), shape (n,), in nats; -inf where it is 0."""
        return _log_sum(self._log_parts(checked_points(x, self.n_dimensions)))

    def grad_log_density(self, x: Array) -> Array:
        """Return the gradient of `log_density`, zeros where the density is 0.

        Parameters
        ----------
        x : ndarray of shape (n, d)
            Points.

        Returns
        -------
        ndarray of shape (n, d)
            In nats by the coordinates' unit.
        """
        points = checked_points(x, self.n_dimensions)
        joint = self._log_parts(points)
        total = _log_sum(joint)
        shares = np.exp(joint - np.where(np.isfinite(total), total, 0.0))
        slope = np.zeros_like(points)
        for k, (share, root, df) in enumerate(zip(shares, self.packed.roots, self.packed.dfs)):
            z, squares = self._whiten(k, points)
            if df < np.inf:
                share = share * (df + self.n_dimensions) / (df + squares)
            slope -= share[:, np.newaxis] * times_matrix(z, root[0] if len(root) == 1 else root.T)
        return slope


def _log_sum(joint: Array) -> Array:
    """Log of the sum over parts; of a single one without rounding."""
    return joint[0] if len(joint) == 1 else log_mean_exp(joint, axis=0) + np.log(len(joint))


class Uniform(_OfParts):
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
        self.low, self.high = box_of(low, high)
        with np.errstate(over="ignore"):
            width = self.high - self.low
        if not np.all(np.isfinite(width)):
            raise ValueError(
                "low and high of Uniform must be finite; take Gaussian or StudentT on an open range"
            )
        self.center = frozen(self.low + 0.5 * width)
        self.scale = frozen(0.5 * width)
        log_norm = float(-np.sum(np.log(width)))
        self._pack(self.center, np.zeros(len(width)), log_norm, low=self.low, high=self.high)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Return n independent draws, shape (n, d)."""
        return rng.uniform(self.low, self.high, size=(n, self.n_dimensions))


class _Elliptical(_OfParts):
    """A function of |R (x - mean)|, where R'R is the inverse of a matrix; what is diagonal is kept
    as a vector.
    """

    def __init__(
        self, mean: ArrayLike, name: str, matrix: ArrayLike, log_norm: float, df: float = np.inf
    ) -> None:
        self.mean = self.center = vector_of("mean", mean)
        self._matrix = matrix_of(name, matrix, len(self.mean))
        self.scale = frozen(
            np.sqrt(self._matrix if self._matrix.ndim == 1 else np.diag(self._matrix))
        )
        self._factor, root = factors_of(name, self._matrix, self.scale)
        diagonal = root if root.ndim == 1 else np.diag(root)
        self._pack(self.mean, root, float(np.sum(np.log(diagonal)) + log_norm), df)

    @property
    def axes(self) -> Array:
        """Principal directions, columns of an array (d, d)."""
        return frozen(
            np.eye(self.n_dimensions) if self._matrix.ndim == 1 else linalg.eigh(self._matrix)[1]
        )

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Return n independent draws, shape (n, d)."""
        df = self.packed.dfs[0]
        stretch = 1.0 if df == np.inf else np.sqrt(df / rng.chisquare(df, size=(n, 1)))
        draws = rng.standard_normal((n, self.n_dimensions))
        return self.mean + stretch * times_matrix(draws, self._factor)

    def squared_distances(self, x: Array) -> Array:
        """Return (x - mean)' M^-1 (x - mean) for the covariance or scale matrix M.

        Parameters
        ----------
        x : array-like of shape (n, d)
            Points.

        Returns
        -------
        ndarray of shape (n,)
            The squared distances.
        """
        return self._whiten(0, checked_points(x, self.n_dimensions))[1]


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
        d = np.size(mean)
        super().__init__(mean, "covariance", covariance, -0.5 * d * LOG_TAU)

    @classmethod
    def fit(cls, points: ArrayLike) -> Self:
        """Return a Gaussian with the mean and the variances of points; correlations shrink as
        Ledoit and Wolf say, or less.

        Columns are standardised before, so that units don't matter. Shrinkage makes a direction
        that is much narrower than all columns, as along a strong correlation, far too wide: where
        that costs a half of the points more than 0.01 nats a point of its likelihood under a fit to
        the other half, it is lowered by powers of ten. Shrinkage vanishes as the number of points
        grows.

        Parameters
        ----------
        points : array-like of shape (n, d), n >= 3
            A row for each point.

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
        covariance = shrunk_covariance((array - mean) / spread)
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
        factor = check_scale(factor, "factor")
        check_callable(log_density, grad=grad)
        check_at_start("log_density", log_density, mode, ())
        if grad is not None:
            check_at_start("grad", grad, mode, mode.shape)
        functions = functions_for_climbs(log_density, grad)
        mode, covariance = mode_and_covariance(*functions, mode)
        return cls(mode, factor * covariance)

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
        factor = check_scale(factor, "factor")
        check_callable(log_density, grad=grad)
        points = numbers_of("starts", starts)
        if points.ndim != 2 or points.size == 0:
            raise ValueError(
                f"starts must have shape (n, d), a row for each start, got {points.shape}"
            )
        check_squares(points, "starts")
        values, slopes = functions_for_climbs(log_density, grad)
        spread = points.std(axis=0)
        scale = np.where(spread > 0, spread, 1.0)
        ends = climb(slopes, points, scale, Box.everywhere(len(scale)))
        position = ends.position[np.argsort(-ends.log_density)]
        gaussians: list[Gaussian] = []
        while len(position):
            highest, position = position[0], position[1:]
            try:
                mode, covariance = mode_and_covariance(values, slopes, highest)
                found = Gaussian(mode, factor * covariance)
            except ValueError:
                continue
            if all(part.squared_distances(mode[np.newaxis])[0] > _SAME**2 for part in gaussians):
                gaussians.append(found)
            position = position[found.squared_distances(position) > _SAME**2]
        if not gaussians:
            raise ValueError(
                f"no mode of log_density was found from {len(points)} starts: give starts at which"
                " it is finite, near its modes, or the base itself"
            )
        means = np.array([part.mean for part in gaussians])
        log_masses = values(means) - [part.packed.log_norms[0] for part in gaussians]
        return Mixture(gaussians, np.maximum(softmax(log_masses), 0.01))

    @property
    def covariance(self) -> Array:
        """Covariance, shape (d, d)."""
        return full_matrix(self._matrix)

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


class _TruncatedGaussian(_OfParts):
    """A Gaussian with independent coordinates in a box."""

    def __init__(self, gaussian: Gaussian, low: ArrayLike, high: ArrayLike) -> None:
        self._gaussian = gaussian
        self.low, self.high = box_of(low, high, gaussian.n_dimensions)
        self._lowest, self._highest = (
            frozen((x - gaussian.mean) / gaussian.scale) for x in (self.low, self.high)
        )
        mass = log_mass(self._lowest, self._highest)
        if not np.min(mass) > -1e8:  # beyond, rounding of the log density would matter
            raise ValueError(
                "low and high must not cut off the whole Gaussian; move its mean towards the box"
            )
        log_norm = gaussian.packed.log_norms[0] - np.sum(mass)
        self._pack(gaussian.mean, 1 / gaussian.scale, log_norm, low=self.low, high=self.high)
        levels = np.full((self.n_dimensions, 3), [0.25, 0.5, 0.75]).T
        self.center, self.scale = typical(self._quantiles(levels))

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Return n independent draws, shape (n, d)."""
        return self._quantiles(rng.random((n, self.n_dimensions)))

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
        self.df = check_scale(df, "df")
        if self.df < 0.1:
            raise ValueError(f"df must be at least 0.1, as draws overflow with less, got {self.df}")
        d = np.size(mean)
        log_gammas = gammaln(0.5 * d) - betaln(0.5 * self.df, 0.5 * d)
        log_norm = log_gammas - 0.5 * d * np.log(np.pi * self.df)
        super().__init__(mean, "scale", scale, log_norm, self.df)

    def __repr__(self) -> str:
        return f"StudentT(n_dimensions={self.n_dimensions}, df={self.df:g})"

    @property
    def scale_matrix(self) -> Array:
        """Scale matrix, shape (d, d)."""
        return full_matrix(self._matrix)


class Mixture(_OfParts):
    """A mixture of normalised bases.

    As a base for targets with several modes: chains start at each, whatever lies between.

    Parameters
    ----------
    components : sequence of Gaussian, StudentT, Uniform or Mixture
        The parts, all of one number of dimensions. The parts of a mixture are parts of this one.
    weights : array-like of shape (K,) or None, default=None
        Share of each component; their sum is divided out. None: equal shares.

    Attributes
    ----------
    components : tuple
        The parts.
    weights : ndarray of shape (n_parts,)
        Their shares, which sum to 1.
    center, scale : ndarray of shape (d,)
        Mean of the parts' centers, and root mean square of the parts' scales and of the distances
        of their centers from it.

    Raises
    ------
    TypeError
        If a component is another kind of base.
    ValueError
        If there is no component, dimensions differ, or weights aren't positive and finite.

    Examples
    --------
    >>> parts = [Gaussian([-3, 0], 1), StudentT([3, 0], 1, df=5)]
    >>> base = Mixture(parts, weights=[0.3, 0.7])
    >>> base.log_density(np.array([[-3.0, 0.0]])).round(4)
    array([-3.0404])
    """

    def __init__(self, components: Sequence[Any], weights: ArrayLike | None = None) -> None:
        try:
            components = tuple(components)
        except TypeError:
            raise TypeError(
                f"components must be a sequence of bases, got {components!r:.80}"
            ) from None
        if not components:
            raise ValueError("components must be at least one base, got none")
        for component in components:
            if not isinstance(component, _OfParts):
                raise TypeError(
                    "components must be Gaussian, StudentT, Uniform or Mixture, got"
                    f" {type(component).__name__}"
                )
        dimensions = {component.n_dimensions for component in components}
        if len(dimensions) > 1:
            raise ValueError(
                "components must have the same number of dimensions, got"
                f" {' and '.join(map(str, sorted(dimensions)))}"
            )
        shares = np.ones(len(components)) if weights is None else numbers_of("weights", weights)
        if shares.shape != (len(components),) or not np.all(shares > 0):
            raise ValueError(
                f"weights must be {len(components)} positive numbers, one for each component, got"
                f" {weights!r}"
            )
        shares = shares / shares.sum()
        parts: list[Any] = []
        part_shares: list[float] = []
        for component, share in zip(components, shares):
            is_mixture = isinstance(component, Mixture)
            parts += component.components if is_mixture else (component,)
            part_shares += list(share * component.weights) if is_mixture else [share]
        self.components = tuple(parts)
        self.weights = frozen(part_shares)
        self.n_dimensions = dimensions.pop()
        columns = [part.packed for part in parts]
        if any(column.roots.shape[1] > 1 for column in columns):
            columns = [column._replace(roots=full_roots(column.roots)) for column in columns]
        packed = Parts(*(frozen(np.concatenate(column)) for column in zip(*columns)))
        self.packed = packed._replace(log_norms=frozen(packed.log_norms + np.log(self.weights)))
        centers = np.array([part.center for part in parts])
        self.center = frozen(self.weights @ centers)
        squares = np.array([part.scale for part in parts]) ** 2 + (centers - self.center) ** 2
        self.scale = frozen(np.sqrt(self.weights @ squares))

    def __repr__(self) -> str:
        return f"Mixture(n_components={len(self.components)}, n_dimensions={self.n_dimensions})"

    def truncated(self, low: ArrayLike, high: ArrayLike) -> Mixture:
        """Return the mixture with each Gaussian restricted to a box and normalised there.

        Parameters
        ----------
        low, high : array-like of shape (d,), or float
            Corners of the box; infinite ones leave a side open.

        Returns
        -------
        Mixture
            With the same weights. Other parts stay as they are.

        Raises
        ------
        ValueError
            As `Gaussian.truncated`.

        Examples
        --------
        >>> half = Mixture([Gaussian(0, 1), Gaussian(2, 1)]).truncated(0, np.inf)
        >>> half.log_density(np.array([[0.0], [-1.0]])).round(4)
        array([-0.852,   -inf])
        """
        parts = [
            part.truncated(low, high) if isinstance(part, Gaussian) else part
            for part in self.components
        ]
        return Mixture(parts, self.weights)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Return n independent draws, shape (n, d)."""
        numbers = rng.multinomial(n, self.weights)
        drawn = [part.sample(m, rng) for part, m in zip(self.components, numbers)]
        return rng.permutation(np.concatenate(drawn))


def full_roots(roots: Array) -> Array:
    """The roots (K, d, d) of parts whose diagonals may be all that there is."""
    return roots if roots.shape[1] > 1 else roots * np.eye(roots.shape[2])


# ---- what may be given as a base
class _Independent(BaseDensity):
    """A frozen univariate distribution of SciPy for every coordinate."""

    def __init__(self, parts: tuple[Any, ...]) -> None:
        self.n_dimensions = len(parts)
        self._parts = parts
        quartiles = [
            np.asarray(part.ppf([0.25, 0.5, 0.75]))
            for part in parts
            if np.shape(part.median()) == ()
        ]
        if len(quartiles) < len(parts) or not np.all(np.isfinite(quartiles)):
            raise ValueError(
                "base must be frozen with valid numbers; give a list of distributions for several"
                " dimensions"
            )
        self.center, self.scale = typical(np.transpose(quartiles))

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Return n independent draws, shape (n, d)."""
        return np.column_stack([part.rvs(size=n, random_state=rng) for part in self._parts])

    def log_density(self, x: Array) -> Array:
        """Return the log density at points (n, d), shape (n,), in nats."""
        columns = checked_points(x, self.n_dimensions).T
        return np.sum([part.logpdf(x) for part, x in zip(self._parts, columns)], axis=0)


def shrunk_covariance(
    points: Array,
    *,
    fewest_to_halve: int = 20,
    negligible_loss: float = 0.01,  # nats a point
) -> Array:
    """The covariance (d, d) of standardised points (n, d), shrunk by the largest share of Ledoit
    and Wolf's intensity with which halves of the distinct points explain each other nearly as well
    as with the best.
    """
    from sklearn.covariance import ledoit_wolf  # slow to import

    covariance, most = ledoit_wolf(points, assume_centered=True)
    # a point that both halves held, as of resampled particles, would explain itself
    places = np.unique(points, axis=0, return_index=True)[1]
    if len(places) < fewest_to_halve:
        return covariance
    intensities = most * _SHARES_OF_SHRINKAGE
    first, second = np.array_split(points[np.sort(places)], 2)
    halves = (first, second), (second, first)
    losses = np.mean([_held_out_losses(*each, intensities) for each in halves], axis=0)
    chosen = int(np.argmax(losses <= losses.min() + negligible_loss))
    if chosen == 0:
        return covariance
    covariance = (1 - intensities[chosen]) * (points.T @ points) / len(points)
    return covariance + intensities[chosen] * np.mean(points**2) * np.eye(points.shape[1])


def _held_out_losses(
    points: Array,
    held_out: Array,
    intensities: Array,
    *,
    least_variance: float = 1e-13,  # in units of their mean
) -> Array:
    """Minus the mean log density of points that are held out, under normal densities whose
    covariances are shrunk by these intensities, up to a constant, in nats; infinite for singular
    ones.
    """
    variances, axes = np.linalg.eigh(points.T @ points / len(points))
    squares = np.mean((held_out @ axes) ** 2, axis=0)
    intensities = intensities[:, np.newaxis]
    shrunk = (1 - intensities) * variances + intensities * variances.mean()
    is_singular = shrunk.min(axis=1) < least_variance * variances.mean()
    shrunk = np.maximum(shrunk, least_variance * variances.mean())
    losses = 0.5 * np.sum(np.log(shrunk) + squares / shrunk, axis=1)
    return np.where(is_singular, np.inf, losses)


def as_base(base: Any, n_dimensions: int | None = None) -> Density:
    """Return a base: what is one already as it is, frozen distributions of `scipy.stats` in the
    form of one.

    Parameters
    ----------
    base : object with the members of `Density`, frozen distribution, or list of univariate ones
        ``multivariate_normal`` becomes a `Gaussian`, ``multivariate_t`` a `StudentT`; a univariate
        continuous distribution is a base for d = 1, a list of d of them a base with independent
        coordinates. If all of these are normal it is a `Gaussian`, if all are uniform a `Uniform`;
        else its gradient is unknown.
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
    missing = [name for name in _MEMBERS if not hasattr(base, name)]
    converted = _of_scipy(base, missing) if missing else base
    if n_dimensions is not None and converted.n_dimensions != n_dimensions:
        raise ValueError(
            f"base must have {n_dimensions} dimensions, got {converted.n_dimensions}; give one that"
            " fits"
        )
    return converted


_MEMBERS = ("sample", "log_density", "normalised", "n_dimensions", "center", "scale")


def _of_scipy(base: object, missing: list[str]) -> Density:
    """A base of frozen distributions, in a class with gradients where there is one."""
    if isinstance(base, type(stats.multivariate_normal())):
        return Gaussian(base.mean, base.cov)
    if isinstance(base, type(stats.multivariate_t())):
        return (
            Gaussian(base.loc, base.shape)
            if np.isinf(base.df)
            else StudentT(base.loc, base.shape, base.df)
        )
    parts = tuple(base) if isinstance(base, (list, tuple)) else (base,)
    families = [getattr(part, "dist", None) for part in parts]
    if families and all(isinstance(family, stats.rv_continuous) for family in families):
        independent = _Independent(parts)
        if all(isinstance(family, type(stats.norm)) for family in families):
            return Gaussian([part.mean() for part in parts], [part.var() for part in parts])
        if all(isinstance(family, type(stats.uniform)) for family in families):
            return Uniform(*np.transpose([part.support() for part in parts]))
        return independent
    lacks = f" without {', '.join(missing)}" if len(missing) < len(_MEMBERS) else ""
    raise TypeError(
        "base must be a Gaussian, StudentT or Uniform, a frozen distribution of scipy.stats"
        " (multivariate_normal, multivariate_t, or a univariate continuous one per dimension), or"
        f" an object with {', '.join(_MEMBERS[:-1])} and {_MEMBERS[-1]}; got"
        f" {type(base).__name__}{lacks}"
    )


def box_around(bounds: Any, d: int) -> Box:
    """The box of a pair (low, high), of None all of R^d."""
    if bounds is None:
        return Box.everywhere(d)
    try:
        low, high = bounds
        return Box(*box_of(low, high, d))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"bounds must be a pair (low, high) of numbers or arrays ({d},), got {bounds!r}:"
            f" {error}"
        ) from error


def within(base, bounds: Box):
    """The base on the box: a Gaussian is truncated to it; a box of its own must be that of
    `bounds`.
    """
    if isinstance(base, Uniform) and not np.array_equal(bounds, [base.low, base.high]):
        raise ValueError(
            "bounds must be the box of the Uniform base: the target is integrated over it and no"
            " further"
        )
    if bounds.has_sides and isinstance(base, (Gaussian, Mixture)):
        return base.truncated(*bounds)
    return base


# ---- parameters: checks that name them, factors, masses of intervals
def frozen(value: ArrayLike) -> Array:
    array = np.array(value, order="C")
    array.setflags(write=False)
    return array


def numbers_of(name: str, value: ArrayLike, infinite: bool = False) -> Array:
    """The numbers of a parameter as a read-only copy."""
    try:
        array = frozen(as_float64(value, name))
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be a number or a rectangular array of numbers, got {value!r}"
        ) from None
    if np.any(np.isnan(array)) or (not infinite and np.any(np.isinf(array))):
        raise ValueError(
            f"{name} must be free of NaN{'' if infinite else ' and infinite numbers'}; replace them"
        )
    return array


def checked_points(x: ArrayLike, d: int) -> Array:
    """Points (n, d) that a base was given."""
    points = np.asarray(x, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != d:
        raise ValueError(f"x must have shape (n, {d}), a row for each point, got {points.shape}")
    return points


def vector_of(name: str, value: ArrayLike, d: int | None = None, infinite: bool = False) -> Array:
    """A vector (d,); a number stands for one of length 1, or d times for itself where d
    is known.
    """
    array = numbers_of(name, value, infinite)
    if array.ndim == 0:
        array = frozen(np.full(d or 1, array))
    if array.ndim != 1 or len(array) != (d or max(len(array), 1)):
        raise ValueError(
            f"{name} must have shape ({d or 'd'},), one number per dimension, got {array.shape}"
        )
    return array


def box_of(low: ArrayLike, high: ArrayLike, d: int | None = None) -> tuple[Array, Array]:
    """Corners of a box; where d isn't known, the longer of both says what it is."""
    lows = numbers_of("low", low, infinite=True)
    highs = numbers_of("high", high, infinite=True)
    d = d or max(lows.size, highs.size)
    lows = vector_of("low", lows, d, infinite=True)
    highs = vector_of("high", highs, d, infinite=True)
    if not np.all(lows < highs):
        i = int(np.argmin(lows < highs))
        raise ValueError(
            f"low must be below high, but is {lows[i]:g} >= {highs[i]:g} in column {i}; swap them?"
        )
    return lows, highs


def matrix_of(name: str, value: ArrayLike, d: int) -> Array:
    """A symmetric matrix (d, d), or (d,) where it is diagonal; its diagonal is positive."""
    matrix = numbers_of(name, value)
    if matrix.ndim == 0:
        matrix = np.full(d, matrix)
    if matrix.shape not in ((d,), (d, d)):
        raise ValueError(
            f"{name} must be a number or have shape ({d},) or ({d}, {d}), as mean has length {d},"
            f" got {matrix.shape}"
        )
    variances = matrix if matrix.ndim == 1 else np.diag(matrix)
    if not np.all(variances > 0):
        raise ValueError(
            f"{name} must be positive{' on its diagonal' if matrix.ndim == 2 else ''}: give"
            " variances above 0, and leave out coordinates that have none"
        )
    if matrix.ndim == 2:
        spread = np.sqrt(variances)
        if np.any(np.abs(matrix - matrix.T) > 1e-8 * spread * spread[:, np.newaxis]):
            raise ValueError(
                f"{name} must be symmetric; average it with its transpose if the difference means"
                " nothing"
            )
        matrix = 0.5 * (matrix + matrix.T)
    return frozen(
        variances if matrix.ndim == 1 or not np.any(matrix - np.diag(variances)) else matrix
    )


def factors_of(name: str, matrix: Array, spread: Array) -> tuple[Array, Array]:
    """Lower triangular L with matrix = L L', and its inverse; both (d,) where the matrix is."""
    if matrix.ndim == 1:
        return spread, frozen(1 / spread)
    try:  # of the correlations, so that units don't matter
        factor = linalg.cholesky(matrix / np.outer(spread, spread), lower=True)
    except linalg.LinAlgError:
        factor = np.zeros_like(matrix)
    if np.min(np.diag(factor)) ** 2 < 10 * len(matrix) * np.finfo(np.float64).eps:
        raise ValueError(
            f"{name} must be positive definite; drop dimensions that depend on others, or add a"
            " little to its diagonal"
        )
    root = linalg.solve_triangular(factor, np.eye(len(matrix)), lower=True)
    return frozen(spread[:, np.newaxis] * factor), frozen(root / spread)


def full_matrix(matrix: Array) -> Array:
    return matrix if matrix.ndim == 2 else frozen(np.diag(matrix))


def times_matrix(x: Array, matrix: Array) -> Array:
    """The matrix, or the diagonal matrix, times every row of x."""
    return x * matrix if matrix.ndim == 1 else x @ matrix.T


def typical(quartiles: Array) -> tuple[Array, Array]:
    """Medians and, from interquartile ranges, standard deviations of normal distributions:
    quartiles are (3, d).
    """
    return frozen(quartiles[1]), frozen((quartiles[2] - quartiles[0]) / _NORMAL_RANGE)


def log_mass(low: Array, high: Array) -> Array:
    """Log probability of (low, high) under the standard normal, exact to rounding in far tails and
    narrow ranges.
    """
    # reflected to the left, where logs are accurate
    a = np.where(low > 0, -high, low)
    b = np.where(low > 0, -low, high)
    nodes, weights = np.polynomial.legendre.leggauss(20)
    with np.errstate(all="ignore"):  # of the three, each fails where it isn't used
        both_sides = np.log((erf(b / np.sqrt(2)) - erf(a / np.sqrt(2))) / 2)
        far = log_ndtr(b) + np.log1p(-np.exp(log_ndtr(a) - log_ndtr(b)))
        half = (b - a) / 2
        middle = a + (b - a) / 2
        t = half * nodes[:, np.newaxis]
        narrow = stats.norm.logpdf(middle) + np.log(
            half * (weights @ np.exp(-t * (middle + t / 2)))
        )
        return np.where(b > 0, both_sides, np.where(-a * (b - a) < 1, narrow, far))
