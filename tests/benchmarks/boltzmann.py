"""Coverage of log Z of Boltzmann machines, and lattices beside Kaufman's exact log Z.

Prints Markdown.

    python tests/benchmarks/boltzmann.py coverage [--seeds 10] [--file FILE]
    python tests/benchmarks/boltzmann.py lattices [--seeds 20] [--file FILE]
    python tests/benchmarks/boltzmann.py cliques [--seeds 10] [--file FILE]

cliques: eight units that are on or off together hold a share of Z that chains hardly meet.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from measure import COVERAGE, Kept, coverage_cells, row, table, timed_error
from sklearn.exceptions import ConvergenceWarning

from sklpf import AIS, RTS, SMC, BoltzmannMachine, Exact, ParallelTempering

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))
from cliques import model_with_clique
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


def exact_log_partition(model):
    return [Exact().fit(model).log_partition_]


def coverage(n_seeds, kept):
    table("model", "estimator", *COVERAGE)
    for name, make in models():
        found = {estimator: [] for estimator in ESTIMATORS}
        for number in range(10):
            couplings, intercept = make(np.random.default_rng(number))
            model = BoltzmannMachine.from_parameters(couplings + couplings.T, intercept)
            (exact,) = kept.get((name, number), partial(exact_log_partition, model))
            for estimator in ESTIMATORS:
                for seed in range(n_seeds):
                    estimator.set_params(random_state=seed)
                    run = partial(timed_error, estimator, model, exact)
                    key = name, number, type(estimator).__name__, seed
                    found[estimator].append(kept.get(key, run))
        for estimator, runs in found.items():
            row(name, type(estimator).__name__, *coverage_cells(runs))


def lattices(n_seeds, kept):
    table("lattice", "coupling", "exact", *COVERAGE, "largest error")
    for n in (8, 16, 32):
        for coupling in (0.35, CRITICAL_COUPLING, 0.55):
            exact = kaufman(n, n, coupling)
            runs = []
            for seed in range(n_seeds):
                model = BoltzmannMachine.from_spins(coupling * lattice(n, n), random_state=seed)
                estimator = ParallelTempering(random_state=seed)
                run = partial(timed_error, estimator, model, exact)
                runs.append(kept.get((n, round(coupling, 4), seed), run))
            largest = max(abs(error) for _, _, _, error, _, _ in runs)
            cells = f"{coupling:.4f}", f"{exact:.3f}", *coverage_cells(runs), f"{largest:.3f}"
            row(f"{n} x {n}", *cells)


def cliques(n_seeds, kept):
    table("share", "estimator", "runs", "converged", "> 3 SE", "wrong", "missed-region")
    for share in (0.02, 0.04, 0.06, 0.1):
        for estimator in ESTIMATORS:
            name = type(estimator).__name__
            runs = [
                kept.get((share, name, seed), partial(of_clique, estimator, share, seed))
                for seed in range(100, 100 + n_seeds)
            ]
            off, std_error, converged, missed = np.array(runs).T
            off = np.where(converged, np.abs(off), 0.0)
            is_wrong = off > np.maximum(5 * std_error, 0.02)
            counts = converged.sum(), np.sum(off > 3 * std_error), is_wrong.sum(), missed.sum()
            row(f"{share:.0%}", name, str(n_seeds), *(f"{count:.0f}" for count in counts))


def of_clique(estimator, share, seed):
    """Error and standard error of a run, whether it converged, and whether it says that it has
    missed a region.
    """
    path = model_with_clique(seed, share).path()
    exact = Exact().fit(path).log_partition_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = estimator.set_params(random_state=seed).fit(path).result_
    missed = "missed-region" in [alarm.kind for alarm in result.alarms]
    return [result.log_partition - exact, result.std_error, result.converged, missed]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["coverage", "lattices", "cliques"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--file", help="keeps measurements: an interrupted run goes on from there")
    arguments = parser.parse_args()
    parts = {"coverage": coverage, "lattices": lattices, "cliques": cliques}
    parts[arguments.what](arguments.seeds, Kept(arguments.file))


if __name__ == "__main__":
    main()
