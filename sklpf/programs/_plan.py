"""Plan of a run, fixed before chains run: blocks, segments, lengths of rounds, ladders."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.numbers import Array, Integers
from sklpf._utils.random import Stream, seeded
from sklpf._utils.tables import with_error
from sklpf.paths import COVER, LADDERS, Path, concatenate
from sklpf.uncertainty import mean_weight

# a history (R, 3) without rounds: log Z in nats, its standard error, sweeps of all chains so far
NO_ROUNDS = np.empty((0, 3))
ADAPTIVE_LADDERS = (*LADDERS, "adaptive")


def equal_blocks(n: int, largest: int, fewest_blocks: int = 8) -> list[int]:
    """Sizes of blocks of n chains, as equal as possible and at most `largest`; at least
    `fewest_blocks` where n allows.
    """
    n_blocks = max(min(n, fewest_blocks), -(-n // largest))
    return [n // n_blocks + (block < n % n_blocks) for block in range(n_blocks)]


def blocks_of_groups(
    path,
    transition,
    n_groups: int,
    n_chains: int,
    *,
    most_chains: int = 1000,  # of a block
    fewest_blocks: int = 1,
    fewest_of_points: int = 4,
    fewest_chains: int = 24,  # of a block of a compiled program: weights are read for each block
) -> list[Integers]:
    """The groups of every block: as many as give it some chains where programs are compiled, else
    all in as few blocks as memory allows, since calls of NumPy cost more than what they compute.
    Functions of one point gain nothing from it and keep blocks for processes.
    """
    n_blocks = min(n_groups, max(1, n_chains // fewest_chains))
    if transition.compiled(path) is None:
        vectorized = getattr(path, "vectorized", True)
        fewest = fewest_blocks if vectorized else fewest_of_points
        n_blocks = min(n_groups, max(fewest, n_chains // most_chains))
    first = np.linspace(0, n_groups, n_blocks + 1).astype(np.int64)
    return np.split(np.arange(n_groups), first[1:-1])


def segments(n_sweeps: int, length: int) -> list[int]:
    """First sweep of every segment of at most `length` sweeps, and the end."""
    return [*range(0, n_sweeps, length), n_sweeps]


def doubling(n: int, shortest: int) -> list[int]:
    """Lengths of rounds that add up to n: the last takes half, the one before a quarter, … and the
    first the rest.
    """
    lengths = []
    while n // 2 >= shortest:
        lengths.append(n - n // 2)
        n //= 2
    return [n, *lengths[::-1]]


def with_round(history: NDArray, log_partition: float, std_error: float, n_sweeps: int) -> Array:
    """The history with one more round."""
    return np.vstack([history, [log_partition, std_error, n_sweeps]])


def running_log_partition(path: Path, level: int, log_weights: NDArray) -> str:
    """log Z of a level with its standard error, from independent log weights on the way (n,)."""
    with np.errstate(invalid="ignore"):  # all weights may be 0
        estimate = mean_weight(log_weights)
    log_partition = (path.base_log_partition or 0.0) + estimate.log_mean
    value = with_error(log_partition, estimate.delta)
    return f"log Z = {value} at inverse temperature {path.ladder[level]:.2g}"


def check_finite(log_terms: NDArray, allow_zero: bool = False) -> NDArray:
    """Raise ValueError where log_f gave values that are not finite; `allow_zero` lets -inf, a
    density of 0, pass.
    """
    if not np.all(np.isfinite(log_terms) | (allow_zero & (log_terms == -np.inf))):
        raise ValueError(
            "log_f gave values that are not finite; check the model's parameters and the path's"
            " log_f"
        )
    return log_terms


def check_alive(log_weights: NDArray) -> None:
    """Raise ValueError if all weights are 0."""
    if np.all(log_weights == -np.inf):
        raise ValueError(f"every chain has weight 0: the base draws no point where f > 0: {COVER}")


def draw_alive(
    path,
    n,
    stream,
    *,
    most_draws=1000,  # of some chains, until all are where the target has mass
):
    """Base draws; those at which the target is 0 are drawn anew."""
    state = path.sample_base(n, stream)
    again = stream.of("base draws anew")
    if not path.has_boundary:
        return state
    for attempt in range(1, most_draws):
        dead = path.log_f(state, np.full(n, len(path.ladder) - 1)) == -np.inf
        if not dead.any():
            return state
        index = np.where(dead, n + np.arange(n), np.arange(n))
        state = path.take(concatenate([state, path.sample_base(n, again.at(attempt))]), index)
    raise ValueError(f"base draws hardly any point where the target has mass: {COVER}")


def check_ends(path) -> None:
    """Raise ValueError unless the ladder goes from the base to the target."""
    if path.ladder[0] != 0 or path.ladder[-1] != 1:
        raise ValueError(
            "ladder must begin at 0 (the base, which is sampled) and end at 1 (the target)"
        )


class Plan(NamedTuple):
    """The path on its ladder, the move that is frozen for it, the seed of all random numbers, the
    sweeps that finding them took, and the rounds.
    """

    path: Any
    transition: Any
    seed: int
    n_sweeps: int = 0
    history: Array = NO_ROUNDS  # of log Z / Z_0, where finding them gave estimates

    def stream(self, *name: str | int) -> Stream:
        """Random stream of this name."""
        return seeded(self.seed).of(*name)


def n_tuning_moves(transition, tuned) -> int:
    """Moves that it took to tune a transition: none if it had been tuned before."""
    return 0 if tuned is transition or tuned.pilot is None else tuned.pilot.n_moves
