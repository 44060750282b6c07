"""PartitionResult: what an estimator says about log Z, how sure it is, and why it may not be trusted."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student_t


@dataclass(frozen=True)
class PartitionResult:
    """The outcome of one estimation of a log partition function.

    Attributes
    ----------
    method : str
        Name of the estimator.
    log_partition : float
        log Z in nats.
    std_error : float
        Standard error of `log_partition` in nats; 0 for exact results.
    degrees_of_freedom : float
        Of the Student t quantile in `interval`; inf for a normal quantile or an exact value.
    statement : {"exact", "estimate", "lower bound", "upper bound", "conservative, not a bound", "approximate"}
        What kind of number this is. A bound holds in expectation, and `interval` turns it into a one-sided one.
    converged : bool
        False if the numbers should not be trusted; `reasons` says why.
    reasons : tuple of str
        One sentence an alarm, empty when converged.
    n_sweeps : int
        Sweeps of all chains together, everything included.
    seconds : float
        Wall time.
    ladder : ndarray of shape (K,) or None
        Inverse temperatures that were used.
    log_partition_curve : ndarray of shape (K,) or None
        log Z at every level, in nats.
    diagnostics : dict
        Further numbers by name; each estimator's documentation lists its own.
    """

    method: str
    log_partition: float
    std_error: float
    degrees_of_freedom: float = math.inf
    statement: str = "estimate"
    converged: bool = True
    reasons: tuple[str, ...] = ()
    n_sweeps: int = 0
    seconds: float = 0.0
    ladder: NDArray[np.float64] | None = None
    log_partition_curve: NDArray[np.float64] | None = None
    diagnostics: dict[str, Any] = field(default_factory=dict)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the interval that covers log Z with probability `level`, in nats.

        Two-sided with Student t quantiles for an estimate. A bound gives a one-sided interval by Markov's inequality
        (P(log Z < lower bound - log(1 / delta)) <= delta); a statement that is neither gives (-inf, inf).
        """
        if not 0 < level < 1:
            raise ValueError(f"level must lie strictly between 0 and 1, got {level}")
        margin = -math.log1p(-level)
        if self.statement == "lower bound":
            return self.log_partition - margin, math.inf
        if self.statement == "upper bound":
            return -math.inf, self.log_partition + margin
        if self.statement in ("conservative, not a bound", "approximate"):
            return -math.inf, math.inf
        if self.std_error == 0:
            return self.log_partition, self.log_partition
        half = float(student_t.ppf(0.5 + level / 2, self.degrees_of_freedom)) * self.std_error
        return self.log_partition - half, self.log_partition + half
