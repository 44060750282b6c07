"""Do estimators cover on models of every kind that nobody tuned to?

    python tests/benchmarks/fresh_models.py [--seeds 10] [--kinds WORD ...] [--estimators WORD ...]
        [--results fresh_models.jsonl]

Every seed makes a model of each kind, on data that are drawn here, with sizes of its own. RBMs are
trained by their defaults, but "RBM, sharp" has learning rates, batches and passes of its own, and
some weights times 1.5. Parts that are on only together, glasses and modes within others are drawn.

"region" is an RBM to which a part of its mass was added that its base does not cover. pattern: one
hidden unit more with weights of +-3; behind decoys: ten units more have hardly any mass, but rule
random starts, and a row of the pattern is among those that training has left; rich: one unit more
opens a region where ten further ones stay free; holes: four to eight units of 2 to 3 % each; none:
the RBM as it is.

All estimators run with their defaults, those of `SHORT` if they are named, where they are of use.
The truth is enumerated or in closed form. A run that has missed a region is made again from a base
that covers it, as for a user. Every run is appended to the results as it ends, and an interrupted
benchmark goes on where it stopped. Prints Markdown.
"""

from __future__ import annotations

import functools
import math
import sys
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from measure import chosen, judged, measured, options, print_coverage
from scipy.optimize import brentq
from scipy.special import expit, softmax
from sklearn.datasets import load_digits
from sklearn.neural_network import BernoulliRBM as OneStepRBM

import sklpf
from sklpf import Gaussian, GeometricPath
from sklpf.models import RBMPath

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))
from known_problems import all_rows

ESTIMATORS = (
    "AIS",
    "HAIS",
    "RTS",
    "SMC",
    "ParallelTempering",
    "SAMS",
    "WangLandau",
    "MarkovMixture",
)
SHORT = {
    "ParallelTempering, 512 sweeps": sklpf.ParallelTempering(n_sweeps=512),
    "ParallelTempering, 128 sweeps": sklpf.ParallelTempering(n_sweeps=128),
    "RTS, 1000 sweeps": sklpf.RTS(n_sweeps=1000),
    "SAMS, 1000 sweeps": sklpf.partition.SAMS(n_sweeps=1000),
    "WangLandau, 1000 sweeps": sklpf.partition.WangLandau(n_sweeps=1000),
}


# ---- binary data
def prototypes(rng):
    """Patterns with noise, some of them rare."""
    n_units = int(rng.integers(24, 300))
    n_patterns = int(rng.integers(3, 12))
    patterns = rng.integers(2, size=(n_patterns, n_units))
    rows = patterns[rng.choice(n_patterns, size=1000, p=rng.dirichlet(np.ones(n_patterns)))]
    return rows ^ (rng.random(rows.shape) < rng.uniform(0.02, 0.12))


def bars(rng):
    """Bars in both directions on a square."""
    side = int(rng.integers(5, 17))
    on = rng.random((1000, 2, side)) < rng.uniform(0.1, 0.3)
    return (on[:, 0, :, np.newaxis] | on[:, 1, np.newaxis]).reshape(1000, -1)


def ratings(rng):
    """What users like: few factors, and items of unequal popularity."""
    n_items = int(rng.integers(30, 250))
    tastes = rng.normal(size=(1000, 4)) @ rng.normal(size=(4, n_items))
    return rng.random(tastes.shape) < expit(1.5 * tastes - rng.exponential(2, n_items))


def digits(rng):
    """Handwritten digits of some classes, some of them enlarged."""
    X, y = load_digits(return_X_y=True)
    classes = rng.choice(10, size=int(rng.integers(2, 10)), replace=False)
    images = X[np.isin(y, classes)].reshape(-1, 8, 8)
    if rng.random() < 0.5:
        images = images.repeat(2, axis=1).repeat(2, axis=2)
    return images.reshape(len(images), -1) > rng.uniform(3, 11)


def spins(rng):
    """A chain of units that like their neighbours."""
    n_units = int(rng.integers(20, 250))
    same = rng.random((1000, n_units)) < rng.uniform(0.75, 0.97)
    return (np.cumsum(~same, axis=1) + rng.integers(2, size=(1000, 1))) % 2


DATA = (prototypes, bars, ratings, digits, spins)


# ---- models: a path and its log Z
def enumerated(path):
    return path, sklpf.Exact().fit(path).log_partition_


def binary_rows(rng):
    return np.asarray(DATA[rng.integers(len(DATA))](rng), dtype=float)


def rbm(rng, seed):
    X = binary_rows(rng)
    n_components = int(rng.integers(4, 15))
    model = sklpf.BernoulliRBM(n_components, n_iter=int(rng.choice([20, 60])), random_state=seed)
    path = model.fit(X).path()
    return enumerated(path)


def categorical_rbm(rng, seed):
    """Latent classes, each with its own shares of the categories of every feature."""
    n_categories = rng.integers(2, 7, size=int(rng.integers(4, 20)))
    of_class = rng.integers(int(rng.integers(2, 7)), size=600)
    sharpness = rng.uniform(0.1, 1.0)
    X = np.empty((600, len(n_categories)), dtype=int)
    for column, n in enumerate(n_categories):
        shares = rng.dirichlet(np.full(n, sharpness), size=of_class.max() + 1)
        X[:, column] = (rng.random((600, 1)) > shares.cumsum(axis=1)[of_class, :-1]).sum(axis=1)
    n_components = int(rng.integers(4, 15))
    n_iter = int(rng.choice([20, 60]))
    path = sklpf.CategoricalRBM(n_components, n_iter=n_iter, random_state=seed).fit(X).path()
    return enumerated(path)


# ---- models that are drawn
def together(rng, seed):
    """An RBM with one to five hidden units more, of which most are on or off together: their states
    hold 4 to 30 % of Z.
    """
    n_visible = int(rng.integers(20, 100))
    n_plain = int(rng.integers(2, 7))
    n_more = int(rng.integers(1, 6))
    share = rng.choice([0.04, 0.07, 0.15, 0.3])
    pattern = rng.choice([-1.0, 1.0], n_visible) * (rng.random(n_visible) < rng.uniform(0.3, 1))
    plain = rng.normal(0, 0.3, (n_plain, n_visible))
    more = rng.uniform(1, 8) / n_more * pattern * rng.uniform(0.7, 1.3, (n_more, n_visible))
    components = np.vstack([plain, more])
    intercept = rng.normal(0, 0.5, n_visible) - 0.5
    biases = np.r_[rng.normal(size=n_plain), np.zeros(n_more)]
    hidden = all_rows(n_plain + n_more)
    height = np.logaddexp(0, hidden @ components + intercept).sum(axis=1) + hidden @ biases
    n_on = hidden[:, n_plain:].sum(axis=1)
    is_on = n_on > n_more / 2

    def excess(bias):
        at_bias = height + bias * n_on
        odds = np.logaddexp.reduce(at_bias[is_on]) - np.logaddexp.reduce(at_bias[~is_on])
        return odds - np.log(share / (1 - share))

    biases[n_plain:] = brentq(excess, -1e4, 1e4)
    path = sklpf.BernoulliRBM.from_parameters(components, intercept, biases).path()
    return enumerated(path)


def glass(rng, seed):
    """Frustrated couplings of 14 to 19 units: normal, of +-1 between few, or with heavy tails."""
    n = int(rng.integers(14, 20))
    scale = rng.uniform(3, 18) / np.sqrt(n)
    kinds = (
        rng.normal(0, scale, (n, n)),
        rng.uniform(1, 4) * rng.choice([-1, 1], (n, n)) * (rng.random((n, n)) < 3.5 / n),
        scale / 2 * rng.standard_t(2, (n, n)),
    )
    couplings = np.triu(kinds[rng.integers(3)], 1)
    couplings += couplings.T
    intercept = rng.normal(0, 0.3, n) - couplings.sum(axis=1) / 2
    path = sklpf.BoltzmannMachine.from_parameters(couplings, intercept).path()
    return enumerated(path)


def mode_within(rng, _):
    """A narrow normal density of 3 to 40 % within a wide one, in one to six dimensions."""
    d = int(rng.integers(1, 7))
    share = rng.uniform(0.03, 0.4)
    width = rng.uniform(0.05, 0.3)
    mean = rng.normal(size=d) * rng.uniform(0, 2)

    def parts(x):
        wide = np.log1p(-share) - np.sum(x**2, axis=1) / 2
        away = np.sum((x - mean) ** 2, axis=1) / width**2
        return np.stack([wide, np.log(share) - d * np.log(width) - away / 2])

    def log_density(x):
        return np.logaddexp.reduce(parts(x)) - d / 2 * math.log(2 * math.pi)

    def grad(x):
        wide, narrow = softmax(parts(x), axis=0)[:, :, np.newaxis]
        return -wide * x - narrow * (x - mean) / width**2

    base = Gaussian(np.zeros(d), rng.uniform(1, 3) ** 2)
    return GeometricPath(log_density, grad=grad, base=base), 0.0


# ---- RBMs with a region that training has missed
N_FREE = 10  # units of a rich region
SHARES = (0.05, 0.1, 0.2, 0.4)


def sharp_rbm(rng, seed):
    X = binary_rows(rng)
    kind = OneStepRBM if rng.random() < 0.5 else sklpf.BernoulliRBM
    rbm = kind(
        n_components=int(rng.integers(4, 15)),
        learning_rate=float(np.exp(rng.uniform(np.log(0.02), np.log(0.3)))),
        batch_size=int(rng.choice([10, 50])),
        n_iter=int(rng.choice([20, 60, 150])),
        random_state=seed,
    ).fit(X)
    parameters = rbm.components_, rbm.intercept_visible_, rbm.intercept_hidden_
    factor = rng.choice([1.0, 1.0, 1.5])
    mean = (X.sum(axis=0) + 1) / (len(X) + 2)
    scaled = (factor * array for array in parameters)
    path = sklpf.BernoulliRBM.from_parameters(*scaled, mean).path()
    return enumerated(path)


class Trained:
    """Parameters of an RBM of at most so many hidden units, its base means and some rows."""

    def __init__(self, rng, seed, most=14):
        X = binary_rows(rng)
        rbm = sklpf.BernoulliRBM(
            int(rng.integers(5, most + 1)),
            learning_rate=float(np.exp(rng.uniform(np.log(0.02), np.log(0.2)))),
            batch_size=int(rng.choice([10, 50])),
            n_iter=int(rng.choice([20, 60])),
            random_state=seed,
        ).fit(X)
        self.components, self.visible = rbm.components_, rbm.intercept_visible_
        self.hidden, self.mean, self.rows = rbm.intercept_hidden_, rbm.visible_mean_, X[:50] > 0.5

    def pattern(self, rng):
        return 2.0 * rng.integers(2, size=len(self.visible)) - 1

    def log_z(self, shift=0.0):
        path = RBMPath(self.components, self.visible + shift, self.hidden, self.mean)
        return sklpf.Exact().fit(path).log_partition_

    def with_units(self, weights, biases, mean):
        """A path with these hidden units more, and its log Z."""
        path = RBMPath(
            np.vstack([self.components, weights]),
            self.visible,
            np.r_[self.hidden, biases],
            np.clip(mean, 0.001, 0.999),
            starts=self.rows,
        )
        path.base_is_ours = True  # so that a second try is made, as for a model of our own
        return enumerated(path)

    def opened(self, weights, shares, decoys=()):
        """The path with units of which each opens a region that has its share."""
        plain = self.log_z()
        log_odds = np.log(shares / (1 - np.sum(shares)))
        log_odds = np.r_[log_odds, np.full(len(decoys), -12.0)]
        units = np.vstack([weights, *decoys])
        biases = log_odds + plain - [self.log_z(shift) for shift in units]
        mean = (1 - np.sum(shares)) * self.mean + shares @ expit(self.visible + weights)
        return self.with_units(units, biases, mean)


def no_region(rng, seed):
    model = Trained(rng, seed)
    return model.with_units(np.empty((0, len(model.visible))), [], model.mean)


def pattern_region(rng, seed):
    model = Trained(rng, seed)
    return model.opened(3 * model.pattern(rng)[np.newaxis], np.array([rng.choice(SHARES)]))


def region_behind_decoys(rng, seed):
    model = Trained(rng, seed, 9)
    weights = 3 * model.pattern(rng)[np.newaxis]
    model.rows = np.concatenate([model.rows, weights > 0])
    decoys = [30 * model.pattern(rng) for _ in range(10)]
    return model.opened(weights, np.array([rng.choice(SHARES)]), decoys)


def holes(rng, seed):
    model = Trained(rng, seed, 12)
    shares = rng.uniform(0.02, 0.03, size=int(rng.integers(4, 9)))
    return model.opened(np.array([3 * model.pattern(rng) for _ in shares]), shares)


def rich_region(rng, seed):
    model = Trained(rng, seed, 19 - N_FREE)
    share = rng.choice(SHARES)
    opening = 3 * model.pattern(rng)
    inside = model.visible + opening + 0.5 * model.components.sum(axis=0)

    # Each free unit undoes or turns round what the opening one does to a few visible units, and its
    # bias is such that it is on about half the time.
    free = np.zeros((N_FREE, len(opening)))
    strength = rng.uniform(0.7, 2)
    for unit, own in zip(free, np.array_split(rng.permutation(len(opening)), N_FREE)):
        own = own[: rng.integers(3, 9)]
        unit[own] = -strength * opening[own]
    log_odds = np.sum(np.logaddexp(0, inside + free) - np.logaddexp(0, inside), axis=1)
    model.components = np.vstack([model.components, free])
    model.hidden = np.r_[model.hidden, rng.normal(scale=0.5, size=N_FREE) - log_odds]
    bias = np.log(share / (1 - share)) + model.log_z() - model.log_z(opening)
    return model.with_units(opening, bias, (1 - share) * model.mean + share * expit(inside))


KINDS = {  # with a number of the seed
    "RBM": (rbm, 0),
    "categorical RBM": (categorical_rbm, 10),
    "RBM, units on together": (together, 11),
    "glass": (glass, 13),
    "mode within another": (mode_within, 14),
    "RBM, sharp": (sharp_rbm, 15),
    "region, pattern": (pattern_region, 16),
    "region, behind decoys": (region_behind_decoys, 17),
    "region, rich": (rich_region, 18),
    "region, holes": (holes, 19),
    "region, none": (no_region, 20),
}


@functools.lru_cache(maxsize=1)
def make(kind, seed):
    maker, number = KINDS[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return maker(np.random.default_rng([24, number, seed]), seed)


def run(seed, kind, estimator):
    sampler = SHORT[estimator] if estimator in SHORT else getattr(sklpf.partition, estimator)()
    try:
        return judged(sampler.set_params(random_state=seed), *make(kind, seed))
    except (TypeError, ValueError) as error:  # of no use for this kind of model
        return {"left out": str(error)}


def main():
    others = {"estimators": list(ESTIMATORS)}
    args = options(__doc__, "fresh_models.jsonl", 10, others, kinds=KINDS)
    estimators = chosen((*ESTIMATORS, *SHORT), args.estimators)
    runs = product(args.seeds, args.kinds, estimators)
    tasks = ({"seed": seed, "kind": kind, "estimator": name} for seed, kind, name in runs)
    records = measured(args.results, tasks, run)
    for names in (("kind", "estimator"), ("estimator",), ("kind",)):
        print_coverage(records, *names)


if __name__ == "__main__":
    main()
