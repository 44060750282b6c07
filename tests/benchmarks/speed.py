"""Speed and memory, beside what else could do the same work; prints Markdown.

    python tests/benchmarks/speed.py [sweep update time_to_error threads start memory defaults]
        [--kind {binary,gaussian,categorical}] [--rounds 9] [--jobs 1 2]
        [--sizes 64x64 784x500 2000x1000 4000x2000] [--densities 0.05 0.2 0.5]

What is compared is called in turn, round after round, in one process; the tables give medians over
the rounds, a ratio is the median of the rounds' ratios with its quartiles in brackets. What one
thread computes is timed by the processor time of the process (the wall time of an idle core,
whatever else the machine does), two threads by the wall. BLAS has one thread, but for the others in
`update` if --jobs asks for more. Trained RBMs come from the reference data (see SKLPF_DATA).

sweep: a Gibbs sweep of 100 chains at the target. Run it with NUMBA_CPU_NAME=haswell,
NUMBA_CPU_FEATURES=+avx,+avx2,+fma,+bmi,+bmi2,+popcnt and OPENBLAS_CORETYPE=Haswell too, which are a
processor without AVX-512.
update: an update of training with batches of 100 rows and as many persistent chains. Binary units
of both layers are on with the same probability, which the library's time depends on and that of the
others does not: biases are set to its log odds, and rates are so small that it stays.
time_to_error: log Z beside the package rbms, which needs torch.
defaults: what an estimate costs with an estimator's defaults.
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
from pathlib import Path

import numba
import numpy as np
from interval_coverage import mnist, stored
from measure import coverage_cells, digits, interleave, judged, quiet_fit, ratio, row, table
from scipy.special import expit
from sklearn import neural_network
from sklearn.base import clone
from threadpoolctl import threadpool_info, threadpool_limits

from sklpf import (
    AIS,
    BDMC,
    HAIS,
    RTS,
    SMC,
    BernoulliRBM,
    CategoricalRBM,
    Exact,
    GaussianRBM,
    ParallelTempering,
)
from sklpf._utils.random import Keys, Stream
from sklpf.kernels import OPTIONS
from sklpf.kernels import _programs as programs
from sklpf.models.gaussian_rbm import _learning as of_gaussian
from sklpf.models.rbm import _learning as of_discrete
from sklpf.models.rbm._path import RBMPath
from sklpf.partition import RAISE, SAMS, MarkovMixture, WangLandau
from sklpf.paths import map_state
from sklpf.transitions import HMC

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from known_densities import make_density_problem

N_CHAINS = 100


# ---- one sweep
WORK = 2e9  # multiplications by a weight in one measurement
LATER = Stream((1, 2), 0, 1)


class SimpleSweeps:
    """Sweeps at the target in ten lines: NumPy in float32, products by BLAS."""

    def __init__(self, path):
        self.weights = np.ascontiguousarray(path.components.T, np.float32)
        self.visible_bias = path.intercept_visible.astype(np.float32)
        self.hidden_bias = path.intercept_hidden.astype(np.float32)
        self.rng = np.random.default_rng(0)
        self.v = self._draw(np.tile(path.logits[0].astype(np.float32), (N_CHAINS, 1)))

    def _draw(self, inputs):
        on = self.rng.random(inputs.shape, dtype=np.float32) < expit(inputs)
        return on.astype(np.float32)

    def run(self, n):
        for _ in range(n):
            h = self._draw(self.v @ self.weights + self.hidden_bias)
            self.v = self._draw(h @ self.weights.T + self.visible_bias)

    def multiply(self, n):
        """The two products of each sweep, and nothing else."""
        hidden = np.ones((len(self.v), len(self.hidden_bias)), np.float32)
        visible = np.empty_like(self.v)
        for _ in range(n):
            np.matmul(self.v, self.weights, out=hidden)
            np.matmul(hidden, self.weights.T, out=visible)
            hidden.fill(1)


def with_density(n_visible, n_hidden, density):
    """An RBM of whose units about this share is on, and which changes them all the time."""
    rng = np.random.default_rng(0)
    weights = rng.normal(scale=0.5 / np.sqrt(n_visible + n_hidden), size=(n_hidden, n_visible))
    logit = np.log(density / (1 - density))
    visible = logit - density * weights.sum(axis=0)
    hidden = logit - density * weights.sum(axis=1)
    return RBMPath(weights, visible, hidden, np.full(n_visible, density))


def sweeps(path, state, n):
    """The state after n Gibbs sweeps at the target and nothing else."""
    state = map_state(np.array, state)
    sweep_all(path.packed, state, np.ones((n, N_CHAINS)), LATER.keys)
    return state


@numba.njit(**OPTIONS)  # not cached: numba's cache does not see changes of called functions
def sweep_all(model, state, betas, keys):
    work = programs.scratch(model, state)
    for t in range(betas.shape[0]):
        now = Keys(keys.key0, keys.key1, keys.chain, keys.step + t)
        programs.sweep(model, state, betas[t], False, now, work)


def sweep(args):
    print(f"\n## One Gibbs sweep of one of {N_CHAINS} chains, microseconds, one thread")
    table("units", "on", "NumPy", "products", "sweep", "NumPy / sweep", "sweep / products")
    for size in args.sizes:
        for density in args.densities:
            path = with_density(*map(int, size.split("x")), density)
            state = sweeps(path, path.sample_base(N_CHAINS, Stream((1, 2))), 20)
            n = max(1, int(WORK / (path.components.size * N_CHAINS)))
            simple = SimpleSweeps(path)
            calls = {
                "NumPy": partial(simple.run, n),
                "products": partial(simple.multiply, n),
                "sweep": partial(sweeps, path, state, n),
            }
            times = interleave(calls, args.rounds)
            cells = (f"{1e6 * np.median(each) / n / N_CHAINS:.3g}" for each in times.values())
            ours = times["sweep"]
            both = ratio(times["NumPy"], ours), ratio(ours, times["products"])
            row(size, f"{density:.0%}", *cells, *both)


# ---- one update of training
N_ROWS = 1000
BATCH = 100
WARM_UP = 3  # passes, of ten updates
MEASURED = 3  # passes after these


def training_rows(kind, n_units, density):
    """Data without structure, float32."""
    rng = np.random.default_rng(0)
    if kind == "gaussian":
        return rng.normal(size=(N_ROWS, n_units)).astype(np.float32)
    if kind == "categorical":
        return rng.integers(21, size=(N_ROWS, n_units))
    return (rng.random((N_ROWS, n_units)) < density).astype(np.float32)


def clock_of(n_threads):
    return time.process_time if n_threads == 1 else time.perf_counter


def of_an_update(kind, n_hidden, X, n_jobs, density):
    """Seconds of one of the library's updates, in the last passes of a fit."""
    kinds = {"binary": BernoulliRBM, "categorical": CategoricalRBM, "gaussian": GaussianRBM}
    model = kinds[kind](
        n_hidden,
        learning_rate=0.01 if kind == "gaussian" else 1e-4,
        batch_size=BATCH,
        n_iter=WARM_UP + MEASURED,
        random_state=0,
        n_jobs=n_jobs,
    )
    trainer_class = (of_gaussian if kind == "gaussian" else of_discrete).Trainer
    clock = clock_of(n_jobs)
    seconds = []
    run = trainer_class.run

    def timed(trainer):
        if density is not None and not seconds:
            hidden = trainer.weights.parameters.intercept_hidden
            hidden[:] = np.log(density / (1 - density))
        began = clock()
        run(trainer)
        seconds.append(clock() - began)

    trainer_class.run = timed
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X)
    finally:
        trainer_class.run = run
    return np.mean(seconds[-MEASURED:]) / (len(X) // BATCH)


def of_scikit_learn(kind, n_hidden, X):
    options = {"batch_size": BATCH, "n_iter": 1, "random_state": 0}
    neural_network.BernoulliRBM(n_hidden, **options).fit(X)


def of_numpy(kind, n_hidden, X):
    """A pass of persistent contrastive divergence in NumPy."""
    rng = np.random.default_rng(0)
    weights = rng.normal(0, 0.01, (n_hidden, X.shape[1])).astype(np.float32)
    h = (rng.random((BATCH, n_hidden), dtype=np.float32) < 0.5).astype(np.float32)
    for first in range(0, len(X), BATCH):
        batch = X[first : first + BATCH]
        v = h @ weights
        if kind == "gaussian":
            v += rng.standard_normal(v.shape, dtype=np.float32)
        else:
            v = (rng.random(v.shape, dtype=np.float32) < 1 / (1 + np.exp(-v))).astype(np.float32)
        on = 1 / (1 + np.exp(-(batch @ weights.T)))
        mean = 1 / (1 + np.exp(-(v @ weights.T)))
        h = (rng.random(mean.shape, dtype=np.float32) < mean).astype(np.float32)
        weights += np.float32(1e-3 / BATCH) * (on.T @ batch - mean.T @ v)


def of_updates(args, n_units, n_hidden, density):
    """Milliseconds of an update by name, medians."""
    kind = args.kind
    X = training_rows(kind, n_units, density)
    as_units = np.eye(21, dtype=np.float32)[X].reshape(N_ROWS, -1) if kind == "categorical" else X
    others = {"NumPy": of_numpy, "scikit-learn": of_scikit_learn}
    if kind == "gaussian":
        del others["scikit-learn"]
    found = {}
    for _ in range(1 + args.rounds):
        for n in args.jobs:
            seconds = of_an_update(kind, n_hidden, X, n, density)
            found.setdefault(f"sklpf {n}", []).append(seconds)
        for name, call in others.items():
            for threads in (1, None) if max(args.jobs) > 1 else (1,):
                clock = clock_of(threads)
                with threadpool_limits(threads):
                    began = clock()
                    call(kind, n_hidden, as_units)
                seconds = (clock() - began) / (N_ROWS // BATCH)
                found.setdefault(f"{name} {threads or 'all'}", []).append(seconds)
    return {name: 1e3 * float(np.median(values[1:])) for name, values in found.items()}


def update(args):
    print("\n## One update of training, milliseconds")
    header = None
    for size in args.sizes:
        for density in args.densities if args.kind == "binary" else [None]:
            found = of_updates(args, *map(int, size.split("x")), density)
            if header is None:
                header = list(found)
                table("units", "on", *header)
            row(size, density or "", *(f"{found[name]:.2f}" for name in header))


# ---- time to a given error
def rbms_ais(path, same_base=False):
    """A function (n_chains, n_temperatures, seed) -> log Z by the AIS of rbms (torch, one thread,
    float32).

    rbms anneals from the model's own visible biases. `same_base` calls its building blocks on the
    base of `path` instead, which is what our estimators start from.
    """
    import torch
    from rbms.bernoulli_bernoulli.classes import BBRBM
    from rbms.partition_function.ais import (
        compute_partition_function_ais,
        interpolate_ebm,
        update_weights_ais,
    )

    torch.set_num_threads(1)
    arrays = path.components.T, path.intercept_visible, path.intercept_hidden, path.logits[0]
    tensors = (torch.tensor(array, dtype=torch.float32) for array in arrays)
    weights, visible, hidden, base = tensors
    rbm = BBRBM(weights, visible, hidden)
    reference = BBRBM(torch.zeros_like(weights), base, torch.zeros_like(hidden))

    def own(n_chains, n_temperatures, seed):
        torch.manual_seed(seed)
        return compute_partition_function_ais(n_chains, n_temperatures, rbm)

    def from_base(n_chains, n_temperatures, seed):
        torch.manual_seed(seed)
        chains, log_weights = reference.init_chains(n_chains), torch.zeros(n_chains)
        steps = interpolate_ebm(reference, rbm, torch.linspace(0, 1, n_temperatures))
        previous = next(steps)
        for current in steps:
            log_weights, chains = update_weights_ais(previous.clone(), current, chains, log_weights)
            previous = current
        return float(torch.logsumexp(log_weights, 0)) - np.log(n_chains) + reference.ref_log_z()

    return from_base if same_base else own


def time_to_error(args, n_seeds=40):
    path = stored("mnist_h10")
    exact = Exact().fit(path).log_partition_
    print(f"\n## Time to an RMSE of 0.1 nats, mnist_h10, one thread, {n_seeds} seeds")
    table("run", "seconds", "bias", "RMSE (its standard error)", "seconds to 0.1 nats")
    ours = {
        "AIS, 100 chains x 1000": AIS(),
        "ParallelTempering, 512 sweeps": ParallelTempering(n_sweeps=512),
        "RTS, 4000 sweeps": RTS(n_sweeps=4000),
    }
    runs = {f"sklpf {each}": partial(log_z_of, made, path) for each, made in ours.items()}
    try:
        runs["rbms AIS, 100 chains x 1000"] = partial(rbms_ais(path), 100, 1000)
        runs["rbms AIS from our base"] = partial(rbms_ais(path, same_base=True), 100, 1000)
    except ImportError:
        print("torch or rbms is not installed, so there is no peer: pip install torch rbms")
    values, seconds = np.empty((2, len(runs), n_seeds))
    for seed in [0, *range(n_seeds)]:  # the first time all are called to warm up
        for i, run in enumerate(runs.values()):
            began = time.process_time()
            values[i, seed] = run(seed)
            seconds[i, seed] = time.process_time() - began
    for what, error, taken in zip(runs, values - exact, np.median(seconds, axis=1)):
        rmse = np.sqrt(np.mean(error**2))
        of_rmse = np.std(error**2, ddof=1) / np.sqrt(n_seeds) / (2 * rmse)
        found = f"{error.mean():+.3f}", f"{rmse:.3f} ({of_rmse:.3f})"
        row(what, f"{taken:.3f}", *found, f"{taken * (rmse / 0.1) ** 2:.4f}")


def log_z_of(estimator, path, seed):
    return quiet_fit(estimator.set_params(random_state=seed), path).log_partition_


# ---- two threads
def threads(args):
    path = stored("mnist_cd25_500")
    print("\n## One and two threads, wall time, 500 hidden units on MNIST")
    table("run", "one thread, s", "two threads, s", "one / two")
    for estimator in (AIS(random_state=0), ParallelTempering(n_sweeps=512, random_state=0)):
        one, two = (clone(estimator).set_params(n_jobs=jobs) for jobs in (1, 2))
        calls = {jobs: partial(quiet_fit, each, path) for jobs, each in ((1, one), (2, two))}
        times = interleave(calls, args.rounds, time.perf_counter)
        medians = (f"{np.median(times[jobs]):.2f}" for jobs in (1, 2))
        row(type(estimator).__name__, *medians, ratio(times[1], times[2]))


# ---- start of a process, memory
def child(code):
    """Run code in a fresh process and return the numbers that it prints."""
    command = [sys.executable, "-c", code]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [float(x) for x in printed.split()]


THEIRS = "from sklearn.neural_network import BernoulliRBM"
FIRST_CALL = """
import time
import numpy as np
import sklearn.neural_network
from sklpf import BernoulliRBM
X = np.random.default_rng(0).integers(2, size=(100, 32)).astype(float)
for _ in range(2):
    began = time.process_time()
    BernoulliRBM({}, n_iter=1, random_state=0).fit(X).score(X)
    print(time.process_time() - began)
"""


def start(args):
    print("\n## Start of a fresh process, warm caches")
    clocked = "import time; began = time.process_time()\n{}\nprint(time.process_time() - began)"
    imports = {
        "scikit-learn's BernoulliRBM": THEIRS,
        "and sklpf's": THEIRS + "; from sklpf import BernoulliRBM",
    }
    calls = {what: partial(child, clocked.format(code)) for what, code in imports.items()}
    seconds = {what: [] for what in calls}
    for _ in range(args.rounds):
        for what, call in calls.items():
            seconds[what].extend(call())
    table("import", "seconds")
    for what, values in seconds.items():
        row(what, f"{np.median(values):.3f}")
    table("first fit and score, 100 x 32", "first call, s", "second call, s")
    for n_components, how in ((16, "Exact"), (32, "ParallelTempering")):
        found = [child(FIRST_CALL.format(n_components)) for _ in range(args.rounds)]
        row(f"{n_components} hidden ({how})", *(f"{each:.3f}" for each in np.median(found, axis=0)))


PEAK = """
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


def memory(args):
    print("\n## Peak resident memory of a process that makes one run, 64 x 64 RBM")
    table("run", "MB", "ten times the sweeps, MB")
    for name in ("AIS(n_temperatures", "ParallelTempering(n_sweeps", "RTS(n_sweeps"):
        calls = (PEAK.format(f"{name}={n}, random_state=0)") for n in (10_000, 100_000))
        row(f"{name}=10000)", *(f"{child(code)[0] / 1024:.1f}" for code in calls))


# ---- what an estimate costs with an estimator's defaults
def defaults(args):
    """Of an RBM of 64 x 32 units trained on digits, one of 784 x 20 trained on MNIST, whose log Z
    is enumerated, and a Gaussian in 20 dimensions with condition number 100.
    """
    small = BernoulliRBM(32, learning_rate=0.05, n_iter=30, random_state=0).fit(digits()).path()
    known = mnist(20, 0).path()
    density = make_density_problem("gaussian 20-D, condition 100", compiled=True)
    made = (ParallelTempering, AIS, SMC, RTS, SAMS, WangLandau, MarkovMixture, BDMC, RAISE)
    of_rbms = {each.__name__: each() for each in made}
    of_densities = {each.__name__: each() for each in (HAIS, ParallelTempering, RTS, SMC, BDMC)}
    of_densities['HAIS, metric="dense"'] = HAIS(transition=HMC(metric="dense"))
    truth = Exact().fit(known).log_partition_
    targets = {
        "RBM, 64 × 32": (small, np.nan, of_rbms),
        "RBM, 784 × 20": (known, truth, {"Exact": Exact()} | of_rbms),
        "density, 20-D": (density.path, density.log_partition, of_densities),
    }
    table("target", "estimator", "s", "median SE", "RMSE", "converged")
    for target, (path, truth, estimators) in targets.items():
        for name, estimator in estimators.items():
            runs = []
            for seed in range(1 + args.rounds):  # the first compiles
                estimator.set_params(n_jobs=1)
                if "random_state" in estimator.get_params():
                    estimator.set_params(random_state=seed)
                runs += judged(estimator, path, truth)
            n, converged, *_, rmse, error, seconds = coverage_cells(runs[1:])
            row(target, name, seconds, error, rmse, f"{converged} of {n}")


SECTIONS = {f.__name__: f for f in (sweep, update, time_to_error, threads, start, memory, defaults)}


def main():
    keep_lines = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=keep_lines)
    parser.add_argument("sections", nargs="*", default=list(SECTIONS))
    parser.add_argument("--kind", choices=["binary", "gaussian", "categorical"], default="binary")
    parser.add_argument("--rounds", type=int, default=9)
    sizes = ["64x64", "784x500", "2000x1000", "4000x2000"]
    parser.add_argument("--sizes", nargs="*", default=sizes)
    parser.add_argument("--densities", nargs="*", type=float, default=[0.05, 0.2, 0.5])
    parser.add_argument("--jobs", nargs="*", type=int, default=[1, 2])
    args = parser.parse_intermixed_args()
    packages = ("numpy", "scipy", "scikit-learn", "numba")
    versions = (f"{name} {importlib.metadata.version(name)}" for name in packages)
    blas = {f"{entry['internal_api']} {entry.get('architecture')}" for entry in threadpool_info()}
    print(f"Python {platform.python_version()}, {', '.join(versions)}; {', '.join(sorted(blas))}")
    print(f"{os.cpu_count()} cores; load average before the run {os.getloadavg()[0]:.1f}")
    with threadpool_limits(1, user_api="blas"):
        for name in args.sections:
            SECTIONS[name](args)


if __name__ == "__main__":
    main()
