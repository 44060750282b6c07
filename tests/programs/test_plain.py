"""The programs as plain loops, with moves and densities that can be followed by hand; and rounds of
simulated tempering.
"""

import numpy as np
import pytest
from known_problems import make_rbm_problem
from scipy.special import logsumexp

from sklpf import Exact
from sklpf.paths import Path, Stream
from sklpf.programs import _plain
from sklpf.programs._chains import Chains
from sklpf.programs._tempering import Setup, first_pass, run_round
from sklpf.transitions import Gibbs, Transition


class Recorder(Transition):
    """Writes down what it is asked for, and adds 1 to every chain."""

    def __init__(self):
        self.calls = []

    def move(self, path, state, memory, levels, stream, reverse=False):
        self.calls.append((stream.step, int(levels[0]), reverse))
        return state + 1, memory


class Linear(Path):
    """log f_k(x) = k x."""

    ladder = np.array([0.0, 0.25, 0.5, 1.0])

    def log_f(self, state, levels):
        return levels * state


def test_annealing_weighs_before_it_moves_and_reverse_annealing_after():
    levels = np.repeat(np.arange(4)[:, np.newaxis], 2, axis=1)
    start, stream = np.array([1.0, 10.0]), Stream((1, 2), step=7)
    forward = Recorder()
    state, _, log_weights = _plain.anneal(Linear(), forward, start, (), levels, stream)
    # x at levels 0, 1, 2: x, x + 1, x + 2; each step adds it once
    np.testing.assert_array_equal(log_weights, 3 * start + 3)
    np.testing.assert_array_equal(state, start + 3)
    assert forward.calls == [(7, 1, False), (8, 2, False), (9, 3, False)]
    backward = Recorder()
    state, _, log_weights = _plain.anneal(
        Linear(), backward, start, (), levels[::-1], stream, reverse=True
    )
    np.testing.assert_array_equal(log_weights, -(3 * start + 6))
    np.testing.assert_array_equal(state, start + 3)
    assert backward.calls == [(7, 3, True), (8, 2, True), (9, 1, True)]


def test_exchange_swaps_even_pairs_at_even_steps_and_odd_pairs_at_odd_steps():
    path = Linear()  # equal states: every swap is accepted
    levels, zeros = np.arange(4), np.zeros(4)
    even = _plain.exchange(
        path, Recorder(), Chains(zeros, (), levels), zeros, np.zeros(3), 1, Stream((1, 2), step=4)
    )
    np.testing.assert_array_equal(even.chains.levels, [1, 0, 3, 2])
    odd = _plain.exchange(
        path, Recorder(), Chains(zeros, (), levels), zeros, np.zeros(3), 1, Stream((1, 2), step=5)
    )
    np.testing.assert_array_equal(odd.chains.levels, [0, 2, 1, 3])


def test_exchange_counts_round_trips():
    # with all swaps accepted a chain needs 4 scans an end to end: every chain comes round after 8
    path, n_scans = Linear(), 80
    levels, zeros = np.arange(4), np.zeros(4)
    result = _plain.exchange(
        path,
        Recorder(),
        Chains(zeros, (), levels),
        np.zeros(4, dtype=int),
        np.zeros(3),
        n_scans,
        Stream((1, 2)),
    )
    assert 4 * (n_scans // 8 - 2) <= result.trips[0] <= 4 * n_scans // 8


class Curved(Linear):
    """log f_beta(x) = beta^2 x."""

    def log_f(self, state, levels):
        return self.ladder[levels] ** 2 * state

    def derivatives(self, state, levels):
        return np.stack([2 * self.ladder[levels] * state, 2 * state], axis=1)


def test_records_are_those_of_the_scans_that_the_stride_divides():
    path, levels, start = Curved(), np.arange(4), np.arange(4.0)
    chains = Chains(start, (), levels)
    order = chains, np.zeros(4, dtype=int), np.zeros(3), 7, Stream((1, 2), step=4)
    *_, vectors, at, slopes = _plain.exchange(path, Recorder(), *order, stride=3).sums
    # steps 6 and 9 are the scans 2 and 5, after whose moves x is 3 and 6 more
    for i, moved in enumerate((3, 6)):
        np.testing.assert_array_equal(vectors[i], path.ladder**2 * (start + moved)[:, np.newaxis])
        np.testing.assert_array_equal(slopes[i], 2 * path.ladder * (start + moved)[:, np.newaxis])
        np.testing.assert_array_equal(np.sort(at[i]), levels)
    *_, vectors, at, slopes = _plain.exchange(path, Recorder(), *order).sums
    assert vectors.shape == slopes.shape == (0, 4, 4)
    assert at.shape == (0, 4)


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
    starts, log_weights = first_pass(setup, np.full(11, -np.log(11)), n_sweeps)
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
    starts, _ = first_pass(setup, log_prior, 40)
    burnt, _ = run_round(setup, (0,), starts, log_prior - exact, 200)
    _, last = run_round(setup, (1,), burnt, log_prior - exact, 1000)
    groups = last.shares(True).reshape(10, 10, 5).mean(axis=1)
    error = groups.std(axis=0, ddof=1) / np.sqrt(10)
    assert np.all(np.abs(groups.mean(axis=0) - np.exp(log_prior)) < T_BOUND * error)
    assert error.max() < 0.02
    counted = last.shares(False).mean(axis=0)
    np.testing.assert_allclose(counted, groups.mean(axis=0), atol=0.01)  # 1e5 draws, correlated
