"""Rules for the parameters that several estimators share, and for the moves that they make."""

from __future__ import annotations

import os
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.special import log_softmax

from sklpf._utils.sklearn import N_JOBS, Instance, Interval, StrOptions
from sklpf.programs._plan import ADAPTIVE_LADDERS
from sklpf.transitions import Transition

SAMPLING: dict[str, Any] = {
    "transition": [Instance(Transition, "a move (such as HMC())"), None],
    "checkpoint": [str, os.PathLike, None],
    "random_state": ["random_state"],
    "n_jobs": N_JOBS,
    "verbose": ["verbose"],
}
ANNEALING: dict[str, Any] = {
    **SAMPLING,
    "n_temperatures": [Interval(Integral, 2, None, closed="left")],
    "ladder": [StrOptions(set(ADAPTIVE_LADDERS)), "array-like"],
}
PRIOR: list[Any] = [
    StrOptions({"uniform"}),
    Interval(Real, None, None, closed="neither"),
    "array-like",
]


def log_prior_of(prior, ladder):
    """log r_k, normalised."""
    if isinstance(prior, str):
        weights = np.zeros(len(ladder))
    elif np.ndim(prior) == 0:
        weights = float(prior) * ladder
    else:
        prior = np.asarray(prior, dtype=float)
        if prior.shape != ladder.shape or not np.all((prior > 0) & np.isfinite(prior)):
            raise ValueError(
                f"prior must hold {len(ladder)} positive numbers, one for each level, or be a"
                " single number"
            )
        weights = np.log(prior)
    return log_softmax(weights)
