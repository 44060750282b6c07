"""How latent Dirichlet allocation is trained: passes, updates of the topics, temperatures."""

from __future__ import annotations

import copy

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from sklpf.models.lda._inference import (
    Documents,
    Settings,
    Topics,
    cut,
    fit_prior,
    infer_documents,
    take_documents,
    task_map,
    update_topics,
)
from sklpf.models.lda._tempering import Corpus, DocumentTempering, RunningMean, corpus_log_partition
from sklpf.variational import Annealed, GlobalTempering, Tempering, temperature_ladder, temperature_schedule

_LARGEST_SEED = 2**31 - 1
_DOCUMENTS_AT_ONCE = 4096  # where topics stay
_STARTING_SHAPE = 100.0  # of the gamma distribution of starting values, with mean 1
_PRIOR_RANGE = 1e-20, 1e10
_MOST_TOKENS = 1e18
_HIGHEST = {"annealed": 1.5, "global": 2.0, "local": 10.0}  # what did best on news and newsgroup posts


def check_priors(doc_topic_prior: float, topic_word_prior: float) -> None:
    """Raise ValueError where a prior is so small or large that its digamma function or its sums lose all digits."""
    low, high = _PRIOR_RANGE
    for name, prior in (("doc_topic_prior", doc_topic_prior), ("topic_word_prior", topic_word_prior)):
        if not low <= prior <= high:
            raise ValueError(f"{name} must lie between {low:g} and {high:g}, got {prior:g}; clip it")


def check_tokens(X: sp.csr_matrix, n_corpus: float = 1.0) -> None:
    """Raise ValueError if so many documents like those of X have more tokens than can be counted."""
    longest = float(_lengths(X).max())
    if not longest * n_corpus <= _MOST_TOKENS:
        raise ValueError(
            f"X has documents of {longest:.3g} tokens, and stands for {n_corpus:.3g} documents: more than "
            f"{_MOST_TOKENS:g} tokens can't be counted; rescale X or lower total_samples"
        )


class LDAFitMixin(BaseEstimator):
    """fit, partial_fit and the inference of documents, given validated counts."""

    _topics: Topics
    _tempering: Tempering | None  # until T = 1

    def _begin(self, X, len_corpus: float, n_passes: float = np.inf) -> None:
        """Forget what was learned, draw topics, and set the temperatures for a corpus of so many documents."""
        self.random_state_ = check_random_state(self.random_state)
        self._partition_seed = int(copy.deepcopy(self.random_state_).randint(_LARGEST_SEED))
        self.n_batch_iter_, self.n_iter_ = 1, 0
        self.doc_topic_prior_ = 1 / self.n_components if self.doc_topic_prior is None else self.doc_topic_prior
        self.topic_word_prior_ = 1 / self.n_components if self.topic_word_prior is None else self.topic_word_prior
        check_priors(self.doc_topic_prior_, self.topic_word_prior_)
        if self.learn_doc_topic_prior:
            self.doc_topic_prior_ = np.full(self.n_components, float(self.doc_topic_prior_))
        shape = self.n_components, X.shape[1]
        components = self.random_state_.gamma(_STARTING_SHAPE, 1 / _STARTING_SHAPE, shape).astype(X.dtype, copy=False)
        self._topics = Topics(components, self.topic_word_prior_)
        self.temperatures_ = np.empty(0)
        self._tempering, self._tempered_left = None, 0
        if self.tempering is not None:
            self._set_tempering(X, len_corpus, n_passes)
        for name in ("bound_", "elbo_"):
            if hasattr(self, name):
                delattr(self, name)

    def _alpha(self) -> NDArray[np.float64]:
        return np.broadcast_to(np.asarray(self.doc_topic_prior_, dtype=np.float64), self._n_features_out).copy()

    # -- passes ------------------------------------------------------------------------------------
    def _fit(self, X) -> None:
        last, temperatures = np.inf, []
        online = self.learning_method == "online"
        with task_map(self.n_jobs) as tasks:
            for i in range(self.max_iter):
                documents = X[self.random_state_.permutation(X.shape[0])] if online and self.shuffle else X
                for rows in cut(X.shape[0], self.batch_size if online else X.shape[0]):
                    batch = take_documents(documents, rows)
                    temperatures.append(self._update(batch, X.shape[0], tasks, batch_learning=not online))
                evaluate = self.evaluate_every > 0 and (i + 1) % self.evaluate_every == 0
                perplexity = self._perplexity_of_bound(X, tasks)[0] if evaluate else np.nan
                self._report(i, perplexity)
                if self._tempering is None and abs(last - perplexity) < self.perp_tol:
                    break
                last = perplexity if evaluate else last
                self.n_iter_ += 1
            self.temperatures_ = np.array(temperatures)
            self.bound_, self.elbo_ = self._perplexity_of_bound(X, tasks)

    def _partial_fit(self, X) -> None:
        temperatures = []
        with task_map(self.n_jobs) as tasks:
            for rows in cut(X.shape[0], self.batch_size):
                temperatures.append(self._update(take_documents(X, rows), self.total_samples, tasks))
        self.temperatures_ = np.concatenate([self.temperatures_, temperatures])

    def _report(self, i, perplexity) -> None:
        if self.verbose:
            text = "" if np.isnan(perplexity) else f", perplexity: {perplexity:.4f}"
            print(f"iteration: {i + 1} of max_iter: {self.max_iter}{text}")

    # -- one update --------------------------------------------------------------------------------
    def _update(self, X, len_corpus, tasks, batch_learning=False) -> float:
        """Infer the topics of some documents and move the topics towards them; returns the temperature."""
        shape = X.shape[0], self._n_features_out
        gamma = self.random_state_.gamma(_STARTING_SHAPE, 1 / _STARTING_SHAPE, shape).astype(X.dtype, copy=False)
        documents = self._infer_at_temperature(X, gamma, tasks)
        rate = 1.0 if batch_learning else (self.learning_offset + self.n_batch_iter_) ** -self.learning_decay
        update_topics(self._topics, documents, rate, len_corpus / X.shape[0], tasks)
        if self.learn_doc_topic_prior and self._tempering is None and self.max_doc_update_iter > 0:
            self.doc_topic_prior_ = fit_prior(self._alpha(), documents.gamma, rate)
        self.n_batch_iter_ += 1
        self._advance_temperature(X, documents)
        return 1 / float(np.mean(documents.inverse))

    def _infer_at_temperature(self, X, gamma, tasks) -> Documents:
        tempering, options = self._tempering, (self._alpha(), gamma, self._settings(), tasks)
        if tempering is None:
            return infer_documents(self._topics, X, *options)
        if not isinstance(tempering, DocumentTempering):
            joint = isinstance(tempering, GlobalTempering)
            return infer_documents(self._topics, X, *options, inverse=tempering.inverse, joint=joint)
        tempering.prepare(self._topics)
        documents = infer_documents(self._topics, X, *options, inverse=tempering.inverse, joint=True)
        inverse = tempering.inverses(documents.joints, _lengths(X), documents.gamma)
        options = (self._alpha(), documents.gamma, self._settings(), tasks)
        return infer_documents(self._topics, X, *options, inverse=inverse)

    def _settings(self) -> Settings:
        return Settings(self.mean_change_tol, self.max_doc_update_iter)

    # -- temperatures ------------------------------------------------------------------------------
    def _set_tempering(self, X, len_corpus, n_passes) -> None:
        batch = self.batch_size if self.learning_method == "online" or np.isinf(n_passes) else X.shape[0]
        per_pass = np.ceil(len_corpus / batch)
        n_updates, limit = int(np.ceil(self.n_tempered * per_pass)), None
        if np.isfinite(n_passes):
            total = int(n_passes * per_pass)
            limit = total - int(min(per_pass, np.ceil(total / 2)))
            n_updates = min(n_updates, limit)
        highest = self._highest_temperature()
        if self.tempering == "annealed":
            schedule = temperature_schedule(self.temperature_schedule, highest, n_updates)[:limit]
            self._tempering, n_updates = Annealed(schedule), len(schedule)
        elif self.tempering == "local":
            self._tempering = DocumentTempering(temperature_ladder(highest, self.n_temperatures), n_updates)
        elif n_updates:
            self._tempering = self._global_tempering(X, len_corpus, highest, n_updates)
        self._tempered_left = n_updates
        if n_updates == 0:
            self._tempering = None

    def _highest_temperature(self) -> float:
        if self.initial_temperature != "auto":
            return float(self.initial_temperature)
        return _HIGHEST[self.tempering]

    def _global_tempering(self, X, len_corpus, highest, n_updates) -> GlobalTempering:
        lengths, numbers = np.unique(_lengths(X), return_counts=True)
        numbers = numbers * (len_corpus / X.shape[0])
        corpus = Corpus(lengths, numbers, X.shape[1], self.topic_word_prior_, self._alpha())
        temperatures = temperature_ladder(highest, self.n_temperatures)
        marginal = self.tempered_partition == "marginal"
        log_partition = corpus_log_partition(temperatures, corpus, marginal, self._partition_seed)
        batch_learning = self.learning_method == "batch" and len_corpus == X.shape[0]
        self._joint = RunningMean(corpus.n_tokens, **({"smoothing": 1.0} if batch_learning else {}))
        return GlobalTempering(temperatures, log_partition, n_updates, monotone=self.monotone_temperature)

    def _advance_temperature(self, X, documents) -> None:
        if self._tempering is None:
            return
        self._tempered_left -= 1
        if self._tempered_left == 0:
            self._tempering = None
        elif isinstance(self._tempering, GlobalTempering):
            self._tempering.advance(self._joint.add(documents.joints.sum(), X.data.sum(dtype=np.float64)))
        elif isinstance(self._tempering, Annealed):
            self._tempering.advance(None)

    # -- documents with topics as they are -----------------------------------------------------------
    def _documents(self, X, tasks):
        """Documents at T = 1, in parts, from gamma = 1."""
        for rows in cut(X.shape[0], _DOCUMENTS_AT_ONCE):
            part = take_documents(X, rows)
            start = np.ones((part.shape[0], self._n_features_out))
            yield infer_documents(self._topics, part, self._alpha(), start, self._settings(), tasks)

    def _gamma(self, X: sp.csr_matrix) -> NDArray[np.float64]:
        with task_map(self.n_jobs) as tasks:
            return np.concatenate([documents.gamma for documents in self._documents(X, tasks)])

    def _perplexity_of_bound(self, X, tasks) -> tuple[float, float]:
        """Perplexity and nats of the evidence lower bound at T = 1."""
        elbo = sum(float(documents.bound(self._alpha()).sum()) for documents in self._documents(X, tasks))
        elbo += self._topics.bound()
        with np.errstate(over="ignore"):
            return float(np.exp(-elbo / X.data.sum(dtype=np.float64))), elbo


def _lengths(X) -> NDArray[np.float64]:
    """Tokens of every document, (n,)."""
    return np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
