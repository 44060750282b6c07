"""Documents about bars."""

import numpy as np
import pytest

from sklpf.datasets import make_bars_corpus


def test_topics_are_rows_and_columns_of_the_square():
    X, topics, shares = make_bars_corpus(50, size=3, n_tokens=20, random_state=0)
    pictures = topics.reshape(6, 3, 3) * 3
    for i in range(3):
        np.testing.assert_array_equal(pictures[i], np.eye(3)[i][:, None] * np.ones(3))
        np.testing.assert_array_equal(pictures[3 + i], pictures[i].T)
    assert X.shape == (50, 9)
    assert shares.shape == (50, 6)
    np.testing.assert_array_equal(X.sum(axis=1).A1, 20)
    np.testing.assert_allclose(shares.sum(axis=1), 1)


def test_words_are_as_frequent_as_their_documents_say():
    X, topics, shares = make_bars_corpus(4000, size=3, background=0.3, random_state=0)
    np.testing.assert_allclose(topics.sum(axis=1), 1)
    assert topics.min() == pytest.approx(0.3 / 9)
    residual = X.toarray() - 100 * shares @ topics
    error = np.sqrt(np.mean(X.toarray(), axis=0) / 4000)
    # 9 normal values: a false alarm in 2e5 runs
    assert np.all(np.abs(residual.mean(axis=0)) < 5 * error)


def test_a_seed_gives_the_same_documents():
    first, again, other = (make_bars_corpus(20, random_state=seed)[0] for seed in (0, 0, 1))
    assert (first != again).nnz == 0
    assert (first != other).nnz > 0


@pytest.mark.parametrize(
    "options",
    [
        {"n_samples": 0},
        {"size": 0},
        {"size": True},
        {"n_tokens": -1},
        {"doc_topic_prior": 0.0},
        {"doc_topic_prior": float("nan")},
        {"background": 1.5},
        {"background": float("nan")},
    ],
)
def test_parameters_that_can_not_be_used_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        make_bars_corpus(**options)
