"""The path to an RBM from a mixture of independent units, and the second try that takes it."""

import numpy as np
import pytest
from fused_programs import (
    assert_annealing_equals_the_loop,
    assert_derivatives_equal_finite_differences,
    assert_levels_follow,
)
from known_problems import all_rows, opening_biases
from marks import large
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from sklpf import AIS, SMC, BernoulliRBM, Exact, ParallelTempering
from sklpf.models import RBMPath
from sklpf.testing import check_path, check_transition
from sklpf.transitions import Gibbs

LADDER = np.linspace(0, 1, 11)
V = all_rows(6)


def make_path(weights="marginal", n_hidden=4):
    rng = np.random.default_rng(0)
    parameters = rng.normal(size=(n_hidden, 6)), rng.normal(size=6), rng.normal(size=n_hidden)
    means = rng.uniform(0.05, 0.95, (3, 6))
    single = RBMPath(*parameters, means[0], LADDER, weights)
    return single._with_parts(means[1:], np.array([0.5, 0.3, 0.2])), means


def log_f(path, means):
    """log f of all rows at an inverse temperature, by its definition."""
    fields = V @ path.components.T + path.intercept_hidden
    log_parts = V @ np.log(means).T + (1 - V) @ np.log1p(-means).T

    def at(beta):
        base = logsumexp((1 - beta) * log_parts + np.log([0.5, 0.3, 0.2]), axis=1)
        target = beta * V @ path.intercept_visible + np.logaddexp(0, beta * fields).sum(axis=1)
        return base + target - (1 - beta) * len(path.components) * np.log(2)

    return at


@pytest.mark.parametrize("n_hidden", [4, 8])
def test_densities_are_what_the_docstring_says(n_hidden):
    path, means = make_path(n_hidden=n_hidden)
    expected, state = log_f(path, means), path.state_from_rows(V)
    assert_levels_follow(path, state, expected, atol=2e-5)
    assert logsumexp(expected(0.0)) == pytest.approx(0.0, abs=1e-9)
    assert_derivatives_equal_finite_differences(path, state, expected, rtol=1e-4)


@pytest.mark.parametrize("weights", ["marginal", "joint"])
def test_contracts(weights):
    path, _ = make_path(weights)
    check_path(path)
    variables = {"marginal": lambda state: state.v, "joint": lambda state: (state.v, state.h)}
    check_transition(path, Gibbs(), variables=variables[weights])


@pytest.mark.parametrize("reverse", [False, True])
def test_annealing_does_what_the_plain_loop_does(reverse):
    path, _ = make_path()
    # sums in float32, in another order
    assert_annealing_equals_the_loop(path, reverse, tol=1e-5)


def make_model():
    """An RBM with a pattern that has 30 % of the mass, and that its base does not know."""
    rng = np.random.default_rng(3)
    weights = rng.normal(scale=0.3, size=(6, 60))
    pattern = 4.0 * (2 * rng.integers(2, size=60) - 1)
    visible, mean = np.zeros(60), [0.5] * 60
    bias, plain = opening_biases(weights, visible, mean, [pattern], np.log(0.3 / 0.7))
    layers = np.vstack([weights, pattern]), visible, np.r_[np.zeros(6), bias]
    return BernoulliRBM.from_parameters(*layers, visible_mean=mean), plain - np.log(0.7)


@pytest.mark.parametrize("estimator", [AIS(), SMC(), large(ParallelTempering(n_sweeps=512))])
def test_a_missed_pattern_becomes_part_of_the_base(estimator):
    # 4 standard errors or .02 nats; fixed seeds
    model, truth = make_model()
    estimator.set_params(random_state=0).fit(model)
    assert estimator.converged_
    assert estimator.result_.diagnostics["first_try"] == pytest.approx(truth + np.log(0.7), abs=0.1)
    off = estimator.log_partition_ - truth
    assert abs(off) < max(4 * estimator.log_partition_std_error_, 0.02)


def test_score_makes_the_second_try_and_a_given_base_stays():
    model, truth = make_model()
    model.set_params(partition_estimator=AIS(random_state=0), random_state=0)
    rows = np.random.default_rng(0).integers(2, size=(5, 60))
    score = model.score(rows)
    exact = model.set_params(partition_estimator=Exact()).score(rows)
    assert abs(score - exact) < 0.1
    with pytest.warns(ConvergenceWarning, match="a region of the target holds"):
        AIS(random_state=0).fit(model.path(base=[0.5] * 60))
