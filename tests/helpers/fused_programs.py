"""Compiled programs against the plain loops, of paths with 4 levels and of densities on R^d."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp

from sklpf.kernels import njit
from sklpf.kernels._densities import Values, evaluate
from sklpf.paths import Stream, stream_key
from sklpf.programs import _programs
from sklpf.programs._programs import Chains
from sklpf.transitions import HMC, Gibbs

STREAM = Stream(stream_key(1), chain=5, step=1)


def same_state(first, second):
    for a, b in zip(first, second):
        assert_array_equal(a, b)


def assert_annealing_equals_the_loop(path, reverse, tol=1e-10):
    state = path.sample_base(9, STREAM)
    levels = np.repeat([[0], [0], [1], [3], [2]], 9, axis=1)
    levels[:, 4] = [0, 1, 2, 3, 3]
    assert Gibbs().compiled(path) is not None
    chains = Chains(state, (), levels[0])
    arguments = path, Gibbs(), chains, levels, STREAM.at(3), reverse
    fused, fused_weights = _programs.anneal(*arguments)
    plain, plain_weights = _programs.anneal.__wrapped__(*arguments)
    same_state(fused.state, plain.state)
    assert fused.auxiliary == ()
    assert_allclose(fused_weights, plain_weights, rtol=tol, atol=tol)


def assert_same_sums(fused, plain, shape, rtol, summaries_rtol):
    """Chains and sums of two runs; summaries have this shape, and are not 0."""
    same_state(fused.chains.state, plain.chains.state)
    assert fused.chains.auxiliary == ()
    assert_array_equal(fused.chains.levels, plain.chains.levels)
    assert_array_equal(fused.sums.vector_levels, plain.sums.vector_levels)
    for name in ("pairs", "levels", "vectors", "slopes"):
        assert_allclose(getattr(fused.sums, name), getattr(plain.sums, name), rtol=rtol)
    assert_allclose(fused.sums.summaries, plain.sums.summaries, rtol=summaries_rtol)
    assert fused.sums.summaries.shape == shape
    assert np.abs(fused.sums.summaries).sum() > 0


def assert_exchange_equals_the_loop(path, rtol=1e-9):
    state = path.sample_base(12, STREAM)
    chains = Chains(state, (), np.tile(np.arange(4), 3))
    log_prior = np.array([-0.5, -0.3, -0.2])
    arguments = chains, np.zeros(12, dtype=int), log_prior, 40, STREAM.at(4)
    before = [np.copy(part) for part in state]
    fused = _programs.exchange(path, Gibbs(), *arguments, stride=3)
    plain = _programs.exchange.__wrapped__(path, Gibbs(), *arguments, stride=3)
    same_state(state, before)
    assert_same_sums(fused, plain, (3, 2, path.n_summaries), rtol, rtol)
    assert_array_equal(fused.ends, plain.ends)
    assert_array_equal(fused.sums.levels[..., 0], 10)  # every fourth of 40 scans
    assert_array_equal(fused.trips, plain.trips)
    assert plain.trips.sum() > 0  # the comparison saw round trips
    assert len(fused.sums.vectors) in (13, 14)  # every third of 40 scans


def assert_tempering_equals_the_loop(path, sweeps_per_redraw, stride, rtol=1e-9):
    state, log_prior = path.sample_base(8, STREAM), np.array([0.0, 0.5, 1.0, 1.5])
    chains = Chains(state, (), np.arange(8) % 4)
    arguments = chains, log_prior, 30, sweeps_per_redraw, stride, STREAM.at(6)
    fused = _programs.temper(path, Gibbs(), *arguments)
    plain = _programs.temper.__wrapped__(path, Gibbs(), *arguments)
    assert_same_sums(fused, plain, (1, 2, path.n_summaries), rtol, 10 * rtol)
    assert_array_equal(fused.counts, plain.counts)
    assert_allclose(fused.q_sums, plain.q_sums, rtol=2e-9)
    assert fused.sums.levels[..., 0].sum() == 30 * 8
    assert plain.sums.pairs.min() > 0


def assert_levels_follow(path, state, log_f, atol):
    """log f of states at every level against a function of beta; where the states are all there
    are, enumeration too.
    """
    n, ladder = len(state[0]), path.log_f_ladder(state)
    for k, beta in enumerate(path.ladder):
        expected = log_f(beta)
        assert_allclose(ladder[:, k], expected, atol=atol)
        assert_allclose(path.log_f(state, np.full(n, k)), expected, atol=atol)
        if hasattr(path, "enumerate_block"):
            blocks = [path.enumerate_block(b, k) for b in range(path.n_enumeration_blocks)]
            assert logsumexp(blocks) == pytest.approx(logsumexp(expected), abs=atol)


def assert_derivatives_equal_finite_differences(path, state, log_f, rtol):
    """`derivatives` at the levels between the ends against central differences of log_f(beta),
    computed in float64.

    With a step of 1e-3 the differences of functions as smooth as these are right to about 1e-6.
    """
    step, n = 1e-3, len(state[0]) if isinstance(state, tuple) else len(state)
    for level in range(1, len(path.ladder) - 1):
        beta = path.ladder[level]
        below, here, above = log_f(beta - step), log_f(beta), log_f(beta + step)
        found = path.derivatives(state, np.full(n, level))
        assert found.shape == (n, 2)
        slope, curvature = (above - below) / (2 * step), (above - 2 * here + below) / step**2
        assert_allclose(found[:, 0], slope, rtol=0, atol=rtol * max(1, np.abs(slope).max()))
        assert_allclose(found[:, 1], curvature, rtol=0, atol=1e-4 * max(1, np.abs(curvature).max()))


def log_f_at(path, state):
    """log f of a state as a function of beta."""
    n = len(state[0]) if isinstance(state, tuple) else len(state)
    return lambda beta: path.with_ladder([0.0, beta]).log_f(state, np.ones(n, dtype=int))


# -- densities on R^d
@njit
def _evaluate(density, position, values):
    evaluate(density, position, values)


def assert_kernel_writes_all_values(path, n=7):
    """The compiled densities and slopes, on buffers filled with NaN, against the path's own."""
    state = path.sample_base(n, Stream((1, 2)))
    shapes = n, n, (n, path.n_dimensions), (n, path.n_dimensions)
    values = Values(*(np.full(shape, np.nan) for shape in shapes))
    _evaluate(path.packed, state.position, values)
    for new, old in zip(values, (*path.ends(state), *path.gradients(state))):
        assert_allclose(new, old, rtol=1e-12, atol=1e-12)


def assert_programs_are_those_of_the_loops(path, rtol=1e-9):
    """Annealing with HMC, compiled and plain; the other programs use the same hooks."""
    path, stream = path.with_ladder(np.linspace(0, 1, 8)), Stream((1, 2), 5)
    move, n_levels = HMC().tune(path, (3, 4)), len(path.ladder)
    state = path.sample_base(n_levels, stream)
    auxiliary = move.init(path, state, stream.of("memory"))
    levels = np.repeat(np.arange(n_levels)[:, np.newaxis], n_levels, axis=1)
    order = Chains(state, auxiliary, levels[0]), levels, stream
    fused, new_weights = _programs.anneal(path, move, *order)
    looped, old_weights = _programs.anneal.__wrapped__(path, move, *order)
    assert_allclose(new_weights, old_weights, rtol=rtol, atol=rtol)
    olds = (*looped.state, *looped.auxiliary)
    for old, new in zip(olds, (*fused.state, *fused.auxiliary)):
        assert_allclose(new, old, rtol=rtol, atol=rtol)
