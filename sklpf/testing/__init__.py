"""Checks of your own paths, transitions and estimators."""

from sklpf.testing._bayes_factors import BayesFactorCheck, check_bayes_factors
from sklpf.testing._checks import (
    Problem,
    check_parallel,
    check_partition_estimator,
    check_path,
    check_transition,
    find_shared_data,
)

__all__ = [
    "BayesFactorCheck",
    "Problem",
    "check_bayes_factors",
    "check_parallel",
    "check_partition_estimator",
    "check_path",
    "check_transition",
    "find_shared_data",
]
