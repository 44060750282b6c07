"""Densities that numba compiled: the same chains as in plain loops, made once, nothing left on
disk.
"""

import logging
import os
import subprocess
import sys

import numba
import numpy as np
import pytest

from sklpf import (
    AIS,
    HAIS,
    HMC,
    RTS,
    Gaussian,
    GeometricPath,
    ParallelTempering,
    RandomWalk,
    StudentT,
    Uniform,
)
from sklpf._utils.parallel import _leaves
from sklpf.paths import Stream, stream_key
from sklpf.programs import _plain, _programs
from sklpf.programs._chains import Chains
from sklpf.testing import check_transition

PRECISION = np.array([[2.0, 0.9, 0.0], [0.9, 1.0, 0.3], [0.0, 0.3, 0.7]])
LADDER = np.linspace(0, 1, 12)
N = 7


@numba.njit
def log_density(x):
    return -0.5 * ((x @ PRECISION) * x).sum(axis=1)


@numba.njit
def grad(x):
    return -(x @ PRECISION)


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
    RandomWalk(0.4),
    RandomWalk(),
    RandomWalk(metric="dense"),
]


# A program is compiled for every kind of base, for 10 s each.
@pytest.fixture(
    scope="module",
    params=[
        "diagonal",
        "full",
        pytest.param("box", marks=pytest.mark.large),
        pytest.param("heavy", marks=pytest.mark.large),
        pytest.param("half", marks=pytest.mark.large),
    ],
)
def paths(request):
    base, bounds = BASES[request.param]
    compiled = GeometricPath(log_density, grad=grad, base=base, bounds=bounds, ladder=LADDER)
    return compiled, GeometricPath(plain, grad=plain_grad, base=base, bounds=bounds, ladder=LADDER)


def assert_annealing_is_that_of_the_loops(compiled, path, move):
    """Both ways through the ladder, states and weights to 1e-10."""
    move, stream = move.tune(path, (3, 4)), Stream((1, 2), 5)
    assert move.compiled(compiled) is not None
    assert move.compiled(path) is None
    state = path.sample_base(N, stream)
    memory = move.init(path, state, stream.aside("memory"))
    levels = np.repeat(np.arange(len(LADDER))[:, np.newaxis], N, axis=1)
    for reverse, order in ((False, levels), (True, levels[::-1])):
        looped = _plain.anneal(path, move, state, memory, order, stream.at(1), reverse)
        fused = _programs.anneal(compiled, move, state, memory, order, stream.at(1), reverse)
        for old, new in zip((*looped[0], *looped[1], looped[2]), (*fused[0], *fused[1], fused[2])):
            np.testing.assert_allclose(new, old, rtol=1e-10, atol=1e-10)
        assert np.any(looped[0].position != state.position)


@pytest.mark.parametrize("move", MOVES, ids=str)
def test_chains_are_those_of_the_plain_loops(paths, move):
    compiled, path = paths
    if path.bounds is not None and move.metric == "dense":
        pytest.skip("no dense metric with bounds")
    assert_annealing_is_that_of_the_loops(compiled, path, move)


@pytest.mark.parametrize("kind", ["heavy", "half"])
def test_a_density_without_gradient_is_compiled_too(kind):
    base, bounds = BASES[kind]
    compiled = GeometricPath(log_density, base=base, bounds=bounds, ladder=LADDER)
    path = GeometricPath(plain, base=base, bounds=bounds, ladder=LADDER)
    assert_annealing_is_that_of_the_loops(compiled, path, RandomWalk(metric="diag"))


class CompiledWalk(RandomWalk):
    """Every move is made by the compiled program."""

    def move(self, path, state, memory, levels, stream, reverse=False):
        order = np.stack([levels, levels])
        return _programs.anneal(path, self, state, memory, order, stream, reverse)[:2]


@pytest.mark.parametrize("kind", ["full", "half"])
def test_the_compiled_walk_leaves_every_level_invariant(kind):
    """False alarm 1e-4."""
    base, bounds = BASES[kind]
    slopes = grad if bounds is None else None  # a program of another test does for both
    path = GeometricPath(
        log_density, grad=slopes, base=base, bounds=bounds, ladder=np.linspace(0, 1, 6)
    )
    move = CompiledWalk(metric="diag").tune(path, stream_key(1))
    check_transition(path, move, variables=path.position)


def test_a_run_without_gradient_is_right():
    """False alarm 2e-6."""
    path = GeometricPath(log_density, base=BASES["heavy"][0])
    fitted = AIS(200, 200, transition=RandomWalk(), random_state=0).fit(path)
    truth = 1.5 * np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(PRECISION)[1]
    assert fitted.converged_
    assert abs(fitted.log_partition_ - truth) < 4.8 * fitted.log_partition_std_error_


@pytest.mark.parametrize("kind", ["diagonal"])
def test_exchange_and_temper_are_those_of_the_plain_loops(kind):
    base, bounds = BASES[kind]
    path = GeometricPath(plain, grad=plain_grad, base=base, bounds=bounds, ladder=LADDER)
    compiled = GeometricPath(log_density, grad=grad, base=base, bounds=bounds, ladder=LADDER)
    move, stream, n_levels = HMC(metric="dense").tune(path, (3, 4)), Stream((1, 2), 5), len(LADDER)
    state = path.sample_base(n_levels, stream)
    memory, levels, ends = (
        move.init(path, state, stream.aside("memory")),
        np.arange(n_levels),
        np.zeros(n_levels, dtype=int),
    )
    chains = Chains(state, memory, levels)
    order = chains, ends, np.zeros(n_levels - 1), 9, stream.at(1), 2
    looped = _plain.exchange(path, move, *order)
    fused = _programs.exchange(compiled, move, *order)
    for old, new in zip(_leaves(looped), _leaves(fused)):
        np.testing.assert_allclose(new, old, rtol=1e-9, atol=1e-9)
    order = chains, np.zeros(n_levels), 9, 2, 3, stream.at(1)
    looped = _plain.temper(path, move, *order)
    fused = _programs.temper(compiled, move, *order)
    for old, new in zip(_leaves(looped), _leaves(fused)):
        np.testing.assert_allclose(new, old, rtol=1e-9, atol=1e-9)


def test_estimates_agree_and_are_compiled_once(caplog):
    caplog.set_level(logging.INFO, logger="sklpf")

    @numba.njit
    def again(x):
        return -0.5 * ((x @ PRECISION) * x).sum(axis=1)

    base, _ = BASES["diagonal"]
    numbers = [
        HAIS(20, 150, random_state=0)
        .fit(GeometricPath(plain, grad=plain_grad, base=base))
        .log_partition_
    ]
    for _ in range(2):
        numbers.append(
            HAIS(20, 150, random_state=0)
            .fit(GeometricPath(again, grad=grad, base=base))
            .log_partition_
        )
    np.testing.assert_allclose(numbers, numbers[0], rtol=0, atol=1e-8)
    assert sum("compiling programs for again" in message for message in caplog.messages) == 1


def test_programs_of_a_density_are_not_kept():
    """Every new function would leave its machine code on disk."""
    path = GeometricPath(log_density, grad=grad, base=BASES["diagonal"][0])
    assert type(path.kernel("anneal")._cache).__name__ == "NullCache"


CODE = """
import numba, numpy as np, pathlib, os
from sklpf import HAIS, Gaussian, GeometricPath
def estimate():
    log_density = numba.njit(lambda x: -0.5 * (x * x).sum(axis=1))
    grad = numba.njit(lambda x: -x)
    base = Gaussian(np.zeros(2), 2.0)
    HAIS(10, 30, random_state=0).fit(GeometricPath(log_density, grad=grad, base=base))
    return sorted(file.name for file in pathlib.Path(os.environ["NUMBA_CACHE_DIR"]).rglob("*.nb*"))
first = estimate()
assert estimate() == first
assert not any("_programs" in name for name in first), first
"""


@pytest.mark.large
def test_nothing_of_a_density_is_left_on_disk(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-W", "ignore", "-c", CODE], env=environment, check=True)


def test_estimators_run_on_a_compiled_density():
    base, _ = BASES["diagonal"]
    path = GeometricPath(log_density, grad=grad, base=base)
    truth = 1.5 * np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(PRECISION)[1]
    for estimator in (
        RTS(n_sweeps=1000, random_state=0),
        ParallelTempering(n_sweeps=512, random_state=0),
    ):
        fitted = estimator.fit(path)
        assert fitted.converged_
        assert (
            abs(fitted.log_partition_ - truth) < 4.8 * fitted.log_partition_std_error_
        )  # false alarm 1e-3


# ---- values that are none
def faulty(x):
    """Standard normal, but inf beyond 2.5 on the line, NaN beyond 3 on the plane, and 0 on one side
    in space: one function, since a program is compiled for each.
    """
    n, d = x.shape
    values = np.empty(n)
    for c in range(n):
        values[c] = -0.5 * (x[c] ** 2).sum()
        if d == 1 and x[c, 0] > 2.5:
            values[c] = np.inf
        elif d == 2 and x[c, 0] >= 3:
            values[c] = np.nan
        elif d == 3 and x[c, 0] < 0:
            values[c] = -np.inf
    return values


def faulty_grad(x):
    return np.where((x < 3) | (x.shape[1] != 2), -x, np.nan)


FAULTY = numba.njit(faulty), numba.njit(faulty_grad)


def faulty_path(n_dimensions, functions=FAULTY):
    base = Gaussian(np.zeros(n_dimensions), 1.0)
    return GeometricPath(functions[0], grad=functions[1], base=base)


def test_a_number_that_is_none_is_shown_with_its_point():
    with pytest.raises(ValueError, match=r"log_density is inf at \[ *[23]\."):
        HAIS(50, 100, random_state=0).fit(faulty_path(1))


def test_compiled_and_plain_moves_reject_nan_alike():
    paths = faulty_path(2, (faulty, faulty_grad)), faulty_path(2)
    fits = [HAIS(n_temperatures=50, random_state=0).fit(path) for path in paths]
    np.testing.assert_allclose(fits[0].run_.up, fits[1].run_.up, atol=1e-8)


def test_walls_in_a_compiled_density():
    hais = HAIS(200, 50, random_state=0).fit(faulty_path(3))
    truth = 1.5 * np.log(2 * np.pi) - np.log(2)
    assert (
        abs(hais.log_partition_ - truth) < 4.8 * hais.log_partition_std_error_
    )  # false alarm 1e-5
