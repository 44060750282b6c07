"""log Z of public targets for which nobody states one, by two estimators that share nothing.

    python tests/benchmarks/public_targets.py [--folder FOLDER] [--targets WORD ...]
        [--results public_targets.jsonl] [--csv doc/benchmarks/public_targets.csv]

Definitions are those of the benchmarks that use the targets (Inference Gym; Blessing et al. 2024,
arXiv:2406.07423); what they leave open is said in the table. scikit-learn holds the breast cancer
data; the seeds and the Brownian motion stand below. FOLDER holds the others, with the names that
they have in the UCI repository (german.data-numeric, ionosphere.data, sonar.all-data), and the pine
saplings as pines.csv (Moller et al. 1998; number, x and y in the unit square). Targets without data
are passed over. Two estimators run on each, or one beside quadrature. Every run is appended to the
results file as it ends.
"""

from __future__ import annotations

import csv
import functools
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from measure import LOG_2PI, groups, measured, options, row
from scipy.special import betaln, expit, gammaln, logsumexp
from sklearn.datasets import load_breast_cancer

from sklpf import (
    HAIS,
    SMC,
    AdaptiveSMC,
    Gaussian,
    GeometricPath,
    ParallelTempering,
)
from sklpf.transitions import HMC

SEEDS = np.array(
    [
        [10, 23, 23, 26, 17, 5, 53, 55, 32, 46, 10, 8, 10, 8, 23, 0, 3, 22, 15, 32, 3],
        [39, 62, 81, 51, 39, 6, 74, 72, 51, 79, 13, 16, 30, 28, 45, 4, 12, 41, 30, 51, 7],
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
        [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1],
    ]
)  # germinated, seeds, variety, extract (Crowder 1978)
CELLS = [(0, 0), (1, 0), (0, 1), (1, 1)]  # variety, extract
# Inference Gym's observations of its Brownian motion at times 0 to 9 and 20 to 29
BROWNIAN_TIMES = np.r_[0:10, 20:30]
BROWNIAN = np.array(
    [
        *[0.21592641, 0.118771404, -0.07945447, 0.037677474, -0.27885845],
        *[-0.1484156, -0.3250906, -0.22957903, -0.44110894, -0.09830782],
        *[-0.8786016, -0.83736074, -0.7384849, -0.8939254, -0.7774566],
        *[-0.70238715, -0.87771565, -0.51853573, -0.6948214, -0.6202789],
    ]
)


class Target(NamedTuple):
    """A log density of points (n, d) with its gradient, and quadrature's log Z where there is
    one.
    """

    n_dimensions: int
    definition: str
    log_density: object
    grad: object
    scale: float = 1.0  # of the prior, N(0, scale^2 I), from which particles begin
    quadrature: object = None
    value_and_grad: object = None  # where both share work


# ---- regressions
def logistic(X, is_one, scale, definition):
    """Weights N(0, scale^2)."""
    n, d = X.shape
    sign = np.where(is_one, 1.0, -1.0)
    signed = X * sign[:, np.newaxis]

    def log_density(w):
        log_prior = -0.5 * np.sum((w / scale) ** 2, axis=1) - d * (np.log(scale) + LOG_2PI / 2)
        return log_prior - np.sum(np.logaddexp(0, -w @ signed.T), axis=1)

    def grad(w):
        return expit(-w @ signed.T) @ signed - w / scale**2

    return Target(d, definition, log_density, grad, scale)


def with_constant(X):
    return np.column_stack([np.ones(len(X)), X])


def standardised(X):
    return (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)


def breast_cancer(folder):
    X, y = load_breast_cancer(return_X_y=True)
    text = (
        "logistic regression, 569 rows of scikit-learn's breast cancer data, features divided by"
        " their standard deviation and a constant, weights N(0, 10^2)"
    )
    return logistic(with_constant(X / X.std(axis=0)), y == 1, 10.0, text)


def german(folder):
    rows = np.loadtxt(folder / "german.data-numeric")
    return rows[:, :-1], rows[:, -1] == 2


def german_credit(folder):
    X, y = german(folder)
    text = (
        "logistic regression, 1000 rows of german.data-numeric, features divided by their standard"
        " deviation and a constant, weights N(0, 10^2)"
    )
    return logistic(with_constant(X / X.std(axis=0)), y, 10.0, text)


def from_uci(folder, name, label, definition):
    rows = np.loadtxt(folder / name, delimiter=",", dtype=str)
    X = rows[:, :-1].astype(float)
    return logistic(with_constant(standardised(X)), rows[:, -1] == label, 1.0, definition)


def ionosphere(folder):
    text = (
        "logistic regression, 351 rows of ionosphere.data, standardised features (one is constant:"
        " 0) and a constant, weights N(0, 1)"
    )
    return from_uci(folder, "ionosphere.data", "g", text)


def sonar(folder):
    text = (
        "logistic regression, 208 rows of sonar.all-data, standardised features and a constant,"
        " weights N(0, 1)"
    )
    return from_uci(folder, "sonar.all-data", "M", text)


# ---- hierarchies
def seeds(folder):
    """Coordinates: log tau, four coefficients, effects in units of 1 / sqrt(tau)."""
    ones, total, variety, extract = SEEDS.astype(float)
    design = np.column_stack([np.ones(21), variety, extract, variety * extract])
    log_ways = -np.log(total + 1) - betaln(ones + 1, total - ones + 1)
    constant = np.sum(log_ways) + 0.01 * np.log(0.01) - gammaln(0.01)

    def parts(x):
        width = np.exp(-0.5 * x[:, :1])
        return width, x[:, 1:5] @ design.T + width * x[:, 5:]

    def log_density(x):
        with np.errstate(over="ignore"):
            _, eta = parts(x)
            log_tau = 0.01 * x[:, 0] - 0.01 * np.exp(x[:, 0])
            log_prior = -0.5 * np.sum(x[:, 1:5] ** 2, axis=1) / 100 - 4 * np.log(10)
        log_prior += log_tau - 0.5 * np.sum(x[:, 5:] ** 2, axis=1) - 25 * LOG_2PI / 2
        return constant + log_prior + np.sum(ones * eta - total * np.logaddexp(0, eta), axis=1)

    def grad(x):
        with np.errstate(over="ignore"):
            width, eta = parts(x)
            slope = ones - total * expit(eta)
            of_tau = 0.01 - 0.01 * np.exp(x[:, 0])
        of_tau -= 0.5 * np.sum(slope * width * x[:, 5:], axis=1)
        return np.column_stack([of_tau, slope @ design - x[:, 1:5] / 100, slope * width - x[:, 5:]])

    def quadrature(n=25):
        """Over log tau and the logits of the four cells; effects by Gauss and Hermite."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(120)
        log_weights = np.log(weights) - LOG_2PI / 2
        log_taus, step = np.linspace(-6, 14, 101, retstep=True)
        cells = [np.flatnonzero((variety == a) & (extract == b)) for a, b in CELLS]
        inverse = np.linalg.inv(design[[each[0] for each in cells]])
        values = []
        for log_tau in log_taus:
            width = np.exp(-0.5 * log_tau)
            grids, log_cells = [], []
            for each in cells:
                rate = np.log(ones[each].sum() / (total[each] - ones[each]).sum())
                half = 8 * np.sqrt(4 / total[each].sum() + width**2 / len(each)) + 0.2
                grid = np.linspace(rate - half, rate + half, n)
                eta = grid[:, np.newaxis, np.newaxis] + width * nodes
                of_rows = ones[each, np.newaxis] * eta - total[each, np.newaxis] * np.logaddexp(
                    0, eta
                )
                log_cell = logsumexp(of_rows + log_weights, axis=2).sum(axis=1)
                grids.append(grid)
                log_cells.append(log_cell + np.log(grid[1] - grid[0]))
            eta = np.stack(np.meshgrid(*grids, indexing="ij"), axis=-1)
            squares = np.sum((eta @ inverse.T) ** 2, axis=-1)
            log_f = -0.5 * squares / 100 - 4 * (np.log(10) + LOG_2PI / 2)
            for axis, log_cell in enumerate(log_cells):
                log_f = log_f + np.expand_dims(log_cell, tuple(k for k in range(4) if k != axis))
            values.append(logsumexp(log_f) + 0.01 * log_tau - 0.01 * np.exp(log_tau))
        return float(logsumexp(values) + np.log(step) + constant)

    text = (
        "21 plates of seeds (Crowder 1978), binomial with logit a_0 + a_1 variety + a_2 extract +"
        " a_12 variety extract + b_i, a ~ N(0, 10^2), b_i ~ N(0, 1 / tau), tau ~ Gamma(0.01, rate"
        " 0.01)"
    )
    return Target(26, text, log_density, grad, 3.0, quadrature)


def brownian(folder):
    """Coordinates: log scales over 2, and the steps in units of their scale."""

    def log_density(x):
        with np.errstate(over="ignore", invalid="ignore"):
            places = np.exp(2 * x[:, :1]) * np.cumsum(x[:, 2:], axis=1)
            off = (BROWNIAN - places[:, BROWNIAN_TIMES]) * np.exp(-2 * x[:, 1:2])
        log_prior = -0.5 * np.sum(x**2, axis=1) - 32 * LOG_2PI / 2
        return log_prior - 0.5 * np.sum(off**2, axis=1) - 20 * (2 * x[:, 1] + LOG_2PI / 2)

    def grad(x):
        with np.errstate(over="ignore", invalid="ignore"):
            step = np.exp(2 * x[:, :1])
            places = step * np.cumsum(x[:, 2:], axis=1)
            off = (BROWNIAN - places[:, BROWNIAN_TIMES]) * np.exp(-2 * x[:, 1:2])
            pull = np.zeros_like(places)
            pull[:, BROWNIAN_TIMES] = off * np.exp(-2 * x[:, 1:2])
            slope = -x
            slope[:, 0] += 2 * np.sum(pull * places, axis=1)
            slope[:, 1] += 2 * np.sum(off**2, axis=1) - 40
            slope[:, 2:] += step * np.cumsum(pull[:, ::-1], axis=1)[:, ::-1]
        return slope

    def quadrature():
        covariance = np.minimum.outer(BROWNIAN_TIMES + 1, BROWNIAN_TIMES + 1)
        values, vectors = np.linalg.eigh(covariance)
        squares = (vectors.T @ BROWNIAN) ** 2
        line, step = np.linspace(-5, 3, 801, retstep=True)
        first, second = (each[..., np.newaxis] for each in np.meshgrid(line, line))
        variances = np.exp(4 * first) * values + np.exp(4 * second)
        log_f = -0.5 * np.sum(squares / variances + np.log(variances) + LOG_2PI, axis=2)
        log_f -= 0.5 * (first**2 + second**2)[..., 0] + LOG_2PI
        return float(logsumexp(log_f) + 2 * np.log(step))

    text = (
        "Inference Gym's BrownianMotionUnknownScalesMissingMiddleObservations: 30 places, 20"
        " observed, log of both scales N(0, 2^2)"
    )
    return Target(32, text, log_density, grad, 1.0, quadrature)


# ---- Cox processes
def pines(n, folder):
    """A log-Gaussian Cox process on n x n cells, in coordinates that are N(0, 1) under the Gaussian
    next to the posterior.

    With log rates f, fields z = (f - prior mean) / Cholesky factor, this Gaussian's means f0 and
    z0, and rates r that it expects: its precision is I + factor^T r factor, and z0 = factor^T
    (counts - r). So |z|^2 = |y|^2 - r (f - f0)^2 + 2 (counts - r) (f - f0) + |z0|^2.
    """
    points = np.genfromtxt(folder / "pines.csv", delimiter=",")[1:, 1:]
    cells = np.minimum(np.floor(points * n).astype(int), n - 1)
    counts = np.zeros((n, n))
    np.add.at(counts, tuple(cells.T), 1)
    counts = counts.ravel()
    places = np.stack(np.meshgrid(np.arange(n), np.arange(n), indexing="ij"), axis=-1)
    places = places.reshape(-1, 2)
    distances = np.linalg.norm(places[:, np.newaxis] - places, axis=2)
    covariance = 1.91 * np.exp(-33 * distances / n)
    d = n * n
    middle, rates = variational_gaussian(covariance, np.log(126) - 1.91 / 2, counts)
    factor = np.linalg.cholesky(covariance)
    root = np.linalg.cholesky(np.eye(d) + factor.T @ (rates[:, np.newaxis] * factor))
    factor = np.linalg.solve(root, factor.T).T
    constant = counts @ middle - 0.5 * (counts - rates) @ covariance @ (counts - rates)
    constant -= np.sum(np.log(np.diag(root))) + d * LOG_2PI / 2

    def value_and_grad(y):
        off = y @ factor.T
        with np.errstate(over="ignore"):
            now = np.exp(middle + off) / d
        value = np.sum(rates * off + 0.5 * rates * off**2 - now, axis=1) + constant
        slope = (rates + rates * off - now) @ factor
        return value - 0.5 * np.sum(y**2, axis=1), slope - y

    text = (
        f"log-Gaussian Cox process of 126 pine saplings on {n} x {n} cells: covariance 1.91 exp(-33"
        f" distance / {n}) with distances in cells, mean log 126 - 1.91 / 2, log likelihood: sum of"
        f" count x log rate - exp(log rate) / {d}"
    )
    log_density, grad = (functools.partial(_part, value_and_grad, i) for i in (0, 1))
    return Target(d, text, log_density, grad, value_and_grad=value_and_grad)


def _part(function, i, x):
    return function(x)[i]


def variational_gaussian(covariance, prior_mean, counts):
    """Means of the log rates, and expected rates, under the Gaussian with the least divergence from
    the posterior of a Cox process (steps half as long as Newton's).
    """
    d = len(counts)
    mean, variance = np.full(d, prior_mean), np.ones(d)
    for _ in range(200):
        rates = np.exp(mean + variance / 2) / d
        posterior = np.linalg.solve(covariance + np.diag(1 / rates), covariance)
        posterior = covariance - covariance @ posterior
        target = prior_mean + posterior @ (rates * (mean - prior_mean) + counts - rates)
        step = 0.5 * (target - mean)
        mean = mean + step
        variance = 0.5 * (variance + np.diag(posterior))
        if np.abs(step).max() < 1e-10:
            break
    return mean, rates


TARGETS = {
    "breast cancer": breast_cancer,
    "German credit": german_credit,
    "ionosphere": ionosphere,
    "sonar": sonar,
    "seeds": seeds,
    "Brownian motion": brownian,
    "Cox process, 30 x 30": functools.partial(pines, 30),
    "Cox process, 40 x 40": functools.partial(pines, 40),
}


# ---- estimators
def in_chunks(function, size=5000):
    def chunked(x):
        starts = range(0, len(x), size)
        return np.concatenate([function(x[start : start + size]) for start in starts])

    return chunked


def path_from(target, base):
    log_density = in_chunks(target.log_density)
    if target.value_and_grad is not None:
        return GeometricPath(log_density, value_and_grad=target.value_and_grad, base=base)
    return GeometricPath(log_density, grad=in_chunks(target.grad), base=base)


def at_mode(target):
    start = np.zeros(target.n_dimensions)
    return Gaussian.at_mode(target.log_density, start, grad=target.grad)


def prior(target):
    return Gaussian(np.zeros(target.n_dimensions), target.scale**2)


def unit(target):
    return Gaussian(np.zeros(target.n_dimensions), 1.0)


def wider(target):
    return Gaussian(np.zeros(target.n_dimensions), 1.1)


DENSE = HMC(metric="dense")
METHODS = {
    "HAIS from the mode": (at_mode, HAIS(n_temperatures=50_000, transition=DENSE)),
    "HAIS from a variational Gaussian": (unit, HAIS(n_temperatures=50_000)),
    "SMC from a wider Gaussian": (wider, SMC(n_temperatures=150, transition=HMC())),
    "ParallelTempering": (prior, ParallelTempering(n_sweeps=65_536, transition=DENSE)),
    "AdaptiveSMC from the mode": (at_mode, AdaptiveSMC(500, max_sweeps=20_000_000)),
}


def methods_of(name, target):
    if target.quadrature is not None:
        return ["quadrature", "ParallelTempering"]
    if target.value_and_grad is not None:
        return ["HAIS from a variational Gaussian", "SMC from a wider Gaussian"]
    return ["HAIS from the mode", "AdaptiveSMC from the mode"]


def run(target, folder, method):
    made = make(target, folder)
    started = time.process_time()
    if method == "quadrature":
        found = {"log_z": made.quadrature(), "std_error": 0.0, "converged": True}
        return found | {"seconds": time.process_time() - started}
    base, estimator = METHODS[method]
    estimator.set_params(random_state=list(METHODS).index(method))
    if "tol" in estimator.get_params():  # beside quadrature it is a check
        estimator.set_params(tol=0.01 if made.quadrature is None else 0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = estimator.fit(path_from(made, base(made))).result_
    return {
        "log_z": result.log_partition,
        "std_error": float(result.std_error),
        "converged": bool(result.converged),
        "alarms": [str(alarm) for alarm in result.alarms],
        "seconds": time.process_time() - started,
    }


@functools.lru_cache(maxsize=1)
def make(target, folder):
    return TARGETS[target](Path(folder))


def line_of(name, records, folder):
    """Quadrature's log Z, or the mean of both weighted by precision."""
    precisions = [max(each["std_error"], 1e-6) ** -2.0 for each in records]
    made = make(name, folder)
    line = {"target": name, "dimension": made.n_dimensions, "definition": made.definition}
    line["log_z"] = f"{np.average([each['log_z'] for each in records], weights=precisions):.4f}"
    line["std_error"] = f"{np.sum(precisions) ** -0.5:.4f}"
    for i, each in enumerate(records, 1):
        line[f"estimator_{i}"] = each["method"] + ("" if each["converged"] else " (flagged)")
        line[f"log_z_{i}"] = f"{each['log_z']:.4f}"
        line[f"std_error_{i}"] = f"{each['std_error']:.4f}"
        line[f"seconds_{i}"] = f"{each['seconds']:.0f}"
    return line


def main():
    others = {"folder": ".", "csv": None}
    args = options(__doc__, "public_targets.jsonl", 1, others, targets=TARGETS)
    tasks = []
    for name in args.targets:
        try:
            methods = methods_of(name, make(name, args.folder))
        except FileNotFoundError as error:
            print(f"{name}: {error}")
            continue
        fixed = {"target": name, "folder": args.folder}
        tasks += [fixed | {"method": method} for method in methods]
    records = groups(measured(args.results, tasks, run), "target")
    lines = [line_of(name, found[:2], args.folder) for (name,), found in records.items()]
    if args.csv and lines:
        with open(args.csv, "w", newline="") as file:
            writer = csv.DictWriter(file, list(lines[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)
    for line in lines:
        row(*(value for name, value in line.items() if name not in ("definition", "dimension")))


if __name__ == "__main__":
    main()
