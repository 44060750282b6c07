"""Collapsed Gibbs sampling: the same for any number of jobs, and what it learns."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from test_lda import matched

from sklpf import LatentDirichletAllocation
from sklpf.datasets import make_bars_corpus

GIBBS = {"learning_method": "gibbs", "random_state": 0}
UNSETTLED = pytest.mark.filterwarnings("ignore:Gibbs sampling (has not settled|needs)")


# ---- priors
@UNSETTLED
def test_learned_priors_are_near_the_generators():
    rng = np.random.default_rng(0)
    alpha, eta = np.array([1.0, 0.5, 0.3, 0.2, 0.1]), 0.1
    topics = rng.dirichlet(np.full(200, eta), 5)
    shares = rng.dirichlet(alpha, 1000)
    X = np.array([rng.multinomial(100, row / row.sum()) for row in shares @ topics])
    options = {"learn_doc_topic_prior": True, "learn_topic_word_prior": True, "n_init": 3}
    options |= GIBBS
    model = LatentDirichletAllocation(5, doc_topic_prior=0.5, max_iter=100, **options).fit(X)
    order, overlaps = matched(model, topics)
    assert overlaps.min() > 0.8
    np.testing.assert_allclose(model.doc_topic_prior_[order], alpha, rtol=0.25)
    assert model.topic_word_prior_ == pytest.approx(eta, rel=0.15)


# ---- what is said and what is refused
TOPICS = np.random.default_rng(1).dirichlet(np.full(300, 0.05), 15)
SHARES = np.random.default_rng(2).dirichlet(np.full(15, 0.1), 50)
CORPUS = np.random.default_rng(3).multinomial(60, SHARES @ TOPICS)


@pytest.mark.parametrize(
    ("max_iter", "message"),
    [
        (0, "needs some 100 sweeps to settle: raise max_iter, now 0$"),
        (49, "needs some 100 sweeps to settle: raise max_iter, now 49$"),
        (50, r"has not settled: log p\(words, topics\) was 0\.0.* nats a token higher in the last"),
    ],
)
def test_a_fit_that_has_not_settled_says_so(max_iter, message):
    with pytest.warns(ConvergenceWarning, match=message):
        LatentDirichletAllocation(3, max_iter=max_iter, **GIBBS).fit(CORPUS)


def test_a_settled_fit_is_silent():
    X, _, _ = make_bars_corpus(200, size=3, n_tokens=50, doc_topic_prior=0.3, random_state=0)
    model = LatentDirichletAllocation(6, max_iter=400, **GIBBS).fit(X)
    assert not hasattr(model, "elbo_")
    variational = model.set_params(learning_method="batch").fit(X)
    assert not hasattr(variational, "log_joint_")


def test_what_gibbs_sampling_can_not_do_is_refused():
    X, model = CORPUS, LatentDirichletAllocation(3, **GIBBS)
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError, match="partial_fit") as caught:
        model.partial_fit(X)
    assert "Gibbs sampling takes all tokens again" in str(caught.value.__cause__)
    with pytest.raises(ValueError, match="tempering needs learning_method="):
        LatentDirichletAllocation(3, tempering="annealed", **GIBBS).fit(X)
    for options in ({"n_init": 2}, {"learn_topic_word_prior": True}):
        with pytest.raises(ValueError, match='and n_init > 1 need learning_method="gibbs"'):
            LatentDirichletAllocation(3, **options).fit(X)
    fractional = pytest.warns(UserWarning, match="fractional")
    with fractional, pytest.raises(ValueError, match="X has no whole counts"):
        model.fit(X * 0.01)
