"""The tempered path of a Bernoulli RBM (Carlson et al. 2016, section 4.2; Salakhutdinov & Murray
2008).
"""

from __future__ import annotations

import copy
import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.utils.extmath import safe_sparse_dot

from sklpf._utils.layout import aligned_zeros
from sklpf._utils.limits import LOG_2
from sklpf._utils.numbers import Array, Array32, Bits
from sklpf._utils.random import Stream
from sklpf._utils.validation import as_float64, check_option
from sklpf.models._enumerable_path import (
    N_CENTRES,
    BinaryUnits,
    PathWithRegions,
    UnitsPath,
    binary_units,
    check_layers,
)
from sklpf.paths import Regions, check_ladder, read_only
from sklpf.uncertainty import log_mean_exp

_HIDDEN_UNITS = BinaryUnits()
_ROWS_AT_ONCE = 1000
_WEIGHTS_IN_CACHE = 1_000_000
# Of a base that covers regions.
_SMALLEST_MEAN = 0.01
_LEAST_SHARE = 0.05


class Parameters(NamedTuple):
    """Weights and biases."""

    components: NDArray[np.floating]  # (J, M)
    intercept_visible: NDArray[np.floating]  # (M,)
    intercept_hidden: NDArray[np.floating]  # (J,)

    @classmethod
    def of(cls, model) -> Parameters:
        """Those of a fitted model."""
        return cls(model.components_, model.intercept_visible_, model.intercept_hidden_)

    def copy(self) -> Parameters:
        """Copies of all arrays."""
        return Parameters(*(part.copy() for part in self))

    def astype(self, dtype) -> Parameters:
        """All arrays, C-contiguous, of a type."""
        return Parameters(*(np.array(part, dtype=dtype, order="C") for part in self))

    def hidden_fields(self, v) -> NDArray:
        """Inputs of the hidden units by visible ones, dense or sparse, (n, J)."""
        products = safe_sparse_dot(v, self.components.T, dense_output=True)
        return products + self.intercept_hidden

    def visible_fields(self, h) -> NDArray:
        """Inputs of the visible units by hidden ones, (n, M)."""
        return h @ self.components + self.intercept_visible

    def gibbs(self, h, rng, units: BinaryUnits) -> tuple[Array32, Array32]:
        """Visible units drawn given hidden ones, and hidden ones given these, (n, M) and (n, J)."""
        v = units.draw(self.visible_fields(h), rng).astype(np.float32)
        mean = expit(self.hidden_fields(v))
        return v, (rng.random(mean.shape, dtype=np.float32) < mean).astype(np.float32)

    def log_f(self, v) -> Array:
        """log f of rows v, dense or sparse, the hidden units summed out, (n,), in nats."""
        from sklpf.models.rbm._free_energy_kernels import softplus_sums

        softplus = np.empty(v.shape[0])
        softplus_sums(np.ascontiguousarray(self.hidden_fields(v), np.float64), softplus)
        return v @ self.intercept_visible.astype(np.float64) + softplus

    def as_one(self) -> NDArray:
        """All parameters in one array (J + 1, M + 1), with 0 in the corner."""
        visible = np.append(self.intercept_visible, 0)
        return np.vstack([np.c_[self.components, self.intercept_hidden], visible])


class RBMState(NamedTuple):
    """Chains of an RBM: units (uint8) and the cached inputs of both layers (float32, padded)."""

    v: Bits
    h: Bits
    hidden_field: Array32
    visible_field: Array32


class RBMPath(PathWithRegions):
    """Path from independent visible units to an RBM, geometric in the joint density of v and h.

    With base logits a, visible biases c, hidden biases b and weights W (visible by hidden)

        log f_beta(v, h) = ((1 - beta) a + beta c) @ v + beta (v @ W @ h + b @ h) - (1 - beta) C,
        C = sum_i log(1 + e^a_i) + J log 2,

    so that f_0 is normalised (h uniform). With ``weights="marginal"`` h is summed out of every
    f_beta, which is the same chain with a smaller variance; ``weights="joint"`` keeps it.

    Parameters
    ----------
    components : array-like of shape (n_hidden, n_visible)
        Weights.
    intercept_visible, intercept_hidden : array-like of shape (n_visible,) and (n_hidden,)
        Biases.
    base_mean : array-like of shape (n_visible,)
        Means of the base's visible units, inside (0, 1).
    ladder : array-like of shape (K,)
        Inverse temperatures, increasing in [0, 1].
    weights : {"marginal", "joint"}, default="marginal"
        Whether the hidden layer is summed out of the densities.
    starts : array-like of shape (m, n_visible) or None, default=None
        Rows of 0 and 1, such as some of the training data: chains from there, beside those from
        random rows, look for regions that a run should have found.
    visible_units : BinaryUnits or CategoricalUnits, default=BinaryUnits()
        Of `CategoricalUnits` exactly one unit of each feature is 1, and C is sum_i log(sum_k
        e^a_ik) + J log 2.

    Raises
    ------
    ValueError
        If shapes don't match, a parameter isn't finite or a base mean is not strictly between 0 and
        1.

    Examples
    --------
    >>> from sklpf import Exact
    >>> from sklpf.models import RBMPath
    >>> path = RBMPath([[1.0, -1.0]], [0.0, 0.0], [0.0], base_mean=[0.5, 0.5])
    >>> round(Exact().fit(path).log_partition_, 4)
    2.2068
    """

    base_is_ours = False  # models set True where they have chosen it
    _kernels = "sklpf.models.rbm._path_kernels"
    _rounding = float(np.finfo(np.float32).eps) / 2  # of the fields
    _work_per_segment = 3e10  # multiplications by a weight

    def __init__(
        self,
        components: ArrayLike,
        intercept_visible: ArrayLike,
        intercept_hidden: ArrayLike,
        base_mean: ArrayLike,
        ladder: ArrayLike = (0.0, 1.0),
        weights: str = "marginal",
        starts: ArrayLike | None = None,
        visible_units: BinaryUnits = UnitsPath.visible_units,
    ):
        if not isinstance(visible_units, BinaryUnits):
            raise TypeError(
                "visible_units must be CategoricalUnits(n_categories), or be left out for binary"
                f" units, got {type(visible_units).__name__}"
            )
        self.visible_units = visible_units
        self.components = as_float64(components, "components", copy=True)
        self.intercept_visible = as_float64(intercept_visible, "intercept_visible", copy=True)
        self.intercept_hidden = as_float64(intercept_hidden, "intercept_hidden", copy=True)
        mean = as_float64(base_mean, "base_mean")
        self.n_visible = check_layers(
            self.components,
            self.intercept_hidden,
            intercept_visible=self.intercept_visible,
            base_mean=mean,
        )
        visible_units.check_number(self.n_visible)
        check_option(weights, ("marginal", "joint"), "weights")
        self.logits = np.atleast_2d(visible_units.logits_of(mean))
        self.log_weights = np.zeros(1)
        if not self._sum_of_terms <= np.finfo(np.float32).max:
            raise ValueError(
                "components and intercepts are so large that log f overflows: their absolute"
                " values must sum to less than 3e38"
            )
        self.joint = weights == "joint"
        self.gibbs_is_reversible = not self.joint
        self.ladder = check_ladder(ladder)
        starts = np.empty((0, len(mean))) if starts is None else starts
        self.starts = binary_units(starts, self.n_visible, "visible rows")

    # -- the kernels' arguments
    def _pack(self):
        from sklpf.models.rbm._path_kernels import PathArrays

        first, *others = self.logits
        log_norms = self.visible_units.log_norms(self.logits)
        columns = [self.components.T, self.intercept_visible - first, first]
        biases = [self.intercept_hidden, [0.0, 0.0], log_norms[0] - log_norms[1:]]
        return PathArrays(
            by_visible=aligned(np.column_stack([*columns, *(each - first for each in others)])),
            by_hidden=aligned(self.components),
            hidden_bias=aligned(np.concatenate(biases)),
            visible_bias=aligned(self.intercept_visible),
            logits=aligned(self.logits),
            log_weights=read_only(self.log_weights),
            base_constant=float(log_norms[0] + len(self.components) * LOG_2),
            starts=read_only(self.visible_units.starts, np.int64),
            joint=self.joint,
        )

    @property
    def _work(self) -> tuple[float, float]:  # type: ignore[override]
        n_hidden, n_visible = self.components.shape
        sweep = n_hidden * n_visible + 120 * (n_hidden + n_visible) + 5_000
        return sweep, 7 * n_hidden + 1_400

    @property
    def n_chains_per_block(self) -> int:  # type: ignore[override]  # derived from the model's size
        """Whole tiles of six chains: many where weights are read from beyond the caches."""
        return 54 if self.components.size > _WEIGHTS_IN_CACHE else 18

    def between(self, other: RBMPath, share: float) -> RBMPath:
        """Return the path to the RBM whose parameters, in float32, are `share` of the way from this
        one's to another's.

        Its base is the other's.

        Parameters
        ----------
        other : RBMPath
            A path to an RBM with as many units.
        share : float
            Position between this RBM (0) and the other (1).

        Returns
        -------
        RBMPath
            The path to the RBM between the two.
        """
        path = copy.copy(other)
        mixed = {
            name: _mixed(getattr(self.packed, name), getattr(other.packed, name), share)
            for name in ("by_visible", "by_hidden", "hidden_bias", "visible_bias")
        }
        path.components = mixed["by_hidden"][:, : self.n_visible]
        path.intercept_visible = mixed["visible_bias"][0, : self.n_visible]
        path.intercept_hidden = mixed["hidden_bias"][0, : len(self.intercept_hidden)]
        path.__dict__["packed"] = other.packed._replace(**mixed)
        return path

    # -- states
    def state_from_rows(self, v: ArrayLike) -> RBMState:
        """Return chains that start at the visible rows v (n, n_visible) of 0 and 1, hidden units
        off.
        """
        v = binary_units(v, self.n_visible, "visible rows")
        return self._state(v, np.zeros((len(v), len(self.components)), dtype=np.uint8))

    def _state(self, v, h) -> RBMState:
        """Chains with these units (uint8), and the inputs that belong to them."""
        from sklpf.models.rbm._path_kernels import refresh_field

        packed = self.packed
        fields = []
        for units, bias, rows in (
            (v, packed.hidden_bias, packed.by_visible),
            (h, packed.visible_bias, packed.by_hidden),
        ):
            fields.append(np.empty((len(v), rows.shape[1]), dtype=np.float32))
            refresh_field(units, bias, rows, fields[-1])
        return RBMState(v, h, *fields)

    def rows(self, state: RBMState) -> Bits:
        """Return the visible rows of all chains.

        Parameters
        ----------
        state : RBMState
            The chains.

        Returns
        -------
        ndarray of shape (n, n_visible)
            Zeros and ones.
        """
        return state.v

    def complete(self, state: RBMState, level: int, stream: Stream) -> RBMState:
        """Draw h given v: on the joint path, what turns exact visible rows into exact states.

        Parameters
        ----------
        state : RBMState
            The chains.
        level : int
            The level at which h is drawn.
        stream : Stream
            Where all random numbers come from.

        Returns
        -------
        RBMState
            With the same visible units.
        """
        drawn = self._sweep(state, np.full(len(state.v), self.ladder[level]), stream)
        return drawn._replace(v=state.v.copy(), hidden_field=state.hidden_field.copy())

    @property
    def enumeration_rounding(self) -> float:
        """Rounding errors of `enumerate_block`, whose fields are float64, in nats."""
        return float(np.finfo(np.float64).eps / 2 * self._sum_of_terms)

    @property
    def _sum_of_terms(self) -> float:  # type: ignore[override]
        """The absolute values of all terms that log_f may add up."""
        largest_sums = self.visible_units.largest_sums
        with np.errstate(over="ignore"):
            visible = np.vstack([self.components, self.intercept_visible])
            terms = largest_sums(np.abs(visible)).sum() + np.abs(self.intercept_hidden).sum()
            spreads = 2 * largest_sums(np.abs(self.logits))
        return terms + spreads[0] + (spreads.max() if len(spreads) > 1 else 0)

    @property
    def n_summaries(self) -> int:
        """Length of a state's summary: the probabilities of the hidden units."""
        return len(self.components)

    @property
    def _n_region_starts(self) -> int:  # type: ignore[override]
        return N_CENTRES + min(len(self.components), N_CENTRES) + len(self.starts)

    @property
    def _work_of_f(self) -> int:  # type: ignore[override]
        return self.components.size

    def _region_starts(self, rng) -> RBMState:
        """Random rows, rows drawn given that one hidden unit is on alone, and `starts`."""
        random = self._random_rows(rng)
        n_hidden = len(self.components)
        alone = np.eye(n_hidden)[rng.permutation(n_hidden)[:N_CENTRES]]
        of_units = self._rows_given(alone, rng)
        return self.state_from_rows(np.concatenate([random, of_units, self.starts]))

    def _inputs(self, state) -> Array:
        return self.parameters.visible_fields(state.h)

    def with_regions(self, regions: Regions) -> RBMPath:
        """Return the path to the same RBM from a mixture of this base and of independent units at
        regions.

        With weights w_k, logits a_k, and log f_beta(v, h; a) as it is for one base, f_beta(v, h) is
        then sum_k w_k f_beta(v, h; a_k). A sweep draws h given v, then k given v, with
        probabilities proportional to w_k q_k(v)^(1 - beta), and then v given k and h; at beta = 0
        all are drawn anew.

        Parameters
        ----------
        regions : Regions
            Such as ``run_.regions`` of a run that has missed some of them.

        Returns
        -------
        RBMPath
            Half of its base is this one's.
        """
        on = expit(self.parameters.hidden_fields(regions.centres))
        means = self.visible_units.clipped_means(self.parameters.visible_fields(on), _SMALLEST_MEAN)
        log_masses = log_mean_exp(regions.log_masses, axis=1)
        shares = np.maximum(softmax(log_masses), _LEAST_SHARE)
        weights = 0.5 * np.r_[np.exp(self.log_weights), shares / shares.sum()]
        return self._with_parts(means, weights)

    def _with_parts(self, means, weights) -> RBMPath:
        """The path from a mixture of this base's parts and of independent units with other means
        (n, n_visible), of the weights of all.
        """
        path = copy.copy(self)
        path.logits = np.vstack([self.logits, self.visible_units.logits_of(means)])
        path.log_weights = np.log(weights)
        path.base_is_ours = False  # one second try is enough
        return path

    def _random_rows(self, rng):
        """Starts of chains at the target: half of them random rows, half drawn given random hidden
        units. Either kind finds modes that the other does not.
        """
        n_half = N_CENTRES // 2
        visible = self.visible_units.draw(np.zeros((n_half, self.n_visible)), rng)
        hidden = rng.random((n_half, len(self.components))) < 0.5
        return np.concatenate([visible, self._rows_given(hidden, rng)])

    def _rows_given(self, hidden, rng):
        """A visible row for each row of hidden units."""
        return self.visible_units.draw(self.parameters.visible_fields(hidden), rng)

    def draw_conditional(self, centres: RBMState, rng: np.random.Generator) -> RBMState:
        """Return chains whose visible units are drawn given the hidden ones of each centre; hidden
        units are off.
        """
        return self.state_from_rows(self._rows_given(centres.h, rng))

    def mixture_log_weights(self, centres: RBMState, state: RBMState) -> Array:
        """Return log f(v) - log mean_l p(v | h_l), shape (n,), the h_l those of the centres (PRML
        11.73).
        """
        fields = self._inputs(centres)
        parts = np.array_split(state.v, -(-len(state.v) // _ROWS_AT_ONCE))
        return np.concatenate([self._log_weights(v, fields) for v in parts])

    def _random_chains(self, rng) -> RBMState:
        return self.state_from_rows(self._random_rows(rng))

    @property
    def parameters(self) -> Parameters:
        """Weights and biases of the target."""
        return Parameters(self.components, self.intercept_visible, self.intercept_hidden)

    def _log_f_of_rows(self, v):
        return self.parameters.log_f(v)

    # -- exact enumeration
    @property
    def log2_states(self) -> int:  # type: ignore[override]
        """Number of units of the smaller layer: 2 to this power states are enumerated."""
        return self.components.shape[self._enumerates_visible]

    @property
    def _enumerates_visible(self) -> bool:
        """True if the visible layer is the smaller one."""
        return self.visible_units.are_independent and len(self.components) > self.n_visible

    def enumerate_block(self, block: int, level: int) -> Array:
        """Return the log weights at `level` of one block of states of the smaller layer, the other
        summed out.
        """
        from sklpf.models.rbm._free_energy_kernels import enumerate_states

        beta = self.ladder[level]
        n_low = self._units_of_a_block
        parts = []
        for logit, log_weight in zip(self.logits, self.log_weights, strict=True):
            visible = (1 - beta) * logit + beta * self.intercept_visible
            hidden = beta * self.intercept_hidden
            rows = beta * self.components
            starts = self.visible_units.starts
            if self._enumerates_visible:
                rows, visible, hidden, starts = rows.T, hidden, visible, _HIDDEN_UNITS.starts
            out = np.empty(1 << n_low)
            rows = np.ascontiguousarray(rows)
            enumerate_states(rows, hidden, visible.copy(), starts, block, n_low, out)
            constant = self.visible_units.log_norms(logit) + len(self.components) * LOG_2
            parts.append(out + (log_weight - (1 - beta) * constant))
        return functools.reduce(np.logaddexp, parts)

    def _state_of_units(self, units, rng) -> RBMState:
        if self._enumerates_visible:
            return self.state_from_rows(units)
        return self.state_from_rows(self._rows_given(units, rng))


def aligned(array):
    """A read-only copy with at least two dimensions, as `aligned_zeros` lays it out."""
    array = np.atleast_2d(array)
    padded = aligned_zeros(*array.shape)
    padded[:, : array.shape[1]] = array
    padded.setflags(write=False)
    return padded


def _mixed(start, end, share):
    """start + share (end - start), laid out like both."""
    mixed = aligned_zeros(*start.shape)
    np.subtract(end, start, out=mixed)
    mixed *= np.float32(share)
    mixed += start
    mixed.setflags(write=False)
    return mixed
