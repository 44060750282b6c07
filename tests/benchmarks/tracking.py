"""log Z tracked while RBMs train: does the interval cover, how far off is it, what does it cost?

    python tests/benchmarks/tracking.py coverage [--seeds 200] [--first 0] [--folder tracking]
                                                 [--report] [--average]
    python tests/benchmarks/tracking.py cost [--average]
    python tests/benchmarks/tracking.py tempered [--seeds 2] [--average]

coverage: 16 hidden units on scikit-learn's digits, four learning rates, 40 passes; log Z of every
pass is enumerated. Each training has a seed of its own, the rates in turn: with one seed for four
rates their errors would be correlated. Every training is appended to a file in the folder: an
interrupted benchmark goes on where it stopped, --report prints the table of what is there. cost:
784 visible and 500 hidden units on binarised MNIST, processor time with and without. tempered: ten
groups of ten tempered chains (track_log_partition="rts") beside the particles, 25 passes. --average
follows averaged weights, BernoulliRBM(average=True).
"""

from __future__ import annotations

import argparse
import json
import os
import time
from types import SimpleNamespace

import numpy as np
from known_problems import enumerate_log_partition
from measure import binary_mnist, row, table
from scipy.stats import t as student_t
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from sklpf import BernoulliRBM
from sklpf._utils.random import seeded
from sklpf.models.rbm._learning import Trainer
from sklpf.models.rbm._monitor import Monitor, make_tracker
from sklpf.training import EarlyStopping, train
from sklpf.training._particles import TemperedChains

RATES = (0.01, 0.02, 0.05, 0.1)
N_PASSES, N_HIDDEN, N_GROUPS = 40, 16, 10
N_STEPS = 25  # between two passes
WIDE, WIDER = student_t.ppf([0.975, 0.995], N_GROUPS - 1)


# ---- coverage
def watched(learning_rate, seed, average):
    """What one training leaves: truth, tracked values, their groups and held-out log f of every
    pass.
    """
    X = (load_digits().data > 7).astype(np.float64)
    model = BernoulliRBM(
        N_HIDDEN,
        learning_rate=learning_rate,
        average=average,
        early_stopping=True,
        n_iter_no_change=10**6,
        random_state=seed,
    )
    rng = np.random.RandomState(seed)
    X, held_out = train_test_split(
        model._training_rows(X, reset=True), test_size=0.1, random_state=rng
    )
    model._begin(X, rng)
    trainer, monitor = Trainer(model, X, 10, rng), Monitor(model, held_out, len(X))
    truth: list[float] = []

    def enumerate_it(trainer, iteration):
        path = monitor.tracker.path
        truth.append(enumerate_log_partition(path, len(path.ladder) - 1))

    train(trainer, N_PASSES, callbacks=[monitor, enumerate_it])
    tracker, stopping = monitor.tracker, monitor.stopping
    fulls = {anchor.full.log_partition for anchor in tracker.anchors}
    values = np.array(
        [(estimate.log_partition, estimate.std_error) for estimate in tracker.estimates]
    )
    return {
        "rate": learning_rate,
        "seed": seed,
        "truth": truth,
        "tracked": values[:, 0].tolist(),
        "std_error": values[:, 1].tolist(),
        "groups": [estimate.groups.tolist() for estimate in tracker.estimates],
        "log_f": (np.array(stopping.scores) + values[:, 0]).tolist(),
        "full": [bool(estimate in fulls) for estimate in values[:, 0]],
        "anchors": len(tracker.anchors),
        "disagreements": sum(anchor.disagrees for anchor in tracker.anchors),
    }


def kept(run):
    """How far the kept pass lies below the best one so far, and its own error, both in nats, under
    early stopping.
    """
    tracker, passes = SimpleNamespace(estimates=[], path=None), iter(run["log_f"])
    stopping = EarlyStopping(tracker, lambda path: next(passes), lambda trainer: None, 1e-4, 5)
    for iteration, numbers in enumerate(zip(run["tracked"], run["std_error"], run["groups"]), 1):
        value, std_error, groups = numbers
        tracker.estimates.append(
            SimpleNamespace(log_partition=value, std_error=std_error, groups=np.array(groups))
        )
        if stopping(None, iteration):
            break
    exact = np.array(run["log_f"][:iteration]) - run["truth"][:iteration]
    chosen = stopping.best_iteration - 1
    return exact.max() - exact[chosen], run["std_error"][chosen], iteration


def report(runs):
    table(
        "learning rate",
        "trainings",
        "passes covered",
        "of full estimates",
        "of followed ones",
        "too low, too high",
        "99 % interval",
        "RMSE",
        "median SE",
        "full estimates",
        "kept",
    )
    for rates in [*((rate,) for rate in RATES), RATES]:
        some = [run for run in runs if run["rate"] in rates]
        if not some:
            continue
        errors = np.array([np.subtract(run["tracked"], run["truth"]) for run in some])
        std_errors = np.array([run["std_error"] for run in some])
        covered, full = np.abs(errors) <= WIDE * std_errors, np.array([run["full"] for run in some])
        low, high = (np.mean(~covered & (sign * errors > 0)) for sign in (-1, 1))
        by_training = covered.mean(axis=1)
        half = student_t.ppf(0.995, len(some) - 1) * by_training.std(ddof=1) / np.sqrt(len(some))
        below = [kept(run) for run in some]
        good = np.mean([gap <= max(0.1, 2 * std_error) for gap, std_error, _ in below])
        within = np.mean([gap <= 0.1 for gap, _, _ in below])
        row(
            ", ".join(map(str, rates)),
            len(some),
            f"{by_training.mean():.1%} ({by_training.mean() - half:.1%} to"
            f" {by_training.mean() + half:.1%})",
            *(f"{covered[chosen].mean():.1%} of {chosen.sum()}" for chosen in (full, ~full)),
            f"{low:.1%}, {high:.1%}",
            f"{(np.abs(errors) <= WIDER * std_errors).mean():.1%}",
            f"{np.sqrt(np.mean(errors**2)):.3f}",
            f"{np.median(std_errors):.3f}",
            f"{np.mean([run['anchors'] for run in some]):.1f},"
            f" {sum(run['disagreements'] for run in some)} disagree",
            f"{good:.0%} (within 0.1: {within:.0%}), after"
            f" {np.median([n for _, _, n in below]):.0f} passes",
        )


def coverage(seeds, first, folder, only_report, average):
    os.makedirs(folder, exist_ok=True)
    file = os.path.join(folder, "trainings.jsonl")
    runs = []
    if os.path.exists(file):
        with open(file, encoding="utf-8") as lines:
            runs = [json.loads(line) for line in lines]
    done = {run["seed"] for run in runs}
    for seed in range(first, first if only_report else first + seeds):
        if seed not in done:
            runs.append(watched(RATES[seed % len(RATES)], seed, average))
            with open(file, "a", encoding="utf-8") as out:
                out.write(json.dumps(runs[-1]) + "\n")
    report(runs)


# ---- tempered chains
class FewChains(TemperedChains):
    n_chains = 10


class Groups:
    """Independent groups of tempered chains, whose mean is log Z with a standard error."""

    def __init__(self, seed):
        self.groups = [FewChains(seeded(seed).of("group", g).seed) for g in range(N_GROUPS)]
        self.path = None

    def update(self, path):
        for group in self.groups:
            if self.path is None:
                group.start(path)
                continue
            start = group.path
            end = path.with_ladder(start.ladder)
            for step in range(1, N_STEPS):
                group.update(start.between(end, step / N_STEPS))
            group.update(end)
        self.path = path

    def estimate(self):
        values = np.array([group.estimate().log_partition for group in self.groups])
        return values.mean(), values.std(ddof=1) / np.sqrt(N_GROUPS)


def compared(learning_rate, seed, average):
    """Errors and standard errors after every pass (n_passes, 2), and seconds, by method."""
    X = (load_digits().data > 7).astype(np.float64)
    model = BernoulliRBM(N_HIDDEN, learning_rate=learning_rate, average=average, random_state=seed)
    rng = np.random.RandomState(seed)
    X = model._training_rows(X, reset=True)
    model._begin(X, rng)
    trainer = Trainer(model, X, 10, rng)
    particles = make_tracker(model, len(X))
    groups = Groups(seed + 6)
    found = {"particles": [], "rts": []}
    seconds = dict.fromkeys(found, 0.0)

    def follow(trainer, iteration):
        path = particles.path_of(trainer)
        truth = enumerate_log_partition(path, len(path.ladder) - 1)
        for name, tracker in (("particles", particles), ("rts", groups)):
            began = time.process_time()
            tracker.update(path)
            seconds[name] += time.process_time() - began
        value, std_error = groups.estimate()
        found["rts"].append((value - truth, std_error))
        last = particles.estimates[-1]
        found["particles"].append((last.log_partition - truth, last.std_error))

    train(trainer, 25, callbacks=[follow])
    return {name: np.array(values) for name, values in found.items()}, seconds


def tempered(seeds, average):
    table("learning rate", "method", "RMSE", "mean error", "mean SE", "passes covered", "seconds")
    for rate in RATES:
        runs = [compared(rate, seed, average) for seed in range(1, seeds + 1)]
        for name in ("particles", "rts"):
            errors, std_errors = np.concatenate([found[name] for found, _ in runs]).T
            row(
                rate,
                name,
                f"{np.sqrt(np.mean(errors**2)):.3f}",
                f"{errors.mean():+.3f}",
                f"{std_errors.mean():.3f}",
                f"{np.mean(np.abs(errors) <= WIDE * std_errors):.0%}",
                f"{np.mean([seconds[name] for _, seconds in runs]):.1f}",
            )


# ---- cost
def cost(average):
    X = binary_mnist("train")
    table("rows", "batch_size", "passes", "seconds", "tracked", "more", "followed")
    for n_rows, batch_size in ((5000, 10), (20_000, 10), (20_000, 100)):
        seconds = []
        options = {
            "learning_rate": 0.05,
            "batch_size": batch_size,
            "n_iter": 10,
            "average": average,
            "random_state": 0,
        }
        for method in (False, "particles"):
            model = BernoulliRBM(500, track_log_partition=method, **options)
            began = time.process_time()
            model.fit(X[:n_rows])
            seconds.append(time.process_time() - began)
        followed = np.isfinite(model.log_partition_std_errors_).sum()
        more = seconds[1] / seconds[0] - 1
        row(
            n_rows,
            batch_size,
            10,
            f"{seconds[0]:.2f}",
            f"{seconds[1]:.2f}",
            f"{more:.0%}",
            f"{followed} of 10",
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["coverage", "cost", "tempered"])
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--folder", default="tracking")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--average", action="store_true", help="follow averaged weights")
    arguments = parser.parse_args()
    if arguments.what == "cost":
        cost(arguments.average)
    elif arguments.what == "tempered":
        tempered(min(arguments.seeds, 2), arguments.average)
    else:
        coverage(
            arguments.seeds,
            arguments.first,
            arguments.folder,
            arguments.report,
            arguments.average,
        )


if __name__ == "__main__":
    main()
