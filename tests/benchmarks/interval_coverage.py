"""Coverage of the 95 % intervals on enumerable RBMs, one row for each problem and estimator.

    python tests/benchmarks/interval_coverage.py [--seeds 200] [--jobs 2] [--estimators AIS,RTS] [--problems digits]

Prints Markdown. Problems on NLTCS and MNIST need the reference data (see SKLPF_DATA) and are left out without it.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import binom
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import BernoulliRBM as ScikitRBM

from sklpf import AIS, RTS, Exact, ParallelTempering
from sklpf.models.rbm._path import RBMPath
from sklpf.testing import find_shared_data


def trained(data, n_components, n_iter, learning_rate, scale=1.0):
    """The path of an RBM that scikit-learn trained on binary data, all parameters times `scale`."""
    rbm = ScikitRBM(n_components, learning_rate=learning_rate, batch_size=100, n_iter=n_iter, random_state=0)
    rbm.fit(data.astype(float))
    mean = (data.sum(axis=0) + 1) / (len(data) + 2)
    parameters = (rbm.components_, rbm.intercept_visible_, rbm.intercept_hidden_)
    return RBMPath(*(scale * parameter for parameter in parameters), mean)


def binary(name):
    data = np.load(find_shared_data(f"binary/{name}.npz"), allow_pickle=False)
    return np.unpackbits(data["train"], axis=1)[:, : int(data["n_features"])]


def stored(name):
    data = np.load(find_shared_data(f"rbm/{name}.npz"), allow_pickle=False)
    train = binary("mnist")
    mean = (train.sum(axis=0) + 1) / (len(train) + 2)
    return RBMPath(data["components"], data["intercept_visible"], data["intercept_hidden"], mean)


def digits():
    return (load_digits().data > 7).astype(np.uint8)


PROBLEMS = {
    "digits, 12 hidden": lambda: trained(digits(), 12, 30, 0.05),
    "digits, 20 hidden": lambda: trained(digits(), 20, 300, 0.1),
    "digits, 20 hidden, parameters x 1.5": lambda: trained(digits(), 20, 300, 0.1, scale=1.5),
    "NLTCS, 16 visible, 40 hidden": lambda: trained(binary("nltcs"), 40, 20, 0.1),
    "NLTCS, 16 visible, 40 hidden, parameters x 2": lambda: trained(binary("nltcs"), 40, 20, 0.1, scale=2.0),
    "MNIST, 10 hidden (mnist_h10)": lambda: stored("mnist_h10"),
    "MNIST, 15 hidden (mnist_toy15)": lambda: stored("mnist_toy15"),
}
ESTIMATORS = {
    "AIS": lambda seed: AIS(random_state=seed),
    "RTS": lambda seed: RTS(n_sweeps=2000, random_state=seed),
    "ParallelTempering": lambda seed: ParallelTempering(n_sweeps=2048, random_state=seed),
}


def run(path, make, seeds):
    rows = []
    for seed in seeds:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            started = time.process_time()
            estimator = make(seed).fit(path)
        low, high = estimator.log_partition_interval_
        rows.append(
            (
                estimator.log_partition_,
                estimator.log_partition_std_error_,
                low,
                high,
                estimator.converged_,
                time.process_time() - started,
            )
        )
    return rows


def measure(path, make, n_seeds, n_jobs):
    batches = np.array_split(np.arange(n_seeds), 4 * n_jobs)
    results = Parallel(n_jobs=n_jobs)(delayed(run)(path, make, batch.tolist()) for batch in batches if len(batch))
    return np.array([row for batch in results for row in batch], dtype=float)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--estimators", default=",".join(ESTIMATORS))
    parser.add_argument("--problems", default="")
    args = parser.parse_args()
    print(f"{args.seeds} seeds; coverage of nominal 95 % intervals, of converged runs and of all runs\n")
    print("| problem | log Z | estimator | bias | RMSE | mean SE | converged | coverage | of all | CPU s |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    pooled = {}
    for problem, make_path in PROBLEMS.items():
        if args.problems and args.problems not in problem:
            continue
        try:
            path = make_path()
        except TypeError:  # no reference data
            continue
        exact = Exact(n_jobs=args.jobs).fit(path).log_partition_
        for name in args.estimators.split(","):
            value, error, low, high, converged, seconds = measure(path, ESTIMATORS[name], args.seeds, args.jobs).T
            covered, converged = (low <= exact) & (exact <= high), converged.astype(bool)
            pooled.setdefault(name, []).append((covered[converged].sum(), converged.sum(), covered.sum(), len(covered)))
            share = f"{100 * covered[converged].mean():.1f} %" if converged.any() else "-"
            print(
                f"| {problem} | {exact:.3f} | {name} | {np.mean(value - exact):+.4f} | "
                f"{np.sqrt(np.mean((value - exact) ** 2)):.4f} | {error.mean():.4f} | {converged.mean():.1%} | "
                f"{share} | {covered.mean():.1%} | {np.median(seconds):.2f} |",
                flush=True,
            )
    print()
    for name, counts in pooled.items():
        hits, runs, all_hits, all_runs = np.sum(counts, axis=0)
        low, high = binom.ppf([0.025, 0.975], runs, 0.95) / runs
        print(
            f"{name}: pooled coverage of converged runs {hits / runs:.1%} ({hits} of {runs}; an honest interval would "
            f"give {low:.1%} to {high:.1%}), of all runs {all_hits / all_runs:.1%}\n"
        )


if __name__ == "__main__":
    main()
