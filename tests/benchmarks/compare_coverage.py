"""Does the interval of log Z_b - log Z_a cover, and when is the direct ratio the better one?

    python tests/benchmarks/compare_coverage.py coverage 100 [pair ...]
    python tests/benchmarks/compare_coverage.py errors 3 [pair ...]
    python tests/benchmarks/compare_coverage.py fresh 20 [kind ...]

print the rows of the tables in doc/benchmarks/calibration.md; "fresh" trains both models of every
pair, and adds units to them that open regions of 2 to 15 %. All log Z come from ParallelTempering,
those of densities on R^d from HAIS where nothing else is said; none is exact, and the direct run is
made however far the models are apart.
"""

import copy
import functools
import sys
import time
import warnings
from pathlib import Path

import missing_regions
import numpy as np
from scipy.special import expit, logsumexp
from sklearn.datasets import load_digits, load_sample_images

from sklpf import HAIS, BernoulliRBM, Exact, MeanCovarianceRBM, ParallelTempering, ProductOfExperts
from sklpf.comparing._compare import ratio_result
from sklpf.datasets import make_patches
from sklpf.models import RBMPath

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from known_problems import make_rbm_problem

DIGITS = (load_digits().data > 7).astype(float)


def trained(n_components, n_iter, seed=0, learning_rate=0.05):
    rbm = BernoulliRBM(n_components, learning_rate=learning_rate, n_iter=n_iter, random_state=seed)
    return rbm.fit(DIGITS[:1200])


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
    rng, options = (
        np.random.default_rng(0),
        {"partition_estimator": HAIS() if estimator is None else estimator},
    )
    rotation, exponents = np.linalg.qr(rng.standard_normal((d, d)))[0], np.linspace(2, 4, d)
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


@functools.cache
def patches():
    grey = [image.mean(axis=2) for image in load_sample_images().images]
    return make_patches(grey, 12, 5000, 36, random_state=1)


@functools.cache
def on_patches(kind, n_components, seed=0):
    """A density trained on whitened patches of scikit-learn's photographs, in 36 dimensions."""
    if kind == "units":
        return MeanCovarianceRBM(*3 * [n_components], random_state=seed).fit(patches().X_train)
    return ProductOfExperts(n_components, kind, random_state=seed).fit(patches().X_train)


def trained_on(kind, n_components, n_batches):
    """A density trained on patches, and the same after so many further batches."""
    model = on_patches(kind, n_components)
    other = copy.deepcopy(model)
    for batch in range(n_batches):
        other.partial_fit(patches().X_train[200 * (batch % 20) :][:200])
    return model, other


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
ON_PATCHES = {
    **{
        f"{name}, {n} batch{'es' * (n > 1)} more": functools.partial(trained_on, kind, size, n)
        for name, kind, size in (
            ("Laplace, 72 experts", "laplace", 72),
            ("Student-t, 144 experts", "student_t", 144),
            ("mean-covariance, 20 of a kind", "units", 20),
        )
        for n in (1, 5, 20, 80)
    },
    "Laplace, 72 experts, two seeds": lambda: (
        on_patches("laplace", 72),
        on_patches("laplace", 72, 1),
    ),
    "Laplace, 72 and 144 experts": lambda: (on_patches("laplace", 72), on_patches("laplace", 144)),
    "Student-t, 144 experts, two seeds": lambda: (
        on_patches("student_t", 144),
        on_patches("student_t", 144, 1),
    ),
    "mean-covariance, 20 of a kind, two seeds": lambda: (
        on_patches("units", 20),
        on_patches("units", 20, 1),
    ),
}


def with_seed(model, seed):
    model = copy.deepcopy(model).set_params(n_jobs=1)
    if isinstance(model, BernoulliRBM):
        model.set_params(partition_estimator=ParallelTempering())
    model.__dict__.pop("_kept_partition", None)
    model._partition_seed = seed
    return model


def one(a, b, seed):
    """(estimate, standard error, low, high, trusted) of the direct ratio and of the difference."""
    a, b = with_seed(a, 2 * seed), with_seed(b, 2 * seed + 1)
    first, second = (
        model.estimate_log_partition().partition_estimator_.result_ for model in (a, b)
    )
    below, above = (
        np.hypot(*(r.interval()[1] - r.log_partition for r in (first, second))) for _ in range(2)
    )
    value, error = (
        second.log_partition - first.log_partition,
        np.hypot(first.std_error, second.std_error),
    )
    difference = value, error, value - below, value + above, first.converged and second.converged
    result = ratio_result(a, b)
    if result is None:
        return (np.nan, np.nan, np.nan, np.nan, False), difference
    return (result.log_partition, result.std_error, *result.interval(), True), difference


def spread(a, b, rows):
    return float(np.std(a._log_f(rows)[0] - b._log_f(rows)[0]))


def enumerated(a, b):
    first, second = (
        copy.deepcopy(model).set_params(partition_estimator=Exact()) for model in (a, b)
    )
    return (
        second.estimate_log_partition().log_partition_
        - first.estimate_log_partition().log_partition_
    )


def coverage(n_repeats, names):
    print(
        "| pair | spread | runs | trusted | covered | error | joint z > 3 | difference: trusted |"
        " covered | error |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in names or (PAIRS | DENSITIES):
        started = time.process_time()
        a, b, *known = (PAIRS | DENSITIES | APART)[name]()
        truth = known[0] if known else enumerated(a, b)
        runs = np.array([one(a, b, seed) for seed in range(n_repeats)], dtype=float)
        direct, difference = runs[:, 0], runs[:, 1]
        far = np.abs(direct[:, 0] - difference[:, 0]) > 3 * np.hypot(direct[:, 1], difference[:, 1])
        trusted = (direct[:, 4] == 1) & (difference[:, 4] == 1)
        cells = [
            name,
            f"{spread(a, b, a.sample(2000, random_state=0)):.2f}",
            n_repeats,
            *summary(direct, truth),
        ]
        cells += [f"{np.sum(far & trusted)} of {np.sum(trusted)}", *summary(difference, truth)]
        print(
            "| " + " | ".join(map(str, cells)) + f" | {time.process_time() - started:.0f} s",
            flush=True,
        )


def summary(runs, truth):
    """Trusted runs, how many of these cover, and the root mean square error of these (nats)."""
    runs = runs[runs[:, 4] == 1]
    covered = (runs[:, 2] <= truth) & (truth <= runs[:, 3])
    error = f"{np.sqrt(np.mean((runs[:, 0] - truth) ** 2)):.3f}" if len(runs) else "-"
    return len(runs), covered.sum(), error


# ---- pairs that nobody tuned to
def with_regions(model, seed, shares):
    """The model with a hidden unit more for each share, which opens a region that has it."""
    rng = np.random.default_rng([81, seed])
    weights = 6.0 * rng.integers(2, size=(len(shares), model.components_.shape[1])) - 3
    visible = model.intercept_visible_
    hidden = model.intercept_hidden_

    def log_z(shift):
        path = RBMPath(model.components_, visible + shift, hidden, model.visible_mean_)
        return Exact().fit(path).log_partition_

    outside = np.log(1 - np.sum(shares)) - log_z(0.0)
    biases = np.log(shares) - outside - [log_z(shift) for shift in weights]
    mean = (1 - np.sum(shares)) * model.visible_mean_ + shares @ expit(visible + weights)
    return BernoulliRBM.from_parameters(
        np.vstack([model.components_, weights]), visible, np.r_[hidden, biases], mean
    )


def fresh_pair(kind, seed):
    components, visible, hidden, _, mean, _ = missing_regions.trained(seed, 12)
    model = BernoulliRBM.from_parameters(components, visible, hidden, mean)
    shares = np.random.default_rng([82, seed]).uniform(0.02, 0.15, size=2)
    other = perturbed(model, 0.02)
    if kind == "no units more":
        return model, other
    if kind == "two units more in one":
        return model, with_regions(model, seed, shares)
    return with_regions(model, seed, shares), with_regions(other, seed, shares[::-1])


FRESH = ("no units more", "two units more in one", "two units more in both")


def fresh(n_pairs, kinds):
    print(
        "| kind | pairs | direct: trusted | covered | error | joint z > 3 | difference: trusted |"
        " covered | error |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for kind in kinds or FRESH:
        found = []
        for seed in range(n_pairs):
            a, b = fresh_pair(kind, seed)
            runs = np.array(one(a, b, seed), dtype=float)
            runs[:, [0, 2, 3]] -= enumerated(a, b)
            found.append(runs)
            print(kind, seed, np.round(runs, 4).tolist(), file=sys.stderr, flush=True)
        direct, difference = np.swapaxes(found, 0, 1)
        far = np.abs(direct[:, 0] - difference[:, 0]) > 3 * np.hypot(direct[:, 1], difference[:, 1])
        cells = [kind, n_pairs, *summary(direct, 0.0), np.sum(far), *summary(difference, 0.0)]
        print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def errors(n_repeats, names):
    print(
        "| pair | spread | direct: trusted | standard error | difference: trusted | standard"
        " error |"
    )
    print("|---|---|---|---|---|---|")
    for name in names or (LARGER | ON_PATCHES):
        started = time.process_time()
        a, b = (LARGER | ON_PATCHES)[name]()
        rows = DIGITS[1200:] if name in LARGER else patches().X_test
        runs = np.array([one(a, b, seed) for seed in range(n_repeats)], dtype=float)
        size = np.sqrt(np.nanmean(runs[:, :, 1] ** 2, axis=0))
        cells = [name, f"{spread(a, b, rows):.2f}"]
        for trusted, error in zip(runs[:, :, 4].sum(axis=0), size):
            cells += [f"{trusted:.0f} of {n_repeats}", f"{error:.3f}"]
        print("| " + " | ".join(cells) + f" | {time.process_time() - started:.0f} s", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    task, n_repeats, *names = sys.argv[1:]
    {"coverage": coverage, "errors": errors, "fresh": fresh}[task](int(n_repeats), names)
