"""The likelihood of documents: speed, the best default, what a score costs, whether intervals
cover, how many topics.

Run with: python tests/benchmarks/lda_likelihood.py WHAT [--model M] [--seeds N], where WHAT is one
of speed, default, score, coverage, means, hard, fresh and number.

Prints tables in Markdown; doc/benchmarks/topics.md keeps them. Topics are scikit-learn's
from a short fit to the training documents of the reference data, or random ones where it is absent.
"""

from __future__ import annotations

import argparse
import time
import warnings
from itertools import product

import numpy as np
import scipy.sparse as sp
from measure import quiet_fit, row, table
from scipy.stats import t as student_t
from sklearn.base import clone
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.model_selection import GridSearchCV

from sklpf import AIS, RTS, Exact, LeftToRight, ParallelTempering, compare
from sklpf import LatentDirichletAllocation as OurModel
from sklpf._utils.layout import LANES
from sklpf.datasets import make_bars_corpus
from sklpf.kernels import njit
from sklpf.kernels._vectors import count_below, lane, load, running_sums, store, zeros
from sklpf.models import LDAPath
from sklpf.paths import Stream
from sklpf.programs._programs import anneal
from sklpf.testing import find_shared_data
from sklpf.transitions import Gibbs

MODELS = {  # name: file, topics, prior of the documents' topics, passes of the fit
    "AP, 10 topics": ("ap", 10, 0.1, 3),
    "AP, 20 topics": ("ap", 20, 0.1, 3),
    "AP, 100 topics": ("ap", 100, 0.01, 5),
    "newsgroups, 100 topics": ("newsgroups", 100, 0.01, 2),
}
# models on which no setting was chosen; the last number is the seed of the topics and documents
FRESH = {
    "AP, 30 topics, prior 1/30": ("ap", 30, 1 / 30, 3, 11),
    "AP, 60 topics, prior 0.1": ("ap", 60, 0.1, 3, 12),
    "newsgroups, 50 topics, prior 1/50": ("newsgroups", 50, 1 / 50, 2, 13),
    "AP, 60 topics, prior 1/60": ("ap", 60, 1 / 60, 3, 14),
    "newsgroups, 50 topics, prior 0.1": ("newsgroups", 50, 0.1, 2, 15),
    "AP, 30 topics, prior 0.1": ("ap", 30, 0.1, 3, 16),
    "newsgroups, 100 topics, prior 1/100": ("newsgroups", 100, 1 / 100, 2, 17),
    "AP, 100 topics, prior 1/100": ("ap", 100, 1 / 100, 5, 18),
    "NIPS, 50 topics, prior 1/50": ("nips", 50, 1 / 50, 3, 19),
    "newsgroups, 100 topics, prior 1/100, later": ("newsgroups", 100, 1 / 100, 2, 21),
    "newsgroups, 50 topics, prior 1/50, later": ("newsgroups", 50, 1 / 50, 2, 22),
    "AP, 100 topics, prior 1/100, later": ("ap", 100, 1 / 100, 5, 23),
    "AP, 60 topics, prior 1/60, later": ("ap", 60, 1 / 60, 3, 24),
}
FIRST_LATER = 21  # seeds of documents that no earlier one takes
ESTIMATORS = {
    "LeftToRight (default)": LeftToRight(),
    "LeftToRight, tol 0.1": LeftToRight(tol=0.1),
    "LeftToRight, 16 particles": LeftToRight(16),
    "LeftToRight, 200 particles": LeftToRight(200),
    "LeftToRight, 1 particle, 1000 filters": LeftToRight(1, 1000),
    "LeftToRight, 2 sweeps": LeftToRight(n_sweeps=2),
    "LeftToRight, 16 sweeps": LeftToRight(n_sweeps=16),
    "AIS, 100 chains x 300": AIS(100, 300),
    "AIS (default, 100 x 1000)": AIS(),
    "AIS, 30 chains x 3000": AIS(30, 3000),
    "ParallelTempering, 512 sweeps": ParallelTempering(n_sweeps=512),
    "RTS, 50 chains x 30, 1000 sweeps": RTS(50, 30, n_sweeps=1000),
}
COVERAGE = {
    "LeftToRight": LeftToRight(),
    "LeftToRight, tol 0.1": LeftToRight(tol=0.1),
    "AIS": AIS(),
}
LONG = LeftToRight(1000, 40, random_state=12345, n_jobs=1)


def documents(name, part):
    file = find_shared_data(f"text/{name}.npz")
    if file is None:
        rng = np.random.default_rng(0)
        topics = rng.dirichlet(np.full(5000, 0.02), size=50)
        shares = rng.dirichlet(np.full(50, 0.1), size=300)
        return sp.csr_matrix(
            [rng.multinomial(rng.poisson(150), share) for share in shares @ topics], dtype=float
        )
    with np.load(file) as data:
        arrays = (data[f"{part}_{key}"] for key in ("data", "indices", "indptr"))
        counts, indices, indptr = arrays
        shape = (len(indptr) - 1, int(data["n_features"]))
    return sp.csr_matrix((counts.astype(float), indices, indptr), shape=shape)


def make_path(model, quantiles):
    """The path of the test documents at these quantiles of length, under topics from a
    short fit.
    """
    test = documents(MODELS[model][0], "test")
    return trained_path(MODELS[model], 0, test[by_quantile(test, quantiles)])


def by_quantile(test, quantiles):
    order = np.argsort(np.asarray(test.sum(axis=1)).ravel(), kind="stable")
    return order[np.round(np.asarray(quantiles) * (len(order) - 1)).astype(int)]


def trained_path(model, seed, counts):
    name, n_topics, prior, passes = model
    lda = LatentDirichletAllocation(
        n_topics,
        doc_topic_prior=prior,
        topic_word_prior=0.01,
        learning_method="online",
        batch_size=256,
        max_iter=passes,
        random_state=seed,
    )
    topics = lda.fit(documents(name, "train")).components_
    return LDAPath(topics / topics.sum(axis=1, keepdims=True), prior, counts)


# ---- speed of a sweep
def speed(model):
    """CPU time of a token's draw, best of 7, 13 chains (a block of AIS) of a document with 190
    tokens.
    """
    table(
        "topics", "inverse temperature", "vectors alone, ns", "ns a token", "ns a token and topic"
    )
    rng = np.random.default_rng(0)
    counts = np.bincount(rng.integers(140, size=190), minlength=2000)[np.newaxis]
    for n_topics in (20, 100, 500):
        topics = rng.dirichlet(np.full(2000, 0.05), n_topics) * 0.999 + 0.001 / 2000
        path = LDAPath(topics, 0.1, counts).row(0).with_ladder(np.linspace(0, 1, 101))
        state, stream = path.sample_base(13, Stream((1, 2))), Stream((1, 2), 0, 1)
        document = path.packed
        weights, sums = (
            rng.random((13, document.likelihoods.shape[1])).astype(np.float32),
            np.empty(512, np.float32),
        )
        floor = 1e9 * best_time(
            7, vectors_alone, weights, document.likelihoods, document.word, sums, 100
        )
        for label, levels in (("1", np.full(101, 100)), ("0 to 1", np.arange(101))):
            levels = np.repeat(levels[:, np.newaxis], 13, axis=1)
            nanoseconds = (
                1e9
                * best_time(7, anneal, path, Gibbs(), state, (), levels, stream)
                / (100 * 13 * 190)
            )
            floor_text = f"{floor / (100 * 13 * 190):.0f}"
            row(n_topics, label, floor_text, f"{nanoseconds:.0f}", f"{nanoseconds / n_topics:.2f}")


@njit
def vectors_alone(weights, likelihoods, words, sums, rounds):
    """The products of a draw, their running sums, and one comparison: what no search or count is
    part of.
    """
    chosen, size = 0, weights.shape[1]
    for _ in range(rounds):
        for word in words:
            for c in range(weights.shape[0]):
                total = zeros(sums)
                for k in range(0, size, LANES):
                    total = total + load(weights, c * size + k) * load(likelihoods, word * size + k)
                    store(sums, k, total)
                prefix = running_sums(total)
                chosen += count_below(prefix, np.float32(0.5) * lane(prefix, LANES - 1))
    return chosen


def best_time(rounds, call, *arguments):
    call(*arguments)
    seconds = []
    for _ in range(rounds):
        began = time.process_time()
        call(*arguments)
        seconds.append(time.process_time() - began)
    return min(seconds)


# ---- which default
def default(model):
    """Each estimator on 10 documents against a long run; the error of a run is that over seeds and
    documents.
    """
    path = make_path(model, np.linspace(0.05, 0.95, 10))
    truth = LONG.fit(path).result_
    print(f"{model}: {path.n_tokens} tokens; long run: SE {np.round(truth.std_error, 3)}")
    table("estimator", "CPU ms a document", "RMSE", "mean SE", "bias", "converged", "RMSE^2 x s")
    for name, estimator in ESTIMATORS.items():
        errors, std_errors, converged, began = [], [], [], time.process_time()
        for seed in range(2):
            result = quiet_fit(estimator.set_params(random_state=seed, n_jobs=1), path).result_
            errors.append(result.log_partition - truth.log_partition)
            std_errors.append(result.std_error)
            converged.append(result.diagnostics["converged"])
        seconds = (time.process_time() - began) / np.size(errors)
        squared = np.mean(np.square(errors))
        row(
            name,
            f"{1e3 * seconds:.0f}",
            f"{squared**0.5:.2f}",
            f"{np.mean(std_errors):.2f}",
            f"{np.mean(errors):+.2f}",
            f"{np.mean(converged):.0%}",
            f"{squared * seconds:.3f}",
        )


# ---- what a score costs
def score(model):
    """The mean over 60 test documents: processor time a document, and the Monte-Carlo part of its
    interval.
    """
    path = make_path(model, np.linspace(0.02, 0.98, 60))
    values, seconds = [], []
    for seed in range(-1, 5):
        began = time.process_time()
        result = quiet_fit(LeftToRight(random_state=seed + 1, n_jobs=1), path).result_
        if seed >= 0:
            seconds.append((time.process_time() - began) / path.n_rows)
            values.append(result)
    found = values[0].diagnostics
    half = 1.96 * np.std(values[0].log_partition, ddof=1) / np.sqrt(path.n_rows)
    table(
        "model",
        "tokens",
        "CPU ms a document",
        "mean SE",
        "trusted",
        "MC part",
        "bias",
        "sampling part",
    )
    row(
        model,
        f"{path.n_tokens.mean():.0f}",
        f"{1e3 * np.median(seconds):.1f}",
        f"{values[0].std_error.mean():.2f}",
        f"{np.mean([v.diagnostics['converged'] for v in values]):.1%}",
        f"{1.96 * found['mean_std_error']:.3f}",
        f"{values[0].bias.mean():.3f}",
        f"{half:.0f}",
    )


# ---- coverage
def coverage(model, n_seeds):
    """Nominal 95 % intervals over seeds against a long run, or against enumeration of generated
    documents.
    """
    if model == "enumerable":
        rng = np.random.default_rng(2)
        topics = rng.dirichlet(np.full(40, 0.2), size=4) * 0.99 + 0.01 / 40
        shares = rng.dirichlet(np.full(4, 0.05), size=3)
        path = LDAPath(
            topics,
            0.05,
            [rng.multinomial(n, share @ topics) for n, share in zip((12, 25, 40), shares)],
        )
        truth = Exact().fit(path).result_
    else:
        path = make_path(model, [0.1, 0.3, 0.5, 0.7, 0.9])
        truth = quiet_fit(LONG, path).result_
    print(f"{model}: {path.n_tokens} tokens; long run: SE {np.round(truth.std_error, 3)}")
    table(
        "estimator",
        "tokens",
        "bias",
        "RMSE",
        "mean SE",
        "converged",
        "coverage of converged",
        "of all",
    )
    for name, estimator in COVERAGE.items():
        runs = [
            quiet_fit(estimator.set_params(random_state=s, n_jobs=1), path).result_
            for s in range(n_seeds)
        ]
        low, high = np.array([run.interval() for run in runs]).transpose(1, 0, 2)
        covered = (low <= truth.log_partition) & (truth.log_partition <= high)
        converged = np.array([run.diagnostics["converged"] for run in runs])
        errors = np.array([run.log_partition for run in runs]) - truth.log_partition
        std_errors = np.mean([run.std_error for run in runs], axis=0)
        for t, n_tokens in enumerate(path.n_tokens):
            trusted = covered[converged[:, t], t]
            row(
                name,
                n_tokens,
                f"{errors[:, t].mean():+.3f}",
                f"{np.sqrt(np.mean(errors[:, t] ** 2)):.3f}",
                f"{std_errors[t]:.3f}",
                f"{converged[:, t].mean():.1%}",
                f"{trusted.mean():.1%}" if len(trusted) else "-",
                f"{covered[:, t].mean():.1%}",
            )
        print(
            f"<!-- {name}: {covered[converged].sum()} of {converged.sum()} converged,"
            f" {covered.sum()} of all -->"
        )


def fresh(model, n_seeds):
    """Coverage of the default on models and documents of which none served to choose its
    settings.
    """
    path = trained_path(FRESH[model][:4], FRESH[model][4], fresh_documents(*FRESH[model][::4]))
    table(
        "model",
        "tokens",
        "SE of the long run",
        "error",
        "its SD",
        "mean SE",
        "trusted",
        "covered",
        "of trusted",
        "symmetric",
    )
    for t, n_tokens in enumerate(path.n_tokens):
        truth, truth_error, error, std_error, covered, trusted = fresh_cell(path.row(t), n_seeds)
        symmetric = np.abs(error) <= student_t.ppf(0.975, LeftToRight().n_filters - 1) * std_error
        row(
            model,
            n_tokens,
            f"{truth_error:.3f}",
            f"{error.mean():+.3f}",
            f"{error.std(ddof=1):.3f}",
            f"{std_error.mean():.3f}",
            f"{trusted.sum()} of {n_seeds}",
            f"{covered.sum()} of {n_seeds}",
            f"{covered[trusted].sum()} of {trusted.sum()}",
            f"{symmetric.sum()} of {n_seeds}",
        )


def fresh_documents(name, seed):
    """Five short, five middle and five long test documents: none that the other
    measurements take.
    """
    test = documents(name, "test")
    order = by_quantile(test, np.linspace(0, 1, test.shape[0]))
    grids = [
        np.linspace(e, 1 - e, n)
        for e, n in ((0.1, 5), (0.05, 10), (0.02, 60), (0.02, 30), (0.03, 40))
    ]
    taken = by_quantile(test, np.concatenate(grids))
    if seed >= FIRST_LATER:
        earlier = [
            model[4] for model in FRESH.values() if model[0] == name and model[4] < FIRST_LATER
        ]
        taken = np.concatenate([taken, *(chosen_fresh(order, taken, each) for each in earlier)])
    return test[chosen_fresh(order, taken, seed)]


def chosen_fresh(order, taken, seed):
    bounds = (np.array([0.02, 0.33, 0.67, 0.98]) * len(order)).astype(int)
    parts = [np.setdiff1d(order[low:high], taken) for low, high in zip(bounds, bounds[1:])]
    return np.concatenate(
        [np.random.default_rng(seed).choice(part, 5, replace=False) for part in parts]
    )


def fresh_cell(document, n_seeds):
    """Runs of the default, and the mean of long runs with guides of their own until its SE is a
    fifth of theirs.
    """
    runs = [
        quiet_fit(LeftToRight(random_state=s, n_jobs=1), document).result_ for s in range(n_seeds)
    ]
    value, std_error = np.array([(run.log_partition, run.std_error) for run in runs]).T
    trusted = np.array([run.converged for run in runs])
    low, high = np.array([np.ravel(run.interval()) for run in runs]).T
    long, truth_error = [], np.inf
    while len(long) < 3 or (truth_error > np.mean(std_error) / 5 and len(long) < 8):
        run = quiet_fit(
            LeftToRight(2000, 40, random_state=10_000 + len(long), n_jobs=1), document
        ).result_
        long.append((run.log_partition, run.std_error))
        truth, truth_error = mean_of_long(*np.transpose(long))
    return truth, truth_error, value - truth, std_error, (low <= truth) & (truth <= high), trusted


def mean_of_long(values, std_errors):
    """Log of the mean of estimates of Z, and the larger of what they say of its error and what
    their spread says.
    """
    n = len(values)
    spread = np.std(values, ddof=1) / np.sqrt(n) if n > 1 else 0.0
    return np.logaddexp.reduce(values) - np.log(n), max(np.sqrt(np.sum(std_errors**2)) / n, spread)


def coverage_of_means(model, n_seeds):
    """Coverage of the Monte-Carlo part of a score's interval: the mean over 40 documents."""
    path = make_path(model, np.linspace(0.03, 0.97, 40))
    truth = quiet_fit(LONG, path).result_
    runs = [quiet_fit(LeftToRight(random_state=s, n_jobs=1), path).result_ for s in range(n_seeds)]
    half, bias = np.array([(1.96 * r.diagnostics["mean_std_error"], r.bias.mean()) for r in runs]).T
    error = np.array([r.diagnostics["mean"] for r in runs]) - truth.diagnostics["mean"]
    covered = (-error >= -half) & (-error <= half - bias)
    table(
        "model",
        "error of the means",
        "its size",
        "half-width",
        "bias given",
        "coverage",
        "SE of the long run",
    )
    row(
        model,
        f"{error.mean():+.4f}",
        f"{error.std(ddof=1):.4f}",
        f"{half.mean():.3f}",
        f"{bias.mean():.3f}",
        f"{covered.mean():.1%}",
        f"{truth.diagnostics['mean_std_error']:.3f}",
    )


# ---- hard documents
def hard(n_seeds):
    """Words that other topics than the document's give 1e-2 to 1e-6: coverage with and without the
    resolution.
    """
    estimator = LeftToRight(n_jobs=1)
    table(
        "topics",
        "prior",
        "other topics",
        "foreign words",
        "median error",
        "median SE",
        "coverage",
        "without floor",
    )
    pooled = []
    for n_topics, n_tokens in ((2, 30), (4, 16)):
        for prior, leak, n_foreign in product((0.01, 0.1), (1e-3, 1e-5, 1e-7), (1, 4)):
            path = hard_document(n_topics, n_tokens, prior, leak, n_foreign, 1000 + len(pooled))
            truth, found = Exact().fit(path).log_partition_, []
            for seed in range(n_seeds):
                result = quiet_fit(estimator.set_params(random_state=seed), path.row(0)).result_
                spread = max(
                    result.diagnostics[f"{kind}_std_error"]
                    for kind in ("delta", "jackknife", "lognormal")
                )
                found.append((abs(result.log_partition - truth[0]), result.std_error, spread))
            error, std_error, spread = np.array(found).T
            covered = error <= 2.262 * std_error, error <= 2.262 * spread
            pooled.append(np.mean(covered, axis=1))
            row(
                n_topics,
                prior,
                leak,
                n_foreign,
                f"{np.median(error):.1e}",
                f"{np.median(std_error):.1e}",
                *(f"{np.mean(each):.1%}" for each in covered),
            )
    print(f"<!-- pooled {np.mean(pooled, axis=0)}, least {np.min(pooled, axis=0)} -->")


def hard_document(n_topics, n_tokens, prior, leak, n_foreign, seed):
    """A document of topic 0, but for some words of other topics; topics share words with
    probability `leak`.
    """
    rng = np.random.default_rng(seed)
    n_words = 4 * n_topics
    topics = np.kron(np.eye(n_topics), rng.dirichlet(np.ones(4))) + leak * rng.dirichlet(
        np.ones(n_words), n_topics
    )
    words = np.r_[
        rng.integers(4, size=n_tokens - n_foreign), rng.integers(4, n_words, size=n_foreign)
    ]
    return LDAPath(
        topics / topics.sum(axis=1, keepdims=True), prior, [np.bincount(words, minlength=n_words)]
    )


# ---- how many topics
SIZES = 3, 4, 5  # of the squares
GIBBS = {"learning_method": "gibbs", "max_iter": 60, "n_init": 4}
TRAINERS = {
    "Gibbs": GIBBS,
    "Gibbs, learned prior": GIBBS | {"learn_doc_topic_prior": True},
    "variational": {"max_iter": 60},
}
CORPUS_PRIORS = {"doc_topic_prior": 0.2, "topic_word_prior": 0.1}


def number(n_seeds):
    """Corpora of K bars and background words, as in the gallery: which number of topics is best,
    and by how much.
    """
    for size, (name, trainer) in product(SIZES, TRAINERS.items()):
        bars = 2 * size
        numbers = [bars - 2, bars, bars + 1, bars + 2, bars + 3, bars + 5]
        table(
            "bars",
            "trainer",
            "seed",
            "by cross-validation",
            "by test documents",
            "fewest within a nat",
            "by scikit-learn's perplexity",
            "half-width of a score",
            *map(str, numbers),
        )
        means = []
        for seed in range(n_seeds):
            corpus = with_background(size, seed)
            chosen, best, rule, half, gains = choose(corpus, numbers, bars + 1, trainer, seed)
            means.append([gain.mean for gain in gains])
            row(
                bars,
                name,
                seed,
                chosen,
                best,
                rule,
                least_perplexity(corpus, numbers, seed),
                f"{half:.1f}",
                *(f"{g.mean:+.2f} ({g.combined[0]:+.2f} to {g.combined[1]:+.2f})" for g in gains),
            )
        half = student_t.ppf(0.975, n_seeds - 1) * np.std(means, axis=0, ddof=1) / np.sqrt(n_seeds)
        print(
            "<!-- over corpora:",
            *(f"{m:+.2f} ± {h:.2f}" for m, h in zip(np.mean(means, axis=0), half)),
            "-->",
        )


def with_background(size, seed):
    """Training and test documents of bars in a square, and of ten words that all
    documents share.
    """
    n_train, n_test = 400, 120
    bars, _, _ = make_bars_corpus(
        n_train + n_test, size=size, n_tokens=60, doc_topic_prior=0.2, random_state=seed
    )
    rng = np.random.default_rng(seed)
    background = rng.multinomial(rng.integers(0, 80, n_train + n_test), np.arange(1, 11) / 55)
    X = sp.hstack([bars, background], format="csr")
    return X[:n_train], X[n_train:]


def choose(corpus, numbers, true, trainer, seed):
    """What `score` chooses in a grid and on test documents, the fewest within a nat, and intervals.

    These are the half-width of the true number's score, and every number's difference to the true
    one, by `compare`.
    """
    train, test = corpus
    cheap = LeftToRight(n_particles=10, n_filters=2, n_sweeps=2)
    model = OurModel(partition_estimator=cheap, random_state=seed, **CORPUS_PRIORS, **trainer)
    search = GridSearchCV(model, {"n_components": numbers}, cv=2, refit=False).fit(train)
    chosen = numbers[int(np.argmax(search.cv_results_["mean_test_score"]))]
    fits = {n: clone(model).set_params(n_components=n).fit(train) for n in numbers}
    for fitted in fits.values():
        fitted.set_params(partition_estimator=LeftToRight(n_particles=40, n_filters=5, n_sweeps=2))
    close = [
        n for n in numbers if n == chosen or compare(fits[n], fits[chosen], test).combined[0] > -1
    ]
    gains = [compare(fits[n], fits[true], test) for n in numbers]
    low, high = fits[true].score_interval(test).combined
    return (
        chosen,
        numbers[int(np.argmax([gain.mean for gain in gains]))],
        min(close),
        (high - low) / 2,
        gains,
    )


def least_perplexity(corpus, numbers, seed):
    """The number that scikit-learn's perplexity of the test documents prefers."""
    train, test = corpus
    reference = LatentDirichletAllocation(max_iter=60, random_state=seed, **CORPUS_PRIORS)
    found = [
        clone(reference).set_params(n_components=n).fit(train).perplexity(test) for n in numbers
    ]
    return numbers[int(np.argmin(found))]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "what",
        choices=["speed", "default", "score", "coverage", "means", "hard", "fresh", "number"],
    )
    parser.add_argument(
        "--model", default="AP, 100 topics", choices=[*MODELS, *FRESH, "enumerable"]
    )
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--estimators", default="", help="only those whose name begins so")
    args = parser.parse_args()
    for estimators in (ESTIMATORS, COVERAGE):
        for name in [name for name in estimators if not name.startswith(args.estimators)]:
            del estimators[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's
        if args.what in ("coverage", "means", "fresh"):
            {"coverage": coverage, "means": coverage_of_means, "fresh": fresh}[args.what](
                args.model, args.seeds
            )
        elif args.what in ("hard", "number"):
            {"hard": hard, "number": number}[args.what](args.seeds)
        else:
            {"speed": speed, "default": default, "score": score}[args.what](args.model)


if __name__ == "__main__":
    main()
