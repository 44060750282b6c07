"""Counts of words in documents: their sizes, the nearest whole ones, and their halves."""

from __future__ import annotations

import hashlib

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sklpf._utils.numbers import Array
from sklpf._utils.validation import rows_without
from sklpf._utils.warnings import warn

_LONGEST = 10**7  # of a document: filters take memory for every token, 1.2 GB at 5e5


def lengths(X: sp.csr_matrix) -> Array:
    """Tokens of every document, (n,)."""
    return np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()


def check_lengths(X: sp.csr_matrix) -> None:
    """Raise ValueError if a document has more tokens than can be taken one by one."""
    longest = float(lengths(X).max())
    if longest >= _LONGEST:
        raise ValueError(
            f"X has a document of {longest:.3g} tokens, and likelihoods are of fewer than"
            f" {_LONGEST:g}; rescale its counts"
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
    return _with_counts(X, counts)


def whole_rows(X: sp.csr_matrix) -> NDArray[np.bool_]:
    """Mask of the documents with whole counts, (n,)."""
    return rows_without(X, np.rint(X.data) != X.data)


def check_tokens(X: sp.csr_matrix, n_corpus: float) -> None:
    """Raise ValueError if so many documents like those of X have more tokens than can be
    counted.
    """
    most = 1e18  # that can be counted
    longest = float(lengths(X).max())
    if not longest * n_corpus <= most:
        raise ValueError(
            f"X has documents of {longest:.3g} tokens, and stands for {n_corpus:.3g} documents:"
            f" more than {most:g} tokens can't be counted; rescale X or lower total_samples"
        )


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
    return _with_counts(X, first), _with_counts(X, counts - first)


def _with_counts(X: sp.csr_matrix, counts: NDArray) -> sp.csr_matrix:
    """The same documents with other counts, of which 0 is not stored."""
    X = sp.csr_matrix((counts.astype(X.dtype), X.indices.copy(), X.indptr.copy()), shape=X.shape)
    X.eliminate_zeros()
    return X
