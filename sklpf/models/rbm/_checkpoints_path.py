"""Paths through several RBMs of the same units, whose parameters change linearly from one to the
next: along training (Béreux et al. 2024), or from one model to another.
"""

from __future__ import annotations

import functools
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from sklpf._utils.limits import LOG_2
from sklpf._utils.numbers import Array, Array32, Bits, Integers
from sklpf._utils.random import Stream
from sklpf._utils.validation import as_float64, check_finite
from sklpf.models._density_ratio_path import N_GROUPS, draw_alarms
from sklpf.models._enumerable_path import BinaryUnits, binary_units
from sklpf.models.rbm._path import Parameters, RBMPath
from sklpf.partition import ParallelTempering
from sklpf.paths import KernelPath, check_ladder, read_only
from sklpf.uncertainty import between_groups

_WORK_PER_SEGMENT = 2e10  # weights times sweeps, about a second

# Of paths from one model to another.
_N_SWEEPS = 4096


class CheckpointState(NamedTuple):
    """Chains: visible units (n, M), the hidden units' inputs at both ends of a piece of the path
    (n, 2 J), the terms of log f there that are linear in v (n, 2), the number of the piece, and the
    ladder that each belongs to.
    """

    v: Bits
    inputs: Array32
    linear: Array
    piece: Integers
    ladder: Integers


class CheckpointsPath(KernelPath):
    """A path through C RBMs of M visible and J hidden units, h summed out.

    A subclass sets ``betas`` (C,), from 0 to 1, ``weights`` (C, J, M), ``hidden`` (C, J),
    ``visible`` (C, M), and the constants of log f (C,). Between betas[s] and betas[s + 1], a piece
    of the path, all of these are linear in beta.
    """

    base_log_partition: float | None = 0.0
    _kernels = "sklpf.models.rbm._checkpoints_kernels"
    betas: Array
    weights: NDArray
    hidden: NDArray
    visible: NDArray
    constants: Array
    visible_units = BinaryUnits()
    draws: NDArray = np.empty((2, 0, 0, 0))  # of both ends, (2, G, N, M); here none

    def _pack(self):
        from sklpf.models.rbm._checkpoints_kernels import Checkpoints

        single = functools.partial(read_only, dtype=np.float32)
        return Checkpoints(
            betas=read_only(self.betas),
            weights=single(self.weights),
            by_visible=single(np.concatenate(self.weights).T),
            hidden=single(self.hidden.ravel()),
            visible=single(self.visible),
            constants=read_only(self.constants),
            draws=read_only(self.draws, np.uint8),
            starts=read_only(self.visible_units.starts, np.int64),
        )

    @property
    def n_moves_per_segment(self) -> int:  # type: ignore[override]  # derived from the models' size
        return int(np.clip(_WORK_PER_SEGMENT / (2 * self.weights[0].size * 10), 100, 10_000))

    def state_from_rows(self, v: ArrayLike, ladder: ArrayLike = 0) -> CheckpointState:
        """Return chains at visible rows v (n, M) of 0 and 1, of given ladders (n,)."""
        v = binary_units(v, self.visible.shape[1], "visible rows")
        n = len(v)
        inputs = np.zeros((n, 2 * self.hidden.shape[1]), np.float32)
        piece = np.full(n, -1, np.int64)  # none: a sweep sums the inputs
        return CheckpointState(v, inputs, np.zeros((n, 2)), piece, np.full(n, ladder, np.int64))

    def rows(self, state: CheckpointState) -> Bits:
        """Return the visible rows of all chains, zeros and ones (n, M)."""
        return state.v

    @property
    def log_f_rounding(self) -> float:  # type: ignore[override]
        """Rounding errors of log_f, whose inputs are float32, in nats: at most their sum over all
        terms.
        """
        terms = max(np.abs(w).sum() + np.abs(b).sum() for w, b in zip(self.weights, self.hidden))
        terms += np.abs(self.visible).sum(axis=1).max()
        return float(np.finfo(np.float32).eps / 2 * terms)

    @property
    def n_summaries(self) -> int:
        """Length of a state's summary: the probabilities of the last model's hidden units."""
        return self.hidden.shape[1]


def _of_target(name: str) -> Any:
    """A member that is the target's."""
    return property(attrgetter(f"target.{name}"), doc=f"`RBMPath.{name}` of the target.")


class RBMTrajectoryPath(CheckpointsPath):
    """Path from independent visible units to an RBM through RBMs that training has passed.

    Temperatures meet a first-order transition where the target consists of clusters; along training
    these split one by one (Béreux et al. 2024, "trajectory tempering"). All parameters change
    linearly from one RBM to the next. So the first piece is the start of an `RBMPath`, and with no
    checkpoints the whole is that path with h summed out.

    Parameters
    ----------
    target : RBMPath
        The path in temperature from the base, or its first part, to the last RBM.
    checkpoints : array-like of shape (C, n_hidden + 1, n_visible + 1)
        Parameters of the RBMs between, in the order of training: the weights, the visible biases
        below and the hidden biases beside them. The number in the corner is ignored.
    betas : array-like of shape (C,) or None, default=None
        Where the checkpoints lie, increasing and inside (0, 1). None: at equal distances.
    ladder : array-like of shape (K,)
        Levels, increasing in [0, 1].

    Raises
    ------
    ValueError
        If a shape does not fit, a number is not finite or `betas` do not increase.

    References
    ----------
    Béreux, N., Decelle, A., Furtlehner, C., Rosset, L. & Seoane, B. (2024). Fast training and
    sampling of restricted Boltzmann machines. arXiv:2405.15376.

    Examples
    --------
    >>> from sklpf import Exact
    >>> from sklpf.models import RBMPath, RBMTrajectoryPath
    >>> target = RBMPath([[1.0, -1.0]], [0.0, 0.0], [0.0], base_mean=[0.5, 0.5])
    >>> path = RBMTrajectoryPath(target, [[[0.3, -0.2, 0.0], [0.1, 0.0, 0.0]]])
    >>> round(Exact().fit(path).log_partition_, 4)
    2.2068
    """

    def __init__(
        self,
        target: RBMPath,
        checkpoints: ArrayLike,
        betas: ArrayLike | None = None,
        ladder: ArrayLike = (0.0, 1.0),
    ):
        logits = target.logits[0]
        last = target.parameters.as_one()
        first = np.zeros_like(last)
        first[-1, :-1] = logits
        checkpoints = as_float64(checkpoints, "checkpoints")
        if checkpoints.ndim != 3 or checkpoints.shape[1:] != last.shape:
            raise ValueError(
                "checkpoints must have the shape (n, n_hidden + 1, n_visible + 1), here (n,"
                f" {last.shape[0]}, {last.shape[1]}), got {checkpoints.shape}"
            )
        check_finite(checkpoints, "checkpoints")
        n = len(checkpoints)
        betas = np.arange(1, n + 1) / (n + 1) if betas is None else as_float64(betas, "betas")
        if betas.shape != (n,):
            raise ValueError(
                f"betas must hold one number for each of {n} checkpoints, got {betas.shape}"
            )
        self.betas = check_ladder(np.r_[0.0, betas, 1.0])
        parameters = np.stack([first, *checkpoints, last]).astype(np.float32)
        self.weights = parameters[:, :-1, :-1]
        self.hidden = parameters[:, :-1, -1]
        self.visible = parameters[:, -1, :-1]
        self.constants = np.zeros(n + 2)
        self.visible_units = target.visible_units
        self.constants[0] = -self.visible_units.log_norms(logits) - len(last[:-1]) * LOG_2
        self.target = target
        self.base_is_ours = target.base_is_ours
        self.cheaper_path = target
        self.ladder = check_ladder(ladder)

    def sample_base(self, n: int, stream: Stream) -> CheckpointState:
        """Return n exact draws from level 0: one sweep there, where all units are independent."""
        state = self.state_from_rows(np.zeros((n, self.visible.shape[1])))
        return self._sweep(state, np.zeros(n), stream)

    @property
    def ladder_cost(self) -> float:  # type: ignore[override]
        """Work of `log_f_ladder` in sweeps."""
        sweep, level = self.target._work
        return len(self.betas) / 2 + len(self.ladder) * level / sweep

    @property
    def draw_conditional(self) -> Any:
        """Not there: no base of this path is a mixture of Gibbs steps."""
        raise AttributeError(
            "its levels follow training; take model.path(trajectory=False), along inverse"
            " temperatures"
        )

    def enumerate_block(self, block: int, level: int) -> Array:
        """Return the log weights at `level` of one block of states of the smaller layer, the other
        summed out.
        """
        beta = self.ladder[level]
        piece = max(int(np.searchsorted(self.betas, beta)) - 1, 0)
        low, high = self.betas[piece : piece + 2]
        share = (beta - low) / (high - low)
        weights, visible, hidden, constant = (
            (1 - share) * array[piece] + share * array[piece + 1]
            for array in (self.weights, self.visible, self.hidden, self.constants)
        )
        half = np.full(len(visible), 0.5)
        path = RBMPath(weights, visible, hidden, half, visible_units=self.visible_units)
        return path.enumerate_block(block, 1) + constant

    def sample_enumerated(self, log_block_sums: NDArray, n: int, rng: np.random.Generator):
        """Return n chains at exact draws from the target, given the log sums of all blocks'
        weights.
        """
        target: Any = self.target.with_ladder(self.ladder)
        return self.state_from_rows(target.sample_enumerated(log_block_sums, n, rng).v)

    # -- the target, which is that of the path in temperature
    log2_states = _of_target("log2_states")
    n_enumeration_blocks = _of_target("n_enumeration_blocks")
    enumeration_rounding = _of_target("enumeration_rounding")
    default_estimator = _of_target("default_estimator")
    bound_cost = _of_target("bound_cost")
    bound_draws = _of_target("bound_draws")
    regions_cost = _of_target("regions_cost")
    regions = _of_target("regions")
    with_regions = _of_target("with_regions")


class RBMRatioPath(CheckpointsPath):
    """Path from one RBM to another with the same visible units: all parameters change linearly, h
    is summed out.

    Hidden units of the two that do the same are one unit of the path (`match_units`); others of
    either model have a counterpart of zeros at the other end. With n_0 and n_1 such counterparts at
    the ends

        log f_beta(v) = c_beta @ v + sum_j log(1 + e^(v @ W_beta_j + b_beta_j)) - ((1 - beta) n_0 +
        beta n_1) log 2,

    c_beta = (1 - beta) c_a + beta c_b and so on, so that f_0 and f_1 are the models' own densities
    and log Z_1 - log Z_0 = log Z_b - log Z_a. Level 0 counts as normalised: this path's log Z is
    that log ratio.

    No level mixes better than the models do. The states at both ends are therefore replaced, at
    every fourth sweep, by draws of the models. Each ladder has its own, from chains of its own, so
    that ladders stay independent.

    Parameters
    ----------
    a, b : Parameters
    draws_a, draws_b : ndarray of shape (G, N, M)
        N draws of 0 and 1 from the two models for each of G ladders.
    ladder : array-like of shape (K,)
    visible_units : BinaryUnits, default=BinaryUnits()
    """

    betas = np.array([0.0, 1.0])

    def __init__(
        self,
        a: Parameters,
        b: Parameters,
        draws_a: NDArray,
        draws_b: NDArray,
        ladder: ArrayLike = (0, 1),
        visible_units: BinaryUnits = CheckpointsPath.visible_units,
    ):
        self.visible_units = visible_units
        self.draws = np.stack([draws_a, draws_b]).astype(np.uint8)
        mean = self.draws.mean(axis=(0, 1, 2))
        pairs = match_units(a.components, b.components, mean * (1 - mean))
        self.weights, self.hidden = align(a, b, pairs)
        self.visible = np.stack([a.intercept_visible, b.intercept_visible])
        n_hidden = np.array([len(a.components), len(b.components)])
        self.constants = -np.log(2) * (self.hidden.shape[1] - n_hidden)
        self.ladder = check_ladder(ladder)

    def default_estimator(self) -> ParallelTempering:
        """Return what estimates the log ratio.

        Returns
        -------
        ParallelTempering
            Not fitted.
        """
        return ParallelTempering(N_GROUPS, n_sweeps=_N_SWEEPS)

    @property
    def draw_alarms(self) -> tuple[str, ...]:
        """Alarms about the draws, in sentences."""
        sums = self.draws.sum(axis=2, dtype=np.float64)
        shares = [between_groups(ladders, ladders, self.draws.shape[2]) for ladders in sums]
        return draw_alarms(shares)

    def sample_base(self, n: int, stream: Stream) -> CheckpointState:
        """Return n chains of one ladder, from its draws of the first model."""
        ladder = stream.chain // n % self.draws.shape[1]
        own = self.draws[0, ladder]
        return self.state_from_rows(own[stream.generator().integers(len(own), size=n)], ladder)


# ---- two models side by side
def match_units(weights_a: NDArray, weights_b: NDArray, variance: NDArray) -> Integers:
    """Return pairs of hidden units (n, 2) of two models that do nearly the same at visible units of
    a given variance.

    Units are alike by 2 Cov(x, y) / (Var x + Var y) of their inputs x and y, and matched so that
    the pairs are alike by as much above 1/2 as they can be, weighted by their variance (an
    assignment problem).
    """
    least_alike = 0.5
    covariance = (weights_a * variance) @ weights_b.T
    var_a, var_b = ((w * variance * w).sum(axis=1) for w in (weights_a, weights_b))
    gain = covariance - least_alike / 2 * (var_a[:, np.newaxis] + var_b)
    pairs = np.stack(linear_sum_assignment(np.maximum(gain, 0), maximize=True), axis=1)
    return pairs[gain[pairs[:, 0], pairs[:, 1]] > 0]


def align(a: Parameters, b: Parameters, pairs: Integers) -> tuple[NDArray, NDArray]:
    """Weights (2, n, M) and biases (2, n) of one hidden layer at both ends: pairs, then units of a,
    then those of b.
    """
    pairs_a, pairs_b = pairs.T
    none_a, none_b = len(a.components), len(b.components)  # numbers of units of zeros
    alone_a = np.setdiff1d(np.arange(none_a), pairs_a)
    alone_b = np.setdiff1d(np.arange(none_b), pairs_b)
    units_a = np.r_[pairs_a, alone_a, np.full(len(alone_b), none_a)]
    units_b = np.r_[pairs_b, np.full(len(alone_a), none_b), alone_b]

    ends = []
    for model, units in ((a, units_a), (b, units_b)):
        layer = np.c_[model.components, model.intercept_hidden]
        ends.append(np.vstack([layer, np.zeros(layer.shape[1])])[units])
    layers = np.stack(ends)
    return layers[:, :, :-1], layers[:, :, -1]
