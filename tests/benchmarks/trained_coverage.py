"""Coverage of the 95 % intervals of log Z for image models that are trained anew here, one row per
model and setting.

    python tests/benchmarks/trained_coverage.py [--seeds 200] [--first 0] [--jobs 2]
        [--models NAME] [--settings NAME] [--folder trained_coverage] [--report]

Models are trained by their defaults on whitened patches of scikit-learn's two photographs, on its
digits, and on generated sources, with a seed of their own. The truth is a closed form, or 4000
chains with 10,000 levels (of mean-covariance RBMs 2000), whose error enters what counts as covered.
Every truth and every run is appended to a file in the folder: an interrupted benchmark goes on
where it stopped, --report prints the table of what is there. A row fails the band if at least 40
runs converged and fewer of them cover than the 0.05 % quantile of Bin(n, 0.94).
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import binom
from sklearn.datasets import load_digits, load_sample_images
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

from sklpf import HAIS, RTS, Exact, MeanCovarianceRBM, ParallelTempering, ProductOfExperts
from sklpf.datasets import make_patches
from sklpf.models.mcrbm._path import MeanCovariancePath
from sklpf.models.products._path import ProductPath
from sklpf.partition import default_estimator
from sklpf.paths import has

SETTINGS = {  # path -> an estimator
    "HAIS": lambda path: HAIS(),
    "HAIS 400 x 100": lambda path: HAIS(400, 100),
    "HAIS 20 x 300": lambda path: HAIS(20, 300),
    "HAIS 100 x 30": lambda path: HAIS(100, 30),
    "HAIS 10 x 1000": lambda path: HAIS(10, 1000),
    "as scored": default_estimator,
    "RTS": lambda path: RTS(),
    "ParallelTempering": lambda path: ParallelTempering(),
}
REFERENCES = {
    ProductPath: HAIS(4000, 10_000),
    MeanCovariancePath: HAIS(2000, 10_000),
}
FEWER = {"as scored": 20, "RTS": 20, "ParallelTempering": 20}  # seeds of what takes longer


def _patches(d):
    grey = [image.mean(axis=2) for image in load_sample_images().images]
    return make_patches(grey, 12, 5000, d, random_state=1).X_train


def _digits(d):
    return PCA(d, whiten=True, random_state=0).fit_transform(load_digits().data)


def _sources(d):
    rng = np.random.default_rng(3)
    return rng.standard_t(3, size=(4000, 2 * d)) @ rng.normal(size=(2 * d, d)) / np.sqrt(6 * d)


def _product(rows, d, n_components, expert):
    return lambda: ProductOfExperts(n_components, expert, random_state=7).fit(rows(d))


def _mcrbm(rows, d, n):
    return lambda: MeanCovarianceRBM(n, n, n, random_state=7).fit(rows(d))


MODELS = {
    "patches 36-D, Student-t 36": _product(_patches, 36, 36, "student_t"),
    "patches 36-D, Student-t 72": _product(_patches, 36, 72, "student_t"),
    "patches 36-D, Student-t 144": _product(_patches, 36, 144, "student_t"),
    "patches 36-D, Laplace 72": _product(_patches, 36, 72, "laplace"),
    "patches 36-D, Laplace 144": _product(_patches, 36, 144, "laplace"),
    "patches 10-D, Student-t 40": _product(_patches, 10, 40, "student_t"),
    "digits 15-D, Student-t 60": _product(_digits, 15, 60, "student_t"),
    "digits 15-D, Laplace 60": _product(_digits, 15, 60, "laplace"),
    "sources 5-D, Student-t 8": _product(_sources, 5, 8, "student_t"),
    "sources 20-D, Student-t 40": _product(_sources, 20, 40, "student_t"),
    "patches 36-D, mcRBM 36": _mcrbm(_patches, 36, 36),
    "patches 36-D, mcRBM 72": _mcrbm(_patches, 36, 72),
    "patches 10-D, mcRBM 20": _mcrbm(_patches, 10, 20),
    "digits 15-D, mcRBM 30": _mcrbm(_digits, 15, 30),
}


def trained(name: str):
    """The path of a model that is trained now."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MODELS[name]().path()


def truth(name: str, path, folder: str, n_jobs: int) -> tuple[float, float]:
    """log Z and its standard error, from the folder if they are there."""
    file = os.path.join(folder, "truths.json")
    known = read(file)
    for row in known:
        if row["model"] == name:
            return row["log_partition"], row["error"]
    reference = Exact()
    if not has(path, "closed_log_partition"):
        reference = REFERENCES[type(path)].set_params(random_state=12345)
    reference.set_params(n_jobs=n_jobs).fit(path)
    if not reference.converged_:
        print(f"{name}: the reference has not converged: {reference.result_.reasons}")
    row = {
        "model": name,
        "log_partition": reference.log_partition_,
        "error": reference.log_partition_std_error_,
    }
    with open(file, "a") as lines:
        lines.write(json.dumps(row) + "\n")
    return row["log_partition"], row["error"]


def run(name: str, path, log_partition: float, truth_error: float, setting: str, seed: int) -> dict:
    estimator = SETTINGS[setting](path).set_params(random_state=seed)
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(path)
    low, high = estimator.log_partition_interval_
    row = {
        "model": name,
        "setting": setting,
        "seed": seed,
        "off": estimator.log_partition_ - log_partition,
    }
    row |= {"error": estimator.log_partition_std_error_, "truth_error": truth_error}
    row |= {"covers": bool(low - 2 * truth_error <= log_partition <= high + 2 * truth_error)}
    row |= {"converged": bool(estimator.converged_), "reasons": estimator.result_.reasons}
    return row | {"seconds": time.process_time() - started}


def read(file: str) -> list[dict]:
    if not os.path.exists(file):
        return []
    with open(file) as lines:
        return [json.loads(line) for line in lines]


def report(rows: list[dict]) -> None:
    print(
        "| model | setting | runs | converged | cover | RMSE | mean SE | farthest (SE) | s | band |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in MODELS:
        for setting in SETTINGS:
            cell = [row for row in rows if (row["model"], row["setting"]) == (name, setting)]
            if not cell:
                continue
            good = [row for row in cell if row["converged"]]
            covers = sum(row["covers"] for row in good)
            off = np.array([row["off"] for row in good])
            error = np.array([np.hypot(row["error"], row["truth_error"]) for row in good])
            fails = len(good) >= 40 and covers < binom.ppf(0.0005, len(good), 0.94)
            numbers = "| | | |"
            if good:
                farthest = np.abs(off / error).max()
                numbers = (
                    f"| {np.sqrt(np.mean(off**2)):.3f} | {error.mean():.3f} | {farthest:.1f} |"
                )
            seconds = np.median([row["seconds"] for row in cell])
            share = f"{covers} ({100 * covers / len(good):.0f} %)" if good else ""
            print(
                f"| {name} | {setting} | {len(cell)} | {len(good)} | {share} {numbers}"
                f" {seconds:.2g} | {'fails' if fails else ''} |"
            )
    for setting in SETTINGS:
        good = [row for row in rows if row["setting"] == setting and row["converged"]]
        if good:
            covers = sum(row["covers"] for row in good)
            print(f"\n{setting}: {covers} of {len(good)} cover ({100 * covers / len(good):.1f} %)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--models", default="")
    parser.add_argument("--settings", default="")
    parser.add_argument("--folder", default="trained_coverage")
    parser.add_argument("--report", action="store_true")
    args = parser.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    file = os.path.join(args.folder, "runs.jsonl")
    rows = read(file)
    if args.report:
        report(rows)
        return
    done = {(row["model"], row["setting"], row["seed"]) for row in rows}
    for name in MODELS:
        if args.models not in name:
            continue
        path = trained(name)
        known = truth(name, path, args.folder, args.jobs)
        todo = [
            (setting, args.first + seed)
            for setting in SETTINGS
            if args.settings in setting
            for seed in range(min(args.seeds, FEWER.get(setting, args.seeds)))
            if (name, setting, args.first + seed) not in done
        ]
        tasks = (delayed(run)(name, path, *known, *task) for task in todo)
        with open(file, "a") as lines:
            for row in Parallel(args.jobs, return_as="generator")(tasks):
                lines.write(json.dumps(row) + "\n")
                lines.flush()
    report(read(file))


if __name__ == "__main__":
    main()
