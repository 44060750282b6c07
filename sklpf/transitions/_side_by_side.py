"""Chains of several rows of data in one array. Each row has a path with a ladder of its own, a
tuned move and random numbers; all chains take each step in the same calls. Of one row these are
its own path, move and stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.random import RowStreams, Stream


class Joint(NamedTuple):
    """What chains of several rows move on, row after row."""

    path: Any  # of all chains, on the ladders of all rows, one after the other
    stream: Any
    first_levels: NDArray[np.int64]  # (n_rows,): where the ladder of each row begins


def joined(paths: Sequence[Any], streams: Sequence[Stream], n_chains: int) -> Joint:
    """Return the path and the random numbers of n chains of each row."""
    if len(paths) == 1:
        return Joint(paths[0], streams[0], np.zeros(1, dtype=np.int64))
    path = paths[0].side_by_side(paths, n_chains)
    path.ladder = np.concatenate([row.ladder for row in paths])
    first_levels = np.cumsum([0, *(len(row.ladder) for row in paths[:-1])])
    return Joint(path, RowStreams(streams, n_chains), first_levels)


def joint_move(transitions: Sequence[Any], paths: Sequence[Any], joint: Joint) -> Any:
    """Return the move that is each row's own on its ladder."""
    if len(paths) == 1:
        return transitions[0]
    return transitions[0].side_by_side(transitions, paths, joint.path.ladder)
