"""Coverage of the mean over documents where rows that are only imprecise are tolerated.

    python tests/benchmarks/tolerated_rows.py [--seeds 200] [--jobs 2]

A topic model whose likelihoods can be enumerated scores documents of its own by few particles, so
that filters of some documents disagree. `partition` is compared with the enumerated mean over the
same documents, `combined` with the mean over 20,000 further ones. Seeds whose score is not trusted
are counted and left out.
"""

from __future__ import annotations

import argparse
import logging
import warnings

import numpy as np
from joblib import Parallel, delayed

from sklpf import Exact, LatentDirichletAllocation, LeftToRight

N_TOPICS, N_WORDS, PRIOR = 3, 40, 0.1


def topic_model(estimator):
    topics = np.random.default_rng(0).dirichlet(np.full(N_WORDS, 0.1), size=N_TOPICS)
    return LatentDirichletAllocation.from_topics(
        topics, doc_topic_prior=PRIOR, partition_estimator=estimator, random_state=0
    )


def documents(model, n, rng):
    """Documents of 5 to 120 words, drawn from the model."""
    topics = model.components_ / model.components_.sum(axis=1, keepdims=True)
    shares = rng.dirichlet(np.full(N_TOPICS, PRIOR), size=n) @ topics
    return rng.multinomial(rng.integers(5, 121, size=n), shares)


def run(seed, n_documents, n_particles):
    """Rows that were tolerated, whether the score is trusted, and what its intervals hold."""
    model = topic_model(LeftToRight(n_particles, n_filters=5, n_sweeps=1, random_state=seed))
    X = documents(model, n_documents, np.random.default_rng(seed))
    exact = topic_model(Exact()).score_samples(X)
    logging.getLogger("sklpf").setLevel(logging.ERROR)  # a line for each score
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = model.score_interval(X)
    tolerated = n_documents - model.partition_estimator_.result_.diagnostics["converged"].sum()
    low, high = found.partition
    return tolerated, found.converged, low <= exact.mean() <= high, found.combined


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()

    exact = topic_model(Exact())
    truth = exact.score(documents(exact, 20_000, np.random.default_rng(10**6)))
    print("| documents | particles | seeds with tolerated rows | rows tolerated (mean) |", end="")
    print(" covers the mean of these documents | covers that of all |")
    for n_documents, n_particles in [(50, 1), (50, 2), (200, 2)]:
        found = Parallel(options.jobs)(
            delayed(run)(seed, n_documents, n_particles) for seed in range(options.seeds)
        )
        kept = [each for each in found if each[1] and each[0] > 0]
        inside = [low <= truth <= high for *_, (low, high) in kept]
        print(
            f"| {n_documents} | {n_particles} | {len(kept)} of {len(found)}"
            f" | {np.mean([each[0] for each in kept]):.1f} | {sum(each[2] for each in kept)}"
            f" | {sum(inside)} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
