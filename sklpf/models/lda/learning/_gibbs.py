"""Collapsed Gibbs sampling for latent Dirichlet allocation: independent chains over the topics of
all tokens, of which the best one is kept.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import gammaln
from sklearn.exceptions import ConvergenceWarning

from sklpf._utils.context import report
from sklpf._utils.layout import aligned_zeros, padded
from sklpf._utils.numbers import Array, Integers
from sklpf._utils.parallel import parallel_map
from sklpf._utils.random import Stream, draw_seed, seeded
from sklpf._utils.warnings import warn
from sklpf.models.lda._counts import lengths, whole_counts
from sklpf.models.lda.learning._posterior import Topics, fit_prior, fit_symmetric_prior
from sklpf.models.lda.learning._variational_bayes import Training
from sklpf.training import train


class Tokens(NamedTuple):
    """The tokens of a corpus, document by document."""

    words: NDArray[np.int32]
    indptr: Integers
    n_features: int

    @classmethod
    def of(cls, X: sp.csr_matrix) -> Tokens:
        """Tokens of whole counts (n, n_features)."""
        indptr = np.concatenate([[0], np.cumsum(lengths(X))]).astype(np.int64)
        words = np.repeat(X.indices.astype(np.int32), X.data.astype(np.int64))
        return cls(words, indptr, X.shape[1])


def fit_gibbs(model, X: sp.csr_matrix) -> None:
    """Run the model's chains on X, write the result of the best one to the model, and warn if its
    log p(words, topics) still rises.

    The best is the one with the highest log p(words, topics) given its priors.
    """
    X = whole_counts(X, "topics")
    if X.nnz == 0:
        raise ValueError(
            'X has no whole counts, of which learning_method="gibbs" learns; rescale its counts'
        )
    start = functools.partial(
        Chain,
        Tokens.of(X),
        np.full(model.n_components, model.doc_topic_prior_),
        model.topic_word_prior_,
        n_sweeps=model.max_iter,
        learn_alpha=model.learn_doc_topic_prior,
        learn_eta=model.learn_topic_word_prior,
    )
    keys = [
        seeded(draw_seed(model.random_state_)).of("chain", chain).key
        for chain in range(model.n_init)
    ]
    if model.n_init == 1:
        best = start(keys[0])
        best.run()  # the first draws all tokens given those before them
        train(best, model.max_iter, report=Chain.report)
    else:
        run = functools.partial(_run_chain, start)
        chains = parallel_map(run, keys, n_jobs=model.n_jobs, stage="chain")
        for i, chain in enumerate(chains):
            report(functools.partial(_line, chain, f"chain {i + 1} of {len(chains)}"))
        best = max(chains, key=lambda chain: _quarter(chain.log_joint, 1).mean())

    if model.learn_doc_topic_prior:
        model.doc_topic_prior_ = best.alpha
    model.topic_word_prior_ = best.eta
    model.log_joint_ = np.array(best.log_joint)
    model.n_iter_ = best.step - 1
    components = (best.mean_counts() + best.eta).astype(X.dtype)
    model._training = Training(Topics(components, best.eta))
    _warn_if_unsettled(model.log_joint_, X.sum(dtype=np.float64), model.n_iter_)


def _run_chain(start, key) -> Chain:
    """A chain after all its sweeps."""
    chain = start(key)
    for _ in range(chain.n_sweeps + 1):
        chain.run()
    return chain


def _line(chain: Chain, name: str) -> str:
    """The line that `verbose` prints for a finished chain."""
    return f"{name}: log p(words, topics) = {chain.log_joint[-1]:.4f}"


def _warn_if_unsettled(log_joint: NDArray, n_tokens: float, n_sweeps: int) -> None:
    """Warn if a chain was short, or its last quarter still exceeds the one before by more than its
    own standard deviation.
    """
    settled = 0.01  # nats a token
    fewest_sweeps = 50  # below which nothing says that a chain has settled
    if n_sweeps < fewest_sweeps:
        warn(
            f"Gibbs sampling needs some 100 sweeps to settle: raise max_iter, now {n_sweeps}",
            ConvergenceWarning,
        )
        return
    last = _quarter(log_joint, 1)
    rise = last.mean() - _quarter(log_joint, 2).mean()
    if rise > last.std() and rise / n_tokens > settled:
        warn(
            f"Gibbs sampling has not settled: log p(words, topics) was {rise / n_tokens:.2g} nats a"
            " token higher in the last quarter of the passes than in the one before; raise"
            " max_iter",
            ConvergenceWarning,
        )


def _quarter(log_joint, i: int):
    """The quarter number i from the end, of one value at least."""
    n = max(1, len(log_joint) // 4)
    end = max(1, len(log_joint) - (i - 1) * n)
    return np.asarray(log_joint[max(0, end - n) : end])


class Chain:
    """A chain over the topics of all tokens.

    Parameters
    ----------
    corpus : Tokens
    alpha, eta : ndarray of shape (n_topics,) and float
        Priors to start from.
    key : tuple of int
        Of the chain's random numbers.
    n_sweeps : int
        Sweeps after the first, of which the last fifth is averaged.
    learn_alpha, learn_eta : bool, default=False
        Whether the priors are learned.
    """

    def __init__(self, corpus, alpha, eta, key, n_sweeps, learn_alpha=False, learn_eta=False):
        kept_share = 0.2  # of the sweeps, whose counts are averaged
        self.corpus = corpus
        self.alpha = alpha
        self.eta = eta
        self.key = key
        self.n_sweeps = n_sweeps
        self.learn_alpha = learn_alpha
        self.learn_eta = learn_eta
        self.n_kept = max(1, round(kept_share * n_sweeps))
        self.step = 0
        self.z = np.full(len(corpus.words), -1, np.int32)
        self.by_word = np.zeros((corpus.n_features, padded(len(alpha))), np.int32)  # n_wk
        self.by_topic = np.zeros(len(alpha), np.int64)  # n_k
        self.total = np.zeros(self.by_word.shape)  # of by_word over the last sweeps
        self.n_added = 0
        self.log_joint = list[float]()  # log p(words, topics), in nats

    def run(self) -> None:
        """Make a sweep, of which the first draws all tokens given those before them; every fifth,
        and the last, moves the priors.
        """
        rate = 0.5  # of a step of the priors, since one sample is all that they see
        self.sweep()
        if self._is_recorded(self.step):
            by_document = self.by_document()
            if self.step > 0 and self.learn_alpha:
                self.alpha = fit_prior(self.alpha, self.alpha + by_document, rate)
            if self.step > 0 and self.learn_eta:
                self.eta = fit_symmetric_prior(self.eta, self.by_word, self.by_topic, rate)
            self.log_joint.append(self._log_joint(by_document))
        if self.step > self.n_sweeps - self.n_kept:
            self.total += self.by_word
            self.n_added += 1
        self.step += 1

    def sweep(self) -> None:
        """Draw the topics of all tokens in turn."""
        from sklpf.models.lda.learning._gibbs_kernels import sweep

        words, indptr, _ = self.corpus
        counts = (self.by_word, self.by_topic)
        keys = Stream(self.key, 0, self.step).keys
        work = aligned_zeros(2, len(self.alpha))
        sweep(words, indptr, self.alpha, self.eta, self.z, *counts, keys, work)

    def by_document(self) -> Array:
        """n_dk, (n, K)."""
        shape = (len(self.corpus.indptr) - 1, len(self.alpha))
        documents = np.repeat(np.arange(shape[0]), np.diff(self.corpus.indptr))
        cells = documents * shape[1] + self.z
        return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)

    def mean_counts(self) -> Array:
        """n_wk, (K, V), the mean over the last sweeps; of the last one if the chain was ended
        before.
        """
        total = self.total if self.n_added else self.by_word
        counts = np.ascontiguousarray(total[:, : len(self.alpha)].T, dtype=np.float64)
        return counts / max(1, self.n_added)

    def report(self, iteration: int) -> str:
        """The line that `verbose` prints after a sweep."""
        if not self._is_recorded(self.step - 1):
            return ""
        return f"log p(words, topics): {self.log_joint[-1]:.4f}"

    def _is_recorded(self, step: int) -> bool:
        """True if the joint likelihood is computed after this sweep."""
        every = 5  # sweeps between values of the joint likelihood and updates of the priors
        return step % every == 0 or step == self.n_sweeps

    def _log_joint(self, by_document) -> float:
        """log p(words, topics), in nats (Griffiths & Steyvers 2004, equations 2 and 3)."""
        alpha_sum = self.alpha.sum()
        eta_sum = len(self.by_word) * self.eta
        value = np.sum(gammaln(by_document + self.alpha) - gammaln(self.alpha))
        value += np.sum(gammaln(self.by_word + self.eta) - gammaln(self.eta))
        n_tokens = np.diff(self.corpus.indptr)
        value -= np.sum(gammaln(n_tokens + alpha_sum) - gammaln(alpha_sum))
        value -= np.sum(gammaln(self.by_topic + eta_sum)) - len(self.alpha) * gammaln(eta_sum)
        return float(value)
