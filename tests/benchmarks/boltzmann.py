"""Coverage of log Z of Boltzmann machines, and lattices beside Kaufman's exact log Z.

Prints Markdown.

    python tests/benchmarks/boltzmann.py coverage [--seeds 10]
    python tests/benchmarks/boltzmann.py lattices [--seeds 20]
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from measure import row, table

from sklpf import AIS, RTS, SMC, BoltzmannMachine, Exact, ParallelTempering

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))
from lattices import CRITICAL_COUPLING, kaufman, lattice

N_UNITS = 18
ESTIMATORS = [ParallelTempering(), AIS(), SMC(), RTS()]


def models():
    """Kinds of random models, ten of each: name, function of a seed."""

    def dense(scale):
        def make(rng):
            couplings = np.triu(rng.normal(scale=scale, size=(N_UNITS, N_UNITS)), 1)
            return couplings, rng.normal(size=N_UNITS)

        return make

    def sparse(rng):
        couplings = np.triu(rng.normal(scale=3, size=(N_UNITS, N_UNITS)), 1)
        couplings *= rng.random(couplings.shape) < 3 / N_UNITS
        return couplings, rng.normal(size=N_UNITS)

    def attractive(rng):
        couplings = np.triu(rng.gamma(1.0, 0.5, size=(N_UNITS, N_UNITS)), 1)
        return couplings, -(couplings + couplings.T).sum(axis=1) / 2

    yield "dense, sd 0.5", dense(0.5)
    yield "dense, sd 2", dense(2.0)
    yield "three neighbours, sd 3", sparse
    yield "attractive, two phases", attractive


def coverage(n_seeds):
    table("model", "estimator", "runs", "converged", "cover", "beyond 5 SE", "rms error")
    for name, make in models():
        for estimator in ESTIMATORS:
            errors = []
            for number in range(10):
                couplings, intercept = make(np.random.default_rng(number))
                model = BoltzmannMachine.from_parameters(couplings + couplings.T, intercept)
                exact = Exact().fit(model).log_partition_
                for seed in range(n_seeds):
                    result = estimator.set_params(random_state=seed).fit(model).result_
                    low, high = result.interval(0.95)
                    error = result.log_partition - exact
                    far = abs(error) > 5 * result.std_error
                    errors.append((result.converged, low <= exact <= high, far, error))
            converged, covers, far, error = np.array(errors, dtype=float).T
            good = converged == 1
            rms = np.sqrt(np.mean(error[good] ** 2))
            cells = (len(good), good.sum(), int(covers[good].sum()), int(far[good].sum()))
            row(name, type(estimator).__name__, *cells, f"{rms:.4f}")


def lattices(n_seeds):
    table("lattice", "coupling", "exact", "rms error", "converged", "cover", "seconds")
    for n in (8, 16, 32):
        for coupling in (0.35, CRITICAL_COUPLING, 0.55):
            exact, found = kaufman(n, n, coupling), []
            for seed in range(n_seeds):
                model = BoltzmannMachine.from_spins(coupling * lattice(n, n), random_state=seed)
                began = time.process_time()
                result = model.estimate_log_partition().partition_estimator_.result_
                seconds = time.process_time() - began
                low, high = result.interval(0.95)
                error = result.log_partition - exact
                found.append((error, result.converged, low <= exact <= high, seconds))
            errors, converged, covers, seconds = np.array(found, dtype=float).T
            good = converged == 1
            rms = np.sqrt(np.mean(errors[good] ** 2)) if good.any() else np.nan
            counts = f"{int(good.sum())} of {n_seeds}", f"{int(covers[good].sum())}"
            cells = (f"{coupling:.4f}", f"{exact:.3f}", f"{rms:.3f}", *counts)
            row(f"{n} x {n}", *cells, f"{np.median(seconds):.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["coverage", "lattices"])
    parser.add_argument("--seeds", type=int, default=10)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    {"coverage": coverage, "lattices": lattices}[arguments.what](arguments.seeds)


if __name__ == "__main__":
    main()
