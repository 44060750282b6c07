"""Levels along training beside levels in inverse temperature, for RBMs of clustered data.

    python tests/benchmarks/trajectory.py RESULTS [--kinds clusters ...] [--seeds 10] [--first 0]
    [--estimators ParallelTempering AIS UntilTrusted] [--report]

Every RBM is trained here, with averages of the weights ("last": without), 100 chains and 20 hidden
units ("100 units": 100, whose log Z is not known), and keeps its trajectory. The data:

- clusters: four random patterns of 100 units, 10 % of which are flipped.
- rare cluster: three of 200 units, one of them with 2 % of the rows, and 5 % are flipped.
- populations: alleles of 300 sites in three populations that have drifted apart (Balding & Nichols
  1995, F = .3).
- phases: half of the rows are without structure, the others in four clusters.
- digits 0 and 1: of scikit-learn, 8 by 8.
- mushrooms, mnist: of the reference data (`SKLPF_DATA`), 2000 and 5000 rows.
- added unit: of "clusters", with one hidden unit more after training, of weights +-3 in a random
  pattern and with 10 % of the mass, at which the trajectory ends in a straight line.

Both paths get the same sweeps: `ParallelTempering` 10 ladders of 16 levels and 2048 sweeps, `AIS`
100 chains and 1000 levels. `UntilTrusted` has the estimators that it takes for models of more than
20 units, begins none after 30 seconds, and is given the models on which one of these two was
flagged in temperature; "both" tries each of its estimators in temperature, then along training.
Every run is appended to the results as it ends, and an interrupted benchmark goes on where it
stopped. Prints Markdown.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import time
import warnings

import numpy as np
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from sklpf import AIS, SMC, BernoulliRBM, Exact, ParallelTempering
from sklpf.models import RBMPath, RBMTrajectoryPath
from sklpf.partition import UntilTrusted
from sklpf.testing import find_shared_data

ESTIMATORS = {
    "ParallelTempering": ParallelTempering(n_temperatures=16, n_sweeps=2048),
    "AIS": AIS(),
    "UntilTrusted": UntilTrusted(
        [
            ParallelTempering(),
            SMC(n_temperatures=1000),
            ParallelTempering(n_sweeps=16_384, tol=0.1),
            ParallelTempering(n_sweeps=65_536, tol=0.1),
        ],
        max_seconds=30,
    ),
}
LEVELS = ("temperature", "training")
SETTINGS = {"average": True, "n_chains": 100, "batch_size": 50, "track_trajectory": True}


# ---- data
def clusters(rng, n_features=100, shares=(0.25,) * 4, flipped=0.1):
    patterns = rng.integers(2, size=(len(shares), n_features))
    rows = patterns[rng.choice(len(shares), size=2000, p=shares)]
    return rows ^ (rng.random(rows.shape) < flipped)


def rare_cluster(rng):
    return clusters(rng, 200, (0.6, 0.38, 0.02), 0.05)


def populations(rng, drift=0.3):
    ancestral = rng.uniform(0.2, 0.8, size=300)
    odds = (1 - drift) / drift
    frequencies = rng.beta(ancestral * odds, (1 - ancestral) * odds, size=(3, 300))
    rows = frequencies[rng.integers(3, size=2000)]
    return rng.random(rows.shape) < rows


def phases(rng):
    rows = clusters(rng)
    rows[::2] = rng.integers(2, size=rows[::2].shape)
    return rows


def digits(rng):
    X, y = load_digits(return_X_y=True)
    return X[y < 2] > 7


def reference(name, n_rows, rng):
    file = find_shared_data(f"binary/{name}.npz")
    with np.load(file, allow_pickle=False) as data:
        rows = np.unpackbits(data["train"], axis=1)[:, : int(data["n_features"])]
    return rows[rng.permutation(len(rows))[:n_rows]]


mushrooms = functools.partial(reference, "mushrooms", 2000)
mnist = functools.partial(reference, "mnist", 5000)
# data, hidden units, learning rate, passes, other settings
KINDS = {
    "clusters": (clusters, 20, 0.05, 100, {}),
    "clusters, last": (clusters, 20, 0.05, 100, {"average": False}),
    "rare cluster": (rare_cluster, 20, 0.05, 100, {}),
    "populations": (populations, 20, 0.1, 200, {}),
    "phases": (phases, 20, 0.05, 100, {}),
    "digits 0 and 1": (digits, 20, 0.05, 300, {}),
    "mushrooms": (mushrooms, 20, 0.1, 200, {}),
    "mushrooms, last": (mushrooms, 20, 0.1, 200, {"average": False}),
    "mushrooms, 100 units": (mushrooms, 100, 0.05, 200, {}),
    "mnist": (mnist, 20, 0.1, 60, {}),
    "mnist, 100 units": (mnist, 100, 0.05, 100, {}),
    "added unit": (clusters, 19, 0.05, 100, {}),
}


# ---- models
@functools.lru_cache(maxsize=1)
def problem(kind: str, seed: int):
    """Paths in temperature and along training, log Z (NaN if not known), number of checkpoints."""
    make, n_hidden, rate, n_iter, settings = KINDS[kind]
    X = np.asarray(make(np.random.default_rng([90, seed])), dtype=float)
    rbm = BernoulliRBM(
        n_hidden, learning_rate=rate, n_iter=n_iter, random_state=seed, **SETTINGS | settings
    ).fit(X)
    target, path = rbm.path(trajectory=False), rbm.path()
    if kind == "added unit":
        target, path = with_unit(rbm, np.random.default_rng([91, seed]))
    known = target.log2_states <= 20
    truth = Exact().fit(target).log_partition_ if known else np.nan
    return target, path, truth, len(path.betas) - 2


def with_unit(rbm, rng, share=0.1):
    """Both paths to a model with one hidden unit more."""
    visible, mean = rbm.intercept_visible_, rbm.visible_mean_
    opening = 6.0 * rng.integers(2, size=len(visible)) - 3
    outside, within = (
        Exact()
        .fit(RBMPath(rbm.components_, visible + shift, rbm.intercept_hidden_, mean))
        .log_partition_
        for shift in (0.0, opening)
    )
    bias = np.log(share / (1 - share)) + outside - within
    target = RBMPath(
        np.vstack([rbm.components_, opening]),
        visible,
        np.append(rbm.intercept_hidden_, bias),
        np.clip((1 - share) * mean + share * expit(visible + opening), 0.001, 0.999),
        starts=rbm._some_rows,
    )
    kept, betas = rbm._trajectory.to_path()
    trained = rbm.path(trajectory=False)
    last = np.zeros((1, *kept.shape[1:]))
    last[0, :-1, :-1], last[0, -1, :-1] = trained.components, trained.intercept_visible
    last[0, :-1, -1] = trained.intercept_hidden
    kept = np.insert(np.concatenate([kept, last]), -1, 0.0, axis=1)
    return target, RBMTrajectoryPath(target, kept, np.append(0.7 * betas, 0.7))


def run(kind: str, seed: int, levels: str, name: str) -> dict:
    in_temperature, path, truth, n_checkpoints = problem(kind, seed)
    path.cheaper_path = in_temperature if levels == "both" else None
    if levels == "temperature":
        path = in_temperature
    for each in (in_temperature, path):
        each.base_is_ours = True  # so that a second try is made, as for a model of our own
    estimator = clone(ESTIMATORS[name]).set_params(random_state=seed)
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(path)
    result = estimator.result_
    low, high = estimator.log_partition_interval_
    row = {
        "kind": kind,
        "seed": seed,
        "levels": levels,
        "estimator": name,
        "checkpoints": n_checkpoints,
        "log Z": estimator.log_partition_,
        "off": estimator.log_partition_ - truth,
        "error": result.std_error,
        "covers": bool(low <= truth <= high),
        "alarms": [alarm.kind for alarm in result.alarms],
        "method": result.method,
        "sweeps": result.n_sweeps,
        "seconds": time.process_time() - started,
    }
    for one in ("round_trips", "effective_sample_size", "barrier"):
        if one in result.diagnostics:
            row[one] = float(np.mean(result.diagnostics[one]))
    if name == "UntilTrusted":
        row["attempts"] = [each.method for each in estimator.attempts_]
    return row


# ---- results
def read(path: str) -> list[dict]:
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def execute(args) -> None:
    names = ("kind", "seed", "levels", "estimator")
    before = read(args.results)
    done = {tuple(row[name] for name in names) for row in before}
    flagged = {
        (row["kind"], row["seed"])
        for row in before
        if row["levels"] == "temperature" and row["alarms"]
    }
    with open(args.results, "a") as file:
        for seed in range(args.first, args.first + args.seeds):
            for kind in args.kinds:
                for name in args.estimators:
                    if name == "UntilTrusted" and (kind, seed) not in flagged:
                        continue
                    for levels in (*LEVELS, "both") if name == "UntilTrusted" else LEVELS:
                        job = (kind, seed, levels, name)
                        if job not in done:
                            file.write(json.dumps(run(*job), default=float) + "\n")
                            file.flush()


def report(rows: list[dict]) -> None:
    """Where two numbers stand in a cell, the first is in temperature and the second along
    training.
    """
    print(
        "| data | estimator | models | converged | of these cover | median SE |"
        " round trips or effective sample size | seconds |"
    )
    print("|" + "---|" * 8)
    groups: dict = {}
    for row in rows:
        groups.setdefault((row["kind"], row["estimator"]), []).append(row)
    for (kind, name), found in groups.items():
        both = [[row for row in found if row["levels"] == one] for one in LEVELS]
        trusted = [[row for row in side if not row["alarms"]] for side in both]
        cover = [sum(row["covers"] for row in side) for side in trusted]
        far = sum(abs(row["off"]) > 3 * row["error"] for side in trusted for row in side)
        cells = [
            " ".join(f"{len(side)}" for side in trusted),
            "unknown" if np.isnan(found[0]["off"]) else " ".join(map(str, cover)),
        ]
        quality = "effective_sample_size" if name == "AIS" else "round_trips"
        for column in ("error", quality, "seconds"):
            middle = [np.nanmedian([row.get(column, np.nan) for row in side]) for side in both]
            cells.append(" ".join(f"{value:.2g}" for value in middle))
        print(f"| {kind} | {name} | {len(both[1])} | {' | '.join(cells)} |")
        if far:
            print(f"beyond 3 standard errors: {far}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--estimators", nargs="*", default=list(ESTIMATORS)[:2])
    parser.add_argument("--report", action="store_true")
    args = parser.parse_args()
    if not args.report:
        execute(args)
    report([row for row in read(args.results) if row["estimator"] in args.estimators])


if __name__ == "__main__":
    main()
