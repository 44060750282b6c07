"""The path from a base with the right tails to a product of experts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sklpf._utils.numbers import Array
from sklpf._utils.random import Stream
from sklpf._utils.warnings import Alarm
from sklpf.models.products._experts import (
    SMALLEST_TRUSTED_INDEX,
    Experts,
    TailIndex,
    closed_log_partition,
    sample_complete,
    tail_index,
)
from sklpf.partition import HAIS, Exact, PartitionEstimator
from sklpf.paths import Gaussian, StudentT
from sklpf.paths._base import Points
from sklpf.paths._geometric import CompiledDensityPath

_MOST_DF = 8.0  # of the base
# Up to so many scales of the density the tails may fall more slowly than they do in the end; the
# least index that they must then have. With one of -.1 up to 10 scales errors begin, up to 30 with
# .4 there are none.
_NEAR = {10.0: 0.0, 100.0: SMALLEST_TRUSTED_INDEX}
# of the default estimator: with 1000, two in five runs on 72 experts with heavy tails don't
# converge
_N_LEVELS = 5000
_SMALLEST_FILTER = 1e-100  # of which squares and products of a few are numbers, and of its inverse
_LARGEST_EXPONENT = 1e12
_TOO_SMALL = (
    "exponents_ are too small: the tail index of the product is {:.3g} and must be above 0, else"
    " the density has no normaliser; raise the smallest ones"
)


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
        """Whether there are as many experts as dimensions."""
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

    def default_estimator(self) -> PartitionEstimator:
        """Return what a model's ``partition_estimator=None`` stands for.

        Returns
        -------
        PartitionEstimator
            Not fitted.
        """
        return Exact() if self.is_complete else HAIS(n_temperatures=_N_LEVELS)


def _alarms(far_out: TailIndex, near: dict[float, float]) -> tuple[Alarm, ...]:
    """Why chains are not to be trusted, where tails are so heavy that they stay for long
    far out.
    """
    slow = [radius for radius, least in _NEAR.items() if near[radius] < least]
    if far_out.at_least < SMALLEST_TRUSTED_INDEX:
        index = f"{far_out.alpha:.3g}"
        if far_out.at_least < far_out.alpha:
            index = f"from {far_out.at_least:.3g} to {far_out.alpha:.3g}, as many filters depend"
        seen = (
            f"the tail index of the product is {index} and must be at least"
            f" {SMALLEST_TRUSTED_INDEX:g} for sampling"
        )
    elif slow:
        seen = (
            f"filters are nearly dependent: up to {slow[0]:g} scales the tail index of the product"
            f" is {near[slow[0]]:.3g} and must be at least {_NEAR[slow[0]]:g} there"
        )
    else:
        return ()
    seen = f"tails fall so slowly that chains hardly come back from them: {seen}"
    return (Alarm("slow-tails", seen, "raise the smallest exponents_"),)


def _check(experts: Experts) -> None:
    n_components, d = experts.filters.shape
    largest = float(np.abs(experts.filters).max(initial=0.0))  # no float32, which has no 1e100
    if largest and not _SMALLEST_FILTER < largest < 1 / _SMALLEST_FILTER:
        raise ValueError(
            f"components_ must have entries of a size between {_SMALLEST_FILTER:g} and"
            f" {1 / _SMALLEST_FILTER:g}, got {largest:.3g}: rescale X or the components"
        )
    if experts.exponents is not None and experts.exponents.max() > _LARGEST_EXPONENT:
        raise ValueError(
            f"exponents_ must be at most {_LARGEST_EXPONENT:g}, got"
            f" {experts.exponents.max():.3g}: lower the largest ones"
        )
    if n_components < d or np.linalg.matrix_rank(experts.filters) < d:
        raise ValueError(
            f"components_ must span all {d} features, else the density is constant along some"
            " direction and has no normaliser: take at least n_features independent components"
        )
    if experts.exponents is not None and not 2 * experts.exponents.sum() > d:
        raise ValueError(_TOO_SMALL.format(2 * experts.exponents.sum() - d))
