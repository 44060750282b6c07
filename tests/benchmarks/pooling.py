"""Coverage of pools of independent runs: doc/benchmarks/pooling.md.

python tests/benchmarks/pooling.py
"""

import argparse
import warnings

import numpy as np
from known_problems import make_rbm_problem

from sklpf import AIS, SMC, ParallelTempering
from sklpf.partition import PartitionResult, pool


def mixed(rng, n_runs, degrees, spread=0.0):
    """Runs of several estimators, whose errors are right but for a spread between them."""
    variances = rng.choice([0.01, 0.04, 0.25], size=n_runs)
    stated = np.sqrt(variances * rng.chisquare(degrees, size=n_runs) / degrees)
    values = rng.normal(scale=np.sqrt(variances + spread**2))
    names = variances.astype(str)  # an estimator for each
    return [PartitionResult(n, v, s, degrees) for n, v, s in zip(names, values, stated)]


def alike(rng, n_runs, degrees, spread=0.0):
    """The same, of one estimator with one number of sweeps."""
    stated = 0.2 * np.sqrt(rng.chisquare(degrees, size=n_runs) / degrees)
    values = rng.normal(scale=np.hypot(0.2, spread), size=n_runs)
    return [PartitionResult("A", v, s, degrees) for v, s in zip(values, stated)]


def row(name, pools, exact):
    """A line of the table."""
    trusted = np.array([each.converged for each in pools])
    values = np.array([each.log_partition for each in pools]) - exact
    errors = np.array([each.std_error for each in pools])
    covers = np.array([low <= exact <= high for low, high in (each.interval() for each in pools)])
    disagree = sum(any(a.kind == "runs-disagree" for a in each.alarms) for each in pools)
    kept = values[trusted] if trusted.any() else values
    print(
        f"| {name} | {len(pools)} | {disagree} | {trusted.sum()} | {kept.mean():+.4f} |"
        f" {np.sqrt(np.mean(kept**2)):.4f} | {np.median(errors):.4f} |"
        f" {covers[trusted].sum()} of {trusted.sum()} | {covers.sum()} of {len(pools)} |",
        flush=True,
    )


def main(n_studies):
    """All lines."""
    print("| runs | studies | disagree | trusted | bias | RMSE | median SE | covers | all |")
    print("|---|---|---|---|---|---|---|---|---|")
    rng = np.random.default_rng(0)
    for n_runs in (2, 4, 16):
        for degrees in (4, 9):
            for make in (alike, mixed):
                for spread in (0.0, 0.2, 1.0):
                    pools = [pool(make(rng, n_runs, degrees, spread)) for _ in range(n_studies)]
                    name = f"{n_runs} {make.__name__}, {degrees} degrees, spread {spread}"
                    row(name, pools, 0.0)
    problem = make_rbm_problem("digits")
    kinds = {
        "4 AIS": [AIS(100, 60)] * 4,
        "4 ParallelTempering": [ParallelTempering(n_temperatures=10, n_sweeps=256)] * 4,
        "4 SMC": [SMC(n_particles=30)] * 4,
        "AIS, SMC, ParallelTempering": [
            AIS(100, 100),
            SMC(n_particles=30),
            ParallelTempering(n_temperatures=10, n_sweeps=512),
        ],
    }
    for name, estimators in kinds.items():
        pools = []
        for study in range(n_studies):
            results = []
            for i, estimator in enumerate(estimators):
                estimator = estimator.set_params(random_state=1000 * study + i)
                results.append(estimator.fit(problem.path).result_)
            pools.append(pool(results))
        row(name, pools, problem.log_partition)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--studies", type=int, default=400)
    warnings.simplefilter("ignore")
    main(parser.parse_args().studies)
