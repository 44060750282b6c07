"""Budgets: no estimator of densities evaluates more often, or runs longer, than it may, and all
leave the best number that they have, or say that there is none.
"""

import time

import numpy as np
import pytest
from convergence import alarm_kinds, quietly

from sklpf import AIS, HAIS, RTS, SMC, BernoulliRBM, Gaussian, GeometricPath, ParallelTempering
from sklpf.partition import (
    BDMC,
    RAISE,
    SAMS,
    AdaptiveSMC,
    ImportanceSampling,
    UntilTrusted,
    WangLandau,
)

LOG_PARTITION = 1.5 * np.log(2 * np.pi * 0.09)
ESTIMATORS = {
    "AIS": AIS(),
    "HAIS": HAIS(),
    "SMC": SMC(),
    "AdaptiveSMC": AdaptiveSMC(),
    "ParallelTempering": ParallelTempering(),
    "RTS": RTS(),
    "SAMS": SAMS(),
    "WangLandau": WangLandau(),
    "ImportanceSampling": ImportanceSampling(),
    "explored": ImportanceSampling(proposal="explored"),
    "BDMC": BDMC(),
    "RAISE": RAISE(),
    "UntilTrusted": UntilTrusted(),
}


class Density:
    """A Gaussian that counts the points at which it or its gradient is evaluated, and may be slow,
    or be interrupted after so many.
    """

    def __init__(self, seconds=0.0, n_until=np.inf):
        self.seconds = seconds
        self.n_until = n_until
        self.n = 0

    def __getstate__(self):
        return {"seconds": 0.0}  # what a checkpoint is named by

    def __call__(self, x):
        self._evaluate(x)
        return -0.5 * np.sum((x - 1) ** 2, axis=1) / 0.09

    def grad(self, x):
        self._evaluate(x)
        return -(x - 1) / 0.09

    def _evaluate(self, x):
        self.n += len(x)
        time.sleep(self.seconds * len(x))
        if self.n > self.n_until:
            raise KeyboardInterrupt

    def path(self, name):
        grad = self.grad if name == "HAIS" else None
        path = GeometricPath(self, grad=grad, base=Gaussian(np.zeros(3), 4.0))
        self.n = 0  # without those that check the functions
        return path


def budgeted(name, density, **budget):
    estimator = ESTIMATORS[name].set_params(random_state=0, **budget)
    try:
        return quietly(estimator, density.path(name))
    finally:
        estimator.set_params(**dict.fromkeys(budget))


@pytest.mark.parametrize("most", [1000, 20_000, 70_000])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_evaluations_with_all_checks_are_no_more_than_allowed(name, most):
    density = Density()
    fitted = budgeted(name, density, max_evaluations=most)
    result = fitted.result_
    assert density.n <= most
    assert np.isfinite(result.log_partition)
    assert result.diagnostics["n_evaluations"] == density.n
    if "budget-spent" in alarm_kinds(fitted):
        assert density.n > most / 2
        assert any("raise max_evaluations" in reason for reason in result.reasons)
    if np.isfinite(result.std_error):
        # of 39 errors, of which few tell by how much, one is beyond 6 with probability 1e-5
        assert abs(result.log_partition - LOG_PARTITION) < 6 * result.std_error + 0.05
    else:
        assert "budget-spent" in alarm_kinds(fitted)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_seconds_are_no_more_than_allowed(name):
    began = time.perf_counter()
    fitted = budgeted(name, Density(1e-5), max_seconds=0.3)
    # a fit of a mixture between two evaluations is not stopped, and others share the machine
    assert time.perf_counter() - began < 1.0
    reasons = fitted.result_.reasons
    assert fitted.converged_ or any("raise max_seconds" in reason for reason in reasons)


@pytest.mark.parametrize("name", ["AIS", "ParallelTempering", "AdaptiveSMC", "explored"])
def test_an_interrupted_run_has_what_it_left_of_its_budget_on_two_jobs(name, tmp_path):
    options = {"max_evaluations": 60_000, "checkpoint": tmp_path}
    whole = budgeted(name, Density(), **options)
    n_all = whole.result_.diagnostics["n_evaluations"]
    with pytest.raises(KeyboardInterrupt):
        budgeted(name, Density(n_until=n_all // 2), **options)
    density = Density()
    resumed = budgeted(name, density, n_jobs=2, **options)
    assert density.n < 0.8 * n_all
    for each in ("log_partition", "std_error", "reasons"):
        np.testing.assert_equal(getattr(resumed.result_, each), getattr(whole.result_, each))


def test_budgets_of_what_does_not_count():
    rbm = BernoulliRBM.from_parameters([[1.0, -1.0]], [0.0, 0.0], [0.0])
    for estimator in (AIS(max_evaluations=100), UntilTrusted(max_evaluations=100)):
        with pytest.raises(ValueError, match="give max_seconds"):
            estimator.fit(rbm)
    assert AIS(max_seconds=600, random_state=0).fit(rbm).converged_  # which has regions
    stopped = quietly(AIS(max_seconds=1e-6, random_state=0), rbm)
    assert np.isnan(stopped.log_partition_)
    assert alarm_kinds(stopped) == {"budget-spent"}
