"""What an estimate costs with an estimator's defaults: the table of doc/guide/choosing.md.

    python tests/benchmarks/costs.py [--seeds 5]

Three targets: an RBM of 64 × 32 units trained on scikit-learn's digits, one of 784 × 20 trained on
MNIST (reference data, see SKLPF_DATA; its log Z is enumerated) and a Gaussian in 20 dimensions with
condition number 100. s is the median processor time of a run, one thread, kernels compiled before.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from interval_coverage import digits, mnist
from measure import quiet_fit, row, table

from sklpf import AIS, BDMC, HAIS, RTS, SMC, BernoulliRBM, Exact, ParallelTempering
from sklpf.partition import RAISE, SAMS, MarkovMixture, WangLandau
from sklpf.transitions import HMC

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from known_densities import make_density_problem

ON_RBMS = {
    "Exact": Exact,
    "ParallelTempering": ParallelTempering,
    "AIS": AIS,
    "SMC": SMC,
    "RTS": RTS,
    "SAMS": SAMS,
    "WangLandau": WangLandau,
    "MarkovMixture": MarkovMixture,
    "BDMC": BDMC,
    "RAISE": RAISE,
}
ON_DENSITIES = {
    "HAIS": HAIS,
    'HAIS, metric="dense"': lambda **options: HAIS(transition=HMC(metric="dense"), **options),
    "ParallelTempering": ParallelTempering,
    "RTS": RTS,
    "SMC": SMC,
    "BDMC": BDMC,
}


def targets():
    small = BernoulliRBM(32, learning_rate=0.05, n_iter=30, random_state=0).fit(
        digits().astype(np.float32)
    )
    problem = make_density_problem("gaussian 20-D, condition 100", compiled=True)
    return (
        ("RBM, 64 × 32", small.path(), None, {k: v for k, v in ON_RBMS.items() if k != "Exact"}),
        (
            "RBM, 784 × 20",
            (known := mnist(20, 0).path()),
            Exact().fit(known).log_partition_,
            ON_RBMS,
        ),
        ("density, 20-D", problem.path, problem.log_partition, ON_DENSITIES),
    )


def timed(make, path, seed):
    estimator = make(n_jobs=1) if make is Exact else make(n_jobs=1, random_state=seed)
    began = time.process_time()
    quiet_fit(estimator, path)
    return time.process_time() - began, estimator


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5)
    n = parser.parse_args().seeds
    table("target", "estimator", "s", "median SE", "RMSE", "converged", "statement")
    for target, path, truth, estimators in targets():
        for name, make in estimators.items():
            timed(make, path, n)  # compiles
            seconds, fitted = zip(*(timed(make, path, seed) for seed in range(n)))
            errors = [f.log_partition_ - truth for f in fitted] if truth is not None else [np.nan]
            converged = sum(f.converged_ for f in fitted)
            numbers = (
                np.median(seconds),
                np.median([f.log_partition_std_error_ for f in fitted]),
                np.mean(np.square(errors)) ** 0.5,
            )
            row(
                target,
                name,
                *(f"{number:.2g}" for number in numbers),
                f"{converged} of {n}",
                fitted[0].result_.statement,
            )


if __name__ == "__main__":
    main()
