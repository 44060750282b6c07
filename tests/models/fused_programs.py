"""Fused programs of paths with 4 levels against the plain loops of Transition."""

import numpy as np

from sklpf._random import Stream, stream_key
from sklpf.paths._base import map_state
from sklpf.transitions import Gibbs, Transition

STREAM = Stream(stream_key(1), chain=5, step=1)


def same_state(first, second):
    for a, b in zip(first, second):
        np.testing.assert_array_equal(a, b)


def assert_annealing_equals_the_loop(path, reverse):
    state = path.sample_base(9, STREAM)
    levels = np.repeat([[0], [0], [1], [3], [2]], 9, axis=1)
    levels[:, 4] = [0, 1, 2, 3, 3]
    fused, fused_weights = Gibbs().anneal(path, state, levels, STREAM.at(3), reverse)
    plain, plain_weights = Transition.anneal(Gibbs(), path, state, levels, STREAM.at(3), reverse)
    same_state(fused, plain)
    np.testing.assert_allclose(fused_weights, plain_weights, rtol=1e-10, atol=1e-10)


def assert_exchange_equals_the_loop(path):
    state = path.sample_base(12, STREAM)
    arguments = (np.tile(np.arange(4), 3), np.zeros(12, dtype=int), np.array([-0.5, -0.3, -0.2]), 40, STREAM.at(4))
    before = map_state(np.copy, state)
    fused = Gibbs().exchange(path, state, *arguments)
    plain = Transition.exchange(Gibbs(), path, state, *arguments)
    same_state(state, before)
    same_state(fused[0], plain[0])
    for a, b in zip(fused[1:3], plain[1:3]):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(fused[3], plain[3], rtol=1e-9)
    np.testing.assert_array_equal(fused[4], plain[4])
    assert plain[4].sum() > 0  # the comparison saw round trips


def assert_tempering_equals_the_loop(path, sweeps_per_redraw, stride):
    state, log_prior = path.sample_base(8, STREAM), np.array([0.0, 0.5, 1.0, 1.5])
    arguments = (np.arange(8) % 4, log_prior, 30, sweeps_per_redraw, stride, STREAM.at(6))
    fused = Gibbs().temper(path, state, *arguments)
    plain = Transition.temper(Gibbs(), path, state, *arguments)
    same_state(fused[0], plain[0])
    for i in (1, 3, 5):
        np.testing.assert_array_equal(fused[i], plain[i])
    np.testing.assert_allclose(fused[2], plain[2], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(fused[4], plain[4], rtol=1e-10)
