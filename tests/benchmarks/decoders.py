"""Likelihoods of rows under decoders: coverage, and the time a row takes beside one row after
another.

    python tests/benchmarks/decoders.py [--rows 100] [--slow-rows 3] [--cases NAME ...]
        [--chunk 1000] [--file FILE]
    python tests/benchmarks/decoders.py --bias
    python tests/benchmarks/decoders.py --encoders
    python tests/benchmarks/decoders.py --blocks 1000 --rows 400

--bias: the mean error of rows of decoders that are made anew, with standard errors of 0.014 nats.
--encoders: coverage and alarms where the encoder is wrong: of linear decoders its mean is off by
some standard deviations and its variance too small; of a square it knows one of two modes.
--blocks: coverage and mean error in 4 to 20 dimensions, by the seed of the first network; 50 rows
each.

Rows are drawn from the model. The truth is a grid's (2 latent variables), the closed form of a
linear decoder, or a run with a standard error of 0.04 nats. "One by one" is what had to be written
before: a `GeometricPath` for each row from the prior, with the default `HAIS` of 1000 levels. Times
are processor time. Prints Markdown.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from measure import Kept
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning

from sklpf import HAIS, Gaussian, GeometricPath

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))
from decoders import Blocks, Layers, Linear, Square

_ROWS_PER_GRID = 40  # whose grids of 641 x 641 points need 130 MB


def cases():
    """Name: network, options of its model, and the true log-likelihoods or None."""
    small = Layers([2, 50, 64], 2.0)
    linear = Linear(10, 64, 1.0)
    large = Layers([50, 200, 784], 1.0)
    real = {"likelihood": "gaussian", "noise_std": 1.0}
    return {
        "64-50-2, binary": (small, {}, small.log_likelihood),
        "64-50-2, real": (small, real, lambda X: small.log_likelihood(X, 1.0)),
        "64-10 linear": (linear, {}, linear.log_likelihood),
        "64-10 linear, encoder": (linear, {"encoder": linear.encoder}, linear.log_likelihood),
        "784-200-50, binary": (large, {}, None),
    }


def one_by_one(model, x, seed):
    """Run a path that is written for a row."""
    likelihood = model._network().likelihood
    d = model.n_latents

    def value_and_grad(z):
        outputs, pullback = model.forward(z)
        values, by_outputs = likelihood.log_density(x, outputs)
        log_prior = -0.5 * np.sum(z**2, axis=1) - d / 2 * np.log(2 * np.pi)
        return values + log_prior, pullback(by_outputs) - z

    path = GeometricPath(
        lambda z: value_and_grad(z)[0],
        value_and_grad=value_and_grad,
        base=Gaussian(np.zeros(d), 1.0),
    )
    HAIS(random_state=seed).fit(path)


def scored(model, X):
    """Estimates, their result, and seconds of the processor a row."""
    started = time.process_time()
    estimates = model.score_samples(X)
    seconds = (time.process_time() - started) / len(X)
    return estimates, model.partition_estimator_.result_, seconds


def chunk(network, options, truth, X):
    """Of some rows: estimates, exact values and their standard errors, standard errors of the
    estimates, whether they converged, and the seconds a row; one after another in one list.
    """
    estimates, result, seconds = scored(network.model(**options), X)
    if truth is None:
        long = HAIS(200, 10_000, tol=0.04, random_state=7)
        exact, exact_result, _ = scored(network.model(**options, partition_estimator=long), X)
        exact_errors = exact_result.std_error
    else:
        parts = np.array_split(X, -(-len(X) // _ROWS_PER_GRID))
        exact = np.concatenate([truth(rows) for rows in parts])
        exact_errors = np.zeros(len(X))
    converged = result.diagnostics["converged"]
    times = np.full(len(X), seconds)
    columns = estimates, exact, exact_errors, result.std_error, converged, times
    return np.concatenate(columns)


def line(name, network, options, truth, arguments, kept):
    model = network.model(**options)
    n_rows, n_slow = arguments.rows, arguments.slow_rows
    X = model.sample(n_rows, random_state=1)
    chunks = []
    for first in range(0, n_rows, arguments.chunk):
        rows = X[first : first + arguments.chunk]
        run = partial(chunk, network, options, truth, rows)
        key = name, n_rows, first, len(rows)
        chunks.append(np.reshape(kept.get(key, run), (6, len(rows))))
    columns = np.concatenate(chunks, axis=1)
    estimates, exact, exact_errors, std_errors, converged, times = columns

    errors = np.hypot(std_errors, exact_errors)
    inside = np.abs(estimates - exact) < norm.isf(0.025) * errors
    seconds = times.mean()
    cells = (
        f"| {name} | {n_rows} | {inside.mean():.1%} | {converged.mean():.0%}"
        f" | {np.median(std_errors):.3f} | {np.mean(estimates - exact):+.3f} | {seconds:.2f} |"
    )
    if n_slow == 0:
        return cells + " | |"
    started = time.process_time()
    for t in range(n_slow):
        one_by_one(model, X[t : t + 1], t)
    before = (time.process_time() - started) / n_slow
    return cells + f" {before:.2f} | {before / seconds:.1f} |"


def fresh(seed):
    """Model with a precise estimator, rows and their true log-likelihoods, of six decoders."""
    precise = {"partition_estimator": HAIS(n_temperatures=100_000, tol=0.02, random_state=seed)}
    real = {"likelihood": "gaussian", "noise_std": 1.0}
    linear = [Linear(d, n, std, seed) for d, n, std in ((2, 10, 1.0), (10, 30, 1.0), (30, 20, 3.0))]
    layers = Layers([2, 20, 16], 2.0, seed)
    decoders = [
        *((net, {}, net.log_likelihood) for net in linear),
        (linear[1], {"encoder": linear[1].encoder}, linear[1].log_likelihood),
        (layers, {}, layers.log_likelihood),
        (layers, real, lambda X: layers.log_likelihood(X, 1.0)),
    ]
    for network, options, truth in decoders:
        model = network.model(**options, **precise)
        X = model.sample(21, random_state=1000 + seed)
        yield model, X, truth(X)


def bias():
    """Mean error of 504 rows in nats, with its standard error, and coverage."""
    errors = []
    std_errors = []
    for seed in range(4):
        for model, X, truth in fresh(seed):
            estimates, result, _ = scored(model, X)
            errors.extend(estimates - truth)
            std_errors.extend(result.std_error)
    errors = np.array(errors)
    covered = np.abs(errors) < norm.isf(0.025) * np.array(std_errors)
    error = errors.std(ddof=1) / np.sqrt(len(errors))
    print(
        f"{len(errors)} rows: mean error {errors.mean():+.4f} +- {error:.4f}, {covered.mean():.1%}"
        f" covered, {np.mean(errors > 0):.0%} positive"
    )


def blocks(first_seed, n_rows):
    """A line for every kind of networks of pairs of latent variables, rotated together."""
    real = {"likelihood": "gaussian", "noise_std": 0.5}
    kinds = {
        "4-D, binary": (2, [20, 6], 1.5, {}),
        "6-D, real": (3, [15, 5], 1.5, real),
        "10-D, binary": (5, [20, 6], 1.0, {}),
        "10-D, binary, weights x 2": (5, [20, 8], 2.0, {}),
        "10-D, real": (5, [20, 6], 1.0, real),
        "20-D, binary": (10, [20, 6], 1.0, {}),
    }
    print("| decoder | rows | converged | cover | > 3 SE | mean error | RMS of z | SE |")
    print("|---|---|---|---|---|---|---|---|")
    for name, (n_blocks, sizes, scale, options) in kinds.items():
        found = []
        for seed in range(first_seed, first_seed + n_rows // 50):
            network = Blocks(n_blocks, sizes, scale, seed, n_points=241)
            model = network.model(**options, random_state=seed)
            X = model.sample(50, random_state=9000 + seed)
            estimates, result, _ = scored(model, X)
            exact = network.log_likelihood(X, *([0.5] if options else []))
            low, high = result.interval()
            covers = (low <= exact) & (exact <= high)
            columns = estimates - exact, result.std_error, covers
            found.append(np.column_stack(columns)[result.diagnostics["converged"]])
        off, error, covers = np.concatenate(found).T
        z = off / error
        print(
            f"| {name} | {n_rows} | {len(off)} | {covers.mean():.3f} | {np.sum(abs(z) > 3)} |"
            f" {off.mean():+.4f} ± {off.std() / np.sqrt(len(off)):.4f} |"
            f" {np.sqrt(np.mean(z**2)):.2f} | {np.median(error):.3f} |",
            flush=True,
        )


def wrong_encoder(linear, off, factor):
    """The encoder of a linear decoder, off by so many standard deviations, and with so many times
    the variance.
    """

    def encoder(X):
        mean, log_variance = linear.encoder(X)
        return mean + off * np.exp(log_variance / 2), log_variance + np.log(factor)

    return encoder


def encoders():
    """Rows by the default estimator: how many converge, cover, are wrong, or have missed a mode;
    of the square without checks as well.
    """
    print("| decoder | encoder | rows | converged | cover | > 3 SE | missed-region |")
    print("|---|---|---|---|---|---|---|")
    for off, factor in ((0.0, 0.02), (1.5, 0.02), (3.0, 0.02), (3.0, 0.4)):
        linear = [Linear(d, 8, 1.0, seed) for d in (1, 2, 5) for seed in range(3)]
        models = [(each, each.model(encoder=wrong_encoder(each, off, factor))) for each in linear]
        print(encoder_line("linear", f"{off:g} SD off, variance x {factor}", models), flush=True)
    square = Square()
    for note, checks in ((", checks=False", False), ("", True)):
        hais = HAIS(n_temperatures=3000, tol=0.1, checks=checks)
        model = square.model(encoder=square.encoder, partition_estimator=hais)
        print(encoder_line("square", "one of two modes" + note, [(square, model)] * 2), flush=True)


def encoder_line(decoder, encoder, models):
    converged, covers, wrong = [], [], []
    n_missed = 0
    for seed, (network, model) in enumerate(models):
        X = model.sample(20, random_state=500 + seed)
        estimates, result, _ = scored(model, X)
        low, high = result.interval()
        exact = network.log_likelihood(X)
        converged.append(result.diagnostics["converged"])
        covers.append((low <= exact) & (exact <= high))
        wrong.append(np.abs(estimates - exact) > 3 * result.std_error)
        missed = [alarm.seen for alarm in result.alarms if alarm.kind == "missed-region"]
        n_missed += sum(int(seen.split()[1]) for seen in missed)  # "in 3 of 20 rows: ..."
    converged, covers, wrong = map(np.concatenate, (converged, covers, wrong))
    return (
        f"| {decoder} | {encoder} | {len(converged)} | {converged.sum()} |"
        f" {covers[converged].sum()} | {wrong[converged].sum()} | {n_missed} |"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--slow-rows", type=int, default=3)
    parser.add_argument("--cases", nargs="*", default=None)
    parser.add_argument("--chunk", type=int, default=1000, help="rows that are scored at once")
    parser.add_argument("--file", help="keeps chunks: an interrupted run goes on from there")
    parser.add_argument("--bias", action="store_true")
    parser.add_argument("--encoders", action="store_true")
    parser.add_argument("--blocks", type=int, help="first seed of networks of pairs of latents")
    arguments = parser.parse_args()
    if arguments.blocks is not None:
        blocks(arguments.blocks, arguments.rows)
        return
    if arguments.bias:
        bias()
        return
    if arguments.encoders:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            encoders()
        return
    kept = Kept(arguments.file)
    print(
        "| decoder | rows | cover | converged | std. error | mean error | s a row | one by one |"
        " times faster |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for name, case in cases().items():
            if arguments.cases is None or name in arguments.cases:
                print(line(name, *case, arguments, kept), flush=True)


if __name__ == "__main__":
    main()
