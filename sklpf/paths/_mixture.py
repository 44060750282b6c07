"""Mixtures of bases: for targets with several modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from sklpf.paths._base_numbers import Array, checked_points, frozen, full_matrix, numbers_of
from sklpf.paths._bases import Base, Uniform
from sklpf.paths._elliptical import Gaussian, StudentT, _TruncatedGaussian


class MixtureParameters(NamedTuple):
    """A mixture of K parts for compiled programs.

    Part k has the density 0 outside of its box. Inside, with z = roots[k] @ (x - means[k]), its log
    density in nats is log_norms[k] - |z|² / 2, or where dfs[k] is finite log_norms[k] -
    (dfs[k] + d) / 2 log(1 + |z|² / dfs[k]). Logs of weights are in log_norms.
    """

    means: Array  # (K, d)
    roots: Array  # (K, d, d), lower triangular
    dfs: Array  # (K,)
    log_norms: Array  # (K,)
    low: Array  # (K, d)
    high: Array  # (K, d)


class Mixture(Base):
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
    >>> base = Mixture(
    ...     [Gaussian([-3, 0], 1), StudentT([3, 0], 1, df=5)], weights=[0.3, 0.7]
    ... )
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
            if not isinstance(
                component, (Gaussian, StudentT, Uniform, Mixture, _TruncatedGaussian)
            ):
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
        centers = np.array([part.center for part in parts])
        self.center = frozen(self.weights @ centers)
        squares = np.array([part.scale for part in parts]) ** 2 + (centers - self.center) ** 2
        self.scale = frozen(np.sqrt(self.weights @ squares))

    def __repr__(self) -> str:
        return f"Mixture(n_components={len(self.components)}, n_dimensions={self.n_dimensions})"

    @property
    def packed(self) -> MixtureParameters:
        """The parameters as compiled programs take them."""
        columns = map(frozen, zip(*map(_packed_part, self.components)))
        means, roots, dfs, log_norms, low, high = columns
        return MixtureParameters(
            means, roots, dfs, frozen(log_norms + np.log(self.weights)), low, high
        )

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

    def _joint(self, x: Array) -> Array:
        """Log of weight times density of each part, (K, n)."""
        values = np.array([part.log_density(x) for part in self.components])
        return values + np.log(self.weights)[:, np.newaxis]

    def log_density(self, x: Array) -> Array:
        """Return the log density at points (n, d), shape (n,), in nats."""
        return logsumexp(self._joint(checked_points(x, self.n_dimensions)), axis=0)

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
        joint = self._joint(points)
        total = logsumexp(joint, axis=0)
        shares = np.exp(joint - np.where(np.isfinite(total), total, 0.0))
        slopes = np.array([part.grad_log_density(points) for part in self.components])
        return np.einsum("kn,knd->nd", shares, slopes)


def _packed_part(part: Any) -> tuple[Array, Array, float, float, Array, Array]:
    """Mean, root, degrees of freedom, log norm and box of a part, as in `MixtureParameters`."""
    d = part.n_dimensions
    open_low = np.full(d, -np.inf)
    open_high = np.full(d, np.inf)
    own = part.packed
    if isinstance(part, Uniform):
        return part.center, np.zeros((d, d)), np.inf, own.log_norm, own.low, own.high
    if isinstance(part, _TruncatedGaussian):
        root = full_matrix(own.diagonal)
        return own.mean, root, np.inf, own.log_norm, own.low, own.high
    df = part.df if isinstance(part, StudentT) else np.inf
    return own.mean, own.root, df, own.log_norm, open_low, open_high
