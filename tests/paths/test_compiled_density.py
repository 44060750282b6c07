"""Densities that numba compiled: the same chains as in plain loops, made once."""

import numba
import numpy as np
import pytest
from convergence import z_score
from marks import large

from sklpf import HAIS, Gaussian, GeometricPath, StudentT, Uniform
from sklpf._utils.parallel import _leaves
from sklpf.paths import Stream
from sklpf.programs import _programs
from sklpf.programs._programs import Chains
from sklpf.transitions import HMC, RandomWalk

PRECISION = np.array([[2.0, 0.9, 0.0], [0.9, 1.0, 0.3], [0.0, 0.3, 0.7]])
LADDER = np.linspace(0, 1, 12)
N = 7


# One function for all tests, since programs are compiled for each: in three dimensions a correlated
# normal density; else a standard one, but inf beyond 2.5 on the line, NaN beyond 3 on the plane
# and 0 on one side of four dimensions.
@numba.njit
def log_density(x):
    n, d = x.shape
    if d == 3:
        return -0.5 * ((x @ PRECISION) * x).sum(axis=1)
    values = np.empty(n)
    for c in range(n):
        values[c] = -0.5 * (x[c] ** 2).sum()
        if d == 1 and x[c, 0] > 2.5:
            values[c] = np.inf
        elif d == 2 and x[c, 0] >= 3:
            values[c] = np.nan
        elif d == 4 and x[c, 0] < 0:
            values[c] = -np.inf
    return values


@numba.njit
def grad(x):
    if x.shape[1] == 3:
        return -(x @ PRECISION)
    return np.where((x < 3) | (x.shape[1] != 2), -x, np.nan)


def plain(x):
    return log_density(x)


def plain_grad(x):
    return grad(x)


BASES = {
    "diagonal": (Gaussian(np.zeros(3), 4.0), None),
    "full": (Gaussian(np.ones(3), 0.3 + np.eye(3)), None),
    "heavy": (StudentT(np.zeros(3), 2.0, 4.0), None),
    "box": (Uniform(-2 * np.ones(3), np.ones(3)), (-2.0, 1.0)),
    "half": (Gaussian(np.zeros(3), 2.0), (-1.0, np.inf)),
}
MOVES = [
    HMC(0.4, half_life=1),
    HMC(0.2, n_leapfrog=3, half_life=None),
    HMC(),
    HMC(metric="diag"),
    HMC(metric="dense"),
    *(large(move) for move in (RandomWalk(0.4), RandomWalk(), RandomWalk(metric="dense"))),
]


# A program is compiled for every kind of base, for 10 s each.
@pytest.fixture(
    scope="module", params=["diagonal", large("full"), large("box"), large("heavy"), large("half")]
)
def paths(request):
    base, bounds = BASES[request.param]
    compiled = GeometricPath(log_density, grad=grad, base=base, bounds=bounds, ladder=LADDER)
    return compiled, GeometricPath(plain, grad=plain_grad, base=base, bounds=bounds, ladder=LADDER)


def assert_same(program, compiled, path, order, tolerance):
    """All arrays of the fused program and of the plain loop, which it returns."""
    looped = program.__wrapped__(path, *order)
    for old, new in zip(_leaves(looped), _leaves(program(compiled, *order))):
        np.testing.assert_allclose(new, old, rtol=tolerance, atol=tolerance)
    return looped


def assert_annealing_is_that_of_the_loops(compiled, path, move):
    """Both ways through the ladder, states and weights to 1e-10."""
    move, stream = move.tune(path, (3, 4)), Stream((1, 2), 5)
    assert move.compiled(compiled) is not None
    assert move.compiled(path) is None
    state = path.sample_base(N, stream)
    auxiliary = move.init(path, state, stream.of("memory"))
    levels = np.repeat(np.arange(len(LADDER))[:, np.newaxis], N, axis=1)
    chains = Chains(state, auxiliary, levels[0])
    for reverse, order in ((False, levels), (True, levels[::-1])):
        order = move, chains, order, stream.at(1), reverse
        looped = assert_same(_programs.anneal, compiled, path, order, 1e-10)
        assert np.any(looped[0].state.position != state.position)


@pytest.mark.parametrize("move", MOVES, ids=str)
def test_chains_are_those_of_the_plain_loops(paths, move):
    compiled, path = paths
    if path.bounds.has_sides and move.metric == "dense":
        pytest.skip("no dense metric with bounds")
    assert_annealing_is_that_of_the_loops(compiled, path, move)


@pytest.mark.large
def test_a_density_without_gradient_is_compiled_too():
    base, bounds = BASES["half"]
    compiled = GeometricPath(log_density, base=base, bounds=bounds, ladder=LADDER)
    path = GeometricPath(plain, base=base, bounds=bounds, ladder=LADDER)
    assert_annealing_is_that_of_the_loops(compiled, path, RandomWalk(metric="diag"))


@pytest.mark.large
def test_exchange_and_temper_are_those_of_the_plain_loops():
    base, _ = BASES["diagonal"]
    path = GeometricPath(plain, grad=plain_grad, base=base, ladder=LADDER)
    compiled = GeometricPath(log_density, grad=grad, base=base, ladder=LADDER)
    move, stream, n_levels = HMC(metric="dense").tune(path, (3, 4)), Stream((1, 2), 5), len(LADDER)
    state = path.sample_base(n_levels, stream)
    auxiliary = move.init(path, state, stream.of("memory"))
    levels, ends = np.arange(n_levels), np.zeros(n_levels, dtype=int)
    chains = Chains(state, auxiliary, levels)
    order = move, chains, ends, np.zeros(n_levels - 1), 9, stream.at(1), 2
    assert_same(_programs.exchange, compiled, path, order, 1e-9)
    order = move, chains, np.zeros(n_levels), 9, 2, 3, stream.at(1)
    assert_same(_programs.temper, compiled, path, order, 1e-9)


def test_a_program_is_made_once_and_not_kept():
    """Every new function would leave its machine code on disk."""
    first, second = (
        GeometricPath(log_density, grad=grad, base=BASES["diagonal"][0]).kernel("anneal")
        for _ in range(2)
    )
    assert first is second
    assert type(first._cache).__name__ == "NullCache"


# ---- values that are none
def faulty_path(n_dimensions, functions=(log_density, grad)):
    base = Gaussian(np.zeros(n_dimensions), 1.0)
    return GeometricPath(functions[0], grad=functions[1], base=base)


def test_a_number_that_is_none_is_shown_with_its_point():
    with pytest.raises(ValueError, match=r"log_density is inf at \[ *[23]\."):
        HAIS(50, 100, random_state=0).fit(faulty_path(1))


def test_compiled_and_plain_moves_reject_nan_alike():
    paths = faulty_path(2, (plain, plain_grad)), faulty_path(2)
    fits = [HAIS(n_temperatures=50, random_state=0).fit(path) for path in paths]
    np.testing.assert_allclose(fits[0].run_.forward, fits[1].run_.forward, atol=1e-8)


def test_walls_in_a_compiled_density():
    hais = HAIS(200, 50, random_state=0).fit(faulty_path(4))
    truth = 2 * np.log(2 * np.pi) - np.log(2)
    assert abs(z_score(hais, truth)) < 4.8  # false alarm 1e-5
