"""Do short runs on small RBMs cover, and how many that are right are flagged?

    python tests/benchmarks/short_runs.py [--seeds 4] [--models 40] [--results short_runs.jsonl]
    [--first 0] [--rare] [--report]

Every RBM is trained here, on data that are drawn here or on scikit-learn's digits, and has at most
14 hidden units, so that its log Z is known. With --rare each has one unit more, a narrow mode that
holds 1, 2, 5 or 10 % of the mass and that the base knows nothing of. The samplers run with their
defaults and with fewer sweeps. Every run is appended to the results file as it ends, and an
interrupted benchmark goes on where it stopped. Prints Markdown.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import time
import warnings

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import BernoulliRBM as OneStepRBM

from sklpf import RTS, BernoulliRBM, Exact, ParallelTempering
from sklpf.partition import SAMS, WangLandau

SETTINGS = {
    "ParallelTempering": ParallelTempering,
    "ParallelTempering, 512 sweeps": functools.partial(ParallelTempering, n_sweeps=512),
    "ParallelTempering, 128 sweeps": functools.partial(ParallelTempering, n_sweeps=128),
    "RTS": RTS,
    "RTS, 1000 sweeps": functools.partial(RTS, n_sweeps=1000),
    "SAMS, 1000 sweeps": functools.partial(SAMS, n_sweeps=1000),
    "WangLandau, 1000 sweeps": functools.partial(WangLandau, n_sweeps=1000),
}


# ---- data
def prototypes(rng):
    """Patterns with noise, some of them rare."""
    n_units = int(rng.integers(24, 65))
    n_patterns = int(rng.integers(3, 9))
    patterns = rng.integers(2, size=(n_patterns, n_units))
    shares = rng.dirichlet(np.full(n_patterns, 0.7))
    rows = patterns[rng.choice(n_patterns, size=800, p=shares)]
    return rows ^ (rng.random(rows.shape) < rng.uniform(0.02, 0.12))


def bars(rng):
    """Bars in both directions on a square."""
    side = int(rng.integers(5, 8))
    on = rng.random((800, 2, side)) < rng.uniform(0.1, 0.3)
    return (on[:, 0, :, np.newaxis] | on[:, 1, np.newaxis]).reshape(800, -1)


def ratings(rng):
    """What users like: few factors, and films of unequal popularity."""
    n_films = int(rng.integers(30, 80))
    tastes = rng.normal(size=(800, 4)) @ rng.normal(size=(4, n_films))
    return rng.random(tastes.shape) < 1 / (1 + np.exp(-1.5 * tastes + rng.exponential(2, n_films)))


def digits(rng):
    """Handwritten digits of some classes."""
    X, y = load_digits(return_X_y=True)
    classes = rng.choice(10, size=int(rng.integers(2, 10)), replace=False)
    return X[np.isin(y, classes)] > rng.uniform(3, 11)


def spins(rng):
    """A chain of units that like their neighbours."""
    n_units = int(rng.integers(20, 60))
    same = rng.random((800, n_units)) < rng.uniform(0.75, 0.97)
    return (np.cumsum(~same, axis=1) + rng.integers(2, size=(800, 1))) % 2


DATA = (prototypes, bars, ratings, digits, spins)


@functools.lru_cache(maxsize=1)
def trained(model: int):
    """A path and its log Z; every model has data, size, training and sharpness of its own."""
    rng = np.random.default_rng([2026, model])
    X = np.asarray(DATA[model % len(DATA)](rng), dtype=float)
    options = {
        "n_components": int(rng.integers(4, 15)),
        "learning_rate": float(np.exp(rng.uniform(np.log(0.02), np.log(0.3)))),
        "batch_size": int(rng.choice([10, 50])),
        "n_iter": int(rng.choice([20, 60, 150])),
        "random_state": model,
    }
    kind = OneStepRBM if rng.random() < 0.5 else BernoulliRBM
    rbm = kind(**options).fit(X)
    sharpness = rng.choice([1.0, 1.0, 1.5])
    parameters = (rbm.components_, rbm.intercept_visible_, rbm.intercept_hidden_)
    mean = (X.sum(axis=0) + 1) / (len(X) + 2)
    path = BernoulliRBM.from_parameters(*(sharpness * array for array in parameters), mean).path()
    return path, Exact().fit(path).log_partition_


@functools.lru_cache(maxsize=1)
def with_rare_mode(model: int):
    """The same with one hidden unit more, whose pattern is random and holds a small share."""
    rng = np.random.default_rng([7, model])
    path, log_partition = trained(model)
    share = (0.01, 0.02, 0.05, 0.1)[model % 4]
    weights = 5 * (2.0 * rng.integers(2, size=path.components.shape[1]) - 1)
    visible, hidden = path.intercept_visible, path.intercept_hidden
    shifted = BernoulliRBM.from_parameters(path.components, visible + weights, hidden).path()
    bias = np.log(share / (1 - share)) + log_partition - Exact().fit(shifted).log_partition_
    mean = np.clip(1 / (1 + np.exp(-path.logits[0])), 0.01, 0.99)
    path = BernoulliRBM.from_parameters(
        np.vstack([path.components, weights]), visible, np.r_[hidden, bias], mean
    ).path()
    return path, Exact().fit(path).log_partition_


def run(model: int, setting: str, seed: int, rare: bool) -> dict:
    path, log_partition = with_rare_mode(model) if rare else trained(model)
    started = time.process_time()
    estimator = SETTINGS[setting](random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(path)
    low, high = estimator.log_partition_interval_
    result = estimator.result_
    return {
        "model": model,
        "setting": setting,
        "seed": seed,
        "off": estimator.log_partition_ - log_partition,
        "error": estimator.log_partition_std_error_,
        "covers": bool(low <= log_partition <= high),
        "converged": bool(estimator.converged_),
        "kinds": [alarm.kind for alarm in result.alarms],
        "seconds": time.process_time() - started,
    } | diagnostics(result)


def diagnostics(result):
    return {k: np.asarray(v).tolist() for k, v in result.diagnostics.items() if np.size(v) <= 12}


def read(path: str) -> list[dict]:
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def execute(args) -> None:
    done = {(row["model"], row["setting"], row["seed"]) for row in read(args.results)}
    jobs = [
        (model, setting, seed)
        for model in range(args.first, args.first + args.models)
        for setting in args.settings or SETTINGS
        for seed in range(args.seeds)
    ]
    with open(args.results, "a") as file:
        for job in jobs:
            if job not in done:
                file.write(json.dumps(run(*job, args.rare), default=float) + "\n")
                file.flush()


def report(rows: list[dict]) -> None:
    print("| setting | runs | converged | cover | > 3 SE | > 5 SE | right but flagged |")
    print("|" + "---|" * 7)
    for setting in SETTINGS:
        found = [row for row in rows if row["setting"] == setting]
        if not found:
            continue
        converged = [row for row in found if row["converged"]]
        far = np.array([abs(row["off"]) / row["error"] for row in converged])
        flagged = sum(row["covers"] and not row["converged"] for row in found)
        print(
            f"| {setting} | {len(found)} | {len(converged)} |"
            f" {sum(row['covers'] for row in converged)} | {np.sum(far > 3)} | {np.sum(far > 5)} |"
            f" {flagged} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--models", type=int, default=40)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--rare", action="store_true")
    parser.add_argument("--settings", nargs="*", default=[])
    parser.add_argument("--results", default="short_runs.jsonl")
    parser.add_argument("--report", action="store_true")
    args = parser.parse_args()
    if not args.report:
        execute(args)
    report(read(args.results))


if __name__ == "__main__":
    main()
