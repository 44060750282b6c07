"""FactorialPath against brute force and quadrature, fused programs against plain loops, estimators
against Exact.
"""

import numpy as np
import pytest
from fused_programs import (
    assert_annealing_equals_the_loop,
    assert_derivatives_equal_finite_differences,
    assert_exchange_equals_the_loop,
    log_f_at,
)
from known_problems import all_rows
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

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


def reference(x, z, means, covariance, noise, probability):
    """Log prior and log likelihood of every row of z, by the formulas of the class and SciPy's
    normal density.
    """
    prior = (z * np.log(probability) + (1 - z) * np.log(1 - probability)).sum(axis=1)
    variances = noise + np.einsum("ni,ij,nj->n", z, covariance, z)
    identity = np.eye(len(x))
    terms = [multivariate_normal(z_n @ means, v * identity) for z_n, v in zip(z, variances)]
    return prior, np.array([term.logpdf(x) for term in terms])


def brute_force(X, *parameters):
    states = all_rows(len(parameters[0]))
    return np.array([logsumexp(np.add(*reference(x, states, *parameters))) for x in X])


SHAPES = [(1, 1), (2, 1), (6, 30)]


# ---- exact values
@pytest.mark.parametrize(("n_components", "n_features"), SHAPES)
def test_enumeration_equals_brute_force(n_components, n_features):
    path, X, parameters = make_path(n_components, n_features, n_rows=7)
    expected = brute_force(X, *parameters)
    assert_allclose(Exact().fit(path).log_partition_, expected, rtol=1e-11)
    one_by_one = [Exact().fit(path.row(t)).log_partition_ for t in range(7)]
    assert_allclose(one_by_one, expected, rtol=1e-11)


def test_blocks_of_many_components_equal_a_plain_sum():
    path, X, parameters = make_path(16, 3, n_rows=4)
    assert path.n_enumeration_blocks == 4
    z = (np.arange(1 << 16)[:, np.newaxis] >> np.arange(16)) & 1
    means, covariance, noise, probability = parameters
    variances = noise + np.sum(z @ covariance * z, axis=1)
    prior = z @ np.log(probability) + (1 - z) @ np.log(1 - probability)
    distances = np.sum((X[:, np.newaxis] - z @ means) ** 2, axis=2)
    log_weights = prior - 1.5 * np.log(2 * np.pi * variances) - distances / (2 * variances)
    assert_allclose(path.enumerate_rows(range(4)), logsumexp(log_weights, axis=1), rtol=1e-11)
    blocks = [path.row(2).enumerate_block(block, 3) for block in range(4)]
    assert_allclose(np.concatenate(blocks), log_weights[2], rtol=1e-9)


# ---- the path's contract
@pytest.mark.parametrize(("n_components", "n_features"), SHAPES)
def test_keeps_the_contract(n_components, n_features):
    check_path(make_path(n_components, n_features)[0].row(2))


@pytest.mark.parametrize("seed", [0, 1])
def test_sweeps_leave_every_level_invariant_and_are_reversed(seed):
    path = make_path(4, 2, noise=2.0, seed=seed)[0].row(0)
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
