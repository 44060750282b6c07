"""Coverage of the 95 % intervals of converged runs on enumerable RBMs, one row for each problem and
setting.

    python tests/benchmarks/interval_coverage.py [--seeds 200] [--first 0] [--jobs 2] [--grid NAME]
        [--problems PATTERN] [--estimators PATTERN] [--ledger FILE]

PATTERN is a regular expression that is found in the names.

"defaults" runs AIS, RTS and ParallelTempering on every problem, "ais" AIS with few and many chains
and levels, "large" AIS and RTS on RBMs that can't be enumerated, where a long run of
ParallelTempering is the reference and its error widens the intervals, "traps" every estimator,
short and long, where the base or the ladder misses most of the model, "elementary"
ImportanceSampling and MarkovMixture on the problems and on the traps that aren't trained on MNIST,
"reweighting" all methods that read one run, on a run of ParallelTempering and one of RTS for each
seed, "adaptive" and "adaptive traps" the kinds of simulated tempering at equal sweeps, "smc" and
"smc traps" SMC, short and long, beside AIS and ParallelTempering. Prints Markdown; ms is the median
CPU time of a run. A row fails the band if at least 40 runs converged and fewer of them cover than
the 0.05 % quantile of Bin(n, 0.94). Problems on NLTCS and MNIST need the reference data (see
SKLPF_DATA) and are left out without it.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import itertools
import re
import sys
import time
import warnings
from pathlib import Path

import calibration_page
import numpy as np
from joblib import Parallel, delayed
from scipy.stats import binom
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import BernoulliRBM as ScikitRBM

from sklpf import AIS, BDMC, RTS, SMC, BernoulliRBM, Exact, ParallelTempering
from sklpf.models.rbm._path import RBMPath
from sklpf.partition import (
    BAR,
    MBAR,
    SAMS,
    ImportanceSampling,
    LevelProcess,
    MarkovMixture,
    SteppingStone,
    ThermodynamicIntegration,
    WangLandau,
)
from sklpf.testing import find_shared_data

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from known_problems import make_rbm_problem

_TINY = 1e-6  # nats: smaller standard errors are judged by the error itself


def trained(data, n_components, n_iter, learning_rate, scale=1.0):
    """The path of an RBM that scikit-learn trained on binary data, all parameters times `scale`."""
    rbm = ScikitRBM(
        n_components, learning_rate=learning_rate, batch_size=100, n_iter=n_iter, random_state=0
    )
    rbm.fit(data.astype(float))
    mean = (data.sum(axis=0) + 1) / (len(data) + 2)
    parameters = (rbm.components_, rbm.intercept_visible_, rbm.intercept_hidden_)
    return RBMPath(*(scale * parameter for parameter in parameters), mean)


def binary(name):
    data = np.load(find_shared_data(f"binary/{name}.npz"), allow_pickle=False)
    return np.unpackbits(data["train"], axis=1)[:, : int(data["n_features"])]


def stored(name):
    data = np.load(find_shared_data(f"rbm/{name}.npz"), allow_pickle=False)
    train = binary("mnist")
    mean = (train.sum(axis=0) + 1) / (len(train) + 2)
    return RBMPath(data["components"], data["intercept_visible"], data["intercept_hidden"], mean)


def digits():
    return (load_digits().data > 7).astype(np.uint8)


def mnist(n_components, seed):
    """An RBM of 10,000 rows of MNIST, trained here."""
    rows = binary("mnist")[:10_000].astype(np.float32)
    return BernoulliRBM(
        n_components, learning_rate=0.05, batch_size=50, n_iter=10, random_state=seed
    ).fit(rows)


def transposed(rbm):
    """The same model with the layers exchanged, and the base that it has then."""
    parameters = rbm.components_.T, rbm.intercept_hidden_, rbm.intercept_visible_
    return BernoulliRBM.from_parameters(*parameters).path()


PROBLEMS = {
    "digits, 12 hidden": lambda: trained(digits(), 12, 30, 0.05),
    "digits, 20 hidden": lambda: trained(digits(), 20, 300, 0.1),
    "digits, 20 hidden, parameters x 1.5": lambda: trained(digits(), 20, 300, 0.1, scale=1.5),
    "digits, 16 hidden, parameters x 3": lambda: trained(digits(), 16, 100, 0.1, scale=3.0),
    "random, 16 hidden": lambda: make_rbm_problem("medium").path,
    "random, 16 hidden, hard": lambda: make_rbm_problem("hard").path,
    "NLTCS, 16 visible, 40 hidden": lambda: trained(binary("nltcs"), 40, 20, 0.1),
    "NLTCS, 16 visible, 40 hidden, parameters x 2": lambda: trained(
        binary("nltcs"), 40, 20, 0.1, scale=2.0
    ),
    "MNIST, 10 hidden (mnist_h10)": lambda: stored("mnist_h10"),
    "MNIST, 15 hidden (mnist_toy15)": lambda: stored("mnist_toy15"),
}
TRAPS = {
    "two modes": lambda: make_rbm_problem("two modes").path,
    "two modes, other patterns": lambda: make_rbm_problem("two modes", 1).path,
    "far mode": lambda: make_rbm_problem("far mode").path,
    "sharp digits": lambda: make_rbm_problem("sharp digits").path,
    "digits, 20 hidden, uniform base": lambda: (
        BernoulliRBM(20, learning_rate=0.05, n_iter=100, random_state=0)
        .fit(digits())
        .path(base="uniform")
    ),
    **{
        f"MNIST, 20 hidden, {kind}, training {seed}": functools.partial(make, seed)
        for seed in range(6)
        for kind, make in {
            "uniform base": lambda seed: mnist(20, seed).path(base="uniform"),
            "transposed": lambda seed: transposed(mnist(20, seed)),
            "data base": lambda seed: mnist(20, seed).path(),
        }.items()
    },
}
LARGE = {
    "MNIST, 100 hidden": lambda: mnist(100, 0).path(),
    "MNIST, 500 hidden (mnist_cd25_500)": lambda: stored("mnist_cd25_500"),
    "MNIST, 500 hidden (mnist_h500)": lambda: stored("mnist_h500"),
}
REFERENCE = ParallelTempering(n_sweeps=65_536, random_state=1001)
DEFAULTS = {
    "AIS": AIS(),
    "RTS, 2000 sweeps": RTS(n_sweeps=2000),
    "ParallelTempering, 2048 sweeps": ParallelTempering(n_sweeps=2048),
}
SHORT = {
    "AIS": AIS(),
    "AIS, 200 levels": AIS(n_temperatures=200),
    "RTS, 1000 sweeps": RTS(n_sweeps=1000),
    "ParallelTempering, 1024 sweeps": ParallelTempering(n_sweeps=1024),
    "ParallelTempering, tol 0.1": ParallelTempering(tol=0.1),
    "BDMC, 300 levels": BDMC(n_temperatures=300),
}
AIS_GRID = {
    f"AIS, {n} x {k}": AIS(n, k)
    for n, k in itertools.product((10, 30, 100, 400), (3, 10, 100, 1000))
}
LARGE_GRID = {
    f"AIS, {n} x {k}": AIS(n, k)
    for n, k in [(10, 1000), (100, 1000), (400, 1000), (10, 10_000), (100, 10_000)]
}
LARGE_GRID |= {f"RTS, {n} sweeps": RTS(n_sweeps=n) for n in (4000, 9000, 16_000, 32_000)}
ELEMENTARY = {
    "ImportanceSampling, 1000": ImportanceSampling(1000),
    "ImportanceSampling": ImportanceSampling(),
    "MarkovMixture, 200 centres, 1024 sweeps": MarkovMixture(200, n_sweeps=1024),
    "MarkovMixture": MarkovMixture(),
}
UNTRAINED = {name: make for name, make in TRAPS.items() if "MNIST" not in name}
ADAPTIVE = {
    "RTS": RTS(50, 30, 1000),
    "SAMS": SAMS(50, 30, 1000),
    "SAMS, binary": SAMS(50, 30, 1000, update="binary"),
    "WangLandau": WangLandau(50, 30, 1000),
}
SMC_GRID = {
    **{f"SMC, 10 x {n} x {k}": SMC(n, k) for n, k in [(10, 10), (100, 10), (100, 30), (100, 100)]},
    "AIS, 100 x 1000": AIS(),
    "ParallelTempering, 1024 sweeps": ParallelTempering(n_sweeps=1024),
}
GRIDS = {
    "defaults": (PROBLEMS, DEFAULTS),
    "smc": (PROBLEMS, SMC_GRID),
    "smc traps": (TRAPS, SMC_GRID),
    "ais": (PROBLEMS, AIS_GRID),
    "large": (LARGE, LARGE_GRID),
    "traps": (TRAPS, SHORT),
    "adaptive": (PROBLEMS, ADAPTIVE),
    "adaptive traps": (TRAPS, ADAPTIVE),
    "elementary": (
        {"random, 12 hidden, easy": lambda: make_rbm_problem("easy").path, **PROBLEMS, **UNTRAINED},
        ELEMENTARY,
    ),
    "reweighting": (
        PROBLEMS,
        {
            "ParallelTempering, 1024 sweeps": ParallelTempering(n_sweeps=1024),
            "RTS, 30 levels, 1024 sweeps": RTS(n_temperatures=30, n_sweeps=1024),
        },
    ),
}
METHODS = {
    "BAR": BAR(),
    "MBAR": MBAR(),
    "SteppingStone": SteppingStone(),
    "SteppingStone, forward": SteppingStone(direction="forward"),
    "LevelProcess": LevelProcess(),
    "TI, trapezoid": ThermodynamicIntegration(rule="trapezoid"),
    "TI, corrected": ThermodynamicIntegration(),
    "TI, corrected, Rao-Blackwell": ThermodynamicIntegration(rao_blackwell=True),
}


def run(path, estimator, seeds):
    rows = []
    for seed in seeds:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            started = time.process_time()
            fitted = estimator.set_params(random_state=seed).fit(path)
        rows.append(numbers(fitted.result_, time.process_time() - started))
    return rows


def numbers(result, seconds=np.nan):
    return result.log_partition, result.std_error, *result.interval(), result.converged, seconds


def read_by_all(path, sampler, seeds):
    """Of every seed's run what the sampler and each method say, (1 + methods, 6)."""
    rows = []
    for seed in seeds:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = sampler.set_params(random_state=seed).fit(path)
        own = fitted.run_.read()
        results = [own, *(method._read(fitted.run_) for method in METHODS.values())]
        rows.append([numbers(result) for result in results])
    return rows


def measure(path, estimator, seeds, n_jobs, run=run):
    batches = np.array_split(seeds, 4 * n_jobs)
    results = Parallel(n_jobs=n_jobs)(
        delayed(run)(path, estimator, b.tolist()) for b in batches if len(b)
    )
    return np.array([row for batch in results for row in batch], dtype=float).T


def measured(path, name, estimator, seeds, n_jobs, grid):
    """Name and numbers (6, n_seeds) of every line of the table that an estimator makes."""
    if grid != "reweighting":
        return {name: measure(path, estimator, seeds, n_jobs)}
    values = measure(path, estimator, seeds, n_jobs, read_by_all)
    names = [name, *(f"{method}, from {name}" for method in METHODS)]
    return dict(zip(names, values.swapaxes(0, 1)))


def summarise(exact, exact_error, values):
    """Bias, standard errors, which runs converged, cover and are wrong by 3 SE, and which count in
    the pooled share.
    """
    value, error, low, high, converged, _ = values
    converged, off = converged.astype(bool), value - exact
    reach = np.hypot((high - low) / 2, 1.96 * exact_error)
    with np.errstate(invalid="ignore"):  # approximations have no interval, and have not converged
        covered = np.where(
            error > _TINY, np.abs((low + high) / 2 - exact) <= reach, np.abs(off) < _TINY
        )
    wrong = converged & (np.abs(off) > np.maximum(3 * np.hypot(error, exact_error), _TINY))
    pooled = converged & (error > _TINY)
    return off, error, converged, covered, wrong, pooled


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--grid", default="defaults", choices=sorted(GRIDS))
    parser.add_argument("--problems", default="")
    parser.add_argument("--estimators", default="")
    parser.add_argument("--ledger", help="append to this file, as doc/benchmarks/calibration.csv")
    args = parser.parse_args()
    problems, estimators = GRIDS[args.grid]
    heads = [
        "problem",
        "log Z",
        "estimator",
        "bias",
        "RMSE",
        "median SE",
        "ms",
        "converged",
        "covers",
    ]
    heads += ["converged and 3 SE off", "band"]
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    totals = np.zeros(2, dtype=int)
    for problem, make_path in problems.items():
        if not re.search(args.problems, problem):
            continue
        try:
            path = make_path()
        except TypeError:  # no reference data
            continue
        reference = (REFERENCE if args.grid == "large" else Exact(n_jobs=args.jobs)).fit(path)
        exact, exact_error = reference.log_partition_, reference.log_partition_std_error_
        shown = f"{exact:.3f}" + (f" ± {exact_error:.3f}" if exact_error else "")
        for name, estimator in estimators.items():
            if not re.search(args.estimators, name):
                continue
            n_seeds = max(40, args.seeds // 4) if "400 x 1000" in name else args.seeds
            seeds = np.arange(args.first, args.first + n_seeds)
            lines = measured(path, name, estimator, seeds, args.jobs, args.grid)
            for line, values in lines.items():
                off, error, converged, covered, wrong, pooled = summarise(
                    exact, exact_error, values
                )
                n, hits = int(converged.sum()), int(covered[converged].sum())
                totals += int(covered[pooled].sum()), int(pooled.sum())
                if args.ledger:
                    kind = "RBM, too large to enumerate" if exact_error else "RBM, enumerated"
                    if problem in TRAPS and "data base" not in problem:
                        kind = "RBM, base or ladder misses a mode"
                    row = {
                        "estimator": line,
                        "kind": kind,
                        "model": problem,
                        "runs": n_seeds,
                        "converged": n,
                        "covers": hits,
                        "beyond_3_se": wrong.sum(),
                        "seconds": round(float(np.median(values[5])), 3),
                        "date": datetime.date.today().isoformat(),
                        "script": f"interval_coverage.py --grid {args.grid}",
                    }
                    calibration_page.append([row], args.ledger)
                verdict = "-" if n < 40 else "fails" if hits < binom.ppf(5e-4, n, 0.94) else "holds"
                share = f"{hits} of {n}" + (f", {hits / n:.0%}" if n else "")
                print(
                    f"| {problem} | {shown} | {line} | {off.mean():+.3f} |"
                    f" {np.sqrt(np.mean(off**2)):.3f} | {np.nanmedian(error):.3f} |"
                    f" {1000 * np.median(values[5]):.0f} | {converged.mean():.0%} | {share} |"
                    f" {wrong.sum()} | {verdict} |",
                    flush=True,
                )
    print(
        f"\npooled coverage of converged runs: {totals[0] / max(totals[1], 1):.1%} ({totals[0]} of"
        f" {totals[1]})"
    )


if __name__ == "__main__":
    main()
