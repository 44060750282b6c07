"""from_gensim: topic models of gensim."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from sklpf.interop._dirichlet import learned_topics
from sklpf.interop._recognise import check_learned, columns, recognise
from sklpf.models import LatentDirichletAllocation

_ACCEPTED = {"LdaModel": "gensim.models.LdaModel", "LdaMulticore": "gensim.models.LdaMulticore"}


def from_gensim(
    model: Any, *, vocabulary: Iterable[str] | None = None, **parameters: Any
) -> LatentDirichletAllocation:
    """Return a `LatentDirichletAllocation` with the topics and priors of a model of gensim.

    Parameters
    ----------
    model : trained gensim.models.LdaModel or LdaMulticore
        Read are ``state.get_lambda()``, ``alpha``, ``eta``, ``gamma_threshold``, ``iterations``,
        ``num_updates``; and ``id2word`` for a vocabulary.
    vocabulary : iterable of str, dict of str to int or gensim.corpora.Dictionary
        The words of the columns of X, in order or (as ``CountVectorizer.vocabulary_``) with their
        columns: all of the model's, each once. Needed, as other columns would go unnoticed. Where
        the columns are gensim's ids, as in ``X = gensim.matutils.corpus2csc(corpus,
        model.num_terms).T``, it is ``model.id2word``.
    **parameters
        Parameters of `LatentDirichletAllocation.from_topics`, in place of the model's own.

    Returns
    -------
    fitted : LatentDirichletAllocation
        Where gensim has a prior for every word, `topic_word_prior` is their mean; only further
        training would use it, and neither `transform` nor `score` does.

    Raises
    ------
    TypeError
        If it is a model of another class. (Of an AuthorTopicModel topics belong to authors, not to
        documents.) If there is no vocabulary.
    NotFittedError
        If it has seen no documents.
    ValueError
        If the vocabulary is not the model's.

    Examples
    --------
    >>> from sklpf.interop import from_gensim
    >>> lda = gensim.models.LdaModel(
    ...     corpus, num_topics=10, id2word=dictionary
    ... )  # doctest: +SKIP
    >>> X = gensim.matutils.corpus2csc(held_out, lda.num_terms).T  # doctest: +SKIP
    >>> from_gensim(lda, vocabulary=lda.id2word).score_interval(X)  # doctest: +SKIP
    """
    recognise(model, "gensim", _ACCEPTED, "from_gensim")
    check_learned(model.num_updates > 0, "from_gensim", "call update with a corpus first")
    own = {
        "doc_topic_prior": np.asarray(model.alpha, dtype=np.float64),
        "topic_word_prior": float(np.mean(model.eta)),
        "mean_change_tol": float(model.gamma_threshold),
        "max_doc_update_iter": int(model.iterations),
    }
    topics = model.state.get_lambda()
    if vocabulary is None or vocabulary is not model.id2word:
        words = [model.id2word[i] for i in range(model.num_terms)]
        by_word = getattr(vocabulary, "token2id", vocabulary)
        topics = topics[:, columns(words, by_word, "from_gensim", "model.id2word")]
    return learned_topics(topics, {**own, **parameters})
