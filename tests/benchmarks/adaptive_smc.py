"""Narrow posteriors in wide priors, without gradients: AdaptiveSMC, beside dynesty.

    python tests/benchmarks/adaptive_smc.py [--seeds 20] [--results adaptive_smc.jsonl]
    [--problems NAME ...] [--family 300] [--users 100] [--dynesty 3] [--eprv3 FOLDER] [--report]

Each problem is a log likelihood and a prior transform with known evidence: closed forms and
quadrature. "family" makes Gaussian mixtures of 1 to 3 parts in 1 to 12 dimensions anew from a seed,
in uniform and normal priors, and "users" densities of nine kinds that users bring, with sizes from
the seed; nothing was tuned on either. dynesty runs with 500 live points and at
most 600,000 calls. `--eprv3` names the folder of the sets of the EPRV3 evidence challenge. Every
run is appended to the results file as it ends, and an interrupted benchmark goes on where it
stopped. Prints Markdown.
"""

from __future__ import annotations

import argparse
import collections
import json
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.integrate import quad
from scipy.special import gammaln, logsumexp, ndtri
from scipy.stats import multivariate_normal

from sklpf import AdaptiveSMC
from sklpf.interop import from_prior_transform

LOG_2PI = np.log(2 * np.pi)
MOST_CALLS = 600_000


def cube(half_width):
    return lambda u: half_width * (2 * u - 1)


def log_gaussian(x, mean, root):
    z = np.linalg.solve(root, (x - mean).T)
    return -0.5 * np.sum(z**2, axis=0) - np.linalg.slogdet(root)[1] - len(mean) / 2 * LOG_2PI


def narrow(d, ratio, correlation=0.6):
    """A prior from -1 to 1 that is `ratio` times as wide as the standard deviations."""
    covariance = (2 / ratio) ** 2 * (correlation + (1 - correlation) * np.eye(d))
    root = np.linalg.cholesky(covariance)
    mean = 0.13 * np.cos(np.arange(d))
    return lambda x: log_gaussian(x, mean, root), cube(1), d, -d * np.log(2)


def two_modes(d, widths, share, distance):
    def log_likelihood(x):
        parts = [
            np.log(weight) + log_gaussian(x, np.full(d, center), width * np.eye(d))
            for weight, center, width in [
                (share, -distance / 2, widths[0]),
                (1 - share, distance / 2, widths[1]),
            ]
        ]
        return np.logaddexp(*parts)

    return log_likelihood, cube(10), d, -d * np.log(20)


def egg_box():
    cosines = np.cos((np.arange(4000) + 0.5) / 4000 * 5 * np.pi)
    truth = logsumexp([logsumexp((2 + c * cosines) ** 5) for c in cosines]) - 2 * np.log(4000)

    def log_likelihood(x):
        return (2 + np.cos(x[:, 0] / 2) * np.cos(x[:, 1] / 2)) ** 5

    return log_likelihood, lambda u: 10 * np.pi * u, 2, truth


def shells(d):
    centers = np.zeros((2, d))
    centers[:, 0] = -3.5, 3.5

    def log_likelihood(x):
        radii = np.linalg.norm(x[:, np.newaxis] - centers, axis=2)
        return logsumexp(-0.5 * ((radii - 2) / 0.1) ** 2, axis=1) - 0.5 * LOG_2PI - np.log(0.1)

    mass = quad(
        lambda r: np.exp(-0.5 * ((r - 2) / 0.1) ** 2) / np.sqrt(2 * np.pi) / 0.1 * r ** (d - 1),
        1,
        3,
    )[0]
    log_area = np.log(2) + d / 2 * np.log(np.pi) - gammaln(d / 2)
    return log_likelihood, cube(6), d, np.log(2 * mass) + log_area - d * np.log(12)


def log_gamma(d):
    def skewed(x, center):
        z = 30 * (x - center)
        return z - np.exp(z) + np.log(30)

    def normal(x, center):
        return -0.5 * (30 * (x - center)) ** 2 + np.log(30) - 0.5 * LOG_2PI

    kinds = [skewed, normal] + [skewed if i < (d + 2) / 2 else normal for i in range(2, d)]
    centers = [[1 / 3, 2 / 3]] * 2 + [[2 / 3]] * (d - 2)

    def part(i, x):
        return logsumexp([kinds[i](x, c) for c in centers[i]], axis=0) - np.log(len(centers[i]))

    grid = (np.arange(200_000) + 0.5) / 200_000
    truth = sum(logsumexp(part(i, grid)) - np.log(len(grid)) for i in range(d))
    return lambda x: sum(part(i, x[:, i]) for i in range(d)), lambda u: u, d, truth


def regression(n, d, seed):
    rng = np.random.default_rng(seed)
    design = rng.normal(size=(n, d))
    design[:, 1] = 0.95 * design[:, 0] + 0.1 * design[:, 1]
    target = design @ rng.normal(size=d) + 0.5 * rng.normal(size=n)

    def log_likelihood(x):
        squares = np.sum((target - x @ design.T) ** 2, axis=1)
        return -2 * squares - n * np.log(0.5) - n / 2 * LOG_2PI

    covariance = 100 * design @ design.T + 0.25 * np.eye(n)
    truth = multivariate_normal(np.zeros(n), covariance).logpdf(target)
    return log_likelihood, lambda u: 10 * ndtri(u), d, truth


def hierarchy(d):
    """Observations of effects whose spread is unknown, in non-centred form."""
    seen = 2 * np.random.default_rng(5).normal(size=d - 1)

    def transform(u):
        z = ndtri(u)
        return np.column_stack([3 * z[:, 0], np.exp(1.5 * z[:, :1]) * z[:, 1:]])

    def log_likelihood(x):
        return np.sum(-2 * (x[:, 1:] - seen) ** 2 - np.log(0.5) - 0.5 * LOG_2PI, axis=1)

    v = np.linspace(-30, 30, 60_001)
    variances = np.exp(v) + 0.25
    heights = -0.5 * np.sum(seen**2) / variances - (d - 1) / 2 * np.log(2 * np.pi * variances)
    heights -= v**2 / 18 + np.log(3) + 0.5 * LOG_2PI
    return log_likelihood, transform, d, logsumexp(heights) + np.log(v[1] - v[0])


def rosenbrock():
    def log_likelihood(x):
        return -10 * (x[:, 1] - x[:, 0] ** 2) ** 2 - (1 - x[:, 0]) ** 2 / 10

    grid = np.linspace(-5, 5, 4001)
    fine = np.linspace(-5, 5, 40_001)
    heights = [logsumexp(-10 * (fine - a * a) ** 2) - (1 - a) ** 2 / 10 for a in grid]
    steps = np.log(grid[1] - grid[0]) + np.log(fine[1] - fine[0])
    return log_likelihood, cube(5), 2, logsumexp(heights) + steps - 2 * np.log(10)


def radial_velocities(folder, number):
    """No planet in the data: an offset and a jitter, with correlated noise."""
    t, v, error = np.loadtxt(Path(folder) / f"rvs_000{number}.txt").T[:3]
    lags = t[:, np.newaxis] - t
    kernel = 3 * np.exp(-0.5 * (np.sin(np.pi * lags / 20) ** 2 / 0.25 + lags**2 / 2500))
    values, vectors = np.linalg.eigh(kernel + np.diag(error**2))

    def log_likelihood(x):
        residuals = (v - x[:, :1]) @ vectors
        variances = values + x[:, 1:] ** 2
        return -0.5 * np.sum(residuals**2 / variances + np.log(variances) + LOG_2PI, axis=1)

    def transform(u):
        return np.column_stack([2000 * u[:, 0] - 1000, 100 ** u[:, 1] - 1])

    return log_likelihood, transform, 2, {1: -488.096, 2: -453.862, 3: -390.621}[number]


def of_family(seed):
    """A mixture of Gaussians in a prior, made anew."""
    rng = np.random.default_rng([77, seed])
    d = int(rng.choice([1, 2, 3, 5, 8, 12]))
    k = int(rng.choice([1, 1, 2, 3]))
    is_uniform = rng.random() < 0.5
    means = rng.uniform(-7, 7, (k, d))
    shares = rng.dirichlet(np.full(k, 3.0))
    width = 0.5 * 10 ** rng.uniform(-2, 0)
    roots = []
    for j in range(k):
        widths = width * 10 ** (rng.uniform(-0.5, 0.5, d) + (j > 0) * rng.uniform(-0.2, 0.2))
        rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
        roots.append(widths[:, np.newaxis] * rotation * 10 ** rng.uniform(-0.3, 0.3, d))
        sd = np.linalg.norm(roots[j], axis=1)
        means[j] = np.clip(means[j], -10 + 6 * sd, 10 - 6 * sd)

    def log_likelihood(x):
        parts = zip(shares, means, roots)
        return logsumexp([np.log(s) + log_gaussian(x, m, r) for s, m, r in parts], axis=0)

    if is_uniform:
        return log_likelihood, cube(10), d, -d * np.log(20)
    wider = [np.linalg.cholesky(root @ root.T + 25 * np.eye(d)) for root in roots]
    parts = zip(shares, means, wider)
    origin = np.zeros((1, d))
    truth = logsumexp([np.log(s) + log_gaussian(origin, m, r)[0] for s, m, r in parts])
    return log_likelihood, lambda u: 5 * ndtri(u), d, truth


def users_egg_box(rng):
    n, power = rng.uniform(2, 6), rng.uniform(2, 6)
    cosines = np.cos((np.arange(4000) + 0.5) / 4000 * n * np.pi)
    truth = logsumexp([logsumexp((2 + c * cosines) ** power) for c in cosines]) - 2 * np.log(4000)

    def log_likelihood(x):
        return (2 + np.cos(x[:, 0]) * np.cos(x[:, 1])) ** power

    return log_likelihood, lambda u: n * np.pi * u, 2, truth


def users_boundary(rng):
    """Mass at sides of the box."""
    rates = rng.choice([-1, 1], size=rng.integers(2, 9)) * 10 ** rng.uniform(0, 2)
    truth = np.sum(np.log(np.expm1(rates) / rates))
    return lambda x: x @ rates, lambda u: u, len(rates), truth


def users_rods(rng):
    """Hard rods on a line."""
    n = int(rng.integers(2, 7))
    length = rng.uniform(0.2, 0.6) / (n - 1)

    def log_likelihood(x):
        apart = np.diff(np.sort(x, axis=1), axis=1).min(axis=1) > length
        return np.where(apart, 0.0, -np.inf)

    return log_likelihood, lambda u: u, n, n * np.log(1 - (n - 1) * length)


def users_order(rng):
    """Parameters in ascending order."""
    d = int(rng.integers(2, 7))
    sd = rng.uniform(0.5, 2)

    def log_likelihood(x):
        normal = -0.5 * np.sum((x / sd) ** 2, axis=1) - d * (np.log(sd) + LOG_2PI / 2)
        return np.where(np.all(np.diff(x, axis=1) > 0, axis=1), normal, -np.inf)

    return log_likelihood, cube(8 * sd), d, -gammaln(d + 1) - d * np.log(16 * sd)


def users_separable(rng):
    """Logistic regression whose classes a line separates."""
    n, sd = int(rng.integers(8, 40)), rng.uniform(3, 30)
    X = rng.normal(size=(n, 2))
    signed = X * np.sign(X @ rng.normal(size=2))[:, np.newaxis]

    def log_likelihood(w):
        return -np.sum(np.logaddexp(0, -w @ signed.T), axis=1)

    grid = sd * np.linspace(-8, 8, 1601)
    points = np.stack(np.meshgrid(grid, grid), axis=-1)
    values = [log_likelihood(row) - 0.5 * np.sum((row / sd) ** 2, axis=1) for row in points]
    truth = logsumexp(values) + 2 * np.log(grid[1] - grid[0]) - 2 * np.log(sd) - LOG_2PI
    return log_likelihood, lambda u: sd * ndtri(u), 2, truth


def users_waves(rng):
    """A Gaussian prior with a sinusoid."""
    d = int(rng.integers(1, 6))
    height, frequency = rng.uniform(1, 4), rng.uniform(1, 5)
    grid = np.linspace(-9, 9, 20_001)
    values = height * np.sin(frequency * grid) - 0.5 * grid**2
    truth = d * (logsumexp(values) + np.log(grid[1] - grid[0]) - LOG_2PI / 2)
    return lambda x: height * np.sum(np.sin(frequency * x), axis=1), ndtri, d, truth


def users_spike(rng):
    """A cube with a share of the mass, on a plateau."""
    d = int(rng.integers(1, 4))
    width, share = 10 ** rng.uniform(-1.5, -0.3), rng.uniform(0.2, 0.9)
    corner = rng.uniform(0, 1 - width, d)
    height = np.log1p(share / (1 - share) / width**d)

    def log_likelihood(x):
        return np.where(np.all((x > corner) & (x < corner + width), axis=1), height, 0.0)

    return log_likelihood, lambda u: u, d, np.log1p(share / (1 - share))


def users_cigar(rng):
    d = int(rng.integers(3, 11))
    widths = 10 ** rng.uniform(-4, -0.5, d)
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    root = rotation * widths
    mean = rng.uniform(-3, 3, d)
    return lambda x: log_gaussian(x, mean, root), cube(6), d, -d * np.log(12)


def users_narrow(rng):
    """A narrow mode in a wide one."""
    d = int(rng.choice([2, 3, 5]))
    widths = 1.0, 10 ** rng.uniform(-2, -0.3)
    share = rng.uniform(0.2, 0.8)
    centers = rng.uniform(-3, 3, d), np.zeros(d)

    def log_likelihood(x):
        parts = zip((share, 1 - share), centers, widths)
        return np.logaddexp(*(np.log(s) + log_gaussian(x, c, w * np.eye(d)) for s, c, w in parts))

    return log_likelihood, cube(10), d, -d * np.log(20)


USERS = {
    "egg box": users_egg_box,
    "mass at sides": users_boundary,
    "hard rods": users_rods,
    "parameters in order": users_order,
    "separable logistic regression": users_separable,
    "sinusoids": users_waves,
    "spike on a plateau": users_spike,
    "cigar": users_cigar,
    "narrow mode in a wide one": users_narrow,
}
PROBLEMS = {
    "prior 1000 times as wide, 2-D": lambda: narrow(2, 1e3),
    "prior 100 times as wide, 5-D": lambda: narrow(5, 100),
    "prior 10,000 times as wide, 10-D": lambda: narrow(10, 1e4),
    "prior 100 times as wide, 20-D": lambda: narrow(20, 100, 0.3),
    "two modes, 2-D": lambda: two_modes(2, (0.5, 0.1), 0.3, 8),
    "two modes, 5-D": lambda: two_modes(5, (0.5, 0.15), 0.3, 6),
    "two modes, 10-D": lambda: two_modes(10, (0.5, 0.3), 0.5, 6),
    "egg box, 2-D": egg_box,
    "Gaussian shells, 2-D": lambda: shells(2),
    "Gaussian shells, 5-D": lambda: shells(5),
    "Gaussian shells, 10-D": lambda: shells(10),
    "LogGamma, 2-D": lambda: log_gamma(2),
    "LogGamma, 10-D": lambda: log_gamma(10),
    "Rosenbrock, 2-D": rosenbrock,
    "linear regression, 4-D": lambda: regression(40, 4, 0),
    "linear regression, 8-D": lambda: regression(60, 8, 1),
    "linear regression, 15-D": lambda: regression(80, 15, 2),
    "hierarchy, 10-D": lambda: hierarchy(10),
}


def run(problem, seed):
    log_likelihood, transform, d, truth = problem
    calls = [0]

    def counted(x):
        calls[0] += len(x)
        return log_likelihood(x)

    path = from_prior_transform(counted, transform, d, vectorized=True)
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = AdaptiveSMC(random_state=seed).fit(path).result_
    low, high = result.interval()
    return {
        "error": result.log_partition - truth,
        "std_error": result.std_error,
        "converged": bool(result.converged),
        "covers": bool(low <= truth <= high),
        "calls": calls[0],
        "seconds": time.process_time() - started,
    }


def run_dynesty(problem, seed):
    import dynesty

    log_likelihood, transform, d, truth = problem
    calls = [0]

    def counted(x):
        calls[0] += 1
        return float(log_likelihood(x[np.newaxis])[0])

    started = time.process_time()
    sampler = dynesty.NestedSampler(
        counted,
        lambda u: transform(u[np.newaxis])[0],
        d,
        nlive=500,
        rstate=np.random.default_rng(seed),
    )
    sampler.run_nested(print_progress=False, dlogz=0.01, maxcall=MOST_CALLS)
    std_error = float(sampler.results.logzerr[-1])
    error = float(sampler.results.logz[-1] - truth)
    return {
        "error": error,
        "std_error": std_error,
        "converged": calls[0] < MOST_CALLS,
        "covers": abs(error) < 1.96 * std_error,
        "calls": calls[0],
        "seconds": time.process_time() - started,
    }


def to_a_tenth(of_runs):
    """Median number of calls for a standard error of 0.1."""
    return np.median([each["calls"] * (each["std_error"] / 0.1) ** 2 for each in of_runs])


def report(runs):
    print("| problem | converged | covered | median SE, largest error | calls (for 0.1) | s |")
    print("|---|---|---|---|---|---|")
    for (method, name), of_runs in sorted(runs.items()):
        trusted = [each for each in of_runs if each["converged"]]
        covers = sum(each["covers"] for each in trusted)
        error = max((abs(each["error"]) for each in trusted), default=np.nan)
        std_error = np.median([each["std_error"] for each in of_runs])
        calls = np.median([each["calls"] for each in of_runs])
        seconds = np.median([each["seconds"] for each in of_runs])
        print(
            f"| {name}, {method} | {len(trusted)} of {len(of_runs)} | {covers} |"
            f" {std_error:.3f}, {error:.3f} | {calls:,.0f} ({to_a_tenth(of_runs):,.0f}) |"
            f" {seconds:.1f} |"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--results", type=Path, default=Path("adaptive_smc.jsonl"))
    parser.add_argument("--problems", nargs="*", default=None)
    parser.add_argument("--family", type=int, default=0)
    parser.add_argument("--users", type=int, default=0)
    parser.add_argument("--dynesty", type=int, default=0)
    parser.add_argument("--eprv3", default=None)
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()

    problems = dict(PROBLEMS)
    if options.eprv3:
        for number in (1, 2, 3):
            name = f"EPRV3, set {number}, no planet, 2-D"
            problems[name] = lambda n=number: radial_velocities(options.eprv3, n)
    names = list(problems) if options.problems is None else options.problems
    tasks = [("AdaptiveSMC", name, seed) for seed in range(options.seeds) for name in names]
    tasks += [("AdaptiveSMC", "family", seed) for seed in range(options.family)]
    tasks += [("AdaptiveSMC", name, seed) for seed in range(options.users) for name in USERS]
    tasks += [("dynesty", name, seed) for seed in range(options.dynesty) for name in names]

    runs = collections.defaultdict(list)
    done = set()
    if options.results.exists():
        for line in options.results.read_text().splitlines():
            record = json.loads(line)
            done.add((record["method"], record["problem"], record["seed"]))
            runs[record["method"], record["problem"]].append(record)
    made = {}
    for method, name, seed in [] if options.report else tasks:
        if (method, name, seed) in done:
            continue
        if name == "family":
            problem = of_family(seed)
        elif name in USERS:
            problem = USERS[name](np.random.default_rng([78, seed, *name.encode()]))
        else:
            problem = made[name] = made.get(name) or problems[name]()
        found = (run if method == "AdaptiveSMC" else run_dynesty)(problem, seed)
        record = {"method": method, "problem": name, "seed": seed, **found}
        with options.results.open("a") as file:
            file.write(json.dumps(record) + "\n")
        runs[method, name].append(record)
    report(runs)


if __name__ == "__main__":
    main()
