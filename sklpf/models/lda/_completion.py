"""Document completion: how well half of a document's tokens predict the other half."""

from __future__ import annotations

import hashlib

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sklpf._utils.warnings import warn
from sklpf.models.lda._inference import lengths

_MOST_TOKENS = 10**9  # of a document: NumPy's hypergeometric numbers end there


def check_lengths(X: sp.csr_matrix) -> None:
    """Raise ValueError if a document has more tokens than can be taken one by one."""
    longest = float(lengths(X).max())
    if longest >= _MOST_TOKENS:
        raise ValueError(
            f"X has a document of {longest:.3g} tokens, and likelihoods are of fewer than 1e+09;"
            " rescale its counts"
        )


def whole_counts(X: sp.csr_matrix, what: str = "likelihoods") -> sp.csr_matrix:
    """Return the nearest whole counts, with a warning where they differ; `what` says in it what is
    computed.
    """
    counts = rounded(X)
    if counts is not X:
        warn(f"X has fractional counts; {what} are those of the nearest whole counts")
    return counts


def rounded(X: sp.csr_matrix) -> sp.csr_matrix:
    """Return the nearest whole counts: X itself where these are its own."""
    check_lengths(X)
    counts = np.rint(X.data)
    if np.array_equal(counts, X.data):
        return X
    X = sp.csr_matrix((counts, X.indices.copy(), X.indptr.copy()), shape=X.shape)
    X.eliminate_zeros()
    return X


def whole_rows(X: sp.csr_matrix) -> NDArray[np.bool_]:
    """Which documents have whole counts, (n,)."""
    fractional = np.flatnonzero(np.rint(X.data) != X.data)
    rows = np.ones(X.shape[0], dtype=bool)
    rows[np.searchsorted(X.indptr, fractional, side="right") - 1] = False
    return rows


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
    counts, first = X.data.astype(np.int64), np.zeros(len(X.data), dtype=np.int64)
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
