"""Models and estimators in many threads at a time leave the process as it was, and give the numbers
of one thread.
"""

import asyncio
import functools
import os
import random
import signal
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from jobs import JOBS
from marks import large
from threadpoolctl import threadpool_info, threadpool_limits

import sklpf

SKLPF = str(Path(sklpf.__file__).parent)


class CaughtWarnings(warnings.catch_warnings):
    """Filters that other libraries change, as scikit-learn does for every array that it checks, one
    thread after the other: they would not set them back rightly. sklpf may not change them.
    """

    turn = threading.RLock()

    def __enter__(self):
        assert not sys._getframe(1).f_code.co_filename.startswith(SKLPF)
        self.turn.acquire()
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        self.turn.release()


def state_of_the_process():
    generator = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    return {
        "filters": list(warnings.filters),
        "showwarning": (warnings.showwarning, warnings._showwarnmsg_impl),
        "threads": {each["filepath"]: each["num_threads"] for each in threadpool_info()},
        "errors": np.geterr(),
        "generator": (generator["key"].tolist(), generator["pos"]),
        "random": random.getstate(),
        "signals": [signal.getsignal(each) for each in signal.valid_signals()],
        "environment": dict(os.environ),
        "printed": np.get_printoptions(),
    }


def in_threads(n_threads):
    with ThreadPoolExecutor(n_threads) as pool:
        yield lambda names: list(pool.map(lambda name: JOBS[name](), names))


def by_asyncio(n_threads):
    async def run(names):
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(n_threads))
        return await asyncio.gather(*[asyncio.to_thread(JOBS[name]) for name in names])

    yield lambda names: asyncio.run(run(names))


def by_dask(n_threads):
    from distributed import Client, LocalCluster

    cluster = LocalCluster(
        n_workers=1,
        threads_per_worker=n_threads,
        processes=False,
        protocol="tcp",  # of threads the default is inproc, which takes no host
        host="127.0.0.1",
        dashboard_address=None,
    )
    with cluster, Client(cluster) as client:
        yield lambda names: client.gather([client.submit(JOBS[n], pure=False) for n in names])


QUICK = ["BoltzmannMachine", "FactorialMixture", "AIS", "HAIS", "BridgeSampling", "one model"]
WAYS = [
    (in_threads, 4, QUICK * 2),
    large(in_threads, 8, [*JOBS] * 20),
    large(by_asyncio, 8, [*JOBS] * 20),
    large(by_dask, 8, [*JOBS] * 20),
]


@functools.cache
def alone(name):
    """The numbers of a job on one thread, of BLAS as well."""
    with threadpool_limits(1):
        return JOBS[name]()


@pytest.mark.filterwarnings("ignore")  # of runs and fits that are short on purpose
@pytest.mark.parametrize(("way", "n_threads", "names"), WAYS)
def test_threads_leave_the_process_as_it_was(way, n_threads, names, monkeypatch):
    names = np.random.default_rng(0).permutation(names)
    with threadpool_limits(2, user_api="blas"):
        expected = [alone(name) for name in names]
        monkeypatch.setattr(warnings, "catch_warnings", CaughtWarnings)
        for run in way(n_threads):
            before = state_of_the_process()
            found = run(names)
            after = state_of_the_process()
            if way is by_dask:  # which draws from it itself
                after["random"] = before["random"]
            assert after == before
    for name, *parts in zip(names, found, expected):
        for part, of_one_thread in zip(*parts, strict=True):
            np.testing.assert_array_equal(part, of_one_thread, err_msg=name)
