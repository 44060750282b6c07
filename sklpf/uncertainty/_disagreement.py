"""t-tests on differences between estimates from the same independent groups."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student_t

from sklpf.uncertainty._jackknife import jackknife

FALSE_ALARM = 1e-3  # of each test on a run, two-sided
_ROUNDING = 1e-9  # differences (nats) that no test looks at


def t_bound(n_groups: int, n_tests: int = 1) -> float:
    """Absolute t statistic that one of `n_tests` tests on `n_groups` groups exceeds in 0.1 % of the runs by chance."""
    return float(student_t.isf(FALSE_ALARM / 2 / n_tests, n_groups - 1))


def t_ratio(difference: ArrayLike, std_error: ArrayLike) -> float:
    """difference / std_error; 0 where the difference is rounding."""
    return float(np.divide(difference, std_error)) if abs(float(np.asarray(difference))) > _ROUNDING else 0.0


def t_statistic(difference: Callable[[NDArray], ArrayLike], n_groups: int) -> float:
    """t statistic of a difference, a function of the groups to use, by the jackknife."""
    value, std_error = jackknife(difference, n_groups)
    return t_ratio(value, std_error) if std_error > 0 else 0.0
