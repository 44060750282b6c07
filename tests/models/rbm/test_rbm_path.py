"""RBMPath against brute force in float64, and its compiled programs against the plain loops."""

import functools

import numpy as np
import pytest
from fused_programs import (
    assert_derivatives_equal_finite_differences,
    assert_exchange_equals_the_loop,
    assert_tempering_equals_the_loop,
    same_state,
)
from known_problems import all_rows, enumerate_log_partition
from scipy.special import expit, logsumexp

from sklpf import Exact
from sklpf._utils.random import FIRST, SECOND
from sklpf.kernels import random_bits
from sklpf.models import RBMPath
from sklpf.paths import Stream, stream_key
from sklpf.programs import _programs
from sklpf.programs._programs import Chains
from sklpf.testing import check_path
from sklpf.transitions import Gibbs

STREAM = Stream(stream_key(1), chain=5, step=1)
SHAPES = [(1, 1), (1, 16), (15, 1), (16, 16), (17, 33), (33, 17), (100, 64)]


def make_path(
    n_visible, n_hidden, weights="marginal", scale=1.0, ladder=(0.0, 0.3, 0.35, 0.8, 1.0), seed=0
):
    rng = np.random.default_rng(seed)
    components = scale * rng.normal(size=(n_hidden, n_visible))
    visible, hidden = scale * rng.normal(size=n_visible), scale * rng.normal(size=n_hidden)
    return RBMPath(components, visible, hidden, rng.uniform(0.2, 0.8, n_visible), ladder, weights)


def reference_log_f(path, v, h, beta):
    """The formula of the class's docstring, in float64."""
    v, h = np.asarray(v, dtype=float), np.asarray(h, dtype=float)
    n_hidden = len(path.components)
    constant = np.logaddexp(0, path.logits[0]).sum() + n_hidden * np.log(2)
    logits = (1 - beta) * path.logits[0] + beta * path.intercept_visible
    visible = v @ logits - (1 - beta) * constant
    inputs = path.intercept_hidden + v @ path.components.T
    hidden = h * inputs * beta if path.joint else np.logaddexp(0, beta * inputs)
    return visible + hidden.sum(axis=-1)


def brute_force_log_partition(path, beta):
    """Sum over every v, and over every h on the joint path."""
    n_hidden, n_visible = path.components.shape
    v = all_rows(n_visible)
    if not path.joint:
        return logsumexp(reference_log_f(path, v, np.zeros((len(v), n_hidden)), beta))
    rows = [reference_log_f(path, v, np.tile(h, (len(v), 1)), beta) for h in all_rows(n_hidden)]
    return logsumexp(rows)


def moved_state(path, n=6, sweeps=3):
    """A state in the middle of a run, chains at all levels."""
    state = path.sample_base(n, STREAM.at(0))
    levels = np.arange(n) % len(path.ladder)
    for t in range(sweeps):
        state = path.gibbs(state, levels, STREAM.at(1 + t))
    return state


def fields(path, state):
    """Both layers' inputs in float64 beside the cached ones."""
    n_hidden, n_visible = path.components.shape
    return [
        (state.hidden_field[:, :n_hidden], path.intercept_hidden + state.v @ path.components.T),
        (state.visible_field[:, :n_visible], path.intercept_visible + state.h @ path.components),
    ]


# ---- densities
@pytest.mark.parametrize("weights", ["marginal", "joint"])
@pytest.mark.parametrize(("n_visible", "n_hidden"), SHAPES)
def test_log_f_equals_the_formula(n_visible, n_hidden, weights):
    path = make_path(n_visible, n_hidden, weights)
    state = moved_state(path)
    expected = np.transpose([reference_log_f(path, state.v, state.h, beta) for beta in path.ladder])
    # float32 fields of sums of up to 117 terms of size 1: errors near 1e-5
    np.testing.assert_allclose(path.log_f_ladder(state), expected, rtol=0, atol=1e-4)
    levels = np.arange(len(state.v)) % len(path.ladder)
    found = path.log_f(state, levels)
    np.testing.assert_allclose(found, expected[np.arange(6), levels], rtol=0, atol=1e-4)


@pytest.mark.parametrize("weights", ["marginal", "joint"])
@pytest.mark.parametrize(("n_visible", "n_hidden"), [(1, 1), (6, 4), (4, 6)])
def test_every_level_is_enumerated_and_the_base_normalised(n_visible, n_hidden, weights):
    path = make_path(n_visible, n_hidden, weights, scale=2.0)
    for level, beta in enumerate(path.ladder):
        expected = brute_force_log_partition(path, beta)
        assert enumerate_log_partition(path, level) == pytest.approx(expected, abs=1e-10)
    assert path.ladder[0] == 0
    assert brute_force_log_partition(path, 0.0) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("weights", ["marginal", "joint"])
@pytest.mark.parametrize(("n_visible", "n_hidden"), SHAPES)
def test_derivatives_equal_finite_differences_of_the_formula(n_visible, n_hidden, weights):
    path = make_path(n_visible, n_hidden, weights)
    state = moved_state(path)
    # float32 fields of sums of up to 117 terms of size 1: relative errors near 1e-6
    log_f = functools.partial(reference_log_f, path, state.v, state.h)
    assert_derivatives_equal_finite_differences(path, state, log_f, rtol=1e-5)


def test_exact_draws_need_a_ladder_that_ends_at_1():
    path = make_path(4, 3).with_ladder([0.0, 0.5])
    with pytest.raises(ValueError, match="give a ladder that ends there, this one ends at 0.5"):
        Exact().sample(path, 10, np.random.default_rng(0))


# ---- one sweep
def layer_uniforms(stream, chain, n, purpose):
    bits = np.zeros(n + 4, dtype=np.uint32)
    random_bits(bits, n, *stream.key, stream.step, stream.chain + chain, purpose)
    return (bits[:n] >> 9) * 2.0**-23 + 2.0**-24


def reference_half(path, units, betas, stream, purpose):
    """One layer's means given the other layer, its uniforms, and what they give, in float64."""
    if purpose == FIRST:
        logits = betas[:, np.newaxis] * (path.intercept_hidden + units @ path.components.T)
    else:
        base = (1 - betas)[:, np.newaxis] * path.logits[0]
        logits = base + betas[:, np.newaxis] * (path.intercept_visible + units @ path.components)
    n_chains, n = logits.shape
    uniforms = np.stack([layer_uniforms(stream, c, n, purpose) for c in range(n_chains)])
    return uniforms, expit(logits)


@pytest.mark.parametrize(("n_visible", "n_hidden"), SHAPES)
@pytest.mark.parametrize("step", [1, 256])  # 256: the sweep that sums the fields anew
@pytest.mark.parametrize("visible_first", [False, True])
def test_a_sweep_equals_float64_numpy_with_the_same_uniforms(
    n_visible, n_hidden, step, visible_first
):
    path = make_path(n_visible, n_hidden, "joint")
    state, levels, stream = moved_state(path), np.array([0, 1, 2, 3, 4, 4]), STREAM.at(step)
    moved = path.gibbs(state, levels, stream, reverse=visible_first)
    halves = [("h", "v", FIRST), ("v", "h", SECOND)]
    given = {"v": state.v, "h": state.h}
    for layer, other, purpose in reversed(halves) if visible_first else halves:
        uniforms, means = reference_half(path, given[other], path.ladder[levels], stream, purpose)
        given[layer] = getattr(moved, layer)
        clear = np.abs(uniforms - means) > 1e-5  # the others are ties to float32
        assert clear.mean() > 0.99
        np.testing.assert_array_equal(given[layer][clear], (uniforms < means)[clear])
    for cached, exact in fields(path, moved):
        np.testing.assert_allclose(cached, exact, rtol=0, atol=1e-4)


# ---- fused programs
@pytest.mark.parametrize("weights", ["marginal", "joint"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("n_visible", "n_hidden"), [(1, 1), (17, 33), (100, 64)])
def test_fused_annealing_equals_the_loop(n_visible, n_hidden, weights, reverse):
    path, n = make_path(n_visible, n_hidden, weights, ladder=np.linspace(0, 1, 301)), 5
    state = path.sample_base(n, STREAM.at(0))
    order = np.r_[np.arange(301), 300, 299][:: -1 if reverse else 1]
    levels = np.repeat(order[:, np.newaxis], n, axis=1)
    levels[:, 1] = 300  # a chain whose level stays
    stream = STREAM.at(100)  # passes the refresh at 256
    order = Chains(state, (), levels[0]), levels, stream, reverse
    fused, log_weights = _programs.anneal(path, Gibbs(), *order)
    looped, expected = _programs.anneal.__wrapped__(path, Gibbs(), *order)
    same_state(fused.state, looped.state)
    # every unit's factor has a float32 error of at most 4.4e-7 (1e-7 rms), independent from step to
    # step
    np.testing.assert_allclose(log_weights, expected, rtol=0, atol=5e-7 * np.sqrt(302 * n_hidden))
    assert log_weights[1] == 0


@pytest.mark.parametrize("weights", ["marginal", "joint"])
def test_fused_exchange_and_tempering_equal_the_loops(weights):
    """Every log ratio is a float32."""
    path = make_path(20, 9, weights, scale=0.3, ladder=np.linspace(0, 1, 4))
    assert_exchange_equals_the_loop(path, rtol=2e-6)
    for sweeps_per_redraw, stride in ((1, 1), (3, 4)):
        assert_tempering_equals_the_loop(path, sweeps_per_redraw, stride, rtol=2e-6)


def test_exchange_with_huge_log_ratios_stays_finite():
    path = make_path(33, 17, scale=1e4)
    chains = Chains(path.sample_base(5, STREAM), (), np.arange(5))
    arguments = chains, np.zeros(5, dtype=np.int64), np.zeros(4), 30, STREAM
    sums = _programs.exchange(path, Gibbs(), *arguments).sums.pairs
    assert np.all(np.isfinite(sums))
    assert sums[..., 2:4].max() > 1e260  # exp(600)
    expected = _programs.exchange.__wrapped__(path, Gibbs(), *arguments).sums.pairs
    np.testing.assert_allclose(sums, expected, rtol=1e-9, atol=1e-300)


def test_tempering_keeps_tiny_level_probabilities():
    path = make_path(30, 12, scale=3.0, ladder=[0.0, 1.0])
    levels, log_prior = np.zeros(2, dtype=np.int64), np.array([0.0, -1000.0])
    arguments = (Chains(path.sample_base(2, STREAM), (), levels), log_prior, 1, 1, 1, STREAM)
    q_sums = _programs.temper(path, Gibbs(), *arguments).q_sums
    expected = _programs.temper.__wrapped__(path, Gibbs(), *arguments).q_sums
    log_q_sums = _programs.log_q_sums(q_sums)
    np.testing.assert_allclose(log_q_sums, _programs.log_q_sums(expected), rtol=1e-9, atol=1e-9)
    assert np.all((log_q_sums[:, 1] < -700) & np.isfinite(log_q_sums[:, 1]))


# ---- contract
@pytest.mark.parametrize("weights", ["marginal", "joint"])
def test_keeps_the_contract_of_a_path(weights):
    check_path(make_path(30, 12, weights))
