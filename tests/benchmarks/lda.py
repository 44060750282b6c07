"""Speed and held-out quality of LatentDirichletAllocation beside other packages; prints Markdown.

    python tests/benchmarks/lda.py [documents long_documents fit threads likelihood_over_time
    tempering]

Processor time of one thread, BLAS on one thread, calls interleaved. Needs the reference texts;
gensim and tomotopy are left out where they are not installed. Held out is `completion_score`, nats
a token, the same code for all: topics and alpha of a peer are put into one of our models.
"""

from __future__ import annotations

import copy
import importlib.util
import sys
import time

import numpy as np
import scipy.sparse as sp
from measure import interleave, ratio, row, table
from scipy.special import psi
from sklearn.decomposition import LatentDirichletAllocation as Reference
from threadpoolctl import threadpool_limits

from sklpf import LatentDirichletAllocation, Tempering
from sklpf.models.lda.learning._posterior import posterior_of
from sklpf.models.lda.learning._variational_bayes import Trainer
from sklpf.testing import find_shared_data

PRIORS = {"doc_topic_prior": 0.01, "topic_word_prior": 0.01}
ONLINE = {"learning_method": "online", "batch_size": 128, "random_state": 0, **PRIORS}


def texts(name):
    file = find_shared_data(f"text/{name}.npz")
    if file is None:
        sys.exit(f"text/{name}.npz not found: set SKLPF_DATA to the folder of the reference data")
    with np.load(file) as data:
        return [
            sp.csr_matrix(
                (
                    data[f"{part}_data"].astype(float),
                    data[f"{part}_indices"],
                    data[f"{part}_indptr"],
                ),
                shape=(len(data[f"{part}_indptr"]) - 1, int(data["n_features"])),
            )
            for part in ("train", "test")
        ]


# ---- documents
def document_step(model, X):
    """A call of the E-step and the sums for the topics, from gamma = 1; returns gamma."""
    model = copy.deepcopy(model)

    def call():
        with posterior_of(model) as posterior:
            found = posterior.infer(X, np.ones((X.shape[0], len(posterior.alpha))))
            posterior.update(found, 1e-9, 1.0)
        return found.gamma

    return call


def update_step(model, X):
    """A call of an update of the topics by a batch that stands for 2,000 documents."""
    with posterior_of(model) as posterior:
        trainer = Trainer(model, posterior, X, 2000)
    return lambda: trainer._update(X)


def trained(n_topics, train):
    """Our model in float64 and float32, and scikit-learn's with the same topics."""
    models = [
        LatentDirichletAllocation(n_topics, max_iter=5, **ONLINE).fit(train.astype(dtype))
        for dtype in (np.float64, np.float32)
    ]
    reference = Reference(n_topics, **ONLINE).partial_fit(train[:2])
    reference.components_ = np.array(models[0].components_)
    reference.exp_dirichlet_component_ = models[0].exp_dirichlet_component_
    return [*models, reference]


def documents():
    print("\n## Documents and updates at topics after 5 passes, AP\n")
    print(
        "Documents: gamma from 1 until it settles, and the sums that an update needs. scikit-learn"
        " has exp(E log beta)"
    )
    print(
        "beforehand; ours computes that of the words it needs. Update: everything that a batch of"
        " 128 costs in a fit."
    )
    table(
        "",
        "K",
        "documents",
        "scikit-learn, ms",
        "float64, ms",
        "float32, ms",
        "ratio float64",
        "ratio float32",
    )
    train, _ = texts("ap")
    changes = []
    for n_topics, n in ((20, 1000), (100, 1000), (500, 500)):
        double, single, reference = trained(n_topics, train)
        X, X32 = train[:n], train[:n].astype(np.float32)
        calls = {
            "reference": lambda: reference._e_step(X, cal_sstats=True, random_init=False),  # noqa: B023
            "double": document_step(double, X),
            "single": document_step(single, X32),
        }
        changes.append(np.abs(calls["reference"]()[0] - calls["double"]()).max())
        report("documents", n_topics, n, calls)
        calls = {
            "reference": lambda: reference._em_step(X[:128], 2000, False),  # noqa: B023
            "double": update_step(double, X[:128]),
            "single": update_step(single, X32[:128]),
        }
        report("update", n_topics, 128, calls)
    print(f"\nLargest difference of gamma in float64: {max(changes):.1e}.")


def long_documents():
    print(
        "\n## Documents of about 400 distinct words, NIPS, and how long the products of their"
        " matrices alone take\n"
    )
    train, _ = texts("nips")
    distinct = np.diff(train.indptr)
    X = train[(distinct > 350) & (distinct < 450)]
    X32, n = X.astype(np.float32), X.shape[0]
    print(
        f"{n} documents with {X.nnz / n:.0f} different words and {X.sum() / n:.0f} tokens in the"
        " mean"
    )
    found = []
    table(
        "",
        "K",
        "documents",
        "scikit-learn, ms",
        "float64, ms",
        "float32, ms",
        "ratio float64",
        "ratio float32",
    )
    for n_topics in (20, 100, 500):
        double, single, reference = trained(n_topics, train)
        calls = {
            "reference": lambda: reference._e_step(X, cal_sstats=False, random_init=False),  # noqa: B023
            "double": lambda: settle_all(double, X),  # noqa: B023
            "single": lambda: settle_all(single, X32),  # noqa: B023
        }
        report("documents", n_topics, n, calls, 3)
        calls = {
            "reference": lambda: reference._em_step(X[:128], 2000, False),  # noqa: B023
            "double": update_step(double, X[:128]),
            "single": update_step(single, X32[:128]),
        }
        report("update", n_topics, 128, calls, 3)
        found.append(
            (n_topics, *limit(reference.exp_dirichlet_component_, double.doc_topic_prior_, X[:30]))
        )
    table(
        "K",
        "updates of gamma",
        "topics left after 1, 5, 10, 20",
        "two products, µs",
        "all, µs a document",
    )
    for n_topics, steps, left, pair in found:
        row(
            n_topics,
            f"{steps:.0f}",
            ", ".join(f"{v:.0f}" for v in left),
            f"{pair:.1f}",
            f"{steps * pair:.0f}",
        )


def settle_all(model, X):
    with posterior_of(model) as posterior:
        return posterior.infer(X, np.ones((X.shape[0], len(posterior.alpha))))


def limit(rows, alpha, X):
    """Means over documents: updates of gamma until it settles, topics left in some, and the time of
    both products.
    """
    steps, left, seconds = [], [], []
    for begin, end in zip(X.indptr[:-1], X.indptr[1:]):
        matrix, counts = np.ascontiguousarray(rows[:, X.indices[begin:end]]), X.data[begin:end]
        gamma, kept = np.ones(len(alpha)), []
        for _ in range(100):
            theta = np.exp(psi(gamma) - psi(gamma.sum()))
            ratios = counts / (theta @ matrix + 1e-16)
            last, gamma = gamma, alpha + theta * (matrix @ ratios)
            kept.append(np.sum(gamma - alpha > 1e-6))
            if np.mean(np.abs(gamma - last)) < 1e-3:
                break
        began = time.process_time()
        for _ in range(200):
            theta @ matrix, matrix @ ratios
        seconds.append((time.process_time() - began) / 200)
        steps.append(len(kept))
        left.append([kept[min(i, len(kept) - 1)] for i in (1, 5, 10, 20)])
    return np.mean(steps), np.mean(left, axis=0), 1e6 * np.median(seconds)


def report(name, n_topics, n, calls, rounds=9):
    seconds = interleave(calls, rounds)
    times = [f"{1e3 * np.median(seconds[name]):.1f}" for name in calls]
    row(
        name,
        n_topics,
        n,
        *times,
        *(ratio(seconds["reference"], seconds[name]) for name in ("double", "single")),
    )


# ---- fits
def held_out(components, alpha, test):
    """completion_score of any package's topics."""
    model = LatentDirichletAllocation(len(components), max_iter=0, **PRIORS).fit(test)
    model.components_, model.doc_topic_prior_ = components, alpha
    return model.completion_score(test)


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
        model.add_doc(
            np.repeat(X.indices[begin:end], X.data[begin:end].astype(int)).astype(str).tolist()
        )
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


def fit():
    print("\n## Online fit, AP, K = 100, 5 passes\n")
    train, test = texts("ap")
    options = {"max_iter": 5, **ONLINE}
    runs = {
        "ours, float64": lambda: fit_ours(train, LatentDirichletAllocation(100, **options)),
        "ours, float32": lambda: fit_ours(
            train.astype(np.float32), LatentDirichletAllocation(100, **options)
        ),
        "ours, learned alpha": lambda: fit_ours(
            train, LatentDirichletAllocation(100, learn_doc_topic_prior=True, **options)
        ),
        "scikit-learn": lambda: fit_ours(train, Reference(100, **options)),
    }
    compare(runs, test, "scikit-learn", 3)
    if importlib.util.find_spec("gensim"):
        compare({"gensim": lambda: fit_gensim(train, 100, 5)}, test, "gensim", 1)
    if importlib.util.find_spec("tomotopy"):
        print("\n200 sweeps of collapsed Gibbs sampling:")
        runs = {
            f"tomotopy{text}": lambda learned=learned: fit_tomotopy(train, 100, 200, learned)
            for learned, text in ((False, ""), (True, ", learned alpha"))
        }
        compare(runs, test, "tomotopy", 1)


def compare(runs, test, base, rounds):
    """Fit every one in turn, after a first of each that is not timed where there are rounds."""
    seconds, values = {name: [] for name in runs}, {}
    for measured in range(0 if rounds == 1 else -1, rounds):
        for name, run in runs.items():
            used, components, alpha = run()
            if measured >= 0:
                seconds[name].append(used)
            values[name] = components, alpha
    table("", "CPU seconds", f"{base} / this", "held out, nats a token")
    for name, used in seconds.items():
        text = "" if name == base else ratio(np.array(seconds[base]), np.array(used))
        row(name, f"{np.median(used):.2f}", text, f"{held_out(*values[name], test):.4f}")


def threads():
    print("\n## Two threads: seconds by the wall, online fit, AP, 5 passes\n")
    train, _ = texts("ap")
    table("K", "one thread", "two threads", "ratio", "same bits")
    for n_topics in (100, 500):
        models = {
            n: LatentDirichletAllocation(n_topics, max_iter=5, n_jobs=n, **ONLINE) for n in (1, 2)
        }
        calls = {n: lambda model=model: model.fit(train) for n, model in models.items()}
        seconds = interleave(calls, 5, clock=time.perf_counter)
        same = np.array_equal(models[1].components_, models[2].components_)
        times = [f"{np.median(seconds[n]):.2f}" for n in (1, 2)]
        row(n_topics, *times, ratio(seconds[1], seconds[2]), same)


# ---- quality
def likelihood_over_time():
    print("\n## Held out against CPU seconds, newsgroups, K = 100, float32\n")
    train, test = texts("newsgroups")
    table("", "alpha = eta", "passes or sweeps", "CPU seconds", "held out, nats a token")
    annealed = {"tempering": Tempering(initial_temperature=2.0)}
    for text, options in {
        "ours": {},
        "ours, annealed from T = 2": annealed,
        "ours, annealed from T = 2, learned alpha": annealed | {"learn_doc_topic_prior": True},
    }.items():
        for prior, n_passes in ((0.01, 5), (0.1, 2), (0.1, 5), (0.1, 10)):
            options |= {"doc_topic_prior": prior, "topic_word_prior": prior}
            model = LatentDirichletAllocation(
                100, max_iter=n_passes, shuffle=True, **(ONLINE | options)
            )
            if model.tempering is not None:
                model.set_params(tempering__n_tempered=0.8 * n_passes)
            used, *topics = fit_ours(train.astype(np.float32), model)
            row(text, prior, n_passes, f"{used:.1f}", f"{held_out(*topics, test):.4f}")
    if importlib.util.find_spec("tomotopy"):
        for prior, n_iter in ((0.01, 50), (0.01, 200), (0.1, 50), (0.1, 200)):
            used, *topics = fit_tomotopy(train, 100, n_iter, True, prior)
            row(
                "tomotopy, learned alpha",
                prior,
                n_iter,
                f"{used:.1f}",
                f"{held_out(*topics, test):.4f}",
            )


PAPER = Tempering("global", initial_temperature=10.0, monotone=False, n_tempered=3)


def tempering():
    print("\n## Tempering, K = 50, 10 passes in batches of 100, shuffled, three seeds\n")
    table(
        "text",
        "tempering",
        "held out, nats a token",
        "standard error",
        "last temperature above 1",
        "CPU seconds",
    )
    for name in ("ap", "newsgroups"):
        train, test = (part.astype(np.float32) for part in texts(name))
        for text, options in {
            "none": {},
            "annealed, 1.5, 1 pass": {"tempering": Tempering(n_tempered=1)},
            "annealed, 1.5, 3 passes": {"tempering": Tempering(n_tempered=3)},
            "annealed, 3, 3 passes": {
                "tempering": Tempering(n_tempered=3, initial_temperature=3.0)
            },
            "global, to 10, may rise, 3 passes": {"tempering": PAPER},
            "local, 3 passes": {"tempering": Tempering("local", n_tempered=3)},
        }.items():
            values, used = [], []
            for seed in range(3):
                online = ONLINE | {"batch_size": 100, "random_state": seed}
                model = LatentDirichletAllocation(
                    50, max_iter=10, shuffle=True, **online, **options
                )
                seconds, *topics = fit_ours(train, model)
                values.append(held_out(*topics, test))
                used.append(seconds)
            hot = model.temperatures_[model.temperatures_ > 1]
            last = f"{hot[-1]:.2f}" if len(hot) else "-"
            error = np.std(values, ddof=1) / np.sqrt(len(values))
            row(
                name, text, f"{np.mean(values):.4f}", f"{error:.4f}", last, f"{np.median(used):.1f}"
            )


if __name__ == "__main__":
    wanted = sys.argv[1:] or [
        "documents",
        "long_documents",
        "fit",
        "threads",
        "likelihood_over_time",
        "tempering",
    ]
    with threadpool_limits(1):
        for name in wanted:
            {
                "documents": documents,
                "long_documents": long_documents,
                "fit": fit,
                "threads": threads,
                "likelihood_over_time": likelihood_over_time,
                "tempering": tempering,
            }[name]()
