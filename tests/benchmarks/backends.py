"""What joblib's back ends cost: threads, processes, Dask and Ray, all on this machine.

Run with: python tests/benchmarks/backends.py [--rounds 3]

Prints tables in Markdown; doc/benchmarks/backends.md keeps them. Dask is in the dependency group test, Ray in ray; what
is not installed is left out. Every back end has 2 workers of one thread each. Calls are interleaved; a cell is the
median ratio of the seconds to those of n_jobs=1 in the same round, with its quartiles. Every call must give the same
bits.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import time
import warnings

import numpy as np
from joblib import parallel_config
from measure import interleave, ratio, row, small, table

from sklpf import AIS, LatentDirichletAllocation
from sklpf._parallel import run_segments
from sklpf.datasets import make_bars_corpus

N_BLOCKS, N_SEGMENTS = 8, 8


@contextlib.contextmanager
def dask_workers():
    from distributed import Client, LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster):
        yield


@contextlib.contextmanager
def ray_workers():
    import ray
    from ray.util.joblib import register_ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    register_ray()
    try:
        yield
    finally:
        ray.shutdown()


WORKERS = {"dask": ("distributed", dask_workers), "ray": ("ray", ray_workers)}


# ---- work ----------------------------------------------------------------------------------------------
def _start(block):
    return np.zeros(1000)


def _advance(block, segment, carry):
    return carry + 1


def empty(n_jobs):
    """64 tasks that do nothing, 8 at a time."""
    return np.array(run_segments(_start, _advance, N_BLOCKS, N_SEGMENTS, n_jobs=n_jobs, stage="empty"))


def annealing(path, n_chains, n_temperatures):
    def run(n_jobs):
        return AIS(n_chains, n_temperatures, random_state=0, n_jobs=n_jobs).fit(path).run_.up

    return run


def documents(n, n_tokens):
    X, topics, _ = make_bars_corpus(n, n_tokens=n_tokens, background=0.1, random_state=0)
    model = LatentDirichletAllocation.from_topics(topics, 0.3, random_state=0)
    return lambda n_jobs: model.set_params(n_jobs=n_jobs).score_samples(X)


def make_work():
    path = small()[1]
    return {
        "AIS, 64 × 64 units, 100 chains × 2000 levels": annealing(path, 100, 2000),
        "score of 30 documents of 60 words": documents(30, 60),
    }


# ---- tables --------------------------------------------------------------------------------------------
def on(backend, run, expected):
    def call():
        with parallel_config(backend=backend):
            np.testing.assert_array_equal(run(2), expected)

    return call


def measure(run, backends, rounds):
    expected = run(1)
    calls = {"one": lambda: run(1), **{backend: on(backend, run, expected) for backend in backends}}
    return interleave(calls, rounds, clock=time.perf_counter)


def overheads(backends, rounds):
    table("back end", "milliseconds a task, of 64 that do nothing")
    for name, seconds in measure(empty, backends, rounds).items():
        row("n_jobs=1" if name == "one" else name, f"{1000 * np.median(seconds) / N_BLOCKS / N_SEGMENTS:.2f}")


def times(backends, rounds):
    table("work", "n_jobs=1, s", *backends)
    for name, run in make_work().items():
        seconds = measure(run, backends, rounds)
        one = seconds.pop("one")
        row(name, f"{np.median(one):.2f}", *(ratio(seconds[backend], one) for backend in backends))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    warnings.simplefilter("ignore")  # the back ends' own, and that few levels are not to be trusted
    with contextlib.ExitStack() as stack:
        clusters = [name for name, (module, _) in WORKERS.items() if importlib.util.find_spec(module)]
        for name in clusters:
            stack.enter_context(WORKERS[name][1]())
        backends = ["threading", "loky", *clusters]
        overheads(backends, rounds)
        times(backends, rounds)
