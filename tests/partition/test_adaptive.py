"""SAMS and WangLandau: gains, updates, right values, alarms, streams and bad input.

z-bounds: 4.8 standard errors with 9 degrees of freedom is a false-alarm rate of 1e-3 a comparison;
seeds are fixed.
"""

import numpy as np
import pytest
from convergence import quietly
from known_problems import make_rbm_problem
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sklpf import SAMS, Gaussian, GeometricPath, WangLandau

T_BOUND = 4.8
KINDS = {
    "SAMS": SAMS,
    "WangLandau": WangLandau,
}


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


# ---- the estimators
def test_is_right_at_a_known_log_partition(kind):
    problem = make_rbm_problem("easy")
    fitted = kind(n_temperatures=20, n_sweeps=1500, random_state=1).fit(problem.path)
    assert fitted.converged_
    assert fitted.log_partition_std_error_ < 0.15
    assert (
        abs(fitted.log_partition_ - problem.log_partition)
        < T_BOUND * fitted.log_partition_std_error_
    )
    diagnostics = fitted.result_.diagnostics
    assert fitted.result_.method == type(fitted).__name__
    assert abs(diagnostics["adaptive_log_partition"][-1] - problem.log_partition) < 0.5
    assert fitted.run_.adaptation.settled
    assert np.all(np.diff(diagnostics["adaptive_n_draws"]) > 0)
    assert 0.97 * 1500 * 100 <= fitted.result_.n_sweeps <= 1500 * 100


def test_what_chains_should_visit_is_kept():
    problem = make_rbm_problem("easy")
    ladder, prior = np.array([0.0, 0.1, 0.4, 1.0]), np.array([1.0, 2.0, 3.0, 4.0])
    sams = SAMS(ladder=ladder, prior=prior, n_sweeps=2000, random_state=0).fit(problem.path)
    np.testing.assert_allclose(sams.result_.diagnostics["shares"], prior / 10, atol=0.05)
    assert (
        abs(sams.log_partition_ - problem.log_partition) < T_BOUND * sams.log_partition_std_error_
    )


def test_tolerance_is_met_by_more_rounds(kind):
    problem = make_rbm_problem("easy")
    fitted = kind(n_temperatures=10, n_sweeps=300, tol=0.04, random_state=0).fit(problem.path)
    assert fitted.log_partition_std_error_ <= 0.04
    assert fitted.result_.diagnostics["n_rounds"] >= 2
    assert (
        abs(fitted.log_partition_ - problem.log_partition)
        < T_BOUND * fitted.log_partition_std_error_
    )


# ---- alarms
@pytest.mark.parametrize(
    "estimator",
    [SAMS(n_sweeps=60, random_state=0), WangLandau(n_sweeps=150, flatness=0.8, random_state=0)],
)
def test_weights_that_have_not_settled_are_an_alarm(estimator):
    problem = make_rbm_problem("hard")
    with pytest.warns(ConvergenceWarning, match="weights had not settled when they were frozen"):
        fitted = clone(estimator).fit(problem.path)
    assert not fitted.converged_
    assert fitted.result_.reasons[0].endswith("raise n_sweeps")


def test_a_ladder_that_was_not_traversed_is_reported(kind):
    with pytest.warns(ConvergenceWarning, match="visited both ends of the ladder"):
        kind(n_sweeps=100, random_state=0).fit(make_rbm_problem("sharp digits").path)


def test_base_draws_outside_of_the_target_are_no_confident_wrong_answer(kind):
    """7 of 8 base draws are where the target is 0: chains that never come back to level 0 don't
    know it.

    Four standard errors, the t law of ten groups: false alarms in 0.3 % of the runs, for 1.2 % of
    the seeds.
    """
    path = GeometricPath(
        lambda x: np.where(np.all(x > 0, axis=1), -np.sum(x**2, axis=1) / 2, -np.inf),
        base=Gaussian(np.zeros(3), 1.5),
    )
    truth = 1.5 * np.log(2 * np.pi) - 3 * np.log(2)
    for seed in (0, 1):
        fitted = quietly(kind(20, 15, 400, random_state=seed), path)
        assert abs(fitted.log_partition_ - truth) < 4 * fitted.log_partition_std_error_ < 0.6


# ---- bad input
@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (SAMS(exponent=1.0), "exponent"),
        (SAMS(update="both"), "update"),
        (SAMS(n_sweeps=15), "n_sweeps"),
        (SAMS(prior=np.zeros(100)), "prior must hold 100 positive numbers"),
        (SAMS(prior=np.array(["a", "b"])), "prior must be real numbers"),
        (SAMS(prior=1e300), "prior must leave each level a share"),
        (WangLandau(flatness=1.0), "flatness"),
        (WangLandau(n_sweeps=40, sweeps_per_redraw=4), "n_sweeps must be at least 64"),
    ],
)
def test_bad_parameters_are_named(estimator, message):
    with pytest.raises((TypeError, ValueError), match=message):
        clone(estimator).fit(make_rbm_problem("easy").path)
