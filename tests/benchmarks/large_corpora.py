"""Large corpora: a stream of documents through partial_fit, and scores with the
fitted model.

Run with: python tests/benchmarks/large_corpora.py {fit,score,partitions} [--documents 1000000]
[--batch 8192]

Prints tables in Markdown; doc/guide/large_corpora.md keeps them. Documents are generated in batches
from 50 topics over 20,000 words, 100 words each, and forgotten; rates are documents in a second of
one core's time (process time, without the generator's), memory is the largest resident set of the
process so far.
"""

from __future__ import annotations

import argparse
import resource
import time
from functools import partial

import numpy as np
import scipy.sparse as sp
from measure import interleave, large, ratio, row, table
from scipy.special import psi
from sklearn.decomposition import LatentDirichletAllocation as Reference

from sklpf import BernoulliRBM, LatentDirichletAllocation, LeftToRight

N_TOPICS, N_WORDS, N_TOKENS, ALPHA, BATCH = 50, 20_000, 100, 0.1, 8192


class Corpus:
    """Documents by number: a batch depends on its number alone, so that any worker can make it."""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.topics = rng.dirichlet(np.full(N_WORDS, 0.05), size=N_TOPICS) + 1e-12
        self.topics /= self.topics.sum(axis=1, keepdims=True)
        self.cumulative = np.cumsum(self.topics, axis=1)

    def batch(self, number, n=BATCH):
        rng = np.random.default_rng([1, number])
        counts = np.array(
            [
                rng.multinomial(N_TOKENS, share)
                for share in rng.dirichlet(np.full(N_TOPICS, ALPHA), n)
            ]
        )
        rows, words = [], []
        for k in range(N_TOPICS):
            rows.append(np.repeat(np.arange(n), counts[:, k]))
            drawn = np.searchsorted(self.cumulative[k], rng.random(len(rows[-1])))
            words.append(np.minimum(drawn, N_WORDS - 1))
        ones = np.ones(n * N_TOKENS)
        X = sp.csr_matrix((ones, (np.concatenate(rows), np.concatenate(words))), shape=(n, N_WORDS))
        X.sum_duplicates()
        return X


def memory():
    """The largest resident set so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def new_model(n_documents, batch_size):
    return LatentDirichletAllocation(
        N_TOPICS,
        doc_topic_prior=ALPHA,
        topic_word_prior=0.05,
        batch_size=batch_size,
        total_samples=n_documents,
        random_state=0,
        n_jobs=1,
    )


def stream(corpus, model, n_documents, at):
    """Fit, and yield (documents, seconds) when so many have been seen."""
    seconds, seen, number = 0.0, 0, 0
    for goal in [*at, n_documents]:
        while seen < goal:
            X = corpus.batch(number, min(BATCH, goal - seen))
            began = time.process_time()
            model.partial_fit(X)
            seconds += time.process_time() - began
            seen, number = seen + X.shape[0], number + 1
        yield seen, seconds


def fit(n_documents, batch_size):
    corpus, model = Corpus(), new_model(n_documents, batch_size)
    held_out, truth = (
        corpus.batch(10**9, 1000),
        LatentDirichletAllocation.from_topics(corpus.topics, ALPHA),
    )
    model.partial_fit(corpus.batch(10**9 + 1, 64))
    model = new_model(n_documents, batch_size)  # kernels are compiled
    table(
        "documents",
        "documents a second",
        "memory, MB",
        "completion of held-out documents, nats a word",
    )
    for seen, seconds in stream(
        corpus, model, n_documents, [10**k for k in range(4, 9) if 10**k < n_documents]
    ):
        row(
            f"{seen:,}",
            f"{seen / seconds:.0f}",
            f"{memory():.0f}",
            f"{model.completion_score(held_out):.3f}",
        )
    row("the true topics", "", "", f"{truth.completion_score(held_out):.3f}")


def score(n_documents):
    """What every document, and every image, costs with a fitted model, in turn; medians
    of rounds.
    """
    corpus = Corpus()
    X, images = corpus.batch(10**9, n_documents), np.zeros((20_000, 784))
    model = partial(
        LatentDirichletAllocation.from_topics, corpus.topics, ALPHA, random_state=0, n_jobs=1
    )
    reference = Reference(N_TOPICS, doc_topic_prior=ALPHA).partial_fit(X[:2])
    reference.components_ = model().components_
    reference.exp_dirichlet_component_ = np.exp(psi(reference.components_))
    reference.exp_dirichlet_component_ /= np.exp(psi(reference.components_.sum(axis=1)))[
        :, np.newaxis
    ]
    name, path = large()
    rbm = BernoulliRBM.from_parameters(
        path.components, path.intercept_visible, path.intercept_hidden
    )
    calls = {
        "topic shares, `transform`": partial(model().transform, X),
        "topic shares, scikit-learn's": partial(reference.transform, X),
        "`score_samples`, `LeftToRight(20)`": partial(
            model(partition_estimator=LeftToRight(20)).score_samples, X
        ),
        "`score_samples`, the default": partial(model().score_samples, X),
        f"log f of rows, RBM 784 × 500 ({name})": lambda: rbm._log_f(images)[0],
    }
    difference = np.abs(model().transform(X) - reference.transform(X)).max()
    seconds = interleave(calls, 5)
    table("what", "documents or rows a second", "quartiles")
    for name, used in seconds.items():
        low, middle, high = np.percentile(
            (len(images) if "RBM" in name else n_documents) / used, [25, 50, 75]
        )
        row(name, f"{middle:.0f}", f"{low:.0f} to {high:.0f}")
    shares = seconds["topic shares, scikit-learn's"], seconds["topic shares, `transform`"]
    print(
        f"\nTopic shares: {ratio(*shares)} times scikit-learn's rate; they differ by"
        f" {difference:.0e} at most."
    )
    print(f"Standard deviation over documents: {np.std(model().score_samples(X)):.1f} nats.")


def partitions(n_documents):
    """The same documents in one process, and in partitions on two workers of Dask."""
    from distributed import Client, LocalCluster

    corpus = Corpus()
    parts = [corpus.batch(10**9 + number, n_documents // 8) for number in range(8)]
    topics = LatentDirichletAllocation.from_topics(corpus.topics, ALPHA, random_state=0, n_jobs=1)
    model = topics.set_params(partition_estimator=LeftToRight(20), on_nonconvergence="nan")
    options = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "host": "127.0.0.1",
        "dashboard_address": None,
    }
    whole, scores = sp.vstack(parts), {}

    def one():
        scores["one"] = model.score_samples(whole)

    def dask_partitions():
        shared = client.scatter(model, broadcast=True)
        tasks = client.map(
            LatentDirichletAllocation.score_samples, [shared] * len(parts), parts, pure=False
        )
        scores["dask"] = np.concatenate(client.gather(tasks))

    with LocalCluster(**options) as cluster, Client(cluster) as client:
        seconds = interleave({"one": one, "dask": dask_partitions}, 5, clock=time.perf_counter)
        worker = max(client.run(memory).values())
    np.testing.assert_array_equal(scores["one"], scores["dask"])
    times = f"{np.median(seconds['one']):.1f}", ratio(seconds["dask"], seconds["one"])
    table(
        "documents",
        "one process, s",
        "8 partitions on 2 workers of Dask, ratio",
        "memory, MB",
        "of a worker",
    )
    row(whole.shape[0], *times, f"{memory():.0f}", f"{worker:.0f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["fit", "score", "partitions"])
    parser.add_argument("--documents", type=int)
    parser.add_argument("--batch", type=int, default=BATCH)
    arguments = parser.parse_args()
    if arguments.what == "fit":
        fit(arguments.documents or 1_000_000, arguments.batch)
    elif arguments.what == "score":
        score(arguments.documents or 100)
    else:
        partitions(arguments.documents or 800)
