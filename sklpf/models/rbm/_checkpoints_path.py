"""Paths through several RBMs of the same units, whose parameters change linearly from one to the
next: along training (Béreux et al. 2024), or from one model to another.
"""

from __future__ import annotations

import functools
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklpf._utils.numbers import Array, Array32, Bits, Integers, as_float64, check_finite
from sklpf._utils.random import Stream
from sklpf.models._enumerable_path import BinaryUnits, binary_units
from sklpf.models.rbm._learning import Parameters
from sklpf.models.rbm._path import RBMPath
from sklpf.paths._base import KernelPath, check_ladder, read_only

_LOG2 = np.log(2)
_WORK_PER_SEGMENT = 2e10  # weights times sweeps, about a second


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
        hidden = target.intercept_hidden
        last = Parameters(target.components, target.intercept_visible, hidden).as_one()
        first = Parameters(0 * target.components, logits, 0 * hidden).as_one()
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
        self.constants[0] = -self.visible_units.log_norms(logits) - len(last[:-1]) * _LOG2
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
