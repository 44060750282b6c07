"""Time of an HMC step of the image models, against their matrix products, NumPy, JAX and blackjax.

    taskset -c 0 python tests/benchmarks/hmc_speed.py [python of an environment with jax and
    blackjax]

Chains go up a ladder of 100 levels by moves of one leapfrog step, in float64 and on one thread.
"ours" is the program that HAIS runs on a model's path; "NumPy" the plain loops on it, which
call the same compiled density; "two functions", for products of experts, `GeometricPath` on a
log density and a gradient that numba compiled, each with its own W x. What is compared is
called in turn; a ratio is the median of the rounds' ratios with its quartiles. "products" are
the matrix products of a step and nothing else.
"""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from typing import Any, NamedTuple

import numba
import numpy as np
from measure import ratio, row, table
from threadpoolctl import threadpool_limits

from sklpf import GeometricPath, MeanCovarianceRBM, ProductOfExperts
from sklpf._utils.random import Stream
from sklpf.models import LinearPath
from sklpf.paths import map_state
from sklpf.programs import _programs
from sklpf.programs._programs import Chains
from sklpf.transitions import HMC

LEVELS, ROUNDS, KEY = 100, 15, (1, 2)


class Case(NamedTuple):
    name: str
    kind: str  # as hmc_jax.py knows it
    path: Any
    arrays: dict  # what JAX needs
    matrices: list  # of a step's products, each used forwards and back
    n: int
    goals: tuple  # share of the products, JAX / ours


# ---- the densities
def product(K, d, n, strength, goals):
    """Student-t experts with one exponent, or Laplace ones where that is None."""
    filters = np.random.default_rng(0).normal(size=(K, d)) / d**0.5
    path = ProductOfExperts.from_parameters(
        filters, None if strength is None else np.full(K, strength)
    ).path()
    kind = "laplace" if strength is None else "student-t"
    arrays = {"filters": path.experts.filters, "constant": path.experts.constant}
    if strength is not None:
        arrays |= {"exponents": path.experts.exponents, "df": path.base.df}
    return Case(f"{kind} {d} x {K}", kind, path, arrays, [path.experts.filters], n, goals)


def linear(M, d, n, goals):
    """One row of a linear generative model with Laplace causes."""
    rng = np.random.default_rng(0)
    path = LinearPath(rng.normal(size=(1, d)), rng.normal(size=(M, d)) / M**0.5, 0.1).row(0)
    root = path.posterior.root
    arrays = {"root": root, "center": path.center, "constant": path.constant}
    return Case(f"linear generative {d} x {M}", "linear", path, arrays, [root], n, goals)


def mean_covariance(d, K, n, goals):
    """K factors, covariance units and mean units."""
    rng = np.random.default_rng(0)
    factors, filters = 0.3 * rng.normal(size=(K, d)), 0.1 * rng.normal(size=(K, d))
    pooling = np.eye(K) + 0.02 * rng.random((K, K))
    intercepts = {"intercept_covariance": np.full(K, 2.0), "intercept_mean": np.full(K, -2.0)}
    path = MeanCovarianceRBM.from_parameters(factors, pooling, filters, **intercepts).path()
    arrays = {"factors": factors, "pooling": pooling, "filters": filters, **intercepts}
    return Case(
        f"mcrbm {d}, {K}/{K}/{K}", "mcrbm", path, arrays, [factors, pooling, filters], n, goals
    )


def two_functions(case):
    """A product of experts as two functions that a user compiled."""
    W, exponents, constant = (
        case.arrays.get(name) for name in ("filters", "exponents", "constant")
    )
    if case.kind == "laplace":
        log_density = numba.njit(lambda x: constant - np.abs(x @ W.T).sum(axis=1))
        grad = numba.njit(lambda x: -np.sign(x @ W.T) @ W)
        return GeometricPath(log_density, grad=grad, base=case.path.base)

    @numba.njit
    def log_density(x):
        return constant - (exponents * np.log1p((x @ W.T) ** 2)).sum(axis=1)

    @numba.njit
    def grad(x):
        u = x @ W.T
        return -(2 * exponents * u / (1 + u**2)) @ W

    return GeometricPath(log_density, grad=grad, base=case.path.base)


# ---- what is timed
def annealing(path, move, n):
    """A function that takes chains, made once, up the ladder."""
    stream = Stream(KEY)
    state = path.sample_base(n, stream)
    auxiliary = move.init(path, state, stream.of("memory"))
    moving = map_state(np.array, state), map_state(np.array, auxiliary)
    betas = np.repeat(np.linspace(0, 1, LEVELS)[:, np.newaxis], n, axis=1)
    model, log_weights = move.compiled(path), np.zeros(n)
    return lambda: path.kernel("anneal")(
        model, moving, betas, False, stream.at(1).keys, log_weights
    )


def in_numpy(path, move, n):
    stream = Stream(KEY)
    state = path.sample_base(n, stream)
    levels = np.repeat(np.arange(LEVELS)[:, np.newaxis], n, axis=1)
    auxiliary = move.init(path, state, stream.of("memory"))
    return lambda: _programs.anneal.__wrapped__(
        path.with_ladder(np.linspace(0, 1, LEVELS)),
        move,
        Chains(state, auxiliary, levels[0]),
        levels,
        stream.at(1),
    )


@numba.njit
def both_ways(x, matrix, u, back):
    for _ in range(LEVELS - 1):
        np.dot(x, matrix.T, u)
        np.dot(u, matrix, back)


def products(case):
    """A function that computes every matrix product of the steps."""
    work = [
        (np.ones((case.n, m.shape[1])), m, np.empty((case.n, len(m))))
        for m in map(np.array, case.matrices)
    ]
    work = [(*parts, np.empty_like(parts[0])) for parts in work]
    return lambda: [both_ways(*parts) for parts in work]


class Peers:
    """JAX and blackjax in a process of their own, one thread."""

    def __init__(self, python, case, step):
        flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hmc_jax.py")
        with tempfile.NamedTemporaryFile(suffix=".npz", delete=False) as file:
            np.savez(file, **case.arrays)
        size = {"n": case.n, "d": case.path.n_dimensions, "levels": LEVELS, "step": step}
        command = [python, script, json.dumps({"kind": case.kind, "arrays": file.name, **size})]
        environment = {"XLA_FLAGS": flags, "OMP_NUM_THREADS": "1", "PATH": os.environ["PATH"]}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, env=environment, **pipes)
        self.process.stdout.readline()
        os.unlink(file.name)

    def seconds(self, name):
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def clocked(function):
    began = time.process_time()
    function()
    return time.process_time() - began


def measured(case, python):
    """Processor seconds of every call in every round, {name: (rounds,)}."""
    path = copy.copy(case.path)
    tuned = HMC().tune(path, KEY)
    step = float(np.exp(np.median(tuned.pilot.log_steps)) * np.median(tuned.pilot.roots))
    calls = {
        "ours": partial(clocked, annealing(path, tuned, case.n)),
        "products": partial(clocked, products(case)),
        "numpy": partial(clocked, in_numpy(path, HMC(step, half_life=0.5), case.n)),
    }
    if case.kind in ("laplace", "student-t"):
        calls["two functions"] = partial(clocked, annealing(two_functions(case), tuned, case.n))
    if python:
        peers = Peers(python, case, step)
        calls |= {name: partial(peers.seconds, name) for name in ("jax", "blackjax")}
    seconds = {name: [] for name in calls}
    for _ in range(ROUNDS + 1):
        for name, call in calls.items():
            seconds[name].append(call())
    return {
        name: np.array(values[1:]) for name, values in seconds.items()
    }  # the first round warms up


def main():
    python = sys.argv[1] if len(sys.argv) > 1 else None
    table(
        "density",
        "chains",
        "ours, ns a chain and step",
        "products, ns",
        "share of the limit (goal)",
        "two functions / ours",
        "NumPy / ours",
        "JAX / ours (goal)",
        "blackjax / ours",
    )
    cases = [
        product(36, 36, 64, 2.0, (0.41, 3.5)),
        product(144, 36, 64, 1.0, (0.5, 2.1)),
        product(144, 36, 64, None, (0.65, 2.4)),
        product(1024, 256, 128, None, (0.83, 0.95)),
        linear(144, 36, 64, (0.8, 1.9)),
        mean_covariance(36, 144, 64, (0.7, 1.9)),
    ]
    for case in cases:
        times = measured(case, python)
        ns = {
            name: np.median(seconds) / case.n / (LEVELS - 1) * 1e9
            for name, seconds in times.items()
        }
        ratios = {name: ratio(seconds, times["ours"]) for name, seconds in times.items()}
        row(
            case.name,
            case.n,
            f"{ns['ours']:.0f}",
            f"{ns['products']:.0f}",
            f"{ratios['products']} ({case.goals[0]})",
            ratios.get("two functions", "-"),
            ratios["numpy"],
            f"{ratios.get('jax', '-')} ({case.goals[1]})",
            ratios.get("blackjax", "-"),
        )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
