"""FactorialPath against brute force and quadrature, fused programs against plain loops, estimators
against Exact.
"""

import numpy as np
import pytest
from factorial_mixture import enumerated
from fused_programs import (
    assert_annealing_equals_the_loop,
    assert_derivatives_equal_finite_differences,
    assert_exchange_equals_the_loop,
    log_f_at,
)
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp

from sklpf import Exact
from sklpf.models import FactorialPath
from sklpf.paths import Stream, stream_key
from sklpf.testing import check_path, check_transition
from sklpf.transitions import Gibbs

LADDER = np.array([0.0, 0.2, 0.55, 1.0])
STREAM = Stream(stream_key(1), chain=5, step=1)


def make_parameters(n_components, n_features, noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    factor = 0.3 * rng.normal(size=(n_components, n_components))
    means = rng.normal(size=(n_components, n_features))
    return means, factor @ factor.T, noise, rng.uniform(0.15, 0.7, n_components)


def make_rows(parameters, n_rows, seed=1):
    means, _, noise, probability = parameters
    rng = np.random.default_rng(seed)
    z = rng.random((n_rows, len(means))) < probability
    return z @ means + np.sqrt(noise) * rng.normal(size=(n_rows, means.shape[1]))


def make_path(n_components, n_features, n_rows=3, ladder=LADDER, **options):
    parameters = make_parameters(n_components, n_features, **options)
    X = make_rows(parameters, n_rows)
    return FactorialPath(X, *parameters, ladder), X, parameters


SHAPES = [(1, 1), (2, 1), (6, 30)]


# ---- exact values
@pytest.mark.parametrize(("n_components", "n_features"), [*SHAPES, (16, 3)])
def test_enumeration_equals_brute_force(n_components, n_features):
    """Of 16 components there are four blocks."""
    path, X, parameters = make_path(n_components, n_features, n_rows=7)
    _, log_f, _ = enumerated(X, *parameters)
    expected = logsumexp(log_f, axis=1)
    assert_allclose(Exact().fit(path).log_partition_, expected, rtol=1e-11)
    one_by_one = [Exact().fit(path.row(t)).log_partition_ for t in range(7)]
    assert_allclose(one_by_one, expected, rtol=1e-11)
    blocks = [path.row(2).enumerate_block(b, 3) for b in range(path.n_enumeration_blocks)]
    assert len(blocks) == (4 if n_components == 16 else 1)
    assert_allclose(np.concatenate(blocks), log_f[2], rtol=1e-9)


# ---- the path's contract
@pytest.mark.parametrize(("n_components", "n_features"), SHAPES)
def test_keeps_the_contract(n_components, n_features):
    check_path(make_path(n_components, n_features)[0].row(2))


def test_sweeps_leave_every_level_invariant_and_are_reversed():
    path = make_path(4, 2, noise=2.0)[0].row(0)
    # 1e-4 is the false-alarm rate of each check
    check_transition(path, Gibbs(), variables=lambda state: state.z, n=20_000)


@pytest.mark.parametrize(("n_components", "n_features"), SHAPES)
def test_derivatives_equal_finite_differences(n_components, n_features):
    path = make_path(n_components, n_features)[0].row(1)
    state = path.gibbs(path.sample_base(20, STREAM), np.arange(20) % 4, STREAM.at(2))
    assert_derivatives_equal_finite_differences(path, state, log_f_at(path, state), rtol=1e-8)
    assert_array_equal(path.derivatives(state, np.full(20, 2))[:, 1], 0)


# ---- fused programs equal plain loops
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("n_components", "n_features"), SHAPES)
def test_annealing_equals_the_plain_loop(n_components, n_features, reverse):
    assert_annealing_equals_the_loop(make_path(n_components, n_features)[0].row(0), reverse)


@pytest.mark.large  # its program takes long to compile
def test_exchange_equals_the_plain_loop():
    assert_exchange_equals_the_loop(make_path(5, 2)[0].row(0))
