"""Do samplers say it when a region of an RBM that holds much of its mass was missed?

    python tests/benchmarks/missing_regions.py RESULTS [--models 24] [--first 0]
    [--shares 0.05 0.1 0.2 0.4] [--kinds added plain] [--estimators AIS ...] [--report]

Every RBM is trained here, on data that are drawn here or on scikit-learn's digits, and has at most
20 hidden units with those that are added, so that its log Z is known.

- added: one hidden unit more, with weights of +-3 in a random pattern, and the bias that gives its
  states the share; the base's mean is that of the mixture.
- behind decoys: ten units more have hardly any mass, but rule random starts, so that none of these
  leads to the pattern; a row of the pattern is among those that training has left.
- rich: one hidden unit more opens a region that has the share, and ten further units stay free
  there: each undoes or turns round what the first does to a few visible units.
- holes: four to eight units as in "added", each with a share of 2 to 3 %.
- plain: the RBM as it is.

The whole procedure is measured: a run that has missed a region is made again from a base that
covers it. Every run is appended to the results as it ends, and an interrupted benchmark goes on
where it stopped. Prints Markdown. A run is wrong if it is converged and log Z is beyond three
standard errors, and badly wrong beyond five and .02 nats.
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
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

import sklpf
from sklpf import BernoulliRBM, Exact
from sklpf.models import RBMPath

KINDS = ("added", "behind decoys", "rich", "holes", "plain")
ESTIMATORS = ("ParallelTempering", "AIS", "SMC", "RTS", "SAMS", "WangLandau", "MarkovMixture")


# ---- data
def prototypes(rng):
    n_units = int(rng.integers(60, 300))
    n_patterns = int(rng.integers(3, 12))
    patterns = rng.integers(2, size=(n_patterns, n_units))
    rows = patterns[rng.choice(n_patterns, size=1000, p=rng.dirichlet(np.ones(n_patterns)))]
    return rows ^ (rng.random(rows.shape) < rng.uniform(0.02, 0.12))


def bars(rng):
    side = int(rng.integers(8, 17))
    on = rng.random((1000, 2, side)) < rng.uniform(0.1, 0.3)
    return (on[:, 0, :, np.newaxis] | on[:, 1, np.newaxis]).reshape(1000, -1)


def ratings(rng):
    n_items = int(rng.integers(60, 250))
    tastes = rng.normal(size=(1000, 4)) @ rng.normal(size=(4, n_items))
    return rng.random(tastes.shape) < expit(1.5 * tastes - rng.exponential(2, n_items))


def digits(rng):
    X, y = load_digits(return_X_y=True)
    classes = rng.choice(10, size=int(rng.integers(2, 10)), replace=False)
    images = X[np.isin(y, classes)].reshape(-1, 8, 8)
    if rng.random() < 0.5:
        images = images.repeat(2, axis=1).repeat(2, axis=2)
    return images.reshape(len(images), -1) > rng.uniform(3, 11)


def spins(rng):
    n_units = int(rng.integers(60, 250))
    same = rng.random((1000, n_units)) < rng.uniform(0.75, 0.97)
    return (np.cumsum(~same, axis=1) + rng.integers(2, size=(1000, 1))) % 2


DATA = (prototypes, bars, ratings, digits, spins)


N_FREE = 10  # units of a rich region
MOST_UNITS = 20  # hidden ones, which are enumerated


@functools.lru_cache(maxsize=1)
def trained(model: int, most: int = 14):
    """Parameters of an RBM of at most so many hidden units, its log Z, its base means and some
    rows.
    """
    rng = np.random.default_rng([77, model])
    X = np.asarray(DATA[model % len(DATA)](rng), dtype=float)
    rbm = BernoulliRBM(
        int(rng.integers(5, most + 1)),
        learning_rate=float(np.exp(rng.uniform(np.log(0.02), np.log(0.2)))),
        batch_size=int(rng.choice([10, 50])),
        n_iter=int(rng.choice([20, 60])),
        random_state=model,
    ).fit(X)
    parameters = rbm.components_, rbm.intercept_visible_, rbm.intercept_hidden_
    return *parameters, Exact().fit(rbm).log_partition_, rbm.visible_mean_, X[:50] > 0.5


@functools.lru_cache(maxsize=1)
def problem(model: int, kind: str, share: float):
    """A path and its log Z."""
    if kind == "rich":
        return with_a_rich_region(model, share)
    if kind == "holes":
        return with_holes(model)
    components, visible, hidden, log_partition, mean, rows = trained(model)
    rng = np.random.default_rng([78, model])
    if kind == "plain":
        return RBMPath(components, visible, hidden, mean, starts=rows), log_partition
    n_decoys = 10 if kind == "behind decoys" else 0
    patterns = 2.0 * rng.integers(2, size=(1 + n_decoys, len(visible))) - 1
    weights = np.vstack([3 * patterns[:1], 30 * patterns[1:]])
    log_odds = np.r_[np.log(share / (1 - share)), np.full(n_decoys, -12.0)]
    alone = (RBMPath(components, visible + shift, hidden, mean) for shift in weights)
    biases = log_odds + log_partition - [Exact().fit(path).log_partition_ for path in alone]
    mean = (1 - share) * mean + share * expit(visible + weights[0])
    if n_decoys:
        rows = np.concatenate([rows, patterns[:1] > 0])
    path = RBMPath(
        np.vstack([components, weights]),
        visible,
        np.r_[hidden, biases],
        np.clip(mean, 0.001, 0.999),
        starts=rows,
    )
    return path, log_partition + np.log1p(np.exp(log_odds).sum())


def with_holes(model: int):
    components, visible, hidden, log_partition, mean, rows = trained(model, 12)
    rng = np.random.default_rng([79, model])
    n_holes = int(rng.integers(4, 9))
    shares = rng.uniform(0.02, 0.03, size=n_holes)
    weights = 6.0 * rng.integers(2, size=(n_holes, len(visible))) - 3
    alone = (RBMPath(components, visible + shift, hidden, mean) for shift in weights)
    log_masses = np.array([Exact().fit(path).log_partition_ for path in alone])
    biases = np.log(shares / (1 - shares.sum())) + log_partition - log_masses
    mean = (1 - shares.sum()) * mean + shares @ expit(visible + weights)
    path = RBMPath(
        np.vstack([components, weights]),
        visible,
        np.r_[hidden, biases],
        np.clip(mean, 0.001, 0.999),
        starts=rows,
    )
    return path, Exact().fit(path).log_partition_


def with_a_rich_region(model: int, share: float):
    components, visible, hidden, _, mean, rows = trained(model, MOST_UNITS - 1 - N_FREE)
    rng = np.random.default_rng([80, model])
    opening = 6.0 * rng.integers(2, size=len(visible)) - 3
    inside = visible + opening + 0.5 * components.sum(axis=0)

    # Each free unit undoes or turns round what the opening one does to a few visible units, and its
    # bias is such that it is on about half the time.
    free = np.zeros((N_FREE, len(visible)))
    strength = rng.uniform(0.7, 2)
    for unit, own in zip(free, np.array_split(rng.permutation(len(visible)), N_FREE)):
        own = own[: rng.integers(3, 9)]
        unit[own] = -strength * opening[own]
    log_odds = np.sum(np.logaddexp(0, inside + free) - np.logaddexp(0, inside), axis=1)
    biases = rng.normal(scale=0.5, size=N_FREE) - log_odds

    weights = np.vstack([components, free])
    hidden = np.r_[hidden, biases]
    outside, within = (
        Exact().fit(RBMPath(weights, visible + shift, hidden, mean)).log_partition_
        for shift in (0.0, opening)
    )
    bias = np.log(share / (1 - share)) + outside - within
    mean = (1 - share) * mean + share * expit(inside)
    path = RBMPath(
        np.vstack([weights, opening]),
        visible,
        np.r_[hidden, bias],
        np.clip(mean, 0.001, 0.999),
        starts=rows,
    )
    return path, outside - np.log1p(-share)


def run(model: int, kind: str, share: float, name: str, seed: int) -> dict:
    path, log_partition = problem(model, kind, share)
    path.base_is_ours = True  # so that a second try is made, as for a model of our own
    estimator = getattr(sklpf.partition, name)(random_state=seed)
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(path)
    low, high = estimator.log_partition_interval_
    return {
        "model": model,
        "kind": kind,
        "share": share,
        "estimator": name,
        "seed": seed,
        "units": path.components.shape,
        "off": estimator.log_partition_ - log_partition,
        "error": estimator.log_partition_std_error_,
        "covers": bool(low <= log_partition <= high),
        "first try": estimator.result_.diagnostics.get("first_try"),
        "alarms": [alarm.kind for alarm in estimator.result_.alarms],
        "seconds": time.process_time() - started,
    }


def read(path: str) -> list[dict]:
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def execute(args) -> None:
    names = ("model", "kind", "share", "estimator", "seed")
    done = {tuple(row[name] for name in names) for row in read(args.results)}
    with open(args.results, "a") as file:
        for model in range(args.first, args.first + args.models):
            for kind in args.kinds:
                for share in [0.0] if kind in ("plain", "holes") else args.shares:
                    for name in args.estimators:
                        job = (model, kind, share, name, args.seed)
                        if job not in done:
                            file.write(json.dumps(run(*job), default=float) + "\n")
                            file.flush()


def report(rows: list[dict]) -> None:
    print(
        "| kind | share | estimator | runs | second tries | and then converged | converged |"
        " cover | beyond 3 SE | beyond 5 SE and .02 nats | right but flagged |"
    )
    print("|" + "---|" * 11)
    groups: dict = {}
    for row in rows:
        for share in (row["share"], "all"):
            for name in (row["estimator"], "all"):
                groups.setdefault((row["kind"], share, name), []).append(row)
    for key, found in sorted(groups.items(), key=str):
        second = [row for row in found if row["first try"] is not None]
        converged = [row for row in found if not row["alarms"]]
        n_second = sum(not row["alarms"] for row in second)
        far = sum(abs(row["off"]) > 3 * row["error"] for row in converged)
        badly = sum(abs(row["off"]) > max(5 * row["error"], 0.02) for row in converged)
        cover = sum(row["covers"] for row in converged)
        flagged = sum(row["covers"] and bool(row["alarms"]) for row in found)
        print(
            f"| {' | '.join(map(str, key))} | {len(found)} | {len(second)} | {n_second} |"
            f" {len(converged)} | {cover} | {far} | {badly} | {flagged} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results")
    parser.add_argument("--models", type=int, default=24)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shares", nargs="*", type=float, default=[0.05, 0.1, 0.2, 0.4])
    parser.add_argument("--kinds", nargs="*", default=KINDS)
    parser.add_argument("--estimators", nargs="*", default=ESTIMATORS)
    parser.add_argument("--report", action="store_true")
    args = parser.parse_args()
    if not args.report:
        execute(args)
    report(read(args.results))


if __name__ == "__main__":
    main()
