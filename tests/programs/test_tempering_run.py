"""Simulated tempering: the pilot, a round's sums, what is kept of it, and its stationary
distribution.

z-bounds: 4.8 standard errors with 9 degrees of freedom is a false-alarm rate of 1e-3 a comparison;
seeds are fixed.
"""

import numpy as np
import pytest
from known_problems import make_rbm_problem
from scipy.special import logsumexp

from sklpf import Exact
from sklpf.paths import Path
from sklpf.programs._pilot import run_pilot
from sklpf.programs._tempering import Setup, run_round
from sklpf.transitions import Gibbs

T_BOUND = 4.8


def make_setup(path, n_levels=11, sweeps_per_redraw=1):
    first = np.arange(0, 101, 10)
    path = path.with_ladder(np.linspace(0, 1, n_levels))
    return Setup(path, Gibbs(), first, 0, sweeps_per_redraw, {"n_jobs": None, "checkpoint": None})


@pytest.mark.parametrize("n_sweeps", [4, 10, 37])
def test_pilot_knows_every_level_and_starts_at_all(n_sweeps):
    """Also with fewer sweeps than levels; 5 standard errors hold for the 10 levels together."""
    problem = make_rbm_problem("easy")
    setup = make_setup(problem.path)
    starts, log_weights = run_pilot(setup, np.full(11, -np.log(11)), n_sweeps)
    exact = [
        Exact().fit(problem.path.with_ladder([0, beta])).log_partition_
        for beta in setup.path.ladder[1:]
    ]
    estimate = logsumexp(log_weights, axis=0) - np.log(100)
    error = np.exp(log_weights - estimate).std(axis=0) / 10
    assert np.all(np.abs(estimate[1:] - exact) < 5 * error[1:])
    levels = np.concatenate([levels for _, _, levels in starts])
    reached = {4: [0, 3, 5, 8, 10]}.get(n_sweeps, np.arange(11))
    np.testing.assert_array_equal(np.unique(levels), reached)
    assert all(len(state.v) == 10 and memory == () for state, memory, _ in starts)


class Echo(Path):
    """A chain remembers the level it was moved at last, and log f_k says which it was."""

    base_log_partition = 0.0

    def log_f(self, state, levels):
        return -0.1 * (state - levels) ** 2.0

    def sample_base(self, n, stream):
        return np.zeros(n, dtype=int)

    def gibbs(self, state, levels, stream):
        return levels.copy()


@pytest.mark.parametrize("n_moves_per_segment", [3, 8, 100])
def test_kept_vectors_are_a_thinning_with_the_levels_they_were_moved_at(n_moves_per_segment):
    path = Echo()
    path.n_moves_per_segment = n_moves_per_segment
    setup = make_setup(path, n_levels=7)
    starts = [(np.zeros(10, dtype=int), (), np.full(10, 3)) for _ in range(10)]
    _, last = run_round(setup, (0,), starts, np.zeros(7), 90, n_kept=1500)
    assert last.vectors.shape == (100, last.vectors.shape[1], 7)
    assert 900 <= last.vector_levels.size <= 1500 * 1.1
    np.testing.assert_array_equal(last.vectors.argmax(axis=2), last.vector_levels)
    assert len(np.unique(last.vector_levels)) == 7
    np.testing.assert_array_equal(last.counts.sum(axis=2), 45)
    np.testing.assert_allclose(logsumexp(last.log_q_sums, axis=2), np.log(45), rtol=1e-12)


def test_round_has_the_stationary_distribution_of_equation_8():
    """True log Z minus a known tilt as weights: the shares are known. z-bound 4.8 at every level
    (t, 9 groups).
    """
    problem = make_rbm_problem("easy")
    setup = make_setup(problem.path, n_levels=5)
    exact = np.r_[
        0,
        [
            Exact().fit(problem.path.with_ladder([0, b])).log_partition_
            for b in setup.path.ladder[1:]
        ],
    ]
    log_prior = np.log([0.1, 0.3, 0.2, 0.1, 0.3])
    starts, _ = run_pilot(setup, log_prior, 40)
    burnt, _ = run_round(setup, (0,), starts, log_prior - exact, 200)
    _, last = run_round(setup, (1,), burnt, log_prior - exact, 1000)
    groups = last.shares(True).reshape(10, 10, 5).mean(axis=1)
    error = groups.std(axis=0, ddof=1) / np.sqrt(10)
    assert np.all(np.abs(groups.mean(axis=0) - np.exp(log_prior)) < T_BOUND * error)
    assert error.max() < 0.02
    counted = last.shares(False).mean(axis=0)
    np.testing.assert_allclose(counted, groups.mean(axis=0), atol=0.01)  # 1e5 draws, correlated
