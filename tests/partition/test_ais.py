import numpy as np
import pytest
from convergence import may_not_converge
from known_problems import make_rbm_problem
from scipy.special import logsumexp
from scipy.stats import binom

from sklpf.partition import AIS


@may_not_converge()
def test_the_one_sided_bound_holds_even_for_useless_runs():
    problem = make_rbm_problem("hard")
    above = 0
    for seed in range(20):
        ais = AIS(8, 5, checks=False, random_state=seed).fit(problem.path)
        above += ais.result_.diagnostics["lower_bound"] > problem.log_partition
        bound = ais.log_partition_ - np.log(20)
        assert ais.result_.diagnostics["lower_bound"] == pytest.approx(bound)
    # at most 5 % by Markov's inequality; false alarm 1e-5
    assert above <= binom.ppf(1 - 1e-5, 20, 0.05)


@may_not_converge()
def test_standard_error_and_diagnostics_agree_with_their_definitions():
    ais = AIS(50, 50, random_state=0).fit(make_rbm_problem("digits").path)
    diagnostics = ais.result_.diagnostics
    weights = np.exp(diagnostics["log_weights"] - diagnostics["log_weights"].max())
    delta = weights.std(ddof=1) / weights.mean() / np.sqrt(50)
    assert diagnostics["delta_std_error"] == pytest.approx(delta)
    without = np.log([np.delete(weights, i).mean() for i in range(50)])
    jackknife = np.sqrt(49 / 50 * np.sum((without - without.mean()) ** 2))
    assert diagnostics["jackknife_std_error"] == pytest.approx(jackknife)
    effective = weights.sum() ** 2 / np.sum(weights**2)
    assert diagnostics["effective_sample_size"] == pytest.approx(effective)
    back = np.exp(-ais.run_.reverse.ravel())  # as weights of the way up
    from_target = np.sqrt((back.mean() * (1 / back).mean() - 1) / 50)
    assert diagnostics["reverse_std_error"] == pytest.approx(from_target)
    error = max(delta, np.sqrt((delta**2 + from_target**2) / 2))
    assert ais.log_partition_std_error_ == pytest.approx(error)
    mean_weight = np.exp(logsumexp(diagnostics["log_weights"])) / 50
    effective = 50 * min(1, mean_weight / back.mean())
    assert diagnostics["effective_sample_size_from_target"] == pytest.approx(effective)
    assert ais.result_.degrees_of_freedom == 49
    assert ais.run_.reverse.shape == (50, 1)  # not a quarter, since their log weights differ much
    assert np.log(back[:12]).std() > 0.5
    assert ais.result_.n_sweeps == (50 + 50) * 49 + 50 * 100
    assert ais.result_.sweeps == {"chains": 50 * 49, "reverse chains": 50 * (49 + 100)}


@may_not_converge()  # 5 of 8 weights must count
def test_ladders():
    path = make_rbm_problem("easy").path
    assert len(AIS(8, 30, random_state=0).fit(path).result_.ladder) == 30
    given = [0, 0.1, 0.2, 0.4, 0.6, 0.8, 1]
    found = AIS(8, 30, ladder=given, random_state=0).fit(path).result_.ladder
    np.testing.assert_array_equal(found, given)
    adaptive = AIS(8, 200, ladder="adaptive", random_state=0).fit(path)
    assert len(adaptive.result_.ladder) == 200
    # a pilot of 10 levels; all go back down
    assert adaptive.result_.n_sweeps == 8 * (9 + 199 + 100 + 199)
