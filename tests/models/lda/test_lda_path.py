"""LDAPath against brute force, and fused programs against plain loops."""

import itertools

import numpy as np
import pytest
from fused_programs import (
    assert_annealing_equals_the_loop,
    assert_derivatives_equal_finite_differences,
    assert_exchange_equals_the_loop,
    log_f_at,
)
from scipy.special import logsumexp

from sklpf import Exact
from sklpf.models import LDAPath
from sklpf.paths import Stream, stream_key
from sklpf.testing import check_path, check_transition
from sklpf.transitions import Gibbs

LADDER = np.array([0.0, 0.2, 0.55, 1.0])
STREAM = Stream(stream_key(1), chain=5, step=1)


def make_parameters(n_topics, n_words, seed=0):
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(n_words, 0.5), size=n_topics)
    return 0.999 * topics + 0.001 / n_words, rng.uniform(0.2, 1.5, n_topics)


def make_path(n_topics, n_tokens, n_words=6, seed=0, ladder=LADDER, equal=False):
    """One document a number of tokens."""
    topics, prior = make_parameters(n_topics, n_words, seed)
    rng = np.random.default_rng(seed + 1)
    even = np.full(n_words, 1 / n_words)
    X = np.array([rng.multinomial(n, even) for n in np.atleast_1d(n_tokens)])
    prior = 0.3 if equal else prior
    return LDAPath(topics, prior, X, ladder), X, topics, np.broadcast_to(prior, n_topics)


def log_urn(z, prior):
    """Log probability of topics drawn one after the other, each in proportion to its prior plus its
    draws so far.
    """
    weights, total = np.array(prior), 0.0
    for topic in z:
        total += np.log(weights[topic] / weights.sum())
        weights[topic] += 1
    return total


def parts(z, words, topics, prior):
    """Both ends of the path, log f_0 and log f_1, of one assignment, by the formulas of
    the class.
    """
    likelihood = np.log(topics[z, words]).sum()
    independent = np.log(prior / prior.sum())[z].sum()
    return likelihood + independent, likelihood + log_urn(z, prior)


def brute_force(x, topics, prior, beta=1.0):
    """Log of the sum of f_beta over all K^N assignments of topics to tokens."""
    words = np.repeat(np.arange(len(x)), x)
    assignments = itertools.product(range(len(topics)), repeat=len(words))
    ends = np.array([parts(np.array(z, dtype=int), words, topics, prior) for z in assignments])
    return logsumexp((1 - beta) * ends[:, 0] + beta * ends[:, 1])


SHAPES = [(1, 3), (2, 1), (3, 7), (17, 2), (20, 3)]


# ---- exact values
@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize(("n_topics", "n_tokens"), SHAPES)
def test_enumeration_equals_brute_force(n_topics, n_tokens, equal):
    path, X, topics, prior = make_path(n_topics, [n_tokens, 0, n_tokens - 1], equal=equal)
    expected = [brute_force(x, topics, prior) for x in X]
    assert expected[1] == 0
    np.testing.assert_allclose(Exact().fit(path).log_partition_, expected, rtol=1e-11, atol=1e-12)
    one_by_one = [Exact().fit(path.row(t)).log_partition_ for t in range(3)]
    np.testing.assert_allclose(one_by_one, expected, rtol=1e-11, atol=1e-12)


# ---- the path's contract
@pytest.mark.parametrize(("n_topics", "n_tokens"), [(2, 8), (3, 7), (17, 5), (40, 20)])
def test_keeps_the_contract(n_topics, n_tokens):
    check_path(make_path(n_topics, n_tokens)[0].row(0))


@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize(("n_topics", "n_tokens"), [(2, 6), (3, 12), (20, 10)])
def test_sweeps_leave_every_level_invariant_and_are_reversed(n_topics, n_tokens, equal):
    path = make_path(n_topics, n_tokens, equal=equal)[0].row(0)
    # 1e-4 is the false-alarm rate of each check
    check_transition(path, Gibbs(), variables=lambda state: state.z, n=20_000)


@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize(("n_topics", "n_tokens"), SHAPES)
def test_states_hold_both_parts_of_their_density(n_topics, n_tokens, equal):
    path, X, topics, prior = make_path(n_topics, n_tokens, equal=equal)
    words = np.repeat(np.arange(6), X[0])
    path, levels = path.row(0), np.arange(30) % 4
    state = path.sample_base(30, STREAM)
    for t in range(3):
        ends = np.array([parts(z, words, topics, prior) for z in state.z])
        np.testing.assert_allclose(state.log_base, ends[:, 0], rtol=1e-12)
        np.testing.assert_allclose(state.log_base + state.gain, ends[:, 1], rtol=1e-10)
        expected = (1 - LADDER[levels]) * ends[:, 0] + LADDER[levels] * ends[:, 1]
        np.testing.assert_allclose(path.log_f(state, levels), expected, rtol=1e-10)
        state = path.gibbs(state, levels, STREAM.at(2 + t), reverse=t == 1)


@pytest.mark.parametrize(("n_topics", "n_tokens"), SHAPES)
def test_derivatives_equal_finite_differences(n_topics, n_tokens):
    path = make_path(n_topics, n_tokens)[0].row(0)
    state = path.gibbs(path.sample_base(20, STREAM), np.arange(20) % 4, STREAM.at(2))
    assert_derivatives_equal_finite_differences(path, state, log_f_at(path, state), rtol=1e-8)
    np.testing.assert_array_equal(path.derivatives(state, np.full(20, 2))[:, 1], 0)


# ---- fused programs equal plain loops
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("n_topics", "n_tokens"), [(2, 1), (3, 30), (40, 20)])
def test_annealing_equals_the_plain_loop(n_topics, n_tokens, reverse):
    assert_annealing_equals_the_loop(make_path(n_topics, n_tokens)[0].row(0), reverse)


@pytest.mark.large  # its program takes long to compile
def test_exchange_equals_the_plain_loop():
    assert_exchange_equals_the_loop(make_path(5, 20)[0].row(0))
