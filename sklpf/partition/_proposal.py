"""Independent draws from a path's base, or from a proposal in its place, with their weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sklpf._utils.numbers import Array
from sklpf._utils.random import Stream
from sklpf.paths import DataRows, GeometricPath
from sklpf.paths._as_base import as_base
from sklpf.paths._capabilities import has, require_base
from sklpf.programs._plan import check_finite
from sklpf.transitions._pilot import reflect

_N_COVER = 1000  # draws of which the neighbourhood is looked at


class BaseDraws(NamedTuple):
    """Draws x from the base, log f_1(x) - log f_0(x) of each (n,), and log Z_0."""

    state: Any
    log_weights: Array
    base_log_partition: float


def base_draws(path: Any, n: int, stream: Stream, who: str) -> BaseDraws:
    """Return n draws from the base with their weights."""
    base_log_partition = require_base(path, who)
    path = path.with_ladder([0.0, 1.0])
    state = path.sample_base(n, stream)
    vectors = path.log_f_ladder(state)
    log_weights = check_finite(vectors[:, 1] - vectors[:, 0], allow_zero=path.has_walls)
    return BaseDraws(state, log_weights, base_log_partition)


def check_cover(path: Any, state: Any, stream: Stream) -> None:
    """Raise ValueError if the target of a `GeometricPath` has mass next to the base's draws where
    the base has none: draws alone can't show it.
    """
    if not isinstance(path, GeometricPath):
        return
    position = path.position(state)[:_N_COVER]
    moves = np.asarray(path.base.scale) * stream.generator().standard_normal(position.shape)
    path.at(reflect(path.bounds, position + moves, moves)[0])


def proposing(path: Any, proposal: Any) -> Any:
    """Return the path to the same density from a proposal in the place of its base.

    Raises
    ------
    TypeError
        If the path is not to a density on R^d, or the proposal is none.
    ValueError
        If the proposal doesn't fit the path.
    """
    if proposal is None:
        return path
    if not isinstance(path, GeometricPath) or has(path, DataRows):
        # a model's path has coordinates of its own
        raise TypeError(
            f"proposal must be None for a {type(path).__name__}: proposals are for a GeometricPath,"
            " a density on R^d; give the path or the model another base"
        )
    try:
        base = as_base(proposal, path.n_dimensions)
    except (TypeError, ValueError) as error:
        raise type(error)(f"proposal can't be used: {error}") from error
    return path.with_base(base)
