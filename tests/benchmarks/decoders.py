"""Likelihoods of rows under decoders: coverage, and the time a row takes.

    python tests/benchmarks/decoders.py [--task {blocks,cases,encoders}] [--seeds 6] [--rows 50]
        [--anneal] [--slow-rows 3] [--results decoders.jsonl]

blocks: networks in 4 to 20 dimensions, made anew for each seed, whose p(x) is a product of
integrals over planes. cases: rows of one network each; the truth is a grid's (2 latent variables),
the closed form of a linear decoder, or a run with a standard error of 0.04 nats. encoders: of
linear decoders its mean is off by some standard deviations and its variance too small; of a square
it knows one of two modes.

Rows are drawn from the model, and scored by the default or, with --anneal, by HAIS. "One by one" is
what had to be written before: a `GeometricPath` for each row from the prior, with the default
`HAIS`. Every run is appended to the results, and not made again. Prints Markdown; seconds are
processor times of a row.
"""

from __future__ import annotations

import sys
import time
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from measure import groups, measured, options, print_coverage, records_of, row, table

from sklpf import HAIS, Gaussian, GeometricPath

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))
from decoders import Blocks, Layers, Linear, Square

ROWS_PER_GRID = 40  # whose grids of 641 x 641 points need 130 MB
ANNEALED = {"partition_estimator": HAIS(n_temperatures=3000, tol=0.1)}


def scored(model, X, truth, truth_error=0.0):
    """A record for each row."""
    began = time.process_time()
    model.score_samples(X)
    seconds = (time.process_time() - began) / len(X)
    return records_of(model.partition_estimator_.result_, truth, truth_error, seconds)


# ---- networks of pairs of latent variables, rotated together
REAL = {"likelihood": "gaussian", "noise_std": 0.5}
BLOCKS = {
    "4-D, binary": (2, [20, 6], 1.5, {}),
    "6-D, real": (3, [15, 5], 1.5, REAL),
    "10-D, binary": (5, [20, 6], 1.0, {}),
    "10-D, binary, weights x 2": (5, [20, 8], 2.0, {}),
    "10-D, real": (5, [20, 6], 1.0, REAL),
    "20-D, binary": (10, [20, 6], 1.0, {}),
}


def of_blocks(name, seed, n_rows, method):
    n_blocks, sizes, scale, options = BLOCKS[name]
    network = Blocks(n_blocks, sizes, scale, seed, n_points=241)
    model = network.model(**options, **method, random_state=seed)
    X = model.sample(n_rows, random_state=9000 + seed)
    return scored(model, X, network.log_likelihood(X, *([0.5] if options else [])))


# ---- cases
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


def of_case(name, seed, n_rows, method):
    network, options, truth = cases()[name]
    model = network.model(**options, **method)
    X = model.sample(n_rows, random_state=1 + seed)
    if truth is not None:
        parts = np.array_split(X, -(-n_rows // ROWS_PER_GRID))
        return scored(model, X, np.concatenate([truth(rows) for rows in parts]))
    long = HAIS(200, 10_000, tol=0.04, random_state=7)
    exact = network.model(**options, partition_estimator=long)
    values = exact.score_samples(X)
    return scored(model, X, values, exact.partition_estimator_.result_.std_error)


def one_by_one(name, n_rows):
    """Seconds of a path that is written for a row."""
    network, options, _ = cases()[name]
    model = network.model(**options)
    X = model.sample(n_rows, random_state=1)
    likelihood = model._network().likelihood
    d = model.n_latents
    began = time.process_time()
    for seed in range(n_rows):

        def value_and_grad(z, x=X[seed : seed + 1]):
            outputs, pullback = model.forward(z)
            values, by_outputs = likelihood.log_density(x, outputs)
            log_prior = -0.5 * np.sum(z**2, axis=1) - d / 2 * np.log(2 * np.pi)
            return values + log_prior, pullback(by_outputs) - z

        path = GeometricPath(
            lambda z, both=value_and_grad: both(z)[0],
            value_and_grad=value_and_grad,
            base=Gaussian(np.zeros(d), 1.0),
        )
        HAIS(random_state=seed).fit(path)
    return (time.process_time() - began) / n_rows


# ---- wrong encoders
def wrong_encoder(linear, off, factor):
    """The encoder of a linear decoder, off by so many standard deviations, and with so many times
    the variance.
    """

    def encoder(X):
        mean, log_variance = linear.encoder(X)
        return mean + off * np.exp(log_variance / 2), log_variance + np.log(factor)

    return encoder


ENCODERS = {
    f"{off:g} SD off, variance x {factor}": (off, factor)
    for off, factor in ((0.0, 0.02), (1.5, 0.02), (3.0, 0.02), (3.0, 0.4))
}
ENCODERS |= {"one of two modes": True, "one of two modes, checks=False": False}


def of_encoder(name, seed, n_rows, method):
    if name.startswith("one of"):
        network = Square()
        hais = HAIS(n_temperatures=3000, tol=0.1, checks=ENCODERS[name])
        model = network.model(encoder=network.encoder, partition_estimator=hais)
    else:
        network = Linear((1, 2, 5)[seed % 3], 8, 1.0, seed // 3)
        model = network.model(encoder=wrong_encoder(network, *ENCODERS[name]), **method)
    X = model.sample(n_rows, random_state=500 + seed)
    return scored(model, X, network.log_likelihood(X))


TASKS = {"blocks": (BLOCKS, of_blocks), "cases": (cases(), of_case)}
TASKS |= {"encoders": (ENCODERS, of_encoder)}


def run(task, case, seed, rows, anneal):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TASKS[task][1](case, seed, rows, ANNEALED if anneal else {})


def main():
    others = {"task": "blocks", "rows": 50, "slow-rows": 3, "anneal": False}
    args = options(__doc__, "decoders.jsonl", 6, others)
    fixed = {"rows": args.rows, "anneal": args.anneal}
    tasks = [
        {"task": args.task, "case": case, "seed": seed} | fixed
        for case, seed in product(TASKS[args.task][0], args.seeds)
    ]
    records = [each for each in measured(args.results, tasks, run) if each["task"] == args.task]
    print_coverage(records, "case", "anneal")
    table("case", "mean error of converged rows", "RMS of z", "one by one, s")
    for (case,), found in groups([each for each in records if each["converged"]], "case").items():
        off, error = (np.array([each[name] for each in found]) for name in ("off", "error"))
        mean = f"{off.mean():+.4f} ± {off.std() / np.sqrt(len(off)):.4f}"
        slow = f"{one_by_one(case, args.slow_rows):.2f}" if args.task == "cases" else ""
        row(case, mean, f"{np.sqrt(np.mean((off / error) ** 2)):.2f}", slow)


if __name__ == "__main__":
    main()
