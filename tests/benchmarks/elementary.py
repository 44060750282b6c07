"""Coverage of ImportanceSampling and RejectionSampling on densities, with good proposals and with
light-tailed ones.

    python tests/benchmarks/elementary.py [--seeds 100] [--cells NAME]

Prints Markdown: how many runs converged, and how many of their 95 % intervals cover. The RBMs are
in the grid "elementary" of interval_coverage.py.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sklpf import Gaussian, GeometricPath, StudentT
from sklpf.partition import ImportanceSampling, RejectionSampling

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from known_densities import make_density_problem

_LOG_NORM = np.log(2 * np.pi)  # of N(0, I) in two dimensions


def normal(x):
    return -np.sum(x**2, axis=1) / 2


def problem(kind):
    known = make_density_problem(kind)
    return known.path, known.log_partition


NORMAL = GeometricPath(normal, grad=lambda x: -x, base=Gaussian(np.zeros(2), 2.0)), _LOG_NORM
CELLS = {
    **{
        f"N(0, I) in 2 dimensions from N(0, {s}^2 I)": (
            NORMAL,
            lambda n, s=s: ImportanceSampling(n, proposal=Gaussian(np.zeros(2), s**2)),
        )
        for s in (0.5, 0.6, 0.7, 0.8, 2.0)
    },
    "N(0, I) in 2 dimensions from a t with 4 df": (
        NORMAL,
        lambda n: ImportanceSampling(n, proposal=StudentT(np.zeros(2), 1.0, df=4)),
    ),
    **{
        kind: (problem(kind), ImportanceSampling)
        for kind in (
            "laplace 6-D",
            "student-t 6-D",
            "student-t 6-D, gaussian base",
            "two gaussians 2-D",
            "funnel",
            "funnel, gaussian base",
            "beta-binomial",
        )
    },
    "N(0, I), rejection from a t with 4 df": (
        NORMAL,
        lambda n: RejectionSampling(_LOG_NORM + 0.6, n, proposal=StudentT(np.zeros(2), 1.0, df=4)),
    ),
    "the same, bound 5 nats higher": (
        NORMAL,
        lambda n: RejectionSampling(_LOG_NORM + 5.6, n, proposal=StudentT(np.zeros(2), 1.0, df=4)),
    ),
}


def measure(path, log_partition, make, n, n_seeds):
    rows = []
    for seed in range(n_seeds):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = make(n).set_params(random_state=seed).fit(path)
        low, high = fitted.log_partition_interval_
        error = fitted.log_partition_std_error_
        off = fitted.log_partition_ - log_partition
        rows.append(
            (off, error, fitted.converged_, low <= log_partition <= high, abs(off) > 3 * error)
        )
    return np.array(rows, dtype=float).T


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--cells", default="")
    args = parser.parse_args()
    print("| density | draws | RMSE | median SE | converged | covers | converged and 3 SE off |")
    print("|---|---|---|---|---|---|---|")
    for name, ((path, log_partition), make) in CELLS.items():
        for n in (200, 2000):
            if args.cells not in name:
                continue
            off, error, converged, covers, wrong = measure(path, log_partition, make, n, args.seeds)
            trusted = converged.astype(bool)
            print(
                f"| {name} | {n} | {np.sqrt(np.mean(off**2)):.3f} | {np.nanmedian(error):.3f} |"
                f" {trusted.mean():.0%} | {covers[trusted].sum():.0f} of {trusted.sum()} |"
                f" {wrong[trusted].sum():.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
