"""Counter-based random streams: the same numbers for any number of jobs, any back end and any
segmentation.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sklpf._utils.numbers import Array, Integers

# what a random number is for, the fourth word of the Philox counter: two parts of a move, swaps and
# redraws of levels, acceptance, and the generators that paths in NumPy are given
FIRST, SECOND, SWAP, REDRAW, ACCEPT, USER = range(6)


_LARGEST_SEED = 2**31 - 1


def generator_of(random_state) -> np.random.RandomState:
    """The RandomState that this is, or that an int or None stands for."""
    # kernels import this module, and need no scikit-learn
    from sklearn.utils import check_random_state

    try:
        return check_random_state(random_state)
    except ValueError as error:
        raise ValueError(
            f"random_state must be an int from 0 to 2**32 - 1, a RandomState or None, got"
            f" {random_state!r:.80}"
        ) from error


def draw_seed(random_state) -> int:
    """A seed drawn from a RandomState, or from the one that an int or None stands for."""
    return int(generator_of(random_state).randint(_LARGEST_SEED))


class Keys(NamedTuple):
    """Place of a block of chains in its random stream, as kernels take it."""

    key0: int
    key1: int
    chain: int
    step: int


@dataclass(frozen=True)
class Stream:
    """The random numbers of one block of chains.

    Attributes
    ----------
    key : tuple of two int
        The Philox key (32 bits each).
    chain : int
        Number of the block's first chain.
    step : int
        Number of sweeps the block has done.
    """

    key: tuple[int, int]
    chain: int = 0
    step: int = 0

    def at(self, step: int) -> Stream:
        """Return the same stream at sweep number `step`."""
        return Stream(self.key, self.chain, step)  # `replace` takes five times as long

    def of(self, *name: str | int) -> Stream:
        """Return the stream of this name for the same chains, independent of what this one draws:
        ``streams.of("pilot")``, ``streams.of("round", 3)``.

        Parameters
        ----------
        *name : str or int
            Name, such as the stage of a run, and numbers within it. Streams of other names differ,
            and so do those that are named within them in turn.

        Returns
        -------
        Stream
            A stream with another key: a hash of this one's and of the name.
        """
        text = "/".join(part if isinstance(part, str) else str(int(part)) for part in name)
        hashed = hashlib.blake2b(text.encode(), key=struct.pack("<2I", *self.key), digest_size=8)
        key0, key1 = struct.unpack("<2I", hashed.digest())
        return replace(self, key=(key0, key1))

    @property
    def seed(self) -> int:
        """A seed for a run within this one."""
        return self.key[0]

    @property
    def keys(self) -> Keys:
        """The same for kernels."""
        return Keys(*self.key, self.chain, self.step)

    def rows(self) -> Iterator[tuple[Stream, slice]]:
        """The stream of every row of data, and which chains the row has: here all of them.

        Yields
        ------
        stream : Stream
        chains : slice
        """
        yield self, slice(None)

    def generator(self) -> np.random.Generator:
        """Return a NumPy generator for this block and step, for moves that are written in NumPy.

        Returns
        -------
        numpy.random.Generator
            The same one at every call.
        """
        return np.random.default_rng([*self.key, self.chain, self.step, USER])


class RowStreams(NamedTuple):
    """The random numbers of several rows of data with n chains each, from a stream for each row."""

    streams: Sequence[Stream]
    n_chains: int

    @property
    def step(self) -> int:
        """Number of sweeps that all rows have done."""
        return self.streams[0].step

    def at(self, step: int) -> RowStreams:
        """Return the same streams at sweep number `step`."""
        return self._replace(streams=[stream.at(step) for stream in self.streams])

    def of(self, *name: str | int) -> RowStreams:
        """Return other streams of the same chains; see `Stream.of`."""
        return self._replace(streams=[stream.of(*name) for stream in self.streams])

    def rows(self) -> Iterator[tuple[Stream, slice]]:
        """The stream of every row, and which chains the row has."""
        n = self.n_chains
        for t, stream in enumerate(self.streams):
            yield stream, slice(t * n, (t + 1) * n)


def concatenate_streams(streams: Sequence[Stream], n_chains: int) -> Stream | RowStreams:
    """Return the random numbers of n chains of each stream, one after the other."""
    return streams[0] if len(streams) == 1 else RowStreams(streams, n_chains)


def stream_key(seed: int) -> tuple[int, int]:
    """Return the Philox key of a seed.

    Parameters
    ----------
    seed : int
        Any number of bits.

    Returns
    -------
    tuple of two int
        Two integers of 32 bits.
    """
    words = np.random.SeedSequence(seed).generate_state(2, np.uint32)
    return int(words[0]), int(words[1])


def seeded(seed: int) -> Stream:
    """Return the stream of a run, of whose stages each has its own by name.

    Parameters
    ----------
    seed : int
        Seed of the run.

    Returns
    -------
    Stream
        Of its first chain, before the first sweep.
    """
    return Stream(stream_key(seed))


def systematic(log_weights: Array, n: int, uniform: float) -> Integers:
    """Indices (n,) of systematic resampling: each index comes up n w times, rounded up or down, and
    so on average.

    Parameters
    ----------
    log_weights : ndarray of shape (m,)
        Not all -inf.
    n : int
    uniform : float
        In [0, 1).
    """
    weights = np.exp(log_weights - log_weights.max())
    shares = np.cumsum(weights)
    index = np.searchsorted(shares, (uniform + np.arange(n)) * (shares[-1] / n), side="right")
    return np.minimum(index, np.flatnonzero(weights)[-1])
