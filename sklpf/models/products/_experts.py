"""Products of experts: densities of linear filters, multiplied."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, erfcx, gammaln

from sklpf._utils.numbers import Array
from sklpf.models.products._tails import dependent_flats, index_of_bases
from sklpf.paths._kernel_path import density_at, read_only

SMALLEST_TRUSTED_INDEX = (
    1.0  # of tails that chains can be trusted with: with .5 RTS is 3 to 7 errors off
)
SMALLEST_CLOSED_INDEX = 0.5  # that training allows where log Z is closed
_LARGEST_LOG_EXPONENT = 20.0  # such an expert is a Gaussian
_SLOPE_AT_1 = np.sqrt(2 / np.pi)  # E |u| of a standard normal u


class Experts(NamedTuple):
    """log f(x) = constant - sum_l E(filters_l @ x): E(u) = |u|, or exponents_l log(1 + u²) where
    there are some.
    """

    filters: Array  # (K, d)
    exponents: Array | None  # (K,), of Student-t experts
    constant: float = 0.0

    @property
    def packed(self) -> Any:
        """The experts as a compiled density."""
        from sklpf.models.products._path_kernels import LaplaceExperts, StudentTExperts

        filters = read_only(self.filters)
        if self.exponents is None:
            return LaplaceExperts(filters, self.constant)
        return StudentTExperts(filters, read_only(self.exponents), self.constant)

    def log_density(self, x: Array) -> Array:
        """Return log f at points (n, d), shape (n,), in nats."""
        return density_at(self.packed, x)[0]

    def grad(self, x: Array) -> Array:
        """Return the gradient of log f at points (n, d), shape (n, d)."""
        return density_at(self.packed, x)[1]

    def forces(self, u: Array) -> Array:
        """Return dE / du of every expert, of filter outputs (n, K)."""
        return np.sign(u) if self.exponents is None else 2 * self.exponents * u / (1 + u**2)

    def whitened(self) -> tuple[Experts, Array]:
        """Return the experts of y, x = root @ y, in which f has scales of about one, and that root
        (d, d).

        The constant grows by log |det root|, so that log Z stays. Directions are scaled by the
        precision sum_l w_l filters_l filters_lᵀ with w = exponents or 1, which is right for
        complete products of one exponent. The size follows from E[x @ grad E] = d, which holds for
        the density, and is made to hold for N(0, I).
        """
        weights = np.ones(len(self.filters)) if self.exponents is None else self.exponents
        size = np.sqrt(np.mean(self.filters**2))
        upper = np.linalg.qr(np.sqrt(weights)[:, np.newaxis] * (self.filters / size), mode="r")
        root = np.linalg.inv(upper * np.sign(np.diag(upper))[:, np.newaxis]) / size
        root = root * self._size(np.linalg.norm(self.filters @ root, axis=1))
        constant = self.constant + float(np.linalg.slogdet(root)[1])
        return Experts(self.filters @ root, self.exponents, constant), root

    def _size(self, deviations):
        """The factor of normal filter outputs with these deviations at which E[x @ grad E] = d."""
        d = self.filters.shape[1]
        if self.exponents is None:
            return d / (_SLOPE_AT_1 * deviations.sum())

        exponents = self.exponents

        def excess(log_size):
            s = np.exp(log_size) * deviations
            return 2 * exponents @ (1 - np.sqrt(np.pi / 2) / s * erfcx(1 / (np.sqrt(2) * s))) - d

        return float(np.exp(brentq(excess, -30.0, 300.0)))


def closed_log_partition(experts: Experts) -> float:
    """Return log Z of a complete product, as many experts as dimensions."""
    d = len(experts.filters)
    log_integrals = (
        d * np.log(2.0) if experts.exponents is None else np.sum(_log_integral(experts.exponents))
    )
    return float(experts.constant + log_integrals - np.linalg.slogdet(experts.filters)[1])


def _log_integral(exponents):
    """log of the integral of (1 + u²)^-exponent."""
    return 0.5 * np.log(np.pi) + gammaln(exponents - 0.5) - gammaln(exponents)


def sample_complete(experts: Experts, n: int, rng: np.random.Generator) -> Array:
    """Return n exact draws from a complete product, shape (n, d)."""
    shape = n, len(experts.filters)
    if experts.exponents is None:
        u = rng.laplace(size=shape)
    else:
        df = 2 * experts.exponents - 1
        u = rng.standard_t(df, size=shape) / np.sqrt(df)
    return np.ascontiguousarray(np.linalg.solve(experts.filters, u.T).T, dtype=np.float64)


class ProductFamily:
    """Products of K experts on R^d with parameters [filters, log exponents] in one vector, to be
    trained.

    Parameters
    ----------
    n_components, n_features : int
        K and d.
    heavy : bool
        Student-t experts, which have exponents, instead of Laplace ones.
    """

    def __init__(self, n_components: int, n_features: int, heavy: bool):
        self.n_components = n_components
        self.n_features = n_features
        self.heavy = heavy

    def pack(self, experts: Experts) -> Array:
        """Return the vector of some experts."""
        parts = [experts.filters.ravel()]
        if experts.exponents is not None:
            parts.append(np.log(experts.exponents))
        return np.concatenate(parts)

    def unpack(self, parameters: Array) -> Experts:
        """Return the experts of a vector."""
        filters, rest = np.split(parameters, [self.n_components * self.n_features])
        exponents = np.exp(np.minimum(rest, _LARGEST_LOG_EXPONENT)) if self.heavy else None
        return Experts(filters.reshape(self.n_components, self.n_features), exponents)

    def log_density(self, parameters: Array, x: Array) -> Array:
        """Return log f at points (n, d), shape (n,), in nats."""
        return self.unpack(parameters).log_density(x)

    def grad(self, parameters: Array, x: Array) -> Array:
        """Return the gradient of log f by the points, shape (n, d)."""
        return self.unpack(parameters).grad(x)

    def grad_parameters(self, parameters: Array, x: Array, weights: Array) -> Array:
        """Return the gradient of weights @ log f by the parameters, shape (P,)."""
        experts = self.unpack(parameters)
        u = x @ experts.filters.T
        parts = [-((experts.forces(u) * weights[:, np.newaxis]).T @ x).ravel()]
        if experts.exponents is not None:
            parts.append(-experts.exponents * (weights @ np.log1p(u**2)))
        return np.concatenate(parts)

    def project(self, parameters: Array) -> Array:
        """Return parameters of a product with a normaliser: exponents that are too small are raised
        to a common one. Filters must span R^d, else none has.
        """
        if not self.heavy or not np.all(np.isfinite(parameters)):
            return parameters
        experts = self.unpack(parameters)
        assert experts.exponents is not None  # said by heavy
        smallest = (
            SMALLEST_CLOSED_INDEX
            if self.n_components == self.n_features
            else SMALLEST_TRUSTED_INDEX
        )
        exponents = experts.exponents
        if index_of_bases(experts.filters, exponents) >= smallest:
            return parameters
        flats = dependent_flats(experts.filters, exponents)

        def excess(log_floor):
            return flats.smallest_index(np.maximum(exponents, np.exp(log_floor))) - smallest

        if excess(-np.inf) >= 0 or excess(_LARGEST_LOG_EXPONENT) < 0:
            return parameters
        floor = brentq(excess, -_LARGEST_LOG_EXPONENT, _LARGEST_LOG_EXPONENT)
        raised = np.maximum(parameters[experts.filters.size :], floor + 1e-9)
        return np.concatenate([parameters[: experts.filters.size], raised])

    def log_partition(self, parameters: Array) -> tuple[float, Array]:
        """Return log Z of a complete product and its gradient (P,); infinite where there is no
        normaliser.
        """
        experts = self.unpack(parameters)
        if experts.exponents is not None and experts.exponents.min() <= 0.5:
            return np.inf, np.zeros_like(parameters)
        parts = [-np.linalg.inv(experts.filters).T.ravel()]
        if experts.exponents is not None:
            parts.append(
                experts.exponents * (digamma(experts.exponents - 0.5) - digamma(experts.exponents))
            )
        return closed_log_partition(experts), np.concatenate(parts)
