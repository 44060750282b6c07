"""Does the interval of log Z_b - log Z_a cover, and when is the direct ratio the better one?

    python tests/benchmarks/compare_coverage.py [--seeds 100] [--pairs WORD ...]
        [--results compare_coverage.jsonl]

All log Z come from ParallelTempering, those of densities on R^d from HAIS where nothing else is
said, and the direct run is made however far the models are apart. RBMs of 48 and more units have no
exact ratio: of these the standard errors count. Every run is appended to the results, and not made
again. Prints Markdown; "spread" is the standard deviation of log f_a - log f_b over rows.
"""

import copy
import functools
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from measure import TINY, digits, measured, options, print_coverage
from scipy.special import logsumexp

from sklpf import HAIS, BernoulliRBM, Exact, MeanCovarianceRBM, ParallelTempering, ProductOfExperts
from sklpf.comparing._compare import ratio_result

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from known_problems import make_rbm_problem

DIGITS = digits().astype(float)


def trained(n_components, n_iter, seed=0, learning_rate=0.05):
    """An RBM with its last weights, which differ more than averages."""
    options = {"learning_rate": learning_rate, "n_iter": n_iter, "average": False}
    return BernoulliRBM(n_components, random_state=seed, **options).fit(DIGITS[:1200])


def one_more_step(model):
    return copy.deepcopy(model).partial_fit(DIGITS[:1200])


def scaled(model, factor):
    arrays = (model.components_, model.intercept_visible_, model.intercept_hidden_)
    return BernoulliRBM.from_parameters(*(factor * array for array in arrays), model.visible_mean_)


def problem(kind):
    path = make_rbm_problem(kind).path
    mean = 1 / (1 + np.exp(-path.logits[0]))
    return BernoulliRBM.from_parameters(
        path.components, path.intercept_visible, path.intercept_hidden, mean
    )


def with_hidden(model, change):
    other = copy.deepcopy(model)
    other.intercept_hidden_ = other.intercept_hidden_ + change
    return other


def perturbed(model, scale):
    other, rng = copy.deepcopy(model), np.random.default_rng(1)
    other.components_ = other.components_ + rng.normal(scale=scale, size=other.components_.shape)
    return other


# ---- densities on R^d
def products(heavy, d, distance, second=None, estimator=None):
    """Two complete products with known log Z; the second may be a Laplace one, or every expert two
    of half weight.
    """
    rng = np.random.default_rng(0)
    options = {"partition_estimator": HAIS() if estimator is None else estimator}
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    exponents = np.linspace(2, 4, d)
    scales = np.sqrt(2 * exponents - 3) ** -1 if heavy else np.full(d, np.sqrt(2))  # unit variances
    filters, mean = scales[:, np.newaxis] * rotation, np.full(d, distance)
    other = filters + distance * scales[:, np.newaxis] * rng.standard_normal((d, d)) / np.sqrt(d)
    a = ProductOfExperts.from_parameters(filters, exponents if heavy else None, **options)
    if second == "split":
        halves = np.repeat(other, 2, axis=0), np.repeat(exponents / 2, 2)
        return (
            a,
            ProductOfExperts.from_parameters(*halves, mean, **options),
            closed(other, exponents) - closed_of(a),
        )
    weights = None if second == "laplace" or not heavy else exponents
    other = np.sqrt(2) / scales[:, np.newaxis] * other if second == "laplace" else other
    b = ProductOfExperts.from_parameters(other, weights, mean, **options)
    return a, b, closed_of(b) - closed_of(a)


def mean_covariance(d, distance):
    """Two mean-covariance models of rows of two lengths, the second perturbed, with log Z by
    quadrature.
    """
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((2000, d)) * rng.choice([0.3, 1.5], size=(2000, 1))
    a = MeanCovarianceRBM(4, 4, 4, algorithm="mpf", random_state=0).fit(rows)
    b = copy.deepcopy(a)
    for name in ("factors_", "mean_components_", "intercept_visible_"):
        values = getattr(b, name)
        setattr(b, name, values + distance * np.std(values) * rng.standard_normal(values.shape))
    return a, b, by_quadrature(b, d) - by_quadrature(a, d)


def by_quadrature(model, d):
    """log Z by the midpoint rule on 150 points a dimension, twelve standard deviations of the noise
    to either side.
    """
    reach = 12 * model.noise_std_ * model.scale_
    centres = reach * (np.arange(150) + 0.5 - 75) / 75
    grid = (
        np.stack(np.meshgrid(*d * [centres], indexing="ij"), axis=-1).reshape(-1, d) + model.mean_
    )
    parts = [logsumexp(model._log_f(rows)[0]) for rows in np.array_split(grid, 50)]
    return logsumexp(parts) + d * np.log(reach / 75)


def closed(filters, exponents):
    return ProductOfExperts.from_parameters(filters, exponents).path().closed_log_partition()


def closed_of(model):
    return model.path().closed_log_partition()


PAIRS = {
    "16 units, one step more": lambda: (trained(16, 30), one_more_step(trained(16, 30))),
    "16 units, 29 and 30 passes": lambda: (trained(16, 29), trained(16, 30)),
    "16 units, two seeds": lambda: (trained(16, 30), trained(16, 30, 1)),
    "8 and 16 units": lambda: (trained(8, 30), trained(16, 30)),
    "16 units, parameters x 2, one step": lambda: tuple(
        scaled(model, 2) for model in (trained(16, 30), one_more_step(trained(16, 30)))
    ),
    "hard, perturbed": lambda: (problem("hard"), perturbed(problem("hard"), 0.05)),
    "two modes, the second heavier": lambda: (
        problem("two modes"),
        with_hidden(problem("two modes"), np.repeat([0.0, 0.2], 5)),
    ),
    "far mode, heavier": lambda: (problem("far mode"), with_hidden(problem("far mode"), 0.5)),
}


LARGER = {
    "64 units, one step more": lambda: (trained(64, 30), one_more_step(trained(64, 30))),
    "64 units, learning rates 0.05 and 0.04": lambda: (
        trained(64, 30),
        trained(64, 30, learning_rate=0.04),
    ),
    "64 units, 29 and 30 passes": lambda: (trained(64, 29), trained(64, 30)),
    "64 units, 20 and 30 passes": lambda: (trained(64, 20), trained(64, 30)),
    "64 units, two seeds": lambda: (trained(64, 30), trained(64, 30, 1)),
    "48 and 64 units": lambda: (trained(48, 30), trained(64, 30)),
    "128 units, one step more": lambda: (trained(128, 30), one_more_step(trained(128, 30))),
    "128 units, 29 and 30 passes": lambda: (trained(128, 29), trained(128, 30)),
    "64 and 128 units": lambda: (trained(64, 30), trained(128, 30)),
}


DENSITIES = {
    "Laplace 6-D": lambda: products(False, 6, 0.1),
    "Laplace 6-D, draws and log Z by tempering": lambda: products(
        False, 6, 0.1, estimator=ParallelTempering()
    ),
    "Laplace 36-D": lambda: products(False, 36, 0.1),
    "Student-t 6-D": lambda: products(True, 6, 0.1),
    "Student-t 6-D, draws and log Z by tempering": lambda: products(
        True, 6, 0.1, estimator=ParallelTempering()
    ),
    "Student-t 10-D, 10 and 20 experts": lambda: products(True, 10, 0.1, "split"),
    "mean-covariance 2-D": lambda: mean_covariance(2, 0.1),
    "mean-covariance 3-D": lambda: mean_covariance(3, 0.1),
    "mean-covariance 3-D, further apart": lambda: mean_covariance(3, 0.5),
    "Student-t and Laplace 6-D": lambda: products(True, 6, 0.0, "laplace"),
}
APART = {
    f"{name}, {distance} apart": functools.partial(products, heavy, d, distance)
    for name, heavy, d in (("Laplace 36-D", False, 36), ("Student-t 6-D", True, 6))
    for distance in (0.2, 0.4, 0.6, 0.8, 1.2)
}


ALL = PAIRS | LARGER | DENSITIES | APART


@functools.lru_cache(maxsize=1)
def make(pair):
    """Two models, the log of their ratio of Z, or NaN, and the spread."""
    a, b, *known = ALL[pair]()
    if known:
        (truth,) = known
    elif pair in LARGER:
        truth = np.nan
    else:
        exact = (copy.deepcopy(each).set_params(partition_estimator=Exact()) for each in (a, b))
        log_zs = [each.estimate_log_partition().log_partition_ for each in exact]
        truth = log_zs[1] - log_zs[0]
    rows = DIGITS[1200:] if pair in LARGER else a.sample(2000, random_state=0)
    return a, b, truth, float(np.std(a._log_f(rows)[0] - b._log_f(rows)[0]))


def with_seed(model, seed):
    model = copy.deepcopy(model).set_params(n_jobs=1)
    if isinstance(model, BernoulliRBM):
        model.set_params(partition_estimator=ParallelTempering())
    model.__dict__.pop("_kept_partition", None)
    model._partition_seed = seed
    return model


def run(pair, seed):
    """A record of the difference, and one of the direct ratio, if there is one."""
    a, b, truth, spread = make(pair)
    a, b = with_seed(a, 2 * seed), with_seed(b, 2 * seed + 1)
    began = time.process_time()
    found = [each.estimate_log_partition().partition_estimator_.result_ for each in (a, b)]
    ratio = ratio_result(a, b)
    seconds = time.process_time() - began

    first, second = found
    value = second.log_partition - first.log_partition
    half = np.hypot(*(each.interval()[1] - each.log_partition for each in found))
    numbers = {
        "difference": (
            value,
            np.hypot(first.std_error, second.std_error),
            abs(value - truth) <= half + TINY,
            first.converged and second.converged,
        )
    }
    if ratio is not None:
        low, high = ratio.interval()
        numbers["direct"] = ratio.log_partition, ratio.std_error, low <= truth <= high, True
    return [
        {
            "method": method,
            "spread": spread,
            "off": log_ratio - truth,
            "error": error,
            "covers": bool(covers),
            "converged": bool(converged),
            "seconds": seconds,
        }
        for method, (log_ratio, error, covers, converged) in numbers.items()
    ]


def main():
    args = options(__doc__, "compare_coverage.jsonl", 100, pairs=ALL)
    warnings.simplefilter("ignore")
    tasks = [{"pair": pair, "seed": seed} for pair in args.pairs for seed in args.seeds]
    print_coverage(measured(args.results, tasks, run), "pair", "method", medians=("spread",))


if __name__ == "__main__":
    main()
