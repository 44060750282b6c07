"""LatentDirichletAllocation as a scikit-learn estimator, and against scikit-learn's own."""

import numpy as np
import pytest
import scipy.sparse as sp
from marks import large
from sklearn.decomposition import LatentDirichletAllocation as Reference

from sklpf import LatentDirichletAllocation
from sklpf.datasets import make_bars_corpus

pytestmark = [
    pytest.mark.filterwarnings("ignore:X has fractional counts"),  # the checks pass random numbers
    pytest.mark.filterwarnings("ignore:.* rows of X have no likelihood"),
    # of documents of a thousand tokens
    pytest.mark.filterwarnings("ignore:likelihoods are not to be trusted"),
]


# ---- against scikit-learn's class
def corpus(n=300, seed=0):
    X, _, _ = make_bars_corpus(n, size=6, doc_topic_prior=0.3, background=0.1, random_state=seed)
    return X


@pytest.mark.parametrize(
    ("method", "make"), [("batch", sp.csr_matrix), ("online", lambda X: X.toarray())]
)
def test_a_seed_gives_the_topics_of_scikit_learn(method, make):
    """By `fit`, and by `partial_fit` that goes on with a stream of rows."""
    X = make(corpus())
    options = {"max_iter": 4, "batch_size": 40, "random_state": 3, "learning_method": method}
    options["total_samples"] = 300
    ours, theirs = (kind(12, **options).fit(X) for kind in (LatentDirichletAllocation, Reference))
    # documents settle to 1e-3, so that rounding decides at most some last steps
    for name in ("components_", "exp_dirichlet_component_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-3)
    assert ours.bound_ == pytest.approx(theirs.bound_, rel=1e-5)
    assert ours.elbo_ == pytest.approx(theirs.score(X), rel=1e-6)
    assert (ours.n_iter_, ours.n_batch_iter_) == (theirs.n_iter_, theirs.n_batch_iter_)
    assert (ours.doc_topic_prior_, ours.topic_word_prior_) == (1 / 12, 1 / 12)
    for begin in range(0, 300, 100):
        ours.partial_fit(X[begin : begin + 100])
        theirs.partial_fit(X[begin : begin + 100])
    np.testing.assert_allclose(ours.components_, theirs.components_, rtol=1e-3)
    assert ours.n_batch_iter_ == theirs.n_batch_iter_


@pytest.mark.parametrize(
    ("n_components", "priors"),
    [
        (3, {"doc_topic_prior": 1.0}),
        (5, {"topic_word_prior": 0.01}),
        large(12, {"doc_topic_prior": 0.01}),
    ],
)
def test_the_same_topics_give_documents_the_same_gamma(n_components, priors):
    """Also those with a word that was never seen, which has no say."""
    X = corpus().tolil()
    X[:, 7] = 0
    X, options = X.tocsr(), priors | {"random_state": 0}
    theirs = Reference(n_components, **options).fit(X)
    ours = LatentDirichletAllocation(n_components, max_iter=1, **options).fit(X)
    ours.components_ = theirs.components_
    new = corpus(200, seed=1)
    gamma = ours.transform(new, normalize=False)
    np.testing.assert_allclose(gamma, theirs._unnormalized_transform(new), atol=1e-5)
    np.testing.assert_allclose(ours.transform(new), theirs.transform(new), atol=1e-6)


def test_evaluations_end_fit_as_in_scikit_learn(capsys):
    X = corpus()
    options = {"evaluate_every": 2, "perp_tol": 0.3, "max_iter": 60, "random_state": 0}
    ours = LatentDirichletAllocation(6, **options, verbose=1).fit(X)
    theirs = Reference(6, **options).fit(X)
    assert ours.n_iter_ == theirs.n_iter_ < 60
    assert "perplexity:" in capsys.readouterr().out
