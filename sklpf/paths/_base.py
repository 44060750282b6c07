"""Path: a sequence of unnormalised densities from a base that can be sampled to the target."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Path:
    """Levels k = 0 … K - 1 from a base density f_0 to the unnormalised target f_(K-1).

    Subclass it to bring your own density. Required: `log_f`. For annealing and tempering from base draws also
    `sample_base` and a declared `base_log_partition`; and one kind of move: `gibbs` or `propose`.

    Attributes
    ----------
    ladder : ndarray of shape (K,)
        Coordinate of every level, usually the inverse temperatures from 0 to 1.
    base_log_partition : float or None
        Log normaliser of f_0 in nats; 0.0 says that f_0 is normalised, None that nothing was declared.
    n_moves_per_segment : int
        After how many sweeps of a block control returns to Python (interruption, checkpoints).
    ladder_cost : float
        Work of one `log_f_ladder` in sweeps; RTS spaces its redraws of levels by it.
    n_targets : int or None
        None: one log Z. An int: a log Z for each of so many rows of data, which share the model; estimators then call
        `target` and give arrays. The methods below are those of one target's path.
    """

    ladder: NDArray[np.float64] = np.array([0.0, 1.0])
    base_log_partition: float | None = None
    n_moves_per_segment: int = 100
    ladder_cost: float = 1.0
    n_targets: int | None = None

    # -- required ------------------------------------------------------------------------------
    def log_f(self, state: Any, levels: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return log f of every chain at its own level, shape (n,), in nats."""
        raise NotImplementedError(f"{type(self).__name__} must define log_f(state, levels)")

    # -- capabilities (define what the density can do) -------------------------------------------
    # sample_base(n, stream) -> state             exact draws from level 0
    # gibbs(state, levels, stream) -> state       a move that leaves every chain's level invariant
    # propose(state, levels, stream) -> (state, log_ratio)    a Metropolis-Hastings proposal
    # sample_target(n, stream) -> state           exact draws from the last level
    # state_from_visible(rows) -> state           chains that start at rows of data
    # complete(state, level, stream) -> state     draws what such a start leaves open from its conditional
    # target(t) -> Path                           with n_targets: the path of row t alone, whose n_targets is None
    # target_content(t) -> bytes                  with n_targets: all of row t that its log Z depends on; keys its
    #                                             random numbers, and rows of equal content are computed once
    # enumerate_targets(rows) -> (n,)             exact log Z of many rows in one call
    # left_to_right(n, n_particles, n_sweeps, stream) -> (n,)    log of independent unbiased estimates of Z
    # default_estimator() -> PartitionEstimator   what a model's ``partition_estimator=None`` stands for

    # -- derived -------------------------------------------------------------------------------
    def log_f_ladder(self, state: Any) -> NDArray[np.float64]:
        """Return log f of every chain at every level, shape (n, K), in nats."""
        n = n_chains(state)
        columns = [self.log_f(state, np.full(n, k)) for k in range(len(self.ladder))]
        return np.stack(columns, axis=1)

    def take(self, state: Any, index: ArrayLike) -> Any:
        """Return the chains `index` of a state (an array or a NamedTuple of arrays, chains first)."""
        return map_state(lambda array: array[index], state)

    def target_cost(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Relative work of these targets, shape (n,): blocks of rows that run in parallel are cut by it."""
        return np.ones(len(rows))

    def with_ladder(self, ladder: ArrayLike) -> Path:
        """Return a copy of the path with other levels."""
        other = copy.copy(self)
        other.ladder = check_ladder(ladder)
        return other


def check_ladder(ladder: ArrayLike) -> NDArray[np.float64]:
    """Return the inverse temperatures as an increasing float64 array in [0, 1] or raise ValueError."""
    ladder = np.array(ladder, dtype=np.float64)
    if ladder.ndim != 1 or len(ladder) < 2:
        raise ValueError(f"ladder must be a sequence of at least 2 inverse temperatures, got shape {ladder.shape}")
    if not np.all((ladder >= 0) & (ladder <= 1)):
        raise ValueError("ladder must hold inverse temperatures in [0, 1]; rescale or drop the others")
    if np.any(np.diff(ladder) <= 0):
        raise ValueError("ladder must be strictly increasing; sort it and drop repeated inverse temperatures")
    ladder.setflags(write=False)
    return ladder


def n_chains(state: Any) -> int:
    """Number of chains in a state."""
    return len(state[0]) if isinstance(state, tuple) else len(state)


def map_state(function, *states: Any) -> Any:
    """Apply `function` to the arrays of one state, or to the corresponding arrays of several."""
    first = states[0]
    if isinstance(first, tuple):
        arrays = [function(*parts) for parts in zip(*states)]
        return type(first)(*arrays) if hasattr(first, "_fields") else tuple(arrays)
    return function(*states)
