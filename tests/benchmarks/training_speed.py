"""Time of one update in the training of RBMs, beside scikit-learn, rbms and a loop in NumPy.

usage: python tests/benchmarks/training_speed.py {binary,gaussian,categorical} [--rounds 3]
           [--sizes 64x64 784x500 2000x1000 4000x2000] [--densities 0.05 0.2 0.5] [--jobs 1 2]

Batches of 100 rows and as many persistent chains; milliseconds, medians of interleaved fits, with
averages. Binary units of both layers are on with the same probability, which the library's time
depends on and that of the others does not: biases are set to its log odds, and rates are so small
that it stays. The others run with one thread, and with all of them if --jobs asks for more than
one.
"""

import argparse
import time
import warnings
from functools import partial
from importlib.util import find_spec

import numpy as np
from measure import row, table
from peers import rbms_training
from sklearn import neural_network
from threadpoolctl import threadpool_limits

from sklpf import BernoulliRBM, CategoricalRBM, GaussianRBM
from sklpf.models.gaussian_rbm import _learning as of_gaussian
from sklpf.models.rbm import _learning as of_discrete

N_ROWS = 1000
BATCH = 100
WARM_UP = 3  # passes, of ten updates
MEASURED = 3  # passes after these


def rows(kind, n_units, density):
    """Data without structure, float32."""
    rng = np.random.default_rng(0)
    if kind == "gaussian":
        return rng.normal(size=(N_ROWS, n_units)).astype(np.float32)
    if kind == "categorical":
        return rng.integers(21, size=(N_ROWS, n_units))
    return (rng.random((N_ROWS, n_units)) < density).astype(np.float32)


def clock_of(n_threads):
    """The clock of one thread is the processor's, whatever else the machine does; of more the
    wall's.
    """
    return time.process_time if n_threads == 1 else time.perf_counter


def pass_time(trainer_class, model, X, density=None):
    """Milliseconds of an update in the last passes of a fit."""
    clock = clock_of(model.n_jobs)
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
    return 1e3 * np.mean(seconds[-MEASURED:]) / (len(X) // BATCH)


def ours(kind, n_hidden, X, n_jobs, density):
    """Milliseconds of one of the library's updates."""
    options = {"batch_size": BATCH, "n_iter": WARM_UP + MEASURED, "random_state": 0}
    options |= {"n_jobs": n_jobs, "verbose": 0}
    if kind == "gaussian":
        model = GaussianRBM(n_hidden, learning_rate=0.01, **options)
        return pass_time(of_gaussian.Trainer, model, X)
    kinds = {"binary": BernoulliRBM, "categorical": CategoricalRBM}
    model = kinds[kind](n_hidden, learning_rate=1e-4, **options)
    return pass_time(of_discrete.Trainer, model, X, density)


def scikit_learn(n_hidden, X, clock):
    """Milliseconds of one of scikit-learn's updates."""
    model = neural_network.BernoulliRBM(n_hidden, batch_size=BATCH, n_iter=1, random_state=0)
    began = clock()
    model.fit(X)
    return 1e3 * (clock() - began) / (len(X) // BATCH)


def numpy_loop(kind, n_hidden, X, clock):
    """Milliseconds of an update of persistent contrastive divergence in NumPy."""
    rng = np.random.default_rng(0)
    weights = rng.normal(0, 0.01, (n_hidden, X.shape[1])).astype(np.float32)
    h = (rng.random((BATCH, n_hidden), dtype=np.float32) < 0.5).astype(np.float32)
    began = clock()
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
    return 1e3 * (clock() - began) / (len(X) // BATCH)


def rbms_loop(n_hidden, X, clock):
    """Milliseconds of one of the updates of rbms."""
    run = rbms_training(X, n_hidden, BATCH)
    for _ in range(WARM_UP):
        run()
    began = clock()
    run()
    return 1e3 * (clock() - began) / (len(X) // BATCH)


def one_hot(X):
    """Rows of 21 categories as units, float32."""
    return np.eye(21, dtype=np.float32)[X].reshape(len(X), -1)


def measure(kind, n_units, n_hidden, density, jobs, rounds):
    """Medians by name."""
    X = rows(kind, n_units, density)
    dense = one_hot(X) if kind == "categorical" else X
    calls = {f"sklpf {n}": lambda n=n: ours(kind, n_hidden, X, n, density) for n in jobs}
    others = {"NumPy": partial(numpy_loop, kind, n_hidden, dense)}
    if kind != "gaussian":
        others["scikit-learn"] = partial(scikit_learn, n_hidden, dense)
    if kind == "binary" and find_spec("rbms"):
        others["rbms"] = partial(rbms_loop, n_hidden, X)
    found = {}
    for measured in range(-1, rounds):
        for name, call in calls.items():
            value = call()
            if measured >= 0:
                found.setdefault(name, []).append(value)
        for name, call in others.items():
            for threads in (1, None) if max(jobs) > 1 else (1,):
                with threadpool_limits(threads):
                    value = call(clock=clock_of(threads))
                if measured >= 0:
                    key = f"{name} {threads or 'all'}"
                    found.setdefault(key, []).append(value)
    return {name: float(np.median(values)) for name, values in found.items()}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=["binary", "gaussian", "categorical"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--sizes", nargs="*", default=["64x64", "784x500", "2000x1000", "4000x2000"]
    )
    parser.add_argument("--densities", nargs="*", type=float, default=[0.05, 0.2, 0.5])
    parser.add_argument("--jobs", nargs="*", type=int, default=[1, 2])
    arguments = parser.parse_args()
    densities = arguments.densities if arguments.kind == "binary" else [None]
    header = None
    for size in arguments.sizes:
        n_units, n_hidden = map(int, size.split("x"))
        for density in densities:
            found = measure(
                arguments.kind, n_units, n_hidden, density, arguments.jobs, arguments.rounds
            )
            if header is None:
                header = list(found)
                table("size", "on", *header)
            row(size, density or "", *(f"{found[name]:.2f}" for name in header))


if __name__ == "__main__":
    main()
