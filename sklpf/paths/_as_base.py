"""What may be given as a base: objects that are one, and distributions of scipy.stats; and what
becomes of one on a box.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from sklpf._utils.numbers import Array
from sklpf.paths._base_numbers import checked_points, typical
from sklpf.paths._bases import BaseDensity, Density, Gaussian, Mixture, StudentT, Uniform


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
        return np.sum(
            [
                part.logpdf(column)
                for part, column in zip(self._parts, checked_points(x, self.n_dimensions).T)
            ],
            axis=0,
        )


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
    converted = base if all(hasattr(base, name) for name in _MEMBERS) else _of_scipy(base)
    if n_dimensions is not None and converted.n_dimensions != n_dimensions:
        raise ValueError(
            f"base must have {n_dimensions} dimensions, got {converted.n_dimensions}; give one that"
            " fits"
        )
    return converted


_MEMBERS = ("sample", "log_density", "normalised", "n_dimensions", "center", "scale")


def _of_scipy(base: Any) -> Density:
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
    missing = [name for name in _MEMBERS if not hasattr(base, name)]
    lacks = f" without {', '.join(missing)}" if len(missing) < len(_MEMBERS) else ""
    raise TypeError(
        "base must be a Gaussian, StudentT or Uniform, a frozen distribution of scipy.stats"
        " (multivariate_normal, multivariate_t, or a univariate continuous one per dimension), or"
        f" an object with {', '.join(_MEMBERS[:-1])} and {_MEMBERS[-1]}; got"
        f" {type(base).__name__}{lacks}"
    )


def box_around(bounds, d):
    try:
        low, high = bounds
        box = np.stack(
            [np.broadcast_to(np.asarray(side, dtype=np.float64), (d,)) for side in (low, high)]
        )
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"bounds must be a pair (low, high) of numbers or arrays ({d},), got {bounds!r}"
        ) from error
    if np.isnan(box).any() or not np.all(box[0] < box[1]):
        raise ValueError("bounds must have low < high in every dimension, without NaN")
    box.setflags(write=False)
    return box


def within(base, bounds):
    """The base on the box: a Gaussian is truncated to it; a box of its own must be that of
    `bounds`.
    """
    if isinstance(base, Uniform) and (
        bounds is None or np.any(bounds != np.stack([base.low, base.high]))
    ):
        raise ValueError(
            "bounds must be the box of the Uniform base: the target is integrated over it and no"
            " further"
        )
    if bounds is not None and isinstance(base, (Gaussian, Mixture)):
        return base.truncated(*bounds)
    return base
