"""Time of an HMC step of products of experts and of a mean-covariance RBM, against their matrix products and peers.

    taskset -c 0 python tests/benchmarks/hmc_speed.py [python of an environment with jax and blackjax]

Chains go up a ladder of 100 levels by moves of one leapfrog step, in float64 and on one thread. "ours" is the program
that HAIS runs on a path whose author has written `evaluate`; "two functions" is `GeometricPath` on a log density and a
gradient that numba compiled, each with its own W x. What is compared is called in turn; a ratio is the median of the
rounds' ratios with its quartiles. "products" are the matrix products of a step and nothing else: with the filters and
back, and of the mean-covariance RBM with factors, pooling and mean components and back.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from functools import partial
from typing import Any, NamedTuple

import numba
import numpy as np
from measure import ratio, row, table
from scipy.special import gammaln
from threadpoolctl import threadpool_limits

from sklpf import HMC, Gaussian, GeometricPath, StudentT
from sklpf._random import Stream
from sklpf.kernels import OPTIONS, implements
from sklpf.kernels import _programs as programs
from sklpf.kernels._random import log64
from sklpf.models import MeanCovariancePath
from sklpf.models.mcrbm._units import Units
from sklpf.paths._base import TemperedPath, map_state
from sklpf.paths._geometric import Points
from sklpf.paths._kernel_path import read_only
from sklpf.runs import _plain

LEVELS, ROUNDS, KEY = 100, 15, (1, 2)
SUMS = {"fastmath": {*OPTIONS["fastmath"], "reassoc"}}  # sums that vectorise


class Case(NamedTuple):
    kind: str
    K: int
    d: int
    n: int
    strength: float  # lambda of all Student-t experts
    df: float  # of the base
    target: tuple  # share of the two products, JAX / ours
    step: float = 0.0


CASES = [
    Case("student-t", 36, 36, 64, 2.0, 8.0, (0.41, 3.5)),
    Case("student-t", 144, 36, 64, 1.0, 8.0, (0.5, 2.1)),
    Case("laplace", 144, 36, 64, 1.0, 0.0, (0.65, 2.4)),
    Case("laplace", 1024, 256, 128, 1.0, 0.0, (0.83, 0.95)),
]


# ---- the densities, as the author of a model writes them -----------------------------------------------------
class Laplace(NamedTuple):
    weights: Any  # (K, d)
    log_norm: float  # of the base N(0, I)


class Student(NamedTuple):
    weights: Any
    strengths: Any  # (K,)
    df: float
    log_norm: float


@implements(programs.evaluate, Laplace, **SUMS)
def _laplace(density, position, values):
    """exp(-sum |u|), u = W x, from N(0, I)."""
    weights, slopes = density.weights, values.gain_slope
    u = np.dot(position, weights.T)
    for c in range(u.shape[0]):
        energy = 0.0
        for k in range(u.shape[1]):
            energy += abs(u[c, k])
            u[c, k] = -1.0 if u[c, k] > 0.0 else 1.0
        values.gain[c] = -energy
    np.dot(u, weights, slopes)
    for c in range(u.shape[0]):
        square = 0.0
        for j in range(slopes.shape[1]):
            x = position[c, j]
            square += x * x
            values.base_slope[c, j] = -x
            slopes[c, j] += x
        values.log_base[c] = density.log_norm - 0.5 * square
        values.gain[c] -= values.log_base[c]


@implements(programs.evaluate, Student, **SUMS)
def _student(density, position, values):
    """exp(-sum lambda log(1 + u^2)), u = W x, from a multivariate t with unit scale."""
    weights, strengths, slopes, df = density.weights, density.strengths, values.gain_slope, density.df
    d = slopes.shape[1]
    u = np.dot(position, weights.T)
    for c in range(u.shape[0]):
        energy = 0.0
        for k in range(u.shape[1]):
            s = 1.0 + u[c, k] * u[c, k]
            energy += strengths[k] * log64(s)
            u[c, k] *= -2.0 * strengths[k] / s
        values.gain[c] = -energy
    np.dot(u, weights, slopes)
    for c in range(u.shape[0]):
        square = 0.0
        for j in range(d):
            square += position[c, j] * position[c, j]
        factor = (df + d) / (df + square)
        for j in range(d):
            values.base_slope[c, j] = -factor * position[c, j]
            slopes[c, j] += factor * position[c, j]
        values.log_base[c] = density.log_norm - 0.5 * (df + d) * math.log1p(square / df)
        values.gain[c] -= values.log_base[c]


class ProductPath(TemperedPath):
    """A product of experts with its compiled form."""

    base_log_partition, bounds, n_chains_per_block = 0.0, None, 64

    def __init__(self, case, weights):
        self.case, self.weights, d = case, weights, case.d
        self.n_dimensions = self.n_summaries = d
        self.base = Gaussian(np.zeros(d), 1.0) if case.kind == "laplace" else StudentT(np.zeros(d), 1.0, case.df)
        self.packed = Laplace(read_only(weights), -0.5 * d * np.log(2 * np.pi))
        if case.kind != "laplace":
            norm = gammaln((case.df + d) / 2) - gammaln(case.df / 2) - d / 2 * np.log(case.df * np.pi)
            strengths = np.full(case.K, case.strength)
            self.packed = Student(read_only(weights), read_only(strengths), case.df, norm)

    def kernel(self, name):
        return getattr(programs, name)

    def sample_base(self, n, stream):
        return self.at(self.base.sample(n, stream.generator()))

    def position(self, state):
        return state.position

    def at(self, position):
        u, log_base = position @ self.weights.T, self.base.log_density(position)
        energy = np.abs(u) if self.case.kind == "laplace" else self.case.strength * np.log1p(u**2)
        return Points(position, log_base, -energy.sum(axis=1) - log_base)

    def ends(self, state):
        return state.log_base, state.gain

    def gradients(self, state):
        u, base = state.position @ self.weights.T, self.base.grad_log_density(state.position)
        slope = np.sign(u) if self.case.kind == "laplace" else 2 * self.case.strength * u / (1 + u**2)
        return base, -slope @ self.weights - base


def two_functions(case, weights):
    """The same density as two functions that a user compiled."""
    W, strength = weights, case.strength
    if case.kind == "laplace":
        log_density = numba.njit(lambda x: -np.abs(x @ W.T).sum(axis=1))
        grad = numba.njit(lambda x: -np.sign(x @ W.T) @ W)
        return GeometricPath(log_density, grad=grad, base=Gaussian(np.zeros(case.d), 1.0))

    @numba.njit
    def log_density(x):
        return -strength * np.log1p((x @ W.T) ** 2).sum(axis=1)

    @numba.njit
    def grad(x):
        u = x @ W.T
        return -(2 * strength * u / (1 + u**2)) @ W

    return GeometricPath(log_density, grad=grad, base=StudentT(np.zeros(case.d), 1.0, case.df))


# ---- what is timed ------------------------------------------------------------------------------------------
def annealing(path, move, n):
    """A function that takes chains, made once, up the ladder; and the chains."""
    stream = Stream(KEY)
    state = path.sample_base(n, stream)
    memory = move.init(path, state, stream.aside())
    moving = map_state(np.array, state), map_state(np.array, memory)
    betas = np.repeat(np.linspace(0, 1, LEVELS)[:, np.newaxis], n, axis=1)
    model, log_weights = move.compiled(path), np.zeros(n)
    return lambda: path.kernel("anneal")(model, moving, betas, False, stream.at(1).keys, log_weights)


def in_numpy(path, move, n):
    stream = Stream(KEY)
    state = path.sample_base(n, stream)
    levels = np.repeat(np.arange(LEVELS)[:, np.newaxis], n, axis=1)
    memory = move.init(path, state, stream.aside())
    return lambda: _plain.anneal(path.with_ladder(np.linspace(0, 1, LEVELS)), move, state, memory, levels, stream.at(1))


@numba.njit
def products(x, weights, u, slopes):
    for _ in range(LEVELS - 1):
        np.dot(x, weights.T, u)
        np.dot(u, weights, slopes)


class Peers:
    """JAX and blackjax in a process of their own, one thread."""

    def __init__(self, python, case):
        flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hmc_jax.py")
        command = [python, script, json.dumps({**case._asdict(), "levels": LEVELS})]
        environment = {"XLA_FLAGS": flags, "OMP_NUM_THREADS": "1", "PATH": os.environ["PATH"]}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, env=environment, **pipes)
        self.process.stdout.readline()

    def seconds(self, name):
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


@numba.njit
def mcrbm_products(x, factors, pooling, filters, u, mean, slopes):
    for _ in range(LEVELS - 1):
        np.dot(x, factors.T, u)
        np.dot(np.dot(u, pooling), pooling.T, u)
        np.dot(u, factors, slopes)
        np.dot(x, filters.T, mean)
        np.dot(mean, filters, slopes)


def mcrbm(d=36, K=144, n=64):
    """A step of MeanCovarianceRBM(K, K, K) and its products: processor seconds of every round, {name: (rounds,)}."""
    rng = np.random.default_rng(0)
    factors, filters = 0.3 * rng.normal(size=(K, d)), 0.1 * rng.normal(size=(K, d))
    pooling = np.eye(K) + 0.02 * rng.random((K, K))
    units = Units(factors, pooling, filters, np.full(K, 2.0), np.full(K, -2.0), np.zeros(d), 1.0)
    path = MeanCovariancePath(units, np.zeros(d), 1.0)
    work = np.ones((n, d)), factors, pooling, filters, np.empty((n, K)), np.empty((n, K)), np.empty((n, d))
    tuned = HMC().tune(path, KEY)
    calls = {"ours": annealing(path, tuned, n), "products": partial(mcrbm_products, *work)}
    rounds = [{name: clocked(call) for name, call in calls.items()} for _ in range(ROUNDS + 1)]
    return {name: np.array([seconds[name] for seconds in rounds[1:]]) for name in calls}


def clocked(function):
    began = time.process_time()
    function()
    return time.process_time() - began


def measured(case, python):
    """Processor seconds of every call in every round, {name: (rounds,)}, and the acceptance."""
    weights = np.random.default_rng(0).normal(size=(case.K, case.d)) / case.d**0.5
    path = ProductPath(case, weights)
    tuned = HMC().tune(path, KEY)
    step = float(np.exp(np.median(tuned.pilot.log_steps)) * np.median(tuned.pilot.roots))
    fixed = HMC(step, half_life=0.5)
    work = np.ones((case.n, case.d)), weights, np.empty((case.n, case.K)), np.empty((case.n, case.d))
    calls = {
        "ours": partial(clocked, annealing(path, tuned, case.n)),
        "two functions": partial(clocked, annealing(two_functions(case, weights), tuned, case.n)),
        "products": partial(clocked, partial(products, *work)),
        "numpy": partial(clocked, in_numpy(path, fixed, case.n)),
    }
    if python:
        peers = Peers(python, case._replace(step=step))
        calls |= {name: partial(peers.seconds, name) for name in ("jax", "blackjax")}
    seconds = {name: [] for name in calls}
    for _ in range(ROUNDS + 1):
        for name, call in calls.items():
            seconds[name].append(call())
    return {name: np.array(values[1:]) for name, values in seconds.items()}  # the first round warms up


def main():
    python = sys.argv[1] if len(sys.argv) > 1 else None
    table("density", "chains", "ours, ns a chain and step", "products, ns", "share of the limit (goal)",
          "two functions / ours", "NumPy / ours", "JAX / ours (goal)", "blackjax / ours")  # fmt: skip
    for case in CASES:
        times = measured(case, python)
        ns = {name: np.median(seconds) / case.n / (LEVELS - 1) * 1e9 for name, seconds in times.items()}
        ratios = {name: ratio(seconds, times["ours"]) for name, seconds in times.items()}
        row(
            f"{case.kind} {case.d} x {case.K}", case.n, f"{ns['ours']:.0f}", f"{ns['products']:.0f}",
            f"{ratios['products']} ({case.target[0]})", ratios["two functions"], ratios["numpy"],
            f"{ratios.get('jax', '-')} ({case.target[1]})", ratios.get("blackjax", "-"),
        )  # fmt: skip
    times = mcrbm()
    ns = {name: np.median(seconds) / 64 / (LEVELS - 1) * 1e9 for name, seconds in times.items()}
    share = f"{ratio(times['products'], times['ours'])} (0.7)"
    row("mcrbm 36, 144/144/144", 64, f"{ns['ours']:.0f}", f"{ns['products']:.0f}", share, "-", "-", "-", "-")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
