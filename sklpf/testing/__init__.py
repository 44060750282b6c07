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
from sklpf.testing._coverage import CoverageCheck, check_coverage

__all__ = [
    "BayesFactorCheck",
    "CoverageCheck",
    "Problem",
    "check_bayes_factors",
    "check_coverage",
    "check_parallel",
    "check_partition_estimator",
    "check_path",
    "check_transition",
    "find_shared_data",
]
