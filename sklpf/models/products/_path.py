"""Products of experts, densities of linear filters, multiplied; how slowly the tails of a product
of Student-t experts may fall; and the path to it from a base with the right tails.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.optimize import brentq
from scipy.special import erfcx, gammaln

from sklpf._utils.numbers import Array, Booleans, Integers
from sklpf._utils.random import Stream
from sklpf._utils.warnings import Alarm
from sklpf.partition import HAIS
from sklpf.partition.alarms import raised
from sklpf.paths import CompiledDensityPath, Gaussian, Points, StudentT, read_only

_ROUNDING = 1e-7  # of a distance from a span, as a share of the filter's length
SMALLEST_TRUSTED_INDEX = (
    1.0  # of tails that chains can be trusted with: with .5 RTS is 3 to 7 errors off
)
_SLOPE_AT_1 = np.sqrt(2 / np.pi)  # E |u| of a standard normal u

# Of the path.
_MOST_DF = 8.0  # of the base
# Up to so many scales of the density the tails may fall more slowly than they do in the end; the
# least index that they must then have. With one of -.1 up to 10 scales errors begin, up to 30 with
# .4 there are none.
_NEAR = {10.0: 0.0, 100.0: SMALLEST_TRUSTED_INDEX}
# of the default estimator: with 1000, two in five runs on 72 experts with heavy tails don't
# converge
_N_LEVELS = 5000
_TOO_SMALL = (
    "exponents_ are too small: the tail index of the product is {:.3g} and must be above 0, else"
    " the density has no normaliser; raise the smallest ones"
)


class TailIndex(NamedTuple):
    """The alpha with which the tails of a product fall, r^-(d + alpha) at the slowest.

    Attributes
    ----------
    alpha : float
        At or below 0 the product has no normaliser.
    at_least : float
        A certain lower bound of alpha; less where dependent filters are too many to look at all
        their sets.
    """

    alpha: float
    at_least: float


def tail_index(filters: Array, exponents: Array, width: float = 0.0) -> TailIndex:
    """Return the tail index of a product of Student-t experts.

    Parameters
    ----------
    filters : ndarray of shape (K, d)
        In coordinates in which the density has scales of about one.
    exponents : ndarray of shape (K,)
        All above 0.
    width : float, default=0.0
        As of `dependent_flats`.
    """
    flats = dependent_flats(filters, exponents, width)
    alpha = flats.smallest_index(exponents)
    if flats.are_all:
        return TailIndex(alpha, alpha)
    return TailIndex(alpha, min(alpha, index_of_bases(filters, exponents)))


class Flats(NamedTuple):
    """Sets of experts in which filters depend on each other, and which are closed under their span.

    Experts count together where their filters are parallel, and not at all where these are zero.

    Attributes
    ----------
    groups : ndarray of bool of shape (M, K)
        The experts with parallel filters.
    members : ndarray of bool of shape (n, M)
        The groups of each flat; the first flat is empty.
    ranks : ndarray of shape (n,)
        Dimensions of their spans.
    n_dimensions : int
        d.
    are_all : bool
        Whether no other can matter.
    """

    groups: Booleans
    members: Booleans
    ranks: Integers
    n_dimensions: int
    are_all: bool

    def smallest_index(self, exponents: Array) -> float:
        """Return the tail index that these flats give.

        Along a direction experts whose filters are orthogonal to it stay as they are, all others
        fall as r^-2e. Experts that stay form a flat F, and do so in d - rank F dimensions. So alpha
        is the minimum over all flats F but the whole of 2 (sum of the exponents outside F) - (d -
        rank F). The smallest is that of a flat of dependent filters, maybe empty, with the largest
        of the other exponents beside it.
        """
        d = self.n_dimensions
        sums = self.groups @ exponents
        outside = np.sort(np.where(self.members, 0.0, sums), axis=1)[:, :-d:-1]  # d - 1 largest
        rest = sums.sum() - self.members @ sums
        smallest = np.inf
        for n_beside in range(d):
            n_open = d - self.ranks - n_beside
            left = rest - outside[:, :n_beside].sum(axis=1)
            smallest = min(smallest, np.min((2 * left - n_open)[n_open > 0], initial=np.inf))
        return float(smallest)


def index_of_bases(filters: Array, exponents: Array) -> float:
    """Return an alpha that the tail index of a product is at least, at little cost.

    Bases of R^d are taken out of the product one after the other, with as large an exponent s as
    all of their experts have left. Of each at least d - rank F experts lie outside a flat F, so
    that the index is at least 2 (sum of s) - 1, where that is above 0.
    """
    n_components, d = filters.shape
    left = exponents.copy()
    total = 0.0
    for _ in range(2 * n_components // d):
        if np.count_nonzero(left) < d:
            break
        basis = _basis(filters, left)
        if len(basis) < d:
            break
        share = left[basis].min()
        total += share
        left[basis] -= share
    return float(2 * total - 1)


def dependent_flats(filters: Array, exponents: Array, width: float = 0.0) -> Flats:
    """Return the flats of dependent filters.

    They are found from all sets of filters where these are few, else from the dependencies on some
    bases of R^d.

    Parameters
    ----------
    filters : ndarray of shape (K, d)
        In coordinates in which the density has scales of about one.
    exponents : ndarray of shape (K,)
        Bases with large ones are looked at.
    width : float, default=0.0
        A filter lies in a span if its distance from it is at most this: such experts stay as they
        are up to 1 / width scales of the density.
    """
    most_subsets = 1000  # of experts that are looked at one by one
    n_bases = 20  # of R^d, that are looked at where subsets are more
    d = filters.shape[1]
    groups = _parallel_groups(filters, width)
    lengths = np.linalg.norm(filters, axis=1)
    filters = filters[np.where(groups, lengths, 0.0).argmax(axis=1)]
    exponents = groups @ exponents
    n_groups = len(groups)
    found: dict[tuple[int, ...], int] = {(): 0}
    rank = len(_basis(filters, exponents, width))
    if rank < d:
        found[tuple(range(n_groups))] = rank
    sizes = range(2, min(d, n_groups))
    few = sum(comb(n_groups, size) for size in sizes) <= most_subsets
    if few:
        for size in sizes:
            _add_spans(found, filters, size, width)
    elif rank == d:
        rng = np.random.default_rng(0)
        weights = exponents
        for _ in range(n_bases):
            basis = _basis(filters, weights, width)
            if len(basis) == d:
                _add_dependencies(found, filters, basis, width)
            weights = exponents * rng.exponential(size=n_groups)
    members = np.array([np.isin(np.arange(n_groups), flat) for flat in found])
    ranks = np.array(list(found.values()))
    # Where no basis shows a dependency there is none: filters are in general position.
    return Flats(groups, members, ranks, d, few or len(found) == 1)


def _parallel_groups(filters: Array, width: float) -> Booleans:
    """Filters that are not zero, by groups of parallel ones (M, K)."""
    lengths = np.linalg.norm(filters, axis=1)
    left = np.flatnonzero(lengths > width)
    left = left[np.argsort(-lengths[left], kind="stable")]
    groups = []
    while len(left):
        axis = filters[left[0]] / lengths[left[0]]
        apart = np.linalg.norm(filters[left] - np.outer(filters[left] @ axis, axis), axis=1)
        parallel = apart <= np.maximum(width, _ROUNDING * lengths[left])
        groups.append(np.isin(np.arange(len(filters)), left[parallel]))
        left = left[~parallel]
    return np.array(groups).reshape(-1, len(filters))


def _basis(filters: Array, weights: Array, width: float = 0.0) -> Integers:
    """Experts with independent filters, of large weights, as many as there are."""
    lengths = np.linalg.norm(filters, axis=1)
    # scipy.linalg.qr with pivoting takes ten times as long for a few filters
    upper, order, *_ = linalg.lapack.dgeqp3((filters * weights[:, np.newaxis]).T)
    n = min(upper.shape)
    chosen = order[:n] - 1
    apart = np.abs(np.diag(upper)[:n])
    least = weights[chosen] * np.maximum(width, _ROUNDING * lengths[chosen])
    return chosen[np.logical_and.accumulate((apart > least) & (apart > 0))]


def _add_spans(found: dict, filters: Array, size: int, width: float) -> None:
    """Add the flats that some number of filters span."""
    lengths = np.linalg.norm(filters, axis=1)
    subsets = np.array(list(combinations(range(len(filters)), size)))
    axes, upper = np.linalg.qr(np.swapaxes(filters[subsets], 1, 2))
    slack = np.maximum(width, _ROUNDING * lengths)
    independent = np.abs(np.einsum("nii->ni", upper)) > slack[subsets]
    axes = axes[independent.all(axis=1)]
    along = np.einsum("kd,nds->nks", filters, axes)
    apart = np.linalg.norm(filters - np.einsum("nks,nds->nkd", along, axes), axis=2)
    inside = apart <= slack
    for flat in inside[inside.sum(axis=1) > size]:
        found.setdefault(tuple(np.flatnonzero(flat).tolist()), size)


def _add_dependencies(found: dict, filters: Array, basis: NDArray, width: float) -> None:
    """Add the linear dependencies that show in the coefficients of all filters in a basis of R^d.

    A filter that is a combination of some basis filters spans a flat with these; so do the filters
    in the span of all basis filters but one.
    """
    normals = np.linalg.inv(filters[basis])
    apart = np.abs(filters @ normals) / np.linalg.norm(normals, axis=0)
    slack = np.maximum(width, _ROUNDING * np.linalg.norm(filters, axis=1))
    depends = apart > slack[:, np.newaxis]  # (K, d), on each of the basis
    others = np.delete(depends, basis, axis=0)
    supports = [*others, *(others[~others[:, b]].any(axis=0) for b in range(len(basis)))]
    spans = np.unique([support for support in supports if not support.all()], axis=0)
    for span in spans.reshape(-1, len(basis)):
        flat = np.flatnonzero(~depends[:, ~span].any(axis=1))
        rank = int(span.sum())
        if len(flat) > rank:
            found.setdefault(tuple(flat.tolist()), rank)


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
        from sklpf.models.products._path_kernels import PackedExperts

        exponents = np.empty(0) if self.exponents is None else self.exponents
        return PackedExperts(read_only(self.filters), read_only(exponents), self.constant)

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
            s = np.maximum(np.exp(log_size) * deviations, np.finfo(float).tiny)  # 0 of zero filters
            return 2 * exponents @ (1 - np.sqrt(np.pi / 2) / s * erfcx(1 / (np.sqrt(2) * s))) - d

        return float(np.exp(brentq(excess, -30.0, 300.0)))


def closed_log_partition(experts: Experts) -> float:
    """Return log Z of a complete product, as many experts as dimensions."""
    exponents = experts.exponents
    if exponents is None:
        log_integrals = len(experts.filters) * np.log(2.0)
    else:  # of (1 + u²)^-exponent
        log_integrals = np.sum(0.5 * np.log(np.pi) + gammaln(exponents - 0.5) - gammaln(exponents))
    return float(experts.constant + log_integrals - np.linalg.slogdet(experts.filters)[1])


def sample_complete(experts: Experts, n: int, rng: np.random.Generator) -> Array:
    """Return n exact draws from a complete product, shape (n, d)."""
    shape = n, len(experts.filters)
    if experts.exponents is None:
        u = rng.laplace(size=shape)
    else:
        df = 2 * experts.exponents - 1
        u = rng.standard_t(df, size=shape) / np.sqrt(df)
    return np.ascontiguousarray(np.linalg.solve(experts.filters, u.T).T, dtype=np.float64)


class ProductPath(CompiledDensityPath):
    """Path from a base with the right tails to a product of experts, in coordinates y of scales
    about one.

    x = mean + root @ y.

    The base is N(0, I) for Laplace experts; for Student-t ones a multivariate t with min(8, alpha)
    degrees of freedom, alpha the tail index of the product. Where filters are nearly dependent
    (within a tenth, in these coordinates) alpha is that of dependent ones, but at least 1.

    Parameters
    ----------
    experts : Experts
        The experts, as a function of x - mean, with K >= d filters that span R^d.
    mean : ndarray of shape (d,)
        Mean of the rows.

    Raises
    ------
    ValueError
        If the product has no normaliser.

    Examples
    --------
    >>> from sklpf import ProductOfExperts
    >>> path = ProductOfExperts.from_parameters(
    ...     [[1.0, 0.0], [0.0, 1.0]]
    ... ).path()  # Laplace densities
    >>> type(path).__name__, round(path.closed_log_partition(), 4)  # 2 log 2
    ('ProductPath', 1.3863)
    """

    _kernels = "sklpf.models.products._path_kernels"

    def __init__(self, experts: Experts, mean: Array):
        _check(experts)
        self.mean = mean
        self.experts, self.root = experts.whitened()
        center = np.zeros(experts.filters.shape[1])
        base: Gaussian | StudentT = Gaussian(center, 1.0)
        self.tail_alarms = ()
        if experts.exponents is not None:
            filters = self.experts.filters
            far_out = tail_index(filters, experts.exponents)
            if not far_out.alpha > 0:
                raise ValueError(_TOO_SMALL.format(far_out.alpha))
            near = {r: tail_index(filters, experts.exponents, 1 / r).alpha for r in _NEAR}
            self.tail_alarms = _alarms(far_out, near)
            df = min(_MOST_DF, far_out.alpha, max(SMALLEST_TRUSTED_INDEX, min(near.values())))
            base = StudentT(center, 1.0, df)
        super().__init__(base)

    def _packed_target(self):
        return self.experts.packed

    @property
    def is_complete(self) -> bool:
        """True if there are as many experts as dimensions."""
        return len(self.experts.filters) == self.n_dimensions

    @property
    def closed_log_partition(self) -> Callable[[], float]:
        """A function that returns log Z in nats."""
        self._require_complete()
        return lambda: closed_log_partition(self.experts)

    @property
    def sample_target(self) -> Callable[[int, Stream], Points]:
        """A function of n and a stream: the state of n chains, exact draws from the product."""
        self._require_complete()
        return lambda n, stream: self.at(sample_complete(self.experts, n, stream.generator()))

    def _require_complete(self):
        if not self.is_complete:
            raise AttributeError(
                "only products with as many experts as features are known in closed form: choose"
                " HAIS"
            )

    def default_estimator(self) -> HAIS:
        """Return `HAIS`, for products that are not complete."""
        return HAIS(n_temperatures=_N_LEVELS)


def _alarms(far_out: TailIndex, near: dict[float, float]) -> tuple[Alarm, ...]:
    """Why chains are not to be trusted, where tails are so heavy that they stay for long
    far out.
    """
    slow = [radius for radius, least in _NEAR.items() if near[radius] < least]
    if far_out.at_least < SMALLEST_TRUSTED_INDEX:
        index = f"{far_out.alpha:.3g}"
        if far_out.at_least < far_out.alpha:
            index = f"from {far_out.at_least:.3g} to {far_out.alpha:.3g}, as many filters depend"
        needed = SMALLEST_TRUSTED_INDEX
        return (raised("heavy-tails", "product", "product", index=index, needed=needed),)
    if slow:
        radius = slow[0]
        return (
            raised(
                "heavy-tails",
                "dependent filters",
                "product",
                radius=radius,
                index=near[radius],
                needed=_NEAR[radius],
            ),
        )
    return ()


def _check(experts: Experts) -> None:
    # of which squares and products of a few are numbers, and of its inverse
    smallest_filter = 1e-100
    largest_exponent = 1e12
    n_components, d = experts.filters.shape
    largest = float(np.abs(experts.filters).max(initial=0.0))  # no float32, which has no 1e100
    if largest and not smallest_filter < largest < 1 / smallest_filter:
        raise ValueError(
            f"components_ must have entries of a size between {smallest_filter:g} and"
            f" {1 / smallest_filter:g}, got {largest:.3g}: rescale X or the components"
        )
    if experts.exponents is not None and experts.exponents.max() > largest_exponent:
        raise ValueError(
            f"exponents_ must be at most {largest_exponent:g}, got"
            f" {experts.exponents.max():.3g}: lower the largest ones"
        )
    if n_components < d or np.linalg.matrix_rank(experts.filters) < d:
        raise ValueError(
            f"components_ must span all {d} features, else the density is constant along some"
            " direction and has no normaliser: take at least n_features independent components"
        )
    if experts.exponents is not None and not 2 * experts.exponents.sum() > d:
        raise ValueError(_TOO_SMALL.format(2 * experts.exponents.sum() - d))
