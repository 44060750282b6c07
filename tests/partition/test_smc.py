import numpy as np
import pytest
from convergence import pooled_z, quietly
from known_densities import make_density_problem
from known_problems import hidden_mode_problem, make_rbm_problem
from marks import large
from sklearn.base import clone

from sklpf import SMC, Exact
from sklpf.transitions import RandomWalk


def test_heavy_weights_that_no_particle_has_met_are_an_alarm():
    path = make_density_problem("student-t 36-D").path
    smc = quietly(SMC(n_temperatures=100, random_state=4), path)
    # by itself the run looks well, and is 5 errors low
    assert smc.result_.diagnostics["effective_ancestors"] > 100
    assert not smc.converged_
    assert "by the reverse chains the effective number of ancestors is" in smc.result_.reasons[0]


@pytest.mark.parametrize("n_temperatures", [12, large(30)])
def test_moves_that_are_tuned_are_right_and_show_their_acceptance(n_temperatures):
    """Four runs together: t with 36 degrees of freedom exceeds 4.7 with a probability of 4e-5."""
    problem = make_density_problem("gaussian 2-D, condition 1")
    smc = SMC(n_temperatures=n_temperatures, transition=RandomWalk())
    runs = [quietly(clone(smc).set_params(random_state=seed), problem.path) for seed in range(4)]
    assert abs(pooled_z(runs, problem.log_partition)) < 4.7
    for smc in runs:
        acceptance, steps = (smc.result_.diagnostics[name] for name in ("acceptance", "step_sizes"))
        assert acceptance.shape == steps.shape == (n_temperatures,)
        assert np.isnan(acceptance[0])
        assert np.all((acceptance[1:] > 0.1) & (acceptance[1:] < 0.6))
        assert not smc.result_.reasons


def test_a_base_without_the_target_is_named():
    path = hidden_mode_problem(4).path
    path.has_boundary = True
    path.log_f = lambda state, levels: np.where(levels > 0, -np.inf, 0.0)
    with pytest.raises(ValueError, match="every chain has weight 0: the base draws no point where"):
        SMC(5, 5, ladder="linear", random_state=0).fit(path)


# ---- draws from the target
def test_sample_gives_draws_from_the_target():
    problem = make_rbm_problem("easy")
    path, n = problem.path, 2000
    state = SMC(random_state=0).sample(path, n, np.random.default_rng(0))
    exact = Exact().sample(path, n, np.random.default_rng(1))
    assert state.v.shape == (n, 64)
    difference = state.v.mean(axis=0) - exact.v.mean(axis=0)
    error = np.sqrt((state.v.var(axis=0) + exact.v.var(axis=0)) / n)
    # 64 means; draws share ancestors, 100 sweeps back: 5.5 errors of independent draws are a false
    # alarm of 2e-6
    assert np.all(np.abs(difference) < 5.5 * error)
