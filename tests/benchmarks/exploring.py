"""python tests/benchmarks/exploring.py FILE.csv HALF SEEDS [KIND ...]: evaluations and coverage of
importance sampling from explored covers.

One line a run: problem, dimensions, seed, estimator, evaluations with those of checks, error,
standard error, whether it is trusted, and why not. Problems of half 0 and half 1 differ in numbers:
constants are chosen on half 0 alone. With `python … FILE.csv table` the table of a file. SEEDS
may be "3+1": three seeds of `ImportanceSampling`, one of `AdaptiveSMC`.
"""

import csv
import sys
import time
import warnings
from collections import defaultdict

import numpy as np
from scipy import integrate, stats
from scipy.special import logsumexp

from sklpf import Gaussian, GeometricPath, Uniform
from sklpf.partition import AdaptiveSMC, ImportanceSampling

COLUMNS = ("problem", "d", "half", "seed", "estimator", "evaluations")
COLUMNS = (*COLUMNS, "error", "std_error", "trusted", "seconds", "why")


def normal(x, mean=0.0, sd=1.0):
    return stats.norm.logpdf(x, mean, sd).sum(axis=-1)


def regression(d, rng):
    """Weights of a linear regression, with columns that are correlated."""
    n = 30 + 4 * d
    A = rng.normal(size=(n, d)) + rng.normal(size=(n, 1)) * rng.choice([0, 1, 2])
    scale = rng.uniform(1, 5)
    noise = rng.uniform(0.3, 2)
    y = A @ rng.normal(size=d) + noise * rng.normal(size=n)
    covariance = scale**2 * A @ A.T + noise**2 * np.eye(n)
    log_z = stats.multivariate_normal(np.zeros(n), covariance).logpdf(y)

    def log_density(x):
        return normal(x, 0, scale) + normal(y - x @ A.T, 0, noise)

    return log_density, Gaussian(np.zeros(d), scale**2), None, log_z


def logistic(d, rng):
    """Weights of a logistic regression; log Z by a long run."""
    n = 40 * d
    A = np.column_stack([np.ones(n), rng.normal(size=(n, d - 1))])
    signs = np.where(rng.random(n) < 1 / (1 + np.exp(-A @ rng.normal(size=d))), 1, -1)

    def log_density(x):
        return normal(x, 0, 2.5) - np.logaddexp(0, -signs * (x @ A.T)).sum(axis=1)

    return log_density, Gaussian(np.zeros(d), 2.5**2), None, None


def mixture(d, rng):
    """Three Gaussians of unequal masses and widths."""
    shares = np.log(rng.dirichlet([2, 2, 2]) * 0.94 + 0.02)
    means = rng.uniform(-4, 4, size=(3, d))
    widths = rng.uniform(0.2, 0.8, size=3)

    def log_density(x):
        parts = [s + normal(x, m, w) for s, m, w in zip(shares, means, widths)]
        return logsumexp(parts, axis=0)

    return log_density, Gaussian(np.zeros(d), 9.0), None, 0.0


def scales(d, rng):
    """A hierarchy: d - 1 effects with a common unknown scale, not centred."""
    errors = rng.uniform(0.5, 2, size=d - 1)
    y = rng.normal(size=d - 1) * rng.uniform(0, 3) + errors * rng.normal(size=d - 1)

    def log_density(x):
        return normal(x) + normal(y, np.exp(x[:, :1]) * x[:, 1:], errors)

    grid = np.linspace(-8, 8, 20_001)
    spread = np.hypot(np.exp(grid)[:, np.newaxis], errors)
    log_f = normal(y, 0, spread) + stats.norm.logpdf(grid)
    log_z = logsumexp(log_f) + np.log(grid[1] - grid[0])
    return log_density, Gaussian(np.zeros(d), 1.0), None, log_z


def bounded(d, rng):
    """Beta distributions within a box, some of them at its sides."""
    a = rng.choice([1.0, 2.0, 8.0, 60.0], size=d)
    b = rng.choice([1.0, 3.0, 20.0], size=d)
    base = Uniform(np.full(d, -2.0), np.full(d, 2.0))

    def log_density(x):
        return stats.beta.logpdf((x + 2) / 4, a, b).sum(axis=1)

    return log_density, base, (-2, 2), d * np.log(4)


def banana(d, rng):
    """A Gaussian that is bent along its first coordinate."""
    bend = rng.uniform(0.1, 0.4)

    def log_density(x):
        y = x.copy()
        y[:, 1] = x[:, 1] + bend * (x[:, 0] ** 2 - 4)
        return normal(y, 0, np.append(2.0, np.full(d - 1, 0.7)))

    return log_density, Gaussian(np.zeros(d), 16.0), None, 0.0


def funnel(d, rng):
    """A scale whose d - 1 effects are hardly measured, centred."""
    width = rng.uniform(0.5, 1.2)
    y = rng.normal(size=d - 1)

    def log_density(x):
        effects = normal(x[:, 1:], 0, np.exp(width * x[:, :1]))
        return stats.norm.logpdf(x[:, 0]) + effects + normal(y, x[:, 1:], 3.0)

    def integrand(v):
        return np.exp(stats.norm.logpdf(v) + normal(y, 0, np.hypot(3.0, np.exp(width * v))))

    return (
        log_density,
        Gaussian(np.zeros(d), 4.0),
        None,
        np.log(integrate.quad(integrand, -9, 9)[0]),
    )


def student(d, rng):
    """Coordinates with tails of three to eight degrees of freedom, turned."""
    turn = stats.ortho_group.rvs(d, random_state=rng) if d > 1 else np.eye(1)
    df = rng.uniform(3, 8)
    scale = rng.uniform(0.1, 1, size=d)
    mean = rng.normal(size=d)

    def log_density(x):
        return stats.t.logpdf((x - mean) @ turn / scale, df).sum(axis=1) - np.log(scale).sum()

    return log_density, Gaussian(np.zeros(d), 9.0), None, 0.0


KINDS = (regression, logistic, mixture, scales, bounded, banana, funnel, student)


def explored(seed, tol=0.1, **parameters):
    return ImportanceSampling(proposal="explored", tol=tol, random_state=seed, **parameters)


def long_run(path):
    """log Z of many fresh draws, by four covers that are independent of those that are tested."""
    fits = [explored(90_000 + s, 0.004, n_samples=100_000).fit(path) for s in range(4)]
    return np.mean([fit.log_partition_ for fit in fits])


def run(file, half, n_explored, n_adaptive, kinds):
    with open(file, "a", newline="") as opened:
        write = csv.writer(opened).writerow
        for d in (2, 5, 10, 20):
            for kind in kinds:
                rng = np.random.default_rng([half, d, KINDS.index(kind)])
                log_density, base, bounds, log_z = kind(d, rng)
                path = GeometricPath(log_density, base=base, bounds=bounds)
                log_z = long_run(path) if log_z is None else log_z
                n = n_explored if d < 20 else -(-n_explored * 12 // 30)
                estimators = [explored(seed) for seed in range(n)]
                estimators += [AdaptiveSMC(random_state=seed) for seed in range(n_adaptive)]
                for estimator in estimators:
                    begin = time.time()
                    result = estimator.fit(path).result_
                    row = (kind.__name__, d, half, estimator.random_state, result.method)
                    numbers = (result.n_sweeps + result.check_evaluations,)
                    numbers += (result.log_partition - log_z, result.std_error)
                    numbers += (int(result.converged), time.time() - begin)
                    write((*row, *numbers, "; ".join(result.reasons)[:90]))
                    opened.flush()


def table(file):
    runs = defaultdict(list)
    with open(file, newline="") as opened:
        for row in csv.reader(opened):
            runs[row[0], int(row[1]), row[4]].append([float(x) for x in row[5:10]])
    print(
        "| problem | d | estimator | evaluations | rms error | SE | trusted | cover | > 3, > 5 SE |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    total = np.zeros(5, dtype=int)
    for (problem, d, method), rows in sorted(runs.items()):
        evaluations, error, std_error, trusted, _ = np.array(rows).T
        ok = trusted == 1
        z = np.abs(error / std_error)[ok]
        counts = np.array([len(rows), ok.sum(), (z < 1.96).sum(), (z > 3).sum(), (z > 5).sum()])
        total += counts if method == "ImportanceSampling" else 0
        rms = np.sqrt(np.mean(error[ok] ** 2)) if ok.any() else np.nan
        print(
            f"| {problem} | {d} | {method} | {np.median(evaluations):,.0f} | {rms:.3f} |"
            f" {np.median(std_error):.3f} | {counts[1]} of {counts[0]} | {counts[2]} |"
            f" {counts[3]}, {counts[4]} |"
        )
    print("explored: runs, trusted, cover, > 3 SE, > 5 SE:", total)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[2] == "table":
        table(sys.argv[1])
    else:
        numbers = [int(each) for each in sys.argv[3].split("+")] + [0]
        chosen = [kind for kind in KINDS if kind.__name__ in sys.argv[4:]] or KINDS
        run(sys.argv[1], int(sys.argv[2]), numbers[0], numbers[1], chosen)
