"""Chains of several rows of data in one array. Each row has a path with a ladder of its own, a
tuned move and random numbers; all chains take each step in the same calls. Of one row these are
its own path, move and stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.random import RowStreams, Stream
from sklpf.paths import JointRows
from sklpf.paths._capabilities import has


def can_join(path: Any, transition: Any) -> bool:
    """Whether the chains of rows such as this one can be moved in one array."""
    return has(path, JointRows) and transition.joins_rows


def joint_path(paths: Sequence[Any], n_chains: int) -> Any:
    """The path of n chains of each row, on the ladders of all rows, one after the other."""
    if len(paths) == 1:
        return paths[0]
    joint = paths[0].side_by_side(paths, n_chains)
    joint.ladder = np.concatenate([path.ladder for path in paths])
    return joint


def joint_levels(
    paths: Sequence[Any], levels: Sequence[NDArray[np.int64]], n_chains: int
) -> NDArray[np.int64]:
    """Levels of every row (m,), for n chains of each as levels of the joint path, (m, T n)."""
    first = np.cumsum([0, *(len(path.ladder) for path in paths[:-1])])
    columns = [start + of_row for start, of_row in zip(first, levels)]
    return np.repeat(np.stack(columns, axis=1), n_chains, axis=1)


def joint_move(transitions: Sequence[Any], paths: Sequence[Any], joint: Any) -> Any:
    """The move that has at every level of the joint path what the row's own move has there."""
    if len(paths) == 1:
        return transitions[0]
    return transitions[0].side_by_side(transitions, paths, joint.ladder)


def joint_stream(streams: Sequence[Stream], n_chains: int) -> Any:
    """The random numbers of n chains of each row."""
    return streams[0] if len(streams) == 1 else RowStreams(streams, n_chains)


def chains_of(rows: Sequence[int], n_chains: int) -> NDArray[np.int64]:
    """Which chains of a joint array some rows have, row by row."""
    return (n_chains * np.array(rows)[:, np.newaxis] + np.arange(n_chains)).ravel()
