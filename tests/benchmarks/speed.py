"""Speed and memory, as ratios to what else could do the same work; prints Markdown.

    python tests/benchmarks/speed.py [sweep threads programs training time_to_error start
    memory]

What is compared is called in turn, round after round, in one process; the tables give the median
over the rounds, a ratio is the median of the rounds' ratios with its quartiles in brackets. BLAS
has one thread. What one thread computes is timed by the processor time of the process (the wall
time of an idle core, whatever else the machine does), two threads by the wall. `sweep` and
`time_to_error` need torch and rbms for their peer. Weights and data come from the reference data
(see SKLPF_DATA) and are generated where it is absent, which the tables then say.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import subprocess
import sys
import time
import warnings
from functools import partial
from importlib.util import find_spec

import numpy as np
from measure import (
    KEY,
    N_CHAINS,
    binary_mnist,
    interleave,
    large,
    quiet_fit,
    ratio,
    row,
    small,
    stored_path,
    sweeps,
    table,
    with_density,
)
from peers import SimpleSweeps, TorchSweeps, rbms_ais
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import BernoulliRBM as ScikitRBM
from threadpoolctl import threadpool_info, threadpool_limits

from sklpf import AIS, RTS, BernoulliRBM, Exact, ParallelTempering
from sklpf._utils.random import Stream, stream_key
from sklpf.programs._annealing import equal_blocks

_N_SEEDS = 6


# ---- one sweep, one thread and two
SIZES = (64, 64), (784, 500), (2000, 1000), (4000, 2000)
DENSITIES = 0.05, 0.2, 0.5
_WORK = 2e9  # multiplications by a weight in one measurement


def sweep():
    """Run it with NUMBA_CPU_NAME=haswell, NUMBA_CPU_FEATURES=+avx,+avx2,+fma,+bmi,+bmi2,+popcnt,
    OPENBLAS_CORETYPE=Haswell and ATEN_CPU_CAPABILITY=avx2 too, which are a processor without
    AVX-512.
    """
    print(f"\n## One Gibbs sweep of one of {N_CHAINS} chains, microseconds, one thread")
    peers = ["rbms"] if find_spec("rbms") else []
    names = ["NumPy", "products", "sweep", *peers]
    table("units", "on", *names, "NumPy / sweep", "sweep / products")
    for shape in SIZES:
        for density in DENSITIES:
            path = with_density(*shape, density)
            state = sweeps(path, path.sample_base(N_CHAINS, Stream(KEY)), _at_target(20), _LATER)
            n = max(1, int(_WORK / (path.components.size * N_CHAINS)))
            simple = SimpleSweeps(path, N_CHAINS)
            calls = {
                "NumPy": partial(simple.run, n),
                "products": partial(simple.multiply, n),
                "sweep": partial(sweeps, path, state, _at_target(n), _LATER),
            }
            if find_spec("rbms"):
                calls["rbms"] = partial(TorchSweeps(path, N_CHAINS).run, n)
            times = interleave(calls, 9)
            row(
                "{} x {}".format(*shape),
                f"{density:.0%}",
                *(f"{np.median(seconds) / (n * N_CHAINS) * 1e6:.3g}" for seconds in times.values()),
                ratio(times["NumPy"], times["sweep"]),
                ratio(times["sweep"], times["products"]),
            )


_LATER = Stream(KEY, 0, 1)


def _at_target(n):
    return np.ones((n, N_CHAINS))


def threads():
    name, path = large()
    print(f"\n## One and two threads, wall time ({name})")
    table("run", "one thread, s", "two threads, s", "one / two")
    runs = {
        "AIS, 100 chains x 1000 levels": AIS(random_state=0),
        "ParallelTempering, 512 sweeps": ParallelTempering(n_sweeps=512, random_state=0),
    }
    for what, estimator in runs.items():
        calls = {
            jobs: partial(quiet_fit, clone(estimator).set_params(n_jobs=jobs), path)
            for jobs in (1, 2)
        }
        times = interleave(calls, 11, time.perf_counter)
        row(what, *(f"{np.median(times[jobs]):.2f}" for jobs in (1, 2)), ratio(times[1], times[2]))
    print("\nGoal: one / two at least 1.8.")


# ---- estimators against their sweeps
def programs():
    print(
        "\n## Estimators against the bare Gibbs sweeps of the same chains at the same levels, one"
        " thread"
    )
    table("model", "estimator", "chains x sweeps", "estimator, s", "its sweeps alone, s", "ratio")
    for name, path in (large(), small()):
        for estimator, blocks, betas in _programs(path):
            times = interleave(
                {
                    "all": partial(quiet_fit, estimator, path),
                    "bare": partial(_bare, path, blocks, betas),
                },
                9,
            )
            row(
                name,
                type(estimator).__name__,
                f"{sum(blocks)} x {len(betas)}",
                f"{np.median(times['all']):.3f}",
                f"{np.median(times['bare']):.3f}",
                ratio(times["all"], times["bare"]),
            )
    print("\nGoal: at most 1.30.")


def _programs(path):
    """Estimators, the sizes of their blocks of chains, and the inverse temperatures of their sweeps
    (n_sweeps, n).
    """
    n_levels, n_sweeps = (1000, 512) if path.components.size > 1e4 else (4000, 4096)
    schedule = np.tile(np.linspace(0, 1, n_levels)[1:, np.newaxis], (1, N_CHAINS))
    yield AIS(n_temperatures=n_levels, random_state=0), equal_blocks(N_CHAINS, largest=32), schedule
    tuned = quiet_fit(ParallelTempering(n_sweeps=1024, random_state=0), path).result_.ladder
    fixed = ParallelTempering(10, len(tuned), n_sweeps, ladder=tuned, adapt=False, random_state=0)
    yield fixed, [len(tuned)] * 10, np.tile(tuned, (n_sweeps, 10))
    rts = RTS(random_state=0)
    n_done = round(quiet_fit(rts, path).result_.n_sweeps / rts.n_chains)
    spread = (
        np.linspace(0, 1, rts.n_chains).reshape(-1, 10).T.ravel()
    )  # every group over the whole ladder
    yield rts, [rts.n_chains // 10] * 10, np.tile(spread, (n_done, 1))


def _bare(path, blocks, betas):
    """The sweeps of `betas`, block by block, from base draws."""
    first = 0
    for size in blocks:
        stream = Stream(stream_key(1), first)
        sweeps(path, path.sample_base(size, stream), betas[:, first : first + size], stream.at(1))
        first += size


# ---- training
def training():
    print("\n## Training against scikit-learn's BernoulliRBM, one thread")
    table(
        "data",
        "settings",
        "sklpf, s per pass of 10",
        "scikit-learn, s per pass of 10",
        "scikit-learn / sklpf",
    )
    problems = list(_training())
    for name, settings, parameters, train, _ in problems:
        models = ("sklpf", BernoulliRBM), ("scikit-learn", ScikitRBM)
        times = interleave(
            {
                who: partial(model(**parameters, random_state=0).set_params(n_iter=10).fit, train)
                for who, model in models
            },
            9,
        )
        row(
            name,
            settings,
            *(f"{np.median(seconds) / 10:.4f}" for seconds in times.values()),
            ratio(times["scikit-learn"], times["sklpf"]),
        )
    print(
        "\nGoal: at least 5.\n\nHeld-out log-likelihood per row in nats: mean and standard error"
        " over"
    )
    print(f"{_N_SEEDS} seeds of training; log Z of both by ParallelTempering(n_sweeps=1024).")
    table(
        "data",
        "passes",
        "sklpf",
        "scikit-learn",
        "difference",
        "mean standard error of a log Z",
        "converged",
    )
    for name, _, parameters, train, test in problems:
        mean = (train.sum(axis=0, dtype=float) + 1) / (len(train) + 2)
        models = [partial(model, **parameters) for model in (BernoulliRBM, ScikitRBM)]
        found = np.array(
            [
                [_held_out(model, seed, train, mean, test) for seed in range(_N_SEEDS)]
                for model in models
            ]
        )
        scores, errors, converged = np.moveaxis(found, 2, 0)
        value, error = scores.mean(axis=1), scores.std(axis=1, ddof=1) / np.sqrt(_N_SEEDS)
        row(
            name,
            parameters.get("n_iter", 10),
            *(f"{m:.2f} ± {e:.2f}" for m, e in zip(value, error)),
            f"{value[0] - value[1]:+.2f} ± {np.hypot(*error):.2f}",
            f"{errors.mean():.3f}",
            f"{converged.mean():.0%}",
        )


def _training():
    """Data sets: name, settings in words, parameters, training rows, held-out rows of 0 and 1."""
    grey = load_digits().data / 16
    drawn = (np.random.default_rng(0).random(grey.shape) < grey).astype(float)
    yield "digits / 16, float64", "defaults: 256 hidden, batch 10", {}, grey[:1347], drawn[1347:]
    train, test = binary_mnist("train"), binary_mnist("test")
    if train is not None:
        parameters = {"n_components": 500, "batch_size": 100, "learning_rate": 0.01, "n_iter": 30}
        yield (
            "binary MNIST, 5000 rows, float32",
            "500 hidden, batch 100",
            parameters,
            train[:5000],
            test,
        )


def _held_out(model, seed, train, mean, test):
    """Log-likelihood of one trained model, the standard error of its log Z, and whether that
    converged.
    """
    rbm = model(random_state=seed).fit(train)
    known = BernoulliRBM.from_parameters(
        rbm.components_,
        rbm.intercept_visible_,
        rbm.intercept_hidden_,
        mean,
        random_state=seed,
        partition_estimator=ParallelTempering(n_sweeps=1024),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        score = known.score(test.astype(rbm.components_.dtype))
    return score, known.log_partition_std_error_, known.partition_estimator_.converged_


# ---- time to a given error
def time_to_error():
    name, path = stored_path("mnist_h10", 10)
    exact, n_seeds = Exact().fit(path).log_partition_, 40
    print(
        f"\n## Time to an RMSE of 0.1 nats, {name} (log Z = {exact:.3f}), one thread, {n_seeds}"
        " seeds"
    )
    table("run", "seconds", "bias", "RMSE (its standard error)", "seconds to 0.1 nats")
    runs = list(_runs(path))
    values, seconds = np.empty((2, len(runs), n_seeds))
    for seed in [0, *range(n_seeds)]:  # the first time all are called to warm up
        for i, (_, run) in enumerate(runs):
            began = time.process_time()
            values[i, seed] = run(seed)
            seconds[i, seed] = time.process_time() - began
    for (what, _), error, taken in zip(runs, values - exact, np.median(seconds, axis=1)):
        rmse = np.sqrt(np.mean(error**2))
        of_rmse = np.std(error**2, ddof=1) / np.sqrt(n_seeds) / (2 * rmse)
        row(
            what,
            f"{taken:.3f}",
            f"{error.mean():+.3f}",
            f"{rmse:.3f} ({of_rmse:.3f})",
            f"{taken * (rmse / 0.1) ** 2:.4f}",
        )
    print(
        "\nThe last column assumes that the mean squared error goes as 1 / time; two settings of"
        " each show how well."
    )
    print("Goal: 10 times less than rbms.")


def _runs(path):
    """Names and functions of a seed that return an estimate of log Z."""

    def ours(make, n, seed):
        return quiet_fit(make(n, seed), path).log_partition_

    for n in (300, 1000):
        yield (
            f"sklpf AIS, 100 chains x {n}",
            partial(ours, lambda n, s: AIS(100, n, random_state=s), n),
        )
    for n in (512, 1024):
        yield (
            f"sklpf ParallelTempering, {n} sweeps",
            partial(ours, lambda n, s: ParallelTempering(n_sweeps=n, random_state=s), n),
        )
    for n in (1000, 4000):
        yield (
            f"sklpf RTS, {n} sweeps",
            partial(ours, lambda n, s: RTS(n_sweeps=n, random_state=s), n),
        )
    try:
        theirs = {
            "rbms AIS": rbms_ais(path),
            "rbms AIS from our base": rbms_ais(path, same_base=True),
        }
    except ImportError:
        return print("torch or rbms is not installed, so there is no peer: pip install torch rbms")
    for what, function in theirs.items():
        for n in (300, 1000):
            yield f"{what}, 100 chains x {n}", partial(function, 100, n)


# ---- start of a process, memory
def child(code):
    """Run code in a fresh process and return the numbers that it prints."""
    command = [sys.executable, "-c", code]
    return [
        float(x)
        for x in subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    ]


_IMPORTS = {
    "scikit-learn's BernoulliRBM": "from sklearn.neural_network import BernoulliRBM",
    "import sklpf": "import sklpf",
    "scikit-learn's BernoulliRBM, then import sklpf": (
        "from sklearn.neural_network import BernoulliRBM; import sklpf"
    ),
    "scikit-learn's, then sklpf's BernoulliRBM": (
        "from sklearn.neural_network import BernoulliRBM; from sklpf import BernoulliRBM"
    ),
    "sklpf's BernoulliRBM": "from sklpf import BernoulliRBM",
    "scikit-learn's, then numba and its first cached function": (
        "from sklearn.neural_network import BernoulliRBM; from sklpf.kernels import exp32;"
        " exp32(1.0)"
    ),
}
_FIRST_CALL = """
import time
import numpy as np
import sklearn.neural_network
from sklpf import BernoulliRBM
X = np.random.default_rng(0).integers(2, size=(100, 32)).astype(float)
for _ in range(2):
    began = time.process_time()
    BernoulliRBM({n_components}, n_iter=1, random_state=0).fit(X).score(X)
    print(time.process_time() - began)
"""


def start():
    print("\n## Start of a fresh process, warm caches")
    clocked = "import time; began = time.process_time()\n{}\nprint(time.process_time() - began)"
    seconds = {what: [] for what in _IMPORTS}
    for _ in range(11):
        for what, code in _IMPORTS.items():
            seconds[what].append(child(clocked.format(code))[0])
    table("import", "seconds", "more than scikit-learn's alone")
    for what, values in seconds.items():
        more = np.median(np.subtract(values, seconds["scikit-learn's BernoulliRBM"]))
        row(what, f"{np.median(values):.3f}", f"{more:+.3f}")
    table("first fit and score, 100 x 32", "first call, s", "second call, s", "first - second")
    for n_components in (16, 32):
        calls = np.array([child(_FIRST_CALL.format(n_components=n_components)) for _ in range(8)])[
            1:
        ]
        first, second = np.median(calls, axis=0)
        what = f"{n_components} hidden ({'Exact' if n_components <= 20 else 'ParallelTempering'})"
        row(what, f"{first:.3f}", f"{second:.3f}", f"{np.median(calls[:, 0] - calls[:, 1]):.3f}")
    print("\nGoals: at most 0.2 s more than scikit-learn's import; first call at most 0.5 s.")


_PEAK = """
import warnings
import numpy as np
import sklpf
from sklpf.models.rbm._path import RBMPath
rng = np.random.default_rng(0)
path = RBMPath(rng.normal(scale=0.2, size=(64, 64)), np.zeros(64), np.zeros(64), np.full(64, 0.5))
warnings.simplefilter("ignore")
sklpf.{}.fit(path)
with open("/proc/self/status") as status:
    print(next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""


def memory():
    print("\n## Peak resident memory of a process that makes one run, 64 x 64 RBM")
    runs = {
        "AIS": ("n_temperatures", 10_000),
        "ParallelTempering": ("n_sweeps", 10_000),
        "RTS": ("n_sweeps", 10_000),
    }
    table("run", "MB", "ten times the sweeps, MB", "difference, MB")
    for name, (parameter, n) in runs.items():
        once, ten = (
            child(_PEAK.format(f"{name}({parameter}={k}, random_state=0)"))[0] / 1024
            for k in (n, 10 * n)
        )
        row(f"{name}, {parameter}={n}", f"{once:.1f}", f"{ten:.1f}", f"{ten - once:+.1f}")


SECTIONS = {
    f.__name__: f for f in (sweep, threads, programs, training, time_to_error, start, memory)
}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sections", nargs="*", metavar="section", help=" ".join(SECTIONS))
    chosen = parser.parse_args().sections or list(SECTIONS)
    if unknown := set(chosen) - set(SECTIONS):
        parser.error(f"unknown section {', '.join(unknown)}; choose from {', '.join(SECTIONS)}")
    versions = (
        f"{name} {importlib.metadata.version(name)}"
        for name in ("numpy", "scipy", "scikit-learn", "numba")
    )
    blas = {f"{entry['internal_api']} {entry.get('architecture')}" for entry in threadpool_info()}
    print(f"Python {platform.python_version()}, {', '.join(versions)}; {', '.join(sorted(blas))}")
    print(f"{os.cpu_count()} cores; load average before the run {os.getloadavg()[0]:.1f}")
    with threadpool_limits(1, user_api="blas"):
        for name in chosen:
            SECTIONS[name]()


if __name__ == "__main__":
    main()
