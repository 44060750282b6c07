"""LatentDirichletAllocation: what it finds, its likelihoods, streams, and what it refuses."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from scipy.special import psi
from sklearn.base import clone

from sklpf import AIS, Exact, LatentDirichletAllocation, Tempering, compare
from sklpf.datasets import make_bars_corpus
from sklpf.models import LDAPath
from sklpf.variational import temperature_ladder

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


@pytest.mark.parametrize(
    ("learned", "options"),
    [(True, {}), (False, {"learning_method": "online", "tempering": "global"})],
)
def test_a_prior_for_every_topic(learned, options):
    X, _, _ = make_bars_corpus(50, size=4, n_tokens=40, doc_topic_prior=0.3, random_state=0)
    options = options | {"learn_doc_topic_prior": learned, "max_iter": 5, "random_state": 0}
    models = (LatentDirichletAllocation(8, doc_topic_prior=p, **options) for p in (0.3, [0.3] * 8))
    one, same = (model.fit(X) for model in models)
    np.testing.assert_array_equal(same.components_, one.components_)
    assert same.elbo_ == one.elbo_
    given = np.linspace(0.1, 0.8, 8)
    model = LatentDirichletAllocation(8, doc_topic_prior=given, **options).fit(X)
    assert np.array_equal(model.doc_topic_prior_, given) != learned
    assert model.doc_topic_prior_ is not given
    empty = model.transform(sp.csr_matrix((1, 16)))[0]
    shares = model.doc_topic_prior_ / model.doc_topic_prior_.sum()
    np.testing.assert_allclose(empty, shares, rtol=1e-12)
    back = copy.deepcopy(model)  # the same topics in another order say the same
    back.components_, back.doc_topic_prior_ = model.components_[::-1], model.doc_topic_prior_[::-1]
    np.testing.assert_allclose(back.transform(X)[:, ::-1], model.transform(X), atol=1e-3)
    assert back.completion_score(X) == pytest.approx(model.completion_score(X), abs=1e-4)


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


def test_documents_without_whole_counts_have_no_likelihood(fitted):
    """Else TF-IDF, whose weights all round to 0, would have the score 0 and win a search."""
    model, X = copy.deepcopy(fitted[0]).set_params(partition_estimator=None), fitted[1]
    mixed = sp.vstack([X[:3], X[3:5] * 0.01]).tocsr()
    with pytest.warns(UserWarning, match="2 of 5 rows of X have no likelihood"):
        assert not compare(model, model, mixed).converged
    model.set_params(on_nonconvergence="nan")
    assert np.isnan(model.score(X[:3] * 0.01))
    assert np.isnan(model.perplexity(sp.vstack([X[:3], X[3:5] * 0.7])))
    model.set_params(on_nonconvergence="raise")
    with pytest.raises(ValueError, match="2 of 5 rows of X have no likelihood"):
        model.perplexity(mixed)


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


def test_the_shares_are_a_fixed_point_of_the_updates():
    alpha = np.array([0.1, 0.9, 0.2, 0.3, 2.0, 0.1])
    model = from_topics(PHI, alpha, mean_change_tol=1e-12, max_doc_update_iter=10_000)
    gamma = model.transform(WORDS[:1], normalize=False)[0]
    weights = np.exp(psi(gamma))[:, np.newaxis] * PHI
    np.testing.assert_allclose(gamma, alpha + (weights / weights.sum(axis=0)) @ WORDS[0], rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parameters_become_components(dtype):
    components = (0.2 + 50 * TOPICS).astype(dtype)
    model = from_topics(components, 0.3, 0.2)
    assert model.components_.dtype == dtype
    np.testing.assert_allclose(model.components_, components, rtol=4 * np.finfo(dtype).eps)
    assert (model.n_components, model.n_features_in_, model.n_iter_) == (6, 9, 0)
    assert model.transform(WORDS.astype(dtype)).dtype == dtype
    model.partial_fit(WORDS)
    assert np.abs(model.components_ - components).max() > 1


# ---- tempering
BARS, _, _ = make_bars_corpus(120, size=4, n_tokens=50, random_state=0)


def tempered(**options):
    defaults = {"learning_method": "online", "batch_size": 30, "max_iter": 5, "random_state": 0}
    options = defaults | options
    return LatentDirichletAllocation(8, **options).fit(BARS)


def test_a_schedule_falls_from_the_first_temperature_to_one():
    model = tempered(tempering=Tempering(initial_temperature=3.0, n_tempered=2))
    expected = np.r_[np.linspace(3.0, 1.0, 8, endpoint=False), np.ones(12)]
    np.testing.assert_allclose(model.temperatures_, expected)
    geometric = tempered(tempering=Tempering(schedule="geometric", n_tempered=0.5))
    np.testing.assert_allclose(geometric.temperatures_, [1.5, 1.5**0.5, *np.ones(18)])
    own = tempered(tempering=Tempering(schedule=[4.0, 2.0]))
    np.testing.assert_allclose(own.temperatures_, [4.0, 2.0, *np.ones(18)])


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


@pytest.mark.parametrize("tempering", ["global", "local"])
def test_a_learned_temperature_may_have_any_support(tempering):
    model = tempered(tempering=Tempering(tempering, initial_temperature=5.0, n_temperatures=20))
    ladder = temperature_ladder(5.0, 20)
    same = [model, clone(model).set_params(tempering__n_temperatures=ladder).fit(BARS)]
    np.testing.assert_array_equal(same[0].components_, same[1].components_)
    even = temperature_ladder(100.0, spacing="inverse")
    model = tempered(tempering=Tempering(tempering, n_temperatures=even))
    assert model.temperatures_[0] > 1
    assert not np.array_equal(model.components_, same[0].components_)
    with pytest.raises(ValueError, match="two temperatures that rise from 1"):
        tempered(tempering=Tempering(tempering, n_temperatures=[2.0, 4.0]))


def test_streams_learn_alike_whatever_fit_would_do():
    """Of as many documents as the stream has each batch is but a part: what is seen is smoothed."""
    X, _, _ = make_bars_corpus(120, size=4, n_tokens=5, random_state=0)
    tempering = Tempering("global", monotone=False, initial_temperature=3.0)
    options = {"tempering": tempering, "total_samples": 120, "batch_size": 30, "random_state": 0}
    batch, online = (
        LatentDirichletAllocation(8, learning_method=method, **options).partial_fit(X)
        for method in ("batch", "online")
    )
    np.testing.assert_array_equal(batch.temperatures_, online.temperatures_)
