"""RBMs and topic models of scikit-learn, gensim and tomotopy, as models of this library."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from sklpf._utils.validation import in_order
from sklpf.models import BernoulliRBM, LatentDirichletAllocation

_OF_SKLEARN = {
    "BernoulliRBM": "sklearn.neural_network.BernoulliRBM",
    "LatentDirichletAllocation": "sklearn.decomposition.LatentDirichletAllocation",
}
# what training left, as far as the model has it
_PROGRESS = ("n_iter_", "n_batch_iter_", "random_state_", "feature_names_in_", "h_samples_")
_OF_GENSIM = {"LdaModel": "gensim.models.LdaModel", "LdaMulticore": "gensim.models.LdaMulticore"}
_OF_TOMOTOPY = {"LDAModel": "tomotopy.LDAModel"}


def recognise(model: Any, library: str, accepted: Mapping[str, str], function: str) -> str:
    """Return which of the accepted classes a model is of.

    Parameters
    ----------
    model : object
    library : str
        Name of its package. The first class of this package that the model's class is or derives
        from decides: derived classes of the library itself are often other models. Where there is
        none the name of its own class does.
    accepted : dict of str to str
        Names of classes, and how to call them in an error.
    function : str
        Name of the function that was called, for errors.

    Raises
    ------
    TypeError
        If it is none of them.
    """
    classes = type(model).__mro__
    name = next(
        (c.__name__ for c in classes if c.__module__.partition(".")[0] == library),
        classes[0].__name__,
    )
    if name not in accepted:
        given = f"{classes[0].__module__}.{classes[0].__qualname__}"
        steps = (
            "; take the last step, pipeline[-1], and transform rows by the others"
            if name == "Pipeline"
            else ""
        )
        raise TypeError(
            f"{function} takes a fitted {' or '.join(accepted.values())}, got {given}{steps}"
        )
    return name


def check_learned(fitted: bool, function: str, how: str) -> None:
    """Raise NotFittedError, which is a ValueError, unless a model is fitted."""
    if not fitted:
        raise NotFittedError(
            f"{function} needs a fitted model, and this one has learned nothing yet: {how}"
        )


def columns(
    words: Sequence[Any], vocabulary: Iterable[str] | None, function: str, own: str
) -> list[int]:
    """Return which of a model's words each column of X is of.

    Parameters
    ----------
    words : sequence
        Words of the model, in its order.
    vocabulary : iterable of str, dict of str to int or None
        Words of X, in order or with their columns.
    function : str
        Name of the function that was called, for errors.
    own : str
        What to give where the columns are in the model's order.

    Raises
    ------
    TypeError
        If there is no vocabulary, or it has no order.
    ValueError
        If X has other words than the model, or one twice.
    """
    if vocabulary is None:
        raise TypeError(
            f"{function} needs vocabulary, the words of the columns of X, such as the vectorizer's"
            f" get_feature_names_out(), or {own} where they are in the model's own order"
        )
    places = {word: i for i, word in enumerate(words)}
    wanted = in_order(vocabulary, "vocabulary")
    unknown = [word for word in wanted if word not in places]
    missing = places.keys() - wanted
    if unknown or missing or len(wanted) != len(words):
        raise ValueError(
            f"{function} needs a vocabulary of the model's words, each once: of {len(wanted)} given"
            f" {len(unknown)} are none of its words{_example(unknown)}, and {len(missing)} of its"
            f" {len(words)} are missing{_example(missing)}; make X with the model's words"
        )
    return [places[word] for word in wanted]


def _example(words: Iterable[str]) -> str:
    return "".join(f" ({word!r})" for word in sorted(words, key=str)[:1])


def learned_topics(components: Any, parameters: dict[str, Any]) -> LatentDirichletAllocation:
    """Return a model with these Dirichlet parameters, whatever their sums are: they are no
    probabilities.
    """
    model = LatentDirichletAllocation.from_topics(components, **parameters)
    model.components_ = (
        components  # which `from_topics` takes for probabilities where rows sum to 1
    )
    return model


def from_sklearn(model: Any, **parameters: Any) -> BernoulliRBM | LatentDirichletAllocation:
    """Return the model of this library with what a model of scikit-learn has learned.

    Parameters
    ----------
    model : fitted BernoulliRBM or LatentDirichletAllocation of scikit-learn
        It is not changed. Of a pipeline take the last step, and transform rows by the others.
    **parameters
        Parameters of `BernoulliRBM.from_parameters` (such as `visible_mean`, the means of the
        training data, from which log Z is found sooner) or `LatentDirichletAllocation.from_topics`;
        in place of the model's own.

    Returns
    -------
    fitted : BernoulliRBM or LatentDirichletAllocation
        A fitted model with the same parameters. `transform` gives its numbers, and `partial_fit`
        goes on where it stopped (with the chains of an RBM, unless another `batch_size` is given).

    Raises
    ------
    TypeError
        If it is a model of another class, or n_components is given.
    NotFittedError
        If it is not fitted.
    ValueError
        If a value is not finite or a shape does not fit.

    Examples
    --------
    >>> from sklearn.decomposition import LatentDirichletAllocation
    >>> from sklpf.datasets import make_bars_corpus
    >>> from sklpf.interop import from_sklearn
    >>> X, _, _ = make_bars_corpus(60, size=2, n_tokens=10, random_state=0)
    >>> theirs = LatentDirichletAllocation(4, random_state=0).fit(X[:50])
    >>> ours = from_sklearn(theirs, random_state=0)
    >>> bool(abs(ours.transform(X) - theirs.transform(X)).max() < 1e-6)
    True
    >>> -14 < ours.score(X[50:]) < -11  # nats per document
    True
    """
    name = recognise(model, "sklearn", _OF_SKLEARN, "from_sklearn")
    check_learned(hasattr(model, "components_"), "from_sklearn", "call fit first")
    if "n_components" in parameters:
        raise TypeError(
            "from_sklearn takes no n_components: the model's weights have that number, and another"
            " one needs a fit of its own"
        )
    fitted: BernoulliRBM | LatentDirichletAllocation
    if name == "BernoulliRBM":
        arrays = model.components_, model.intercept_visible_, model.intercept_hidden_
        settings = _settings(model, BernoulliRBM)
        fitted = BernoulliRBM.from_parameters(*arrays, **{**settings, **parameters})
    else:
        priors = {
            "doc_topic_prior": model.doc_topic_prior_,
            "topic_word_prior": model.topic_word_prior_,
        }
        settings = _settings(model, LatentDirichletAllocation)
        fitted = learned_topics(model.components_, {**settings, **priors, **parameters})
    for attribute in _PROGRESS:
        if hasattr(model, attribute) and _fits(attribute, model, fitted, parameters):
            setattr(fitted, attribute, copy.deepcopy(getattr(model, attribute)))
    return fitted


def _fits(attribute, model, fitted, parameters) -> bool:
    """Return whether the parameters that were given leave a use for what training left: chains, and
    the state of a seed.
    """
    if attribute == "h_samples_":
        return np.shape(model.h_samples_) == fitted.h_samples_.shape
    return attribute != "random_state_" or "random_state" not in parameters


def _settings(model, ours) -> dict[str, Any]:
    """The parameters that both classes have; the number of components follows from what was
    learned.
    """
    names = ours._parameter_constraints.keys() - {"n_components"}
    return {
        name: copy.deepcopy(value)
        for name, value in model.get_params(deep=False).items()
        if name in names
    }


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
    recognise(model, "gensim", _OF_GENSIM, "from_gensim")
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
    recognise(model, "tomotopy", _OF_TOMOTOPY, "from_tomotopy")
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
