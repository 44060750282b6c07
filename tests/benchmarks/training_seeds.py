"""How far the training seed moves the held-out log-likelihood, beside the interval shown.

Prints Markdown.

    python tests/benchmarks/training_seeds.py training_seeds.jsonl [name ...] [--seeds 10]

A name is the beginning of a line of the table, such as "LatentDirichletAllocation" or
"ProductOfExperts, digits". Every fit appends a line to the file, and a fit that the file has is not
made again, so that an interrupted run goes on where it was. The table has the named lines, from all
seeds in the file (`--seeds 0` prints it alone).

A seed is the model's `random_state`: it decides the start, the order of rows, the chains of
training, and those that estimate the likelihood. Which rows train and which test is the same for
all. Times are processor times of one thread.

Another model is one more function in `entries`, and its data one more entry of `DATA`.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from image_models import images
from lda import texts
from measure import row, table
from scipy.stats import t as student_t
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from sklpf import (
    BilinearGenerativeModel,
    FactorialMixture,
    LatentDirichletAllocation,
    LinearGenerativeModel,
    MeanCovarianceRBM,
    ProductOfExperts,
)
from sklpf.datasets import make_factorial_shapes, make_patches
from sklpf.testing import find_shared_data
from sklpf.training import PersistentContrastiveDivergence

N_FEATURES = 6  # of whitened rows
N_STARTS = 5  # of which the best by its training objective is taken


class Entry(NamedTuple):
    """A line of the table."""

    model: str
    data: str
    setting: str
    fit: Callable[[Any, int], Any]  # of the training rows and the seed, returns the fitted model
    objective: Callable[[Any], float] | None = None  # of a fitted model, on the training rows
    n_scored: int | None = None  # test rows, where scoring them takes longer than the fit

    @property
    def name(self) -> str:
        return f"{self.model}, {self.data}, {self.setting}"


# ---- data
def documents(name, n_train, n_test):
    """Documents of a text, drawn once."""
    rng = np.random.default_rng(0)
    train, test = texts(name)
    train = train[rng.permutation(train.shape[0])[:n_train]]
    return train, test[rng.permutation(test.shape[0])[:n_test]]


def split(X, n_test):
    order = np.random.default_rng(0).permutation(len(X))
    return X[order[n_test:]], X[order[:n_test]]


def whitened(X, n_test=500):
    """The first principal components, each of variance 1 in the training rows."""
    train, test = split(X, n_test)
    whitening = PCA(N_FEATURES, whiten=True, random_state=0).fit(train)
    return whitening.transform(train), whitening.transform(test)


def centred(X, n_test=300):
    train, test = split(X, n_test)
    return train - train.mean(axis=0), test - train.mean(axis=0)


def faces(size):
    """Faces of so many pixels a side, grey values from 0 to 1."""
    file = find_shared_data("faces/yaleb_32x32.npz")
    if file is None:
        sys.exit("faces/yaleb_32x32.npz not found: set SKLPF_DATA to the reference data")
    with np.load(file) as data:
        blocks = data["images"].reshape(-1, size, 32 // size, size, 32 // size) / 255
    return blocks.mean(axis=(2, 4)).reshape(len(blocks), -1)


def patches():
    found = make_patches(images()[1], 8, 2000, N_FEATURES, n_test=500, random_state=0)
    return found.X_train, found.X_test


DATA = {
    "AP": partial(documents, "ap", 1000, 100),
    "newsgroups": partial(documents, "newsgroups", 1000, 100),
    "NIPS": partial(documents, "nips", 256, 30),
    "digits": lambda: whitened(load_digits().data),
    "faces": lambda: whitened(faces(32)),
    "patches": patches,
    "digits, 64 pixels": lambda: centred(load_digits().data / 16),
    "faces, 64 pixels": lambda: centred(faces(8)),
    "shapes": lambda: split(make_factorial_shapes(1200, random_state=0)[0], 300),
}


@functools.cache
def data(name):
    """Training and test rows."""
    return DATA[name]()


# ---- models
def fitted(model, parameters, X, seed):
    return model(**parameters, random_state=seed, n_jobs=1).fit(X)


def lines(model, names, settings, fixed=None, objective=None, n_scored=None):
    """Entries of a model for every data set and setting; `fixed` are parameters of all of them."""
    name = model.__name__.removeprefix("Averaged")
    found = []
    for data_name, (setting, parameters) in itertools.product(names, settings.items()):
        fit = partial(fitted, model, {**(fixed or {}), **parameters})
        found.append(Entry(name, data_name, setting, fit, objective, n_scored))
    return found


def topic_models():
    """20 topics, priors at their defaults."""
    names, fixed = ("AP", "newsgroups", "NIPS"), {"n_components": 20}
    online = {"learning_method": "online"}
    variational = {
        "batch, 10 passes (the default)": {},
        "batch, 50 passes": {"max_iter": 50},
        "online, 10 passes": online,
        "online, 10 passes, learning_decay=0.9": {**online, "learning_decay": 0.9},
        "online, 10 passes, tempering": {**online, "tempering": "annealed"},
        "online, 50 passes": {**online, "max_iter": 50},
    }
    gibbs = {
        "gibbs, 100 passes": {"learning_method": "gibbs", "max_iter": 100},
        "gibbs, 500 passes": {"learning_method": "gibbs", "max_iter": 500},
    }
    average = "online, 10 passes, topics averaged over the last 5 (prototype)"
    return (
        lines(LatentDirichletAllocation, names, variational, fixed, lambda model: model.elbo_)
        + lines(LatentDirichletAllocation, names, gibbs, fixed, last_log_joint)
        + [Entry("LatentDirichletAllocation", name, average, fit_averaged_topics) for name in names]
    )


def last_log_joint(model):
    """What `n_init` chooses by: log p(words, topics), the mean of its last quarter."""
    return float(model.log_joint_[-max(1, len(model.log_joint_) // 4) :].mean())


def fit_averaged_topics(X, seed, n_passes=10, batch_size=128):
    """Online learning; topics are the mean over the updates of the second half of the passes."""
    model = LatentDirichletAllocation(20, total_samples=X.shape[0], random_state=seed, n_jobs=1)
    kept = []
    for i in range(n_passes):
        for start in range(0, X.shape[0], batch_size):
            model.partial_fit(X[start : start + batch_size])
            if i >= n_passes // 2:
                kept.append(model.components_.copy())
    model.components_ = np.mean(kept, axis=0)
    return model


def factorial_mixtures():
    """Exact likelihoods: what differs between seeds is the fit."""
    names = ("digits, 64 pixels", "faces, 64 pixels", "shapes")
    settings = {
        "default": {},
        "n_moves=0": {"n_moves": 0},
        "n_moves=0, n_init=20": {"n_moves": 0, "n_init": 20},
        'tempering="annealed"': {"tempering": "annealed"},
    }
    return lines(FactorialMixture, names, settings, {"n_components": 8}, lambda model: model.elbo_)


def products():
    """Twice as many experts as features, so that log Z is estimated."""
    names, fixed = ("digits", "faces", "patches"), {"n_components": 2 * N_FEATURES}
    settings = {
        "default": {},
        'algorithm="mpf"': {"algorithm": "mpf"},
    }
    complete = {
        "6 experts": {},
        '6 experts, algorithm="ml"': {"algorithm": "ml"},
    }
    return (
        lines(ProductOfExperts, names, settings, fixed, last_likelihood)
        + lines(AveragedProductOfExperts, names, {"parameters averaged (prototype)": {}}, fixed)
        + lines(ProductOfExperts, names, complete, objective=last_likelihood)
    )


def mean_covariance_rbms():
    names = ("digits", "faces")
    settings = {"default": {}, 'algorithm="mpf"': {"algorithm": "mpf"}}
    average = {"parameters averaged (prototype)": {}}
    return lines(MeanCovarianceRBM, names, settings, objective=last_likelihood) + lines(
        AveragedMeanCovarianceRBM, names, average
    )


def last_likelihood(model):
    """Of the training rows, the mean over the last five passes."""
    return -float(model.loss_curve_[-5:].mean())


class AveragedContrastiveDivergence(PersistentContrastiveDivergence):
    """Keeps the mean of the parameters since the learning rate was last lowered.

    Training does not see it. Late steps are heavier: step t of n weighs about (t / n) ** 3.
    """

    averaged_rate = None

    def step(self, rows):
        super().step(rows)
        if self.learning_rate != self.averaged_rate:
            self.average, self.n_averaged = self.parameters, 0
            self.averaged_rate = self.learning_rate
        self.n_averaged += 1
        self.average = self.average + (self.parameters - self.average) * 4 / (self.n_averaged + 3)


class Averaged:
    """Makes a model whose parameters are that mean."""

    def _contrastive(self, *parts):
        trainer = super()._contrastive(*parts)
        trainer.__class__ = AveragedContrastiveDivergence
        return trainer

    def _keep_trained(self, trainer, rows):
        trainer.parameters = trainer.average
        super()._keep_trained(trainer, rows)


class AveragedProductOfExperts(Averaged, ProductOfExperts):
    pass


class AveragedMeanCovarianceRBM(Averaged, MeanCovarianceRBM):
    pass


def generative_models():
    """The first test rows only, whose likelihoods take longer than the fit."""
    names, settings = ("digits", "patches"), {"default": {}, "n_draws=4": {"n_draws": 4}}
    linear = {"n_components": 2 * N_FEATURES}
    bilinear = {"n_content": N_FEATURES, "n_style": N_FEATURES}
    found = lines(LinearGenerativeModel, names, settings, linear, last_likelihood, n_scored=50)
    one, objective = {"default": {}}, last_likelihood
    return found + lines(BilinearGenerativeModel, names, one, bilinear, objective, n_scored=16)


def entries():
    return [
        *topic_models(),
        *factorial_mixtures(),
        *products(),
        *mean_covariance_rbms(),
        *generative_models(),
    ]


# ---- measuring
def measured(entry, seed):
    """One fit, and what it gives for the test rows."""
    train, test = data(entry.data)
    test = test[: entry.n_scored]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        began = time.process_time()
        model = entry.fit(train, seed)
        fitted_at, n_caught = time.process_time(), len(caught)
        interval = model.score_interval(test)
        scored_at = time.process_time()

    result = model.partition_estimator_.result_
    one_a_row = getattr(model, "path_takes_rows", False)
    values = result.log_partition if one_a_row else model.score_samples(test)
    in_training = (warning.category for warning in caught[:n_caught])
    return {
        "log_likelihood": interval.mean,
        "partition": interval.partition,
        "combined": interval.combined,
        "partition_std_error": float(result.diagnostics.get("mean_std_error", result.std_error)),
        "trusted": interval.converged,
        "settled": not any(issubclass(kind, ConvergenceWarning) for kind in in_training),
        "objective": None if entry.objective is None else float(entry.objective(model)),
        "fit_seconds": fitted_at - began,
        "score_seconds": scored_at - fitted_at,
        "rows": np.round(values, 4).tolist(),
    }


def read(path):
    """The lines of the file by name and seed."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    found = [json.loads(line) for line in text.splitlines()]
    return {(line["name"], line["seed"]): line for line in found}


def measure(wanted, n_seeds, path):
    """Make the fits that the file does not have, seed by seed, and append what comes out."""
    done = read(path)
    for seed, entry in itertools.product(range(n_seeds), wanted):
        if (entry.name, seed) in done:
            continue
        line = {"name": entry.name, "seed": seed, **measured(entry, seed)}
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        shown = f"{line['log_likelihood']:.3f}, {line['fit_seconds']:.1f} s"
        print(f"{entry.name}, seed {seed}: {shown}", file=sys.stderr)


# ---- the table
def print_table(wanted, path):
    """A line an entry, and one for the best of some starts where training can rank them."""
    done = read(path)
    table(
        "model",
        "data",
        "setting",
        "seeds",
        "test log-likelihood",
        "SD between seeds",
        "of it log Z",
        "width: log Z",
        "width: combined",
        "pairs told apart",
        "CPU seconds a fit",
    )
    for entry in wanted:
        runs = [line for (name, _), line in done.items() if name == entry.name]
        if len(runs) < 2:
            continue
        values = np.array([run["log_likelihood"] for run in runs])
        digits = 2 if values.std(ddof=1) > 0.1 else 3
        seconds = np.median([run["fit_seconds"] for run in runs])
        log_z = np.sqrt(np.mean([run["partition_std_error"] ** 2 for run in runs]))
        row(
            entry.model,
            entry.data,
            entry.setting,
            len(runs),
            f"{values.mean():.{digits}f}",
            number(values.std(ddof=1)),
            number(log_z),
            number(width(runs, "partition")),
            number(width(runs, "combined")),
            f"{100 * told_apart(runs):.0f} %",
            f"{seconds:.1f}",
        )
        if entry.objective is not None and len(runs) >= 2 * N_STARTS:
            mean, spread = best_of_starts(values, [run["objective"] for run in runs])
            row(
                "",
                "",
                f"the best of {N_STARTS} of these by training",
                "",
                f"{mean:.{digits}f}",
                number(spread),
                "",
                "",
                "",
                "",
                f"{N_STARTS * seconds:.1f}",
            )


def width(runs, part):
    """Mean width of an interval over the seeds."""
    return np.mean([run[part][1] - run[part][0] for run in runs])


def number(value):
    """Two digits or more, at most three decimals."""
    return f"{value:.3f}" if value < 1 else f"{value:.1f}"


def told_apart(runs):
    """Share of pairs of seeds whose difference, paired by rows, has a 95 % interval without 0."""
    apart = []
    for a, b in itertools.combinations(runs, 2):
        differences = np.subtract(a["rows"], b["rows"])
        n = len(differences)
        sampling = student_t.ppf(0.975, n - 1) * differences.std(ddof=1) / np.sqrt(n)
        half_widths = [sampling, width([a], "partition") / 2, width([b], "partition") / 2]
        apart.append(abs(differences.mean()) > np.linalg.norm(half_widths))
    return np.mean(apart)


def best_of_starts(values, objectives):
    """Mean and standard deviation of the value of the best of k starts, by their objective.

    The starts are drawn from these fits with replacement, so the fit whose objective is number i of
    n from below is the best with probability (i^k - (i - 1)^k) / n^k.
    """
    n, values = len(values), values[np.argsort(objectives)]
    probabilities = np.diff((np.arange(n + 1) / n) ** N_STARTS)
    mean = probabilities @ values
    return mean, np.sqrt(probabilities @ (values - mean) ** 2)


def main():
    keep_lines = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=keep_lines)
    parser.add_argument("file", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seeds", type=int, default=10)
    args = parser.parse_intermixed_args()
    names = args.names or [""]
    wanted = [entry for entry in entries() if any(entry.name.startswith(name) for name in names)]
    if not wanted:
        parser.error(f"no such line; there are:\n{chr(10).join(entry.name for entry in entries())}")
    measure(wanted, args.seeds, args.file)
    print_table(wanted, args.file)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
