"""log Z tracked while RBMs train: does the interval cover, how far off is it, what does it cost?

    python tests/benchmarks/tracking.py [--seeds 200] [--average] [--results tracking.jsonl]
    python tests/benchmarks/tracking.py --cost [--average]

16 hidden units on scikit-learn's digits, four learning rates, 40 passes; log Z of every pass is
enumerated. Each training has a seed of its own, the rates in turn: with one seed for four rates
their errors would be correlated. Every training is appended to the results: an interrupted
benchmark goes on where it stopped. --cost: 784 visible and 500 hidden units on binarised MNIST,
processor time with and without. --average follows averaged weights, BernoulliRBM(average=True).
Prints Markdown.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from measure import binary, digits, measured, options, row, table
from scipy.stats import t as student_t
from sklearn.model_selection import train_test_split

from sklpf import BernoulliRBM
from sklpf.models.rbm._learning import Trainer
from sklpf.models.rbm._monitor import Monitor
from sklpf.training import train

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from known_problems import enumerate_log_partition

RATES = (0.01, 0.02, 0.05, 0.1)
N_PASSES, N_HIDDEN, N_GROUPS = 40, 16, 10
WIDE = student_t.ppf(0.975, N_GROUPS - 1)


def run(seed, average):
    """Truth, tracked values and standard errors of every pass of one training."""
    rate = RATES[seed % len(RATES)]
    model = BernoulliRBM(
        N_HIDDEN,
        learning_rate=rate,
        average=average,
        early_stopping=True,
        n_iter_no_change=10**6,
        random_state=seed,
    )
    rng = np.random.RandomState(seed)
    X = model._training_rows(digits().astype(float), reset=True)
    X, held_out = train_test_split(X, test_size=0.1, random_state=rng)
    model._begin(X, rng)
    trainer, monitor = Trainer(model, X, 10, rng), Monitor(model, held_out, len(X))
    truth: list[float] = []

    def enumerate_it(trainer, iteration):
        path = monitor.tracker.path
        truth.append(enumerate_log_partition(path, len(path.ladder) - 1))

    train(trainer, N_PASSES, callbacks=[monitor, enumerate_it])
    estimates = monitor.tracker.estimates
    return {
        "rate": rate,
        "truth": truth,
        "tracked": [float(each.log_partition) for each in estimates],
        "std_error": [float(each.std_error) for each in estimates],
    }


def report(records):
    """Shares of passes with 99 % intervals over trainings."""
    table("learning rate", "trainings", "passes covered", "too low, too high", "RMSE", "median SE")
    for rates in [*((rate,) for rate in RATES), RATES]:
        some = [each for each in records if each["rate"] in rates]
        if len(some) < 2:
            continue
        errors = np.array([np.subtract(each["tracked"], each["truth"]) for each in some])
        std_errors = np.array([each["std_error"] for each in some])
        covered = np.abs(errors) <= WIDE * std_errors
        low, high = (np.mean(~covered & (sign * errors > 0)) for sign in (-1, 1))
        share = covered.mean(axis=1)
        half = student_t.ppf(0.995, len(some) - 1) * share.std(ddof=1) / np.sqrt(len(some))
        ends = f"{share.mean() - half:.1%} to {share.mean() + half:.1%}"
        row(
            ", ".join(map(str, rates)),
            len(some),
            f"{share.mean():.1%} ({ends})",
            f"{low:.1%}, {high:.1%}",
            f"{np.sqrt(np.mean(errors**2)):.3f}",
            f"{np.median(std_errors):.3f}",
        )


def cost(average):
    X = binary("mnist")
    table("rows", "batch_size", "passes", "seconds", "tracked", "more", "followed")
    for n_rows, batch_size in ((5000, 10), (20_000, 10), (20_000, 100)):
        seconds = []
        for method in (False, "particles"):
            model = BernoulliRBM(
                500,
                learning_rate=0.05,
                batch_size=batch_size,
                n_iter=10,
                average=average,
                track_log_partition=method,
                random_state=0,
            )
            began = time.process_time()
            model.fit(X[:n_rows])
            seconds.append(time.process_time() - began)
        followed = np.isfinite(model.log_partition_std_errors_).sum()
        times = (f"{each:.2f}" for each in seconds)
        more = f"{seconds[1] / seconds[0] - 1:.0%}"
        row(n_rows, batch_size, 10, *times, more, f"{followed} of 10")


def main():
    args = options(__doc__, "tracking.jsonl", 200, {"average": False, "cost": False})
    if args.cost:
        cost(args.average)
    else:
        tasks = [{"seed": seed, "average": args.average} for seed in args.seeds]
        report(measured(args.results, tasks, run))


if __name__ == "__main__":
    main()
