"""Inference of documents' topics against the equations, written plainly; tempered partitions and
Gibbs sampling against enumeration.
"""

import itertools
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from marks import large
from scipy.special import betaln, gammaln, logsumexp, polygamma, psi
from scipy.stats import chi2

from sklpf.datasets import make_bars_corpus
from sklpf.models.lda import _vector_kernels as vector
from sklpf.models.lda.learning._gibbs import Chain, Tokens
from sklpf.models.lda.learning._posterior import Posterior, Topics, fit_prior
from sklpf.models.lda.learning._tempering import (
    CorpusSize,
    log_partition,
)
from sklpf.variational import GlobalTempering, temperature_ladder

K, V, ALPHA, ETA = 3, 5, 0.5, 0.4
TIGHT = {"tolerance": 1e-12, "max_iter": 2000}


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
    found = [vector.exp_digamma(value) for value in x]
    np.testing.assert_allclose(found, np.exp(psi(x)), rtol=2e-11)
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
    for _ in range(settings["max_iter"]):
        log_phi = inverse * (log_beta.T + psi(gamma) - psi(gamma.sum()))
        phi = np.exp(log_phi - logsumexp(log_phi, axis=1, keepdims=True))
        last, gamma = gamma, alpha + inverse * counts @ phi
        if np.mean(np.abs(gamma - last)) < settings["tolerance"]:
            break
    log_phi = inverse * (log_beta.T + psi(gamma) - psi(gamma.sum()))
    value = logsumexp(log_phi, axis=1)
    phi = np.exp(log_phi - value[:, None])
    joint = counts @ np.sum(phi * log_phi / inverse, axis=1)
    return gamma, inverse * counts[:, None] * phi, counts @ value, joint


def infer(topics, X, alpha, gamma, inverse=1.0, settings=TIGHT):
    return Posterior(topics, alpha, **settings).infer(X, gamma, inverse, joint=True)


@pytest.mark.parametrize(("n_topics", "inverse"), [(1, 0.6), (16, 1.0), large(130, "own")])
def test_documents_settle_where_the_equations_do(n_topics, inverse):
    topics, X, alpha = problem(n_topics)
    n = X.shape[0]
    inverse = np.linspace(0.2, 1.0, n) if inverse == "own" else inverse
    start = np.random.default_rng(1).gamma(100, 0.01, (n, n_topics))
    found = infer(topics, X, alpha, start, inverse)
    counts = np.zeros((X.shape[1], n_topics))
    for d, b in enumerate(np.broadcast_to(inverse, n)):
        x = X[d].toarray()[0]
        gamma, used, value, joint = plain_document(topics, x, alpha, start[d], b, TIGHT)
        # dropped topics had less than 1e-6 tokens
        np.testing.assert_allclose(found.gamma[d], gamma, atol=2e-6 * n_topics)
        total = alpha.sum() + b * x.sum()
        assert found.gamma[d].sum() == pytest.approx(total, abs=1e-6 * n_topics)
        assert found.values[d] == pytest.approx(value, rel=1e-6, abs=1e-5)
        assert found.joints[d] == pytest.approx(joint, rel=1e-5, abs=1e-4)
        counts += used
    before = topics.components
    Posterior(topics, alpha, **TIGHT).update(found, 0.3, 7.0)
    expected = 0.7 * before + 0.3 * (topics.prior + 7.0 * counts.T)
    np.testing.assert_allclose(topics.components, expected, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(topics.sums, topics.components.sum(axis=1), rtol=1e-12)


# ---- tempered partitions
def corpus(lengths, numbers=None, n_features=V, eta=ETA, alpha=(ALPHA,) * K):
    numbers = np.ones(len(lengths)) if numbers is None else np.asarray(numbers, dtype=float)
    lengths, alpha = (np.asarray(values, dtype=float) for values in (lengths, alpha))
    return CorpusSize(lengths, numbers, n_features, eta, alpha)


def log_moment(prior, powers):
    """Log E prod_i p_i^powers_i for p ~ Dirichlet(prior), over the last axis."""
    prior = np.broadcast_to(prior, powers.shape)
    totals = gammaln(prior.sum(axis=-1)) - gammaln((prior + powers).sum(axis=-1))
    return np.sum(gammaln(prior + powers) - gammaln(prior), axis=-1) + totals


def enumerated(documents, temperature):
    """Log of the sum over the words and topics of all tokens of E prod (theta_z beta_zw)^s,
    documents sharing beta.
    """
    n, s = sum(documents), 1 / temperature
    z = np.array(list(itertools.product(range(K), repeat=n)))
    w = np.array(list(itertools.product(range(V), repeat=n)))
    shares = np.zeros(len(z))
    for part in np.split(np.arange(n), np.cumsum(documents)[:-1]):
        counts = np.stack([np.sum(z[:, part] == k, axis=1) for k in range(K)], axis=1)
        shares += log_moment(ALPHA, s * counts)
    totals = np.empty(len(z))
    for i, topics in enumerate(z):
        counts = np.zeros((len(w), K, V))
        for t, topic in enumerate(topics):
            counts[np.arange(len(w)), topic, w[:, t]] += s
        totals[i] = shares[i] + logsumexp(log_moment(ETA, counts).sum(axis=1))
    return logsumexp(totals)


@pytest.mark.parametrize(("documents", "temperature"), [([4], 2.0), ([3, 1], 5.0)])
def test_joint_partition_is_the_enumerated_one(documents, temperature):
    exact = enumerated(documents, temperature)
    if documents == [4] and temperature == 2.0:
        assert exact == pytest.approx(4.09, abs=0.01)
    lengths, numbers = np.unique(documents, return_counts=True)
    options = {"n_topic_draws": 1000}
    size = corpus(lengths, numbers)
    estimates = [log_partition([temperature], size, **options, random_state=i)[0] for i in range(3)]
    # 3 runs within 0.02 of each other and of the truth; their spread over seeds is 0.002 to 0.005
    np.testing.assert_allclose(estimates, exact, atol=0.02)
    # By default a model as small as this has 200 draws of topics, and a standard deviation of 0.018
    # and 0.03: a false alarm in 1e-6 each.
    estimate = log_partition([temperature], size, random_state=0)[0]
    assert abs(estimate - exact) < 0.15


def test_marginal_partition_is_the_one_summed_over_words():
    rng, n, s = np.random.default_rng(0), 100_000, 0.5
    theta, beta = rng.dirichlet(np.full(K, ALPHA), n), rng.dirichlet(np.full(V, ETA), (n, K))
    powers = np.einsum("nk,nkv->nv", theta, beta) ** s
    texts = itertools.product(range(V), repeat=4)
    values = sum(np.prod(powers[:, list(words)], axis=1) for words in texts)
    error = values.std() / values.mean() / np.sqrt(n)
    assert np.log(values.mean()) == pytest.approx(2.80, abs=0.02)
    options = {"marginal": True, "n_topic_draws": 1000}
    estimate = log_partition([2.0], corpus([4]), **options, random_state=0)[0]
    # both within 5 standard errors of the truth, that of the estimate being 0.005: a false alarm in
    # 1e6 runs
    assert abs(estimate - np.log(values.mean())) < 5 * np.hypot(error, 0.005)


@pytest.mark.parametrize("prior", [1e-2, 1e-4])
def test_the_partition_of_small_priors_is_the_closed_form_of_two_topics(prior):
    """z-bound 5 with the estimate's own variance in closed form: the draws of shares near a half
    are rare, so that the distribution is no normal one; a false alarm in 1e3 runs.
    """
    n, s = 4, 0.5

    def log_moment_of_tokens(m):
        j = np.arange(m + 1)
        log_binomials = -np.log(m + 1) - betaln(m - j + 1, j + 1)
        betas = betaln(prior + s * j, prior + s * (m - j)) - betaln(prior, prior)
        return logsumexp(log_binomials + betas)

    exact = log_moment_of_tokens(n)
    n_draws = 200 * 1000
    error = np.sqrt(np.expm1(log_moment_of_tokens(2 * n) - 2 * exact) / n_draws)
    one_word = corpus([n], n_features=1, alpha=(prior, prior))
    estimate = log_partition([1 / s], one_word, n_topic_draws=200, random_state=0)[0]
    assert abs(estimate - exact) < 5 * error


@pytest.mark.parametrize("start", [1e-3, 0.3, 100.0])
def test_a_prior_of_short_documents_is_learned_from_any_start(start):
    rng = np.random.default_rng(0)
    shares = rng.dirichlet([0.05, 0.1, 0.3], 300)
    counts = np.array([rng.multinomial(n, p) for n, p in zip(rng.integers(1, 4, 300), shares)])
    alpha = np.full(3, start)
    for _ in range(5):
        alpha = fit_prior(alpha, alpha + counts, 1.0)
    totals = counts.sum(axis=1, keepdims=True)
    slopes = np.mean(psi(alpha + counts), axis=0) - psi(alpha)
    slopes += psi(alpha.sum()) - np.mean(psi(alpha.sum() + totals))
    np.testing.assert_allclose(slopes, 0.0, atol=1e-9)  # finite alpha: the likeliest
    assert alpha.max() < 1


def sweep(topics, X, alpha, gamma, tempering):
    """One sweep of coordinate ascent; returns the bound before the topics move, gamma and U."""
    posterior = Posterior(topics, alpha, tolerance=1e-10, max_iter=3000)
    found = posterior.infer(X, gamma, tempering.inverse, joint=True)
    objective = found.bound(alpha).sum() + topics.bound() + tempering.term
    posterior.update(found, 1.0, 1.0)
    return objective, found.gamma, found.joints.sum()


class Untempered:
    inverse, term = 1.0, 0.0

    def advance(self, joint):
        pass


@pytest.mark.parametrize("kind", ["none", "global", "monotone"])
def test_the_bound_rises_in_every_sweep(kind):
    X, _, _ = make_bars_corpus(40, size=4, n_tokens=40, random_state=0)
    rng, alpha = np.random.default_rng(0), np.full(8, 0.2)
    temperatures = temperature_ladder(10.0, 30)
    topics, gamma = Topics(rng.gamma(100, 0.01, (8, 16)), 0.2), rng.gamma(100, 0.01, (40, 8))
    tempering = Untempered()
    if kind != "none":
        size = corpus([40], [40], 16, 0.2, alpha)
        log_c = log_partition(temperatures, size, n_topic_draws=5, random_state=0)
        tempering = GlobalTempering(temperatures, log_c, monotone=kind == "monotone")
    objectives, inverses = [], []
    for _ in range(60):
        objective, gamma, joint = sweep(topics, X, alpha, gamma, tempering)
        inverses.append(float(tempering.inverse))
        tempering.advance(joint)
        objectives.append(objective)
    # topics are dropped under 1e-6 tokens, which costs up to 1e-6 nats for each of 8 in 40
    # documents
    assert np.min(np.diff(objectives)) > -1e-3
    assert objectives[-1] - objectives[0] > 10
    if kind == "monotone":
        assert np.min(np.diff(inverses)) >= 0


# ---- Gibbs sampling
TINY = Tokens(np.array([0, 1, 1, 0, 2, 2], np.int32), np.array([0, 3, 3, 5, 6]), 3)


def log_joint(corpus, z, alpha, eta):
    """log p(words, topics), from its definition."""
    value, n_topics = 0.0, len(alpha)
    for begin, end in itertools.pairwise(corpus.indptr):
        counts = np.bincount(z[begin:end], minlength=n_topics)
        value += np.sum(gammaln(alpha + counts) - gammaln(alpha))
        value += gammaln(alpha.sum()) - gammaln(alpha.sum() + end - begin)
    for k in range(n_topics):
        counts = np.bincount(corpus.words[z == k], minlength=corpus.n_features)
        value += np.sum(gammaln(eta + counts) - gammaln(eta))
        value += gammaln(corpus.n_features * eta) - gammaln(corpus.n_features * eta + counts.sum())
    return value


@pytest.mark.parametrize(("alpha", "eta"), [([0.3, 0.9], 0.4), ([2.0, 5.0], 0.05)])
def test_the_sampler_has_the_distribution_of_the_enumerated_topics(alpha, eta):
    alpha, states = np.array(alpha), np.array(list(itertools.product(range(2), repeat=6)))
    expected = np.exp([log_joint(TINY, z, alpha, eta) for z in states])
    expected /= expected.sum()
    n_chains, seen = 4000, np.zeros(64)
    for c in range(n_chains):
        chain = Chain(TINY, alpha, eta, (c, 7), 20)
        for chain.step in range(20):
            chain.sweep()
        seen[chain.z @ 2 ** np.arange(5, -1, -1)] += 1
    statistic = np.sum((seen - n_chains * expected) ** 2 / (n_chains * expected))
    assert chi2.sf(statistic, 63) > 1e-6  # a false alarm in a million runs
