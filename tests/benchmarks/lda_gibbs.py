"""Collapsed Gibbs sampling of LatentDirichletAllocation beside tomotopy; prints Markdown.

    python tests/benchmarks/lda_gibbs.py {token,fit} --text ap --topics 20 --sweeps 50,200 --ours
    40,155 --seeds 3

Processor time of one thread, BLAS on one thread. Needs the reference texts; tomotopy is left out
where it is not installed. `--ours` are further numbers of sweeps, of our sampler alone. Held out is
the log-likelihood of test documents by our own `LeftToRight` in nats a token, the same code for
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
from sklpf.models.lda.learning._gibbs import Chain, Tokens

N_SCORED = 100  # test documents
FEW = LeftToRight(20, 4, 4, random_state=0)
PRIOR = 0.1  # alpha and eta to begin with


def scored(components, alpha, test):
    """Held-out nats a token."""
    model = LatentDirichletAllocation(len(components), max_iter=0, partition_estimator=FEW).fit(
        test
    )
    model.components_, model.doc_topic_prior_ = components, alpha
    return FEW.fit(model.path(test)).log_partition_.sum() / test.sum()


def fit_ours(X, n_topics, seed, **options):
    model = LatentDirichletAllocation(
        n_topics,
        doc_topic_prior=PRIOR,
        topic_word_prior=PRIOR,
        random_state=seed,
        n_jobs=1,
        **options,
    )
    began = time.process_time()
    model.fit(X)
    return time.process_time() - began, model.components_, model.doc_topic_prior_


def fit(name, n_topics, sweeps, ours, n_seeds):
    """Every fit with every seed, in turn: medians of times, and means of held-out values with their
    standard errors.
    """
    print(
        f"\n## {name}, {n_topics} topics, alpha = eta = {PRIOR} to begin with, {N_SCORED} test"
        " documents\n"
    )
    train, test = texts(name)
    test = test[np.random.default_rng(0).permutation(test.shape[0])[:N_SCORED]]
    gibbs = {"learning_method": "gibbs", "learn_doc_topic_prior": True}
    kinds = {"Gibbs": lambda n, seed: fit_ours(train, n_topics, seed, max_iter=n, **gibbs)}
    if importlib.util.find_spec("tomotopy"):
        kinds["tomotopy"] = lambda n, seed: fit_tomotopy(train, n_topics, n, True, PRIOR, seed + 1)
    kinds["Gibbs"](2, 0)  # compiles
    found = {(kind, n): [] for n in sweeps for kind in kinds} | {("Gibbs", n): [] for n in ours}
    for seed in range(n_seeds):
        for kind, n in found:
            found[kind, n].append(kinds[kind](n, seed))
    table(
        "", "sweeps", "CPU seconds", "ns a token and sweep", "held out, nats a token", "each seed"
    )
    for (kind, n), runs in found.items():
        seconds = np.median([run[0] for run in runs])
        values = np.array([scored(*run[1:], test) for run in runs])
        error = np.std(values, ddof=1) / np.sqrt(n_seeds)
        row(
            kind,
            n,
            f"{seconds:.2f}",
            f"{1e9 * seconds / n / train.sum():.0f}",
            f"{values.mean():.4f} ± {error:.4f}",
            ", ".join(f"{run[0]:.2f} s {value:.4f}" for run, value in zip(runs, values)),
        )


def token(name, *_):
    print(f"\n## A sweep, {name}, after 20 sweeps: medians of 7\n")
    table("K", "ns a token")
    corpus = Tokens.of(texts(name)[0])
    for n_topics in (20, 100, 200, 500):
        chain, seconds = Chain(corpus, np.full(n_topics, 0.1), 0.1, (1, 2), 27), []
        for chain.step in range(27):
            began = time.process_time()
            chain.sweep()
            seconds.append(time.process_time() - began)
        row(n_topics, f"{1e9 * np.median(seconds[20:]) / len(corpus.words):.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["token", "fit"])
    parser.add_argument("--text", default="ap")
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--sweeps", default="50,200")
    parser.add_argument("--ours", default="")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    with threadpool_limits(1):
        sweeps, ours = (
            [int(n) for n in text.split(",") if n] for text in (options.sweeps, options.ours)
        )
        {"token": token, "fit": fit}[options.what](
            options.text, options.topics, sweeps, ours, options.seeds
        )
