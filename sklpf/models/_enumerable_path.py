"""Shared parts of paths of binary and categorical units: the units, enumeration of their
states, a lower bound of log Z, and balls of rows around the modes with their masses.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax

from sklpf._utils.numbers import Array, Bits, Booleans, Integers, Matrix
from sklpf._utils.random import Stream
from sklpf._utils.validation import base_means, check_finite, rows_without
from sklpf.partition import ParallelTempering, PartitionEstimator
from sklpf.paths import KernelPath, Regions, drawn_by_weight
from sklpf.uncertainty import log_mean_exp

NOT_BINARY = (  # why rows have no likelihood
    "they hold values other than 0 and 1, of which the model has none; binarise X, of spins -1 and"
    " 1 take (X + 1) / 2"
)
_UNITS_PER_BLOCK = 14  # an enumeration block holds 2^14 states

# The mixture that bounds log Z from below: its parts, the sweeps of the chains that find them, and
# the groups of draws from it.
N_CENTRES = 100
CENTRE_SWEEPS = 50
BOUND_GROUPS = 10
BOUND_COST = N_CENTRES * (CENTRE_SWEEPS + BOUND_GROUPS)

# Of regions.
_STATES_OF_A_REGION = 16
_FEWEST_REGIONS = 20
_REGION_WORK = int(2e9)  # multiplications, about 0.1 s
_FEWEST_REGION_DRAWS = 10  # of each region, in each group
_MOST_REGION_DRAWS = 400


class EnumerablePath(KernelPath):
    """A path of binary units, of which `log2_states` are enumerated, some in each block: a subclass
    defines ``enumerate_block(block, level)``, log weights of the states of one block in nats.
    """

    @property
    def log2_states(self) -> int:  # type: ignore[override]
        """Number of units that are enumerated: they have 2 to this power states."""
        raise NotImplementedError

    @property
    def n_enumeration_blocks(self) -> int:  # type: ignore[override]
        """Number of blocks of states that `enumerate_block` takes."""
        return 1 << (self.log2_states - self._units_of_a_block)

    @property
    def _units_of_a_block(self) -> int:
        """Units whose states a block goes through; the block's number has those of the others."""
        return min(self.log2_states, _UNITS_PER_BLOCK)

    def default_estimator(self) -> PartitionEstimator:
        """Return `ParallelTempering`, for more states than can be enumerated."""
        return ParallelTempering()


class BinaryUnits:
    """Visible units of 0 and 1, which are independent given their inputs."""

    starts = np.zeros(1, np.int64)  # of groups of units, for the kernels: there are none
    are_independent = True

    def check_number(self, n: int) -> None:
        """Raise ValueError if a model can't have n such units."""

    def codes(self, units: NDArray) -> NDArray:
        """Return rows of data that have these units (n, n_units)."""
        return units

    def missing(self, X: Matrix) -> Booleans | None:
        """Return the columns that are not known of rows of units, (n, C); None where all are."""
        return missing_values(X)

    def without_missing(self, X: Matrix) -> Matrix:
        """Return rows in which units that are not known are 0."""
        return X if sp.issparse(X) else np.nan_to_num(X)

    def of_columns(self, columns: Integers) -> BinaryUnits:
        """Return the units of some columns."""
        return self

    def column_starts(self, n: int) -> Integers:
        """Return the first of n units of every column, and n."""
        return np.arange(n + 1)

    def column_sizes(self, n: int) -> Integers:
        """Return the number of values of each of n columns."""
        return np.full(n, 2)

    def n_states(self, n: int) -> float:
        """Return the number of states of a layer.

        Parameters
        ----------
        n : int
            Units of the layer.

        Returns
        -------
        float
            Infinite beyond the largest float.
        """
        return float(np.prod(self.column_sizes(n), dtype=np.float64))

    def log_norms_of_states(
        self, weights: Array, bias: Array, other_bias: Array | None = None
    ) -> Array:
        """Return other_bias @ s and `log_norms` of bias + s @ weights for all states s of another
        layer of n binary units.

        Parameters
        ----------
        weights : ndarray of shape (n, n_units)
            Between the layers.
        bias : ndarray of shape (n_units,)
            Of these units.
        other_bias : ndarray of shape (n,) or None, default=None
            Of the other layer; None is 0.

        Returns
        -------
        ndarray of shape (2^n,)
        """
        from sklpf.models.rbm._free_energy_kernels import enumerate_states

        n = len(weights)
        n_low = min(n, _UNITS_PER_BLOCK)
        other_bias = np.zeros(n) if other_bias is None else other_bias
        rows = np.ascontiguousarray(weights)
        log_norms = np.empty((1 << (n - n_low), 1 << n_low))
        for block, out in enumerate(log_norms):
            enumerate_states(rows, other_bias, bias.copy(), self.starts, block, n_low, out)
        return log_norms.ravel()

    def logits_of(self, means: Array) -> Array:
        """Return the inputs that give these means (..., n), or raise ValueError."""
        if not np.all((means > 0) & (means < 1)):
            raise ValueError(
                "base_mean must lie strictly between 0 and 1; smooth the means of constant columns"
            )
        return np.log(means) - np.log1p(-means)

    def means(self, inputs: Array) -> Array:
        """Return the probabilities of units with these inputs, (..., n)."""
        return expit(inputs)

    def clipped_means(self, inputs: Array, least: float) -> Array:
        """Return the probabilities, moved to at least `least` from those that exclude a state."""
        return self.means(inputs).clip(least, 1 - least)

    def counts(self, X: Matrix) -> tuple[Array, Any]:
        """Return the sums of units over rows, and the number of rows.

        Parameters
        ----------
        X : matrix of shape (n_samples, n_units)
            Rows of units.

        Returns
        -------
        sums : ndarray of shape (n_units,)
        n : int or ndarray of shape (n_units,)
            Of each unit the rows in which it is known, where not all are.
        """
        missing = self.missing(X)
        if missing is None:
            return np.asarray(X.sum(axis=0, dtype=np.float64)).ravel(), X.shape[0]
        sums = self.without_missing(X).sum(axis=0, dtype=np.float64)
        return np.asarray(sums).ravel(), self._repeated(np.sum(~missing, axis=0))

    def _repeated(self, values) -> Array:
        """The value of each column at all of its units."""
        return values

    def smoothed_means(self, sums: Array, n: float | Array) -> Array:
        """Return means of units, inside (0, 1), from their sums over n rows, or (n_units,)."""
        smallest = 1 / (n + 2)
        return np.clip((sums + 1) / (n + 2), smallest, 1 - smallest)

    def draw(self, inputs: NDArray, rng: np.random.Generator) -> Booleans:
        """Return units (..., n) drawn given their inputs."""
        means = self.means(inputs)
        return rng.random(means.shape) < means

    def modes(self, inputs: Array) -> Booleans:
        """Return the most probable units (..., n)."""
        return inputs > 0

    def log_norms(self, inputs: Array) -> Array:
        """Return the log normalisers of exp(units @ inputs).

        Parameters
        ----------
        inputs : ndarray of shape (..., n_units)
            In nats.

        Returns
        -------
        ndarray of shape (...,)
        """
        return self.column_log_norms(inputs).sum(axis=-1)

    def column_log_norms(self, inputs: Array) -> Array:
        """Return those of every column, (..., C)."""
        return np.logaddexp(0, inputs)

    def largest_sums(self, values: Array) -> Array:
        """Return the largest sums of values (..., n) >= 0 over units that are on, (...,)."""
        return values.sum(axis=-1)


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
        """Reduce each group of the last axis by a ufunc, to (..., n_features)."""
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

    def missing(self, X: Matrix) -> Booleans | None:
        """Return the features that are not known of rows of indicators, which then are all 0."""
        n_features = len(self.starts) - 1
        if not sp.issparse(X) or X.nnz == X.shape[0] * n_features:
            return None
        missing = np.ones((X.shape[0], n_features), dtype=bool)
        of_units = np.repeat(np.arange(n_features), np.diff(self.starts))
        missing[X.nonzero()[0], of_units[X.nonzero()[1]]] = False
        return missing

    def without_missing(self, X: Matrix) -> Matrix:
        """Return the rows, whose missing features have no indicator."""
        return X

    def of_columns(self, columns: Integers) -> CategoricalUnits:
        """Return the units of some features."""
        return CategoricalUnits(np.diff(self.starts)[columns])

    def column_starts(self, n: int) -> Integers:
        """Return the first unit of every feature, and n."""
        return self.starts

    def column_sizes(self, n: int) -> Integers:
        """Return the number of categories of each feature."""
        return np.diff(self.starts)

    def all_states(self) -> NDArray:
        """Return all states.

        Returns
        -------
        ndarray of shape (n_states, n_units)
        """
        sizes = np.diff(self.starts)
        codes = np.indices(tuple(sizes)).reshape(len(sizes), -1).T
        return np.concatenate([np.eye(size)[code] for size, code in zip(sizes, codes.T)], axis=1)

    def smoothed_means(self, sums: Array, n: float | Array) -> Array:
        """Return (count + 1) / (n + n_categories) from the counts of the categories."""
        return (sums + 1) / (n + self._repeated(np.diff(self.starts)))

    def draw(self, inputs: NDArray, rng: np.random.Generator) -> Booleans:
        """Return indicators of categories drawn given the inputs (Gumbel-max)."""
        return self.modes(inputs + rng.gumbel(size=np.shape(inputs)))

    def modes(self, inputs: Array) -> Booleans:
        """Return the indicators of the most probable categories."""
        modes = np.zeros(np.shape(inputs), dtype=bool)
        for first, last in pairwise(self.starts):
            largest = np.argmax(inputs[..., first:last], axis=-1, keepdims=True)
            np.put_along_axis(modes[..., first:last], largest, True, axis=-1)
        return modes

    def column_log_norms(self, inputs: Array) -> Array:
        """Return the log normalisers of every feature, (..., n_features)."""
        return self._of_groups(np.logaddexp, inputs)

    def largest_sums(self, values: Array) -> Array:
        """Return the largest sums of values over units that are on, (...,)."""
        return self._of_groups(np.maximum, values).sum(axis=-1)

    def codes(self, units: NDArray) -> Integers:
        """Return the categories 0, 1, … that are on, (n, n_features)."""
        within = np.arange(self.starts[-1]) - self._repeated(self.starts[:-1])
        return self._of_groups(np.add, units * within)


class UnitsPath(EnumerablePath):
    """A path of one model of binary units, which has exact draws of few units and a bound of many.

    A subclass defines

    - ``n_visible``: length of a row, and ``state_from_rows(v)``: chains at rows (n, n_visible);
    - ``_work``: that of a sweep, and of log f at one level, in one unit; ``_work_per_segment``:
      that of a segment of one block of chains, about a second;
    - ``_sum_of_terms``: absolute values of all terms that log f may add up;
    - ``_state_of_units(units, rng)``: chains with these enumerated units (n, log2_states), all
      others drawn given them;
    - ``_random_chains(rng)``: 100 chains at random units;
    - ``_centres(state, rng)``: logits (100, n_visible) of the parts of a mixture, from where chains
      at the target have arrived, and ``_log_f_of_rows(v)``: log f of rows in nats; or instead of
      this ``_mixture_log_weights``.
    """

    base_log_partition: float | None = 0.0
    visible_units: Any = BinaryUnits()
    bound_cost = BOUND_COST
    n_visible: int
    state_from_rows: Any
    _work: tuple[float, float]
    _work_per_segment: float
    _sum_of_terms: float
    _state_of_units: Any
    _random_chains: Any
    _centres: Any
    _log_f_of_rows: Any
    _rounding: float = np.finfo(np.float64).eps  # of a sum of numbers

    @property
    def n_moves_per_segment(self) -> int:  # type: ignore[override]  # derived from the model's size
        return int(np.clip(self._work_per_segment / (10 * self._work[0]), 500, 10_000))

    @property
    def ladder_cost(self) -> float:  # type: ignore[override]
        """Work of `log_f_ladder` in sweeps."""
        sweep, level = self._work
        return len(self.ladder) * level / sweep

    @property
    def log_f_rounding(self) -> float:  # type: ignore[override]
        """Rounding errors of log_f in nats: at most their sum over all terms."""
        return float(self._rounding * self._sum_of_terms)

    def sample_base(self, n: int, stream: Stream) -> Any:
        """Return n exact draws from level 0: one sweep at beta = 0, where all units are
        independent.
        """
        state = self.state_from_rows(np.zeros((n, self.n_visible)))
        return self._sweep(state, np.zeros(n), stream)

    def sample_enumerated(self, log_block_sums: NDArray, n: int, rng: np.random.Generator) -> Any:
        """Return chains at exact draws from the target.

        Parameters
        ----------
        log_block_sums : ndarray of shape (n_enumeration_blocks,)
            Log sums of all blocks' weights, in nats.
        n : int
            Number of chains.
        rng : numpy.random.Generator
            Where the random numbers come from.

        Returns
        -------
        state : NamedTuple

        Raises
        ------
        ValueError
            If the ladder ends below 1: units that are not enumerated are drawn as they are there.
        """
        level = len(self.ladder) - 1
        if self.ladder[level] < 1:
            raise ValueError(
                "exact draws are those at the inverse temperature 1: give a ladder that ends there,"
                f" this one ends at {self.ladder[level]:g}"
            )
        n_low = self._units_of_a_block
        blocks = rng.choice(len(log_block_sums), size=n, p=softmax(log_block_sums))
        states = blocks.astype(np.int64) << n_low
        for block in np.unique(blocks):
            chosen = blocks == block
            shares = softmax(self.enumerate_block(block, level))
            states[chosen] |= rng.choice(1 << n_low, size=chosen.sum(), p=shares)
        return self._state_of_units(bits(states, self.log2_states), rng)

    def bound_draws(self, stream: Stream) -> Array:
        """Return log weights (10, 100) of draws from a mixture with a part for each of 100 centres
        (PRML 11.73), in nats.

        The centres are where plain Gibbs chains at the target are after 50 sweeps from random
        units.
        """
        rng = stream.generator()
        state = self._random_chains(rng)
        self.move_at_target(state, CENTRE_SWEEPS, stream.at(1))
        centres = self._centres(state, rng)
        return np.array([self._mixture_log_weights(centres, rng) for _ in range(BOUND_GROUPS)])

    def _mixture_log_weights(self, logits, rng) -> Array:
        """log f less the log density of the mixture, at a draw from each of its parts, in nats."""
        v = self.visible_units.draw(logits, rng)
        return self._log_weights(v.astype(np.float64), logits)

    def _log_weights(self, v, logits) -> Array:
        """log f of rows less the log density of a mixture of independent units."""
        log_norms = self.visible_units.log_norms(logits)
        return self._log_f_of_rows(v) - log_mean_exp(v @ logits.T - log_norms, axis=1)


class PathWithRegions(UnitsPath):
    """A `UnitsPath` whose draws are rows of units, with regions.

    A subclass also defines

    - ``_inputs(state)``: inputs of the units of every chain, (n, n_visible), which are also the
      `_centres` of the bound;
    - ``_work_of_f``: multiplications that log f of one row takes.

    Modes are looked for by chains at the target that begin at ``_region_starts(rng)``,
    ``_n_region_starts`` of them: random ones unless a subclass says otherwise.
    """

    _inputs: Any
    _work_of_f: int
    _n_region_starts = N_CENTRES

    def _region_starts(self, rng: np.random.Generator) -> Any:
        return self._random_chains(rng)

    def _centres(self, state, rng):
        return self._inputs(state)

    @property
    def regions_cost(self) -> int:  # type: ignore[override]  # derived from the model's size
        """Sweeps of all chains that `regions` makes."""
        return self._n_region_starts * (CENTRE_SWEEPS + _STATES_OF_A_REGION - 1)

    def regions(self, stream: Stream) -> Regions:
        """Return balls around the modes of units with the inputs that chains at the target have.

        Each ball holds 98 % of the draws from a mixture of independent units, with the inputs at a
        few states of one chain. The draws of all mixtures are weighted by importance sampling,
        which gives the mass of the rows in a ball that are nearer to its centre than to any other.
        Where two balls surround nearly the same mode only one is returned, and of a large model
        those with the most mass.
        """
        rng = stream.generator()
        state = self._region_starts(rng)
        self.move_at_target(state, CENTRE_SWEEPS, stream.at(1))
        inputs = [self._inputs(state)]
        for i in range(_STATES_OF_A_REGION - 1):
            self.move_at_target(state, 1, stream.at(2 + i))
            inputs.append(self._inputs(state))
        modes = self.visible_units.modes(inputs[0])
        distinct = np.sort(np.unique(modes, axis=0, return_index=True)[1])
        modes = modes[distinct]
        fields = np.stack(inputs, axis=1)[distinct]  # (n_modes, n_states, n_visible)

        radii = np.array([self._squared_radius(own, rng) for own in fields])
        masses = [self._mass_of_ball(*ball, rng) for ball in zip(fields, radii)]
        most = max(_FEWEST_REGIONS, _REGION_WORK // (self._work_of_f * _MOST_REGION_DRAWS))
        chosen: list[int] = []
        for r in np.argsort(masses)[::-1]:
            apart = (np.sum(modes[r] != modes[k]) > min(radii[r], radii[k]) for k in chosen)
            if all(apart):
                chosen.append(r)
        chosen = chosen[:most]

        centres = modes[chosen].astype(np.uint8)
        regions = Regions(centres, np.sqrt(radii[chosen]), np.empty((len(chosen), BOUND_GROUPS)))
        weighed = []
        # Where many states remain, each chain has seen few of them, but all together have seen
        # more: every draw is weighted by the mixture of all.
        all_fields = fields[chosen]
        work = all_fields.size * len(chosen) * BOUND_GROUPS
        n_draws = int(np.clip(_REGION_WORK // work, _FEWEST_REGION_DRAWS, _MOST_REGION_DRAWS))
        for group in range(BOUND_GROUPS):
            v = np.concatenate([self._drawn(own, n_draws, rng) for own in all_fields])
            log_weights = self._log_weights(v, np.concatenate(all_fields))
            inside = np.where(regions.contain(v), log_weights[:, np.newaxis], -np.inf)
            regions.log_masses[:, group] = log_mean_exp(inside, axis=0)
            weighed.append((v, inside))
        v, inside = map(np.concatenate, zip(*weighed))
        draws = np.array([drawn_by_weight(v, own, rng) for own in inside.T], dtype=np.uint8)
        return regions._replace(draws=draws.reshape(len(chosen), -1, self.n_visible))

    def _mass_of_ball(self, fields, squared_radius, rng) -> float:
        """Log of a first estimate of the mass of a ball."""
        n_screened = 40
        v = self._drawn(fields, n_screened, rng)
        inside = np.sum(v != self.visible_units.modes(fields[0]), axis=1) <= squared_radius
        log_weights = self._log_weights(v[inside], fields)
        return float(np.logaddexp.reduce(log_weights, initial=-np.inf))

    def _squared_radius(self, fields, rng) -> float:
        """The number of units that differ at most from the mode at the first state, in most draws.

        They are draws of their own: by those that are weighted masses would be too large.
        """
        n_draws = 50
        share = 0.98
        v = self._drawn(fields, n_draws, rng)
        away = np.sum(v != self.visible_units.modes(fields[0]), axis=1)
        return float(np.quantile(away, share))

    def _drawn(self, fields, n, rng):
        """Rows (n, n_visible) of bool from a mixture of units with these inputs."""
        return self.visible_units.draw(fields[rng.integers(len(fields), size=n)], rng)


def missing_values(X: Matrix) -> Booleans | None:
    """Return which values of X are NaN, of the shape of X; None where none is, and of sparse X."""
    missing = None if sp.issparse(X) else np.isnan(X)
    return missing if missing is not None and missing.any() else None


def binary_rows(X: Matrix) -> Booleans:
    """Return which rows hold nothing but 0 and 1, (n,)."""
    if not sp.issparse(X):
        return np.all((X == 0) | (X == 1), axis=1)
    return rows_without(X, (X.data != 0) & (X.data != 1))


def given_means(values: Array, name: str) -> Array:
    """Return means of units that a user has given, moved away from 0 and 1, or raise ValueError."""
    # Anything from 2e-5 to 0.01 made no difference to AIS on three MNIST RBMs.
    smallest = 1e-3
    if not np.all((values >= 0) & (values <= 1)):
        raise ValueError(
            f"{name} must hold means of the visible units, between 0 and 1; take them from the"
            " training data"
        )
    return values.clip(smallest, 1 - smallest)


def means_of_base(base, means: Array) -> Array:
    """Return means of a path's base: "data" are those of a model, "uniform" 1/2, others given."""
    chosen = base_means(base, means)
    return chosen if isinstance(base, str) else given_means(chosen, "base")


def binary_units(rows, n: int, name: str = "rows") -> Bits:
    """Return rows (m, n) of 0 and 1 as states hold them, or raise ValueError."""
    rows = np.asarray(rows)
    if rows.ndim != 2 or rows.shape[1] != n:
        raise ValueError(f"{name} must have the shape (n, {n}), got {rows.shape}")
    if not np.all((rows == 0) | (rows == 1)):
        raise ValueError(f"{name} must hold 0 and 1 only: binarise them first")
    return np.array(rows, dtype=np.uint8, order="C")


def check_layers(components: Array, intercept_hidden: Array, **visible: Array) -> int:
    """Return the number of visible units of an RBM; ValueError unless its weights are a matrix of
    finite numbers that vectors of both layers fit.
    """
    if components.ndim != 2 or 0 in components.shape:
        raise ValueError(
            f"components must have the shape (n_hidden, n_visible), got {components.shape}"
        )
    check_finite(components, "components")
    n_hidden, n_visible = components.shape
    check_vectors(n_visible, "components", **visible)
    check_vectors(n_hidden, "components", intercept_hidden=intercept_hidden)
    return n_visible


def check_vectors(n: int, what: str, **vectors: Array) -> None:
    """Raise ValueError unless all have n entries, finite ones."""
    for name, vector in vectors.items():
        if vector.shape != (n,):
            raise ValueError(
                f"{name} must have the shape ({n},) to match {what}, got {vector.shape}"
            )
        check_finite(vector, name)


def subset_sums(values: Array) -> Array:
    """Sum of values[j] over the bits j of s, for every s < 2^n, by doubling: one addition each."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums, sums + value])
    return sums


def quadratic_sums(matrix: NDArray, low: int, high: NDArray) -> Array:
    """z @ matrix @ z for all z that begin with any `low` bits and end with the bits `high`; O(1)
    each.
    """
    sums = np.array([high @ matrix[low:, low:] @ high])
    for j in range(low):
        cross = subset_sums(matrix[:j, j]) + matrix[low:, j] @ high
        sums = np.concatenate([sums, sums + matrix[j, j] + 2 * cross])
    return sums


def bits(codes: NDArray, n: int) -> Bits:
    """Return the lowest n bits of every number, lowest first, (len(codes), n)."""
    return (codes[:, np.newaxis] >> np.arange(n) & 1).astype(np.uint8)
