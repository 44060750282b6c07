"""Temperatures of latent Dirichlet allocation: log C(T) against enumeration, rising bounds, and the
phases of fit.
"""

import itertools

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from sklpf import LatentDirichletAllocation
from sklpf.datasets import make_bars_corpus
from sklpf.models.lda.learning._cooling import DocumentTempering
from sklpf.models.lda.learning._inference import Settings, infer_documents, task_map, update_topics
from sklpf.models.lda.learning._tempered_partition import (
    CorpusSize,
    corpus_log_partition,
    interpolation,
    log_partition,
    nodes,
)
from sklpf.models.lda.learning._topics import Topics
from sklpf.variational import GlobalTempering, temperature_ladder

K, V, ALPHA, ETA = 3, 5, 0.5, 0.4


def corpus(lengths, numbers=None, n_features=V, eta=ETA, alpha=(ALPHA,) * K):
    numbers = np.ones(len(lengths)) if numbers is None else np.asarray(numbers, dtype=float)
    return CorpusSize(
        np.asarray(lengths, dtype=float), numbers, n_features, eta, np.asarray(alpha, dtype=float)
    )


# ---- log C(T)


def log_moment(prior, powers):
    """Log E prod_i p_i^powers_i for p ~ Dirichlet(prior), over the last axis."""
    prior = np.broadcast_to(prior, powers.shape)
    return np.sum(gammaln(prior + powers) - gammaln(prior), axis=-1) + (
        gammaln(prior.sum(axis=-1)) - gammaln((prior + powers).sum(axis=-1))
    )


def enumerated(documents, temperature):
    """Log of the sum over the words and topics of all tokens of E prod (theta_z beta_zw)^s,
    documents sharing beta.
    """
    n, s = sum(documents), 1 / temperature
    z = np.array(list(itertools.product(range(K), repeat=n)))
    w = np.array(list(itertools.product(range(V), repeat=n)))
    shares = np.zeros(len(z))
    for part in np.split(np.arange(n), np.cumsum(documents)[:-1]):
        shares += log_moment(
            ALPHA, s * np.stack([np.sum(z[:, part] == k, axis=1) for k in range(K)], axis=1)
        )
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
    options = {"n_topic_draws": 1000, "n_proportion_draws": 1000}
    estimates = [
        log_partition([temperature], corpus(lengths, numbers), **options, random_state=i)[0]
        for i in range(3)
    ]
    # 3 runs within 0.02 of each other and of the truth; their spread over seeds is 0.002 to 0.005
    np.testing.assert_allclose(estimates, exact, atol=0.02)


def test_marginal_partition_is_the_one_summed_over_words():
    rng, n, s = np.random.default_rng(0), 100_000, 0.5
    theta, beta = rng.dirichlet(np.full(K, ALPHA), n), rng.dirichlet(np.full(V, ETA), (n, K))
    powers = np.einsum("nk,nkv->nv", theta, beta) ** s
    values = sum(
        np.prod(powers[:, list(words)], axis=1) for words in itertools.product(range(V), repeat=4)
    )
    error = values.std() / values.mean() / np.sqrt(n)
    assert np.log(values.mean()) == pytest.approx(2.80, abs=0.02)
    options = {"marginal": True, "n_topic_draws": 1000, "n_proportion_draws": 1000}
    estimate = log_partition([2.0], corpus([4]), **options, random_state=0)[0]
    # both within 5 standard errors of the truth, that of the estimate being 0.005: a false alarm in
    # 1e6 runs
    assert abs(estimate - np.log(values.mean())) < 5 * np.hypot(error, 0.005)


def test_one_topic_has_only_one_partition():
    options = {"n_topic_draws": 50, "random_state": 3}
    one = corpus([4, 7], [2, 1], alpha=[0.3])
    temperatures = [1.0, 1.5, 4.0]
    joint, marginal = (
        log_partition(temperatures, one, marginal=kind, **options) for kind in (False, True)
    )
    np.testing.assert_allclose(joint, marginal, rtol=1e-12, atol=1e-12)
    assert joint[0] == pytest.approx(0.0, abs=1e-12)
    assert np.all(np.diff(joint) > 0)


def test_interpolation_is_exact_for_polynomials_and_close_for_partitions():
    few, many = nodes(10.0), temperature_ladder(10.0, 57)
    assert (few[0], few[-1]) == pytest.approx((1.0, 10.0))
    matrix = interpolation(few, many)
    np.testing.assert_allclose(matrix @ np.log(few) ** 5, np.log(many) ** 5, atol=1e-10)
    text = corpus([80, 150], [30, 20], n_features=300, eta=0.02, alpha=np.full(10, 0.05))
    exact = np.array([log_partition(many, text, random_state=seed) for seed in range(4)])
    close = interpolation(few, many) @ log_partition(few, text, random_state=0)
    # averages of draws have kinks; they are left out by much less than the estimate moves from seed
    # to seed
    assert np.max(np.abs(close - exact[0])) < 0.5 * np.median(exact.std(axis=0))
    assert corpus_log_partition(many, text, False, 0)[0] == pytest.approx(0.0, abs=1e-9)


# ---- bounds of the whole
def sweep(topics, X, alpha, gamma, tempering):
    """One sweep of coordinate ascent; returns the bound before the topics move, gamma and U."""
    with task_map(1) as tasks:
        settings = Settings(1e-10, 3000)
        found = infer_documents(
            topics, X, alpha, gamma, settings, tasks, inverse=tempering.inverse, joint=True
        )
        objective = found.bound(alpha).sum() + topics.bound() + tempering.term
        update_topics(topics, found, 1.0, 1.0, tasks)
    return objective, found.gamma, found.joints.sum()


class Untempered:
    inverse, term = 1.0, 0.0

    def advance(self, joint):
        pass


@pytest.mark.parametrize("kind", ["none", "global", "monotone"])
def test_the_bound_rises_in_every_sweep(kind):
    X, _, _ = make_bars_corpus(40, size=4, n_tokens=40, random_state=0)
    rng, alpha, temperatures = (
        np.random.default_rng(0),
        np.full(8, 0.2),
        temperature_ladder(10.0, 30),
    )
    topics, gamma = Topics(rng.gamma(100, 0.01, (8, 16)), 0.2), rng.gamma(100, 0.01, (40, 8))
    tempering = Untempered()
    if kind != "none":
        log_c = log_partition(temperatures, corpus([40], [40], 16, 0.2, alpha), random_state=0)
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


def test_documents_have_temperatures_by_how_well_they_fit():
    rng = np.random.default_rng(0)
    topics = Topics(rng.gamma(0.3, 20.0, (4, 30)) + 0.1, 0.1)
    tempering = DocumentTempering(temperature_ladder(10.0, 50), 1)
    tempering.prepare(topics)
    gamma = rng.gamma(1.0, 3.0, (3, 4)) + 0.1
    lengths = np.full(3, 100.0)
    assert np.mean(1 / tempering.temperatures) == tempering.inverse
    good, bad = (tempering.inverses(np.full(3, u * 100), lengths, gamma) for u in (-1.0, -9.0))
    assert np.all(good > 0.9)
    assert np.all(bad < 0.2)
    # the definition, without interpolation
    powers = 1 / tempering.temperatures
    log_sums = topics.log_power_sums(powers)
    from sklpf.models.lda.learning._word_kernels import log_tempered_tokens

    scores = -4.0 * 100 * powers - 100 * log_tempered_tokens(gamma, powers, log_sums)
    weights = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
    np.testing.assert_allclose(
        tempering.inverses(np.full(3, -400.0), lengths, gamma), weights @ powers, rtol=1e-3
    )


# ---- phases
BARS, _, _ = make_bars_corpus(120, size=4, n_tokens=50, random_state=0)


def fitted(**options):
    options = {
        "learning_method": "online",
        "batch_size": 30,
        "max_iter": 5,
        "random_state": 0,
        **options,
    }
    return LatentDirichletAllocation(8, **options).fit(BARS)


def test_a_schedule_falls_from_the_first_temperature_to_one():
    model = fitted(tempering="annealed", initial_temperature=3.0, n_tempered=2)
    np.testing.assert_allclose(
        model.temperatures_, [*np.linspace(3.0, 1.0, 8, endpoint=False), *np.ones(12)]
    )
    geometric = fitted(tempering="annealed", temperature_schedule="geometric", n_tempered=0.5)
    np.testing.assert_allclose(geometric.temperatures_, [1.5, 1.5**0.5, *np.ones(18)])
    own = fitted(tempering="annealed", temperature_schedule=[4.0, 2.0])
    np.testing.assert_allclose(own.temperatures_, [4.0, 2.0, *np.ones(18)])


@pytest.mark.parametrize("tempering", ["annealed", "global", "local"])
@pytest.mark.parametrize("method", ["batch", "online"])
@pytest.mark.parametrize(("max_iter", "n_cold"), [(1, 2), (2, 4), (5, 8)])
def test_fit_always_ends_at_temperature_one(tempering, method, max_iter, n_cold):
    model = fitted(
        tempering=tempering, learning_method=method, max_iter=max_iter, n_temperatures=10
    )
    if method == "batch":
        n_cold = max(n_cold // 4, 1)
    assert (
        len(model.temperatures_)
        == max_iter * (4 if method == "online" else 1)
        == model.n_batch_iter_ - 1
    )
    np.testing.assert_array_equal(model.temperatures_[-n_cold:], 1.0)
    assert np.all(model.temperatures_[:-n_cold] > 1)
    assert np.isfinite(model.elbo_)


def test_streams_cool_after_as_many_documents_as_are_asked_for():
    model = LatentDirichletAllocation(
        8, tempering="annealed", n_tempered=2, total_samples=120, batch_size=40, random_state=0
    )
    for _ in range(3):
        model.partial_fit(BARS)
    np.testing.assert_allclose(
        model.temperatures_, [*np.linspace(1.5, 1.0, 6, endpoint=False), *np.ones(3)]
    )
    model.fit(BARS)  # begins anew
    assert model.temperatures_[0] == 1.5


def test_a_schedule_too_long_to_be_held_is_refused():
    model = LatentDirichletAllocation(8, tempering="annealed", total_samples=1e15, random_state=0)
    with pytest.raises(ValueError, match="can't be held; lower n_tempered or total_samples"):
        model.partial_fit(BARS)


def test_temperatures_that_can_not_be_used_are_refused():
    for options, message in [
        ({"temperature_schedule": [2.0, 0.5]}, "temperatures of at least 1"),
        ({"temperature_schedule": "cosine"}, "temperature_schedule"),
        ({"initial_temperature": 1.0}, "initial_temperature"),
        ({"n_tempered": -1.0}, "n_tempered"),
        ({"tempered_partition": "map"}, "tempered_partition"),
    ]:
        with pytest.raises(ValueError, match=message):
            fitted(tempering="annealed", **options)
