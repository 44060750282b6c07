"""Topic models: speed and held-out quality beside other packages, what likelihoods of documents
cost, whether their intervals cover, and how many topics there are.

    python tests/benchmarks/topics.py {documents,fit,gibbs,cost,fresh,number} [--seeds 3]
        [--models WORD ...] [--sweeps 100 200] [--results topics.jsonl]

documents: updates at topics after 5 passes, beside scikit-learn. fit: an online fit beside
scikit-learn, gensim and tomotopy. gibbs: collapsed Gibbs sampling beside tomotopy. cost: a score of
60 documents, and each estimator's error on 10. fresh: coverage on models and documents on which no
setting was chosen. number: corpora of K bars and background words, as in the gallery.

Prints Markdown. Processor time of one thread, BLAS on one thread, calls interleaved. Needs the
reference texts; gensim and tomotopy are left out where they are not installed. Held out, in nats a
token, is `completion_score` for `fit` and `LeftToRight` on 100 test documents for `gibbs`: topics
and alpha of a peer are put into one of our models.
"""

from __future__ import annotations

import argparse
import copy
import functools
import importlib.util
import time
import warnings
from itertools import product

import numpy as np
import scipy.sparse as sp
from measure import (
    chosen,
    interleave,
    judged,
    measured,
    print_coverage,
    quiet_fit,
    ratio,
    reference,
    row,
    table,
)
from scipy.stats import t as student_t
from sklearn.base import clone
from sklearn.decomposition import LatentDirichletAllocation as Reference
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_limits

from sklpf import AIS, RTS, LatentDirichletAllocation, LeftToRight, ParallelTempering, compare
from sklpf.datasets import make_bars_corpus
from sklpf.models import LDAPath
from sklpf.models.lda.learning._posterior import posterior_of
from sklpf.models.lda.learning._variational_bayes import Trainer

PRIORS = {"doc_topic_prior": 0.01, "topic_word_prior": 0.01}
ONLINE = {"learning_method": "online", "batch_size": 128, "random_state": 0, **PRIORS}


def texts(name):
    """Training and test documents."""
    data = reference(f"text/{name}.npz")
    parts = []
    for part in ("train", "test"):
        counts, *places = (data[f"{part}_{key}"] for key in ("data", "indices", "indptr"))
        shape = (len(places[1]) - 1, int(data["n_features"]))
        parts.append(sp.csr_matrix((counts.astype(float), *places), shape=shape))
    return parts


# ---- updates
def document_step(model, X):
    """A call of the E-step and the sums for the topics, from gamma = 1."""
    model = copy.deepcopy(model)

    def call():
        with posterior_of(model) as posterior:
            found = posterior.infer(X, np.ones((X.shape[0], len(posterior.alpha))))
            posterior.update(found, 1e-9, 1.0)

    return call


def update_step(model, X):
    """A call of an update of the topics by a batch that stands for 2,000 documents."""
    with posterior_of(model) as posterior:
        trainer = Trainer(model, posterior, X, 2000)
    return lambda: trainer._update(X)


def documents(args):
    print("\n## Documents and updates at topics after 5 passes, AP; ms")
    table("", "K", "scikit-learn", "float64", "float32", "ratio float64", "ratio float32")
    train, _ = texts("ap")
    for n_topics, n in ((20, 1000), (100, 1000), (500, 500)):
        double, single = (
            LatentDirichletAllocation(n_topics, max_iter=5, **ONLINE).fit(train.astype(dtype))
            for dtype in (np.float64, np.float32)
        )
        reference = Reference(n_topics, **ONLINE).partial_fit(train[:2])
        reference.components_ = np.array(double.components_)
        reference.exp_dirichlet_component_ = double.exp_dirichlet_component_
        X, X32 = train[:n], train[:n].astype(np.float32)
        options = {"cal_sstats": True, "random_init": False}
        calls = {
            f"{n} documents": {
                "reference": lambda: reference._e_step(X, **options),  # noqa: B023
                "double": document_step(double, X),
                "single": document_step(single, X32),
            },
            "update by 128": {
                "reference": lambda: reference._em_step(X[:128], 2000, False),  # noqa: B023
                "double": update_step(double, X[:128]),
                "single": update_step(single, X32[:128]),
            },
        }
        for name, each in calls.items():
            seconds = interleave(each, 9)
            times = (f"{1e3 * np.median(values):.1f}" for values in seconds.values())
            ratios = (ratio(seconds["reference"], seconds[ours]) for ours in ("double", "single"))
            row(name, n_topics, *times, *ratios)


# ---- fits
def fit_gensim(X, n_topics, n_passes):
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LdaModel

    corpus = list(Sparse2Corpus(X, documents_columns=False))
    names = {i: str(i) for i in range(X.shape[1])}
    began = time.process_time()
    model = LdaModel(
        corpus,
        n_topics,
        names,
        chunksize=128,
        passes=n_passes,
        update_every=1,
        alpha=[0.01] * n_topics,
        eta=0.01,
        decay=0.7,
        offset=10,
        iterations=100,
        gamma_threshold=1e-3,
        eval_every=None,
        random_state=0,
    )
    return time.process_time() - began, model.state.get_lambda(), 0.01


def fit_tomotopy(X, n_topics, n_iter, learned, prior=0.01, seed=1):
    import tomotopy

    model = tomotopy.LDAModel(k=n_topics, alpha=prior, eta=prior, seed=seed)
    model.optim_interval = 10 if learned else 0
    for begin, end in zip(X.indptr[:-1], X.indptr[1:]):
        words = np.repeat(X.indices[begin:end], X.data[begin:end].astype(int))
        model.add_doc(words.astype(str).tolist())
    began = time.process_time()
    model.train(n_iter, workers=1)
    seconds = time.process_time() - began
    components = np.full((n_topics, X.shape[1]), prior)
    words = np.array(model.used_vocabs).astype(int)
    for k, count in enumerate(model.get_count_by_topics()):
        components[k, words] = model.get_topic_word_dist(k) * (count + prior * len(words))
    return seconds, np.maximum(components, 1e-6), np.array(model.alpha)


def fit_ours(X, model):
    began = time.process_time()
    model.fit(X)
    return time.process_time() - began, model.components_, model.doc_topic_prior_


def with_topics(components, alpha, test, **options):
    model = LatentDirichletAllocation(len(components), max_iter=0, **options).fit(test)
    model.components_, model.doc_topic_prior_ = components, alpha
    return model


def fit(args):
    print("\n## Online fit, AP, K = 100, 5 passes; tomotopy: 200 sweeps of Gibbs sampling")
    train, test = texts("ap")
    options = {"max_iter": 5, **ONLINE}
    ours = LatentDirichletAllocation(100, **options)
    runs = {
        "ours, float64": lambda: fit_ours(train, ours),
        "ours, float32": lambda: fit_ours(train.astype(np.float32), ours),
        "scikit-learn": lambda: fit_ours(train, Reference(100, **options)),
    }
    if importlib.util.find_spec("gensim"):
        runs["gensim"] = lambda: fit_gensim(train, 100, 5)
    if importlib.util.find_spec("tomotopy"):
        runs["tomotopy"] = lambda: fit_tomotopy(train, 100, 200, False)
        runs["tomotopy, learned alpha"] = lambda: fit_tomotopy(train, 100, 200, True)
    seconds, values = {name: [] for name in runs}, {}
    for _ in range(4):
        for name, run in runs.items():
            used, *values[name] = run()
            seconds[name].append(used)
    table("", "CPU seconds", "held out, nats a token")
    for name, used in seconds.items():
        held_out = with_topics(*values[name], test, **PRIORS).completion_score(test)
        row(name, f"{np.median(used[1:]):.2f}", f"{held_out:.4f}")


def gibbs(args):
    """Medians of times, and means of held-out values with their standard errors."""
    few = LeftToRight(20, 4, 4, random_state=0)
    table("text, topics", "", "sweeps", "CPU seconds", "held out, nats a token")
    for name, n_topics in product(("ap", "newsgroups"), (20, 100)):
        if not chosen([f"{name}, {n_topics} topics"], args.models):
            continue
        train, test = texts(name)
        test = test[np.random.default_rng(0).permutation(test.shape[0])[:100]]
        options = {"learning_method": "gibbs", "learn_doc_topic_prior": True, "n_jobs": 1}
        options |= {"doc_topic_prior": 0.1, "topic_word_prior": 0.1}

        def ours(n, seed, X=train, n_topics=n_topics, options=options):
            model = LatentDirichletAllocation(n_topics, max_iter=n, random_state=seed, **options)
            return fit_ours(X, model)

        def theirs(n, seed, X=train, n_topics=n_topics):
            return fit_tomotopy(X, n_topics, n, True, 0.1, seed + 1)

        ours(2, 0)  # compiles
        kinds = {"ours": ours}
        if importlib.util.find_spec("tomotopy"):
            kinds["tomotopy"] = theirs
        for n, (kind, run) in product(args.sweeps, kinds.items()):
            seconds, values = [], []
            for seed in args.seeds:
                used, *topics = run(n, seed)
                path = with_topics(*topics, test, partition_estimator=few).path(test)
                seconds.append(used)
                values.append(few.fit(path).log_partition_.sum() / test.sum())
            error = np.std(values, ddof=1) / np.sqrt(len(values))
            held_out = f"{np.mean(values):.4f} ± {error:.4f}"
            row(f"{name}, {n_topics}", kind, n, f"{np.median(seconds):.2f}", held_out)


# ---- the likelihood of documents
MODELS = {  # name: file, topics, prior of the documents' topics, passes of the fit
    "AP, 10 topics": ("ap", 10, 0.1, 3),
    "AP, 30 topics": ("ap", 30, 0.1, 3),
    "AP, 100 topics": ("ap", 100, 0.01, 5),
    "newsgroups, 50 topics": ("newsgroups", 50, 0.02, 2),
    "newsgroups, 100 topics": ("newsgroups", 100, 0.01, 2),
    "NIPS, 50 topics": ("nips", 50, 0.02, 3),
}
FRESH = 25  # seed of topics and documents; take another after a setting was chosen on them
ESTIMATORS = {
    "LeftToRight (default)": LeftToRight(),
    "LeftToRight, tol 0.1": LeftToRight(tol=0.1),
    "LeftToRight, 200 particles": LeftToRight(200),
    "LeftToRight, 1 particle, 1000 filters": LeftToRight(1, 1000),
    "AIS (default, 100 x 1000)": AIS(),
    "AIS, 30 chains x 3000": AIS(30, 3000),
    "ParallelTempering, 512 sweeps": ParallelTempering(n_sweeps=512),
    "RTS, 50 chains x 30, 1000 sweeps": RTS(50, 30, n_sweeps=1000),
}


def trained_path(model, seed, choose):
    """The path of some test documents under topics from a short fit by scikit-learn; `choose` gives
    their places among all, in ascending order of length.
    """
    name, n_topics, prior, passes = MODELS[model]
    train, test = texts(name)
    lda = Reference(
        n_topics,
        doc_topic_prior=prior,
        topic_word_prior=0.01,
        learning_method="online",
        batch_size=256,
        max_iter=passes,
        random_state=seed,
    )
    topics = lda.fit(train).components_
    order = np.argsort(np.asarray(test.sum(axis=1)).ravel(), kind="stable")
    places = order[choose(len(order))]
    return LDAPath(topics / topics.sum(axis=1, keepdims=True), prior, test[places])


def at_quantiles(low, n):
    return lambda size: np.round(np.linspace(low, 1 - low, n) * (size - 1)).astype(int)


def cost(args):
    """Of a score of 60 test documents; and of 10, the error of each estimator by a long run."""
    columns = "CPU ms a document", "mean SE", "trusted", "MC part of the interval of the mean"
    for model in args.models:
        path = trained_path(model, 0, at_quantiles(0.02, 60))
        seconds, trusted = [], []
        for seed in range(6):
            began = time.process_time()
            result = quiet_fit(LeftToRight(random_state=seed, n_jobs=1), path).result_
            seconds.append((time.process_time() - began) / path.n_rows)
            trusted.append(result.diagnostics["converged"])
        part = 1.96 * result.diagnostics["mean_std_error"]
        table("model", *columns)
        milliseconds = f"{1e3 * np.median(seconds[1:]):.1f}"
        error = f"{result.std_error.mean():.2f}"
        row(model, milliseconds, error, f"{np.mean(trusted):.1%}", f"{part:.3f}")

        path = trained_path(model, 0, at_quantiles(0.05, 10))
        truth = LeftToRight(1000, 40, random_state=12345, n_jobs=1).fit(path).log_partition_
        records = []
        for name, estimator in ESTIMATORS.items():
            for seed in range(2):
                estimator.set_params(random_state=seed, n_jobs=1)
                runs = judged(estimator, path, truth)
                records += [{"estimator": name} | each for each in runs]
        print_coverage(records, "estimator")


def five_of_each(size):
    """Five short, five middle and five long documents."""
    rng = np.random.default_rng(FRESH)
    bounds = (np.array([0.02, 0.33, 0.67, 0.98]) * size).astype(int)
    pairs = zip(bounds, bounds[1:])
    return np.concatenate([rng.choice(np.arange(*pair), 5, replace=False) for pair in pairs])


@functools.lru_cache(maxsize=1)
def fresh_path(model):
    return trained_path(model, FRESH, five_of_each)


@functools.lru_cache(maxsize=1)
def truth_of(model, document):
    return by_long_runs(fresh_path(model).row(document))


def fresh_run(model, document, seed):
    estimator = LeftToRight(random_state=seed, n_jobs=1)
    return judged(estimator, fresh_path(model).row(document), *truth_of(model, document))


def fresh(args):
    runs = product(args.models, range(15), args.seeds)
    tasks = ({"model": model, "document": t, "seed": seed} for model, t, seed in runs)
    records = measured(args.results, tasks, fresh_run)
    print_coverage(records, "model", "document")
    print_coverage(records, "model")


def by_long_runs(document):
    """Log of the mean of long runs' estimates of Z, each with guides of its own, until it is within
    .05 nats or of eight runs; and the larger of what they say of its error and what their spread
    says.
    """
    values, errors = [], []
    error = np.inf
    while len(values) < 3 or (error > 0.05 and len(values) < 8):
        long = LeftToRight(2000, 40, random_state=10_000 + len(values), n_jobs=1)
        result = quiet_fit(long, document).result_
        values.append(result.log_partition)
        errors.append(result.std_error)
        n = len(values)
        spread = np.std(values, ddof=1) / np.sqrt(n) if n > 1 else np.inf
        error = max(np.linalg.norm(errors) / n, spread)
    return float(np.logaddexp.reduce(values) - np.log(n)), float(error)


# ---- how many topics
GIBBS = {"learning_method": "gibbs", "max_iter": 60, "n_init": 4}
TRAINERS = {
    "Gibbs, prior 0.2": GIBBS,
    "Gibbs, learned prior": GIBBS | {"learn_doc_topic_prior": True},
    "variational, prior 0.2": {"max_iter": 60},
}


def number(args):
    """Which number of topics is best, and by how much; differences are to K + 1 topics."""
    columns = "chosen by `score`", "fewest within a nat"
    for size, (name, trainer) in product((3, 4, 5), TRAINERS.items()):
        bars = 2 * size
        numbers = [bars - 2, bars, bars + 1, bars + 2, bars + 3, bars + 5]
        table("K", "trainer", "seed", *columns, *map(str, numbers))
        means = []
        for seed in args.seeds:
            best, fewest, gains = choose_number(size, numbers, bars + 1, trainer, seed)
            means.append([gain.mean for gain in gains])
            row(bars, name, seed, best, fewest, *(f"{gain.mean:+.2f}" for gain in gains))
        n = len(means)
        half = student_t.ppf(0.975, n - 1) * np.std(means, axis=0, ddof=1) / np.sqrt(n)
        found = (f"{m:+.2f} ± {h:.2f}" for m, h in zip(np.mean(means, axis=0), half))
        row(bars, name, "all", "", "", *found)


def with_background(size, seed, n_train=400, n_test=120):
    """Training and test documents of bars in a square, and of ten words that all documents
    share.
    """
    n = n_train + n_test
    prior = {"doc_topic_prior": 0.2, "random_state": seed}
    bars, _, _ = make_bars_corpus(n, size=size, n_tokens=60, **prior)
    rng = np.random.default_rng(seed)
    background = rng.multinomial(rng.integers(0, 80, n), np.arange(1, 11) / 55)
    X = sp.hstack([bars, background], format="csr")
    return X[:n_train], X[n_train:]


def choose_number(size, numbers, true, trainer, seed):
    """The number that `score` chooses in a grid, the fewest topics within a nat of it by `compare`,
    and differences of all numbers to the true one.
    """
    train, test = with_background(size, seed)
    cheap = LeftToRight(n_particles=10, n_filters=2, n_sweeps=2)
    priors = {"doc_topic_prior": 0.2, "topic_word_prior": 0.1}
    model = LatentDirichletAllocation(
        partition_estimator=cheap, random_state=seed, **priors, **trainer
    )
    search = GridSearchCV(model, {"n_components": numbers}, cv=2, refit=False).fit(train)
    best = numbers[int(np.argmax(search.cv_results_["mean_test_score"]))]
    fits = {n: clone(model).set_params(n_components=n).fit(train) for n in numbers}
    for fitted in fits.values():
        fitted.set_params(partition_estimator=LeftToRight(n_particles=40, n_filters=5, n_sweeps=2))
    losses = {n: compare(fits[n], fits[best], test) for n in numbers if n != best}
    close = [n for n, loss in losses.items() if loss.combined[0] > -1]
    return best, min([best, *close]), [compare(fits[n], fits[true], test) for n in numbers]


COMMANDS = {f.__name__: f for f in (documents, fit, gibbs, cost, fresh, number)}


def main():
    keep_lines = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=keep_lines)
    parser.add_argument("what", choices=COMMANDS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--models", nargs="*", default=[""])
    parser.add_argument("--sweeps", nargs="*", type=int, default=[100, 200])
    parser.add_argument("--results", default="topics.jsonl")
    args = parser.parse_args()
    args.seeds = range(args.seeds)
    if args.what in ("cost", "fresh"):
        args.models = chosen(MODELS, args.models)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        COMMANDS[args.what](args)


if __name__ == "__main__":
    main()
