"""Do the 95 % intervals of compare_fits cover the expected difference of two procedures?

    python tests/benchmarks/compare_fits_coverage.py 400 [setting ...]
    python tests/benchmarks/compare_fits_coverage.py shrunk

The truth of a setting is the mean over many independent training sets of the folds' size, each with
a training seed of its own and scored on fresh rows. Prints Markdown; "final" is the interval of
`compare_fits`, "corrected" that of Nadeau and Bengio, and "parts" are widths from rows, fits and
log Z.
"""

import logging
import sys
import time
import warnings
from typing import NamedTuple

import numpy as np
from measure import row, table
from scipy.stats import binom
from scipy.stats import t as student_t
from sklearn.base import clone
from sklearn.model_selection import RepeatedKFold, ShuffleSplit

from sklpf import (
    BernoulliRBM,
    Exact,
    FactorialMixture,
    LatentDirichletAllocation,
    LeftToRight,
    compare_fits,
)
from sklpf.comparing._fit_comparison import Fits, error_of_mean

N_TRUTH = 400  # independent training sets


class Setting(NamedTuple):
    """A generator of rows, two procedures, and how they are compared."""

    draw: object  # (n, rng) -> rows
    a: object
    b: object
    n_rows: int
    cv: object = 5
    n_seeds: int = 1
    n_fresh: int = 400  # rows that score each independent fit


def rbm_rows(n_hidden, n_visible, scale, seed):
    """Exact draws from an RBM with normally distributed weights."""
    rng = np.random.default_rng(seed)
    rbm = BernoulliRBM.from_parameters(
        scale * rng.normal(size=(n_hidden, n_visible)),
        0.5 * rng.normal(size=n_visible),
        np.zeros(n_hidden),
    )
    states = (np.arange(2**n_visible)[:, np.newaxis] >> np.arange(n_visible) & 1).astype(float)
    p = np.exp(rbm.score_samples(states))
    return lambda n, rng: states[rng.choice(len(p), n, p=p / p.sum())]


def documents(n_topics, seed):
    """Documents of 12 tokens from known topics over 20 words."""
    topics = np.random.default_rng(seed).dirichlet(np.full(20, 0.2), n_topics)
    shares = np.full(n_topics, 0.3)
    return lambda n, rng: np.stack(
        [rng.multinomial(12, rng.dirichlet(shares) @ topics) for _ in range(n)]
    )


def factorial_rows(n_components, scale, seed):
    """Sums of known components, each present in half of the rows, with unit noise."""
    components = scale * np.random.default_rng(seed).normal(size=(n_components, 5))
    return lambda n, rng: (
        rng.normal(size=(n, 5)) + (rng.random((n, n_components)) < 0.5) @ components
    )


def rbm(n_components, n_iter=20, learning_rate=0.05):
    return BernoulliRBM(n_components, n_iter=n_iter, learning_rate=learning_rate, n_jobs=1)


def lda(n_components):
    return LatentDirichletAllocation(
        n_components, max_iter=5, partition_estimator=LeftToRight(10), n_jobs=1
    )


def mixture(n_components):
    return FactorialMixture(n_components, max_iter=20, n_moves=0, n_jobs=1)


SETTINGS = {
    # looked at while the rule was made
    "RBM, 2 and 8 units": Setting(rbm_rows(4, 12, 1.0, 0), rbm(2), rbm(8), 120),
    "RBM, 2 and 8 units, 2 seeds": Setting(rbm_rows(4, 12, 1.0, 0), rbm(2), rbm(8), 120, n_seeds=2),
    "RBM, 4 and 12 units, rate 0.3": Setting(
        rbm_rows(6, 12, 1.0, 1), rbm(4, learning_rate=0.3), rbm(12, learning_rate=0.3), 120
    ),
    "mixture, 1 and 2 components": Setting(factorial_rows(2, 2.0, 0), mixture(1), mixture(2), 80),
    # held out
    "LDA, 2 and 4 topics": Setting(documents(3, 0), lda(2), lda(4), 60, n_fresh=50),
    "mixture, 2 and 4 components": Setting(factorial_rows(3, 1.5, 5), mixture(2), mixture(4), 60),
    "RBM, 2 and 20 passes": Setting(rbm_rows(4, 12, 1.0, 4), rbm(8, 2), rbm(8, 20), 120),
    "RBM, 4 and 10 units, 10 folds": Setting(
        rbm_rows(5, 10, 1.5, 2), rbm(4, learning_rate=0.1), rbm(10, 40, 0.02), 80, cv=10
    ),
    "RBM, 2 and 6 units, 10 random splits": Setting(
        rbm_rows(4, 10, 1.2, 3),
        rbm(2),
        rbm(6, 30),
        100,
        cv=ShuffleSplit(10, test_size=0.25, random_state=0),
    ),
    "RBM, 2 and 6 units, 5 folds twice": Setting(
        rbm_rows(4, 10, 1.2, 3),
        rbm(2),
        rbm(6, 30),
        100,
        cv=RepeatedKFold(n_splits=5, n_repeats=2, random_state=0),
    ),
}


def true_difference(setting, n_train):
    """Expected difference at that training size, and its standard error."""
    differences = []
    for i in range(N_TRUTH):
        rng = np.random.default_rng([2, i])
        train, fresh = setting.draw(n_train, rng), setting.draw(setting.n_fresh, rng)
        scores = []
        for model in (setting.a, setting.b):
            model = clone(model).set_params(random_state=i).fit(train)
            if isinstance(model, LatentDirichletAllocation):
                model.set_params(partition_estimator=Exact())
            scores.append(model.score(fresh))
        differences.append(scores[0] - scores[1])
    return np.mean(differences), np.std(differences) / np.sqrt(N_TRUTH)


def measure(name, n_studies):
    """One row of the table."""
    setting, began = SETTINGS[name], time.process_time()
    found = []
    for i in range(n_studies):
        X = setting.draw(setting.n_rows, np.random.default_rng([1, i]))
        comparison = compare_fits(
            {"a": setting.a, "b": setting.b},
            X,
            cv=setting.cv,
            n_seeds=setting.n_seeds,
            random_state=i,
            n_jobs=1,
        )
        difference = comparison.difference("a", "b")
        splits = (comparison.means["a"] - comparison.means["b"]).mean(axis=1)
        n_train = comparison.held_out.n_train
        test_over_train = comparison.held_out.test_over_train
        naive = student_t.ppf(0.975, len(splits) - 1) * splits.std(ddof=1) / np.sqrt(len(splits))
        corrected = naive * np.sqrt(1 + len(splits) * test_over_train)
        parts = [
            np.ptp(getattr(difference, part)) / 2 for part in ("sampling", "fits", "partition")
        ]
        found.append((difference.mean, np.ptp(difference.combined) / 2, naive, corrected, *parts))
    means, *halves = np.transpose(found)
    truth, error = true_difference(setting, n_train)
    covers = [int(np.sum(np.abs(means - truth) <= half)) for half in halves[:3]]
    widths = [f"{2 * np.mean(half):.3f}" for half in halves]
    pairs = (cell for pair in zip(covers, widths) for cell in pair)
    seconds = f"{time.process_time() - began:.0f}"
    row(name, f"{truth:.3f} ± {error:.3f}", f"{means.std():.3f}", *pairs, *widths[3:], seconds)


def measure_shrunk_means(share, n_folds, n_studies=4000, n_rows=100):
    """One row of the second table: N(share * mean of the training rows, 1) against N(0, 1), for
    rows from N(1, 1).
    """
    n_test = n_rows // n_folds
    n_train = n_rows - n_test
    truth = share - share**2 * (1 + 1 / n_train) / 2
    rng, covers = np.random.default_rng(0), np.zeros(3)
    rows, nothing = np.arange(n_rows).reshape(n_folds, n_test), np.zeros(1)
    for X in rng.normal(1, 1, size=(n_studies, n_folds, n_test)):
        locations = share * (X.sum() - X.sum(axis=1, keepdims=True)) / n_train
        differences = locations * X - locations**2 / 2
        splits = [
            Fits(rows[j], differences[j][np.newaxis], nothing, nothing) for j in range(n_folds)
        ]
        error = error_of_mean(splits, n_test / n_train, 0.95)
        naive = (
            student_t.ppf(0.975, n_folds - 1)
            * differences.mean(axis=1).std(ddof=1)
            / np.sqrt(n_folds)
        )
        corrected = naive * np.sqrt(1 + n_folds * n_test / n_train)
        covers += abs(error.mean - truth) <= np.array([error.half_width, naive, corrected])
    row(share, n_folds, *(f"{count / n_studies:.1%}" for count in covers))


if __name__ == "__main__":
    if sys.argv[1] == "shrunk":
        table("share", "folds", "final", "naive", "corrected")
        for n_folds in (5, 10):
            for share in (1.0, 0.8, 0.5):
                measure_shrunk_means(share, n_folds)
        sys.exit()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    n = int(sys.argv[1])
    print(f"goal: more than {binom.ppf(0.0005, n, 0.94):.0f} of {n} cover")
    kinds = ("final", "width", "naive", "width", "corrected", "width")
    table("setting", "truth", "SD", *kinds, "rows", "fits", "log Z", "s")
    for chosen in sys.argv[2:] or SETTINGS:
        measure(chosen, n)
