"""Models with known topics, and priors that differ between topics."""

import numpy as np
import pytest
from scipy.special import psi

from sklpf import LatentDirichletAllocation
from sklpf.datasets import make_bars_corpus

X, TOPICS, _ = make_bars_corpus(40, size=3, n_tokens=30, random_state=0)
X = X.toarray()
PHI = (TOPICS + 1e-3) / (TOPICS + 1e-3).sum(axis=1, keepdims=True)
from_topics = LatentDirichletAllocation.from_topics


def test_probabilities_are_known_exactly():
    model = from_topics(PHI, 0.3, random_state=0)
    np.testing.assert_allclose(np.exp(model.path(X).log_topics).T, PHI, rtol=1e-13)
    np.testing.assert_allclose(model.exp_dirichlet_component_, PHI, rtol=1e-10)
    shares = model.transform(X)
    np.testing.assert_allclose(shares, from_topics(1e9 * PHI, 0.3).transform(X), atol=1e-5)
    model.partial_fit(X)
    np.testing.assert_allclose(np.exp(model.path(X).log_topics).T, PHI, rtol=1e-13)


def test_the_shares_are_a_fixed_point_of_the_updates():
    alpha = np.array([0.1, 0.9, 0.2, 0.3, 2.0, 0.1])
    model = from_topics(PHI, alpha, mean_change_tol=1e-12, max_doc_update_iter=10_000)
    gamma = model.transform(X[:1], normalize=False)[0]
    weights = np.exp(psi(gamma))[:, np.newaxis] * PHI
    np.testing.assert_allclose(gamma, alpha + (weights / weights.sum(axis=0)) @ X[0], rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parameters_become_components(dtype):
    components = (0.2 + 50 * TOPICS).astype(dtype)
    model = from_topics(components, 0.3, 0.2)
    assert model.components_.dtype == dtype
    np.testing.assert_allclose(model.components_, components, rtol=4 * np.finfo(dtype).eps)
    assert (model.n_components, model.n_features_in_, model.n_iter_) == (6, 9, 0)
    assert model.transform(X.astype(dtype)).dtype == dtype
    model.partial_fit(X)
    assert np.abs(model.components_ - components).max() > 1
