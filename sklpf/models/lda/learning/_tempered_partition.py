"""The normaliser C(T) of latent Dirichlet allocation with a tempered likelihood.

Mandt et al. (2016) print two things that don't go together: their updates temper the model with the
topics of the tokens (appendix B.2), their C(T) belongs to the one in which those are summed out
(equations 16 to 18). Both are here; `log_partition` computes the one that fits the updates unless
it is told otherwise. s = 1 / T throughout.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from sklpf.models.lda._counts import lengths

# temperatures at which log C and the moments of documents are computed; in between they are smooth
_NODES = 12
_ROWS_AT_ONCE = 200  # draws of theta whose words are held at a time


class CorpusSize(NamedTuple):
    """What log C(T) depends on.

    Attributes
    ----------
    lengths, n_documents : ndarray of shape (n,)
        Distinct numbers of tokens, and how many documents have each (also fractions, of a sample
        that stands for more).
    n_features : int
    topic_word_prior : float
    doc_topic_prior : ndarray of shape (n_topics,)
    """

    lengths: NDArray[np.float64]
    n_documents: NDArray[np.float64]
    n_features: int
    topic_word_prior: float
    doc_topic_prior: NDArray[np.float64]

    @classmethod
    def like(
        cls, X, n_documents: float, topic_word_prior: float, doc_topic_prior: NDArray
    ) -> CorpusSize:
        """Return a corpus of so many documents with the lengths of those of X."""
        distinct, numbers = np.unique(lengths(X), return_counts=True)
        return cls(
            distinct,
            numbers * (n_documents / X.shape[0]),
            X.shape[1],
            topic_word_prior,
            doc_topic_prior,
        )

    @property
    def n_tokens(self) -> float:
        """Tokens of all documents."""
        return float(self.lengths @ self.n_documents)


def log_partition(
    temperatures: ArrayLike,
    corpus: CorpusSize,
    *,
    marginal: bool = False,
    n_topic_draws: int = 5,
    n_proportion_draws: int = 1000,
    random_state=None,
) -> NDArray[np.float64]:
    """Monte-Carlo estimate of log C(T), where C(T) integrates the tempered likelihood over data,
    topics and documents.

    C(T) = E_beta prod_d E_theta[c(theta, beta)^N_d]. With the tokens' topics tempered too, as the
    updates do it, c = sum_k theta_k^s sum_v beta_kv^s; with them summed out (equation 17), c =
    sum_v (sum_k theta_k beta_kv)^s, which is smaller. The averages are taken of exponentials: where
    they vary much, the estimate is too low.

    Parameters
    ----------
    temperatures : array-like of shape (M,)
        At least 1.
    corpus : CorpusSize
    marginal : bool, default=False
        Whether the tokens' topics are summed out.
    n_topic_draws, n_proportion_draws : int, default=5 and 1000
        Draws of beta, and of theta for each of them.
    random_state : int or None, default=None

    Returns
    -------
    log_partition : ndarray of shape (M,)
        In nats.
    """
    rng = np.random.default_rng(random_state)
    powers = 1 / np.asarray(temperatures, dtype=np.float64)
    n_topics = len(corpus.doc_topic_prior)
    draws = []
    for _ in range(n_topic_draws):
        topics = _dirichlet(rng, np.full(corpus.n_features, corpus.topic_word_prior), n_topics)
        proportions = _dirichlet(rng, corpus.doc_topic_prior, n_proportion_draws)
        tokens = _log_tokens(powers, topics, proportions, marginal)
        draws.append([_log_documents(corpus, row) for row in tokens])
    return logsumexp(draws, axis=0) - np.log(n_topic_draws)


def _dirichlet(rng, concentration, n):
    """n draws, (n, K)."""
    gamma = rng.standard_gamma(concentration, (n, len(concentration)))
    gamma += np.finfo(np.float64).tiny  # all may have underflowed
    return gamma / gamma.sum(axis=1, keepdims=True)


def _log_tokens(powers, topics, proportions, marginal):
    """Log c(theta, beta) for every power and theta, (M, n)."""
    if not marginal:
        tokens = [proportions**power @ np.sum(topics**power, axis=1) for power in powers]
        return np.array([np.log(each) for each in tokens])
    starts = range(0, len(proportions), _ROWS_AT_ONCE)
    parts = [proportions[i : i + _ROWS_AT_ONCE] @ topics for i in starts]
    tokens = [np.concatenate([np.sum(part**power, axis=1) for part in parts]) for power in powers]
    return np.array([np.log(each) for each in tokens])


def _log_documents(corpus, tokens):
    """Sum over documents of log E_theta[c^N_d], given log c of draws of theta."""
    each = logsumexp(np.multiply.outer(corpus.lengths, tokens), axis=1) - np.log(len(tokens))
    return float(corpus.n_documents @ each)


# ---- in between
def nodes(highest: float) -> NDArray[np.float64]:
    """Temperatures from 1 to `highest` at the Chebyshev points of log T, ends included."""
    x = (1 - np.cos(np.pi * np.arange(_NODES) / (_NODES - 1))) / 2
    return np.exp(np.log(highest) * x)


def interpolation(temperatures: NDArray, at: NDArray) -> NDArray[np.float64]:
    """Matrix (len(at), len(temperatures)) from values at `nodes` to values at `at`: the polynomial
    in log T.
    """
    weights = np.where(np.arange(len(temperatures)) % 2, -1.0, 1.0)
    weights[[0, -1]] /= 2
    distance = np.log(at)[:, None] - np.log(temperatures)
    exact = np.abs(distance) < 1e-13
    terms = weights / np.where(exact, 1.0, distance)
    matrix = terms / terms.sum(axis=1, keepdims=True)
    hit = exact.any(axis=1)
    matrix[hit] = exact[hit]
    return matrix


def corpus_log_partition(
    temperatures: NDArray, corpus: CorpusSize, marginal: bool, seed: int
) -> NDArray[np.float64]:
    """`log_partition` at many temperatures from 1 to the last, interpolated."""
    few = nodes(float(temperatures[-1]))
    return interpolation(few, temperatures) @ log_partition(
        few, corpus, marginal=marginal, random_state=seed
    )
