"""Speed and memory of the factorial mixture's sweeps, and what its fits find; prints Markdown.

    python tests/benchmarks/factorial.py [sweep large design verify faces enumeration "name of a
    family"]

`design` and `verify` fit the families of generated shapes in `factorial_shapes.py` with 10 seeds,
before (annealed, n_moves=0) and after (n_moves at its default, without tempering). Minutes each.

One thread, processor time, the best of several rounds. The floor is N K D + N K^2 multiply-add
operations at the rate of a large square matrix product in the same process; a sweep needs N K D
twice, for X M' and for the sums over rows.
"""

from __future__ import annotations

import resource
import sys
import time
import tracemalloc
import warnings

import numpy as np
from factorial_shapes import DESIGN, FAMILIES, VERIFY, n_found, truth_bound
from scipy.special import entr, expit, logit
from threadpoolctl import threadpool_limits

from sklpf import AIS, Exact, FactorialMixture, Tempering
from sklpf.models import FactorialPosterior
from sklpf.models.factorial.learning._activation_kernels import update_activations
from sklpf.testing import find_shared_data


def best(function, n_rounds=7):
    function()
    times = []
    for _ in range(n_rounds):
        began = time.thread_time()
        function()
        times.append(time.thread_time() - began)
    return 1e3 * min(times)


def flops():
    square = np.random.default_rng(0).normal(size=(1500, 1500))
    return 2 * 1500**3 / best(lambda: square @ square) * 1e3


def make(n, n_features, n_components):
    rng = np.random.default_rng(0)
    on = rng.random((n, n_components), dtype=np.float32) < 0.3
    X = (on @ rng.normal(size=(n_components, n_features)).astype(np.float32)).astype(np.float32)
    X += 0.5 * rng.standard_normal(X.shape, dtype=np.float32)
    return X, FactorialPosterior(X, on, 0.25, 1.0, np.full(n_components, 0.3))


def numpy_update(products, activations, gram, log_odds, half_precision):
    """The activations of all rows, component after component."""
    activations = activations.copy()
    for k in range(len(gram)):
        others = activations @ gram[k] - activations[:, k] * gram[k, k]
        field = products[:, k] - others - gram[k, k] / 2
        activations[:, k] = expit(log_odds[k] + 2 * half_precision * field)
    return activations, np.sum(entr(activations) + entr(1 - activations))


def numpy_sweep(posterior, X):
    gram, log_odds = posterior._gram, logit(posterior.activation_probability)
    half_precision = 0.5 / posterior.noise_variance
    on, _ = numpy_update(
        X @ posterior.means.T, posterior.activations, gram, log_odds, half_precision
    )
    second = on.T @ on
    np.fill_diagonal(second, on.sum(axis=0))
    covariance = np.linalg.inv(
        np.eye(len(gram)) / posterior.component_variance + second / posterior.noise_variance
    )
    return covariance @ (on.T @ X) / posterior.noise_variance


def sweep():
    print("\n## One sweep, one thread, float64, ms\n")
    print(
        "| N | D | K | floor | sweep | NumPy sweep | ratio | sweep / floor | activations | NumPy |"
        " ratio |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for n, n_features, n_components in (
        (10_000, 16, 8),
        (20_000, 64, 30),
        (20_000, 1000, 30),
        (5_000, 1000, 100),
    ):
        X, _ = make(n, n_features, n_components)
        X = X.astype(np.float64)
        on = np.random.default_rng(1).random((n, n_components)) < 0.3
        posterior = FactorialPosterior(X, on, 0.25, 1.0, np.full(n_components, 0.3))
        posterior.update(1.0)
        floor = 2e3 * n * n_components * (n_features + n_components) / flops()
        ours, theirs = best(lambda: posterior.update(1.0)), best(lambda: numpy_sweep(posterior, X))  # noqa: B023
        gram, log_odds = posterior._gram, logit(posterior.activation_probability)
        products, activations = X @ posterior.means.T, np.ascontiguousarray(posterior.activations)
        arguments = (
            np.ascontiguousarray(products.T),
            np.ascontiguousarray(activations.T),
            gram,
            log_odds,
            2.0,
            np.ones(n),
            1,
            0.0,
        )
        kernel = best(lambda: update_activations(*arguments))  # noqa: B023
        plain = best(lambda: numpy_update(products, activations, gram, log_odds, 2.0))  # noqa: B023
        print(
            f"| {n} | {n_features} | {n_components} | {floor:.1f} | {ours:.1f} | {theirs:.1f} |"
            f" {theirs / ours:.1f} | {ours / floor:.1f} | {kernel:.2f} | {plain:.1f} |"
            f" {plain / kernel:.1f} |"
        )


def large():
    n, n_features, n_components = 100_000, 1000, 30
    X, posterior = make(n, n_features, n_components)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    began = time.perf_counter()
    for _ in range(2):
        posterior.update(1.0)
    seconds = (time.perf_counter() - began) / 2
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"\n## N = {n:,}, D = {n_features}, K = {n_components}, float32 rows\n")
    print(
        f"X holds {X.nbytes / 2**30:.2f} GiB, the peak before the sweeps was {before:.2f} GiB,"
        f" after them {after:.2f} GiB;"
    )
    print(f"{seconds:.1f} s a sweep by the wall.")


METHODS = {
    "annealed": {"tempering": "annealed", "n_moves": 0},
    "moves": {},
}


def families(names, n_restarts=10):
    print(f"\n{n_restarts} restarts; reached: at most 0.05 nats a row below the truth's bound\n")
    print(
        "| family | parameters | method | reached | median gap | largest gap | shapes found | s a"
        " fit |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name in names:
        family = FAMILIES[name]
        X, activations, components, given = family.make()
        n = len(X)
        for parameters in (given, {}):
            truth = truth_bound(X, activations, given, not parameters)
            for method, options in METHODS.items():
                gaps, found, began = [], [], time.process_time()
                for seed in range(n_restarts):
                    model = FactorialMixture(
                        len(components), **parameters, **options, random_state=seed
                    ).fit(X)
                    gaps.append((truth - model.elbo_) / n)
                    found.append(n_found(model.components_, components))
                seconds = (time.process_time() - began) / n_restarts
                print(
                    f"| {name} | {'given' if parameters else 'learned'} | {method} |"
                    f" {np.sum(np.array(gaps) < 0.05)} | {np.median(gaps):.2f} | {np.max(gaps):.2f}"
                    f" | {np.mean(found):.1f} of {len(components)} | {seconds:.2f} |",
                    flush=True,
                )


def faces(n_train=1500, n_test=500, n_components=16, n_starts=5):
    images = np.load(find_shared_data("faces/yaleb_32x32.npz"), allow_pickle=False)["images"]
    images = images[np.random.default_rng(0).permutation(len(images))[: n_train + n_test]].astype(
        float
    )
    images = (images - images.mean()) / images.std()
    options = {
        "noise_variance": 0.25,
        "component_variance": 0.25,
        "activation_probability": 0.3,
        "tol": 1e-3,
    }
    print(
        "\n| method | held-out log-likelihood, nats an image | best | bound, nats an image | s a"
        " fit |"
    )
    print("|---|---|---|---|---|")
    for name, tempered in {
        "VI": {},
        "annealed from 6 in 50": {
            "tempering": Tempering(initial_temperature=6.0, n_tempered=50),
        },
    }.items():
        for n_moves in (0, 10):
            scores, bounds, began = [], [], time.process_time()
            for seed in range(n_starts):
                model = FactorialMixture(
                    n_components, **options, **tempered, n_moves=n_moves, random_state=seed
                )
                bounds.append(model.fit(images[:n_train]).elbo_ / n_train)
                seconds = (time.process_time() - began) / n_starts
                scores.append(model.score(images[n_train:]))
            error = np.std(scores, ddof=1) / np.sqrt(n_starts)
            print(
                f"| {name}, {n_moves} moves | {np.mean(scores):.1f} ± {error:.1f} |"
                f" {max(scores):.1f} | {np.mean(bounds):.1f} | {seconds:.1f} |",
                flush=True,
            )


def enumeration():
    print("\n| components | exact, s a row | AIS, s a row | exact, peak of its arrays, MB |")
    print("|---|---|---|---|")
    for n_components in (16, 18, 19, 20, 21, 22):
        X, _ = make(2000, 50, n_components)
        model = FactorialMixture(
            n_components, noise_variance=0.25, max_iter=20, n_moves=0, random_state=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = model.fit(X).path(X[:8])
        seconds = [best(lambda e=e: e.fit(path), 3) / 8e3 for e in (Exact(), AIS(random_state=0))]  # noqa: B023
        tracemalloc.start()
        Exact().fit(path)
        peak = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        print(f"| {n_components} | {seconds[0]:.4f} | {seconds[1]:.4f} | {peak:.1f} |", flush=True)


if __name__ == "__main__":
    tasks = {
        "sweep": sweep,
        "large": large,
        "design": lambda: families(DESIGN),
        "verify": lambda: families(VERIFY),
        "faces": faces,
        "enumeration": enumeration,
    }
    with threadpool_limits(1):
        for name in sys.argv[1:] or ["sweep", "large"]:
            families([name]) if name in FAMILIES else tasks[name]()
