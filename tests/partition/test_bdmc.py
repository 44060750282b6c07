"""BDMC: bounds on either side, an honest interval, and alarms that mean something. Seeds
are fixed.
"""

from dataclasses import replace

import numpy as np
import pytest
from convergence import may_not_converge, quietly
from known_problems import hidden_mode_problem, make_rbm_problem
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from sklpf import BDMC, Gaussian, GeometricPath
from sklpf.reweighting import bar

KINDS = ("easy", "medium", "digits")


def results_over_seeds(kind, n_seeds, **parameters):
    problem = make_rbm_problem(kind)
    for seed in range(n_seeds):
        yield problem.log_partition, BDMC(random_state=seed, **parameters).fit(problem.path).result_


def test_bounds_lie_on_their_sides():
    """12 runs of three problems at 50 levels, where either bound alone is biased: the mean of the
    lower bounds lies above log Z, or that of the upper ones below, by 5.5 of its standard errors in
    1e-4 of honest cases (t with 11 degrees of freedom). Each run raises an alarm with probability
    0.1 %: 2 of 12 has probability 7e-5.
    """
    flagged, below, above = 0, [], []
    for kind in KINDS:
        with may_not_converge():
            results = list(results_over_seeds(kind, 4, n_temperatures=50))
        for log_partition, result in results:
            flagged += not result.converged
            below.append(result.diagnostics["forward_log_partition"] - log_partition)
            above.append(result.diagnostics["reverse_log_partition"] - log_partition)
    assert flagged <= 1
    assert np.mean(below) < 5.5 * np.std(below) / np.sqrt(12)
    assert np.mean(above) > -5.5 * np.std(above) / np.sqrt(12)


def test_numbers_are_those_of_the_log_weights():
    _, result = next(results_over_seeds("digits", 1, n_temperatures=50, n_chains=40))
    numbers = result.diagnostics
    forward, reverse = numbers["forward_log_weights"], numbers["reverse_log_weights"]
    assert forward.shape == reverse.shape == (40,)
    assert result.statement == "estimate"
    assert result.log_partition == pytest.approx(bar(forward, reverse), abs=1e-12)
    assert numbers["forward_log_partition"] == pytest.approx(
        logsumexp(forward) - np.log(40), abs=1e-10
    )
    upper = np.log(40) - logsumexp(reverse)
    assert numbers["reverse_log_partition"] == pytest.approx(upper, abs=1e-10)
    gap = numbers["reverse_log_partition"] - numbers["forward_log_partition"]
    assert numbers["gap"] == pytest.approx(gap, abs=1e-10)
    assert result.degrees_of_freedom == 39
    assert result.n_sweeps == 2 * 40 * 49


def test_sees_the_mode_that_forward_runs_miss():
    result = BDMC(n_temperatures=30, random_state=0).fit(hidden_mode_problem().path).result_
    forward = result.diagnostics["forward_log_partition"]
    assert forward == pytest.approx(np.log(0.5), abs=0.01)
    # 100 starts, about half of them in either mode; t with 99 degrees of freedom, 4.6: a
    # false-alarm rate of 1e-5
    assert abs(result.log_partition) < 4.6 * result.std_error
    assert result.log_partition > forward + 3 * result.std_error


def test_starts_unlike_the_model_raise_the_alarm():
    path = make_rbm_problem("digits").path
    noise = np.random.default_rng(0).integers(2, size=(100, 64))
    with pytest.warns(ConvergenceWarning, match="negative .* starts are not samples of the model"):
        BDMC(n_temperatures=10, starts=noise, random_state=0).fit(path)


def test_a_single_chain_with_all_of_the_weight_has_no_error():
    run = BDMC(5, 5, random_state=0).fit(make_rbm_problem("easy").path).run_
    result = replace(run, forward=np.where(np.arange(5) == 2, run.forward, -np.inf)).read()
    assert np.isnan(result.std_error)
    assert "no-usable-estimate" in [alarm.kind for alarm in result.alarms]


def test_points_are_starts_of_a_density():
    """log Z is 0 here, and the weights of both directions are constant."""
    base = Gaussian([0.0, 0.0], 1.0)
    path = GeometricPath(lambda x: -np.sum(x**2 + np.log(2 * np.pi), axis=1) / 2, base=base)
    draws = np.random.default_rng(0).normal(size=(20, 2))
    bdmc = quietly(BDMC(20, 10, starts=draws, random_state=0), path)
    assert bdmc.result_.diagnostics["starts"] == "given"
    assert abs(bdmc.log_partition_) < 1e-10
    with pytest.raises(ValueError, match=r"starts must be points \(n, 2\), got shape \(20,\)"):
        BDMC(20, 10, starts=draws[:, 0], random_state=0).fit(path)
