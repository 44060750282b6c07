"""Held-out likelihood of models of image patches, ours and scikit-learn's: table 1 and figure 5 of
the HAIS paper.

    python tests/benchmarks/image_models.py [--models WORD ...] [--seeds 3]
        [--results image_models.jsonl]

Every model is trained on the same patches. Every training is appended to the results, and not made
again. Prints Markdown: nats a row of whitened patches. Gains are paired with those of the Gaussian
row by row; their standard error takes rows as independent, while patches overlap. Generative
models, which have a log Z for each row, score the first test rows.
"""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from measure import groups, measured, options, reference, row, table
from sklearn.datasets import load_sample_images
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, ShuffleSplit
from threadpoolctl import threadpool_limits

from sklpf import (
    BilinearGenerativeModel,
    LinearGenerativeModel,
    MeanCovarianceRBM,
    ProductOfExperts,
)
from sklpf.datasets import make_patches


# ---- what scikit-learn has
def gaussian(seed=None):
    """The Gaussian of largest likelihood, full covariance."""
    return GaussianMixture(1, reg_covar=0)


def mixture(seed):
    """With the number of components that a tenth of the training rows likes best."""
    split = ShuffleSplit(1, test_size=0.1, random_state=seed)
    estimator = GaussianMixture(max_iter=300, random_state=seed)
    return GridSearchCV(estimator, {"n_components": [2, 4, 8, 16, 32]}, cv=split)


def ours(model, parameters, seed):
    """One of sklpf's models with its defaults but for `parameters`."""
    return model(**parameters, random_state=seed, n_jobs=2)


# ---- models
class Model(NamedTuple):
    make: Callable  # seed -> an estimator with fit and score_samples
    n_scored: int | None = None  # test rows, where each has a log Z of its own


def product(expert, n_components, algorithm="pcd"):
    parameters = {"expert": expert, "n_components": n_components, "algorithm": algorithm}
    return Model(partial(ours, ProductOfExperts, parameters))


UNITS = dict.fromkeys(("n_factors", "n_covariance", "n_mean"), 144)
MODELS = {
    "Gaussian": Model(gaussian),
    "GaussianMixture": Model(mixture),
    "linear generative, Laplace, 36": Model(partial(ours, LinearGenerativeModel, {}), 100),
    "bilinear generative": Model(
        partial(ours, BilinearGenerativeModel, {"n_content": 49, "n_style": 49}), 16
    ),
    "product of Laplace, 144, PCD": product("laplace", 144),
    "product of Student-t, 36, exact ML": product("student_t", 36, "ml"),
    "product of Student-t, 144, PCD": product("student_t", 144),
    "product of Student-t, 288, PCD": product("student_t", 288),
    "mean-covariance RBM, 144 of each kind": Model(partial(ours, MeanCovarianceRBM, UNITS)),
}


# ---- measuring
def images():
    """Grey images of nature, or two photographs where the reference data is absent."""
    try:
        return list(reference("natural/images.npz").values())
    except FileNotFoundError:
        return [image.mean(axis=2) for image in load_sample_images().images]


@functools.cache
def patches():
    """Patches, and the Gaussian's likelihoods of the test rows."""
    found = make_patches(images(), 16, 10_000, 36, n_test=1000, random_state=0)
    return found, gaussian().fit(found.X_train).score_samples(found.X_test)


def run(model, seed):
    """One training, and what it gives for the rows."""
    found, of_gaussian = patches()
    make, n_scored = MODELS[model]
    X_test = found.X_test[:n_scored]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        fitted = make(seed).fit(found.X_train)
        trained = time.perf_counter()
        values = fitted.score_samples(X_test)
        scored = time.perf_counter()
    gains = values - of_gaussian[: len(values)]
    return {
        "n_rows": len(values),
        "log_likelihood": float(values.mean()),
        "gain": float(gains.mean()),
        "gain_std_error": float(gains.std(ddof=1) / len(gains) ** 0.5),
        **monte_carlo(fitted),
        "fit_seconds": trained - began,
        "score_seconds": scored - trained,
        "chosen": ", ".join(map(str, getattr(fitted, "best_params_", {}).values())),
    }


def monte_carlo(model):
    """Standard error of the mean over the rows scored last, and the share of log Z that is
    trusted.
    """
    if not hasattr(model, "partition_estimator_"):
        return {"monte_carlo": 0.0, "trusted": 1.0}
    result = model.partition_estimator_.result_
    return {
        "monte_carlo": float(result.diagnostics.get("mean_std_error", result.std_error)),
        "trusted": float(np.mean(result.diagnostics.get("converged", result.converged))),
    }


def print_table(records):
    """A line a model, means over its seeds."""
    columns = "test rows", "nats a row (range)", "gain over the Gaussian (SE over rows)"
    columns += "Monte Carlo SE", "s to train", "s to score", "log Z trusted", "chosen"
    table("model", *columns)
    for (model,), runs in groups(records, "model").items():
        values = [each["log_likelihood"] for each in runs]
        mean = {
            key: np.mean([each[key] for each in runs])
            for key, value in runs[0].items()
            if isinstance(value, float)
        }
        row(
            model,
            runs[0]["n_rows"],
            f"{np.mean(values):.2f} ({min(values):.2f} to {max(values):.2f})",
            f"{mean['gain']:.2f} ({mean['gain_std_error']:.2f})",
            f"{mean['monte_carlo']:.3f}",
            f"{mean['fit_seconds']:.1f}",
            f"{mean['score_seconds']:.3f}",
            f"{mean['trusted']:.0%}",
            "; ".join(dict.fromkeys(each["chosen"] for each in runs)),
        )


def main():
    args = options(__doc__, "image_models.jsonl", 3, models=MODELS)
    tasks = [{"model": name, "seed": seed} for seed in args.seeds for name in args.models]
    print_table(measured(args.results, tasks, run))


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
