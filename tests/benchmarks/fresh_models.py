"""Does every estimator cover on models of every kind that nobody tuned to?

    python tests/benchmarks/fresh_models.py [--seeds 10] [--kinds WORD ...] [--estimators WORD ...]
        [--results fresh_models.jsonl]

Every seed makes a model of each kind, on data that are drawn here, with sizes of its own; of models
with a log Z for each row three rows are scored that had no part in training. Models are trained by
their defaults, but for these:

- Parts that are on only together, glasses and modes within others are drawn.
- "RBM, sharp" has learning rates, batches and passes of its own, and some have weights times 1.5.
- "region" is an RBM to which a part of its mass was added that its base does not cover. pattern:
  one hidden unit more with weights of +-3; behind decoys: ten units more have hardly any mass, but
  rule random starts, and a row of the pattern is among those that training has left; rich: one unit
  more opens a region where ten further ones stay free; holes: four to eight units of 2 to 3 % each;
  none: the RBM as it is.

All estimators run with their defaults, those of `SHORT` if they are named. The truth is enumerated
or in closed form; of mean-covariance RBMs, linear and bilinear models it is the mean of two long
runs, whose standard error is added to the one that is judged. Estimators that a kind of model has
no use for are left out. A run that has missed a region is made again from a base that covers it, as
for a user. Every run is appended to the results as it ends, and an interrupted benchmark goes on
where it stopped. Prints Markdown.
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
from cliques import model_with_clique
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
    "BDMC",
    "RAISE",
    "ImportanceSampling",
    "BAR",
    "MBAR",
    "SteppingStone",
    "ThermodynamicIntegration",
    "LevelProcess",
    "LeftToRight",
)
SHORT = {
    "ParallelTempering, 512 sweeps": sklpf.ParallelTempering(n_sweeps=512),
    "ParallelTempering, 128 sweeps": sklpf.ParallelTempering(n_sweeps=128),
    "RTS, 1000 sweeps": sklpf.RTS(n_sweeps=1000),
    "SAMS, 1000 sweeps": sklpf.partition.SAMS(n_sweeps=1000),
    "WangLandau, 1000 sweeps": sklpf.partition.WangLandau(n_sweeps=1000),
}
N_ROWS = 3


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


# ---- models: a path and its log Z, with a standard error
def exact(path):
    return np.atleast_1d(sklpf.Exact().fit(path).log_partition_), 0.0


def long_run(path, estimator):
    """The mean and its standard error of two long runs that agree within four standard errors."""
    runs = [estimator.set_params(random_state=seed).fit(path).result_ for seed in (1, 2)]
    values = np.array([np.atleast_1d(run.log_partition) for run in runs])
    errors = np.array([np.atleast_1d(run.std_error) for run in runs])
    if np.any(np.abs(values[0] - values[1]) > 4 * np.hypot(*errors)):
        return None
    return values.mean(axis=0), np.hypot(*errors) / 2


def binary_rows(rng, n_columns=None):
    X = np.asarray(DATA[rng.integers(len(DATA))](rng), dtype=float)
    if n_columns is None:
        return X
    return X[:, rng.choice(X.shape[1], size=n_columns, replace=False)]


def real_rows(rng, n_columns):
    """Clusters, or few sources with heavy tails, standardised."""
    if rng.random() < 0.5:
        centres = 2 * rng.normal(size=(int(rng.integers(2, 6)), n_columns))
        X = centres[rng.integers(len(centres), size=600)] + rng.normal(size=(600, n_columns))
    else:
        n_sources = int(rng.integers(2, n_columns + 1))
        X = rng.laplace(size=(600, n_sources)) @ rng.normal(size=(n_sources, n_columns))
        X += 0.3 * rng.normal(size=X.shape)
    return (X - X.mean(axis=0)) / X.std(axis=0)


def rbm(rng, seed):
    X = binary_rows(rng)
    n_components = int(rng.integers(4, 15))
    model = sklpf.BernoulliRBM(n_components, n_iter=int(rng.choice([20, 60])), random_state=seed)
    path = model.fit(X).path()
    return path, exact(path)


def boltzmann_machine(rng, seed):
    path = sklpf.BoltzmannMachine(random_state=seed).fit(binary_rows(rng, 12)).path()
    return path, exact(path)


def gaussian_rbm(rng, seed):
    X = real_rows(rng, int(rng.integers(3, 12)))
    path = sklpf.GaussianRBM(int(rng.integers(3, 11)), random_state=seed).fit(X).path()
    return path, exact(path)


def factorial_mixture(rng, seed):
    X = real_rows(rng, int(rng.integers(4, 12)))
    path = sklpf.FactorialMixture(random_state=seed).fit(X[N_ROWS:]).path(X[:N_ROWS])
    return path, exact(path)


def lda(rng, seed):
    n_words = int(rng.integers(10, 40))
    topics = rng.dirichlet(np.full(n_words, 0.2), size=3)
    weights = rng.dirichlet(np.full(3, 0.3), size=150)
    lengths = rng.poisson(rng.uniform(8, 40), size=150) + 1
    X = np.array([rng.multinomial(n, w @ topics) for n, w in zip(lengths, weights)])
    n_topics = int(rng.integers(2, 4))
    model = sklpf.LatentDirichletAllocation(n_topics, random_state=seed).fit(X[N_ROWS:])
    path = model.path(X[:N_ROWS])
    return path, exact(path)


def product_of_experts(rng, seed):
    X = real_rows(rng, int(rng.integers(3, 12)))
    path = sklpf.ProductOfExperts(random_state=seed).fit(X).path()
    return path, exact(path)


def mean_covariance_rbm(rng, seed):
    X = real_rows(rng, int(rng.integers(3, 8)))
    path = sklpf.MeanCovarianceRBM(random_state=seed).fit(X).path()
    return path, long_run(path, sklpf.HAIS(1000, 3000))


def linear(rng, seed):
    """With Laplace sources, whose log p(x) has no closed form."""
    X = real_rows(rng, int(rng.integers(4, 12)))
    model = sklpf.LinearGenerativeModel(int(rng.integers(2, 5)), random_state=seed)
    path = model.fit(X[N_ROWS:]).path(X[:N_ROWS])
    return path, long_run(path, sklpf.HAIS(1000, 3000))


def bilinear(rng, seed):
    X = real_rows(rng, int(rng.integers(4, 8)))
    path = sklpf.BilinearGenerativeModel(random_state=seed).fit(X[N_ROWS:]).path(X[:N_ROWS])
    return path, long_run(path, sklpf.HAIS(1000, 3000))


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
    return path, exact(path)


class BentGaussians:
    """One to three Gaussians, bent along the first coordinate, which keeps volumes."""

    def __init__(self, rng):
        self.d = int(rng.integers(2, 7))
        n_parts = int(rng.integers(1, 4))
        self.means = rng.normal(size=(n_parts, self.d)) * rng.uniform(0, 2.5)
        self.scales = np.exp(rng.normal(size=(n_parts, self.d)) * 0.4)
        self.log_weights = np.log(rng.dirichlet(np.full(n_parts, 3.0)))
        self.bend = rng.uniform(0, 0.6)
        self.log_partition = float(rng.normal() * 5)

    def log_density(self, x):
        straight = np.array(x)
        straight[:, 1] -= self.bend * (x[:, 0] ** 2 - 1)
        away = (straight[:, np.newaxis] - self.means) / self.scales
        heights = self.log_weights - np.log(self.scales).sum(axis=1)
        parts = heights - np.sum(away**2, axis=2) / 2 - self.d / 2 * math.log(2 * math.pi)
        return self.log_partition + np.logaddexp.reduce(parts, axis=1)

    def grad(self, x):
        step = 1e-6
        sides = [
            [self.log_density(x + sign * step * axis) for axis in np.eye(self.d)]
            for sign in (1, -1)
        ]
        return (np.array(sides[0]) - np.array(sides[1])).T / (2 * step)


def density(rng, _):
    target = BentGaussians(rng)
    base = Gaussian(np.zeros(target.d), np.full(target.d, rng.uniform(3, 5) ** 2))
    path = GeometricPath(target.log_density, base=base, grad=target.grad)
    return path, (np.atleast_1d(target.log_partition), 0.0)


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
    return path, exact(path)


def clique(rng, seed):
    path = model_with_clique(1000 + seed, rng.choice([0.03, 0.04, 0.07, 0.15])).path()
    return path, exact(path)


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
    return path, exact(path)


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
    return GeometricPath(log_density, grad=grad, base=base), (np.zeros(1), 0.0)


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
    return path, exact(path)


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
        return path, exact(path)

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


KINDS = {
    "RBM": rbm,
    "Boltzmann machine": boltzmann_machine,
    "Gaussian RBM": gaussian_rbm,
    "factorial mixture": factorial_mixture,
    "LDA": lda,
    "product of experts": product_of_experts,
    "mean-covariance RBM": mean_covariance_rbm,
    "linear": linear,
    "bilinear": bilinear,
    "density": density,
    "categorical RBM": categorical_rbm,
    "RBM, units on together": together,
    "Boltzmann machine, clique": clique,
    "glass": glass,
    "mode within another": mode_within,
    "RBM, sharp": sharp_rbm,
    "region, pattern": pattern_region,
    "region, behind decoys": region_behind_decoys,
    "region, rich": rich_region,
    "region, holes": holes,
    "region, none": no_region,
}


@functools.lru_cache(maxsize=1)
def make(kind, seed):
    rng = np.random.default_rng([24, list(KINDS).index(kind), seed])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return KINDS[kind](rng, seed)


def run(seed, kind, estimator):
    """A record for each log Z; none without a truth, or where there is no use."""
    path, truth = make(kind, seed)
    if truth is None:
        return {"left out": "the long runs disagree"}
    sampler = SHORT[estimator] if estimator in SHORT else getattr(sklpf.partition, estimator)()
    if "random_state" in sampler.get_params():
        sampler.set_params(random_state=seed)
    try:
        return judged(sampler, path, *truth)
    except (TypeError, ValueError) as error:
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
