"""Speed and memory of the factorial mixture's sweeps; prints Markdown.

    python tests/benchmarks/factorial.py [sweep large]

One thread, processor time, the best of several rounds. The floor is N K D + N K^2 multiply-add operations at the rate
of a large square matrix product in the same process; a sweep needs N K D twice, for X M' and for the sums over rows.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np
from scipy.special import entr, expit, logit
from threadpoolctl import threadpool_limits

from sklpf.models import FactorialPosterior
from sklpf.models.factorial._fit_kernels import update_activations


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
    on, _ = numpy_update(X @ posterior.means.T, posterior.activations, gram, log_odds, half_precision)
    second = on.T @ on
    np.fill_diagonal(second, on.sum(axis=0))
    covariance = np.linalg.inv(np.eye(len(gram)) / posterior.component_variance + second / posterior.noise_variance)
    return covariance @ (on.T @ X) / posterior.noise_variance


def sweep():
    print("\n## One sweep, one thread, float64, ms\n")
    print("| N | D | K | floor | sweep | NumPy sweep | ratio | sweep / floor | activations | NumPy | ratio |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for n, n_features, n_components in ((10_000, 16, 8), (20_000, 64, 30), (20_000, 1000, 30), (5_000, 1000, 100)):
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
        )
        kernel = best(lambda: update_activations(*arguments))  # noqa: B023
        plain = best(lambda: numpy_update(products, activations, gram, log_odds, 2.0))  # noqa: B023
        print(
            f"| {n} | {n_features} | {n_components} | {floor:.1f} | {ours:.1f} | {theirs:.1f} | {theirs / ours:.1f} "
            f"| {ours / floor:.1f} | {kernel:.2f} | {plain:.1f} | {plain / kernel:.1f} |"
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
        f"X holds {X.nbytes / 2**30:.2f} GiB, the peak before the sweeps was {before:.2f} GiB, after them "
        f"{after:.2f} GiB;"
    )
    print(f"{seconds:.1f} s a sweep by the wall.")


if __name__ == "__main__":
    wanted = sys.argv[1:] or ["sweep", "large"]
    with threadpool_limits(1):
        for name in wanted:
            {"sweep": sweep, "large": large}[name]()
