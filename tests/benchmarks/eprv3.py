"""Evidences of 0 to 3 planets in the radial velocities of the EPRV3 evidence challenge.

    python tests/benchmarks/eprv3.py FOLDER [--planets 0 1 2] [--priors a b] [--sets 1 2 3]
    [--seeds 2] [--n-particles 1000] [--max-sweeps 3000000] [--results eprv3.jsonl] [--report]

FOLDER holds rvs_000N.txt, prior_bounds_000N.txt and submissions.csv (Nelson et al. 2020,
arXiv:1806.04683). Keplerian orbits, correlated noise with fixed hyperparameters, priors of that
paper's section 2: "a" has periods from 1.25 to 10,000 days for all planets, "b" narrow ones. Every
run is appended to the results file as it ends. Prints Markdown: logarithms to base 10, as they were
submitted.
"""

from __future__ import annotations

import argparse
import collections
import csv
import json
import time
import warnings
from pathlib import Path

import numpy as np

from sklpf import AdaptiveSMC
from sklpf.interop import from_prior_transform

LOG_2PI = np.log(2 * np.pi)
RAYLEIGH = 0.2  # of eccentricities, below 1
N_NEWTON = 30


def true_anomaly(mean_anomaly, eccentricity):
    """By Newton's method for Kepler's equation."""
    e = eccentricity[:, np.newaxis]
    eccentric = mean_anomaly + e * np.sin(mean_anomaly)
    for _ in range(N_NEWTON):
        step = (eccentric - e * np.sin(eccentric) - mean_anomaly) / (1 - e * np.cos(eccentric))
        eccentric -= np.clip(step, -1, 1)
        if np.abs(step).max() < 1e-10:
            break
    return 2 * np.arctan2(
        np.sqrt(1 + e) * np.sin(eccentric / 2), np.sqrt(1 - e) * np.cos(eccentric / 2)
    )


def problem(folder, number, n_planets, prior):
    """Log likelihood and prior transform of 2 + 5 n_planets parameters."""
    t, v, error = np.loadtxt(folder / f"rvs_000{number}.txt").T[:3]
    lags = t[:, np.newaxis] - t
    kernel = 3 * np.exp(-0.5 * (np.sin(np.pi * lags / 20) ** 2 / 0.25 + lags**2 / 2500))
    values, vectors = np.linalg.eigh(kernel + np.diag(error**2))
    periods = [(1.25, 1e4)] * n_planets
    if prior == "b":
        lines = (folder / f"prior_bounds_000{number}.txt").read_text().split("\n")
        bounds = {int(line.split(",")[1]): line.split(",")[2:4] for line in lines if line.strip()}
        periods = [tuple(map(float, bounds[1 + j])) for j in range(n_planets)]

    def log_likelihood(x):
        model = np.repeat(x[:, :1], len(t), axis=1)
        for j in range(n_planets):
            period, height, e, w, mean_anomaly = x[:, 2 + 5 * j : 7 + 5 * j].T
            angle = 2 * np.pi * t / period[:, np.newaxis] + mean_anomaly[:, np.newaxis]
            angle = true_anomaly(angle, e) + w[:, np.newaxis]
            model += height[:, np.newaxis] * (np.cos(angle) + (e * np.cos(w))[:, np.newaxis])
        residuals = (v - model) @ vectors
        variances = values + x[:, 1:2] ** 2
        return -0.5 * np.sum(residuals**2 / variances + np.log(variances) + LOG_2PI, axis=1)

    def transform(u):
        columns = [2000 * u[:, 0] - 1000, 100 ** u[:, 1] - 1]
        for j, (low, high) in enumerate(periods):
            own = u[:, 2 + 5 * j : 7 + 5 * j]
            within = 1 - np.exp(-1 / (2 * RAYLEIGH**2))
            e = RAYLEIGH * np.sqrt(-2 * np.log1p(-own[:, 2] * within))
            columns += [low * (high / low) ** own[:, 0], 1000 ** own[:, 1] - 1]
            columns += [np.minimum(e, 1 - 1e-9), 2 * np.pi * own[:, 3], 2 * np.pi * own[:, 4]]
        return np.column_stack(columns)

    return log_likelihood, transform, 2 + 5 * n_planets


def submitted(folder):
    """Logarithms to base 10 by set, prior and number of planets."""
    values = collections.defaultdict(list)
    with (folder / "submissions.csv").open() as file:
        for row in csv.DictReader(file):
            value = float(row["log_evidence_1"])
            if value < -50:  # others are errors of cross-validation
                key = int(row["data_set"]), row["prior"], int(row["n_planets"])
                values[key].append(value)
    return values


def report(runs, others):
    print("| set, prior, planets | runs: log10 Z ± SE | calls | s | submitted: median, quartiles |")
    print("|---|---|---|---|---|")
    for key, records in sorted(runs.items()):
        numbers = "; ".join(
            f"{each['log_evidence'] / np.log(10):.3f} ± {each['std_error'] / np.log(10):.3f}"
            + ("" if each["converged"] else " (flagged)")
            for each in records
        )
        calls = np.median([each["calls"] for each in records])
        seconds = np.median([each["seconds"] for each in records])
        low, middle, high = np.quantile(others[key], [0.25, 0.5, 0.75])
        print(
            f"| {key[0]}, {key[1]}, {key[2]} | {numbers} | {calls:,.0f} | {seconds:.0f} |"
            f" {middle:.2f}, {low:.2f} to {high:.2f} of {len(others[key])} |"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--planets", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--priors", nargs="*", default=["a", "b"])
    parser.add_argument("--sets", type=int, nargs="*", default=[1, 2, 3])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--n-particles", type=int, default=1000)
    parser.add_argument("--max-sweeps", type=int, default=3_000_000)
    parser.add_argument("--results", type=Path, default=Path("eprv3.jsonl"))
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()

    runs = collections.defaultdict(list)
    done = set()
    if options.results.exists():
        for line in options.results.read_text().splitlines():
            record = json.loads(line)
            key = record["set"], record["prior"], record["planets"]
            done.add((*key, record["seed"]))
            runs[key].append(record)
    tasks = [
        (number, prior, planets, seed)
        for planets in options.planets
        for seed in range(options.seeds)
        for prior in options.priors
        for number in options.sets
        if planets or prior == "a"
    ]
    for number, prior, planets, seed in [] if options.report else tasks:
        if (number, prior, planets, seed) in done:
            continue
        log_likelihood, transform, d = problem(options.folder, number, planets, prior)
        calls = [0]

        def counted(x, log_likelihood=log_likelihood, calls=calls):
            calls[0] += len(x)
            return log_likelihood(x)

        path = from_prior_transform(counted, transform, d, vectorized=True)
        smc = AdaptiveSMC(options.n_particles, 0.05, options.max_sweeps, random_state=seed)
        started = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = smc.fit(path).result_
        record = {
            "set": number,
            "prior": prior,
            "planets": planets,
            "seed": seed,
            "log_evidence": result.log_partition,
            "std_error": result.std_error,
            "converged": bool(result.converged),
            "reasons": [str(alarm) for alarm in result.alarms],
            "calls": calls[0],
            "seconds": time.process_time() - started,
        }
        with options.results.open("a") as file:
            file.write(json.dumps(record) + "\n")
        runs[number, prior, planets].append(record)
    report(runs, submitted(options.folder))


if __name__ == "__main__":
    main()
