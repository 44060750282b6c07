"""LatentDirichletAllocation: scikit-learn's topic model with a faster fit, tempering, and a
held-out likelihood.
"""

from __future__ import annotations

import copy
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from sklpf._utils.context import reporting
from sklpf._utils.numbers import Array, Integers
from sklpf._utils.random import draw_seed
from sklpf._utils.sklearn import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    StrOptions,
    TransformerMixin,
)
from sklpf._utils.validation import (
    NOT_NEGATIVE,
    POSITIVE,
    Interval,
    SparseInput,
    as_float64,
    at_least,
    check_fitted,
    check_option,
    check_parameter,
    validate_rows,
)
from sklpf._utils.warnings import warn
from sklpf.models._learning import all_or_nothing, check_goes_on
from sklpf.models.lda._counts import (
    check_tokens,
    lengths,
    rounded,
    split_tokens,
    whole_counts,
    whole_rows,
)
from sklpf.models.lda._path import LDAPath, check_prior
from sklpf.models.lda.learning import (
    Topics,
    Training,
    fit_gibbs,
    fit_variational,
    posterior_of,
    update_variational,
)
from sklpf.scoring import SCORING, RowLikelihoodMixin, Scored, ScoreInterval, interval_of
from sklpf.variational import TEMPERING, Tempering

_CERTAIN = 1e28  # tokens that known probabilities stand for; digamma has its digits up to 1e30


def _learns_streams(model) -> bool:
    """True if there is `partial_fit`; AttributeError says why not."""
    if model.learning_method == "gibbs":
        raise AttributeError(
            'partial_fit needs learning_method="batch" or "online": Gibbs sampling takes all tokens'
            " again and again"
        )
    return True


@dataclass(eq=False, repr=False)
class LatentDirichletAllocation(
    SparseInput,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    RowLikelihoodMixin,
    BaseEstimator,
):
    """Latent Dirichlet allocation with variational Bayes; takes the place of scikit-learn's class
    of that name.

    It has scikit-learn's parameters and attributes, and then its own. A seed gives the same topics
    as there, except for rounding. Differences: `score` is the mean log-likelihood per document, and
    `perplexity` comes from the same likelihoods, so that neither depends on how documents are
    grouped; X with another number of words raises an error.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics; a fitted model keeps its own until `fit`.
    doc_topic_prior : float, array-like of shape (n_components,) or None, default=None
        alpha, Dirichlet parameter of the documents' topic proportions, or one for every topic, from
        1e-20 to 1e10. None: 1 / n_components.
    topic_word_prior : float or None, default=None
        eta, Dirichlet parameter of the topics, from 1e-20 to 1e10. None: 1 / n_components.
    learning_method : {"batch", "online", "gibbs"}, default="batch"
        Whether `fit` updates the topics after a pass over all documents or after every `batch_size`
        of them, or draws the topics of all tokens in turn (collapsed Gibbs sampling, Griffiths &
        Steyvers 2004): see the notes.
    learning_decay, learning_offset : float, default=0.7 and 10.0
        Update t of online learning has weight (learning_offset + t) ** -learning_decay.
    max_iter : int, default=10
        Passes over the documents in `fit`. Gibbs sampling needs some 100.
    batch_size : int, default=128
        Documents in an update of online learning.
    evaluate_every : int, default=-1
        Passes between evaluations of the bound, which end `fit` when it settles; never if not
        positive.
    total_samples : float, default=1e6
        Documents in the stream that `partial_fit` sees a part of.
    perp_tol : float, default=0.1
        Change of the bound's perplexity below which `fit` ends.
    mean_change_tol : float, default=1e-3
        A document's topics have settled when their expected counts change by less, on average over
        topics.
    max_doc_update_iter : int, default=100
        Most updates of a document's topics.
    n_jobs : int or None, default=None
        Threads. Never changes a number.
    verbose : int, default=0
        Whether to report the progress of `fit`, at most once a second, and of estimates; see `AIS`.
    random_state : int, RandomState or None, default=None
        Seed of the first topics, of the order of documents and of the estimates of likelihoods.
    tempering : Tempering, {"annealed", "global", "local"} or None, default=None
        Temperatures before the updates at T = 1 that always end `fit`: on a schedule, one that is
        learned, or one learned for every document (Mandt et al. 2016). None begins at T = 1; a
        string is a `Tempering` with its defaults. The highest temperature is 1.5 on a schedule by
        default, 2 for a global one and 10 for local ones, and lasts for 3 passes over the
        documents. `fit` reduces them so that at least one pass, or half of a single one, is left
        at T = 1; in `partial_fit` a pass is `total_samples` documents. A global temperature is
        never raised by default. (Where words are many and priors sparse it may never fall either.)
    learn_doc_topic_prior : bool, default=False
        Whether alpha, with a value for every topic, is learned by Newton steps; at T = 1, or along
        with the sampling.
    learn_topic_word_prior : bool, default=False
        Whether eta is learned in Gibbs sampling, by Minka's fixed point (2000).
    n_init : int, default=1
        Independent chains of Gibbs sampling, of which the one with the highest log p(words, topics)
        is kept.
    shuffle : bool, default=False
        Whether online `fit` goes through the documents in another order in every pass.
    partition_estimator : PartitionEstimator or None, default=None
        How log p(document) is computed. None is `LeftToRight`, which takes the least time for its
        error. If its `random_state` or `n_jobs` is None, that of the model is used.
    on_nonconvergence : {"warn", "nan", "raise"}, default="warn"
        What `score`, `score_samples` and `perplexity` do with documents whose estimate is not
        trusted: warn and return the value, return NaN, or raise an error. Documents whose counts
        are not whole numbers give NaN, with a warning, a line in the log, or an error.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Dirichlet parameters lambda of the topics; read-only, and may be set as a whole.
    exp_dirichlet_component_ : ndarray of shape (n_components, n_features)
        exp(E log beta), from `components_`.
    doc_topic_prior_ : float, or ndarray of shape (n_components,) if given so or learned
    topic_word_prior_ : float
    bound_, elbo_ : float
        Evidence lower bound of the training documents at T = 1, as a perplexity and in nats; not
        set by `partial_fit` and Gibbs sampling.
    log_joint_ : ndarray of shape (n_values,)
        After Gibbs sampling: log p(words, topics) of the training documents at the start and every
        fifth pass, in nats.
    temperatures_ : ndarray of shape (`n_batch_iter_` - 1,)
        1 / E[1 / T] in every update of the topics.
    n_batch_iter_, n_iter_ : int
        Updates of the topics plus one; passes over the documents.
    random_state_ : RandomState
    partition_estimator_ : PartitionEstimator
        Fitted to the documents that were scored last.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Counts may be fractions in `fit`, `transform` and the bounds, where they weight the words. Only
    whole tokens have a likelihood; `on_nonconvergence` says what happens to other documents.
    `completion_score` rounds to the nearest whole counts and warns. Empty documents have likelihood
    1 and the topic proportions of the prior. A word with a probability below 2e-16 under the topics
    of a document does not influence them, as in scikit-learn.

    Gibbs sampling draws the topic of every token given those of all others, `max_iter` times.
    `components_` are the prior plus the counts of words in topics, averaged over the last fifth of
    the passes. Gibbs sampling needs whole tokens, to which `fit` rounds, and supports neither
    tempering nor `partial_fit`. Given enough time its topics are better than the variational ones.
    It warns if log p(words, topics) still rose at the end, or after fewer than 50 passes.

    `partial_fit` keeps the topics and one batch, and so learns from a stream of documents in
    constant memory.

    Examples
    --------
    >>> from sklpf import LatentDirichletAllocation
    >>> from sklpf.datasets import make_bars_corpus
    >>> X, topics, _ = make_bars_corpus(500, random_state=0)
    >>> settings = dict(learning_method="online", random_state=0)
    >>> model = LatentDirichletAllocation(10, **settings).fit(X)
    >>> model.transform(X).shape
    (500, 10)

    Documents that come one by one, never all in memory:

    >>> from itertools import islice
    >>> from sklearn.feature_extraction.text import HashingVectorizer
    >>> def documents():
    ...     for i in range(1000):
    ...         yield "rain wind sun" if i % 2 else "cat dog bird"
    >>> vectorizer = HashingVectorizer(n_features=64, alternate_sign=False, norm=None)
    >>> model = LatentDirichletAllocation(2, total_samples=1000, random_state=0)
    >>> stream = documents()
    >>> while texts := list(islice(stream, 256)):
    ...     model = model.partial_fit(vectorizer.transform(texts))
    >>> model.n_batch_iter_ - 1
    8
    """

    n_components: int = 10
    _: KW_ONLY
    doc_topic_prior: float | ArrayLike | None = None
    topic_word_prior: float | None = None
    learning_method: Literal["batch", "online", "gibbs"] = "batch"
    learning_decay: float = 0.7
    learning_offset: float = 10.0
    max_iter: int = 10
    batch_size: int = 128
    evaluate_every: int = -1
    total_samples: float = 1e6
    perp_tol: float = 1e-1
    mean_change_tol: float = 1e-3
    max_doc_update_iter: int = 100
    verbose: int = 0
    tempering: Tempering | Literal["annealed", "global", "local"] | None = None
    learn_doc_topic_prior: bool = False
    learn_topic_word_prior: bool = False
    n_init: int = 1
    shuffle: bool = False

    _parameter_constraints = {
        **SCORING,
        **TEMPERING,
        "n_components": [at_least(1)],
        "doc_topic_prior": [POSITIVE, "array-like", None],
        "topic_word_prior": [POSITIVE, None],
        "learning_method": [StrOptions({"batch", "online", "gibbs"})],
        "learning_decay": [Interval(Real, 0, 1, closed="both")],
        "learning_offset": [Interval(Real, 1.0, None, closed="left")],
        "max_iter": [at_least(0)],
        "batch_size": [at_least(1)],
        "evaluate_every": [Interval(Integral, None, None, closed="neither")],
        "total_samples": [POSITIVE],
        "perp_tol": [NOT_NEGATIVE],
        "mean_change_tol": [NOT_NEGATIVE],
        "max_doc_update_iter": [at_least(0)],
        "learn_doc_topic_prior": ["boolean"],
        "learn_topic_word_prior": ["boolean"],
        "n_init": [at_least(1)],
        "shuffle": ["boolean"],
    }

    # -- training
    @all_or_nothing
    @reporting
    def fit(self, X, y=None) -> Self:
        """Learn topics from X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            How often every word occurs in every document; not negative.
        y : ignored
            Not used; there for scikit-learn's conventions.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter can't be used, or X has negative or missing counts; the model is then as
            it was.
        """
        X = self._validate(X, reset=True)
        check_tokens(X, X.shape[0])
        self._begin()
        if self.learning_method == "gibbs":
            fit_gibbs(self, X)
        else:
            fit_variational(self, X)
        return self

    @available_if(_learns_streams)
    @all_or_nothing
    def partial_fit(self, X, y=None) -> Self:
        """Update the topics with some documents of a stream, `batch_size` at a time.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : ignored
            Not used; there for scikit-learn's conventions.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As in `fit`, or if X has another number of words than before; the model is then as it
            was.
        """
        first = "_training" not in vars(self)
        if not first:
            check_goes_on(self)
        X = self._validate(X, reset=first, n_corpus=max(1.0, self.total_samples))
        if first:
            self._begin()
        update_variational(self, X)
        return self

    @classmethod
    def from_topics(cls, topics, doc_topic_prior=None, topic_word_prior=None, **parameters) -> Self:
        """Return a fitted model with known topics.

        Parameters
        ----------
        topics : array-like of shape (n_components, n_features)
            Positive. If every row sums to 1, the probabilities of the words, which are then taken
            as certain, whatever `partial_fit` sees; otherwise the Dirichlet parameters that become
            `components_`.
        doc_topic_prior, topic_word_prior : as in the constructor
            The likelihood of documents needs the first alone.
        **parameters
            Parameters of the constructor, such as `partition_estimator` or `random_state`.

        Returns
        -------
        model : LatentDirichletAllocation

        Raises
        ------
        TypeError
            If a prior holds anything but numbers.
        ValueError
            If topics are not positive and finite, or a prior is out of its range or does not fit
            them.

        Examples
        --------
        >>> from sklpf import LatentDirichletAllocation
        >>> topics = [[0.9, 0.1], [0.2, 0.8]]
        >>> model = LatentDirichletAllocation.from_topics(topics, doc_topic_prior=0.5)
        >>> round(float(model.score_samples([[1, 0]])[0]), 4)  # log 0.55
        -0.5978
        """
        topics = _as_dirichlet(topics)
        priors = {"doc_topic_prior": doc_topic_prior, "topic_word_prior": topic_word_prior}
        model = cls(len(topics), **priors, **parameters)
        model._validate_params()
        model._begin()
        model._training = Training(Topics(topics, model.topic_word_prior_))
        model.n_features_in_ = topics.shape[1]
        return model

    # -- topics of documents
    def transform(self, X, *, normalize=True) -> NDArray:
        """Topic shares of documents, each on its own.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        normalize : bool, default=True
            Whether rows sum to 1; otherwise the Dirichlet parameters gamma.

        Returns
        -------
        doc_topic_distr : ndarray of shape (n_samples, n_components)
        """
        check_fitted(self)
        gamma = self._gamma(self._validate(X))
        if normalize:
            gamma /= gamma.sum(axis=1, keepdims=True)
        return gamma.astype(self._topics.weights.dtype, copy=False)

    def fit_transform(self, X, y=None, *, normalize=True) -> NDArray:
        """Fit to X and return its topic shares.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : ignored
        normalize : bool, default=True
            As in `transform`.

        Returns
        -------
        doc_topic_distr : ndarray of shape (n_samples, n_components)
        """
        return self.fit(X).transform(X, normalize=normalize)

    # -- log-likelihood
    def path(self, X) -> LDAPath:
        """Return the path with one target a document, whose normaliser is the document's
        likelihood.

        The likelihood is that of the tokens in their order, with the topics at their posterior
        mean.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rounded to whole counts, with a warning where that changes them.

        Returns
        -------
        path : LDAPath
        """
        check_fitted(self)
        return self._path(whole_counts(self._validate(X)))

    def score_interval(
        self, X, level: float = 0.95, *, per: Literal["document", "word"] = "document"
    ) -> ScoreInterval:
        """Mean log-likelihood per document, or per word, with its sampling error and its
        Monte-Carlo error.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            At least 2 documents.
        level : float, default=0.95
            Probability with which each interval covers.
        per : {"document", "word"}, default="document"
            Whether the mean is `score`, or the sum of `score_samples` over the number of tokens.
            Documents are what is sampled, in both: the error of the second is that of a ratio of
            two means over documents, which counts that long documents weigh more. It has a
            `perplexity` and a `perplexity_interval` too.

        Returns
        -------
        interval : ScoreInterval
            ``partition`` is the Monte-Carlo part; it shrinks with more documents, but for the bias
            of a logarithm of estimates (half the mean squared standard error), which widens it
            upwards.

        Raises
        ------
        ValueError
            If `per` is neither of these, or X has no tokens and a score per word is asked for.

        Examples
        --------
        >>> from sklpf import LatentDirichletAllocation
        >>> topics = [[0.5, 0.25, 0.25]]
        >>> model = LatentDirichletAllocation.from_topics(topics, doc_topic_prior=1.0)
        >>> words = model.score_interval([[2, 0, 0], [1, 1, 1], [0, 2, 2]], per="word")
        >>> words
        ScoreInterval(-1.16 nats per word: 95 % interval [-1.92, -0.39])
        >>> round(words.perplexity, 4)
        3.1748
        """
        check_option(per, ("document", "word"), "per")
        if per == "document":
            return super().score_interval(X, level)
        return interval_of(self._words_scored(X, level), level)

    def perplexity(self, X, sub_sampling=False) -> float:
        """exp of minus the log-likelihood per token: exp(-sum of `score_samples` / number of
        tokens).

        `score_interval` with ``per="word"`` has it with its interval.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        sub_sampling : bool, default=False
            Ignored: a value per token needs no correction for the size of a sample.

        Returns
        -------
        perplexity : float

        Raises
        ------
        ValueError
            If X has no tokens.
        """
        return float(np.exp(-self._words_scored(X).values.mean()))

    def completion_score(self, X) -> float:
        """Mean log predictive probability, in nats a token, of half of each document's tokens given
        the other half.

        The protocol of Hoffman et al. (2013): a random half of the tokens (rounded down) gives the
        topic shares, and each token of the rest scores log sum_k E[theta_k] E[beta_kw]. It is log
        p(half | half), not a likelihood of documents. How a document is split depends on its own
        words alone: not on the model, nor on other documents.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rounded to whole counts, with a warning where that changes them.

        Returns
        -------
        score : float

        Raises
        ------
        ValueError
            If X has no tokens.
        """
        check_fitted(self)
        X = whole_counts(self._validate(X))
        if X.nnz == 0:
            raise ValueError(
                "X has no tokens, and completion_score is one of tokens; pass a document with a"
                " word"
            )
        first, second = split_tokens(X)
        topics = self._topics
        shares = self._gamma(first)
        shares /= shares.sum(axis=1, keepdims=True)
        shares /= topics.sums  # of E beta = lambda / sums
        total = 0.0
        for d in range(X.shape[0]):
            row = slice(second.indptr[d], second.indptr[d + 1])
            weights = topics.weights[second.indices[row]].astype(np.float64)
            words = topics.base + topics.scale * weights
            total += second.data[row] @ np.log(np.sum(words * shares[d], axis=1))
        return float(total / second.data.sum(dtype=np.float64))

    # -- fitted topics
    @property
    def components_(self) -> NDArray:
        """Dirichlet parameters of every topic's words.

        Returns
        -------
        ndarray of shape (n_components, n_features)
            Not negative.
        """
        return self._topics.components

    @components_.setter
    def components_(self, components) -> None:
        previous = self._topics.components
        components = as_float64(components, "components_").astype(previous.dtype)
        if components.shape != previous.shape or not np.all(
            np.isfinite(components) & (components > 0)
        ):
            raise ValueError(
                f"components_ must be finite and positive and have shape {previous.shape}"
            )
        topics = Topics(components, self.topic_word_prior_)
        self._training: Training = self._training._replace(topics=topics)

    @property
    def exp_dirichlet_component_(self) -> NDArray:
        """exp(E[log phi]) of every topic's words.

        Returns
        -------
        ndarray of shape (n_components, n_features)
            From 0 to 1.
        """
        return self._topics.exp_expected_log()

    # -- what the score of rows asks for
    @property
    def _fitted_shapes(self) -> dict[str, tuple[str, ...]]:
        """Dimensions of the attributes: a prior of topics is one number, or one for each."""
        one_each = np.ndim(self.doc_topic_prior_) > 0
        return {
            "components_": ("n_components", "n_features"),
            "doc_topic_prior_": ("n_components",) if one_each else (),
            "topic_word_prior_": (),
        }

    _unit = "document"
    _discrete = True
    _states_are_points = False
    _impossible = (
        "a document is whole tokens; pass counts, not weights such as TF-IDF (or rounded,"
        " np.rint(X))"
    )

    def _targets(self, X) -> tuple[LDAPath, NDArray[np.bool_]]:
        """The path of the nearest whole counts, and which documents have whole counts."""
        check_fitted(self)
        X = self._validate(X)
        return self._path(rounded(X)), whole_rows(X)

    def _exclusive(self, path) -> Integers:
        """Documents of the same length exclude each other: their probabilities sum to 1."""
        return path.n_tokens

    def _path(self, counts: sp.csr_matrix) -> LDAPath:
        """The path of documents with whole counts."""
        topics = self._topics.components.astype(np.float64)
        topics /= topics.sum(axis=1, keepdims=True)
        return LDAPath(topics, self.doc_topic_prior_, counts)

    # -- what is shared
    def _begin(self) -> None:
        """Set priors, counters and the random stream to those before a fit, and forget its
        results.
        """
        _check_options(self)
        self.doc_topic_prior_ = self._prior("doc_topic_prior")
        self.topic_word_prior_ = float(self._prior("topic_word_prior"))
        if self.learn_doc_topic_prior:
            self.doc_topic_prior_ = np.full(self.n_components, self.doc_topic_prior_)
        self.temperatures_ = np.empty(0)
        self.n_batch_iter_ = 1
        self.n_iter_ = 0
        self.random_state_ = check_random_state(self.random_state)
        # From a copy, so that the topics are those of scikit-learn's stream.
        self._partition_seed = draw_seed(copy.deepcopy(self.random_state_))
        for name in ("bound_", "elbo_", "log_joint_"):
            self.__dict__.pop(name, None)

    def _prior(self, name: str) -> float | Array:
        """A prior as it is given, a number or (n_components,), or 1 / n_components."""
        largest = 1e10  # above which digamma functions and sums lose all digits
        prior = getattr(self, name)
        if prior is None:
            return 1 / self.n_components
        checked = check_prior(name, prior, self.n_components, largest)
        return checked if checked.ndim else float(checked)

    def _validate(self, X, reset=False, n_corpus=1.0) -> sp.csr_matrix:
        """X as CSR matrix without explicit zeros."""
        dtype = (np.float64, np.float32) if reset else self._topics.weights.dtype
        X = sp.csr_matrix(
            validate_rows(self, X, reset=reset, dtype=dtype, ensure_non_negative=True)
        )
        if not X.data.flags.writeable or np.any(X.data == 0):
            X = X.copy()
            X.eliminate_zeros()
        check_tokens(X, n_corpus)
        return X

    def _gamma(self, X: sp.csr_matrix) -> Array:
        """Dirichlet parameters of the documents' topic shares, (n, n_components)."""
        with posterior_of(self) as posterior:
            return np.concatenate([documents.gamma for documents in posterior.settle(X)])

    def _scored(self, X, level: float | None = None, tolerates: bool = True) -> Scored:
        if tolerates:  # it is for a mean over documents
            check_fitted(self)
            empty = lengths(self._validate(X)) == 0
            if empty.any():
                warn(
                    f"{np.sum(empty)} of {len(empty)} documents of X have no words, and so the"
                    " log-likelihood 0, which raises the mean: leave them out",
                )
        return super()._scored(X, level, tolerates)

    def _words_scored(self, X, level: float | None = None) -> Scored:
        """Log-likelihoods per word; documents without words do not count."""
        check_fitted(self)
        n_tokens = lengths(rounded(self._validate(X)))
        if not n_tokens.any():
            raise ValueError(
                "X has no tokens, and perplexity is one of tokens; pass a document with a word"
            )
        return _per_word(super()._scored(X, level), n_tokens)

    @property
    def _topics(self) -> Topics:
        if "_training" not in vars(self):
            raise NotFittedError(f"{type(self).__name__} has no topics yet: call fit first")
        return self._training.topics

    @property
    def _n_features_out(self) -> int:
        return len(self._topics.totals)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags


def _per_word(documents: Scored, n_tokens: Array) -> Scored:
    """Log-likelihoods per word, from those of documents.

    The mean of the values is the ratio R = sum l_d / sum n_d. Their spread is that of l_d - R n_d,
    which gives the error of a ratio of two means to first order.
    """
    values = documents.values
    mean_length = n_tokens.mean()
    baseline = documents.baseline
    if baseline is not None:
        baseline = baseline._replace(values=_ratio_values(baseline.values, n_tokens))
    return documents._replace(
        values=_ratio_values(values, n_tokens),
        baseline=baseline,
        below=documents.below / mean_length,
        above=documents.above / mean_length,
        unit="word",
    )


def _ratio_values(values: Array, n_tokens: Array) -> Array:
    """Values (n,) of documents whose mean is that of words, and whose spread gives its error."""
    ratio = values.sum() / n_tokens.sum()
    deviations = values - ratio * n_tokens if np.isfinite(ratio) else np.zeros_like(values)
    return ratio + deviations / n_tokens.mean()


def _check_options(model) -> None:
    """Raise ValueError if the model's way of learning lacks something that was asked for."""
    gibbs = model.learning_method == "gibbs"
    if gibbs and model.tempering is not None:
        raise ValueError(
            'tempering needs learning_method="batch" or "online"; set it to None for "gibbs"'
        )
    if not gibbs and (model.learn_topic_word_prior or model.n_init > 1):
        raise ValueError('learn_topic_word_prior and n_init > 1 need learning_method="gibbs"')


def _as_dirichlet(topics: ArrayLike) -> NDArray:
    """Return a copy of topics as Dirichlet parameters, (n_topics, n_features); probabilities become
    certain ones.
    """
    rounding = 1e-5  # of sums of probabilities, as in the path
    checked = check_parameter(
        topics, "topics", dtype=(np.float64, np.float32), order="C", copy=True
    )
    if not np.all(checked > 0):
        raise ValueError(
            "topics must be positive; add a little to every probability and normalise the rows"
        )
    certain = np.abs(checked.sum(axis=1, dtype=np.float64) - 1).max() <= rounding
    return checked * checked.dtype.type(_CERTAIN) if certain else checked
