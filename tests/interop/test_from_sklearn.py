"""Models of scikit-learn keep what they learned."""

import numpy as np
import pytest
from sklearn.decomposition import NMF, LatentDirichletAllocation
from sklearn.neural_network import BernoulliRBM

import sklpf
from sklpf.datasets import make_bars_corpus
from sklpf.interop import from_sklearn

X = make_bars_corpus(120, random_state=0)[0].toarray()
TRAIN, TEST = X[:100], X[100:]
ROWS = (np.random.default_rng(0).random((60, 9)) < 0.4).astype(float)


@pytest.fixture(scope="module")
def rbm():
    return BernoulliRBM(5, learning_rate=0.2, n_iter=20, random_state=0).fit(ROWS)


# ---- topic models
@pytest.mark.parametrize(
    ("method", "priors"),
    [("batch", {}), ("online", {"doc_topic_prior": 0.3, "topic_word_prior": 0.01})],
)
def test_a_topic_model_keeps_topics_priors_and_shares(method, priors):
    options = {"learning_method": method, "batch_size": 30, "random_state": 0} | priors
    theirs = LatentDirichletAllocation(7, **options).fit(TRAIN)
    ours = from_sklearn(theirs)
    np.testing.assert_allclose(ours.components_, theirs.components_, rtol=1e-14)
    assert ours.doc_topic_prior_ == theirs.doc_topic_prior_
    assert ours.topic_word_prior_ == theirs.topic_word_prior_
    np.testing.assert_allclose(ours.transform(TEST), theirs.transform(TEST), rtol=0, atol=1e-6)
    assert isinstance(ours, sklpf.LatentDirichletAllocation)
    expected = theirs.get_params()
    for name in ("doc_topic_prior", "topic_word_prior"):
        expected[name] = getattr(theirs, f"{name}_")
    assert expected.items() <= ours.get_params().items()


def test_partial_fit_goes_on_where_theirs_stopped():
    options = {"learning_method": "online", "batch_size": 25, "random_state": 0}
    theirs = LatentDirichletAllocation(6, **options).fit(TRAIN)
    ours = from_sklearn(theirs)
    assert ours.n_batch_iter_ == theirs.n_batch_iter_
    found, expected = (model.partial_fit(TEST).components_ for model in (ours, theirs))
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert ours.random_state_ is not theirs.random_state_


# ---- RBMs
def test_scores_of_an_rbm_are_those_of_its_parameters(rbm):
    arrays = rbm.components_, rbm.intercept_visible_, rbm.intercept_hidden_
    known = sklpf.BernoulliRBM.from_parameters(*arrays)
    ours = from_sklearn(rbm)
    expected = known.score_samples(ROWS)
    np.testing.assert_allclose(ours.score_samples(ROWS), expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(ours.transform(ROWS), rbm.transform(ROWS), rtol=1e-12)
    assert ours.learning_rate == 0.2
    np.testing.assert_array_equal(arrays[0], rbm.components_)
    ours.partial_fit(ROWS[:10])
    assert not np.shares_memory(ours.components_, rbm.components_)


@pytest.mark.parametrize("model", [NMF(2), None, {"components_": np.eye(3)}, np.eye(3)])
def test_an_unknown_class(model):
    accepted = "sklearn.*.BernoulliRBM or sklearn.decomposition.LatentDirichletAllocation, got "
    with pytest.raises(TypeError, match=f"from_sklearn takes a fitted {accepted}"):
        from_sklearn(model)
