"""Training of latent Dirichlet allocation: passes over the documents, updates of the topics, and
when they settle.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from sklpf.models.lda.learning._cooling import Cooling
from sklpf.models.lda.learning._inference import (
    corpus_bound,
    cut,
    infer_documents,
    take_documents,
    update_topics,
)
from sklpf.models.lda.learning._priors import fit_prior
from sklpf.models.lda.learning._topics import Topics

_STARTING_SHAPE = 100.0  # of the gamma distribution of starting values, with mean 1


class Steps(NamedTuple):
    """When and how far the topics move: update t has weight (offset + t) ** -decay."""

    batch_size: int
    offset: float
    decay: float
    shuffle: bool  # whether every pass takes the documents in another order
    learn_prior: bool  # whether alpha moves too, at T = 1

    @classmethod
    def of_fit(cls, model, n_documents: int) -> Steps:
        """Settings of `fit` to this number of documents."""
        if model.learning_method == "batch":
            return cls(n_documents, 1.0, 0.0, False, model.learn_doc_topic_prior)
        return cls.of_stream(model)._replace(shuffle=model.shuffle)

    @classmethod
    def of_stream(cls, model) -> Steps:
        """Settings of `partial_fit`."""
        return cls(
            model.batch_size,
            model.learning_offset,
            model.learning_decay,
            False,
            model.learn_doc_topic_prior,
        )


class Training(NamedTuple):
    """What training goes on from, and writes to."""

    topics: Topics
    cooling: Cooling | None = None  # None at T = 1


class Trainer:
    """The state of training: topics, alpha, temperature and random stream, with the documents of a
    pass.

    Parameters
    ----------
    model : LatentDirichletAllocation
        With `_training` (which is updated in place), `_alpha`, `_settings`, `random_state_` and
        `n_batch_iter_`.
    X : CSR of shape (n, n_features)
    n_corpus : float
        Documents that those of X stand for.
    steps : Steps
    tasks : callable
        The map that `task_map` returned.
    """

    def __init__(self, model, X: sp.csr_matrix, n_corpus: float, steps: Steps, tasks):
        self.topics, self.cooling = model._training
        self.alpha = model._alpha
        self.rng = model.random_state_
        self.update = model.n_batch_iter_
        self.X = X
        self.n_corpus = n_corpus
        self.steps = steps
        self.settings = model._settings
        self.tasks = tasks
        self.temperatures: list[float] = []

    def run(self) -> None:
        """Make one pass over the documents."""
        X = self.X[self.rng.permutation(self.X.shape[0])] if self.steps.shuffle else self.X
        for rows in cut(X.shape[0], self.steps.batch_size):
            self._update(take_documents(X, rows))

    def bound(self) -> tuple[float, float]:
        """Perplexity and nats of the evidence lower bound of the documents at T = 1."""
        return corpus_bound(self.topics, self.X, self.alpha, self.settings, self.tasks)

    def store(self, model) -> None:
        """Write what was learned to the model."""
        model._training = Training(self.topics, self.cooling)
        model.n_batch_iter_ = self.update
        model.temperatures_ = np.concatenate([model.temperatures_, self.temperatures])
        if self.steps.learn_prior:
            model.doc_topic_prior_ = self.alpha

    def _update(self, X) -> None:
        """Infer the topics of some documents and move the topics towards them."""
        gamma = _starting_values(self.rng, (X.shape[0], len(self.alpha)), X.dtype)
        infer = infer_documents if self.cooling is None else self.cooling.infer
        documents = infer(self.topics, X, self.alpha, gamma, self.settings, self.tasks)
        self.temperatures.append(1 / float(np.mean(documents.inverse)))

        rate = (self.steps.offset + self.update) ** -self.steps.decay
        update_topics(self.topics, documents, rate, self.n_corpus / X.shape[0], self.tasks)
        if self.steps.learn_prior and self.cooling is None and self.settings.max_iter > 0:
            self.alpha = fit_prior(self.alpha, documents.gamma, rate)

        self.update += 1
        if self.cooling is not None:
            self.cooling = self.cooling.advance(X, documents)


class Evaluation:
    """Ends training at T = 1 when the perplexity of the bound settles; for `sklpf.training.train`.

    Parameters
    ----------
    every : int
        Passes between evaluations; none if not positive.
    tolerance : float
    """

    def __init__(self, every: int, tolerance: float):
        self.every = every
        self.tolerance = tolerance
        self.last = np.inf
        self.perplexity = np.nan  # in a pass without evaluation

    def __call__(self, trainer: Trainer, iteration: int) -> bool:
        if self.every <= 0 or iteration % self.every != 0:
            self.perplexity = np.nan
            return False
        self.perplexity, _ = trainer.bound()
        settled = trainer.cooling is None and abs(self.last - self.perplexity) < self.tolerance
        if not np.isnan(self.perplexity):
            self.last = self.perplexity
        return settled

    def report(self, trainer: Trainer, iteration: int) -> str:
        """The line that `verbose` prints after a pass."""
        return "" if np.isnan(self.perplexity) else f"perplexity: {self.perplexity:.4f}"


def draw_topics(
    rng: np.random.RandomState, n_topics: int, n_features: int, dtype, prior: float
) -> Topics:
    """Return topics to start from."""
    return Topics(_starting_values(rng, (n_topics, n_features), dtype), prior)


def _starting_values(rng, shape, dtype):
    """Draws about 1, of topics or of the topics of documents."""
    return rng.gamma(_STARTING_SHAPE, 1 / _STARTING_SHAPE, shape).astype(dtype, copy=False)
