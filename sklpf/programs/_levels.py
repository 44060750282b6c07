"""How many levels a run needs: found by short runs of their own, whose chains never enter an
estimate.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.numbers import LARGEST
from sklpf._utils.random import stream_key
from sklpf.programs._annealing import anneal_up
from sklpf.programs._plan import NO_ROUNDS, with_round
from sklpf.reweighting import mean_weight

_FEWEST_LEVELS = 10
_FEWEST_CHAINS = 20
# each pilot has so many times the levels of the one before; no pilot has more than a quarter of all
_GROWTH = 4
_MARGIN = 1.5  # the standard error is aimed so many times below tol, for the pilot's noise
_MOST_VARIANCE = np.log(2)  # of log weights: half of the weights count


class Enough(NamedTuple):
    """The path with as many levels as it needs, the sweeps that this took, and log Z / Z_0 on the
    way (R, 3).
    """

    path: Any
    n_sweeps: int
    history: NDArray[np.float64]


def enough_levels(path, transition, n_chains, tol, seed, stage, n_jobs=None) -> Enough:
    """Thin out the path's levels to as many as give log Z a standard error of `tol` / 1.5, or keep
    them all.

    The variance of log weights falls in proportion to the number of moves. A pilot of few chains
    measures it with few levels, and with more of them until it need not be extrapolated far.
    """
    ladder = path.ladder
    n = max(_FEWEST_CHAINS, n_chains // 4)
    n_sweeps = 0
    n_levels = min(_FEWEST_LEVELS, len(ladder))
    history = NO_ROUNDS
    for i in itertools.count():
        thin = path.with_ladder(_thinned(ladder, n_levels))
        up = anneal_up(thin, transition, n, stream_key(seed, stage, i), n_jobs).log_weights
        n_sweeps += n * (n_levels - 1)
        if np.any(up > -np.inf):
            estimate = mean_weight(up)
            history = with_round(history, estimate.log_mean, estimate.delta, n_sweeps)
        needed = 1 + (n_levels - 1) * _excess(up, n_chains, tol)
        if needed <= _GROWTH * n_levels or _GROWTH**2 * n_levels > len(ladder):
            break
        n_levels *= _GROWTH
    n_levels = int(np.ceil(min(max(needed, n_levels), len(ladder))))
    return Enough(path.with_ladder(_thinned(ladder, n_levels)), n_sweeps, history)


def _excess(log_weights, n_chains, tol) -> float:
    """Variance of log weights over the one that n_chains may have, if they are normal but for those
    of weight 0.
    """
    alive = log_weights[log_weights > -np.inf]
    if len(alive) < 2:
        return np.inf
    error = min(tol / _MARGIN, LARGEST)  # with a square
    allowed = np.log1p(n_chains * error**2) + np.log(len(alive) / len(log_weights))
    allowed = min(allowed, _MOST_VARIANCE)
    return float(np.var(alive, ddof=1) / allowed) if allowed > 0 else np.inf


def _thinned(ladder, n_levels):
    """A ladder of the same shape with other levels, no more."""
    place = np.linspace(0, len(ladder) - 1, n_levels)
    return np.interp(place, np.arange(len(ladder)), ladder)
