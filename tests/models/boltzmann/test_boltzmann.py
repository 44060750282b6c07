"""BoltzmannMachine: its densities, moves and log Z against enumeration and closed forms."""

import numpy as np
import pytest
import scipy.sparse as sp
from cliques import model_with_clique
from convergence import alarm_kinds, assert_right, quietly
from known_problems import all_rows
from lattices import CRITICAL_COUPLING, kaufman, lattice
from marks import large
from scipy.special import logsumexp

from sklpf import AIS, SMC, BoltzmannMachine, Exact, ParallelTempering
from sklpf.models import BoltzmannPath
from sklpf.testing import check_path, check_transition
from sklpf.transitions import Gibbs

Z_BOUND = 4.5  # of one estimate: a false alarm in 150,000


def random_model(n_features=8, seed=0, scale=1.0, **parameters):
    rng = np.random.default_rng(seed)
    couplings = np.triu(rng.normal(scale=scale, size=(n_features, n_features)), 1)
    intercept = rng.normal(size=n_features)
    couplings += couplings.T
    return BoltzmannMachine.from_parameters(couplings, intercept, random_state=seed, **parameters)


def log_f_by_hand(model, X):
    pairs = 0.5 * np.einsum("ri,ij,rj->r", X, model.couplings_, X)
    return X @ model.intercept_ + pairs + model.offset_


# -- densities
def test_enumeration_agrees_with_sums_by_hand():
    for n_features in (1, 2, 8, 16):  # of 16 units there are four blocks
        model = random_model(n_features)
        log_f = log_f_by_hand(model, all_rows(n_features))
        found = model.estimate_log_partition().log_partition_
        assert found == pytest.approx(logsumexp(log_f), abs=1e-9)
        some = slice(None, None, max(1, 2**n_features // 50))
        scores = model.score_samples(all_rows(n_features)[some])
        np.testing.assert_allclose(scores, log_f[some] - logsumexp(log_f), rtol=0, atol=1e-9)


def test_spins_and_units_are_one_model():
    rng = np.random.default_rng(1)
    couplings = np.triu(rng.normal(size=(6, 6)), 1)
    fields = rng.normal(size=6)
    model = BoltzmannMachine.from_spins(couplings + couplings.T, fields, random_state=0)
    spins = 2 * all_rows(6) - 1
    log_f = np.einsum("ri,ij,rj->r", spins, couplings, spins) + spins @ fields
    np.testing.assert_allclose(log_f_by_hand(model, all_rows(6)), log_f, rtol=0, atol=1e-10)
    assert model.estimate_log_partition().log_partition_ == pytest.approx(logsumexp(log_f))


def test_path_and_gibbs_sweeps_keep_the_contract():
    torus = BoltzmannPath(sp.csr_array(0.8 * lattice(3, 3)), np.zeros(9), np.full(9, 0.4))
    for path in (random_model(5).path(), torus):
        check_path(path)
        path = path.with_ladder(np.linspace(0, 1, 9))
        check_transition(path, Gibbs(), variables=lambda state: state.x)


# -- log Z
@pytest.mark.large
def test_sixteen_by_sixteen_at_the_critical_point():
    """Within 0.1 nats and Z_BOUND standard errors of Kaufman's log Z."""
    model = BoltzmannMachine.from_spins(CRITICAL_COUPLING * lattice(16, 16), random_state=0)
    result = model.estimate_log_partition().partition_estimator_.result_
    error = abs(result.log_partition - kaufman(16, 16, CRITICAL_COUPLING))
    assert result.converged
    assert error < 0.1
    assert error < Z_BOUND * result.std_error


# ---- modes that samplers miss
def of_a_user(model):
    """The path from a base that is not ours to replace."""
    return model.path(base=model.mean_)


@pytest.mark.parametrize("seed", range(3))
def test_a_base_of_ours_that_misses_a_clique_is_replaced(seed):
    """Z_BOUND standard errors each: a false alarm in 100,000."""
    model = model_with_clique(seed, share=0.08)
    tempering = ParallelTempering(random_state=seed).fit(model)
    assert_right(tempering, Exact().fit(model).log_partition_, Z_BOUND)


@pytest.mark.parametrize("estimator", [ParallelTempering(), large(SMC())])
def test_a_clique_that_is_missed_raises_an_alarm(estimator):
    """Its share is 8 %: log Z is low by .083, twenty standard errors. No run may be trusted that
    is off by five standard errors and .03 nats.
    """
    missed = []
    for seed in range(4):
        path = of_a_user(model_with_clique(seed, share=0.08))
        exact = Exact().fit(path).log_partition_
        fitted = quietly(estimator.set_params(random_state=seed), path)
        off = abs(fitted.log_partition_ - exact)
        assert not (fitted.converged_ and off > max(5 * fitted.log_partition_std_error_, 0.03))
        missed.append("missed-region" in alarm_kinds(fitted))
    assert sum(missed) >= 2


@pytest.mark.parametrize("n_chains", [20, 100])
def test_few_chains_see_that_a_small_clique_is_missed(n_chains):
    """Of 4 %, of which 20 or 100 chains that meet none of it are no evidence. Reverse chains from
    the clique have weights a thousand times as large as the others.
    """
    for seed in range(3):
        path = of_a_user(model_with_clique(seed, share=0.04))
        ais = quietly(AIS(n_chains, random_state=seed), path)
        assert "missed-region" in alarm_kinds(ais)
        off = ais.log_partition_ - Exact().fit(path).log_partition_
        assert abs(off) < 3 * ais.log_partition_std_error_  # the error knows of it


def test_entropy_of_few_and_of_many_units():
    """95 % intervals that are three times as wide miss once in 10^8."""
    model = random_model(10, seed=4)
    log_p = log_f_by_hand(model, all_rows(10))
    log_p -= logsumexp(log_p)
    entropy = -np.exp(log_p) @ log_p
    exact = model.entropy_interval()
    assert exact.mean == pytest.approx(entropy, rel=1e-12)
    assert exact.combined == (exact.mean, exact.mean)
    model.set_params(partition_estimator=ParallelTempering(random_state=0))
    found = model.entropy_interval(2000, random_state=0)
    low, high = found.combined
    assert low < found.mean < high
    assert abs(found.mean - entropy) < 1.5 * (high - low)
    for shown in (exact, found):
        assert "nats of entropy" in str(shown)
        assert "per row" not in str(shown)


# -- learning
def test_pseudo_likelihood_is_the_sum_of_conditionals():
    model, X = random_model(5), all_rows(5)
    log_f = log_f_by_hand(model, X)
    total = np.zeros(len(X))
    for i in range(5):
        flipped = X.copy()
        flipped[:, i] = 1 - X[:, i]
        total += log_f - np.logaddexp(log_f, log_f_by_hand(model, flipped))
    np.testing.assert_allclose(model.pseudo_log_likelihood(X), total, rtol=0, atol=1e-10)


def test_both_algorithms_find_the_model_that_made_the_rows():
    """The mean log-likelihood of the truth less that of a fit is about 36 / (2 n) = .002 nats on
    new rows, where 36 is the number of parameters; ten times that is refused.
    """
    truth = random_model(8, seed=5, scale=0.5)
    X, new = truth.sample(9000, random_state=0), truth.sample(20_000, random_state=1)
    for algorithm in ("pl", "pcd"):
        model = BoltzmannMachine(algorithm, random_state=0).fit(X)
        loss = np.mean(truth.score_samples(new) - model.score_samples(new))
        assert -0.005 < loss < 0.02


def test_couplings_off_the_graph_are_zero():
    """Also with a sparse graph, of which the couplings are sparse too, and the same."""
    X = random_model(6, seed=7).sample(500, random_state=0)
    graph = np.eye(6, k=1) + np.eye(6, k=-1)
    for algorithm in ("pl", "pcd"):
        options = {"max_iter": 20, "random_state": 0}
        model = BoltzmannMachine(algorithm, graph=graph, **options).fit(X)
        np.testing.assert_array_equal(model.couplings_ != 0, graph != 0)
        sparse = BoltzmannMachine(algorithm, graph=sp.csr_array(graph), **options).fit(X)
        assert sp.issparse(sparse.couplings_)
        np.testing.assert_allclose(sparse.couplings_.toarray(), model.couplings_, atol=1e-6)
        assert sparse.score(X) == pytest.approx(model.score(X), abs=1e-6)


@pytest.mark.parametrize("n", [20, 40])
def test_changed_sparse_couplings_need_another_log_partition(n):
    ring = sp.csr_array(np.roll(np.eye(n), 1, axis=0) + np.roll(np.eye(n), -1, axis=0))
    for coupling in (0.2, 0.4):
        model = BoltzmannMachine.from_spins(coupling * ring, random_state=0)
        model.estimate_log_partition()
        model.couplings_ = 2 * model.couplings_
        assert not hasattr(model, "log_partition_")


@pytest.mark.parametrize("softened", [False, True])
def test_penalised_pseudo_likelihood_is_at_its_maximum(softened):
    """The objective's slope is 0 where a coupling is not, and at most the penalty elsewhere; also
    of rows of probabilities.
    """
    X = random_model(6, seed=8).sample(300, random_state=0)
    if softened:
        X = 0.2 * np.random.default_rng(0).random(X.shape) + 0.8 * X
    for l1_ratio in (0.0, 0.5, 1.0):
        model = BoltzmannMachine(alpha=0.1, l1_ratio=l1_ratio, tol=0.0, max_iter=200).fit(X)
        fields = X @ model.couplings_ + model.intercept_
        residuals = X - 1 / (1 + np.exp(-fields))
        slopes = (X.T @ residuals + residuals.T @ X) / len(X)
        slopes -= 0.1 * (1 - l1_ratio) * model.couplings_
        pairs = np.triu_indices(6, 1)
        slope, coupling = slopes[pairs], model.couplings_[pairs]
        on = coupling != 0
        np.testing.assert_allclose(slope[on], 0.1 * l1_ratio * np.sign(coupling[on]), atol=1e-4)
        assert np.all(np.abs(slope[~on]) <= 0.1 * l1_ratio + 1e-4)
        np.testing.assert_allclose(residuals.mean(axis=0), 0, atol=1e-4)


# -- what is refused
def test_bad_bases_are_named():
    model = BoltzmannMachine.from_parameters(sp.csr_array((2, 2)), mean=[0.5, 0.5])
    with pytest.raises(ValueError, match='base must be "data", "uniform" or an array of means'):
        model.path("prior")
    with pytest.raises(ValueError, match="base must hold means of the visible units"):
        model.path([2.0, 0.5])
