"""Do samplers say it when a mode of a density on R^d was missed?

    python tests/benchmarks/missing_modes.py RESULTS [--seeds 40] [--first 0]
    [--kinds "narrow modes" ...] [--estimators AIS ... climbs] [--report]

Every seed makes densities of its own, whose log Z is known:

- narrow modes: two Gaussians in 2 to 6 dimensions whose standard deviations are .05 to .3; base
  N(0, 9 I).
- box: a Gaussian and a narrower one with a fifth to nine tenths of the mass in a box of side 10 in
  3 to 5 dimensions; base uniform.
- twin peaks: two Gaussians of other scales, 8 to 30 standard deviations apart; base at one of them.
- label switching: the means of a mixture of two or three normal distributions; base at
  one of the two or six modes.
- far units: a MeanCovarianceRBM whose mean units pull nearly all mass far out; its own base.

and of every seed the densities of `known_densities` whose base is right, for right runs that are
lost. Every run is appended to the results as it ends, and an interrupted benchmark goes on where it
stopped. Prints Markdown. "climbs" runs no estimator: it says how much of Z the regions hold. A run
is wrong if it is converged and log Z is off by more than five standard errors and .02 nats.
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
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from sklearn.exceptions import ConvergenceWarning

import sklpf
from sklpf import Gaussian, GeometricPath, MeanCovarianceRBM, Uniform
from sklpf.paths import Stream, stream_key

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from known_densities import DENSITY_PROBLEMS, make_density_problem

ESTIMATORS = ("HAIS", "SMC", "ParallelTempering", "AIS", "RTS")
CLIMBS = "climbs"  # without a run
ENOUGH = 0.9  # share of Z
LOG_2PI = math.log(2 * math.pi)


class GaussianSum:
    """The sum of weighted spherical Gaussians, normalised by the weights."""

    def __init__(self, means, scales, weights):
        self.means = np.asarray(means)
        self.variances = np.square(scales)
        d = self.means.shape[1]
        self.heights = np.log(weights) - d / 2 * (LOG_2PI + np.log(self.variances))

    def _parts(self, x):
        away = x[:, np.newaxis] - self.means
        return away, self.heights - np.sum(away**2, axis=2) / (2 * self.variances)

    def __call__(self, x):
        return logsumexp(self._parts(x)[1], axis=1)

    def grad(self, x):
        away, parts = self._parts(x)
        return -np.einsum("nk,nkd->nd", softmax(parts, axis=1) / self.variances, away)


class MixturePosterior:
    """Posterior of the means of equal parts of normal distributions of unit variance, with the
    prior N(0, 400) of each.
    """

    def __init__(self, rows):
        self.rows = rows

    def _parts(self, x):
        away = self.rows[:, np.newaxis] - x[:, np.newaxis]
        return away, -(away**2) / 2

    def __call__(self, x):
        constant = len(self.rows) * (LOG_2PI / 2 + np.log(x.shape[1]))
        log_prior = -np.sum(x**2, axis=1) / 800 - x.shape[1] * (LOG_2PI / 2 + np.log(20))
        return logsumexp(self._parts(x)[1], axis=2).sum(axis=1) - constant + log_prior

    def grad(self, x):
        away, parts = self._parts(x)
        return np.sum(softmax(parts, axis=2) * away, axis=1) - x / 400


def path_to(density, **options) -> GeometricPath:
    return GeometricPath(density, grad=density.grad, **options)


def narrow_modes(rng):
    d = int(rng.integers(2, 7))
    share = rng.uniform(0.2, 0.8)
    means = rng.normal(scale=2.0, size=(2, d))
    density = GaussianSum(means, rng.uniform(0.05, 0.3, 2), [share, 1 - share])
    return path_to(density, base=Gaussian(np.zeros(d), 9.0)), 0.0


def box(rng):
    d = int(rng.integers(3, 6))
    share = rng.uniform(0.2, 0.9)
    means = rng.uniform(1.0, 3.0, (2, d)) * rng.choice([-1.0, 1.0], d) * [[1], [-1]]
    scales = [rng.uniform(0.25, 0.35), rng.uniform(0.08, 0.12)]
    density = GaussianSum(means, scales, [1 - share, share])
    base = Uniform(np.full(d, -5.0), np.full(d, 5.0))
    return path_to(density, base=base, bounds=(-5.0, 5.0)), 0.0


def twin_peaks(rng):
    d = int(rng.integers(1, 9))
    share = rng.uniform(0.1, 0.9)
    scales = rng.uniform(0.5, 1.5, 2)
    direction = rng.normal(size=d)
    away = rng.uniform(8, 30) * scales.max() * direction / np.linalg.norm(direction)
    first = rng.normal(scale=3.0, size=d)
    density = GaussianSum([first, first + away], scales, [share, 1 - share])
    return path_to(density, base=Gaussian(first, 1.5 * scales[0] ** 2)), 0.0


def label_switching(rng):
    n_components = int(rng.integers(2, 4))
    means = np.cumsum(rng.uniform(3.5, 5.0, n_components)) + rng.normal(scale=3.0)
    rows = np.concatenate([mean + rng.normal(size=40) for mean in means])
    density = MixturePosterior(rows)

    # One mode by a grid: the others are the same with labels switched.
    found = minimize(lambda x: -density(x[np.newaxis])[0], means).x
    axes = [mean + np.linspace(-7, 7, 81) / np.sqrt(35) for mean in found]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, n_components)
    values = np.concatenate([density(part) for part in np.array_split(grid, 200)])
    cell = n_components * np.log(axes[0][1] - axes[0][0])
    log_partition = logsumexp(values) + cell + math.log(math.factorial(n_components))
    base = Gaussian.at_mode(density, rng.permutation(found), grad=density.grad, factor=1.5)
    return path_to(density, base=base), float(log_partition)


def far_units(rng):
    d = int(rng.integers(3, 6))
    n_units = int(rng.integers(6, 11))
    filters = np.zeros((n_units, d))
    filters[:, 0] = rng.uniform(1.5, 3.0)
    distance = filters[:, 0].sum()
    intercepts = np.full(n_units, (rng.uniform(1.0, 6.0) - distance**2 / 2) / n_units)
    units = {"factors": np.eye(d), "pooling": np.zeros((d, d)), "mean_components": filters}
    model = MeanCovarianceRBM.from_parameters(**units, intercept_mean=intercepts)
    on = np.indices((2,) * n_units).reshape(n_units, -1).T
    log_partition = logsumexp(on @ intercepts + 0.5 * np.sum((on @ filters) ** 2, axis=1))
    return model.path(), float(log_partition + d / 2 * LOG_2PI + d * np.log(2))


HIDDEN = {
    "narrow modes": narrow_modes,
    "box": box,
    "twin peaks": twin_peaks,
    "label switching": label_switching,
    "far units": far_units,
}
ORDINARY = tuple(
    kind for kind in DENSITY_PROBLEMS if not kind.endswith(("base on one", "gaussian base"))
)


@functools.lru_cache(maxsize=1)
def problem(kind: str, seed: int):
    """A path and its log Z."""
    if kind in HIDDEN:
        return HIDDEN[kind](np.random.default_rng([81, seed, list(HIDDEN).index(kind)]))
    found = make_density_problem(kind, seed)
    return found.path, found.log_partition


def found_by_climbs(kind: str, seed: int) -> dict:
    """The share of Z that regions hold, which is .95 if all modes were found, and their time."""
    path, log_partition = problem(kind, seed)
    started = time.process_time()
    regions = path.regions(Stream(stream_key(seed)))
    seconds = time.process_time() - started
    share = np.exp(regions.log_masses - log_partition).mean(axis=1).sum()
    return {"kind": kind, "seed": seed, "estimator": CLIMBS, "share": share, "seconds": seconds}


def run(kind: str, seed: int, name: str) -> dict:
    if name == CLIMBS:
        return found_by_climbs(kind, seed)
    path, log_partition = problem(kind, seed)
    estimator = getattr(sklpf.partition, name)(random_state=seed)
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(path)
    low, high = estimator.log_partition_interval_
    return {
        "kind": kind,
        "seed": seed,
        "estimator": name,
        "off": estimator.log_partition_ - log_partition,
        "error": estimator.log_partition_std_error_,
        "covers": bool(low <= log_partition <= high),
        "alarms": [alarm.kind for alarm in estimator.result_.alarms],
        "seconds": time.process_time() - started,
    }


def read(path: str) -> list[dict]:
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def execute(args) -> None:
    done = {(row["kind"], row["seed"], row["estimator"]) for row in read(args.results)}
    with open(args.results, "a") as file:
        for seed in range(args.first, args.first + args.seeds):
            for kind in args.kinds:
                for name in args.estimators:
                    if (kind, seed, name) not in done:
                        file.write(json.dumps(run(kind, seed, name), default=float) + "\n")
                        file.flush()


def is_right(row: dict, most: float) -> bool:
    return abs(row["off"]) <= max(most * row["error"], 0.02)


def report_climbs(rows: list[dict]) -> None:
    print(f"| density | models | regions hold {ENOUGH:.0%} of Z | least share | seconds, median |")
    print("|" + "---|" * 5)
    for kind in dict.fromkeys(row["kind"] for row in rows):
        found = [row for row in rows if row["kind"] == kind]
        shares = np.array([row["share"] for row in found])
        seconds = np.median([row["seconds"] for row in found])
        cells = (kind, len(found), np.sum(shares > ENOUGH), f"{shares.min():.2g}", f"{seconds:.3f}")
        print(f"| {' | '.join(map(str, cells))} |")


def report(rows: list[dict]) -> None:
    print(
        "| density | estimator | runs | wrong without the alarm | wrong | flagged | by it alone |"
        " right ones lost by it |"
    )
    print("|" + "---|" * 8)
    groups: dict = {}
    for row in rows:
        kind = row["kind"] if row["kind"] in HIDDEN else "ordinary"
        for name in (row["estimator"], "all"):
            groups.setdefault((kind, name), []).append(row)
    for key, found in sorted(groups.items()):
        before = [row for row in found if not set(row["alarms"]) - {"missed-region"}]
        alone = [row for row in before if row["alarms"]]
        cells = (
            len(found),
            sum(not is_right(row, 5) for row in before),
            sum(not is_right(row, 5) for row in before if not row["alarms"]),
            sum(bool(row["alarms"]) for row in found),
            len(alone),
            sum(is_right(row, 3) for row in alone),
        )
        print(f"| {' | '.join(map(str, (*key, *cells)))} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results")
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--kinds", nargs="*", default=[*HIDDEN, *ORDINARY])
    parser.add_argument("--estimators", nargs="*", default=ESTIMATORS)
    parser.add_argument("--report", action="store_true")
    args = parser.parse_args()
    if not args.report:
        execute(args)
    rows = read(args.results)
    report([row for row in rows if row["estimator"] != CLIMBS])
    report_climbs([row for row in rows if row["estimator"] == CLIMBS])


if __name__ == "__main__":
    main()
