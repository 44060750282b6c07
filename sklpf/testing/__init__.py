"""What tests of sklpf, and of your own paths, transitions and estimators, are built from."""

from sklpf.testing._checks import check_partition_estimator, check_path, check_transition
from sklpf.testing._data import find_shared_data
from sklpf.testing._densities import DENSITY_PROBLEMS, make_density_problem
from sklpf.testing._problems import (
    RBM_PROBLEMS,
    HiddenModePath,
    Problem,
    hidden_mode_problem,
    make_rbm_problem,
)
from sklpf.testing._row_problems import LinearRowsPath, make_rows_problem

__all__ = [
    "DENSITY_PROBLEMS",
    "RBM_PROBLEMS",
    "HiddenModePath",
    "LinearRowsPath",
    "Problem",
    "check_partition_estimator",
    "check_path",
    "check_transition",
    "find_shared_data",
    "hidden_mode_problem",
    "make_density_problem",
    "make_rbm_problem",
    "make_rows_problem",
]
