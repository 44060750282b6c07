"""How many levels a run needs: found by short runs of their own, whose chains never enter an
estimate.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sklpf._utils.numbers import LARGEST
from sklpf.programs._annealing import anneal_up
from sklpf.programs._plan import Plan, with_round
from sklpf.reweighting import mean_weight

_FEWEST_LEVELS = 10
_FEWEST_CHAINS = 20
# each pilot has so many times the levels of the one before; no pilot has more than a quarter of all
_GROWTH = 4
_MARGIN = 1.5  # the standard error is aimed so many times below tol, for the pilot's noise
_MOST_VARIANCE = np.log(2)  # of log weights: half of the weights count


def enough_levels(
    plans: Sequence[Plan], n_chains: int, tol: float, stage: int, n_jobs=None
) -> list[Plan]:
    """Thin out the levels of every row to as many as give log Z a standard error of `tol` / 1.5, or
    keep them all. The plans' histories are log Z / Z_0 on the way.

    The variance of log weights falls in proportion to the number of moves. A pilot of few chains
    measures it with few levels, and with more of them until it need not be extrapolated far.
    """
    plans = list(plans)
    most = len(plans[0].path.ladder)
    n = max(_FEWEST_CHAINS, n_chains // 4)
    n_levels = min(_FEWEST_LEVELS, most)
    open_rows = list(range(len(plans)))
    i = 0
    while open_rows:
        thin = [_thinned(plans[t], n_levels) for t in open_rows]
        arrivals = anneal_up(thin, n, (stage, i), n_jobs)
        for t, arrived in zip(list(open_rows), arrivals):
            plan = _with_estimate(plans[t], arrived.log_weights, n * (n_levels - 1))
            needed = 1 + (n_levels - 1) * _excess(arrived.log_weights, n_chains, tol)
            if needed <= _GROWTH * n_levels or _GROWTH**2 * n_levels > most:
                plan = _thinned(plan, int(np.ceil(min(max(needed, n_levels), most))))
                open_rows.remove(t)
            plans[t] = plan
        n_levels *= _GROWTH
        i += 1
    return plans


def _with_estimate(plan, log_weights, n_moves) -> Plan:
    """The plan after a pilot, with what that says of log Z / Z_0, if anything."""
    plan = plan._replace(n_sweeps=plan.n_sweeps + n_moves)
    if not np.any(log_weights > -np.inf):
        return plan
    estimate = mean_weight(log_weights)
    history = with_round(plan.history, estimate.log_mean, estimate.delta, plan.n_sweeps)
    return plan._replace(history=history)


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


def _thinned(plan, n_levels) -> Plan:
    """The plan with a ladder of the same shape with other levels, no more."""
    ladder = plan.path.ladder
    place = np.linspace(0, len(ladder) - 1, n_levels)
    return plan._replace(
        path=plan.path.with_ladder(np.interp(place, np.arange(len(ladder)), ladder))
    )
