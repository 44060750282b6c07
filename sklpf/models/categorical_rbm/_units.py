"""The visible units of a categorical RBM: groups with one unit on."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklpf._utils.numbers import Array, Integers
from sklpf.models._enumerable_path import BinaryUnits


class CategoricalUnits(BinaryUnits):
    """Indicators of categories: groups of units, in each of which one is on.

    Parameters
    ----------
    n_categories : array-like of shape (n_features,)
        Length of each group.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import Exact
    >>> from sklpf.models import CategoricalUnits, RBMPath
    >>> units = CategoricalUnits([3])
    >>> base = [0.2, 0.3, 0.5]
    >>> path = RBMPath([[1.0, -1.0, 0.0]], [0.0] * 3, [0.0], base, visible_units=units)
    >>> round(Exact().fit(path).log_partition_, 4)  # log(4 + e + 1 / e)
    1.9581
    """

    are_independent = False

    def __init__(self, n_categories: ArrayLike):
        n_categories = np.asarray(n_categories)
        if (
            n_categories.dtype.kind not in "iu"
            or n_categories.ndim != 1
            or np.any(n_categories < 1)
        ):
            raise ValueError("n_categories must hold a positive integer for each feature")
        self.starts = np.r_[0, np.cumsum(n_categories, dtype=np.int64)]

    def check_number(self, n: int) -> None:
        """Raise ValueError unless the groups hold n units."""
        if n != self.starts[-1]:
            raise ValueError(
                f"components must have {self.starts[-1]} columns, one for each category of"
                f" n_categories, got {n}"
            )

    def _of_groups(self, function: Any, values) -> Any:
        """What a ufunc reduces each group of the last axis to, (..., n_features)."""
        return function.reduceat(values, self.starts[:-1], axis=-1)

    def _repeated(self, values) -> Array:
        """The value of each group at all of its units."""
        return np.repeat(values, np.diff(self.starts), axis=-1)

    def logits_of(self, means: Array) -> Array:
        """Return the inputs that give these means, or raise ValueError."""
        if not np.all((means > 0) & (means <= 1)):
            raise ValueError(
                "base_mean must be positive and at most 1; smooth the means of rare categories"
            )
        return np.log(means)

    def means(self, inputs: Array) -> Array:
        """Return the probabilities of the categories."""
        weights = np.exp(inputs - self._repeated(self._of_groups(np.maximum, inputs)))
        return weights / self._repeated(self._of_groups(np.add, weights))

    def clipped_means(self, inputs: Array, least: float) -> Array:
        """Return the probabilities, raised to about `least`."""
        return self.means(np.log(np.maximum(self.means(inputs), least)))

    def smoothed_means(self, sums: Array, n: int) -> Array:
        """Return (count + 1) / (n + n_categories) from the counts of the categories."""
        return (sums + 1) / (n + self._repeated(np.diff(self.starts)))

    def draw(self, inputs: NDArray, rng: Any, **options: Any) -> NDArray[np.bool_]:
        """Return indicators of categories drawn given the inputs (Gumbel-max)."""
        return self.modes(inputs + rng.gumbel(size=np.shape(inputs)))

    def modes(self, inputs: Array) -> NDArray[np.bool_]:
        """Return the indicators of the most probable categories."""
        modes = np.zeros(np.shape(inputs), dtype=bool)
        for first, last in pairwise(self.starts):
            largest = np.argmax(inputs[..., first:last], axis=-1, keepdims=True)
            np.put_along_axis(modes[..., first:last], largest, True, axis=-1)
        return modes

    def modes_near(self, inputs: Array, units: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the indicators of the most probable categories, of several of the first."""
        return self.modes(inputs).astype(np.uint8)

    def log_norms(self, inputs: Array) -> Array:
        """Return the log normalisers of exp(units @ inputs), (...,)."""
        return self._of_groups(np.logaddexp, inputs).sum(axis=-1)

    def largest_sums(self, values: Array) -> Array:
        """Return the largest sums of values over units that are on, (...,)."""
        return self._of_groups(np.maximum, values).sum(axis=-1)

    def codes(self, units: NDArray) -> Integers:
        """Return the categories 0, 1, … that are on, (n, n_features)."""
        within = np.arange(self.starts[-1]) - self._repeated(self.starts[:-1])
        return self._of_groups(np.add, units * within)
