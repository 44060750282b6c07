"""from_tomotopy: topic models of tomotopy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from sklpf.interop._dirichlet import learned_topics
from sklpf.interop._recognise import check_learned, columns, recognise
from sklpf.models import LatentDirichletAllocation

_ACCEPTED = {"LDAModel": "tomotopy.LDAModel"}


def from_tomotopy(
    model: Any, *, vocabulary: Iterable[str] | None = None, **parameters: Any
) -> LatentDirichletAllocation:
    """Return a `LatentDirichletAllocation` with the topics and priors of a model of tomotopy.

    Parameters
    ----------
    model : trained tomotopy.LDAModel
        Read are ``get_topic_word_dist(k, normalize=False)``, ``k``, ``alpha``, ``eta``,
        ``used_vocabs`` and ``global_step``.
    vocabulary : iterable of str or dict of str to int
        The words of the columns of X, in order or (as ``CountVectorizer.vocabulary_``) with their
        columns: all of the model's, each once. Needed, as other columns would go unnoticed. It is
        ``list(model.used_vocabs)`` where ``CountVectorizer(vocabulary=list(model.used_vocabs),
        analyzer=...)`` counts.
    **parameters
        Parameters of `LatentDirichletAllocation.from_topics`, in place of the model's own.

    Returns
    -------
    fitted : LatentDirichletAllocation
        `components_` are the counts of words in topics in the last state of the model's sampler,
        plus eta.

    Raises
    ------
    TypeError
        If it is a model of another class: its other models have topics from something else than one
        Dirichlet distribution. If there is no vocabulary.
    NotFittedError
        If it was not trained.
    ValueError
        If the vocabulary is not the model's.

    Examples
    --------
    >>> from sklpf.interop import from_tomotopy
    >>> lda = tomotopy.LDAModel(k=10)  # doctest: +SKIP
    >>> for words in corpus:  # doctest: +SKIP
    ...     lda.add_doc(words)
    >>> lda.train(1000)  # doctest: +SKIP
    >>> vectorizer = CountVectorizer(
    ...     vocabulary=list(lda.used_vocabs), analyzer=list
    ... )  # doctest: +SKIP
    >>> fitted = from_tomotopy(lda, vocabulary=lda.used_vocabs)  # doctest: +SKIP
    >>> fitted.score_interval(vectorizer.transform(held_out))  # doctest: +SKIP
    """
    recognise(model, "tomotopy", _ACCEPTED, "from_tomotopy")
    check_learned(model.global_step > 0, "from_tomotopy", "call add_doc and train first")
    order = columns(list(model.used_vocabs), vocabulary, "from_tomotopy", "list(model.used_vocabs)")
    topics = np.array([model.get_topic_word_dist(k, normalize=False) for k in range(model.k)])[
        :, order
    ]
    own = {
        "doc_topic_prior": np.asarray(model.alpha, dtype=np.float64),
        "topic_word_prior": float(model.eta),
    }
    return learned_topics(topics, {**own, **parameters})
