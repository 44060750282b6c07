"""Intervals of converged HAIS runs cover on image models that no default was tuned on, truths
closed or by quadrature.

A thinned form of tests/benchmarks/trained_coverage.py, whose results are in
doc/benchmarks/training.md.
"""

import numpy as np
import pytest
from continuous_models import log_integral
from marks import large

from sklpf import HAIS, MeanCovarianceRBM, ProductOfExperts
from sklpf.models import LinearPath
from sklpf.testing import check_coverage


def complete(heavy):
    rng = np.random.default_rng(21)
    filters, exponents = rng.normal(size=(6, 6)), rng.uniform(1.5, 3, 6)
    path = ProductOfExperts.from_parameters(filters, exponents if heavy else None).path()
    return path, path.closed_log_partition()


def overcomplete():
    rng = np.random.default_rng(22)
    product = ProductOfExperts.from_parameters(rng.normal(size=(4, 2)), rng.uniform(2, 4, 4))
    return product.path(), log_integral(product._log_density, 60, 1001)


def mean_covariance():
    rng = np.random.default_rng(23)
    machine = MeanCovarianceRBM.from_parameters(
        factors=rng.normal(size=(4, 2)),
        pooling=rng.uniform(0, 0.8, (4, 4)),
        mean_components=rng.normal(size=(3, 2)),
        intercept_covariance=rng.normal(1, 1, 4),
        intercept_mean=rng.normal(-1, 1, 3),
        intercept_visible=rng.normal(size=2),
        noise_std=1.0,
    )
    return machine.path(), log_integral(lambda x: machine._log_f(x)[0], 30)


def row():
    """One row of five features with two causes."""
    rng = np.random.default_rng(24)
    components, x = rng.normal(size=(2, 5)), 2 * rng.normal(size=(1, 5))

    def log_joint(causes):
        residual = (x - causes @ components) / 0.7
        log_prior = -np.abs(causes).sum(axis=1) - 2 * np.log(2)
        return log_prior - 0.5 * np.sum(residual**2, axis=1) - 5 * np.log(0.7 * np.sqrt(2 * np.pi))

    return LinearPath(x, components, 0.7, "laplace").row(0), log_integral(log_joint, 14, 701)


PROBLEMS = {
    "Student-t, complete": lambda: complete(True),
    "Laplace, complete": lambda: complete(False),
    "Student-t, overcomplete": overcomplete,
    "mean and covariance": mean_covariance,
    "linear, one row": row,
}


@pytest.mark.parametrize("n_seeds", [2, large(12)])
def test_converged_intervals_cover(n_seeds):
    """Runs on each of five models; flagging everything is no way out."""

    def problem(seed):
        name = list(PROBLEMS)[seed // n_seeds]
        return name, *PROBLEMS[name](), 5e-5  # the grid's own error

    check_coverage(problem, HAIS(40, 30), 5 * n_seeds, least_converged=0.6, false_alarm=2e-4)
