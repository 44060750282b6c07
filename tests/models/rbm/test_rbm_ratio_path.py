"""The path from one RBM to another against brute force, its kernels against the plain loops, and
the log ratio.
"""

import numpy as np
import pytest
from fused_programs import (
    assert_annealing_equals_the_loop,
    assert_derivatives_equal_finite_differences,
    assert_exchange_equals_the_loop,
    assert_levels_follow,
)
from known_problems import all_rows, opening_biases
from marks import large
from scipy.special import expit, logsumexp
from scipy.stats import t as student_t

from sklpf import BernoulliRBM, Exact, ParallelTempering
from sklpf.models import RBMPath
from sklpf.models.rbm._checkpoints_path import RBMRatioPath
from sklpf.models.rbm._learning import Parameters
from sklpf.testing import check_path, check_transition
from sklpf.transitions import Gibbs

LADDER = (0.0, 0.25, 0.6, 1.0)
V = all_rows(6)


def random_parameters(rng, n_hidden, n_visible=6):
    shapes = (n_hidden, n_visible), n_visible, n_hidden
    return Parameters(*(rng.normal(size=shape) for shape in shapes))


def log_f(model, v=V):
    fields = v @ model.components.T + model.intercept_hidden
    return v @ model.intercept_visible + np.logaddexp(0, fields).sum(axis=1)


def exact_draws(model, rng, shape):
    log_density = log_f(model)
    return V[rng.choice(len(V), size=shape, p=np.exp(log_density - logsumexp(log_density)))]


def make_path(n_a=3, n_b=5, seed=0, n_draws=50, ladder=LADDER):
    rng = np.random.default_rng(seed)
    a, b = random_parameters(rng, n_a), random_parameters(rng, n_b)
    draws = (exact_draws(model, rng, (3, n_draws)) for model in (a, b))
    return a, b, RBMRatioPath(a, b, *draws, ladder)


def log_f_between(path, n_a=3, n_b=5):
    """The formula of the class's docstring, of all rows."""

    def at(beta):
        blend = [(1 - beta) * x[0] + beta * x[1] for x in (path.weights, path.visible, path.hidden)]
        n = path.hidden.shape[1]
        return log_f(Parameters(*blend)) - np.log(2) * ((1 - beta) * (n - n_a) + beta * (n - n_b))

    return at


def states(path):
    return path.state_from_rows(V, np.zeros(len(V), dtype=int))


def test_the_ends_are_the_models_and_levels_lie_between():
    a, b, path = make_path()
    between = log_f_between(path)
    np.testing.assert_allclose(between(0.0), log_f(a), atol=1e-5)
    np.testing.assert_allclose(between(1.0), log_f(b), atol=1e-5)
    assert 5 <= path.hidden.shape[1] <= 8
    assert_levels_follow(path, states(path), between, atol=1e-5)


def test_contracts():
    path = make_path(n_draws=20_000)[2]
    check_path(path)
    check_transition(path, Gibbs(), variables=lambda state: state.v)
    assert_derivatives_equal_finite_differences(path, states(path), log_f_between(path), rtol=1e-4)


def test_kernels_do_what_the_plain_loops_do():
    path = make_path()[2]
    assert_annealing_equals_the_loop(path, reverse=False)
    assert_annealing_equals_the_loop(path, reverse=True)
    assert_exchange_equals_the_loop(path)


# ---- the log ratio
def models(scale, n_a=4, n_b=6, seed=0):
    """Two models of 12 visible units; where they share hidden units, these differ by a tenth."""
    rng = np.random.default_rng(seed)
    shared, other = rng.normal(size=(6, 12)), rng.normal(size=(6, 12))
    return tuple(
        BernoulliRBM.from_parameters(
            scale * weights[:n],
            scale * rng.normal(size=12),
            np.zeros(n),
            random_state=seed,
            partition_estimator=Exact(),
        )
        for weights, n in ((shared, n_a), (shared + 0.1 * other, n_b))
    )


@pytest.mark.parametrize(("scale", "tempered"), [(0.5, True), large(2.0, False)])
def test_ratio_of_enumerable_models(scale, tempered):
    a, b = models(scale)
    truth = b.estimate_log_partition().log_partition_ - a.estimate_log_partition().log_partition_
    if tempered:
        for model in (a, b):
            model.set_params(partition_estimator=ParallelTempering(n_sweeps=1024))
    path = a._ratio_path(b)
    result = ParallelTempering(n_sweeps=1024, random_state=0).fit(path).result_
    # t with 9 degrees of freedom: 1e-5 false alarms each
    assert abs(result.log_partition - truth) < student_t.isf(5e-6, 9) * result.std_error
    assert result.converged
    assert result.std_error < 0.1


@pytest.mark.large
def test_draws_of_a_model_cover_a_region_that_their_first_run_has_missed(monkeypatch):
    """Two units more open regions of 15 % each, which tempering from the means of the smaller model
    does not find: the ratio of both models was 1 then, and is e^.36.

    Shares are of 1280 draws of ten ladders; .05 is four standard errors and more.
    """
    rng = np.random.default_rng(5)
    components = rng.normal(scale=0.3, size=(6, 60))
    visible = rng.normal(scale=0.5, size=60) - 1
    mean = expit(visible)
    patterns = rng.integers(2, size=(2, 60))
    openings = 6.0 * patterns - 3
    biases, _ = opening_biases(components, visible, mean, openings, np.log(0.15 / 0.7))
    tempering = ParallelTempering(n_sweeps=1024)
    for seed in range(4):  # of half of them the ladders disagree on the regions at first
        smaller, larger = (
            BernoulliRBM.from_parameters(
                np.vstack([components, openings[:n]]),
                visible,
                np.r_[np.zeros(6), biases[:n]],
                mean,
                partition_estimator=tempering,
                random_state=seed,
            )
            for n in (0, 2)
        )
        path = smaller._ratio_path(larger)
        is_near = np.mean(path.draws[..., np.newaxis, :] == patterns, axis=-1) > 0.85
        np.testing.assert_allclose(is_near[0].mean(axis=(0, 1)), 0, atol=0.01)
        np.testing.assert_allclose(is_near[1].mean(axis=(0, 1)), 0.15, atol=0.05)

    # Where a second run misses them as well there is no path.
    monkeypatch.setattr(RBMPath, "with_regions", lambda path, regions: path)
    assert smaller._ratio_path(larger) is None
