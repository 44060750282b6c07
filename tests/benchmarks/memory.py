"""Memory and time of HAIS with all of its checks, by dimension: python tests/benchmarks/memory.py

A Gaussian density with variances from 1/4 to 4, from N(0, 2 I); each dimension in a process of its
own, whose largest resident memory is that of the operating system.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sklpf import HAIS, Gaussian, GeometricPath

DIMENSIONS = (10, 100, 400, 1600)


def one(d: int) -> None:
    """Fit once, and print a row of the table."""
    precision = np.geomspace(0.25, 4.0, d)
    path = GeometricPath(
        lambda x: -0.5 * x**2 @ precision,
        grad=lambda x: -x * precision,
        base=Gaussian(np.zeros(d), 2.0),
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # 1000 levels are few
        result = HAIS(random_state=0).fit(path).result_
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    error = result.log_partition - 0.5 * np.sum(np.log(2 * np.pi / precision))
    print(
        f"| {d} | {before:.2f} | {peak:.2f} | {seconds:.0f} | {result.check_evaluations} |"
        f" {error:+.3f} ± {result.std_error:.3f} |",
        flush=True,
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        one(int(sys.argv[1]))
    else:
        print("| dimensions | GB before | GB at most | s | evaluations by checks | error (nats) |")
        print("|---|---|---|---|---|---|", flush=True)
        for d in DIMENSIONS:
            subprocess.run([sys.executable, __file__, str(d)], check=True)
