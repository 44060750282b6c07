"""LatentDirichletAllocation: scores per word and perplexities with their intervals, and what a row
is called.
"""

import numpy as np
import pytest
from scipy.stats import t as student_t

from sklpf import BernoulliRBM, Exact, LatentDirichletAllocation, compare

EXACT = {"partition_estimator": Exact()}
TOPICS = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])
DOCUMENTS = np.array([[3, 0, 0], [1, 1, 1], [0, 2, 5], [0, 0, 0], [4, 1, 1]])


def model(**options):
    return LatentDirichletAllocation.from_topics(TOPICS, 0.5, random_state=0, **options)


def test_the_mean_per_word_is_that_of_all_words():
    exact = model(partition_estimator=Exact())
    words = exact.score_interval(DOCUMENTS, per="word")
    values, lengths = exact.score_samples(DOCUMENTS), DOCUMENTS.sum(axis=1)
    assert words.unit == "word"
    assert words.mean == pytest.approx(values.sum() / lengths.sum(), rel=1e-12)
    assert words.perplexity == pytest.approx(exact.perplexity(DOCUMENTS), rel=1e-12)
    assert words.perplexity_interval == pytest.approx(np.exp(np.negative(words.combined[::-1])))
    assert words.partition == (words.mean, words.mean)

    # the textbook error of a ratio of two means
    deviations = values - words.mean * lengths
    error = np.sqrt(np.sum(deviations**2) / (len(values) * (len(values) - 1))) / lengths.mean()
    half = student_t.ppf(0.975, len(values) - 1) * error
    np.testing.assert_allclose(words.sampling, (words.mean - half, words.mean + half), rtol=1e-12)


def test_the_interval_per_word_covers():
    """Long documents have other words than short ones, which a mean over documents of l / n would
    get wrong.
    """
    rng = np.random.default_rng(0)
    q = np.array([0.5, 0.3, 0.2])
    lengths = np.array([2, 6])
    p = np.array([[0.2, 0.2, 0.6], [0.6, 0.3, 0.1]])
    truth = lengths @ (p @ np.log(q)) / lengths.sum()
    one_topic = LatentDirichletAllocation.from_topics(q[None], 1.0, partition_estimator=Exact())
    inside = 0
    for _ in range(100):
        kinds = rng.integers(2, size=60)
        X = np.array([rng.multinomial(lengths[kind], p[kind]) for kind in kinds])
        low, high = one_topic.score_interval(X, per="word").combined
        inside += low <= truth <= high
    # Binomial(100, 0.95): at most 85 are a false alarm in 1e-4
    assert inside > 85


def test_what_has_no_likelihood_has_no_perplexity():
    weights = model(on_nonconvergence="nan").score_interval(DOCUMENTS * 0.7, per="word")
    assert np.isnan([weights.mean, weights.perplexity, *weights.perplexity_interval]).all()
    assert not weights.converged
    assert "no likelihood" in weights.summary()
    with pytest.raises(ValueError, match="X has no tokens"):
        model().score_interval(np.zeros((3, 3)), per="word")
    with pytest.raises(ValueError, match="level must lie strictly between 0 and 1"):
        model().score_interval(DOCUMENTS, 95, per="word")


def test_only_scores_per_word_have_a_perplexity():
    documents = model().score_interval(DOCUMENTS[:3])
    for name in ("perplexity", "perplexity_interval"):
        with pytest.raises(AttributeError, match='score per word: .*per="word"'):
            getattr(documents, name)


def test_two_models_are_compared_per_word():
    """The difference of two ratios has the error of the ratio of the difference."""
    both = TOPICS, TOPICS[::-1, ::-1]
    exact, other = (LatentDirichletAllocation.from_topics(t, 0.5, **EXACT) for t in both)
    found = compare(exact, other, DOCUMENTS, per="word")
    assert found.unit == "word"
    gains = exact.score_samples(DOCUMENTS) - other.score_samples(DOCUMENTS)
    lengths = DOCUMENTS.sum(axis=1)
    assert found.mean == pytest.approx(gains.sum() / lengths.sum(), rel=1e-12)
    error = np.std(gains - found.mean * lengths, ddof=1) / np.sqrt(len(gains)) / lengths.mean()
    half = student_t.ppf(0.975, len(gains) - 1) * error
    np.testing.assert_allclose(found.sampling, (found.mean - half, found.mean + half), rtol=1e-12)
    table = compare({"a": exact, "b": other}, X=DOCUMENTS, per="word")
    assert table.summary().startswith("log-likelihood per word")
    np.testing.assert_equal(
        vars(table.scores["a"]), vars(exact.score_interval(DOCUMENTS, per="word"))
    )
    rbm = BernoulliRBM.from_parameters(np.zeros((1, 3)), np.zeros(3), np.zeros(1))
    with pytest.raises(TypeError, match="per must be None, as model_a is a BernoulliRBM"):
        compare(rbm, rbm, DOCUMENTS > 0, per="word")


def test_empty_documents_in_a_mean_are_said():
    with pytest.warns(UserWarning, match="1 of 5 documents of X have no words"):
        assert model(**EXACT).score(DOCUMENTS) > model(**EXACT).score(DOCUMENTS[[0, 1, 2, 4]])
