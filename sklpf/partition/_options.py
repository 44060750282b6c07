"""Rules for the parameters that several estimators share, and for the moves that they make."""

from __future__ import annotations

import os
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import log_softmax

from sklpf._utils.numbers import as_float64
from sklpf._utils.sklearn import N_JOBS, Instance, Interval, StrOptions, at_least
from sklpf.programs._plan import ADAPTIVE_LADDERS
from sklpf.transitions import Transition

TUNE = 6  # random stream of a move's tuning
SAMPLING: dict[str, Any] = {
    "transition": [Instance(Transition, "a move (such as HMC())"), None],
    "checkpoint": [str, os.PathLike, None],
    "checks": ["boolean"],
    "random_state": ["random_state"],
    "n_jobs": N_JOBS,
    "verbose": ["verbose"],
}
ANNEALING: dict[str, Any] = {
    **SAMPLING,
    "n_temperatures": [at_least(2)],
    "ladder": [StrOptions(set(ADAPTIVE_LADDERS)), "array-like"],
}
PRIOR: list[Any] = [
    StrOptions({"uniform"}),
    Interval(Real, None, None, closed="neither"),
    "array-like",
]


def log_prior_of(prior, ladder):
    """log r_k, normalised."""
    shares = as_float64(0.0 if isinstance(prior, str) else prior, "prior")
    if shares.ndim == 0:
        log_prior = log_softmax(shares * ladder)
    elif shares.shape != ladder.shape or not np.all((shares > 0) & np.isfinite(shares)):
        raise ValueError(
            f"prior must hold {len(ladder)} positive numbers, one for each level, or be a single"
            " number"
        )
    else:
        log_prior = log_softmax(np.log(shares))
    if not np.exp(log_prior).all():
        raise ValueError(
            "prior must leave each level a share that is a positive float64: take a smaller number,"
            " or shares that differ less"
        )
    return log_prior
