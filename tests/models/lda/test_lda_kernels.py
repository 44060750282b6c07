"""Inference of documents' topics against the equations, written plainly."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import gammaln, logsumexp, polygamma, psi

from sklpf.models.lda import _vector_kernels as vector
from sklpf.models.lda.learning._inference import Settings, infer_documents, task_map, update_topics
from sklpf.models.lda.learning._topics import Topics
from sklpf.models.lda.learning._word_kernels import (
    expected_log,
)

TIGHT = Settings(tolerance=1e-12, max_iter=2000)


# ---- special functions
@pytest.mark.parametrize(
    ("ours", "reference", "tolerance"),
    [
        (vector.digamma, psi, 2e-11),
        (vector.log_gamma, gammaln, 2e-11),
        (vector.log64, np.log, 2e-15),
        (vector.trigamma, partial(polygamma, 1), 2e-11),
    ],
)
def test_special_functions(ours, reference, tolerance):
    x = np.logspace(-5, 7, 4001)
    values, expected = np.array([ours(value) for value in x]), reference(x)
    assert np.max(np.abs(values - expected) / np.maximum(1, np.abs(expected))) < tolerance


def test_exponential_of_digamma():
    x = np.logspace(-2.7, 6, 4001)
    np.testing.assert_allclose(
        [vector.exp_digamma(value) for value in x], np.exp(psi(x)), rtol=2e-11
    )
    assert 0 <= vector.exp_digamma(1e-10) < 1e-300  # not NaN


# ---- documents
def problem(n_topics, dtype=np.float64, n=25, n_words=50, seed=0):
    """Topics with concentrated words, and documents of two to 40 distinct ones, one of
    them empty.
    """
    rng = np.random.default_rng(seed)
    topics = Topics((rng.gamma(0.2, 5.0, (n_topics, n_words)) + 0.3).astype(dtype), 0.2)
    X = rng.poisson(rng.choice([0.05, 0.5, 3.0], (n, 1)) * rng.gamma(0.5, 2.0, (n, n_words)))
    X[3] = 0
    return topics, sp.csr_matrix(X.astype(dtype)), rng.gamma(0.5, 0.5, n_topics) + 0.05


def plain_document(topics, counts, alpha, gamma, inverse, settings):
    """One document by the equations: phi normalised word by word, gamma = alpha + b n phi."""
    components = topics.components.astype(np.float64)
    log_beta = psi(components) - psi(components.sum(axis=1, keepdims=True))
    for _ in range(settings.max_iter):
        log_phi = inverse * (log_beta.T + psi(gamma) - psi(gamma.sum()))
        phi = np.exp(log_phi - logsumexp(log_phi, axis=1, keepdims=True))
        last, gamma = gamma, alpha + inverse * counts @ phi
        if np.mean(np.abs(gamma - last)) < settings.tolerance:
            break
    log_phi = inverse * (log_beta.T + psi(gamma) - psi(gamma.sum()))
    value = logsumexp(log_phi, axis=1)
    phi = np.exp(log_phi - value[:, None])
    joint = counts @ np.sum(phi * log_phi / inverse, axis=1)
    return gamma, inverse * counts[:, None] * phi, counts @ value, joint


def infer(topics, X, alpha, gamma, inverse=1.0, settings=TIGHT, n_jobs=1):
    with task_map(n_jobs) as tasks:
        return infer_documents(
            topics, X, alpha, gamma, settings, tasks, inverse=inverse, joint=True
        )


@pytest.mark.parametrize(
    ("n_topics", "inverse"), [(1, 0.6), (3, "own"), (16, 1.0), (40, 0.1), (130, "own")]
)
def test_documents_settle_where_the_equations_do(n_topics, inverse):
    topics, X, alpha = problem(n_topics)
    n = X.shape[0]
    inverse = np.linspace(0.2, 1.0, n) if inverse == "own" else inverse
    start = np.random.default_rng(1).gamma(100, 0.01, (n, n_topics))
    found = infer(topics, X, alpha, start, inverse)
    counts = np.zeros((X.shape[1], n_topics))
    for d, b in enumerate(np.broadcast_to(inverse, n)):
        gamma, used, value, joint = plain_document(
            topics, X[d].toarray()[0], alpha, start[d], b, TIGHT
        )
        # dropped topics had less than 1e-6 tokens
        np.testing.assert_allclose(found.gamma[d], gamma, atol=2e-6 * n_topics)
        assert found.gamma[d].sum() == pytest.approx(
            alpha.sum() + b * X[d].sum(), abs=1e-6 * n_topics
        )
        assert found.values[d] == pytest.approx(value, rel=1e-6, abs=1e-5)
        assert found.joints[d] == pytest.approx(joint, rel=1e-5, abs=1e-4)
        counts += used
    before = topics.components
    with task_map(1) as tasks:
        update_topics(topics, found, 0.3, 7.0, tasks)
    expected = 0.7 * before + 0.3 * (topics.prior + 7.0 * counts.T)
    np.testing.assert_allclose(topics.components, expected, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(topics.sums, topics.components.sum(axis=1), rtol=1e-12)


def test_gamma_stays_where_no_step_is_allowed_and_empty_documents_get_the_prior():
    topics, X, alpha = problem(5)
    start = np.random.default_rng(1).gamma(2.0, 1.0, (X.shape[0], 5))
    np.testing.assert_array_equal(
        infer(topics, X, alpha, start, settings=Settings(1e-3, 0)).gamma, start
    )
    found = infer(topics, X, alpha, start)
    np.testing.assert_array_equal(found.gamma[3], alpha)
    assert found.values[3] == found.joints[3] == 0


# ---- bounds and moments
def test_bounds_are_those_of_the_definition():
    topics, X, alpha = problem(6)
    found = infer(topics, X, alpha, np.ones((X.shape[0], 6)))
    components = topics.components
    log_beta = psi(components) - psi(components.sum(axis=1, keepdims=True))
    prior = np.full(components.shape, topics.prior)
    assert topics.bound() == pytest.approx(
        np.sum(dirichlet_bound(prior, components, log_beta)), rel=1e-9
    )
    log_theta = psi(found.gamma) - psi(found.gamma.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(expected_log(found.gamma), log_theta, rtol=1e-9, atol=1e-9)
    expected = found.values + dirichlet_bound(
        np.broadcast_to(alpha, found.gamma.shape), found.gamma, log_theta
    )
    np.testing.assert_allclose(found.bound(alpha), expected, rtol=1e-9, atol=1e-8)


def dirichlet_bound(prior, values, expected):
    """E[log p - log q] of every row."""
    sums = gammaln(prior.sum(axis=1)) - gammaln(values.sum(axis=1))
    return np.sum((prior - values) * expected + gammaln(values) - gammaln(prior), axis=1) + sums
