"""What chains that jump between modes bring to the training of Gaussian RBMs.

    python tests/benchmarks/gaussian_rbm.py [--seeds 5] [--results gaussian_rbm.jsonl]

Every run is appended to the results, and not made again. Prints Markdown: mean log-likelihood of
new rows, less that of the model that made them, median and worst over the seeds, and processor
seconds of a default fit, median.
"""

from __future__ import annotations

import time
import warnings
from itertools import product

import numpy as np
from interval_coverage import random_gaussian_rbm
from measure import groups, measured, options, row, table
from scipy.stats import multivariate_normal

from sklpf import GaussianRBM
from sklpf.models.gaussian_rbm import _learning as learning

MODELS = {
    f"{n_components} hidden, {n_features} visible, scale {scale:g}": (
        n_components,
        n_features,
        scale,
    )
    for n_components, n_features, scale in ((3, 4, 1.5), (5, 8, 1.5), (8, 10, 2.0), (12, 30, 2.0))
}


def plain_move(trainer, here, bias, fields):
    """The visible units of plain Gibbs chains, in place of `Trainer._move`."""
    pull = trainer.weights.pulls(trainer.h)
    noise = trainer.rng.standard_normal(pull.shape, dtype=np.float32)
    return pull + noise * np.sqrt(here.variances).astype(np.float32)


MOVES = {"plain chains": plain_move, "default": learning.Trainer._move}


def run(model, seed):
    truth = random_gaussian_rbm(*MODELS[model], seed)
    X, new = truth.sample(3000, random_state=0), truth.sample(5000, random_state=1)
    best = truth.score(new)
    one = multivariate_normal(X.mean(axis=0), np.cov(X.T)).logpdf(new).mean()
    losses = {"one Gaussian": one - best}
    for name, move in MOVES.items():
        learning.Trainer._move = move
        fitted = GaussianRBM(truth.n_components, n_iter=60, random_state=seed)
        began = time.process_time()
        try:
            fitted.fit(X)
            seconds = time.process_time() - began
            losses[name] = fitted.score(new) - best
        except ValueError:  # training diverged
            losses[name] = -np.inf
    return losses | {"seconds": seconds}


def main():
    args = options(__doc__, "gaussian_rbm.jsonl", 5, models=MODELS)
    warnings.simplefilter("ignore")
    tasks = [{"model": name, "seed": seed} for name, seed in product(args.models, args.seeds)]
    names = ("one Gaussian", *MOVES)
    table("model that made the rows", *names, "seconds a fit")
    for (model,), found in groups(measured(args.results, tasks, run), "model").items():
        losses = [[each[name] for each in found] for name in names]
        seconds = np.median([each["seconds"] for each in found])
        cells = (f"{np.median(each):.2f} ({min(each):.2f})" for each in losses)
        row(model, *cells, f"{seconds:.1f}")


if __name__ == "__main__":
    main()
