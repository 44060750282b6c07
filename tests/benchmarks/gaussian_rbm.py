"""Coverage of log Z of Gaussian RBMs, random ones and ones that are trained anew, and what chains
that jump bring to training.

Prints Markdown.

    python tests/benchmarks/gaussian_rbm.py coverage [--seeds 200]
    python tests/benchmarks/gaussian_rbm.py trained [--seeds 200]
    python tests/benchmarks/gaussian_rbm.py training [--seeds 5]
"""

from __future__ import annotations

import argparse
import warnings
from functools import partial

import numpy as np
from measure import COVERAGE, Kept, coverage_cells, row, table, timed_error
from scipy.stats import multivariate_normal
from sklearn.datasets import load_iris, load_wine

from sklpf import Exact, GaussianRBM, ParallelTempering
from sklpf.models.gaussian_rbm import _learning as learning

_FAILED = 0.5  # nats a row below the model that made the rows


def random_model(n_components, n_features, seed, scale):
    """A model whose hidden units are on about half of the time."""
    rng = np.random.default_rng(seed)
    components = scale * rng.normal(size=(n_components, n_features))
    variances = rng.uniform(0.3, 2.0, n_features)
    products = (components / variances) @ components.T
    intercept_hidden = -0.5 * products.sum(axis=1) + 0.5 * rng.normal(size=n_components)
    return GaussianRBM.from_parameters(
        components, rng.normal(size=n_features), intercept_hidden, variances, random_state=seed
    )


def cover(name, models, kept):
    """One estimate of every model, beside its exact log Z; models are pairs of a seed and what
    makes the model.
    """
    runs = []
    for seed, make in models:

        def run(seed=seed, make=make):
            model = make()
            exact = Exact().fit(model).log_partition_
            return timed_error(ParallelTempering(random_state=seed), model, exact)

        runs.append(kept.get((name, seed), run))
    row(name, *coverage_cells(runs))


def coverage(seeds, kept):
    table("model", *COVERAGE)
    for n_features, scale in ((5, 0.5), (5, 2.0), (30, 0.5), (30, 2.0)):
        models = ((s, partial(random_model, 14, n_features, s, scale)) for s in seeds)
        cover(f"14 hidden, {n_features} visible, scale {scale:g}", models, kept)


def fit_to_half(X, seed):
    order = np.random.default_rng(seed).permutation(len(X))
    half = X[order[: len(X) // 2]]
    return GaussianRBM(8, n_iter=40, random_state=seed).fit(half)


def trained(seeds, kept):
    """Models of half of the rows, another half for each seed."""
    table("model", *COVERAGE)
    for name, X in (("iris", load_iris().data), ("wine", load_wine().data)):
        models = ((seed, partial(fit_to_half, X, seed)) for seed in seeds)
        cover(f"{name}, 8 hidden", models, kept)


def training(seeds, kept):
    """Mean log-likelihood of new rows, less that of the model that made them."""
    table("model that made the rows", "one Gaussian", "plain chains", "chains that jump", "failed")
    for n_components, n_features, scale in ((3, 4, 1.5), (5, 8, 1.5), (8, 10, 2.0), (12, 30, 2.0)):
        name = f"{n_components} hidden, {n_features} visible, scale {scale:g}"
        losses = []
        for seed in seeds:
            truth = partial(random_model, n_components, n_features, seed, scale)
            losses.append(kept.get((name, seed), partial(training_losses, truth, seed)))
        losses = np.array(losses)
        cells = [f"{np.median(kind):.2f} ({kind.min():.2f})" for kind in losses.T]
        row(name, *cells, f"{np.sum(losses[:, 2] < -_FAILED)} of {len(losses)}")


def training_losses(make_truth, seed):
    """Of one Gaussian, of plain chains and of chains that jump."""
    truth = make_truth()
    X, new = truth.sample(3000, random_state=0), truth.sample(5000, random_state=1)
    best = truth.score(new)
    yield multivariate_normal(X.mean(axis=0), np.cov(X.T)).logpdf(new).mean() - best
    move = learning.Trainer._move
    for each in (_gibbs, move):
        learning.Trainer._move = each
        model = GaussianRBM(truth.n_components, n_iter=60, random_state=seed)
        try:
            yield model.fit(X).score(new) - best
        except ValueError:  # training diverged
            yield -np.inf
    learning.Trainer._move = move


def _gibbs(trainer, here, bias, fields):
    """The visible units of plain Gibbs chains, in place of `Trainer._move`."""
    pull = trainer.weights.pulls(trainer.h)
    noise = trainer.rng.standard_normal(pull.shape, dtype=np.float32)
    return pull + noise * np.sqrt(here.variances).astype(np.float32)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["coverage", "trained", "training"])
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="of the seeds")
    parser.add_argument("--file", help="keeps measurements: an interrupted run goes on from there")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    commands = {"coverage": coverage, "trained": trained, "training": training}
    commands[arguments.what](seeds, Kept(arguments.file))


if __name__ == "__main__":
    main()
