"""Chains of several rows of data in one array. Each row has a path with a ladder of its own, a
tuned move and random numbers; all chains take each step in the same calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.random import RowStreams, Stream

_FIRST = np.zeros(1, dtype=np.int64)


class Joint(NamedTuple):
    """What chains of several rows move on, row after row; of one row its own path and move."""

    path: Any  # of all chains, on the ladders of all rows, one after the other
    transition: Any
    stream: Any
    first_levels: NDArray[np.int64]  # (n_rows,): where the ladder of each row begins


def joined(rows: Sequence[Any], streams: Sequence[Stream], n_chains: int) -> Joint:
    """Return what n chains of each row move on; a row has a `path` and a `transition`."""
    if len(rows) == 1:
        return Joint(rows[0].path, rows[0].transition, streams[0], _FIRST)
    first_levels = np.cumsum([0, *(len(row.path.ladder) for row in rows[:-1])])
    path = rows[0].path.side_by_side([row.path for row in rows], n_chains)
    path.ladder = np.concatenate([row.path.ladder for row in rows])
    transition = rows[0].transition.side_by_side(rows, path.ladder)
    return Joint(path, transition, RowStreams(streams, n_chains), first_levels)
