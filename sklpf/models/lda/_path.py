"""The tempered path of latent Dirichlet allocation: one target, log p(words), for each document."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, logsumexp, softmax

from sklpf._utils.layout import LANES, padded
from sklpf._utils.numbers import Array, Integers
from sklpf._utils.random import Stream
from sklpf._utils.validation import as_float64, check_indices
from sklpf.models.lda._counts import check_lengths
from sklpf.paths import FilterEstimates, KernelPath, check_ladder, read_only
from sklpf.uncertainty import log_mean_exp, population_seen_from_target

_LARGEST_PRIOR = 1e20
_REMEMBERED = 0.02  # share of a document that guided filters begin with
_STAGES = 12  # steps in which they forget it


class TopicState(NamedTuple):
    """Chains of one document: the topics of its tokens, and the two ends of their log densities in
    nats.
    """

    z: NDArray[np.int32]
    log_base: Array
    gain: Array


class LDAPath(KernelPath):
    """Path from independent tokens to the tokens of one document, which share their topics (Wallach
    et al. 2009, section 3).

    With topics phi, the prior's means m = doc_topic_prior / sum(doc_topic_prior), and z_1, …, z_N
    the topics of the document's tokens, whose shares are integrated out,

        log f_beta(z) = sum_n log phi[z_n, w_n] + (1 - beta) sum_n log m[z_n] + beta log p(z |
        doc_topic_prior),

    where p(z | doc_topic_prior) is a Polya urn. log Z of the target is the log-likelihood log
    p(w_1, …, w_N) of the tokens in any one order. The base's tokens are independent, so that it is
    drawn exactly and its normaliser is known. Tempering the likelihood instead, from draws of the
    urn, takes tens of times as many sweeps: such a draw has few topics, mostly wrong ones, and the
    others must be reached one token at a time.

    There is a log Z for each document: estimators run on ``path.row(t)`` and give arrays of shape
    (n_rows,). An empty document has log Z = 0.

    Parameters
    ----------
    topics : array-like of shape (n_topics, n_words)
        phi, the probability of every word in every topic: positive, rows sum to 1.
    doc_topic_prior : float or array-like of shape (n_topics,)
        Parameter of the Dirichlet distribution of the documents' topic shares, from 1e-20 to 1e20.
    X : {array-like, sparse matrix} of shape (n_documents, n_words)
        How often every word occurs in every document: whole numbers.
    ladder : array-like of shape (n_levels,)
        Inverse temperatures, increasing in [0, 1].

    Raises
    ------
    ValueError
        If shapes don't match, a number isn't finite or in its range, or a document has 1e7 tokens
        or more.

    Notes
    -----
    A sweep draws the topics of all tokens in turn, in the order of their words. Conditional
    probabilities are float32 (relative error 1e-7), log densities float64.

    Enumeration takes assignments with equal counts of the topics together, which leaves C(N + K -
    1, N) states of N tokens and K topics. `Exact` takes documents with at most 2^25, such as 36
    tokens for 8 topics or 4 for 100, and 0.2 to 0.3 microseconds for each (1.4 with 500 tokens and
    3 topics).

    Examples
    --------
    >>> from sklpf import Exact
    >>> from sklpf.models import LDAPath
    >>> topics, X = [[0.9, 0.1], [0.1, 0.9]], [[1, 0], [2, 0]]
    >>> path = LDAPath(topics, doc_topic_prior=[0.5, 0.5], X=X)
    >>> Exact().fit(path).log_partition_.round(4)
    array([-0.6931, -1.1087])
    """

    _kernels = "sklpf.models.lda._path_kernels"
    gibbs_is_reversible = False
    n_moves_per_segment = 1000
    n_enumeration_blocks = 1

    def __init__(
        self,
        topics: ArrayLike,
        doc_topic_prior: ArrayLike,
        X: ArrayLike | sp.spmatrix,
        ladder: ArrayLike = (0.0, 1.0),
    ):
        checked = _check_topics(topics)
        prior = check_prior("doc_topic_prior", doc_topic_prior, len(checked), _LARGEST_PRIOR)
        self.doc_topic_prior = np.broadcast_to(prior, len(checked)).copy()
        self.counts = _check_counts(X, checked.shape[1])
        self.words = np.unique(self.counts.indices).astype(np.int64)
        self.log_topics = np.log(checked.T[self.words], order="C")  # (U, n_topics)
        self.n_rows: int | None = self.counts.shape[0]
        self.ladder = check_ladder(ladder)

    # -- rows
    def row(self, t: int) -> LDAPath:
        """Return the path of document t alone."""
        other = copy.copy(self)
        words, counts = self._words_of(t)
        used = np.searchsorted(self.words, words)
        other.log_topics = self.log_topics[used]
        other.counts = counts
        other.words = words
        other.n_rows = None
        return other

    def row_content(self, t: int) -> bytes:
        """Return the words of document t and how often each occurs, explicit zeros left out."""
        words, counts = self._words_of(t)
        return words.tobytes() + counts.tobytes()

    def row_cost(self, rows: Integers) -> Array:
        """Tokens of these documents, and 10 for what doesn't depend on their number, shape (n,)."""
        return np.asarray(self.n_tokens[rows] + 10, dtype=np.float64)

    @property
    def n_tokens(self) -> Integers:
        """Tokens of every document, shape (n_rows,), or (1,) for a document alone."""
        return np.asarray(
            self.counts.sum() if self.n_rows is None else self.counts.sum(axis=1)
        ).ravel()

    def _words_of(self, t):
        """Words of document t and their counts."""
        row = slice(self.counts.indptr[t], self.counts.indptr[t + 1])
        return self.counts.indices[row].astype(np.int64), self.counts.data[row]

    # -- the kernels' arguments
    def _pack(self):
        from sklpf.models.lda._path_kernels import Document

        n_words, n_topics = self.log_topics.shape
        alpha = self.doc_topic_prior
        drawn = np.arange(self.counts.sum() + 1)
        likelihoods = np.zeros((n_words, padded(n_topics)))
        likelihoods[:, :n_topics] = np.exp(
            self.log_topics - self.log_topics.max(axis=1, keepdims=True, initial=-np.inf)
        )
        mean = alpha / alpha.sum()
        log_urn = np.log((alpha[:, np.newaxis] + drawn) / mean[:, np.newaxis])
        return Document(
            word=read_only(np.repeat(np.arange(n_words), self.counts), np.int32),
            log_base=read_only(self.log_topics + np.log(mean)),
            likelihoods=read_only(likelihoods, np.float32),
            mean=read_only(mean),
            alpha=read_only(alpha),
            log_urn=read_only(np.cumsum(np.c_[np.zeros(len(mean)), log_urn], axis=1)),
            log_denominator=float(np.log(alpha.sum() + drawn[:-1]).sum()),
        )

    @property
    def base_log_partition(self) -> float:  # type: ignore[override]  # derived from the document here
        """Log-likelihood of the document if its tokens were independent, in nats."""
        return float(np.sum(logsumexp(self.packed.log_base, axis=1) * self.counts))

    @property
    def ladder_cost(self) -> float:  # type: ignore[override]  # derived from the document's size here
        """Work of a redraw among all levels in sweeps: measured, 3 ns a level, and 36 ns + 0.12 ns
        a topic a token.
        """
        n_tokens = max(float(self.n_tokens.max()), 1.0)
        return 3.0 * len(self.ladder) / (n_tokens * (36.0 + 0.12 * len(self.doc_topic_prior)))

    # -- states
    def sample_base(self, n: int, stream: Stream) -> TopicState:
        """Return n exact draws from the base: one sweep at beta = 0, where tokens are
        independent.
        """
        z = np.zeros((n, len(self.packed.word)), dtype=np.int32)
        return self._sweep(TopicState(z, np.zeros(n), np.zeros(n)), np.zeros(n), stream)

    # -- particle filters
    def left_to_right(
        self,
        n: int,
        n_particles: int,
        n_sweeps: float,
        stream: Stream,
        guide: Array | None = None,
        n_reverse: int = 0,
    ) -> FilterEstimates:
        """Return log estimates of Z by n particle filters that take the tokens one after the other.

        The guide are the shares of the topics that the particles end with, (n_topics,). Filters
        that are given one begin with its topics in their prior, as if they had seen a fiftieth of
        the document, and forget this in `_STAGES` steps, for which their particles are weighted:
        estimates are unbiased for any guide.

        Sixteen reverse chains go through each of the first `n_reverse` filters, from particles of
        all.
        """
        from sklpf.models.lda._filter_kernels import Plan, left_to_right, right_to_left, work_space

        n_tokens = len(self.packed.word)
        passed = np.floor(n_sweeps * np.log1p(np.arange(n_tokens))).astype(np.int64)
        topics = np.exp(self.log_topics)
        priors, stages = self._priors(guide)
        plan = Plan(
            topics=topics,
            n_sweeps=np.diff(passed, prepend=0),
            stages=stages,
            priors=priors,
            weights=priors.astype(np.float32),
            totals=np.cumsum(priors, axis=1)[:, -1].copy(),
            predictions=priors @ topics.T,
        )
        log_means = np.zeros((n, n_tokens + 2))
        resampled = np.zeros((n, n_tokens + 2), dtype=bool)
        orders = np.empty((n, n_tokens), dtype=np.int32)
        ends = np.empty((n, n_tokens, LANES), dtype=np.int32)
        shares = np.zeros(len(self.doc_topic_prior))
        size = n_tokens, len(shares)
        found = (log_means, resampled, orders, ends, shares)
        work = work_space(*size, n_particles)
        left_to_right(self.packed, plan, n_particles, stream.keys, work, *found)

        log_estimates = log_means[:, -1]
        if n_reverse == 0:
            return FilterEstimates(log_estimates, shares, 0.0, 0)
        reverse = stream.of("reverse")
        chances = np.cumsum(softmax(log_estimates))
        sources = np.searchsorted(chances, reverse.generator().random((n_reverse, LANES)))
        by_word = np.argsort(orders, axis=1, kind="stable")
        ends = np.take_along_axis(ends, by_word[..., np.newaxis], axis=1)
        log_steps = np.zeros((n_reverse, n_tokens + 1, LANES))
        work = work_space(*size, LANES)
        for f in range(n_reverse):
            starts = np.empty(ends.shape[1:], dtype=np.int32)
            starts[by_word[f]] = ends[np.minimum(sources[f], n - 1), :, np.arange(LANES)].T
            keys = replace(reverse, chain=(stream.chain + f) * LANES).keys
            right_to_left(self.packed, plan, orders[f], starts, keys, work, log_steps[f])
        down = log_steps.transpose(0, 2, 1)
        seen = resampled[:n_reverse], log_means[:n_reverse], n_particles
        log_weights = log_estimates[:n_reverse] - log_mean_exp(log_estimates[:n_reverse])
        variance = population_seen_from_target(down, *seen, log_weights)
        return FilterEstimates(log_estimates, shares, variance, n_reverse * LANES)

    @property
    def filters_are_exact(self) -> bool:  # type: ignore[override]
        """True if `left_to_right` gives Z itself: of a document with one topic, or at most one
        token.
        """
        return len(self.doc_topic_prior) == 1 or int(self.n_tokens.max()) < 2

    def _priors(self, guide):
        """Priors (n_stages, K) that lead to the document's, and which of them holds when token i
        comes, (N + 1,).
        """
        fewest_tokens = 0.5  # of a topic that guides
        alpha = self.doc_topic_prior
        n_tokens = len(self.packed.word)
        if guide is None or n_tokens < _STAGES:
            return alpha[np.newaxis], np.zeros(n_tokens + 1, dtype=np.int64)
        likely = np.where(guide * n_tokens < fewest_tokens, 0.0, guide)
        remembered = _REMEMBERED * n_tokens * (1 - np.arange(_STAGES + 1) / _STAGES)
        return (
            alpha + remembered[:, np.newaxis] * likely,
            np.arange(n_tokens + 1) * _STAGES // n_tokens,
        )

    @property
    def n_summaries(self) -> int:
        """Length of a state's summary: the tokens of every topic."""
        return len(self.doc_topic_prior)

    # -- exact enumeration
    @property
    def log2_states(self) -> int:  # type: ignore[override]
        """Binary logarithm, rounded up, of the number of states that are enumerated: the most of
        any document.
        """
        n_topics = len(self.doc_topic_prior)
        n_tokens = self.n_tokens.max()
        log_states = gammaln(n_tokens + n_topics) - gammaln(n_tokens + 1) - gammaln(n_topics)
        return int(np.ceil(log_states / np.log(2) - 1e-9))

    def enumerate_block(self, block: int, level: int) -> Array:
        """Return the log of f at `level` summed over the assignments with equal counts, for all
        possible counts.
        """
        from sklpf.models.lda._path_kernels import log_weights_of_counts

        n_tokens = int(self.n_tokens[0])
        out = np.empty(math.comb(n_tokens + len(self.doc_topic_prior) - 1, n_tokens))
        log_weights_of_counts(self.packed, self.ladder[level], out)
        return out

    def enumerate_rows(self, rows: ArrayLike) -> Array:
        """Return log Z of documents.

        Parameters
        ----------
        rows : array-like of int
            Numbers of documents.

        Returns
        -------
        ndarray of shape (n,)
            In nats.
        """
        last = len(self.ladder) - 1
        return np.array([logsumexp(self.row(t).enumerate_block(0, last)) for t in np.asarray(rows)])


# -- parameters
def _check_topics(topics):
    """Return topics whose rows are probabilities, or raise ValueError."""
    topics = as_float64(topics, "topics")
    if topics.ndim != 2 or 0 in topics.shape:
        raise ValueError(f"topics must have the shape (n_topics, n_words), got {topics.shape}")
    if not np.all((topics > 0) & np.isfinite(topics)):
        raise ValueError(
            "topics must be positive and finite; add a little to every probability and normalise"
            " the rows"
        )
    if np.abs(topics.sum(axis=1) - 1).max() > 1e-5:
        raise ValueError("topics must have rows that sum to 1; divide each by its sum")
    return topics


def check_prior(name: str, prior: ArrayLike, n_topics: int, highest: float) -> Array:
    """Return a copy of a prior, a number or one for every topic, shape () or (n_topics,).

    Raises
    ------
    TypeError
        If it holds anything but numbers.
    ValueError
        If it is of another shape, or not between 1e-20 and `highest`.
    """
    smallest = 1e-20
    values = as_float64(prior, name, copy=True)
    if values.shape not in ((), (n_topics,)):
        raise ValueError(
            f"{name} must be a number or have the shape ({n_topics},), got shape {values.shape}"
        )
    wrong = values[~((values >= smallest) & (values <= highest))]
    if len(wrong):
        raise ValueError(
            f"{name} must lie between {smallest:g} and {highest:g}, got {wrong[0]:g}; clip it"
        )
    return values


def _check_counts(X, n_words):
    """CSR matrix of int64 with sorted words, none twice and no explicit zeros."""
    check_indices(X)
    X = X if sp.issparse(X) else np.asarray(X)
    if X.ndim != 2 or X.shape[1] != n_words or X.shape[0] == 0:
        raise ValueError(
            f"X must have the shape (n_documents, {n_words}) and at least one row, got {X.shape}"
        )
    X = sp.csr_matrix(X, copy=True)
    counts = X.data.astype(np.float64)
    if not np.all((counts >= 0) & np.isfinite(counts) & (counts == np.floor(counts))):
        raise ValueError(
            "X must hold whole counts from 0 on; it holds negative, fractional, infinite or NaN"
            " ones"
        )
    check_lengths(X)
    X = sp.csr_matrix((X.data.astype(np.int64), X.indices, X.indptr), shape=X.shape)
    X.sum_duplicates()
    X.eliminate_zeros()
    return X
