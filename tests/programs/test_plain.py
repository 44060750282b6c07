"""The programs as plain loops, with moves and densities that can be followed by hand; and the pilot
of simulated tempering.
"""

import numpy as np
import pytest

from sklpf.paths import Path, Stream
from sklpf.programs import _programs
from sklpf.programs._programs import Chains
from sklpf.transitions import Transition


class Recorder(Transition):
    """Writes down what it is asked for, and adds 1 to every chain."""

    def __init__(self):
        self.calls = []

    def move(self, path, state, auxiliary, levels, stream, reverse=False):
        self.calls.append((stream.step, int(levels[0]), reverse))
        return state + 1, auxiliary


class Linear(Path):
    """log f_k(x) = k x."""

    ladder = np.array([0.0, 0.25, 0.5, 1.0])

    def log_f(self, state, levels):
        return levels * state


def test_annealing_weighs_before_it_moves_and_reverse_annealing_after():
    levels = np.repeat(np.arange(4)[:, np.newaxis], 2, axis=1)
    start, stream = np.array([1.0, 10.0]), Stream((1, 2), step=7)
    forward = Recorder()
    chains = Chains(start, (), levels[0])
    (state, *_), log_weights = _programs.anneal.__wrapped__(
        Linear(), forward, chains, levels, stream
    )
    # x at levels 0, 1, 2: x, x + 1, x + 2; each step adds it once
    np.testing.assert_array_equal(log_weights, 3 * start + 3)
    np.testing.assert_array_equal(state, start + 3)
    assert forward.calls == [(7, 1, False), (8, 2, False), (9, 3, False)]
    backward = Recorder()
    order = levels[::-1], stream, True
    (state, *_), log_weights = _programs.anneal.__wrapped__(Linear(), backward, chains, *order)
    np.testing.assert_array_equal(log_weights, -(3 * start + 6))
    np.testing.assert_array_equal(state, start + 3)
    assert backward.calls == [(7, 3, True), (8, 2, True), (9, 1, True)]


def exchanged(n_scans, step=0):
    """Of equal states, so that every swap is accepted."""
    zeros = np.zeros(4)
    chains = Chains(zeros, (), np.arange(4))
    order = chains, zeros.astype(int), np.zeros(3), n_scans, Stream((1, 2), step=step)
    return _programs.exchange.__wrapped__(Linear(), Recorder(), *order)


@pytest.mark.parametrize(("step", "levels"), [(4, [1, 0, 3, 2]), (5, [0, 2, 1, 3])])
def test_exchange_swaps_even_pairs_at_even_steps_and_odd_pairs_at_odd_steps(step, levels):
    np.testing.assert_array_equal(exchanged(1, step).chains.levels, levels)


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
    *_, vectors, at, slopes = _programs.exchange.__wrapped__(
        path, Recorder(), *order, stride=3
    ).sums
    # steps 6 and 9 are the scans 2 and 5, after whose moves x is 3 and 6 more
    for i, moved in enumerate((3, 6)):
        np.testing.assert_array_equal(vectors[i], path.ladder**2 * (start + moved)[:, np.newaxis])
        np.testing.assert_array_equal(slopes[i], 2 * path.ladder * (start + moved)[:, np.newaxis])
        np.testing.assert_array_equal(np.sort(at[i]), levels)
    *_, vectors, at, slopes = _programs.exchange.__wrapped__(path, Recorder(), *order).sums
    assert vectors.shape == slopes.shape == (0, 4, 4)
    assert at.shape == (0, 4)
