"""log Z_1 / Z_0 where the base draws points at which the target is 0: chains hardly ever come from
there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sklpf._utils.alarm import Alarm
from sklpf._utils.numbers import Array
from sklpf._utils.random import Stream
from sklpf.partition.checks._alarms import weight_alarms, weight_diagnostics
from sklpf.programs._plan import check_alive, check_finite
from sklpf.reweighting import MeanWeight, mean_weight

_LOOK = 1000  # base draws that show whether it has such points
_MATERIAL = 0.01  # share of them that is worth the work: less moves log Z by less than 0.01 nats
_COST = 4  # so many sweeps of the chains to one draw
_MOST_DRAWS = 1_000_000
_TOL_SHARE = 3  # the ratio's standard error is to be so many times smaller than `tol`


class FirstRatio(NamedTuple):
    """log Z_1 / Z_0 and its errors, how many draws it took, and what speaks against it."""

    mean: MeanWeight
    n_draws: int
    alarms: tuple[Alarm, ...]


def first_ratio(
    path: Any, n_sweeps: int, tol: float | None, key: tuple[int, int]
) -> FirstRatio | None:
    """The mean of f_1 / f_0 over independent base draws; None where these don't fall on points with
    f_1 = 0.

    Such points are seen from level 0 alone. Chains that have left them seldom return, so that what
    their visits say of Z_1 / Z_0 is noise that does not show how large it is.

    Parameters
    ----------
    path : Path
    n_sweeps : int
        Number of sweeps of all chains together: a quarter as many draws are made, at least 1000.
    tol : float or None
        Standard error (nats) that the run is to have; more draws are made for it, up to a million.
    key : tuple of int
        Key of the draws' random stream.
    """
    if not path.has_walls:
        return None
    stream = Stream(key)
    parts = [_log_weights(path, Stream(key))]
    if np.mean(parts[0] == -np.inf) < _MATERIAL:
        return None
    check_alive(parts[0])
    n = max(_LOOK, n_sweeps // _COST)
    if tol is not None:
        variance = mean_weight(parts[0]).std_error ** 2 * _LOOK
        n = max(n, min(_MOST_DRAWS, int(variance * (_TOL_SHARE / tol) ** 2)))
    parts += [_log_weights(path, stream.at(i)) for i in range(1, -(-n // _LOOK))]
    log_weights = np.concatenate(parts)
    remedy = (
        "the others lie where the target is 0, or nearly: give a base that covers the target more"
        " closely"
    )
    alarms = weight_alarms(len(log_weights), weight_diagnostics(log_weights), remedy)
    return FirstRatio(mean_weight(log_weights), len(log_weights), tuple(alarms))


def _log_weights(path, stream) -> Array:
    """log f_1 - log f_0 of base draws."""
    state = path.sample_base(_LOOK, stream)
    log_base, log_first = (path.log_f(state, np.full(_LOOK, k)) for k in (0, 1))
    return check_finite(log_first - log_base, allow_zero=True)
