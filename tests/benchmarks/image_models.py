"""Held-out likelihood of models of image patches, ours and scikit-learn's: table 1 and figure 5 of
the HAIS paper.

    python tests/benchmarks/image_models.py [--models WORD ...] [--seeds 3] [--train 10000]
        [--test 1000] [--components 36] [--size 16] [--rows 100] [--results image_models.jsonl]

Every model is trained on the same patches. Every training is appended to the results, and not made
again. Prints Markdown: nats a row of whitened patches. Gains are paired with those of the Gaussian
row by row; their standard error takes rows as independent, while patches overlap. Models with one
log Z a row score the first `--rows` test rows.
"""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from measure import chosen, groups, measured, options, reference, row, table
from scipy.stats import laplace, logistic
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.datasets import load_sample_images
from sklearn.decomposition import PCA, FactorAnalysis, FastICA
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

UNITS = ("n_factors", "n_covariance", "n_mean")
SIZES = {
    "train": 10_000,
    "test": 1000,
    "components": 36,
    "size": 16,
    "data-seed": 0,
}  # of the patches


# ---- what scikit-learn has
def gaussian(seed=None):
    """The Gaussian of largest likelihood, full covariance."""
    return GaussianMixture(1, reg_covar=0)


def of_best_size(estimator, sizes, seed):
    """The estimator with the number of components that a tenth of the training rows likes best,
    fitted to all rows.
    """
    split = ShuffleSplit(1, test_size=0.1, random_state=seed)
    return GridSearchCV(estimator.set_params(random_state=seed), {"n_components": sizes}, cv=split)


class IndependentComponents(DensityMixin, BaseEstimator):
    """FastICA as a density: independent sources of unit variance, Laplace or logistic.

    log p(x) = log |det W| + sum_i log p(s_i), s = W (x - mean). Rows are whitened here: FastICA's
    own whitening multiplies axes by the sign of an entry, which is 0 for some if rows were white
    before, and loses those sources.
    """

    scales = {"laplace": (laplace, 0.5**0.5), "logistic": (logistic, 3**0.5 / np.pi)}

    def __init__(self, source="laplace", random_state=None):
        self.source, self.random_state = source, random_state

    def fit(self, X, y=None):
        self.mean_ = X.mean(axis=0)
        white = np.linalg.inv(np.linalg.cholesky(np.cov(X.T, bias=True)))
        ica = FastICA(whiten=False, max_iter=1000, random_state=self.random_state)
        self.unmixing_ = ica.fit((X - self.mean_) @ white.T).components_ @ white
        return self

    def score_samples(self, X):
        density, scale = self.scales[self.source]
        sources = (X - self.mean_) @ self.unmixing_.T
        return np.linalg.slogdet(self.unmixing_)[1] + density.logpdf(sources, scale=scale).sum(
            axis=1
        )


def ours(model, parameters, seed):
    """One of sklpf's models with its defaults but for `parameters`."""
    return model(**parameters, random_state=seed, n_jobs=2)


# ---- models
class Model(NamedTuple):
    make: Callable  # seed -> an estimator with fit and score_samples
    one_a_row: bool = False  # whether every row has a log Z of its own


def models(d):
    """All models of rows with d features, by name."""
    quarters = [d // 4, d // 2, 3 * d // 4]
    mixture = GaussianMixture(max_iter=300)
    return {
        "Gaussian": Model(gaussian),
        "PCA": Model(partial(of_best_size, PCA(), [*quarters, d])),
        "FactorAnalysis": Model(partial(of_best_size, FactorAnalysis(), [1, *quarters])),
        "FastICA, logistic": Model(partial(IndependentComponents, "logistic")),
        "FastICA, Laplace": Model(partial(IndependentComponents, "laplace")),
        "GaussianMixture": Model(partial(of_best_size, mixture, [2, 4, 8, 16, 32])),
        **{
            f"linear generative, {name}": Model(
                partial(ours, LinearGenerativeModel, parameters), True
            )
            for name, parameters in (
                (f"Gaussian, {d}", {"prior": "gaussian"}),
                (f"Laplace, {d}", {}),
                (f"Laplace, {4 * d}", {"n_components": 4 * d}),
            )
        },
        "bilinear generative": Model(
            partial(ours, BilinearGenerativeModel, {"n_content": 49, "n_style": 49}), True
        ),
        **products(d),
        f"mean-covariance RBM, {d}": Model(partial(ours, MeanCovarianceRBM, {})),
        f"mean-covariance RBM, {4 * d}": Model(
            partial(ours, MeanCovarianceRBM, dict.fromkeys(UNITS, 4 * d))
        ),
    }


def products(d):
    """Products of experts by expert, size and training."""
    sizes = [(d, "ml"), (d, "pcd"), (2 * d, "pcd"), (4 * d, "pcd"), (4 * d, "mpf"), (8 * d, "pcd")]
    return {
        f"product of {name}, {n}, {algorithm}": Model(
            partial(
                ours,
                ProductOfExperts,
                {"expert": expert, "n_components": n, "algorithm": algorithm},
            )
        )
        for name, expert in (("Laplace", "laplace"), ("Student-t", "student_t"))
        for n, algorithm in sizes
    }


# ---- measuring
def images():
    """Grey images of nature, or two photographs where the reference data is absent."""
    try:
        return list(reference("natural/images.npz").values())
    except FileNotFoundError:
        return [image.mean(axis=2) for image in load_sample_images().images]


@functools.cache
def patches(size, train, components, test, data_seed):
    """Patches, and the Gaussian's likelihoods of the test rows."""
    found = make_patches(images(), size, train, components, n_test=test, random_state=data_seed)
    return found, gaussian().fit(found.X_train).score_samples(found.X_test)


def run(model, seed, rows, **of_patches):
    """One training, and what it gives for the rows."""
    found, of_gaussian = patches(**of_patches)
    make, one_a_row = models(of_patches["components"])[model]
    X_test = found.X_test[: rows if one_a_row else None]
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
    others = {"rows": 100, "models": [""], **SIZES}
    args = options(__doc__, "image_models.jsonl", 3, others)
    of_patches = {name.replace("-", "_"): getattr(args, name.replace("-", "_")) for name in SIZES}
    tasks = [
        {"model": model, "seed": seed, "rows": args.rows} | of_patches
        for seed in args.seeds
        for model in chosen(models(args.components), args.models)
    ]
    records = measured(args.results, tasks, run)
    fixed = {"rows": args.rows} | of_patches
    print_table([each for each in records if fixed.items() <= each.items()])


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
