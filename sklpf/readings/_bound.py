"""A lower bound of log Z that owes nothing to the path's base, and what it says about an
estimate.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.alarm import Alarm
from sklpf._utils.random import Stream
from sklpf.paths import BoundDraws
from sklpf.paths._capabilities import has
from sklpf.uncertainty import log_mean_exp

_MATERIAL = 0.05  # nats
_STD_ERRORS = (
    3.0  # a false alarm in at most 0.13 % of the runs, 0.75 % if both errors come from ten groups
)


def lower_bound(path: Any, key: tuple[int, int]) -> NDArray[np.float64] | None:
    """Logs of G independent estimates of Z (G,) whose mean is at most log Z; None where the path
    has none.
    """
    return log_mean_exp(path.bound_draws(Stream(key)), axis=1) if has(path, BoundDraws) else None


def bound_alarms(
    bound: NDArray | None, log_partition: float, std_error: float, diagnostics: dict
) -> list[Alarm]:
    """An alarm if log Z is below the bound by more than chance; the bound goes to the diagnostics.

    Each estimate has the expectation Z, so that the expectation of its log is at most log Z,
    whatever its draws miss.
    """
    if bound is None:
        return []
    mean = float(bound.mean())
    error = float(bound.std(ddof=1) / np.sqrt(len(bound)))
    diagnostics.update(plain_bound=mean, plain_bound_std_error=error)
    # also a NaN
    if not mean - log_partition > max(_MATERIAL, _STD_ERRORS * float(np.hypot(error, std_error))):
        return []
    seen = f"chains from random starts show that log Z is at least {mean:.2f} +- {error:.2f}"
    return [
        Alarm(
            "below-the-bound",
            seen,
            "the base or the moves miss a part of the model; give another base",
        )
    ]
