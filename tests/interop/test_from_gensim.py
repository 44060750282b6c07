"""Topic models of gensim: by a stand-in with its documented attributes, and by itself where it is
installed.
"""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from sklpf.datasets import make_bars_corpus
from sklpf.interop import from_gensim

X, TOPICS, _ = make_bars_corpus(60, size=3, random_state=0)
X = X.toarray()


class LdaState:
    """What `LdaModel.state` is."""

    def __init__(self, components):
        self._components = components

    def get_lambda(self):
        return self._components


class LdaModel:
    """As gensim.models.LdaModel (4.4) has them: lambda in float32, alpha for topics, eta
    for words.
    """

    def __init__(self, components, alpha, eta):
        self.state = LdaState(np.asarray(components, np.float32))
        self.alpha, self.eta = np.asarray(alpha, np.float32), np.asarray(eta, np.float32)
        self.num_terms = self.state._components.shape[1]
        self.id2word = {i: str(i) for i in range(self.num_terms)}
        self.num_updates, self.gamma_threshold, self.iterations = 60, 0.001, 50


def stand_in(alpha=(0.1, 0.2, 0.3, 0.1, 0.1, 0.1)):
    return LdaModel(0.5 + 200 * TOPICS, alpha, np.full(X.shape[1], 0.5))


def own(model):
    """With gensim's ids as columns."""
    return from_gensim(model, vocabulary=model.id2word, random_state=0)


def test_topics_priors_and_the_way_of_inference_are_kept():
    theirs = stand_in()
    ours = own(theirs)
    np.testing.assert_allclose(ours.components_, theirs.state.get_lambda(), rtol=1e-6)
    np.testing.assert_array_equal(ours.doc_topic_prior_, theirs.alpha)
    assert ours.topic_word_prior_ == 0.5
    assert (ours.mean_change_tol, ours.max_doc_update_iter) == (0.001, 50)
    assert ours.transform(X).shape == (60, 6)


def test_columns_in_another_order():
    """By words in their order, a dict of their columns, and a dictionary of gensim."""
    order = np.random.default_rng(0).permutation(X.shape[1])

    class Dictionary:
        token2id = {str(word): column for column, word in enumerate(order)}

    columns = dict(sorted(Dictionary.token2id.items()))
    for vocabulary in (map(str, order), columns, Dictionary()):
        ours = from_gensim(stand_in(), vocabulary=vocabulary)
        np.testing.assert_array_equal(ours.components_, own(stand_in()).components_[:, order])


def test_columns_that_nobody_named_are_refused():
    with pytest.raises(TypeError, match=r"needs vocabulary.*get_feature_names_out.*model.id2word"):
        from_gensim(stand_in())


def test_untrained_and_foreign_models():
    untrained = stand_in()
    untrained.num_updates = 0
    with pytest.raises(NotFittedError, match="a fitted model, .*: call update with a corpus first"):
        from_gensim(untrained)
    with pytest.raises(TypeError, match="takes a fitted gensim.models.LdaModel or gensim.*, got "):
        from_gensim(LdaState(None))
    with pytest.raises(ValueError, match=r"doc_topic_prior must be .* or have the shape \(6,\)"):
        own(stand_in([1.0, 2.0]))


# ---- gensim itself
@pytest.fixture(scope="module")
def corpus():
    return [[(int(i), int(row[i])) for i in np.flatnonzero(row)] for row in X]


@pytest.mark.filterwarnings("ignore")  # gensim's own
@pytest.mark.parametrize(
    "priors", [{}, {"alpha": "asymmetric", "eta": 0.2}, {"alpha": "auto", "eta": "auto"}]
)
def test_gensim(corpus, priors):
    gensim = pytest.importorskip("gensim", reason="needs the dependency group interop")
    names = {i: str(i) for i in range(X.shape[1])}
    options = {"num_topics": 6, "id2word": names, "passes": 5, "random_state": 0} | priors
    options["dtype"] = np.float64
    theirs = gensim.models.LdaModel(corpus, gamma_threshold=1e-9, iterations=3000, **options)
    rows = gensim.matutils.corpus2csc(corpus, theirs.num_terms).T
    np.testing.assert_array_equal(rows.toarray(), X)
    ours = own(theirs)
    np.testing.assert_allclose(ours.exp_dirichlet_component_, theirs.expElogbeta, rtol=1e-9)
    gamma = theirs.inference(corpus)[0]
    # from random starts some documents settle elsewhere, and gensim itself gives them two answers
    same = np.abs(ours.transform(rows, normalize=False) - gamma).max(axis=1) < 1e-4
    assert same.mean() > 0.8
    double = LdaModel(theirs.state.get_lambda(), theirs.alpha, theirs.eta)
    assert {name: np.shape(value) for name, value in vars(double).items()} == {
        name: np.shape(getattr(theirs, name)) for name in vars(double)
    }
    np.testing.assert_allclose(own(double).components_, ours.components_, rtol=1e-6)
