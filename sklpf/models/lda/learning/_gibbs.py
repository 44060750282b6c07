"""Collapsed Gibbs sampling for latent Dirichlet allocation: independent chains over the topics of
all tokens.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import gammaln
from sklearn.exceptions import ConvergenceWarning

from sklpf._utils.layout import padded
from sklpf._utils.parallel import parallel_map
from sklpf._utils.progress import said
from sklpf._utils.random import Stream, draw_seed, stream_key
from sklpf._utils.warnings import warn
from sklpf.models.lda._counts import whole_counts
from sklpf.models.lda.learning._priors import fit_prior, fit_symmetric_prior
from sklpf.models.lda.learning._topics import Topics
from sklpf.models.lda.learning._variational_bayes import Training
from sklpf.training import train

_EVERY = 5  # sweeps between values of the joint likelihood and updates of the priors
_RATE = 0.5  # of a step of the priors, since one sample is all that they see
_KEPT = 0.2  # of the sweeps, whose counts are averaged
_SETTLED = 0.01  # nats a token
_FEWEST = 50  # sweeps, below which nothing says that a chain has settled


class Tokens(NamedTuple):
    """The tokens of a corpus, document by document."""

    words: NDArray[np.int32]
    indptr: NDArray[np.int64]
    n_features: int

    @classmethod
    def of(cls, X: sp.csr_matrix) -> Tokens:
        """Tokens of whole counts (n, n_features)."""
        n_tokens = np.asarray(X.sum(axis=1)).ravel()
        indptr = np.concatenate([[0], np.cumsum(n_tokens)]).astype(np.int64)
        words = np.repeat(X.indices.astype(np.int32), X.data.astype(np.int64))
        return cls(words, indptr, X.shape[1])


class Sampling(NamedTuple):
    """How a chain runs."""

    n_sweeps: int
    learn_alpha: bool
    learn_eta: bool


class Chain(NamedTuple):
    """Result of a chain."""

    counts: NDArray[np.float64]  # (K, V) n_wk, the mean over its last sweeps
    alpha: NDArray[np.float64]  # (K,)
    eta: float
    log_joint: NDArray[np.float64]  # (n_values,) log p(words, topics), in nats
    n_sweeps: int

    @property
    def level(self) -> float:
        """log p(words, topics), the mean over the last quarter of its values."""
        return float(self._quarter(1).mean())

    @property
    def rise(self) -> float:
        """By how much that exceeds the mean of the quarter before; 0 if by less than the values'
        standard deviation.
        """
        rise = self.level - float(self._quarter(2).mean())
        return rise if rise > self._quarter(1).std() else 0.0

    def _quarter(self, i: int) -> NDArray[np.float64]:
        """The quarter number i from the end, of one value at least."""
        n = max(1, len(self.log_joint) // 4)
        end = max(1, len(self.log_joint) - (i - 1) * n)
        return self.log_joint[max(0, end - n) : end]


def sample_topics(model, X: sp.csr_matrix) -> None:
    """Run the model's chains on X, write the result of the best one to the model, and warn if its
    log p(words, topics) still rises.

    The best is the one with the highest log p(words, topics) given its priors.
    """
    X = whole_counts(X, "topics")
    if X.nnz == 0:
        raise ValueError(
            'X has no whole counts, of which learning_method="gibbs" learns; rescale its counts'
        )
    alpha = np.full(model.n_components, model.doc_topic_prior_)
    sampling = Sampling(model.max_iter, model.learn_doc_topic_prior, model.learn_topic_word_prior)
    run = functools.partial(run_chain, Tokens.of(X), alpha, model.topic_word_prior_, sampling)
    keys = [stream_key(draw_seed(model.random_state_), chain) for chain in range(model.n_init)]
    if model.n_init == 1:
        chains = [run(keys[0], report=True)]
    else:
        chains = parallel_map(run, keys, n_jobs=model.n_jobs, stage="chain")
        for i, chain in enumerate(chains):
            said(functools.partial(_line, chain, f"chain {i + 1} of {len(chains)}"))
    best = max(chains, key=lambda chain: chain.level)
    _store(best, sampling, X.dtype, model)
    _warn_if_unsettled(best.rise / X.sum(dtype=np.float64), best.n_sweeps)


def _line(chain: Chain, name: str) -> str:
    """The line that `verbose` prints for a finished chain."""
    return f"{name}: log p(words, topics) = {chain.log_joint[-1]:.4f}"


def _warn_if_unsettled(rise: float, n_sweeps: int) -> None:
    """`rise` is in nats a token."""
    if n_sweeps < _FEWEST:
        warn(
            f"Gibbs sampling needs some 100 sweeps to settle: raise max_iter, now {n_sweeps}",
            ConvergenceWarning,
        )
    elif rise > _SETTLED:
        warn(
            f"Gibbs sampling has not settled: log p(words, topics) was {rise:.2g} nats a token"
            " higher in the last quarter of the passes than in the one before; raise max_iter",
            ConvergenceWarning,
        )


def _store(chain: Chain, sampling: Sampling, dtype, model) -> None:
    """Write what a chain has found to the model."""
    if sampling.learn_alpha:
        model.doc_topic_prior_ = chain.alpha
    model.topic_word_prior_ = chain.eta
    model.log_joint_ = chain.log_joint
    model.n_iter_ = chain.n_sweeps
    model._training = Training(Topics((chain.counts + chain.eta).astype(dtype), chain.eta))


def run_chain(corpus: Tokens, alpha, eta, sampling: Sampling, key, report: bool = False) -> Chain:
    """Run a chain; with `report` its sweeps, but for the first, are the passes of the current
    fit.
    """
    sweeps = Sweeps(State(corpus, alpha, eta, key), sampling)
    sweeps.run()  # the first draws all tokens given those before them
    if report:
        train(sweeps, sampling.n_sweeps, report=Sweeps.report)
    else:
        for _ in range(sampling.n_sweeps):
            sweeps.run()
    return sweeps.chain()


class Sweeps:
    """A running chain: the counts summed over its last sweeps, and its values of log p(words,
    topics).
    """

    def __init__(self, state: State, sampling: Sampling):
        self.state = state
        self.sampling = sampling
        self.step = 0
        self.n_kept = max(1, round(_KEPT * sampling.n_sweeps))
        self.total = np.zeros(state.by_word.shape)
        self.n_added = 0
        self.log_joint = list[float]()

    def run(self) -> None:
        """Make a sweep; every fifth, and the last, moves the priors."""
        state = self.state
        sampling = self.sampling
        step = self.step
        state.sweep(step)
        if self._is_recorded(step):
            by_document = state.by_document()
            if step > 0 and sampling.learn_alpha:
                state.alpha = fit_prior(state.alpha, state.alpha + by_document, _RATE)
            if step > 0 and sampling.learn_eta:
                state.eta = fit_symmetric_prior(state.eta, state.by_word, state.by_topic, _RATE)
            self.log_joint.append(state.log_joint(by_document))
        if step > sampling.n_sweeps - self.n_kept:
            self.total += state.by_word
            self.n_added += 1
        self.step += 1

    def _is_recorded(self, step: int) -> bool:
        """Whether the joint likelihood is computed after this sweep."""
        return step % _EVERY == 0 or step == self.sampling.n_sweeps

    def report(self, iteration: int) -> str:
        """The line that `verbose` prints after a sweep."""
        last = self.step - 1
        return f"log p(words, topics): {self.log_joint[-1]:.4f}" if self._is_recorded(last) else ""

    def chain(self) -> Chain:
        """The chain's result; if it was ended before counts were summed, those of its last
        sweep.
        """
        state = self.state
        total = self.total if self.n_added else state.by_word
        counts = np.ascontiguousarray(total[:, : len(state.alpha)].T, dtype=np.float64)
        counts = counts / max(1, self.n_added)
        return Chain(counts, state.alpha, state.eta, np.array(self.log_joint), self.step - 1)


class State:
    """The topics of all tokens, and how many tokens of every word and altogether each has."""

    def __init__(self, corpus: Tokens, alpha, eta, key):
        self.corpus = corpus
        self.alpha = alpha
        self.eta = eta
        self.key = key
        self.z = np.full(len(corpus.words), -1, np.int32)
        self.by_word = np.zeros((corpus.n_features, padded(len(alpha))), np.int32)
        self.by_topic = np.zeros(len(alpha), np.int64)

    def sweep(self, step: int) -> None:
        """Draw the topics of all tokens in turn."""
        from sklpf.models.lda.learning._gibbs_kernels import sweep

        words, indptr, _ = self.corpus
        counts = (self.by_word, self.by_topic)
        keys = Stream(self.key, 0, step).keys
        sweep(words, indptr, self.alpha, self.eta, self.z, *counts, keys)

    def by_document(self) -> NDArray[np.float64]:
        """n_dk, (n, K)."""
        from sklpf.models.lda.learning._gibbs_kernels import count_by_document

        counts = np.empty((len(self.corpus.indptr) - 1, len(self.alpha)))
        count_by_document(self.corpus.indptr, self.z, counts)
        return counts

    def log_joint(self, by_document) -> float:
        """log p(words, topics), in nats (Griffiths & Steyvers 2004, equations 2 and 3)."""
        from sklpf.models.lda.learning._gibbs_kernels import log_urns

        alpha_sum = self.alpha.sum()
        eta_sum = len(self.by_word) * self.eta
        etas = np.full(self.by_word.shape[1], self.eta)
        value = log_urns(by_document, self.alpha) + log_urns(self.by_word, etas)
        n_tokens = np.diff(self.corpus.indptr)
        value -= np.sum(gammaln(n_tokens + alpha_sum) - gammaln(alpha_sum))
        value -= np.sum(gammaln(self.by_topic + eta_sum)) - len(self.alpha) * gammaln(eta_sum)
        return float(value)
