"""Document completion: how well half of a document's tokens predict the other half."""

from __future__ import annotations

import hashlib

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


def completion_log_likelihood(
    X: sp.csr_matrix, infer, topics
) -> tuple[NDArray[np.float64], NDArray]:
    """Log predictive probability of the second half of every document, and its number of tokens,
    both (n,).

    Parameters
    ----------
    X : CSR of shape (n, n_features)
        Whole counts.
    infer : callable
        Returns gamma (n, n_topics) for the first halves.
    topics : Topics
    """
    first, second = split_tokens(X)
    shares = infer(first).astype(np.float64)
    shares /= shares.sum(axis=1, keepdims=True)
    shares /= topics.sums  # of E beta = lambda / sums
    values = np.zeros(X.shape[0])
    for d in range(X.shape[0]):
        row = slice(second.indptr[d], second.indptr[d + 1])
        words = topics.base + topics.scale * topics.weights[second.indices[row]].astype(np.float64)
        values[d] = second.data[row] @ np.log(np.sum(words * shares[d], axis=1))
    return values, np.asarray(second.sum(axis=1)).ravel()


def split_tokens(X: sp.csr_matrix) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Split the tokens of every document at random, the first half rounded down; keyed by the
    document's content.
    """
    counts = X.data.astype(np.int64)
    first = np.zeros(len(X.data), dtype=np.int64)
    for begin, end in zip(X.indptr[:-1], X.indptr[1:]):
        content = X.indices[begin:end].astype(np.int64).tobytes() + counts[begin:end].tobytes()
        rng = np.random.default_rng(
            int.from_bytes(hashlib.blake2b(content, digest_size=16).digest(), "little")
        )
        n = int(counts[begin:end].sum())
        first[begin:end] = rng.multivariate_hypergeometric(
            counts[begin:end], n // 2, method="marginals"
        )
    halves = []
    for part in (first, counts - first):
        half = sp.csr_matrix(
            (part.astype(X.dtype), X.indices.copy(), X.indptr.copy()), shape=X.shape
        )
        half.eliminate_zeros()
        halves.append(half)
    return halves[0], halves[1]
