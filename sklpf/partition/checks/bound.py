"""A lower bound of log Z that does not depend on the base, of paths with `bound_draws`.

Each of its estimates has at most the expectation Z, so that the expectation of its log is at most
log Z, whatever its draws miss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from sklpf._utils.numbers import Array
from sklpf.partition._result import Finding, Judgement, PartitionResult, Run, Work
from sklpf.partition.alarms import MATERIAL_BOUND, raised, threshold
from sklpf.uncertainty import log_mean_exp, standard_error


@dataclass(frozen=True, kw_only=True)
class Bound(Finding):
    """Logs of G independent estimates of Z (G,), whose mean is at most log Z."""

    requires = ("bound_draws",)

    log_estimates: Array

    @classmethod
    def collect(cls, work: Work) -> Self:
        draws = work.path.bound_draws(work.stream("bound"))
        return cls(log_estimates=log_mean_exp(draws, axis=1), n_evaluations=work.path.bound_cost)

    def judge(self, run: Run, result: PartitionResult) -> Judgement:
        """Return an alarm if an estimate is below the bound by more than chance, and the bound."""
        mean = float(self.log_estimates.mean())
        error = standard_error(self.log_estimates)
        numbers = {"plain_bound": mean, "plain_bound_std_error": error}
        if result.statement != "estimate" or not np.isfinite(result.log_partition):
            return [], numbers
        chance = threshold("below-the-bound", "bound_errors") * float(
            np.hypot(error, result.std_error)
        )
        if not mean - result.log_partition > max(MATERIAL_BOUND, chance):  # also of a NaN
            return [], numbers
        return [raised("below-the-bound", "bound", mean=mean, error=error)], numbers
