"""Do runs on ordinary posteriors converge, and do they cover? Twenty models that users meet, from a
base at the mode and from the prior.

    python tests/benchmarks/posteriors.py [--seeds 3] [--jobs 1] [--results posteriors.jsonl]
    [--posteriors NAME ...] [--estimators NAME ...] [--report]

Regressions with an unknown scale, logistic and Poisson regressions, hierarchies in non-centred
form, Gaussian processes' hyperparameters, a GARCH and autoregressions, on data that are simulated
here. The true log evidence is importance sampling's, with 200,000 draws from a Student t that is
fitted to draws before (--references prints it with its standard error). Every run is appended to
the results file as it ends, and an interrupted benchmark goes on where it stopped. Prints Markdown.
"""

from __future__ import annotations

import argparse
import collections
import functools
import json
import os
import time
import warnings

import numpy as np
from joblib import Parallel, delayed
from scipy.special import expit, gammaln, logsumexp
from sklearn.exceptions import ConvergenceWarning

from sklpf import (
    AIS,
    HAIS,
    RTS,
    SMC,
    AdaptiveSMC,
    Gaussian,
    GeometricPath,
    ParallelTempering,
    StudentT,
)
from sklpf.transitions import HMC, RandomWalk

LOG_2PI = float(np.log(2 * np.pi))
_DIFFERENCE = 1e-5  # steps of gradients by differences


class Posterior:
    """A log posterior of points (n, d) with a normal prior, independent in every coordinate."""

    def __init__(self, log_likelihood, prior_scale, start=None):
        self.log_likelihood = log_likelihood
        self.scale = np.asarray(prior_scale, dtype=float)
        self.start = np.zeros(len(self.scale)) if start is None else np.asarray(start, dtype=float)

    def log_prior(self, x):
        return -np.sum((x / self.scale) ** 2 / 2 + np.log(self.scale) + LOG_2PI / 2, axis=1)

    def log_density(self, x):
        with np.errstate(all="ignore"):
            return self.log_prior(x) + self.log_likelihood(x)

    def grad(self, x):
        """Central differences, a step in every coordinate of every point at once."""
        n, d = x.shape
        steps = _DIFFERENCE * self.scale * np.eye(d)
        ends = [(x[:, np.newaxis] + sign * steps).reshape(n * d, d) for sign in (1, -1)]
        above, below = (self.log_density(end).reshape(n, d) for end in ends)
        with np.errstate(invalid="ignore"):
            return (above - below) / (2 * _DIFFERENCE * self.scale)


def normal_errors(residuals, log_scale):
    """Log density of residuals (n, rows), whose scale is exp(log_scale), (n,)."""
    standardised = residuals * np.exp(-log_scale)[:, np.newaxis]
    return -0.5 * np.sum(standardised**2, axis=1) - residuals.shape[1] * (log_scale + LOG_2PI / 2)


def design(rng, n, d, scales=1.0):
    return np.c_[np.ones(n), rng.normal(size=(n, d - 1)) * scales]


def linear(seed, n, d, scales=1.0, df=None):
    """Coefficients and log sigma; with `df` the noise and the model are Student t."""
    rng = np.random.default_rng(seed)
    A = design(rng, n, d, scales)
    noise = rng.normal(size=n) if df is None else rng.standard_t(df, size=n)
    y = A @ rng.normal(size=d) + 0.5 * noise

    def log_likelihood(x):
        residuals, log_scale = y - x[:, :d] @ A.T, x[:, d]
        if df is None:
            return normal_errors(residuals, log_scale)
        squares = (residuals * np.exp(-log_scale)[:, np.newaxis]) ** 2 / df
        constant = gammaln((df + 1) / 2) - gammaln(df / 2) - np.log(df * np.pi) / 2
        return -(df + 1) / 2 * np.sum(np.log1p(squares), axis=1) + n * (constant - log_scale)

    return Posterior(log_likelihood, [*[5.0] * d, 2.0])


def logistic(seed, n, d):
    rng = np.random.default_rng(seed)
    A = design(rng, n, d)
    y = rng.random(n) < expit(A @ rng.normal(size=d))
    sign = np.where(y, 1.0, -1.0)
    return Posterior(lambda x: -np.sum(np.logaddexp(0, -(x @ A.T) * sign), axis=1), [3.0] * d)


def poisson(seed, n, d, dispersed=False):
    """Counts; negative binomial ones, with log dispersion, if `dispersed`."""
    rng = np.random.default_rng(seed)
    A = design(rng, n, d, 0.5)
    mean = np.exp(A @ (0.5 * rng.normal(size=d)) + 0.5)
    y = rng.poisson(mean * (rng.gamma(3, 1 / 3, size=n) if dispersed else 1.0))

    def log_likelihood(x):
        eta = x[:, :d] @ A.T
        if not dispersed:
            return np.sum(y * eta - np.exp(eta) - gammaln(y + 1), axis=1)
        size = np.exp(x[:, d])[:, np.newaxis]
        ways = gammaln(y + size) - gammaln(size) - gammaln(y + 1)
        log_total = np.logaddexp(np.log(size), eta)
        return np.sum(ways + size * (np.log(size) - log_total) + y * (eta - log_total), axis=1)

    return Posterior(log_likelihood, [3.0] * d + [1.5] * dispersed)


def schools():
    """Rubin's eight schools: mu, log tau and eight effects in units of tau."""
    y = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
    sigma = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])

    def log_likelihood(x):
        effects = x[:, :1] + np.exp(x[:, 1:2]) * x[:, 2:]
        return np.sum(-(((y - effects) / sigma) ** 2) / 2 - np.log(sigma) - LOG_2PI / 2, axis=1)

    return Posterior(log_likelihood, [10.0, 1.5, *[1.0] * 8])


def groups(seed, kind, n_groups, n_each):
    """mu, log tau and intercepts of groups in units of tau."""
    rng = np.random.default_rng(seed)
    member = np.repeat(np.arange(n_groups), n_each)
    eta = 0.3 + 0.7 * rng.normal(size=n_groups)[member]
    y = rng.poisson(np.exp(eta)) if kind == "poisson" else rng.random(len(eta)) < expit(eta)

    def log_likelihood(x):
        eta = (x[:, :1] + np.exp(x[:, 1:2]) * x[:, 2:])[:, member]
        if kind == "poisson":
            return np.sum(y * eta - np.exp(eta) - gammaln(y + 1), axis=1)
        return -np.sum(np.logaddexp(0, np.where(y, -eta, eta)), axis=1)

    return Posterior(log_likelihood, [2.0, 1.0, *[1.0] * n_groups])


def gaussian_process(seed, n, d=1):
    """Log amplitude, d log lengths and log noise of a squared exponential."""
    rng = np.random.default_rng(seed)
    inputs = rng.random((n, d)) * 4
    y = np.sin(2 * inputs).sum(axis=1) + 0.2 * rng.normal(size=n)
    squares = (inputs[:, np.newaxis] - inputs) ** 2

    def log_likelihood(x):
        out = np.full(len(x), -np.inf)
        usable = np.all(np.abs(x) < 15, axis=1)
        x = x[usable]
        distances = np.einsum("ijk,mk->mij", squares, np.exp(-2 * x[:, 1 : 1 + d]))
        covariance = np.exp(2 * x[:, 0])[:, np.newaxis, np.newaxis] * np.exp(-distances / 2)
        noise = np.exp(2 * x[:, -1]) + 1e-6
        covariance[:, np.arange(n), np.arange(n)] += noise[:, np.newaxis]
        quadratic = np.linalg.solve(covariance, np.broadcast_to(y[:, np.newaxis], (len(x), n, 1)))
        log_det = np.linalg.slogdet(covariance)[1]
        out[usable] = -0.5 * (quadratic[..., 0] @ y + log_det + n * LOG_2PI)
        return out

    return Posterior(log_likelihood, [1.0] * (d + 2), start=[0.0, *[0.0] * d, -1.0])


def garch(seed, n):
    """log omega and the logits of (alpha, beta, rest), of a GARCH(1, 1)."""
    rng = np.random.default_rng(seed)
    y, variance = np.empty(n), 1.0
    for t in range(n):
        y[t] = np.sqrt(variance) * rng.normal()
        variance = 0.2 + 0.2 * y[t] ** 2 + 0.6 * variance

    def log_likelihood(x):
        logits = np.c_[x[:, 1:], np.zeros(len(x))]
        alpha, beta, _ = np.exp(logits - logsumexp(logits, axis=1, keepdims=True)).T
        omega, variance = np.exp(x[:, 0]), np.full(len(x), y.var())
        total = np.zeros(len(x))
        for value in y:
            total -= 0.5 * (LOG_2PI + np.log(variance) + value**2 / variance)
            variance = omega + alpha * value**2 + beta * variance
        return total

    return Posterior(log_likelihood, [1.5, 1.5, 1.5])


def autoregression(seed, n, order):
    """A constant, `order` coefficients and log sigma, given the first values."""
    rng = np.random.default_rng(seed)
    y = np.zeros(n)
    for t in range(order, n):
        y[t] = 0.3 + y[t - order : t] @ np.linspace(0.1, 0.6, order) + 0.5 * rng.normal()
    lagged = [y[order - lag : n - lag] for lag in range(1, order + 1)]
    A = np.stack([np.ones(n - order), *lagged], axis=1)

    def log_likelihood(x):
        return normal_errors(y[order:] - x[:, :-1] @ A.T, x[:, -1])

    return Posterior(log_likelihood, [5.0, *[1.0] * order, 2.0])


POSTERIORS = {
    "linear, 2 coefficients, 20 rows": functools.partial(linear, 0, 20, 2),
    "linear, 2 coefficients, 100 rows": functools.partial(linear, 1, 100, 2),
    "linear, 5 coefficients, 40 rows": functools.partial(linear, 2, 40, 5),
    "linear, scales 1 to 100": functools.partial(linear, 3, 40, 3, np.array([1.0, 100.0])),
    "linear, Student t noise": functools.partial(linear, 4, 50, 3, 1.0, 4.0),
    "logistic, 3 coefficients": functools.partial(logistic, 5, 50, 3),
    "logistic, 6 coefficients": functools.partial(logistic, 6, 80, 6),
    "logistic, 10 coefficients": functools.partial(logistic, 7, 60, 10),
    "Poisson, 3 coefficients": functools.partial(poisson, 8, 40, 3),
    "Poisson, 5 coefficients": functools.partial(poisson, 9, 80, 5),
    "negative binomial": functools.partial(poisson, 10, 60, 3, True),
    "eight schools": schools,
    "groups, Poisson": functools.partial(groups, 11, "poisson", 6, 8),
    "groups, logistic": functools.partial(groups, 12, "logistic", 5, 12),
    "Gaussian process, 15 rows": functools.partial(gaussian_process, 13, 15),
    "Gaussian process, 30 rows": functools.partial(gaussian_process, 14, 30),
    "Gaussian process, 2 inputs": functools.partial(gaussian_process, 15, 20, 2),
    "GARCH(1, 1)": functools.partial(garch, 16, 150),
    "AR(1)": functools.partial(autoregression, 17, 60, 1),
    "AR(2)": functools.partial(autoregression, 18, 100, 2),
}
BASES = ("mode", "prior")
ESTIMATORS = {
    "HAIS, dense": lambda: HAIS(n_temperatures=300, transition=HMC(metric="dense")),
    "AIS, random walk": lambda: AIS(
        n_temperatures=1000, ladder="adaptive", transition=RandomWalk(metric="dense")
    ),
    "SMC": SMC,
    "AdaptiveSMC, random walk": lambda: AdaptiveSMC(transition=RandomWalk(metric="dense")),
    "HAIS, dense, 3000 levels": lambda: HAIS(n_temperatures=3000, transition=HMC(metric="dense")),
    "ParallelTempering": ParallelTempering,
    "RTS": RTS,
}
# gradients by differences take minutes where a density is a loop or a matrix a point
SLOW = ("Gaussian process", "GARCH")
WITHOUT_GRADIENT = ("AIS, random walk", "SMC", "AdaptiveSMC, random walk")


@functools.cache
def make(name: str) -> Posterior:
    return POSTERIORS[name]()


@functools.cache
def reference(name: str) -> tuple[float, float]:
    """log Z and its standard error, by draws from a Student t whose moments are those of draws
    before, the first ones at the mode.
    """
    posterior = make(name)
    mode = Gaussian.at_mode(posterior.log_density, posterior.start)
    mean, covariance = mode.mean, 1.5 * mode.covariance
    for n in (50_000, 50_000, 200_000):
        proposal = StudentT(mean, covariance, df=5)
        draws = proposal.sample(n, np.random.default_rng(n))
        parts = [posterior.log_density(x) - proposal.log_density(x) for x in np.split(draws, 100)]
        log_weights = np.concatenate(parts)
        log_mean = logsumexp(log_weights) - np.log(n)
        weights = np.exp(log_weights - log_mean)
        mean = weights @ draws / weights.sum()
        covariance = 1.2 * np.cov(draws.T, aweights=weights)
    return float(log_mean), float(np.std(weights) / np.sqrt(n))


def run(name: str, base: str, estimator: str, seed: int) -> dict:
    """One run as a row of the results file."""
    row = {"posterior": name, "base": base, "estimator": estimator, "seed": seed}
    posterior = make(name)
    truth, truth_error = reference(name)
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            start = (
                Gaussian.at_mode(posterior.log_density, posterior.start)
                if base == "mode"
                else Gaussian(np.zeros(len(posterior.scale)), posterior.scale**2)
            )
            path = GeometricPath(posterior.log_density, grad=posterior.grad, base=start)
            fitted = ESTIMATORS[estimator]().set_params(random_state=seed).fit(path)
        except Exception as error:  # what a user would see; the table counts it
            return row | {"failed": f"{type(error).__name__}: {error}"}
    low, high = fitted.log_partition_interval_
    widening = np.hypot(1.0, truth_error / fitted.log_partition_std_error_)
    middle, half = (low + high) / 2, widening * (high - low) / 2
    return row | {
        "off": fitted.log_partition_ - truth,
        "error": fitted.log_partition_std_error_,
        "covers": bool(abs(middle - truth) <= half or abs(fitted.log_partition_ - truth) < 0.02),
        "converged": bool(fitted.converged_),
        "kinds": [alarm.kind for alarm in fitted.result_.alarms],
        "seconds": time.process_time() - started,
    }


def read(path: str) -> list[dict]:
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def execute(args) -> None:
    keys = ("posterior", "base", "estimator", "seed")
    done = {tuple(row[key] for key in keys) for row in read(args.results)}
    jobs = [
        (name, base, estimator, seed)
        for seed in range(args.seeds)
        for name in args.posteriors or POSTERIORS
        for base in BASES
        for estimator in args.estimators
        if (name, base, estimator, seed) not in done
        and (estimator in WITHOUT_GRADIENT or not name.startswith(SLOW))
    ]
    found = Parallel(n_jobs=args.jobs, return_as="generator_unordered", batch_size=1)(
        delayed(run)(*job) for job in jobs
    )
    with open(args.results, "a") as file:
        for row in found:
            file.write(json.dumps(row, default=float) + "\n")
            file.flush()


def report(rows: list[dict]) -> None:
    print("| posterior | base | runs | failed | error below 0.1 | of these converged | cover |")
    print("|" + "---|" * 7)
    cells = collections.defaultdict(list)
    for row in rows:
        cells[row["posterior"], row["base"]].append(row)
        cells["all", row["base"]].append(row)
    for (name, base), found in sorted(cells.items(), key=lambda cell: cell[0][0] == "all"):
        fine = [row for row in found if "failed" not in row and abs(row["off"]) < 0.1]
        converged = [row for row in fine if row["converged"]]
        covered = sum(row["covers"] for row in converged)
        n_failed = sum("failed" in row for row in found)
        print(
            f"| {name} | {base} | {len(found)} | {n_failed} | {len(fine)} | {len(converged)} |"
            f" {covered} |"
        )
    print("\n| estimator | base | runs | converged | cover | SE below 0.1 | converged | cover |")
    print("|" + "---|" * 8)
    for name in ESTIMATORS:
        for base in BASES:
            found = [
                row
                for row in rows
                if (row["estimator"], row["base"]) == (name, base) and "failed" not in row
            ]
            small = [row for row in found if row["error"] < 0.1]
            numbers = [
                f"{len(chosen)} | {sum(row['converged'] for row in chosen)} |"
                f" {sum(row['converged'] and row['covers'] for row in chosen)}"
                for chosen in (found, small)
            ]
            print(f"| {name} | {base} | {numbers[0]} | {numbers[1]} |")
    kinds = collections.Counter(
        kind for row in rows for kind in row.get("kinds", []) if abs(row["off"]) < 0.1
    )
    print("\nAlarms of runs with an error below 0.1:", dict(kinds))
    wrong = [
        row
        for row in rows
        if row.get("converged") and abs(row["off"]) > max(3 * row["error"], 0.02)
    ]
    print(f"Converged and beyond 3 standard errors and 0.02 nats: {len(wrong)}")
    print("Errors:", collections.Counter(row["failed"][:90] for row in rows if "failed" in row))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--results", default="posteriors.jsonl")
    parser.add_argument("--posteriors", nargs="*", default=[])
    parser.add_argument("--estimators", nargs="*", default=list(ESTIMATORS))
    parser.add_argument("--references", action="store_true")
    parser.add_argument("--report", action="store_true")
    args = parser.parse_args()
    if args.references:
        for name in POSTERIORS:
            print(f"| {name} | {reference(name)[0]:.3f} | {reference(name)[1]:.2g} |")
        return
    if not args.report:
        execute(args)
    report(read(args.results))


if __name__ == "__main__":
    main()
