"""LatentDirichletAllocation: what it finds, its likelihoods, streams, and what it refuses."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from sklpf import AIS, Exact, LatentDirichletAllocation, Tempering
from sklpf.datasets import make_bars_corpus
from sklpf.models import LDAPath

QUICK = AIS(n_temperatures=50, n_chains=16)
UNTRUSTED = pytest.mark.filterwarnings("ignore:likelihoods are not to be trusted")


@pytest.fixture(scope="module")
def fitted():
    X, _, _ = make_bars_corpus(300, size=4, n_tokens=40, doc_topic_prior=0.3, random_state=0)
    return LatentDirichletAllocation(8, doc_topic_prior=0.3, max_iter=30, random_state=0).fit(X), X


def matched(model, topics):
    """Which found topic is which true one, best matched, and their overlaps."""
    found = model.components_ / model.components_.sum(axis=1, keepdims=True)
    shared = np.minimum(found[:, None], topics).sum(axis=2).T
    order = linear_sum_assignment(-shared)[1]
    return order, shared[np.arange(len(topics)), order]


# ---- what it finds
@pytest.mark.parametrize(
    ("tempering", "method"), [(None, "batch"), ("local", "batch"), ("annealed", "online")]
)
def test_bars_are_found(tempering, method):
    X, topics, _ = make_bars_corpus(1000, size=4, n_tokens=60, doc_topic_prior=0.2, random_state=0)
    options = {"doc_topic_prior": 0.2, "topic_word_prior": 0.1, "max_iter": 40}
    options |= {"learning_method": method, "tempering": tempering}
    models = [
        LatentDirichletAllocation(8, random_state=seed, **options).fit(X) for seed in range(2)
    ]
    assert matched(max(models, key=lambda model: model.elbo_), topics)[1].mean() > 0.9


def test_a_learned_prior_tells_frequent_topics_from_rare_ones():
    rng = np.random.default_rng(0)
    _, topics, _ = make_bars_corpus(1, size=4)
    alpha = np.repeat([1.0, 0.1], 4)
    shares = rng.dirichlet(alpha, 1500)
    X = sp.csr_matrix(np.array([rng.multinomial(100, row / row.sum()) for row in shares @ topics]))
    options = {"topic_word_prior": 0.1, "random_state": 0, "max_iter": 40}
    options |= {"doc_topic_prior": 0.5}
    model = LatentDirichletAllocation(8, learn_doc_topic_prior=True, **options).fit(X)
    learned = model.doc_topic_prior_[matched(model, topics)[0]]
    assert learned[:4].min() > 2 * learned[4:].max()
    fixed = LatentDirichletAllocation(8, **options).fit(X)
    assert model.elbo_ > fixed.elbo_ + 100


# ---- likelihoods
@pytest.mark.parametrize(
    "options", [{}, {"learn_doc_topic_prior": True}, {"doc_topic_prior": [0.1, 0.5, 3.0]}]
)
def test_score_samples_are_enumerated_likelihoods_of_short_documents(options):
    X, _, _ = make_bars_corpus(200, size=3, n_tokens=4, random_state=0)
    model = LatentDirichletAllocation(3, random_state=0, **options).fit(X)
    topics = model.components_ / model.components_.sum(axis=1, keepdims=True)
    expected = Exact().fit(LDAPath(topics, model.doc_topic_prior_, X[:5])).log_partition_
    estimated = model.score_samples(X[:5])
    np.testing.assert_allclose(estimated, expected, atol=0.15)  # standard errors are about 0.01
    if not options:
        assert model.elbo_ < model.score_samples(X).sum()
        assert model.bound_ == pytest.approx(np.exp(-model.elbo_ / X.sum()))
    model.set_params(partition_estimator=Exact())
    np.testing.assert_allclose(model.score_samples(X[:5]), expected, rtol=1e-9)
    assert model.score(X[:5]) == pytest.approx(np.mean(expected), rel=1e-9)
    assert model.perplexity(X[:5]) == pytest.approx(np.exp(-np.sum(expected) / 20), rel=1e-9)


@UNTRUSTED
def test_empty_documents_are_certain_and_change_nothing(fitted):
    model, X = fitted
    model = model.set_params(partition_estimator=QUICK)
    padded = sp.vstack([sp.csr_matrix((1, X.shape[1])), X[:5], sp.csr_matrix((2, X.shape[1]))])
    values = model.score_samples(padded)
    np.testing.assert_array_equal(values[[0, 6, 7]], 0.0)
    assert model.perplexity(padded) == pytest.approx(model.perplexity(X[:5]), rel=1e-13)
    assert model.completion_score(padded) == pytest.approx(model.completion_score(X[:5]), rel=1e-13)
    np.testing.assert_allclose(model.transform(padded)[0], 1 / 8)


# ---- completion
def test_completion_of_a_document_does_not_depend_on_the_others(fitted):
    model, X = fitted
    halves = [model.completion_score(X[rows]) for rows in (slice(0, 100), slice(100, 300))]
    mean = (halves[0] * 100 + halves[1] * 200) / 300
    assert model.completion_score(X) == pytest.approx(mean, rel=1e-12)
    assert model.completion_score(X[::-1]) == pytest.approx(model.completion_score(X), rel=1e-12)
    random = LatentDirichletAllocation(8, max_iter=0, random_state=0).fit(X)
    assert model.completion_score(X) > random.completion_score(X) + 0.2


# ---- what is refused
def test_duplicates_and_zeros_of_sparse_counts_mean_what_they_say(fitted):
    model, X = fitted
    messy = sp.csr_matrix(([1.0, 2.0, 0.0, 3.0], [5, 1, 2, 5], [0, 4]), shape=(1, 16))
    tidy = np.zeros((1, 16))
    tidy[0, [1, 5]] = 2.0, 4.0
    np.testing.assert_array_equal(model.transform(messy), model.transform(tidy))
    np.testing.assert_array_equal(messy.data, [1.0, 2.0, 0.0, 3.0])  # not changed


# ---- known topics
WORDS, TOPICS, _ = make_bars_corpus(40, size=3, n_tokens=30, random_state=0)
WORDS = WORDS.toarray()
PHI = (TOPICS + 1e-3) / (TOPICS + 1e-3).sum(axis=1, keepdims=True)
from_topics = LatentDirichletAllocation.from_topics


def test_probabilities_are_known_exactly():
    model = from_topics(PHI, 0.3, random_state=0)
    np.testing.assert_allclose(np.exp(model.path(WORDS).log_topics).T, PHI, rtol=1e-13)
    np.testing.assert_allclose(model.exp_dirichlet_component_, PHI, rtol=1e-10)
    shares = model.transform(WORDS)
    np.testing.assert_allclose(shares, from_topics(1e9 * PHI, 0.3).transform(WORDS), atol=1e-5)
    model.partial_fit(WORDS)
    np.testing.assert_allclose(np.exp(model.path(WORDS).log_topics).T, PHI, rtol=1e-13)


# ---- tempering
BARS, _, _ = make_bars_corpus(120, size=4, n_tokens=50, random_state=0)


def tempered(**options):
    defaults = {"learning_method": "online", "batch_size": 30, "max_iter": 5, "random_state": 0}
    options = defaults | options
    return LatentDirichletAllocation(8, **options).fit(BARS)


@pytest.mark.parametrize("tempering", ["annealed", "global", "local"])
@pytest.mark.parametrize("method", ["batch", "online"])
@pytest.mark.parametrize(("max_iter", "n_cold"), [(1, 2), (5, 8)])
def test_fit_always_ends_at_temperature_one(tempering, method, max_iter, n_cold):
    options = {"learning_method": method, "max_iter": max_iter}
    model = tempered(tempering=Tempering(tempering, n_temperatures=10), **options)
    if method == "batch":
        n_cold = max(n_cold // 4, 1)
    n_batches = max_iter * (4 if method == "online" else 1)
    assert len(model.temperatures_) == n_batches == model.n_batch_iter_ - 1
    np.testing.assert_array_equal(model.temperatures_[-n_cold:], 1.0)
    assert np.all(model.temperatures_[:-n_cold] > 1)
    assert np.isfinite(model.elbo_)
