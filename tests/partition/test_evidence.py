"""Evidence that owes nothing to the run: a lower bound of log Z, weights seen from the target."""

import numpy as np
import pytest
from convergence import quietly
from known_problems import make_rbm_problem

from sklpf import Exact, ParallelTempering
from sklpf.models import RBMPath
from sklpf.paths import Stream, stream_key
from sklpf.uncertainty import seen_from_target


@pytest.mark.parametrize(("kind", "weights"), [("easy", "joint"), ("far mode", "marginal")])
def test_draws_for_the_bound_are_unbiased(kind, weights):
    """The centres cover these models, so that the draws' weights vary little."""
    problem = make_rbm_problem(kind)
    path = problem.path
    if weights == "joint":  # the same Z
        layers = path.components, path.intercept_visible, path.intercept_hidden
        path = RBMPath(*layers, np.full(64, 0.5), weights="joint")
    draws = np.array([path.bound_draws(Stream(stream_key(seed))) for seed in range(20)])
    means = np.exp(draws - problem.log_partition).mean(axis=(1, 2))  # one of each seed's centres
    assert draws.shape == (20, 10, 100)
    z = (means.mean() - 1) / (means.std(ddof=1) / np.sqrt(20))
    assert abs(z) < 6.3  # t with 19 degrees of freedom: a false alarm in 5e-6
    assert means.std() < 0.2


@pytest.mark.parametrize(("missed", "known"), [(0.02, True), (0.5, False)])
def test_an_exceeded_bound_is_an_alarm_and_chance_is_not(missed, known):
    """Draws that say that log Z is larger than what an exact base finds."""
    path = make_rbm_problem("easy").path
    bound = Exact().fit(path).log_partition_ + missed + np.linspace(-0.01, 0.01, 10)
    path.bound_draws = lambda stream: np.repeat(bound[:, np.newaxis], 100, axis=1)
    result = quietly(ParallelTempering(n_sweeps=1024, random_state=0), path).result_
    assert result.converged == known
    assert any("log Z is at least" in reason for reason in result.reasons) != known


def test_weights_seen_from_the_target():
    """Normal log weights of spread s: from the target their mean is s^2 higher, and Var w / (E w)^2
    = e^(s^2) - 1.
    """
    s, rng = 0.8, np.random.default_rng(0)
    seen = seen_from_target(s * rng.normal(size=200_000) + s**2, s**2 / 2)
    assert seen.variance == pytest.approx(np.expm1(s**2), rel=0.02)
    assert seen.share == pytest.approx(np.exp(-(s**2)), rel=0.02)
