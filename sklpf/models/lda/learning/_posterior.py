"""The variational posterior of latent Dirichlet allocation: its bound, which is the objective, and
its updates.

`Topics` are q(beta), `Documents` q(theta) q(z) of the documents of a batch. `Posterior.infer` lets
the documents settle while the topics stay, `Posterior.update` moves the topics.
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
from scipy.special import gammaln, polygamma, psi

from sklpf._utils.layout import padded
from sklpf._utils.numbers import Array

# of a learned prior, which has no maximum where all documents are alike
_PRIOR_RANGE = 1e-10, 1e10
_WORDS_PER_BLOCK = 1024


class Topics:
    """q(beta): topics that are Dirichlet(lambda_k) with lambda = base + scale * weights.

    Decaying lambda towards the prior only changes the first two, so an update costs what the words
    of its batch cost. The base is the prior, but where that would swallow the smallest of the
    components: then it comes from 0.

    Parameters
    ----------
    components : ndarray of shape (n_topics, n_features)
        lambda.
    prior : float
    """

    def __init__(self, components: NDArray, prior: float):
        largest_prior = 1e3
        self.prior = float(prior)
        self.scale = 1.0
        self.base = self.prior if prior <= largest_prior * components.min() else 0.0
        self.weights = np.ascontiguousarray(
            (components - self.base).T.astype(components.dtype, copy=False)
        )
        self.totals = self.weights.sum(axis=0, dtype=np.float64)
        self._components: NDArray | None = None

    @property
    def sums(self) -> Array:
        """Sums of lambda over words, (n_topics,)."""
        return self.base * len(self.weights) + self.scale * self.totals

    @property
    def components(self) -> NDArray:
        """lambda, (n_topics, n_features), read-only; computed when asked for."""
        if self._components is None:
            components = self.weights.T.copy(order="C")
            components *= components.dtype.type(self.scale)
            components += components.dtype.type(self.base)
            components.flags.writeable = False
            self._components = components
        return self._components

    def exp_expected_log(self) -> NDArray:
        """exp(E log beta), (n_topics, n_features)."""
        lambdas = self.components.astype(np.float64)
        means = psi(lambdas) - psi(lambdas.sum(axis=1, keepdims=True))
        return np.exp(means).astype(self.weights.dtype)

    def decay(self, rate: float) -> None:
        """lambda = (1 - rate) lambda + rate * prior."""
        smallest_scale = 1e-6
        self._components = None
        self.scale *= 1 - rate
        self.base += rate * (self.prior - self.base)
        if self.scale < smallest_scale:
            self.weights *= self.weights.dtype.type(self.scale)
            self.scale = 1.0
            self.totals = self.weights.sum(axis=0, dtype=np.float64)

    def bound(self) -> float:
        """E_q[log p(beta) - log q(beta)], in nats."""
        from sklpf.models.lda.learning._word_kernels import dirichlet_terms

        n_features, n_topics = self.weights.shape
        lambdas = self.base, self.scale, self.weights
        offsets = np.zeros(n_features), psi(self.sums)
        terms = dirichlet_terms(np.full(n_topics, self.prior), *lambdas, *offsets)
        value = n_topics * (gammaln(n_features * self.prior) - n_features * gammaln(self.prior))
        return float(np.sum(terms) - np.sum(gammaln(self.sums)) + value)

    def log_power_sums(self, powers: NDArray) -> Array:
        """log E_q[sum_v beta_kv^s] for every power s, (n_powers, n_topics)."""
        from sklpf.models.lda.learning._word_kernels import power_sums

        sums = np.array(
            [power_sums(self.base, self.scale, self.weights, power) for power in powers]
        )
        return np.log(sums) + gammaln(self.sums) - gammaln(self.sums + powers[:, None])


class Documents(NamedTuple):
    """q(theta) q(z) of the documents of a batch, at inverse temperatures b.

    rows are exp(b E log beta) of words, theta is exp(b E log theta).
    """

    words: NDArray  # (W,) the distinct words of the batch
    local: NDArray  # (nnz,) which of them an entry is
    counts: NDArray  # (nnz,) how often it occurs, above 0
    indptr: NDArray  # (n + 1,) where documents begin
    inverse: NDArray  # (1,) or (n,): b
    own: bool  # whether each document has a b of its own
    rows: NDArray  # (W, padded K); nothing where b differs between documents
    log_rows: NDArray  # (W or 0, padded K) E log beta
    gamma: NDArray  # (n, K)
    theta: NDArray  # (n, padded K), 0 for topics that were dropped
    ratios: NDArray  # (nnz,) b counts / sum_k theta rows
    values: NDArray  # (n,) sum_v n_v log sum_k theta rows
    joints: NDArray  # (n,) U, where it was asked for

    def bound(self, alpha: NDArray) -> NDArray:
        """Evidence lower bound of every document given q(beta), at its own temperature, in nats."""
        from sklpf.models.lda.learning._word_kernels import dirichlet_terms

        total = self.gamma.sum(axis=1)
        offsets = psi(total), np.zeros(len(alpha))
        terms = dirichlet_terms(alpha, 0.0, 1.0, self.gamma, *offsets) - gammaln(total)
        return self.values + terms + gammaln(alpha.sum()) - gammaln(alpha).sum()


class Posterior(NamedTuple):
    """Topics, and what the documents are inferred with."""

    topics: Topics
    alpha: Array  # (n_topics,)
    tolerance: float  # of the mean change of a document's gamma
    max_iter: int
    tasks: Callable = map  # such as `task_map` returns

    def infer(
        self, X: sp.csr_matrix, gamma: NDArray, inverse: Any = 1.0, joint: bool = False
    ) -> Documents:
        """Let q(theta) q(z) of every document settle while q(beta) stays.

        Parameters
        ----------
        X : CSR of shape (n, n_features)
            Counts above 0.
        gamma : ndarray of shape (n, n_topics)
            Initial values; they are not changed.
        inverse : float or ndarray of shape (n,), default=1.0
            b.
        joint : bool, default=False
            Whether U is needed.
        """
        from sklpf.models.lda.learning._document_kernels import infer, scratch_for

        documents_per_block = 32

        n = X.shape[0]
        width = padded(len(self.alpha))
        number = np.zeros(X.shape[1], np.int32)  # of a word among those of the batch
        number[X.indices] = 1
        words = np.flatnonzero(number).astype(np.int32)
        number[words] = np.arange(len(words))
        own = np.ndim(inverse) > 0
        inverse = np.atleast_1d(np.asarray(inverse, dtype=np.float64))
        needs_logs = joint or own or inverse[0] != 1
        documents = Documents(
            words=words,
            local=number[X.indices],
            counts=X.data,
            indptr=X.indptr.astype(np.int64),
            inverse=inverse,
            own=own,
            rows=np.zeros((0 if own else len(words), width), X.dtype),
            log_rows=np.zeros((len(words) if needs_logs else 0, width), X.dtype),
            gamma=np.array(gamma, dtype=np.float64),
            theta=np.empty((n, width), X.dtype),
            ratios=np.empty(X.nnz, X.dtype),
            values=np.empty(n),
            joints=np.zeros(n),
        )
        fill_rows = functools.partial(_fill_rows, self.topics, psi(self.topics.sums), documents)
        list(self.tasks(fill_rows, cut(len(words), _WORDS_PER_BLOCK)))

        options = (self.alpha, joint or own, self.tolerance, self.max_iter)

        def infer_block(block: slice) -> None:
            span = documents, block.start, block.stop
            infer(*span, scratch_for(*span), *options)

        list(self.tasks(infer_block, cut(n, documents_per_block)))
        return documents

    def settle(self, X: sp.csr_matrix) -> Iterator[Documents]:
        """Documents at T = 1, in parts, from gamma = 1."""
        documents_at_once = 4096  # where topics stay
        for rows in cut(X.shape[0], documents_at_once):
            part = X[rows]
            yield self.infer(part, np.ones((part.shape[0], len(self.alpha))))

    def bound(self, X: sp.csr_matrix) -> tuple[float, float]:
        """Perplexity and nats of the evidence lower bound at T = 1."""
        elbo = sum(float(documents.bound(self.alpha).sum()) for documents in self.settle(X))
        elbo += self.topics.bound()
        n_tokens = X.data.sum(dtype=np.float64)
        if n_tokens == 0:  # perplexity is one of tokens
            return np.nan, elbo
        with np.errstate(over="ignore"):
            return float(np.exp(-elbo / n_tokens)), elbo

    def update(self, documents: Documents, rate: float, ratio: float) -> None:
        """lambda = (1 - rate) lambda + rate (prior + ratio * expected counts of the batch)."""
        from sklpf.models.lda.learning._word_kernels import add_local_statistics, add_statistics

        d = documents
        topics = self.topics
        topics.decay(rate)
        factor = rate * ratio / topics.scale
        by_word = sp.csr_matrix(
            (d.ratios, d.local, d.indptr), shape=(len(d.gamma), len(d.words))
        ).tocsc()

        def add(block: slice) -> Array:
            """Add the expected counts of a block of words; returns their sums, (K,)."""
            totals = np.zeros(len(topics.totals))
            columns = by_word.indptr[block.start : block.stop + 1]
            batch = (columns, by_word.indices, by_word.data, d.theta)
            rest = (d.words[block], factor, topics.weights, totals)
            if d.own:
                add_local_statistics(*batch, d.log_rows[block], d.inverse, *rest)
            else:
                add_statistics(*batch, d.rows[block], *rest)
            return totals

        for totals in self.tasks(add, cut(len(d.words), _WORDS_PER_BLOCK)):
            topics.totals += totals


@contextlib.contextmanager
def posterior_of(model) -> Iterator[Posterior]:
    """The posterior of a model, whose `n_jobs` threads live as long as the context.

    joblib's threads look for finished tasks every 10 ms, which is longer than a batch takes.
    """
    topics = model._training.topics
    alpha = np.full(len(topics.totals), model.doc_topic_prior_, dtype=np.float64)
    posterior = Posterior(topics, alpha, model.mean_change_tol, model.max_doc_update_iter)
    n_jobs = joblib.effective_n_jobs(model.n_jobs)
    if n_jobs == 1:
        yield posterior
        return
    with ThreadPoolExecutor(n_jobs) as pool:
        yield posterior._replace(tasks=pool.map)


def cut(n: int, size: int) -> list[slice]:
    """Slices of `size` that cover n; scikit-learn's gen_batches takes 0.1 ms to check its
    arguments.
    """
    return [slice(begin, min(begin + size, n)) for begin in range(0, n, size)]


def _fill_rows(topics: Topics, offsets: NDArray, documents: Documents, block: slice) -> None:
    """Fill in a block of words: E log beta where it is asked for, and exp(b E log beta) unless b
    differs between documents; offsets are digamma(sums).
    """
    from sklpf.models.lda.learning._word_kernels import fill_exp_rows, fill_log_rows

    smallest_offset = -600.0  # digamma of a topic's sum; exponentials reach to 708

    lambdas = topics.weights, documents.words[block], topics.base, topics.scale
    rows = documents.rows[block]
    log_rows = documents.log_rows[block]
    if len(log_rows) == 0 and offsets.min() > smallest_offset:
        fill_exp_rows(*lambdas, np.exp(-offsets), rows)
        return
    if len(log_rows) == 0:  # a topic with hardly any words, whose exp(digamma) is out of range
        log_rows = rows
    fill_log_rows(*lambdas, offsets, documents.inverse[0], log_rows, rows)


# ---- priors that fit expected or sampled counts
def fit_prior(alpha: NDArray, gamma: NDArray, rate: float) -> NDArray:
    """alpha after `rate` of a Newton step towards the one that fits the documents best; at rate 1
    after many.

    The tokens' topics stay and gamma = alpha + counts moves along, so that what rises is the
    likelihood of the expected counts when theta is integrated out. (With gamma fixed instead, as
    Blei et al. 2003 have it, steps are shorter by the share of documents that have a topic.) The
    steps are in log alpha, where the Hessian is diagonal plus rank one.
    """
    newton_steps = 20  # for every update in batch learning
    if len(alpha) == 1:
        return alpha  # all shares are 1
    counts = gamma - alpha
    for _ in range(newton_steps if rate == 1 else 1):
        alpha = np.clip(alpha * np.exp(rate * _log_step(alpha, counts)), *_PRIOR_RANGE)
    return alpha


def _log_step(alpha, counts):
    """Newton step of log alpha, at most a factor of e; positive curvature is left out."""
    from sklpf.models.lda.learning._word_kernels import mean_polygammas

    smallest_curvature = 1e-12
    most_taken = 0.99  # share of the curvature that the common term may take away

    total = alpha.sum()
    first, second = mean_polygammas(alpha, counts)
    sums = counts.sum(axis=1, keepdims=True)
    first_sum, second_sum = mean_polygammas(np.array([total]), sums)
    slope = alpha * (first - psi(alpha) - first_sum + psi(total))
    curvature = alpha**2 * (second - polygamma(1, alpha))
    diagonal = curvature + np.minimum(slope, 0) - smallest_curvature * alpha
    common = polygamma(1, total) - second_sum[0]

    # The Hessian is diagonal plus common alpha alpha', which Sherman and Morrison invert. Far from
    # the maximum, and of short documents, the common term may outweigh the diagonal: less of it
    # leaves a matrix whose step goes uphill.
    with np.errstate(divide="ignore", over="ignore"):  # common is 0 where no document has words
        width = -np.sum(alpha**2 / diagonal)
        room = max(1 / common, width / most_taken) - width
        shared = np.sum(alpha * slope / diagonal) / room
    return np.clip(-(slope - shared * alpha) / diagonal, -1.0, 1.0)


def fit_symmetric_prior(eta: float, counts, totals, rate: float) -> float:
    """eta after `rate` (in log eta) of a step of Minka's fixed point (2000, equation 55, for equal
    parameters).

    Parameters
    ----------
    eta : float
        Concentration of the symmetric Dirichlet prior over V words, whose multinomial draws are
        `counts`.
    counts : ndarray of shape (V, K or more)
        Further columns are 0.
    totals : ndarray of shape (K,)
        Sums over words.
    rate : float
    """
    from sklpf.models.lda.learning._word_kernels import mean_polygammas

    n_features = len(counts)
    mean = mean_polygammas(np.full(counts.shape[1], eta), counts)[0]
    slope = np.sum(mean - psi(eta)) / np.sum(psi(totals + n_features * eta) - psi(n_features * eta))
    return float(np.clip(eta * slope**rate, *_PRIOR_RANGE))
