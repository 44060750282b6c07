"""How far the training seed moves the held-out log-likelihood, beside the interval shown; and of
RBMs what substitutes for a likelihood say.

    python tests/benchmarks/training_seeds.py [--seeds 10] [--fits WORD ...]
        [--results training_seeds.jsonl]

A word is a part of a line of the table, such as "LatentDirichletAllocation" or "RBM, digits". A
seed is the model's `random_state`: it decides the start, the order of rows, the chains of training,
and those that estimate the likelihood. Which rows train and which test is the same for all. Times
are processor times of one thread. Every fit is appended to the results, and not made again. Prints
Markdown: values are of fits whose log Z is trusted, standard deviations and widths in nats. Another
model is one more line in `entries`, and its data one more entry of `DATA`.
"""

from __future__ import annotations

import functools
import itertools
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from image_models import images
from measure import binary, digits, groups, measured, options, reference, row, table
from scipy.special import expit
from sklearn import neural_network
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from threadpoolctl import threadpool_limits
from topics import texts

from sklpf import (
    AIS,
    BernoulliRBM,
    BilinearGenerativeModel,
    FactorialMixture,
    LatentDirichletAllocation,
    LinearGenerativeModel,
    MeanCovarianceRBM,
    ProductOfExperts,
)
from sklpf.datasets import make_factorial_shapes, make_patches

N_FEATURES = 6  # of whitened rows


class Entry(NamedTuple):
    """A line of the table."""

    data: str
    fit: Callable[[Any, int], Any]  # of the training rows and the seed, returns the fitted model
    n_scored: int | None = None  # test rows, where scoring them takes longer than the fit


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
    pixels = reference("faces/yaleb_32x32.npz")["images"]
    blocks = pixels.reshape(-1, size, 32 // size, size, 32 // size) / 255
    return blocks.mean(axis=(2, 4)).reshape(len(blocks), -1)


def patches():
    found = make_patches(images(), 8, 2000, N_FEATURES, n_test=500, random_state=0)
    return found.X_train, found.X_test


def stored(name, parts=("train",)):
    return np.vstack([binary(name, part) for part in parts]), binary(name, "test")


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
    "binary digits": lambda: split(digits(), 450),
    **{name: partial(stored, name) for name in ("mushrooms", "dna", "nltcs", "mnist")},
    "all of mnist": partial(stored, "mnist", ("train", "valid")),
}


@functools.cache
def data(name):
    """Training and test rows."""
    return DATA[name]()


# ---- models
def fitted(model, parameters, X, seed):
    return model(**parameters, random_state=seed, n_jobs=1).fit(X)


def lines(model, names, settings, fixed=None, n_scored=None):
    """Entries of a model for every data set and setting; `fixed` are parameters of all of them."""
    return {
        f"{model.__name__}, {name}, {setting}": Entry(
            name, partial(fitted, model, {**(fixed or {}), **parameters}), n_scored
        )
        for name, (setting, parameters) in itertools.product(names, settings.items())
    }


CONSTANT, AVERAGE = "constant rate", "average"


def rbms():
    """64 hidden units, of MNIST 16, and one of the size that is published."""
    rate = {"learning_rate": 0.05}
    settings = {
        CONSTANT: {"average": False, **rate},
        AVERAGE: {"average": True, **rate},
        "average, 50 chains": {"average": True, "n_chains": 50, **rate},
    }
    sizes = {"binary digits": (64, 60), "mushrooms": (64, 60), "dna": (64, 60)}
    sizes |= {"nltcs": (64, 20), "mnist": (16, 5)}
    found = {}
    for name, (n_components, n_iter) in sizes.items():
        fixed = {"n_components": n_components, "n_iter": n_iter}
        found |= lines(BernoulliRBM, [name], settings, fixed)
    large = {
        "n_components": 500,
        "n_iter": 200,
        "learning_rate": 0.02,
        "learning_rate_schedule": "linear",
        "batch_size": 20,
        "n_chains": 50,
        "weight_decay": 0.0005,
        "average": True,
        "partition_estimator": AIS(n_temperatures=10_000),
    }
    return found | lines(BernoulliRBM, ["all of mnist"], {"500 units, 200 passes": large})


def entries():
    """Lines by their names."""
    online = {"learning_method": "online"}
    of_texts = {
        "batch, 10 passes (the default)": {},
        "batch, 50 passes": {"max_iter": 50},
        "online, 10 passes": online,
        "online, 10 passes, learning_decay=0.9": {**online, "learning_decay": 0.9},
        "online, 10 passes, tempering": {**online, "tempering": "annealed"},
        "online, 50 passes": {**online, "max_iter": 50},
        "gibbs, 100 passes": {"learning_method": "gibbs", "max_iter": 100},
        "gibbs, 500 passes": {"learning_method": "gibbs", "max_iter": 500},
    }
    of_mixtures = {
        "default": {},
        "n_moves=0": {"n_moves": 0},
        "n_moves=0, n_init=20": {"n_moves": 0, "n_init": 20},
        'tempering="annealed"': {"tempering": "annealed"},
    }
    one = {"default": {}}
    trained = {**one, 'algorithm="mpf"': {"algorithm": "mpf"}}
    complete = {"6 experts": {}, '6 experts, algorithm="ml"': {"algorithm": "ml"}}
    of_draws = {**one, "n_draws=4": {"n_draws": 4}}
    pixels = ("digits, 64 pixels", "faces, 64 pixels", "shapes")
    whitened = ("digits", "faces", "patches")
    twice = {"n_components": 2 * N_FEATURES}  # so that log Z is estimated
    both = {"n_content": N_FEATURES, "n_style": N_FEATURES}
    topics = ("AP", "newsgroups", "NIPS")
    return (
        rbms()
        | lines(LatentDirichletAllocation, topics, of_texts, {"n_components": 20})
        | lines(FactorialMixture, pixels, of_mixtures, {"n_components": 8})
        | lines(ProductOfExperts, whitened, trained, twice)
        | lines(ProductOfExperts, whitened, complete)
        | lines(MeanCovarianceRBM, ("digits", "faces"), trained)
        | lines(LinearGenerativeModel, ("digits", "patches"), of_draws, twice, 50)
        | lines(BilinearGenerativeModel, ("digits", "patches"), one, both, 16)
    )


# ---- measuring
def run(name, seed):
    """One fit, and what it gives for the test rows."""
    entry = entries()[name]
    train, test = data(entry.data)
    test = test[: entry.n_scored]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.process_time()
        model = entry.fit(train, seed)
        seconds = time.process_time() - began
        interval = model.score_interval(test)
    result = model.partition_estimator_.result_
    record = {
        "data": entry.data,
        "log_likelihood": interval.mean,
        "combined": interval.combined[1] - interval.combined[0],
        "of log Z": float(result.diagnostics.get("mean_std_error", result.std_error)),
        "trusted": bool(interval.converged),
        "seconds": seconds,
    }
    return record | (substitutes(model, test) if isinstance(model, BernoulliRBM) else {})


SUBSTITUTES = ("reconstruction", "scikit-learn's score", "pseudo-likelihood")


def substitutes(model, X_test):
    """What is used in place of a likelihood, higher is better."""
    theirs = neural_network.BernoulliRBM(random_state=0)
    theirs.components_ = model.components_
    theirs.intercept_visible_ = model.intercept_visible_
    theirs.intercept_hidden_ = model.intercept_hidden_
    reconstructed = expit(model.transform(X_test) @ model.components_ + model.intercept_visible_)
    values = (
        -np.mean(np.sum((reconstructed - X_test) ** 2, axis=1)),
        theirs.score_samples(X_test).mean(),
        model.pseudo_log_likelihood(X_test).mean(),
    )
    return dict(zip(SUBSTITUTES, map(float, values)))


# ---- tables
def print_table(records):
    columns = "test log-likelihood", "SD", "of it log Z", "combined", "CPU seconds a fit"
    table("model, data, setting", "seeds (not trusted)", *columns)
    for (name,), runs in groups(records, "name").items():
        trusted = [each for each in runs if each["trusted"]]
        values = np.array([each["log_likelihood"] for each in trusted])
        if len(values) < 2:
            continue
        of_log_z = np.sqrt(np.mean([each["of log Z"] ** 2 for each in trusted]))
        width = np.mean([each["combined"] for each in trusted])
        numbers = (values.std(ddof=1), of_log_z, width)
        seconds = np.median([each["seconds"] for each in runs])
        seeds = f"{len(values)} ({len(runs) - len(values)})"
        row(name, seeds, f"{values.mean():.3f}", *(f"{n:.3f}" for n in numbers), f"{seconds:.2f}")


def print_substitutes(records):
    """How often a substitute says the opposite of the log-likelihood, of fits that are both
    trusted.
    """
    table("data", "pairs", "gain of averages", *(f"wrong by {name}" for name in SUBSTITUTES))
    of_rbms = [each for each in records if SUBSTITUTES[0] in each and each["trusted"]]
    for (name,), runs in groups(of_rbms, "data").items():
        by_setting = {(each["name"].split(", ", 2)[2], each["seed"]): each for each in runs}
        seeds = [seed for setting, seed in by_setting if setting == CONSTANT]
        pairs = [(by_setting[CONSTANT, s], by_setting.get((AVERAGE, s))) for s in seeds]
        pairs = [(last, average) for last, average in pairs if average]
        if not pairs:
            continue
        gains = {
            key: np.array([average[key] - last[key] for last, average in pairs])
            for key in ("log_likelihood", *SUBSTITUTES)
        }
        gain = gains.pop("log_likelihood")
        wrong = (np.sum((each > 0) != (gain > 0)) for each in gains.values())
        row(name, len(pairs), f"{gain.mean():.2f}", *wrong)


def main():
    args = options(__doc__, "training_seeds.jsonl", 10, fits=entries())
    tasks = [{"name": name, "seed": seed} for seed in args.seeds for name in args.fits]
    records = [each for each in measured(args.results, tasks, run) if each["name"] in args.fits]
    print_table(records)
    print_substitutes(records)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
