"""Variational Bayes for latent Dirichlet allocation: passes over the documents, with an update of
the topics after each batch, until the bound settles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from sklpf.models.lda.learning._posterior import (
    Topics,
    cut,
    fit_prior,
    posterior_of,
)
from sklpf.models.lda.learning._tempering import Cooling, start_cooling
from sklpf.training import train

_STARTING_SHAPE = 100.0  # of the gamma distribution of starting values, with mean 1


class Training(NamedTuple):
    """The state of training, from which `partial_fit` goes on."""

    topics: Topics
    cooling: Cooling | None = None  # None at T = 1


def fit_variational(model, X: sp.csr_matrix) -> None:
    """Learn by passes over the documents, first at high temperatures where these are wanted."""
    batch = model.learning_method == "batch"
    batch_size = X.shape[0] if batch else model.batch_size
    draw_topics(model, X, X.shape[0], batch_size, model.max_iter)
    with posterior_of(model) as posterior:
        shuffle = model.shuffle and not batch
        trainer = Trainer(model, posterior, X, X.shape[0], batch, shuffle)
        n_passes, ended = train(
            trainer,
            model.max_iter,
            report=Trainer.report,
            callbacks=[Trainer.has_settled],
            store=trainer.store,
        )
        trainer.store(model)
        model.bound_, model.elbo_ = trainer.posterior.bound(X)
    model.n_iter_ = n_passes - ended  # as scikit-learn counts


def update_variational(model, X: sp.csr_matrix) -> None:
    """Make one pass over some documents of a stream; the first begins the training."""
    if not hasattr(model, "_training"):
        draw_topics(model, X, model.total_samples, model.batch_size)
    with posterior_of(model) as posterior:
        trainer = Trainer(model, posterior, X, model.total_samples)
        trainer.run()
        trainer.store(model)


def draw_topics(
    model, X: sp.csr_matrix, n_documents: float, batch_size: int, n_passes: float = np.inf
) -> None:
    """Draw topics to start from, and set the temperatures for a corpus of so many documents."""
    components = _starting_values(model.random_state_, (model.n_components, X.shape[1]), X.dtype)
    cooling = start_cooling(model, X, n_documents, batch_size, n_passes)
    model._training = Training(Topics(components, model.topic_word_prior_), cooling)


class Trainer:
    """The state of training: posterior, temperature and random stream, with the documents of a
    pass.

    Parameters
    ----------
    model : LatentDirichletAllocation
        With `_training`, `random_state_` and `n_batch_iter_`.
    posterior : Posterior
        The model's; its topics are updated in place.
    X : CSR of shape (n, n_features)
    n_corpus : float
        Documents that those of X stand for.
    batch : bool, default=False
        Whether the topics move to what all of X says, once in a pass, and not by a part of the way
        after every `batch_size` documents.
    shuffle : bool, default=False
        Whether every pass takes the documents in another order.
    """

    def __init__(self, model, posterior, X, n_corpus, batch=False, shuffle=False):
        self.model = model
        self.posterior = posterior
        self.cooling = model._training.cooling
        self.update = model.n_batch_iter_
        self.X = X
        self.n_corpus = n_corpus
        self.batch = batch
        self.shuffle = shuffle
        self.temperatures: list[float] = []
        self.perplexity = np.nan  # in a pass without evaluation
        self.last_perplexity = np.inf

    def run(self) -> None:
        """Make one pass over the documents."""
        n = self.X.shape[0]
        X = self.X[self.model.random_state_.permutation(n)] if self.shuffle else self.X
        for rows in cut(n, n if self.batch else self.model.batch_size):
            self._update(X[rows])

    def has_settled(self, iteration: int) -> bool:
        """Evaluate the bound after every `evaluate_every` passes; whether it has settled at
        T = 1.
        """
        model = self.model
        self.perplexity = np.nan
        if model.evaluate_every <= 0 or iteration % model.evaluate_every != 0:
            return False
        self.perplexity, _ = self.posterior.bound(self.X)
        change = abs(self.last_perplexity - self.perplexity)
        if not np.isnan(self.perplexity):
            self.last_perplexity = self.perplexity
        return self.cooling is None and change < model.perp_tol

    def report(self, iteration: int) -> str:
        """The line that `verbose` prints after a pass."""
        return "" if np.isnan(self.perplexity) else f"perplexity: {self.perplexity:.4f}"

    def store(self, model) -> None:
        """Write what was learned to the model."""
        model._training = Training(self.posterior.topics, self.cooling)
        model.n_batch_iter_ = self.update
        model.temperatures_ = np.concatenate([model.temperatures_, self.temperatures])
        if model.learn_doc_topic_prior:
            model.doc_topic_prior_ = self.posterior.alpha

    def _update(self, X) -> None:
        """Infer the topics of some documents and move the topics towards them."""
        model = self.model
        posterior = self.posterior
        gamma = _starting_values(model.random_state_, (X.shape[0], len(posterior.alpha)), X.dtype)
        if self.cooling is None:
            documents = posterior.infer(X, gamma)
        else:
            documents = self.cooling.infer(posterior, X, gamma)
        self.temperatures.append(1 / float(np.mean(documents.inverse)))

        rate = 1.0
        if not self.batch:
            rate = (model.learning_offset + self.update) ** -model.learning_decay
        posterior.update(documents, rate, self.n_corpus / X.shape[0])
        if model.learn_doc_topic_prior and self.cooling is None and posterior.max_iter > 0:
            alpha = fit_prior(posterior.alpha, documents.gamma, rate)
            self.posterior = posterior._replace(alpha=alpha)

        self.update += 1
        if self.cooling is not None:
            self.cooling = self.cooling.advance(X, documents)


def _starting_values(rng, shape, dtype):
    """Draws about 1, of topics or of the topics of documents."""
    return rng.gamma(_STARTING_SHAPE, 1 / _STARTING_SHAPE, shape).astype(dtype, copy=False)
