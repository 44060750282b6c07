"""Variational inference for latent Dirichlet allocation: the documents of a batch given the topics,
the bound, and the update of the topics.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import joblib
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import gammaln, psi

from sklpf._utils.layout import padded
from sklpf.models.lda.learning._topics import Topics

_DOCUMENTS_AT_ONCE = 4096  # where topics stay
_DOCUMENTS_PER_BLOCK = 32
_WORDS_PER_BLOCK = 1024
_SMALLEST_OFFSET = -600.0  # digamma of a topic's sum; exponentials reach to 708


class Settings(NamedTuple):
    """How the documents' topics are inferred."""

    tolerance: float  # of the mean change of gamma
    max_iter: int


class Documents(NamedTuple):
    """Posterior of the documents of a batch, at inverse temperatures b."""

    words: NDArray  # (W,) the distinct words of the batch
    local: NDArray  # (nnz,) which of them an entry is
    indptr: NDArray
    inverse: NDArray  # (1,) or (n,): b
    own: bool  # whether each document has a b of its own
    rows: NDArray  # (W, padded K) exp(b E log beta); nothing where b differs between documents
    log_rows: NDArray  # (W or 0, padded K) E log beta
    gamma: NDArray  # (n, K)
    theta: NDArray  # (n, padded K) exp(b E log theta)
    ratios: NDArray  # (nnz,) b counts / sum_k theta rows
    values: NDArray  # (n,) sum_v n_v log sum_k theta rows
    joints: NDArray  # (n,) U, where it was asked for

    def bound(self, alpha: NDArray) -> NDArray[np.float64]:
        """Evidence lower bound of every document given q(beta), at its own temperature, in nats."""
        from sklpf.models.lda.learning._word_kernels import document_terms

        terms = self.values + document_terms(alpha, self.gamma)
        return terms + gammaln(alpha.sum()) - gammaln(alpha).sum()


@contextlib.contextmanager
def task_map(n_jobs: int | None) -> Iterator[Callable]:
    """A map over tasks in `n_jobs` threads that live as long as the context.

    joblib's threads look for finished tasks every 10 ms, which is longer than a batch takes.
    """
    n_jobs = joblib.effective_n_jobs(n_jobs)
    if n_jobs == 1:
        yield lambda function, items: [function(item) for item in items]
        return
    with ThreadPoolExecutor(n_jobs) as pool:
        yield lambda function, items: list(pool.map(function, items))


def infer_documents(
    topics: Topics,
    X: sp.csr_matrix,
    alpha,
    gamma,
    settings: Settings,
    tasks,
    inverse=1.0,
    joint=False,
) -> Documents:
    """Let q(theta) q(z) of every document settle while q(beta) stays.

    Parameters
    ----------
    topics : Topics
    X : CSR of shape (n, n_features)
        Counts above 0.
    alpha : ndarray of shape (n_topics,)
    gamma : ndarray of shape (n, n_topics)
        Initial values; they are not changed.
    settings : Settings
    tasks : callable
        The map that `task_map` returned.
    inverse : float or ndarray of shape (n,), default=1.0
        b.
    joint : bool, default=False
        Whether U is needed.
    """
    from sklpf.models.lda.learning._word_kernels import list_words

    n = X.shape[0]
    dtype = X.dtype
    width = padded(len(alpha))
    words, local = list_words(X.indices, X.shape[1])
    own = np.ndim(inverse) > 0
    inverse = np.atleast_1d(np.asarray(inverse, dtype=np.float64))
    needs_logs = joint or own or inverse[0] != 1
    documents = Documents(
        words=words,
        local=local,
        indptr=X.indptr.astype(np.int64),
        inverse=inverse,
        own=own,
        rows=np.zeros((0 if own else len(words), width), dtype),
        log_rows=np.zeros((len(words) if needs_logs else 0, width), dtype),
        gamma=np.array(gamma, dtype=np.float64),
        theta=np.empty((n, width), dtype),
        ratios=np.empty(len(local), dtype),
        values=np.empty(n),
        joints=np.zeros(n),
    )
    fill = functools.partial(_fill_rows, topics, documents)
    tasks(fill, cut(len(words), _WORDS_PER_BLOCK))
    infer = functools.partial(_infer_block, documents, X.data, alpha, settings, joint or own)
    tasks(infer, cut(n, _DOCUMENTS_PER_BLOCK))
    return documents


def settle(
    topics: Topics, X: sp.csr_matrix, alpha, settings: Settings, tasks
) -> Iterator[Documents]:
    """Documents at T = 1, in parts, from gamma = 1."""
    for rows in cut(X.shape[0], _DOCUMENTS_AT_ONCE):
        part = take_documents(X, rows)
        gamma = np.ones((part.shape[0], len(alpha)))
        yield infer_documents(topics, part, alpha, gamma, settings, tasks)


def corpus_bound(
    topics: Topics, X: sp.csr_matrix, alpha, settings: Settings, tasks
) -> tuple[float, float]:
    """Perplexity and nats of the evidence lower bound at T = 1."""
    parts = settle(topics, X, alpha, settings, tasks)
    elbo = sum(float(documents.bound(alpha).sum()) for documents in parts)
    elbo += topics.bound()
    n_tokens = X.data.sum(dtype=np.float64)
    if n_tokens == 0:  # perplexity is one of tokens
        return np.nan, elbo
    with np.errstate(over="ignore"):
        return float(np.exp(-elbo / n_tokens)), elbo


def update_topics(topics: Topics, documents: Documents, rate: float, ratio: float, tasks) -> None:
    """lambda = (1 - rate) lambda + rate (prior + ratio * expected counts of the batch)."""
    topics.decay(rate)
    shape = len(documents.gamma), len(documents.words)
    by_word = sp.csr_matrix(
        (documents.ratios, documents.local, documents.indptr), shape=shape
    ).tocsc()
    add = functools.partial(_add_block, topics, documents, by_word, rate * ratio / topics.scale)
    for totals in tasks(add, cut(len(documents.words), _WORDS_PER_BLOCK)):
        topics.totals += totals


def take_documents(X: sp.csr_matrix, rows: slice) -> Any:
    """Neighbouring documents, without a copy."""
    indptr = X.indptr[rows.start : rows.stop + 1]
    span = slice(indptr[0], indptr[-1])
    return sp.csr_matrix(
        (X.data[span], X.indices[span], indptr - indptr[0]),
        shape=(len(indptr) - 1, X.shape[1]),
        copy=False,
    )


def cut(n: int, size: int) -> list[slice]:
    """Slices of `size` that cover n; scikit-learn's gen_batches takes 0.1 ms to check its
    arguments.
    """
    return [slice(begin, min(begin + size, n)) for begin in range(0, n, size)]


def _fill_rows(topics, documents, block):
    """Fill in a block of words: exp(b E log beta), and E log beta where it is asked for."""
    from sklpf.models.lda.learning._word_kernels import fill_exp_rows, fill_log_rows, raise_rows

    offsets = psi(topics.sums)
    lambdas = topics.weights, documents.words[block], topics.base, topics.scale
    rows = documents.rows[block]
    log_rows = documents.log_rows[block]
    if len(log_rows):
        fill_log_rows(*lambdas, offsets, log_rows)
    if len(rows) == 0:
        return
    if len(log_rows):
        raise_rows(log_rows, documents.inverse[0], len(offsets), rows)
    elif offsets.min() > _SMALLEST_OFFSET:
        fill_exp_rows(*lambdas, np.exp(-offsets), rows)
    else:  # a topic with hardly any words, whose exp(digamma) is out of range
        fill_log_rows(*lambdas, offsets, rows)
        raise_rows(rows, 1.0, len(offsets), rows)


def _infer_block(documents, counts, alpha, settings, joint, block):
    """Let a block of documents settle."""
    from sklpf.models.lda.learning._document_kernels import infer

    d = documents
    begin = d.indptr[block.start]
    end = d.indptr[block.stop]
    infer(
        d.local[begin:end],
        counts[begin:end],
        d.indptr[block.start : block.stop + 1] - begin,
        d.rows,
        d.log_rows if joint else d.log_rows[:0],
        d.inverse[block] if d.own else d.inverse,
        d.own,
        alpha,
        d.gamma[block],
        d.theta[block],
        d.ratios[begin:end],
        d.values[block],
        d.joints[block],
        settings.tolerance,
        settings.max_iter,
    )


def _add_block(topics, documents, by_word, factor, block):
    """Add the expected counts of a block of words; returns their sums, (K,)."""
    from sklpf.models.lda.learning._word_kernels import add_local_statistics, add_statistics

    d = documents
    totals = np.zeros(topics.weights.shape[1])
    columns = by_word.indptr[block.start : block.stop + 1]
    batch = (columns, by_word.indices, by_word.data, d.theta)
    rest = (d.words[block], factor, topics.weights, totals)
    if d.own:
        add_local_statistics(*batch, d.log_rows[block], d.inverse, *rest)
    else:
        add_statistics(*batch, d.rows[block], *rest)
    return totals
