"""RTS, SAMS and WangLandau: right values and honest errors.

z-bounds: 4.8 standard errors with 9 degrees of freedom is a false-alarm rate of 1e-3 a comparison;
seeds are fixed.
"""

from dataclasses import replace

import numpy as np
import pytest
from convergence import quietly, z_score
from known_problems import make_rbm_problem
from marks import large
from sklearn.exceptions import ConvergenceWarning

from sklpf import RTS, BernoulliRBM
from sklpf.partition import SAMS, WangLandau

T_BOUND = 4.8


# ---- values
def test_given_ladder_and_prior_stay():
    ladder, prior = np.array([0.0, 0.1, 0.4, 1.0]), np.array([1.0, 2.0, 3.0, 4.0])
    problem = make_rbm_problem("easy")
    rts = RTS(ladder=ladder, prior=prior, n_sweeps=2000, random_state=0).fit(problem.path)
    np.testing.assert_array_equal(rts.result_.ladder, ladder)
    shares = rts.result_.diagnostics["shares"]
    np.testing.assert_allclose(shares, prior / 10, atol=0.05)
    assert abs(z_score(rts, problem.log_partition)) < T_BOUND


@pytest.mark.parametrize("kind", [RTS, large(SAMS), WangLandau])
def test_tolerance_is_met_by_more_rounds(kind):
    problem = make_rbm_problem("easy")
    fitted = kind(n_temperatures=10, n_sweeps=300, tol=0.02, random_state=0).fit(problem.path)
    assert fitted.log_partition_std_error_ <= 0.02
    assert fitted.result_.diagnostics["n_rounds"] >= 2
    assert abs(z_score(fitted, problem.log_partition)) < T_BOUND


def test_rounds_without_any_error_are_combined():
    """Of a base that is the target, every state says the same."""
    flat = BernoulliRBM.from_parameters(np.zeros((3, 4)), np.zeros(4), np.zeros(3))
    run = RTS(10, 10, 400, sweeps_per_redraw=1, random_state=0).fit(flat).run_
    result = replace(run, rounds=(run.last, run.last)).read()
    assert result.log_partition == pytest.approx(7 * np.log(2), abs=1e-12)
    assert result.std_error < 1e-12


def test_a_tolerance_out_of_reach_takes_max_sweeps():
    rts = RTS(20, 20, n_sweeps=300, tol=1e-4, max_sweeps=1200, random_state=0)
    with pytest.warns(ConvergenceWarning, match="above tol"):
        rts.fit(make_rbm_problem("digits").path)
    assert 900 * 20 <= rts.result_.n_sweeps <= 1200 * 20


# ---- no confident wrong answers
def test_the_papers_initialisation_of_joint_weights():
    """Ten rounds from log Z = 0 end far from equilibrium: the error is many times the reported one,
    and is flagged.
    """
    problem = make_rbm_problem("sharp digits", weights="joint")
    with pytest.warns(ConvergenceWarning, match="visited both ends of the ladder"):
        rts = RTS(n_sweeps=1000, init="paper", random_state=0).fit(problem.path)
    assert abs(rts.log_partition_ - problem.log_partition) > 1


@pytest.mark.parametrize("name", ["easy", "digits"])
def test_short_runs_of_few_chains_settle(name):
    """gamma begins where the pilot's errors put it, so that the pilot's estimates are not lost. The
    intervals of 2 seeds, each at 4.8 standard errors: false alarms in 2e-3.
    """
    problem = make_rbm_problem(name)
    for seed in range(2):
        fitted = quietly(WangLandau(20, n_sweeps=400, random_state=seed), problem.path)
        assert fitted.run_.settled
        assert "frozen weights were off" not in " ".join(fitted.result_.reasons)
        assert abs(z_score(fitted, problem.log_partition)) < T_BOUND
        diagnostics = fitted.result_.diagnostics
        assert diagnostics["adaptive_gain"][0] < 0.05
        gamma = diagnostics["adaptive_gain"][0] * fitted.n_temperatures / 20
        assert gamma >= 0.999 * fitted.run_.history[0, 1] ** 2  # of the target: not below
        assert abs(diagnostics["adaptive_log_partition"][-1] - problem.log_partition) < 0.5
        assert np.all(np.diff(diagnostics["adaptive_n_draws"]) > 0)
        assert 0.97 * 400 * 20 <= fitted.result_.n_sweeps <= 400 * 20
