"""Coverage of the 95 % intervals of converged runs on densities with known log Z, one row per
problem and estimator.

    python tests/benchmarks/density_coverage.py [--seeds 200] [--first 0] [--jobs 2]
        [--problems NAME] [--estimators NAME] [--compiled] [--results density_coverage.jsonl]
        [--report]

Every run is appended to the results file as it ends: an interrupted benchmark goes on where it
stopped, and --report prints the table of what is there without running. K is the number of levels,
N that of sweeps. Prints Markdown. A row fails the band if at least 40 runs converged and fewer of
them cover than the 0.05 % quantile of Bin(n, 0.94). --reference measures log Z of the logistic
regression instead, which has no closed form. --unbiased prints the mean of Z_hat / Z over --seeds
runs of HAIS on four rows of a linear model, whose numbers of levels `tol` chooses.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from scipy import optimize, stats
from scipy.special import logsumexp
from scipy.stats import binom
from sklearn.exceptions import ConvergenceWarning

from sklpf import AIS, BDMC, HAIS, RTS, ParallelTempering
from sklpf.partition import ThermodynamicIntegration, _ais
from sklpf.paths import Stream, stream_key
from sklpf.transitions import HMC, RandomWalk

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from known_densities import DENSITY_PROBLEMS, make_density_problem
from known_rows import make_rows_problem

_TINY = 1e-6  # nats: smaller standard errors are judged by the error itself
CONTINUOUS = ("RTS, continuous", "TI, continuous")  # inverse temperatures
ESTIMATORS = (
    "HAIS",
    "HAIS, dense",
    "AIS, random walk",
    "RTS",
    "ParallelTempering",
    "BDMC",
    *CONTINUOUS,
)
BLIND = "base on one"  # not pooled: what no chain meets can't be known

_DENSE_WALK = ("condition 100", "regression")  # random walks in the metric "dense", others in None

# levels K of HAIS, HAIS with a metric, AIS with random walks, and BDMC; then sweeps N of RTS and
# ParallelTempering
_ORDER = ("HAIS", "HAIS, dense", "AIS, random walk", "BDMC", "RTS", "ParallelTempering")
_DEFAULT = (1000, 1000, 1000, 1000, 4000, 4096)
_BUDGETS = {
    "gaussian 2-D, condition 10000": (3000, 1000, 3000, 3000, 4000, 4096),
    "gaussian 20-D, condition 100": (3000, 1000, 3000, 3000, 4000, 4096),
    "gaussian 20-D, condition 10000": (30_000, 3000, 3000, 10_000, 16_000, 16_384),
    "gaussian 100-D, condition 1": (1000, 1000, 3000, 1000, 4000, 4096),
    "gaussian 100-D, condition 100": (10_000, 10_000, 3000, 10_000, 16_000, 16_384),
    "gaussian 100-D, condition 10000": (3000, 3000, 1000, 3000, 4000, 4096),
    "laplace 36-D": (1000, 1000, 3000, 1000, 4000, 4096),
    "student-t 6-D": (3000, 1000, 1000, 1000, 4000, 4096),
    "student-t 36-D": (30_000, 3000, 3000, 3000, 4000, 4096),
    "student-t 36-D, gaussian base": (3000, 3000, 3000, 3000, 4000, 4096),
    "two gaussians 10-D": (1000, 1000, 3000, 1000, 4000, 4096),
    "box exponential": (1000, 1000, 3000, 1000, 4000, 4096),
    "linear regression": (10_000, 1000, 1000, 10_000, 16_000, 16_384),
}


def budget(problem: str, estimator: str) -> int:
    if estimator in CONTINUOUS:
        return 240
    return dict(zip(_ORDER, _BUDGETS.get(problem, _DEFAULT)))[estimator]


def make_estimator(problem: str, name: str, size: int, has_bounds: bool):
    metric = "diag" if has_bounds else "dense"
    walk = "dense" if any(word in problem for word in _DENSE_WALK) else None
    return {
        "HAIS": lambda: HAIS(n_temperatures=size),
        "HAIS, dense": lambda: HAIS(n_temperatures=size, transition=HMC(metric=metric)),
        "AIS, random walk": lambda: AIS(
            n_temperatures=size, ladder="adaptive", transition=RandomWalk(metric=walk)
        ),
        "BDMC": lambda: BDMC(n_temperatures=size, ladder="adaptive"),
        "RTS": lambda: RTS(n_sweeps=size),
        "ParallelTempering": lambda: ParallelTempering(n_sweeps=size),
        "RTS, continuous": lambda: RTS(50, 10, size, continuous=True),
        "TI, continuous": lambda: ThermodynamicIntegration(
            RTS(50, 10, size, continuous=True), rule="continuous"
        ),
    }[name]()


def run(problem: str, name: str, size: int, seed: int, compiled: bool) -> dict:
    """One run as a row of the results file."""
    known = _problem(problem, compiled)
    estimator = make_estimator(problem, name, size, known.path.bounds is not None).set_params(
        random_state=seed
    )
    row = {"problem": problem, "estimator": name, "size": size, "seed": seed, "compiled": compiled}
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            fitted = estimator.fit(known.path)
        except Exception as error:  # what a user would see; the table counts it
            return row | {"failed": f"{type(error).__name__}: {error}"}
    low, high = fitted.log_partition_interval_
    row |= {
        "off": fitted.log_partition_ - known.log_partition,
        "error": fitted.log_partition_std_error_,
    }
    row |= {
        "low": low - known.log_partition,
        "high": high - known.log_partition,
        "converged": fitted.converged_,
    }
    return row | {"reasons": fitted.result_.reasons, "seconds": time.process_time() - started}


_cache: dict = {}


def _problem(problem: str, compiled: bool):
    if (problem, compiled) not in _cache:
        _cache[problem, compiled] = make_density_problem(problem, compiled=compiled)
    return _cache[problem, compiled]


def read(path: str) -> list[dict]:
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def missing(rows: list[dict], args) -> list[tuple]:
    """What is still to be run, seeds first, so that an interrupted run has a part of every cell."""
    keys = ("problem", "estimator", "size", "seed", "compiled")
    done = {tuple(row[key] for key in keys) for row in rows}
    cells = list(
        itertools.product(
            chosen(DENSITY_PROBLEMS, args.problems), chosen(ESTIMATORS, args.estimators)
        )
    )
    jobs = [
        (problem, name, args.size or budget(problem, name), seed, args.compiled)
        for batch in np.array_split(args.first + np.arange(args.seeds), max(1, args.seeds // 10))
        for problem, name in cells
        for seed in batch.tolist()
        if name != "BDMC" or hasattr(_problem(problem, False).path, "sample_target")
    ]
    return [job for job in jobs if job not in done]


def chosen(names, words: str) -> list[str]:
    """Names that are among the words between semicolons, or begin with one that ends in *."""
    if not words:
        return list(names)
    listed = [word.strip() for word in words.split(";")]
    return [
        n
        for n in names
        if any(n == w or (w.endswith("*") and n.startswith(w[:-1])) for w in listed)
    ]


def execute(args) -> None:
    jobs = missing(read(args.results), args)
    found = Parallel(n_jobs=args.jobs, return_as="generator_unordered", batch_size=1)(
        delayed(run)(*j) for j in jobs
    )
    with open(args.results, "a") as file:
        for row in found:
            file.write(json.dumps(row, default=float) + "\n")
            file.flush()


HEAD = (
    "| problem | log Z | estimator | K or N | runs | s | bias | RMSE | mean SE | median SE |"
    " converged | covers | converged and 3 SE off | band |\n|" + "---|" * 14
)


def summarise(rows: list[dict], std_error: float) -> tuple:
    """Errors, standard errors, converged, covering and wrong runs; a measured log Z widens both by
    its own error.
    """
    off, error, low, high = (
        np.array([row[key] for row in rows], dtype=float) for key in ("off", "error", "low", "high")
    )
    converged = np.array([bool(row["converged"]) for row in rows])
    factor = np.hypot(1.0, std_error / np.where(error > 0, error, np.inf))
    covered = np.where(error > _TINY, np.abs(off) <= factor * (high - low) / 2, np.abs(off) < _TINY)
    wrong = converged & (np.abs(off) > np.maximum(3 * factor * error, _TINY))
    return off, error, converged, covered, wrong


def report(rows: list[dict], args) -> None:
    cells: dict = {}
    for row in rows:
        if row["compiled"] == args.compiled:
            cells.setdefault((row["problem"], row["estimator"], row["size"]), []).append(row)
    print(HEAD)
    totals = {name: np.zeros(3, dtype=int) for name in ESTIMATORS}
    order = [
        (p, e)
        for p in chosen(DENSITY_PROBLEMS, args.problems)
        for e in chosen(ESTIMATORS, args.estimators)
    ]
    for problem, name, size in sorted(
        (c for c in cells if c[:2] in order), key=lambda c: (order.index(c[:2]), c[2])
    ):
        counts = _print_cell(problem, name, size, cells[problem, name, size])
        if BLIND not in problem:
            totals[name] += counts
    print(f'\nPooled coverage of converged runs, without the problems "{BLIND}":\n')
    for name, (covered, converged, wrong) in totals.items():
        if converged:
            print(
                f"- {name}: {covered / converged:.1%} ({covered} of {converged}), {wrong} wrong by"
                " more than 3 SE"
            )
    _print_costs(
        {
            key: rows
            for key, rows in cells.items()
            if key[:2] in order and key[2] == budget(*key[:2])
        }
    )


def _seconds(rows) -> float:
    """CPU time of a run: the lower quartile, since the first of a process compiles its programs."""
    return float(np.quantile([row["seconds"] for row in rows], 0.25))


def _print_costs(cells: dict) -> None:
    """Squared median error times CPU seconds; the mean squared error instead in parentheses, from
    10 runs on.
    """
    print(
        "\nSE^2 s (RMSE^2 s), in 1e-3 nats^2 s, where at least 3 runs were made and half of them"
        " converged:\n"
    )
    print("| problem | " + " | ".join(ESTIMATORS) + " |\n|" + "---|" * (1 + len(ESTIMATORS)))
    for problem in (p for p in DENSITY_PROBLEMS if BLIND not in p):
        costs, shown = {}, {}
        for name in ESTIMATORS:
            rows = [
                row
                for row in cells.get((problem, name, budget(problem, name)), [])
                if "failed" not in row
            ]
            if len(rows) < 3 or np.mean([row["converged"] for row in rows]) < 0.5:
                continue
            seconds = 1e3 * _seconds(rows)
            costs[name] = float(np.median([row["error"] for row in rows])) ** 2 * seconds
            shown[name] = f"{costs[name]:.2g}"
            if len(rows) >= 10:
                shown[name] += f" ({np.mean([row['off'] ** 2 for row in rows]) * seconds:.2g})"
        if len(costs) > 1:
            best = min(costs, key=costs.__getitem__)
            shown[best] = f"**{shown[best]}**"
            print(
                f"| {problem} | " + " | ".join(shown.get(name, "-") for name in ESTIMATORS) + " |"
            )


def _print_cell(problem, name, size, rows) -> tuple[int, int, int]:
    known, failed = _problem(problem, False), [row for row in rows if "failed" in row]
    start = f"| {problem} | {known.log_partition:.3f} | {name} | {size} | {len(rows)} |"
    rows = [row for row in rows if "failed" not in row]
    if not rows:
        print(f"{start} - | all failed: {failed[0]['failed'][:80]} |")
        return 0, 0, 0
    off, error, converged, covered, wrong = summarise(rows, known.std_error)
    n, hits, seconds = int(converged.sum()), int(covered[converged].sum()), _seconds(rows)
    verdict = "-" if n < 40 else "fails" if hits < binom.ppf(5e-4, n, 0.94) else "holds"
    share = f"{hits} of {n}" + (f", {hits / n:.0%}" if n else "")
    print(
        f"{start} {seconds:.1f} | {off.mean():+.4f} | {np.sqrt(np.mean(off**2)):.4f} | "
        f"{np.nanmean(error):.4g} | {np.nanmedian(error):.4g} | "
        f"{converged.mean():.0%} | {share} | {wrong.sum()} | {verdict} |"
        + (f" {len(failed)} failed: {failed[0]['failed'][:80]}" if failed else "")
    )
    return hits, n, int(wrong.sum())


# -- log Z of the logistic regression


def reference(n: int = 4_000_000) -> None:
    """Importance sampling with a t at the posterior's mean, after four rounds that find mean and
    covariance.
    """
    path = make_density_problem("logistic regression").path
    mode = optimize.minimize(
        lambda w: (-path.log_density(w[np.newaxis])[0], -path.grad(w[np.newaxis])[0]),
        np.zeros(31),
        jac=True,
    ).x
    steps = np.vstack([mode + 1e-4 * np.eye(31), mode - 1e-4 * np.eye(31)])
    slopes = path.grad(steps)
    mean, covariance = mode, np.linalg.inv((slopes[31:] - slopes[:31]) / 2e-4)
    for seed, df, draws in [
        (0, 40, 60_000),
        (1, 40, 60_000),
        (2, 40, 60_000),
        (3, 40, 60_000),
        (4, 60, n),
    ]:
        value, error, share, mean, covariance = _importance(path, mean, covariance, df, draws, seed)
        print(
            f"t with {df} degrees of freedom, {draws} draws: {value:.5f} +- {error:.5f},"
            f" {share:.0%} of the draws count"
        )


def _importance(path, mean, covariance, df, n, seed):
    rng, proposal = (
        np.random.default_rng(seed),
        stats.multivariate_t(mean, (covariance + covariance.T) / 2, df),
    )
    points = [proposal.rvs(20_000, random_state=rng) for _ in range(min(n, 60_000) // 20_000)]
    parts = itertools.chain(
        points, (proposal.rvs(20_000, random_state=rng) for _ in range((n - 60_000) // 20_000))
    )
    log_weights = np.concatenate([path.log_density(x) - proposal.logpdf(x) for x in parts])
    total, squares = logsumexp(log_weights), logsumexp(2 * log_weights)
    effective = np.exp(2 * total - squares)
    kept = np.concatenate(points)
    weights = np.exp(log_weights[: len(kept)] - logsumexp(log_weights[: len(kept)]))
    center = weights @ kept
    spread = (kept - center).T @ ((kept - center) * weights[:, np.newaxis])
    return total - np.log(n), np.sqrt(1 / effective - 1 / n), effective / n, center, spread


# -- is the mean estimate of Z right where the number of levels was chosen?


def unbiased(seeds: int) -> None:
    """8 chains and tol=0.3: about half of the rows need more than the fewest levels, 10."""
    problem = make_rows_problem(4, 2, 0.3)
    move = HMC().tune(problem.path.simulated_row(Stream(stream_key(0))), stream_key(0))
    ratios, counts = [], []

    def noted(*arguments, choose=_ais.enough_levels):
        plans = choose(*arguments)
        counts.extend(len(plan.path.ladder) > 10 for plan in plans)
        return plans

    _ais.enough_levels = noted
    for seed in range(seeds):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            hais = HAIS(8, tol=0.3, transition=move, random_state=seed).fit(problem.path)
        ratios.append(np.exp(hais.log_partition_ - problem.log_partition))
    mean, error = np.mean(ratios, axis=0), np.std(ratios, axis=0, ddof=1) / np.sqrt(seeds)
    print("| log Z | needed more levels | mean of Z_hat / Z |\n|---|---|---|")
    shares = np.mean(np.reshape(counts, (seeds, -1)), axis=0)
    for log_partition, share, value, std_error in zip(problem.log_partition, shares, mean, error):
        print(f"| {log_partition:.2f} | {share:.0%} | {value:.4f} +- {std_error:.4f} |")
    every = np.mean(ratios, axis=1)
    print(
        f"| all | {np.mean(counts):.0%} | {every.mean():.4f} +-"
        f" {every.std(ddof=1) / np.sqrt(seeds):.4f} |"
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--problems",
        default="",
        help="names between semicolons; a trailing * stands for any ending",
    )
    parser.add_argument("--estimators", default="", help="as --problems")
    parser.add_argument(
        "--size", type=int, default=0, help="K or N instead of the budgets in this file"
    )
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--results", default="density_coverage.jsonl")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--reference", action="store_true")
    parser.add_argument("--unbiased", action="store_true")
    args = parser.parse_args()
    if args.reference or args.unbiased:
        reference() if args.reference else unbiased(args.seeds)
        return
    if not args.report:
        execute(args)
    report(read(args.results), args)


if __name__ == "__main__":
    main()
