"""RTS: right values, honest errors and alarms.

z-bounds: 4.8 standard errors with 9 degrees of freedom is a false-alarm rate of 1e-3 a comparison;
seeds are fixed.
"""

import numpy as np
import pytest
from convergence import may_not_converge
from known_problems import hidden_mode_problem, make_rbm_problem
from sklearn.exceptions import ConvergenceWarning

from sklpf import RTS, Exact
from sklpf.paths import Path

T_BOUND = 4.8


# ---- the estimator
@pytest.mark.parametrize(
    ("parameters", "weights"),
    [({}, "joint"), ({"rao_blackwell": False}, "marginal")]
    + [({"prior": 2.0}, "marginal"), ({"ladder": "sigmoid"}, "joint")],
)
def test_is_right_at_a_known_log_partition(parameters, weights):
    problem = make_rbm_problem("easy", weights=weights)
    rts = RTS(n_temperatures=20, n_sweeps=1500, random_state=1, **parameters).fit(problem.path)
    assert rts.converged_
    assert rts.log_partition_std_error_ < 0.15
    z = (rts.log_partition_ - problem.log_partition) / rts.log_partition_std_error_
    assert abs(z) < T_BOUND
    assert rts.result_.method == ("RTS" if parameters.get("rao_blackwell", True) else "TS")


def test_curve_matches_enumeration_at_every_level():
    problem = make_rbm_problem("digits")
    result = RTS(n_temperatures=20, n_sweeps=3000, random_state=0).fit(problem.path).result_
    exact = [
        Exact().fit(problem.path.with_ladder([0, beta])).log_partition_
        for beta in result.ladder[1:]
    ]
    # the curve's error grows along the ladder to the reported one: 5 standard errors hold for all
    # levels together
    np.testing.assert_allclose(result.log_partition_curve[1:], exact, atol=5 * result.std_error)
    assert result.log_partition_curve[0] == 0.0
    assert result.log_partition_curve[-1] == result.log_partition


def test_given_ladder_and_prior_stay():
    ladder, prior = np.array([0.0, 0.1, 0.4, 1.0]), np.array([1.0, 2.0, 3.0, 4.0])
    problem = make_rbm_problem("easy")
    rts = RTS(ladder=ladder, prior=prior, n_sweeps=2000, random_state=0).fit(problem.path)
    np.testing.assert_array_equal(rts.result_.ladder, ladder)
    shares = rts.result_.diagnostics["shares"]
    np.testing.assert_allclose(shares, prior / 10, atol=0.05)
    assert abs(rts.log_partition_ - problem.log_partition) < T_BOUND * rts.log_partition_std_error_


def test_tolerance_is_met_by_more_rounds():
    problem = make_rbm_problem("digits")
    once = RTS(n_temperatures=20, n_sweeps=300, random_state=0)
    with may_not_converge():
        first_error = once.fit(problem.path).log_partition_std_error_
    rts = RTS(n_temperatures=20, n_sweeps=300, tol=first_error / 2, random_state=0).fit(
        problem.path
    )
    assert rts.log_partition_std_error_ <= first_error / 2
    assert rts.result_.diagnostics["n_rounds"] >= 3
    assert abs(rts.log_partition_ - problem.log_partition) < T_BOUND * rts.log_partition_std_error_
    with pytest.warns(ConvergenceWarning, match="above tol"):
        stopped = RTS(
            n_temperatures=20, n_sweeps=300, tol=1e-4, max_sweeps=1200, random_state=0
        ).fit(problem.path)
    assert 900 * 100 <= stopped.result_.n_sweeps <= 1200 * 100


# ---- alarms
def test_a_ladder_that_was_not_traversed_is_reported_in_words():
    problem = make_rbm_problem("sharp digits")
    with pytest.warns(ConvergenceWarning, match="visited both ends of the ladder"):
        rts = RTS(n_sweeps=100, random_state=0).fit(problem.path)
    assert not rts.converged_
    assert "raise n_sweeps" in rts.result_.reasons[0]
    assert rts.result_.diagnostics["crossed"].mean() < 0.9


def test_the_papers_initialisation_of_joint_weights_is_no_confident_wrong_answer():
    """Ten rounds from log Z = 0 end far from equilibrium: the error is many times the reported one,
    and is flagged.
    """
    problem = make_rbm_problem("sharp digits", weights="joint")
    with pytest.warns(ConvergenceWarning):
        rts = RTS(n_sweeps=1000, init="paper", random_state=0).fit(problem.path)
    assert abs(rts.log_partition_ - problem.log_partition) > 1
    assert "visited both ends of the ladder" in rts.result_.reasons[0]


def test_groups_in_modes_of_their_own_are_an_alarm():
    """Each of ten groups has one chain, which seldom leaves its mode of a sharp RBM."""
    with pytest.warns(
        ConvergenceWarning, match="groups of chains differ in their states at the target"
    ):
        rts = RTS(10, 30, 1000, random_state=0).fit(make_rbm_problem("sharp digits").path)
    assert rts.result_.diagnostics["between_groups"] > 0.2


def test_sees_no_hidden_mode_as_its_documentation_says():
    problem = hidden_mode_problem()
    rts = RTS(n_temperatures=4, n_sweeps=300, n_chains=20, random_state=0).fit(problem.path)
    assert rts.log_partition_ == pytest.approx(problem.log_partition - np.log(2), abs=1e-6)


# ---- bad input


class Broken(Path):
    """log f is not a number from the second level on."""

    base_log_partition = 0.0

    def log_f(self, state, levels):
        return np.where(levels > 1, np.nan, 0.0)

    def sample_base(self, n, stream):
        return np.zeros(n, dtype=int)

    def gibbs(self, state, levels, stream):
        return levels.copy()


@pytest.mark.parametrize("init", ["adaptive", "paper"])
def test_densities_that_are_no_numbers_are_refused(init):
    with pytest.raises(ValueError, match="log_f gave values that are not finite"):
        RTS(n_temperatures=5, n_sweeps=200, init=init, random_state=0).fit(Broken())
