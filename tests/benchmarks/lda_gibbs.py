"""Collapsed Gibbs sampling of LatentDirichletAllocation beside tomotopy and variational fits; prints Markdown.

    python tests/benchmarks/lda_gibbs.py [token fit --text ap --topics 20 --sweeps 50,100,200]

Processor time of one thread, BLAS on one thread. Needs the reference texts; tomotopy is left out where it is not
installed. Held out is the log-likelihood of test documents by our own `LeftToRight` in nats a token, the same code for
both: topics and alpha of tomotopy are put into one of our models.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
import warnings

import numpy as np
from lda import fit_tomotopy, texts
from measure import row, table
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from sklpf import LatentDirichletAllocation, LeftToRight
from sklpf.models.lda._gibbs import Corpus, State

N_SCORED = 100  # test documents
FEW = LeftToRight(20, 4, 4, random_state=0)
PRIOR = 0.1  # alpha and eta to begin with


def scored(components, alpha, test):
    """Held-out nats a token, and the Monte-Carlo error of that."""
    model = LatentDirichletAllocation(len(components), max_iter=0, partition_estimator=FEW).fit(test)
    model.components_, model.doc_topic_prior_ = components, alpha
    estimates, n_tokens = FEW.fit(model.path(test)), test.sum()
    error = np.sqrt(np.sum(estimates.log_partition_std_error_**2)) / n_tokens
    return f"{estimates.log_partition_.sum() / n_tokens:.4f}", f"{error:.4f}"


def fit_ours(X, n_topics, **options):
    model = LatentDirichletAllocation(
        n_topics, doc_topic_prior=PRIOR, topic_word_prior=PRIOR, random_state=0, n_jobs=1, **options
    )
    began = time.process_time()
    model.fit(X)
    return time.process_time() - began, model.components_, model.doc_topic_prior_


def fit(name, n_topics, sweeps):
    print(f"\n## {name}, {n_topics} topics, alpha = eta = {PRIOR} to begin with, {N_SCORED} test documents\n")
    train, test = texts(name)
    test = test[np.random.default_rng(0).permutation(test.shape[0])[:N_SCORED]]
    table("", "sweeps or passes", "CPU seconds", "ns a token and sweep", "held out, nats a token", "Monte-Carlo error")
    gibbs = {"learning_method": "gibbs", "learn_doc_topic_prior": True}
    kinds = {
        "Gibbs": lambda n: fit_ours(train, n_topics, max_iter=n, **gibbs),
        "Gibbs, eta learned": lambda n: fit_ours(train, n_topics, max_iter=n, learn_topic_word_prior=True, **gibbs),
    }
    if importlib.util.find_spec("tomotopy"):
        kinds["tomotopy"] = lambda n: fit_tomotopy(train, n_topics, n, True, PRIOR)
    kinds["Gibbs"](2)  # compiles
    for n in sweeps:
        for kind, call in kinds.items():
            seconds, *found = call(n)
            row(kind, n, f"{seconds:.2f}", f"{1e9 * seconds / n / train.sum():.0f}", *scored(*found, test))
    for kind, options in {"batch": {}, "batch, learned alpha": {"learn_doc_topic_prior": True}}.items():
        seconds, *found = fit_ours(train, n_topics, max_iter=20, **options)
        row(kind, 20, f"{seconds:.2f}", "", *scored(*found, test))


def token(name, *_):
    print(f"\n## A sweep, {name}, after 20 sweeps: medians of 7\n")
    table("K", "ns a token")
    corpus = Corpus.of(texts(name)[0])
    for n_topics in (20, 100, 200, 500):
        state, seconds = State(corpus, np.full(n_topics, 0.1), 0.1, (1, 2)), []
        for step in range(27):
            began = time.process_time()
            state.sweep(step)
            seconds.append(time.process_time() - began)
        row(n_topics, f"{1e9 * np.median(seconds[20:]) / len(corpus.words):.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["token", "fit"])
    parser.add_argument("--text", default="ap")
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--sweeps", default="50,100,200")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    with threadpool_limits(1):
        sweeps = [int(n) for n in options.sweeps.split(",")]
        {"token": token, "fit": fit}[options.what](options.text, options.topics, sweeps)
