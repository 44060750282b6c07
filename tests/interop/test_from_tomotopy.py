"""Topic models of tomotopy: by a stand-in with its documented attributes, and by itself where it is
installed.
"""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer

from sklpf.datasets import make_bars_corpus
from sklpf.interop import from_tomotopy

X, TOPICS, _ = make_bars_corpus(60, size=3, random_state=0)
X = X.toarray()


class LDAModel:
    """As tomotopy.LDAModel (0.14) has them: counts plus eta in float32, alpha for topics."""

    def __init__(self, components, alpha, eta, used_vocabs):
        self._components = np.asarray(components, np.float32)
        self.k, self.eta = len(self._components), float(eta)
        self.alpha = np.asarray(alpha, np.float32)
        self.used_vocabs, self.global_step = used_vocabs, 100

    def get_topic_word_dist(self, topic_id, normalize=True):
        row = self._components[topic_id]
        return row / row.sum() if normalize else row


def stand_in():
    words = [str(i) for i in range(X.shape[1])]
    return LDAModel(0.1 + 200 * TOPICS, [0.1, 0.2, 0.3, 0.1, 0.1, 0.1], 0.1, words)


def own(model):
    """With the model's words as columns."""
    return from_tomotopy(model, vocabulary=list(model.used_vocabs), random_state=0)


def test_topics_and_priors_are_kept():
    theirs = stand_in()
    ours = own(theirs)
    np.testing.assert_allclose(ours.components_, theirs._components, rtol=1e-6)
    np.testing.assert_array_equal(ours.doc_topic_prior_, theirs.alpha)
    assert ours.topic_word_prior_ == 0.1
    topics = np.exp(ours.path(X).log_topics).T
    np.testing.assert_allclose(topics, [theirs.get_topic_word_dist(k) for k in range(6)], rtol=1e-5)


def test_untrained_and_foreign_models():
    untrained = stand_in()
    untrained.global_step = 0
    with pytest.raises(NotFittedError, match="a fitted model, .*: call add_doc and train first"):
        from_tomotopy(untrained)

    class HDPModel(LDAModel):  # has LDAModel above it, as tomotopy's own
        pass

    HDPModel.__module__ = "tomotopy.models"
    with pytest.raises(TypeError, match="takes a fitted tomotopy.LDAModel, got tomotopy.models"):
        from_tomotopy(HDPModel(TOPICS, np.ones(6), 0.1, []))


# ---- tomotopy itself
def texts():
    return [[f"w{i}" for i in np.flatnonzero(row) for _ in range(int(row[i]))] for row in X]


@pytest.mark.filterwarnings("ignore")  # tomotopy's own
def test_tomotopy():
    tomotopy = pytest.importorskip("tomotopy", reason="needs the dependency group interop")
    theirs = tomotopy.LDAModel(k=6, alpha=0.3, eta=0.05, seed=0)
    with pytest.raises(NotFittedError):
        from_tomotopy(theirs)
    for words in texts():
        theirs.add_doc(words)
    theirs.train(100, workers=1)
    ours = own(theirs)
    counts = ours.components_ - theirs.eta
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-3)
    np.testing.assert_allclose(counts.sum(axis=1), theirs.get_count_by_topics(), atol=1e-2)
    rows = CountVectorizer(vocabulary=list(theirs.used_vocabs), analyzer=list).transform(texts())
    assert rows.sum() == X.sum()
    made = [theirs.make_doc(words) for words in texts()]
    shares = np.array(theirs.infer(made, iterations=300)[0])
    # two approximations of one posterior, the sampler's noisy; topics in the other order would
    # differ by 0.2
    assert np.abs(ours.transform(rows) - shares).mean() < 0.06
    with pytest.raises(TypeError, match="HDPModel"):
        from_tomotopy(tomotopy.HDPModel())
    double = LDAModel(ours.components_, theirs.alpha, theirs.eta, theirs.used_vocabs)
    for name in ("k", "alpha", "eta", "global_step"):
        assert type(getattr(double, name)) is type(getattr(theirs, name))
    row, again = (model.get_topic_word_dist(1, normalize=False) for model in (theirs, double))
    np.testing.assert_allclose(row, again, rtol=1e-6)
    assert row.dtype == again.dtype
