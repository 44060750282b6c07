"""Compiled programs of paths with 4 levels against the plain loops."""

import numpy as np

from sklpf._random import Stream, stream_key
from sklpf.paths._base import map_state
from sklpf.runs import _plain, _programs
from sklpf.transitions import Gibbs

STREAM = Stream(stream_key(1), chain=5, step=1)


def same_state(first, second):
    for a, b in zip(first, second):
        np.testing.assert_array_equal(a, b)


def assert_annealing_equals_the_loop(path, reverse):
    state = path.sample_base(9, STREAM)
    levels = np.repeat([[0], [0], [1], [3], [2]], 9, axis=1)
    levels[:, 4] = [0, 1, 2, 3, 3]
    assert Gibbs().compiled(path) is not None
    fused, memory, fused_weights = _programs.anneal(path, Gibbs(), state, (), levels, STREAM.at(3), reverse)
    plain, _, plain_weights = _plain.anneal(path, Gibbs(), state, (), levels, STREAM.at(3), reverse)
    same_state(fused, plain)
    assert memory == ()
    np.testing.assert_allclose(fused_weights, plain_weights, rtol=1e-10, atol=1e-10)


def assert_exchange_equals_the_loop(path):
    state = path.sample_base(12, STREAM)
    arguments = (np.tile(np.arange(4), 3), np.zeros(12, dtype=int), np.array([-0.5, -0.3, -0.2]), 40, STREAM.at(4))
    before = map_state(np.copy, state)
    fused = _programs.exchange(path, Gibbs(), state, (), *arguments)
    plain = _plain.exchange(path, Gibbs(), state, (), *arguments)
    same_state(state, before)
    same_state(fused[0], plain[0])
    assert fused[1] == ()
    for a, b in zip(fused[2:4], plain[2:4]):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(fused[4], plain[4], rtol=1e-9)
    np.testing.assert_allclose(fused[5], plain[5], rtol=1e-9)
    np.testing.assert_array_equal(fused[5][..., 0], 10)  # every fourth of 40 scans
    np.testing.assert_allclose(fused[6], plain[6], rtol=1e-9)
    assert fused[6].shape == (3, 2, path.n_summaries)
    assert np.abs(fused[6]).sum() > 0
    np.testing.assert_array_equal(fused[7], plain[7])
    assert plain[7].sum() > 0  # the comparison saw round trips


def assert_tempering_equals_the_loop(path, sweeps_per_redraw, stride):
    state, log_prior = path.sample_base(8, STREAM), np.array([0.0, 0.5, 1.0, 1.5])
    arguments = (np.arange(8) % 4, log_prior, 30, sweeps_per_redraw, stride, STREAM.at(6))
    fused = _programs.temper(path, Gibbs(), state, (), *arguments)
    plain = _plain.temper(path, Gibbs(), state, (), *arguments)
    same_state(fused[0], plain[0])
    assert fused[1] == ()
    for i in (2, 4, 7):
        np.testing.assert_array_equal(fused[i], plain[i])
    np.testing.assert_allclose(fused[3], plain[3], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(fused[5], plain[5], rtol=1e-9)
    assert fused[5][:, 0].sum() == 30 * 8
    np.testing.assert_allclose(fused[6], plain[6], rtol=1e-10)


def assert_derivatives_equal_finite_differences(path, state, betas, rtol=1e-6, step=1e-4):
    """`derivatives` against central differences of log f in beta; `path` needs log_f alone."""
    path = path.with_ladder([0.0, *(b + d for b in betas for d in (-step, 0, step)), 1.0])
    log_f = path.log_f_ladder(state)
    for i in range(len(betas)):
        below, here, above = log_f[:, 1 + 3 * i : 4 + 3 * i].T
        first, second = path.derivatives(state, np.full(len(here), 2 + 3 * i)).T
        expected = (above - below) / (2 * step)
        np.testing.assert_allclose(first, expected, rtol=rtol, atol=rtol * np.abs(expected).max())
        # the second difference of numbers of size log f is rounded to 4 eps |log f| / step^2
        noise = 4e-16 * np.abs(log_f).max() / step**2
        np.testing.assert_allclose(second, (above - 2 * here + below) / step**2, rtol=1e-4, atol=1e-3 + 10 * noise)
