"""LatentDirichletAllocation where numbers are tiny, huge or missing: finite, as in scikit-learn, or
refused.
"""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from marks import large
from scipy.special import gammaln, logsumexp
from sklearn.decomposition import LatentDirichletAllocation as Reference

from sklpf import Exact, LatentDirichletAllocation
from sklpf.datasets import make_bars_corpus
from sklpf.models import LDAPath

BARS, _, _ = make_bars_corpus(12, size=3, n_tokens=20, random_state=0)
EMPTY = sp.csr_matrix((3, 9))
CORPORA = {
    "bars": BARS,
    "with empty documents": sp.vstack([EMPTY, BARS[:3]]).tocsr(),
    "one word": sp.csr_matrix(np.array([[3.0], [2.0], [0.0]])),
    "one token": sp.csr_matrix(np.eye(9)[:1]),
    "tiny": BARS * 1e-12,
    "large": BARS * 1e10,
}
WAYS = [
    {},
    {"learning_method": "online", "learning_decay": 0.0},
    {"learn_doc_topic_prior": True},
    {"tempering": "annealed"},
    {"tempering": "global"},
    {"tempering": "local", "learning_method": "online"},
    {"total_samples": 1e-300},
    {"total_samples": 1e6},
]


def assert_finite(model, X):
    assert np.all(np.isfinite(model.components_) & (model.components_ > 0))
    assert np.all(np.isfinite(model.temperatures_))
    assert np.all(np.isfinite(model.doc_topic_prior_))
    assert np.isfinite(getattr(model, "elbo_", 0.0))
    assert not np.isnan(getattr(model, "bound_", 0.0))
    np.testing.assert_allclose(model.transform(X).sum(axis=1), 1.0, rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "dtype", "n_components", "priors"),
    [
        ("with empty documents", np.float64, 5, [None, 1e-20, 1e10]),
        ("with empty documents", np.float32, 1, [1e-20, 1e10]),
        *(large(name, np.float64, 5, [None, 1e-20, 1e-6, 1e3, 1e10]) for name in CORPORA),
    ],
)
def test_numbers_are_finite(name, dtype, n_components, priors):
    X = CORPORA[name].astype(dtype)
    for i, (alpha, eta) in enumerate(itertools.product(priors, priors)):
        options = WAYS[i % len(WAYS)] | {"doc_topic_prior": alpha, "topic_word_prior": eta}
        options |= {"max_iter": 2, "batch_size": 5, "random_state": 0}
        model, stream = (LatentDirichletAllocation(n_components, **options) for _ in range(2))
        assert_finite(model.fit(X), X)
        assert_finite(stream.partial_fit(X).partial_fit(X), X)


# ---- what is refused
@pytest.mark.parametrize("count", [10**7, 2**31, 2**40, 1e15])
@pytest.mark.parametrize("kind", [np.array, sp.csr_matrix])
def test_documents_too_long_for_likelihoods_are_refused(count, kind):
    model = LatentDirichletAllocation(2, max_iter=1, random_state=0).fit(BARS)
    X = np.ones((2, 9))
    X[1, 3:] = count / 6
    X = kind(np.ceil(X))
    message = "^X has a document of .* tokens, and likelihoods are of fewer than 1e.07; rescale"
    for name in ("path", "score", "score_samples", "perplexity", "completion_score"):
        with pytest.raises(ValueError, match=message):
            getattr(model, name)(X)
    with pytest.raises(ValueError, match=message):
        LDAPath(np.full((2, 9), 1 / 9), 0.5, X)
    assert np.all(np.isfinite(model.transform(X)))


def log_likelihood_of_one_word(probabilities, prior, n_tokens):
    """log p of a document that repeats a word, by the counts of its topics: a sum of closed
    forms.
    """
    n_topics = len(probabilities)
    others = itertools.product(range(n_tokens + 1), repeat=n_topics - 1)
    counts = np.array([(*some, n_tokens - sum(some)) for some in others if sum(some) <= n_tokens])
    logs = np.log(probabilities) * counts - gammaln(counts + 1)
    logs += gammaln(prior + counts) - gammaln(prior)
    total = n_topics * prior
    common = gammaln(n_tokens + 1) + gammaln(total) - gammaln(total + n_tokens)
    return logsumexp(logs.sum(axis=1)) + common


@pytest.mark.parametrize(
    ("topics", "n_tokens"),
    [([[0.6, 0.4], [0.4, 0.6]], 2000), ([[0.5, 0.5], [0.4, 0.6], [0.1, 0.9]], 200)],
)
def test_enumeration_of_long_documents_keeps_improbable_counts(topics, n_tokens):
    model = LatentDirichletAllocation.from_topics(topics, 0.05, partition_estimator=Exact())
    expected = log_likelihood_of_one_word(np.array(topics)[:, 0], 0.05, n_tokens)
    assert model.score_samples([[n_tokens, 0]])[0] == pytest.approx(expected, rel=1e-11)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("method", ["batch", "online"])
def test_documents_without_words_are_fitted_as_by_scikit_learn(method):
    X = np.zeros((3, 5))
    options = {"learning_method": method, "max_iter": 3, "random_state": 0}
    model = LatentDirichletAllocation(2, **options).fit(X)
    with np.errstate(invalid="ignore", divide="ignore"):
        reference = Reference(2, **options).fit(X)
    np.testing.assert_allclose(model.components_, reference.components_, rtol=1e-6)
    np.testing.assert_allclose(model.transform(X), reference.transform(X))
    np.testing.assert_array_equal(model.score_samples(X), 0.0)
    assert_finite(LatentDirichletAllocation(2, **options).partial_fit(X), X)
    with pytest.raises(TypeError, match="components_ must be real numbers"):
        model.components_ = "x"
