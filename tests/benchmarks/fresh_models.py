"""Does every estimator cover on models of every kind that nobody tuned to?

    python tests/benchmarks/fresh_models.py RESULTS [--models 10] [--first 0] [--kinds RBM ...]
    [--estimators AIS ...] [--report]

Every model is trained here, by its defaults, on data that are drawn here, with sizes of its own; of
models with a log Z for each row three rows are scored that had no part in training. Those of
`MADE_TO_BE_HARD` are drawn: parts that are on only together, glasses, modes within others. All
estimators run with their defaults. The truth is enumerated or in closed form; of mean-covariance
RBMs, linear and bilinear models it is the mean of two long runs, whose standard error is added to
the one that is judged. Estimators that a kind of model has no use for are left out. Every run is
appended to the results as it ends, and an interrupted benchmark goes on where it stopped. Prints
Markdown. A run is one log Z, and wrong if it is converged and beyond three standard errors.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.optimize import brentq
from scipy.special import softmax
from scipy.stats import beta
from short_runs import DATA
from sklearn.exceptions import ConvergenceWarning

import sklpf
from sklpf import Gaussian, GeometricPath

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
N_ROWS = 3


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


MADE_TO_BE_HARD = {
    "RBM, units on together": together,
    "Boltzmann machine, clique": clique,
    "glass": glass,
    "mode within another": mode_within,
}
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
    **MADE_TO_BE_HARD,
}


@functools.lru_cache(maxsize=1)
def make(kind: str, model: int):
    rng = np.random.default_rng([24, list(KINDS).index(kind), model])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return KINDS[kind](rng, model)


# ---- runs
def run(kind: str, model: int, name: str) -> list[dict]:
    """One row of the results for each log Z; none without a truth, or where there is no use."""
    path, truth = make(kind, model)
    key = {"kind": kind, "model": model, "estimator": name}
    if truth is None:
        return [key | {"left out": "the long runs disagree"}]
    log_partition, reference_error = truth
    started = time.process_time()
    estimator = getattr(sklpf.partition, name)()
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=model)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            result = estimator.fit(path).result_
    except (TypeError, ValueError) as error:
        return [key | {"left out": str(error)}]
    seconds = time.process_time() - started
    low, high = (np.atleast_1d(end) for end in result.interval())
    off = np.atleast_1d(result.log_partition) - log_partition
    error = np.hypot(np.atleast_1d(result.std_error), reference_error)
    slack = 1.96 * np.broadcast_to(reference_error, off.shape)
    covers = (low - slack <= log_partition) & (log_partition <= high + slack)
    converged = np.broadcast_to(estimator.converged_, off.shape)
    alarms = sorted({alarm.kind for alarm in result.alarms})
    rows = {"off": off, "error": error, "covers": covers, "converged": converged}
    rows = [dict(zip(rows, (value.item() for value in row))) for row in zip(*rows.values())]
    return [key | row | {"alarms": alarms, "seconds": seconds} for row in rows]


def read(path: str) -> list[dict]:
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def execute(args) -> None:
    done = {(row["kind"], row["model"], row["estimator"]) for row in read(args.results)}
    with open(args.results, "a") as file:
        for model in range(args.first, args.first + args.models):
            for kind in args.kinds or KINDS:
                for name in args.estimators or ESTIMATORS:
                    if (kind, model, name) not in done:
                        rows = run(kind, model, name)
                        file.write("".join(json.dumps(row) + "\n" for row in rows))
                        file.flush()


# ---- tables
def report(rows: list[dict]) -> None:
    rows = [row for row in rows if "left out" not in row]
    for key, names in (("estimator", ESTIMATORS), ("kind", KINDS)):
        print(f"| {key} | models | runs | converged | cover | > 3 SE | of runs, at most | > 5 SE |")
        print("|" + "---|" * 8)
        for name in names:
            print_row(name, [row for row in rows if row[key] == name])
        print_row("all", rows)
        print()


def print_row(name: str, rows: list[dict]) -> None:
    """With the upper end of a one-sided 95 % interval for the share of wrong runs."""
    if not rows:
        return
    converged = [row for row in rows if row["converged"]]
    far = np.array([abs(row["off"]) / max(row["error"], 1e-12) for row in converged])
    n_models = len({(row["kind"], row["model"]) for row in rows})
    n_wrong = int(np.sum(far > 3))
    most = beta.ppf(0.95, n_wrong + 1, len(rows) - n_wrong)
    n_cover = sum(row["covers"] for row in converged)
    share = f" ({n_cover / len(converged):.0%})" if converged else ""
    print(
        f"| {name} | {n_models} | {len(rows)} | {len(converged)} | {n_cover}{share} | {n_wrong} |"
        f" {most:.1%} | {np.sum(far > 5)} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results")
    parser.add_argument("--models", type=int, default=10)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--kinds", nargs="*", default=[], choices=KINDS)
    parser.add_argument("--estimators", nargs="*", default=[], choices=ESTIMATORS)
    parser.add_argument("--report", action="store_true")
    args = parser.parse_args()
    if not args.report:
        execute(args)
    report(read(args.results))


if __name__ == "__main__":
    main()
