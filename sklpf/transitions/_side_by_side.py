"""Chains of several rows that move side by side: every row has a ladder, a tuned move and random
numbers of its own, and all of them take each step in one array.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.random import Keys, Stream
from sklpf.paths import JointRows
from sklpf.paths._base import concatenate, n_chains
from sklpf.paths._capabilities import has
from sklpf.transitions._base import Transition


class Streams:
    """The random numbers of several blocks of chains, one beside the other, each from its own
    stream.

    Parameters
    ----------
    streams : sequence of Stream
        One for each block.
    n_chains : sequence of int
        Number of chains in each block.
    step : int, default=0
        Sweeps that all blocks have done since.
    """

    def __init__(self, streams: Sequence[Stream], n_chains: Sequence[int], step: int = 0):
        self.streams = streams
        self.n_chains = n_chains
        self.step = step

    def at(self, step: int) -> Streams:
        """Return the same streams so many sweeps on."""
        return Streams(self.streams, self.n_chains, step)

    def blocks(self) -> Iterator[tuple[Keys, slice]]:
        """The keys of every block, and which chains it has."""
        first = 0
        for stream, count in zip(self.streams, self.n_chains):
            keys = Keys(*stream.key, stream.chain, stream.step + self.step)
            yield keys, slice(first, first + count)
            first += count

    def uniform(self, n: int, purpose: int) -> NDArray[np.float64]:
        """Return one uniform number for each of the n chains of all blocks."""
        from sklpf.kernels._random import uniforms  # numba takes a while to load

        out = np.empty(n)
        for keys, chains in self.blocks():
            uniforms(keys, purpose, out[chains])
        return out


class Passage(NamedTuple):
    """Moves through levels that the chains of one row are to make: the arguments of `anneal`."""

    path: Any
    transition: Any
    state: Any
    memory: tuple
    levels: NDArray[np.int64]  # (n_moves + 1, n)
    stream: Any  # a Stream, or the Streams of several rows
    reverse: bool = False
    log_weights: Any = 0.0  # (n,)

    @property
    def n_moves(self) -> int:
        return len(self.levels) - 1


def can_ask(path: Any, transition: Transition) -> bool:
    """Whether moves on the path of this row are made beside those of others, if it asks."""
    return has(path, JointRows) and path.ask is not None and transition.side_by_side is not None


def move_or_ask(path, transition, state, memory, levels, stream) -> tuple[Any, tuple]:
    """Make one move of every chain at its level, beside those of other rows where the path asks."""
    if not can_ask(path, transition):
        return transition.move(path, state, memory, levels, stream)
    stay = np.stack([levels, levels])
    state, memory, _ = path.ask(Passage(path, transition, state, memory, stay, stream))
    return state, memory


def joined(passages: Sequence[Passage], n_moves: int) -> Passage:
    """The first moves of several rows as one passage, whose levels are those of all their ladders,
    one ladder after the other.
    """
    paths = [passage.path for passage in passages]
    counts = [n_chains(passage.state) for passage in passages]
    first_level = np.cumsum([0, *(len(path.ladder) for path in paths)])
    levels = [
        first + passage.levels[: n_moves + 1] for first, passage in zip(first_level, passages)
    ]
    path = paths[0].side_by_side(paths, counts)
    transitions = [passage.transition for passage in passages]
    return Passage(
        path,
        transitions[0].side_by_side(transitions, paths, path.ladder),
        concatenate([passage.state for passage in passages]),
        concatenate([passage.memory for passage in passages]),
        np.concatenate(levels, axis=1),
        Streams([passage.stream for passage in passages], counts),
        passages[0].reverse,
        np.concatenate([np.broadcast_to(p.log_weights, n) for p, n in zip(passages, counts)]),
    )
