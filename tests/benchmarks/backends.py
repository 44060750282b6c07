"""What joblib's back ends cost: threads, processes, Dask and Ray, all on this machine.

Run with: python tests/benchmarks/backends.py {tasks,estimate,score,fit} [--rounds 3]

Prints tables in Markdown; doc/benchmarks/speed.md keeps them. Dask is in the dependency group
test, Ray in ray; what is not installed is left out. Every back end has 2 workers of one thread
each. Calls are interleaved, after one of each that is not timed; a cell is the median, and of
ratios the median ratio of the seconds to those of n_jobs=1 in the same round, with its quartiles.
Every call must give the same bits.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import time
import warnings

import numpy as np
from joblib import parallel_config
from measure import digits, interleave, ratio, row, table

from sklpf import AIS, BernoulliRBM, LatentDirichletAllocation
from sklpf._utils.parallel import run_segments
from sklpf.datasets import make_bars_corpus

N_BLOCKS, N_SEGMENTS = 8, 8


@contextlib.contextmanager
def dask_workers():
    from distributed import Client, LocalCluster

    options = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "host": "127.0.0.1",
        "dashboard_address": None,
    }
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


# ---- work
def _start(block):
    return np.zeros(1000)


def _advance(block, begin, end, carry):
    return carry + 1


def empty(n_jobs):
    """64 tasks that do nothing, 8 at a time."""
    return np.array(
        run_segments(
            _start, _advance, N_BLOCKS, range(N_SEGMENTS + 1), n_jobs=n_jobs, stage="empty"
        )
    )


def annealing(n_chains, n_temperatures):
    rbm = BernoulliRBM(64, learning_rate=0.05, n_iter=60, random_state=0).fit(digits())
    path = rbm.path()

    def run(n_jobs):
        return AIS(n_chains, n_temperatures, random_state=0, n_jobs=n_jobs).fit(path).run_.forward

    return run


def score(n_documents):
    X, topics, _ = make_bars_corpus(n_documents, n_tokens=60, background=0.1, random_state=0)
    model = LatentDirichletAllocation.from_topics(topics, 0.3, random_state=0)
    return lambda n_jobs: model.set_params(n_jobs=n_jobs).score_samples(X)


def fit(n_documents, n_passes):
    X, topics, _ = make_bars_corpus(n_documents, size=10, n_tokens=100, random_state=0)
    model = LatentDirichletAllocation(len(topics), max_iter=n_passes, random_state=0)
    return lambda n_jobs: model.set_params(n_jobs=n_jobs).fit(X).components_


WORK = {
    "estimate": (
        "AIS, 64 × 64 units, 1000 chains × 10,000 levels",
        lambda: annealing(1000, 10_000),
    ),
    "score": ("score of 2000 documents of 60 words", lambda: score(2000)),
    "fit": ("fit of 20 topics to 5000 documents of 100 words, 20 passes", lambda: fit(5000, 20)),
}


# ---- tables
def on(backend, run, expected):
    def call():
        with parallel_config(backend=backend):
            np.testing.assert_array_equal(run(2), expected)

    return call


def measure(run, backends, rounds):
    expected = run(1)
    calls = {"one": lambda: run(1), **{backend: on(backend, run, expected) for backend in backends}}
    return interleave(calls, rounds, clock=time.perf_counter)


def tasks(backends, rounds):
    table("back end", "milliseconds a task, of 64 that do nothing")
    for name, seconds in measure(empty, backends, rounds).items():
        row(
            "n_jobs=1" if name == "one" else name,
            f"{1000 * np.median(seconds) / N_BLOCKS / N_SEGMENTS:.2f}",
        )


def work(name, make, backends, rounds):
    table("work", "n_jobs=1, s", *backends)
    seconds = measure(make(), backends, rounds)
    one = seconds.pop("one")
    row(name, f"{np.median(one):.2f}", *(ratio(seconds[backend], one) for backend in backends))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["tasks", *WORK])
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # the back ends' own, and that few levels are not to be trusted
    with contextlib.ExitStack() as stack:
        clusters = [
            name for name, (module, _) in WORKERS.items() if importlib.util.find_spec(module)
        ]
        for name in clusters:
            stack.enter_context(WORKERS[name][1]())
        backends = ["threading", "loky", *clusters]
        if arguments.what == "tasks":
            tasks(backends, arguments.rounds)
        else:
            work(*WORK[arguments.what], backends, arguments.rounds)
