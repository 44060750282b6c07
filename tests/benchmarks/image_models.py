"""Held-out likelihood of models of image patches, ours and scikit-learn's: table 1 and figure 5 of
the HAIS paper.

    python tests/benchmarks/image_models.py [model ...] [--train 10000] [--test 1000] [--components
    36] [--size 16]
                                            [--rows 100] [--seeds 3] [--output image_models.jsonl]

Without names all models are trained, `--seeds` times each, on the same patches. Every training
appends a line to the output; the table printed last is made of the newest line of every model and
seed on these patches (`--seeds 0` prints it alone). Nats a row of whitened patches. Gains are
paired with those of the Gaussian row by row; their standard error takes rows as independent, while
patches overlap. Models with one log Z a row score the first `--rows` test rows.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from measure import row, table
from scipy.stats import laplace, logistic
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.datasets import load_sample_images
from sklearn.decomposition import PCA, FactorAnalysis, FastICA
from sklearn.exceptions import ConvergenceWarning
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
from sklpf.testing import find_shared_data

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


def chosen(estimator, sizes, seed):
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
        "PCA": Model(partial(chosen, PCA(), [*quarters, d])),
        "FactorAnalysis": Model(partial(chosen, FactorAnalysis(), [1, *quarters])),
        "FastICA, logistic": Model(partial(IndependentComponents, "logistic")),
        "FastICA, Laplace": Model(partial(IndependentComponents, "laplace")),
        "GaussianMixture": Model(partial(chosen, mixture, [2, 4, 8, 16, 32])),
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
    """What they are, and grey images."""
    file = find_shared_data("natural/images.npz")
    if file is None:
        return "photographs of scikit-learn", [
            image.mean(axis=2) for image in load_sample_images().images
        ]
    with np.load(file) as archive:
        return "natural images", [archive[name] for name in archive]


def measured(make, seed, X_train, rows, reference):
    """One training and what it gives for the rows; `reference` is the Gaussian's likelihood of the
    same rows.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        began = time.perf_counter()
        model = make(seed).fit(X_train)
        trained, n_caught = time.perf_counter(), len(caught)
        values = model.score_samples(rows)
        scored = time.perf_counter()
    gains = values - reference
    return {
        "log_likelihood": float(values.mean()),
        "gain": float(gains.mean()),
        "gain_std_error": float(gains.std(ddof=1) / len(gains) ** 0.5),
        **monte_carlo(model),
        "fit_seconds": trained - began,
        "score_seconds": scored - trained,
        "settled": not any(
            issubclass(warning.category, ConvergenceWarning) for warning in caught[:n_caught]
        ),
        "chosen": getattr(model, "best_params_", {}),
        "warnings": sorted({str(warning.message) for warning in caught}),
    }


def monte_carlo(model):
    """Standard error and bias of the mean over the rows scored last, and the share of log Z that is
    trusted.
    """
    if not hasattr(model, "partition_estimator_"):
        return {"monte_carlo": 0.0, "monte_carlo_bias": 0.0, "trusted": 1.0}
    result = model.partition_estimator_.result_
    return {
        "monte_carlo": float(result.diagnostics.get("mean_std_error", result.std_error)),
        "monte_carlo_bias": float(np.mean(result.bias)),
        "trusted": float(np.mean(result.diagnostics.get("converged", result.converged))),
    }


def measure(names, args, data, path):
    """Train and score the named models and append what comes out to the file."""
    patches = make_patches(
        images()[1],
        args.size,
        args.train,
        args.components,
        n_test=args.test,
        random_state=args.data_seed,
    )
    reference = gaussian().fit(patches.X_train).score_samples(patches.X_test)
    zoo = models(args.components)
    for seed in range(args.seeds):
        for name in names:
            n = min(args.rows, args.test) if zoo[name].one_a_row else args.test
            found = measured(
                zoo[name].make, seed, patches.X_train, patches.X_test[:n], reference[:n]
            )
            line = {"model": name, "seed": seed, "n_rows": n, "data": data, **found}
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            print(
                f"{name}, seed {seed}: {found['gain']:.2f}, {found['fit_seconds']:.1f} s",
                file=sys.stderr,
                flush=True,
            )


# ---- the table
def print_table(data, path):
    """A line a model, over its seeds, from the newest measurements on these patches."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    newest = {(line["model"], line["seed"]): line for line in lines if line["data"] == data}
    table(
        "model",
        "test rows",
        "nats a row (range)",
        "gain over the Gaussian (SE over rows)",
        "Monte Carlo SE (bias)",
        "s to train",
        "s to score",
        "settled",
        "log Z trusted",
        "chosen",
    )
    for name in dict.fromkeys(name for name, _ in newest):
        runs = [line for (model, _), line in newest.items() if model == name]
        row(
            name,
            runs[0]["n_rows"],
            spread(runs, "log_likelihood"),
            f"{mean(runs, 'gain'):.2f} ({mean(runs, 'gain_std_error'):.2f})",
            f"{mean(runs, 'monte_carlo'):.3f} ({mean(runs, 'monte_carlo_bias'):.3f})",
            spread(runs, "fit_seconds"),
            spread(runs, "score_seconds", 3),
            f"{sum(run['settled'] for run in runs)} of {len(runs)}",
            f"{100 * mean(runs, 'trusted'):.0f} %",
            ", ".join(
                dict.fromkeys(str(value) for run in runs for value in run["chosen"].values())
            ),
        )


def mean(runs, key):
    return np.mean([run[key] for run in runs])


def spread(runs, key, digits=2):
    """Mean and range over the trainings, as text."""
    values = [run[key] for run in runs]
    return f"{np.mean(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*")
    for name, default in SIZES.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--output", type=Path, default=Path("image_models.jsonl"))
    args = parser.parse_args()
    unknown = set(args.models) - set(models(args.components))
    if unknown:
        parser.error(
            f"no model {', '.join(sorted(unknown))}; there are:"
            f" {'; '.join(models(args.components))}"
        )
    return args


def main():
    args = arguments()
    data = {
        "images": images()[0],
        **{name: getattr(args, name.replace("-", "_")) for name in SIZES},
    }
    measure(args.models or list(models(args.components)), args, data, args.output)
    print_table(data, args.output)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
