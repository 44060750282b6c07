"""Memory and time with and without checks, by dimension: python tests/benchmarks/memory.py

HAIS from N(0, 2 I), and BridgeSampling of 4 x 1000 independent draws with and without a gradient,
and of 4 x 25,000, on a Gaussian density with variances from 1/4 to 4; each in a process of its own,
whose largest resident memory is that of the operating system.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sklpf import HAIS, BridgeSampling, Gaussian, GeometricPath

DIMENSIONS = {
    "HAIS": (10, 100, 400, 1600),
    "bridge": (2, 10, 50, 100, 200, 500, 1000),
    "bridge, gradient": (2, 10, 50, 100, 200, 500, 1000),
    "bridge of 4 x 25,000 draws": (200,),
}


def one(kind: str, d: int, checks: bool) -> None:
    """Fit once, and print a row of the table."""
    precision = np.geomspace(0.25, 4.0, d)

    def log_density(x):
        return -0.5 * x**2 @ precision

    grad = (
        None if kind.startswith("bridge") and "gradient" not in kind else lambda x: -x * precision
    )
    path = GeometricPath(log_density, grad=grad, base=Gaussian(np.zeros(d), 2.0))
    before = peak()
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # 1000 levels are few
        if kind == "HAIS":
            result = HAIS(checks=checks, random_state=0).fit(path).result_
        else:
            n = 25_000 if "25,000" in kind else 1000
            draws = np.random.default_rng(0).standard_normal((4, n, d)) / np.sqrt(precision)
            bridge = BridgeSampling(checks=checks, random_state=0)
            result = bridge.fit(path, draws=draws).result_
    seconds = time.perf_counter() - started
    error = result.log_partition - 0.5 * np.sum(np.log(2 * np.pi / precision))
    print(
        f"| {kind} | {d} | {'yes' if checks else 'no'} | {before:.2f} | {peak():.2f} |"
        f" {seconds:.1f} | {result.check_evaluations} | {error:+.3f} ± {result.std_error:.3f} |",
        flush=True,
    )


def peak() -> float:
    """Largest resident memory so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", default="")
    parser.add_argument("--d", type=int)
    parser.add_argument("--checks", type=int)
    args = parser.parse_args()
    if args.checks is not None:
        one(args.kind, args.d, bool(args.checks))
        return
    columns = ("run", "d", "checks", "GB before", "GB at most", "s", "evaluations by checks")
    print("| " + " | ".join((*columns, "error (nats)")) + " |")
    print("|---" * 8 + "|", flush=True)
    for kind in [kind for kind in DIMENSIONS if args.kind in kind]:
        for d in DIMENSIONS[kind] if args.d is None else [args.d]:
            for checks in ("0", "1"):
                command = [sys.executable, __file__, f"--kind={kind}", f"--d={d}"]
                subprocess.run([*command, f"--checks={checks}"], check=True)


if __name__ == "__main__":
    main()
