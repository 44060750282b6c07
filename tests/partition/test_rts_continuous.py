"""RTS at continuous beta, and thermodynamic integration by it: right values, alarms, streams and
bad input.

z-bounds: 4.8 standard errors with 9 degrees of freedom is a false-alarm rate of 1e-3 a comparison;
seeds are fixed.
"""

from dataclasses import replace

import numpy as np
import pytest
from convergence import z_score
from known_densities import make_density_problem
from marks import large
from sklearn.exceptions import ConvergenceWarning

from sklpf import RTS, Gaussian, GeometricPath
from sklpf.partition import ThermodynamicIntegration
from sklpf.transitions import RandomWalk, Slice

T_BOUND = 4.8
SHORT = {"n_temperatures": 10, "n_sweeps": 300, "n_chains": 50}
SHORT |= {"continuous": True, "random_state": 0}


@pytest.fixture(scope="module")
def problem():
    return make_density_problem("gaussian 2-D, condition 1")


@pytest.fixture(scope="module")
def fitted(problem):
    return RTS(**SHORT).fit(problem.path)


@pytest.mark.parametrize(
    "parameters",
    [
        {"prior": 2.0, "ladder": "adaptive", "random_state": 2},
        {"transition": RandomWalk()},
        large({"transition": Slice()}),
        large({"init": "paper"}),
    ],
)
def test_options_and_moves_leave_the_value(problem, parameters):
    rts = RTS(**{**SHORT, **parameters}).fit(problem.path)
    assert rts.converged_
    assert abs(z_score(rts, problem.log_partition)) < T_BOUND


# ---- alarms
def test_short_runs_are_flagged():
    problem = make_density_problem("gaussian 20-D, condition 10000")
    with pytest.warns(ConvergenceWarning, match="raise n_sweeps"):
        rts = RTS(**{**SHORT, "n_sweeps": 60}).fit(problem.path)
    with pytest.warns(ConvergenceWarning, match="raise n_sweeps"):
        integral = ThermodynamicIntegration(rule="continuous").fit(rts.run_)
    assert set(rts.result_.reasons) <= set(integral.result_.reasons)


def test_wrong_states_at_some_beta_disagree_with_their_average(fitted):
    """Gains that are 3 nats too large at beta > 0.5."""
    run = fitted.run_
    wrong = replace(run, gains=run.gains + 3 * (run.betas > 0.5)).read()
    assert any("averaged at each beta" in alarm.seen for alarm in wrong.alarms)


# ---- bad input
@pytest.mark.parametrize("wall", [0.0, -3.0])
def test_refuses_a_base_that_draws_points_without_mass(wall):
    """Half of the base's draws, and one of 740, at which log Z jumps at beta = 0."""
    base = Gaussian([0.0], 1.0)
    path = GeometricPath(lambda x: np.where(x[:, 0] > wall, -(x[:, 0] ** 2), -np.inf), base=base)
    with pytest.raises(ValueError, match="base whose draws lie where the target has mass"):
        RTS(**SHORT).fit(path)
