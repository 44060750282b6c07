"""How the benchmarks measure, what they measure on, and the Markdown that they print."""

from __future__ import annotations

import json
import time
import warnings
from functools import partial
from pathlib import Path

import numba
import numpy as np
from scipy.special import expit
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from sklpf import BernoulliRBM
from sklpf._utils.random import Keys
from sklpf.kernels import OPTIONS
from sklpf.kernels import _programs as programs
from sklpf.models.rbm._path import RBMPath
from sklpf.paths import map_state
from sklpf.testing import find_shared_data

N_CHAINS = 100
KEY = (1, 2)


# ---- measuring
def interleave(calls, rounds, clock=time.process_time):
    """Seconds of every call in every round, {name: (rounds,)}, after one call of each that is not
    timed.
    """
    seconds = {name: [] for name in calls}
    for measured in range(-1, rounds):
        for name, call in calls.items():
            began = clock()
            call()
            if measured >= 0:
                seconds[name].append(clock() - began)
    return {name: np.array(values) for name, values in seconds.items()}


def quiet_fit(estimator, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit(path)


class Kept:
    """Measurements in a file of JSON lines: an interrupted benchmark goes on where it stopped.

    Parameters
    ----------
    file : str or None
        Made if it is not there; with None nothing is kept.
    """

    def __init__(self, file):
        self.file = None if file is None else Path(file)
        self.found = {}
        if self.file is not None and self.file.exists():
            for line in self.file.read_text().splitlines():
                key, values = json.loads(line)
                self.found[tuple(key)] = values

    def get(self, key, measure):
        """Return the values that `measure()` gave for the key (a tuple), now or earlier."""
        if key not in self.found:
            self.found[key] = [float(value) for value in measure()]
            if self.file is not None:
                with self.file.open("a") as file:
                    file.write(json.dumps([key, self.found[key]]) + "\n")
        return self.found[key]


def timed_error(estimator, model, exact):
    """Whether a run converged, covers the exact log Z, and is beyond 5 standard errors; its error
    in nats, its standard error, and seconds of the processor.
    """
    began = time.process_time()
    result = quiet_fit(estimator, model).result_
    seconds = time.process_time() - began
    low, high = result.interval(0.95)
    error = result.log_partition - exact
    far = abs(error) > 5 * result.std_error
    return result.converged, low <= exact <= high, far, error, result.std_error, seconds


COVERAGE = (
    "runs",
    "converged",
    "cover",
    "share",
    "beyond 5 SE",
    "rms error",
    "std. error",
    "seconds",
)


def coverage_cells(runs):
    """Cells of a row of coverage, of what `timed_error` gave for each run.

    Covers and errors are those of the runs that converged; the standard error and the seconds are
    medians.
    """
    converged, covers, far, errors, std_errors, seconds = np.array(runs, dtype=float).T
    good = converged == 1
    rms = np.sqrt(np.mean(errors[good] ** 2))
    return (
        len(runs),
        int(good.sum()),
        int(covers[good].sum()),
        f"{covers[good].mean():.1%}",
        int(far[good].sum()),
        f"{rms:.3f}",
        f"{np.median(std_errors[good]):.3f}",
        f"{np.median(seconds):.2f}",
    )


# ---- Markdown
def ratio(slow, fast):
    """Median and quartiles of the rounds' ratios, as text."""
    low, middle, high = np.percentile(slow / fast, [25, 50, 75])
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def table(*columns):
    print("\n| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


# ---- problems
def binary_mnist(part):
    """Rows of 0 and 1, float32, or None where the reference data is absent."""
    file = find_shared_data("binary/mnist.npz")
    return (
        None
        if file is None
        else np.unpackbits(np.load(file)[part], axis=1)[:, :784].astype(np.float32)
    )


def stored_path(name, n_hidden):
    """A trained RBM of the reference data with the MNIST marginals as base, or a generated one of
    the same shape.
    """
    file, train = find_shared_data(f"rbm/{name}.npz"), binary_mnist("train")
    if file is None or train is None:
        rng = np.random.default_rng(0)
        visible, base = rng.normal(-2, 1, (2, 784))
        weights = rng.normal(scale=0.15, size=(n_hidden, 784))
        return "generated weights", RBMPath(
            weights, visible, rng.normal(-2, 1, n_hidden), expit(base)
        )
    mean = (train.sum(axis=0, dtype=float) + 1) / (len(train) + 2)
    with np.load(file) as data:
        return name, RBMPath(
            data["components"], data["intercept_visible"], data["intercept_hidden"], mean
        )


large = partial(stored_path, "mnist_cd25_500", 500)


def small():
    X = (load_digits().data > 7).astype(np.float32)
    return "digits 64x64", BernoulliRBM(64, learning_rate=0.05, n_iter=60, random_state=0).fit(
        X
    ).path()


def with_density(n_visible, n_hidden, density):
    """An RBM of whose units about this share is on, and which changes them all the time."""
    rng = np.random.default_rng(0)
    weights = rng.normal(scale=0.5 / np.sqrt(n_visible + n_hidden), size=(n_hidden, n_visible))
    logit = np.log(density / (1 - density))
    visible = logit - density * weights.sum(axis=0)
    hidden = logit - density * weights.sum(axis=1)
    return RBMPath(weights, visible, hidden, np.full(n_visible, density))


# ---- bare sweeps
def sweeps(path, state, betas, stream):
    """The state after len(betas) Gibbs sweeps and nothing else; betas (n_sweeps, n)."""
    state = map_state(np.array, state)
    _sweep_all(path.packed, state, betas, stream.keys)
    return state


@numba.njit(**OPTIONS)  # not cached: numba's cache does not see changes of called functions
def _sweep_all(model, state, betas, keys):
    work = programs.scratch(model, state)
    for t in range(betas.shape[0]):
        now = Keys(keys.key0, keys.key1, keys.chain, keys.step + t)
        programs.sweep(model, state, betas[t], False, now, work)
