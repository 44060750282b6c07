"""AdaptiveSMC on targets with thin arms, necks, far modes and heavy tails, with known log Z.

    python tests/benchmarks/hard_targets.py [--seeds 8] [--targets NAME ...]
    [--results hard_targets.jsonl] [--report]

Each is a density on R^d with its gradient and a Gaussian base that is not fitted to it: definitions
of the sampling literature where there are any, log Z from closed forms, quadrature or a transfer
matrix. Every run is appended to the results file as it ends, and an interrupted benchmark goes on
where it stopped. Prints Markdown.
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
from scipy.special import gammaln, logsumexp

from sklpf import AdaptiveSMC, Gaussian, GeometricPath

LOG_2PI = np.log(2 * np.pi)


def funnel(d):
    """Neal's, in its own coordinates."""

    def log_density(x):
        v = x[:, 0]
        first = -(v**2) / 18 - np.log(3) - 0.5 * LOG_2PI
        rest = np.sum(x[:, 1:] ** 2, axis=1) * np.exp(-v) + (d - 1) * (v + LOG_2PI)
        return first - 0.5 * rest

    def grad(x):
        v = x[:, 0]
        precision = np.exp(-v)
        squares = np.sum(x[:, 1:] ** 2, axis=1)
        first = -v / 9 + 0.5 * squares * precision - 0.5 * (d - 1)
        return np.column_stack([first, -x[:, 1:] * precision[:, np.newaxis]])

    return log_density, grad, d, 3.0, 0.0


def many_well(n_wells):
    def log_density(x):
        a = x[:, :n_wells]
        return np.sum(-(a**4) + 6 * a**2 + 0.5 * a - 0.5 * x[:, n_wells:] ** 2, axis=1)

    def grad(x):
        a = x[:, :n_wells]
        return np.column_stack([-4 * a**3 + 12 * a + 0.5, -x[:, n_wells:]])

    well = quad(lambda a: np.exp(-(a**4) + 6 * a * a + 0.5 * a), -5, 5)[0]
    return log_density, grad, 2 * n_wells, 2.0, n_wells * (np.log(well) + 0.5 * LOG_2PI)


def mixture(centers, base_scale, log_part, pull):
    """Equal parts: `log_part` of squared distances, and `pull`, minus its slope in half of them."""
    norms = np.sum(centers**2, axis=1)

    def squares(x):
        return np.maximum(np.sum(x**2, axis=1)[:, np.newaxis] - 2 * x @ centers.T + norms, 0)

    def log_density(x):
        return logsumexp(log_part(squares(x)), axis=1) - np.log(len(centers))

    def grad(x):
        distances = squares(x)
        shares = log_part(distances)
        shares = np.exp(shares - logsumexp(shares, axis=1, keepdims=True)) * pull(distances)
        return shares @ centers - x * shares.sum(axis=1, keepdims=True)

    return log_density, grad, centers.shape[1], base_scale, 0.0


def gaussians(d, base_scale=40.0):
    centers = np.random.default_rng(0).uniform(-40, 40, (40, d))
    return mixture(centers, base_scale, lambda s: -0.5 * s - 0.5 * d * LOG_2PI, np.ones_like)


def students(d, df=2.0):
    centers = np.random.default_rng(1).uniform(-10, 10, (10, d))
    log_norm = gammaln(0.5 * (df + d)) - gammaln(0.5 * df) - 0.5 * d * np.log(df * np.pi)

    def log_part(squares):
        return log_norm - 0.5 * (df + d) * np.log1p(squares / df)

    return mixture(centers, 15.0, log_part, lambda squares: (df + d) / (df + squares))


def banana(d, base_scale):
    """A Gaussian with standard deviation 10 in the first coordinate, bent along its square."""

    def bent(x):
        return x[:, 1] + 0.1 * x[:, 0] ** 2 - 10

    def log_density(x):
        squares = x[:, 0] ** 2 / 100 + bent(x) ** 2 + np.sum(x[:, 2:] ** 2, axis=1)
        return -0.5 * squares - np.log(10) - 0.5 * d * LOG_2PI

    def grad(x):
        slope = -x
        slope[:, 0] = -x[:, 0] / 100 - 0.2 * x[:, 0] * bent(x)
        slope[:, 1] = -bent(x)
        return slope

    return log_density, grad, d, base_scale, 0.0


def rosenbrock(d):
    """All other coordinates follow the square of the first one."""

    def log_density(x):
        rest = x[:, 1:] - x[:, :1] ** 2
        return -0.05 * (x[:, 0] - 1) ** 2 - 5 * np.sum(rest**2, axis=1)

    def grad(x):
        rest = x[:, 1:] - x[:, :1] ** 2
        first = -0.1 * (x[:, 0] - 1) + 20 * x[:, 0] * rest.sum(axis=1)
        return np.column_stack([first, -10 * rest])

    log_z = 0.5 * np.log(np.pi / 0.05) + 0.5 * (d - 1) * np.log(np.pi / 5)
    return log_density, grad, d, 5.0, log_z


def two_widths(d, widths=(1.0, 0.3), distance=3.0):
    centers = np.array([np.full(d, -distance), np.full(d, distance)])
    variances = np.square(widths)

    def parts(x):
        squares = np.sum((x[:, np.newaxis] - centers) ** 2, axis=2)
        return -0.5 * squares / variances - 0.5 * d * (np.log(variances) + LOG_2PI) - np.log(2)

    def grad(x):
        shares = parts(x)
        shares = np.exp(shares - logsumexp(shares, axis=1, keepdims=True)) / variances
        return shares @ centers - x * shares.sum(axis=1, keepdims=True)

    return lambda x: logsumexp(parts(x), axis=1), grad, d, 5.0, 0.0


def lattice(length):
    """phi^4 on 2 x length sites with periodic boundaries."""

    def log_density(x):
        phi = x.reshape(-1, 2, length)
        links = sum((phi - np.roll(phi, -1, axis)) ** 2 for axis in (1, 2))
        return -np.sum(links - 4 * phi**2 + phi**4, axis=(1, 2))

    def grad(x):
        phi = x.reshape(-1, 2, length)
        slope = -8 * phi + 4 * phi**3
        for axis in (1, 2):
            slope += 2 * (2 * phi - np.roll(phi, -1, axis) - np.roll(phi, 1, axis))
        return -slope.reshape(len(x), -1)

    grid, step = np.linspace(-3.6, 3.6, 61, retstep=True)
    a, b = (each.ravel() for each in np.meshgrid(grid, grid))
    column = 2 * (a - b) ** 2 - 4 * (a**2 + b**2) + a**4 + b**4
    action = 0.5 * (column[:, np.newaxis] + column)
    action += (a[:, np.newaxis] - a) ** 2 + (b[:, np.newaxis] - b) ** 2
    values = np.linalg.eigvalsh(np.exp(-action) * step**2)
    largest = values[-1]
    log_z = length * np.log(largest) + np.log(np.sum((values / largest) ** length))
    return log_density, grad, 2 * length, 2.0, log_z


TARGETS = {
    "funnel, 10-D": lambda: funnel(10),
    "banana, 5-D, base half as wide": lambda: banana(5, 5.0),
    "banana, 20-D": lambda: banana(20, 10.0),
    "Rosenbrock, 4-D": lambda: rosenbrock(4),
    "Rosenbrock, 10-D": lambda: rosenbrock(10),
    "40 Gaussians, 2-D": lambda: gaussians(2),
    "40 Gaussians, 2-D, base a quarter as wide": lambda: gaussians(2, 10.0),
    "40 Gaussians, 5-D, base a quarter as wide": lambda: gaussians(5, 10.0),
    "ten Student-t, 10-D": lambda: students(10),
    "two widths, 10-D": lambda: two_widths(10),
    "phi^4, 2 x 16 sites": lambda: lattice(16),
    "ManyWell, 32-D": lambda: many_well(16),
    "ten Student-t, 50-D": lambda: students(50),
    "40 Gaussians, 50-D": lambda: gaussians(50),
}


def run(target, seed):
    log_density, grad, d, base_scale, truth = target
    calls = [0]

    def counted(function):
        def count(x):
            calls[0] += len(x)
            return function(x)

        return count

    base = Gaussian(np.zeros(d), base_scale**2)
    path = GeometricPath(counted(log_density), grad=counted(grad), base=base)
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
        "alarms": [each.kind for each in result.alarms],
    }


def report(runs):
    print("| target | converged | covered | median SE; mean, largest error | calls | s |")
    print("|---|---|---|---|---|---|")
    for name, of_runs in runs.items():
        trusted = [each for each in of_runs if each["converged"]]
        errors = [each["error"] for each in trusted] or [np.nan]
        std_error = np.median([each["std_error"] for each in trusted or of_runs])
        calls = np.median([each["calls"] for each in of_runs])
        seconds = np.median([each["seconds"] for each in of_runs])
        print(
            f"| {name} | {len(trusted)} of {len(of_runs)} |"
            f" {sum(each['covers'] for each in trusted)} | {std_error:.3f};"
            f" {np.mean(errors):+.3f}, {max(errors, key=abs):+.3f} | {calls:,.0f} |"
            f" {seconds:.0f} |"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--targets", nargs="*", default=list(TARGETS))
    parser.add_argument("--results", type=Path, default=Path("hard_targets.jsonl"))
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()

    runs = collections.defaultdict(list)
    done = set()
    if options.results.exists():
        for line in options.results.read_text().splitlines():
            record = json.loads(line)
            done.add((record["target"], record["seed"]))
            runs[record["target"]].append(record)
    made = {}
    tasks = [(seed, name) for seed in range(options.seeds) for name in options.targets]
    for seed, name in [] if options.report else tasks:
        if (name, seed) in done:
            continue
        made[name] = made.get(name) or TARGETS[name]()
        record = {"target": name, "seed": seed, **run(made[name], seed)}
        with options.results.open("a") as file:
            file.write(json.dumps(record) + "\n")
        runs[name].append(record)
    report({name: runs[name] for name in options.targets if name in runs})


if __name__ == "__main__":
    main()
