"""What every run holds: who made it and how, what was known before, and what it cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.alarm import Alarm
from sklpf._utils.tables import Fields
from sklpf.paths import Regions
from sklpf.reweighting import MeanWeight
from sklpf.runs._draws import Draws

# a history (R, 3) without rounds: log Z in nats, its standard error, sweeps of all chains so far
NO_ROUNDS = np.empty((0, 3))


@dataclass(frozen=True, repr=False, kw_only=True)
class Run(Fields):
    """What sampling leaves of one log Z: arrays, from which estimates are read without further
    chains.

    Attributes
    ----------
    sampler : str
        The estimator that made it.
    options : dict
        Those of its parameters on which reading the run depends.
    ladder : ndarray of shape (K,) or None
        Inverse temperatures; None where there are none.
    base_log_partition : float
        log Z_0 in nats.
    n_sweeps : int
        Sweeps of all chains together, everything included.
    check_evaluations : int
        How often checks asked for the log density, or its gradient, at a point of R^d.
    failed_evaluations : int
        Points at which it raised an error then.
    history : ndarray of shape (R, 3)
        log Z in nats, its standard error and the sweeps of all chains after each earlier stage: a
        round, or a pilot.
    bound : ndarray or None
        Logs of independent estimates of Z that are not too large on average, made without the base.
    log_f_rounding : float
        Size of the rounding errors of log_f in nats, where the path names one.
    first_ratio : MeanWeight or None
        log Z_1 / Z_0 from base draws, where some of these fall on points at which the target is 0.
    base : str
        Which base was chosen by itself; empty where it was given.
    known : tuple of Alarm
        What was found against the path before anything was sampled.
    draws : Draws or None
        At most a thousand draws from the target, where the estimator keeps them.
    regions : Regions or None
        Regions of the target whose mass is known, which its draws should have found.
    """

    sampler: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    ladder: NDArray[np.float64] = None  # type: ignore[assignment]  # only of runs without levels
    base_log_partition: float = 0.0
    n_sweeps: int = 0
    check_evaluations: int = 0
    failed_evaluations: int = 0
    history: NDArray[np.float64] = field(default_factory=NO_ROUNDS.copy)
    bound: NDArray[np.float64] | None = None
    log_f_rounding: float = 0.0
    first_ratio: MeanWeight | None = None
    base: str = ""
    known: tuple[Alarm, ...] = ()
    draws: Draws | None = None
    regions: Regions | None = None


def with_round(
    history: NDArray, log_partition: float, std_error: float, n_sweeps: int
) -> NDArray[np.float64]:
    """The history with one more round."""
    return np.vstack([history, [log_partition, std_error, n_sweeps]])
