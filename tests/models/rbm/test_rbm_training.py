"""Training of BernoulliRBM: what one step does, against scikit-learn, and what the numbers must not
depend on.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn import neural_network
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from sklpf import BernoulliRBM

DIGITS = load_digits().data / 16
BINARY = (DIGITS > 0.5).astype(np.float64)
STATE = ("components_", "intercept_visible_", "intercept_hidden_", "h_samples_")


def start(n_features, n_components, n_chains, seed=0):
    """A model whose visible biases of ±50 make the negative phase's visible units certain."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(0, 0.3, (n_components, n_features))
    visible = np.where(rng.random(n_features) < 0.4, 50.0, -50.0)
    layers = weights, visible, rng.normal(size=n_components), np.full(n_features, 0.5)
    options = {"batch_size": n_chains, "learning_rate": 0.3, "random_state": 0}
    return BernoulliRBM.from_parameters(*layers, **options), rng


def step_in_numpy(weights, visible, hidden, X, n_chains, learning_rate):
    """One step in float64 with negative units that follow from the visible biases alone."""
    negative = np.repeat((visible > 0)[np.newaxis].astype(float), n_chains, axis=0)
    h_positive, h_negative = (expit(v @ weights.T + hidden) for v in (X, negative))
    of_weights = h_positive.T @ X / len(X) - h_negative.T @ negative / n_chains
    return (
        weights + learning_rate * of_weights,
        visible + learning_rate * (X.mean(axis=0) - negative.mean(axis=0)),
        hidden + learning_rate * (h_positive.mean(axis=0) - h_negative.mean(axis=0)),
    )


def weights_of(model):
    return model.components_, model.intercept_visible_, model.intercept_hidden_


@pytest.mark.parametrize(("n_features", "n_components"), [(1, 1), (5, 3), (37, 130), (65, 64)])
@pytest.mark.parametrize("kind", ["binary", "real", "sparse"])
def test_a_step_is_scikit_learns(n_features, n_components, kind):
    model, rng = start(n_features, n_components, n_chains=9)
    X = (rng.random((9, n_features)) < 0.3).astype(float)  # as many rows as chains
    X = X * rng.random(X.shape) if kind == "real" else X
    theirs = neural_network.BernoulliRBM(n_components, learning_rate=0.3, random_state=0)
    for name in (*STATE, "n_features_in_"):
        setattr(theirs, name, np.copy(getattr(model, name)))
    theirs.partial_fit(X)
    model.partial_fit(sp.csr_matrix(X) if kind == "sparse" else X)
    for ours, expected in zip(weights_of(model), weights_of(theirs)):
        np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=3e-6)


@pytest.mark.parametrize(("n_rows", "weight_decay"), [(1, 0.0), (13, 0.5)])
def test_chains_do_not_outweigh_few_rows_and_decay_shrinks_weights_alone(n_rows, weight_decay):
    model, rng = start(37, 20, n_chains=9)
    X = (rng.random((n_rows, 37)) < 0.3).astype(float)
    before = np.copy(model.components_)
    expected, *biases = step_in_numpy(*weights_of(model), X, 9, 0.3)
    expected -= 0.3 * weight_decay * before
    model.set_params(weight_decay=weight_decay).partial_fit(X)
    for ours, theirs in zip(weights_of(model), (expected, *biases)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=3e-6)


def test_chains_are_drawn_from_their_distribution():
    n_chains = 4000
    model, rng = start(n_features=20, n_components=30, n_chains=n_chains)
    visible, weights = model.intercept_visible_ > 0, model.components_
    mean = expit(visible @ weights.T + model.intercept_hidden_)
    model.partial_fit(np.zeros((1, 20)))
    z = (model.h_samples_.mean(axis=0) - mean) / np.sqrt(mean * (1 - mean) / n_chains)
    # 30 numbers, each beyond 4.5 with probability 7e-6: false alarm 2e-4
    assert np.all(np.abs(z) < 4.5)

    layers = weights, rng.normal(size=20), np.zeros(30), np.full(20, 0.5)
    options = {"batch_size": n_chains, "learning_rate": 1.0, "random_state": 0}
    model = BernoulliRBM.from_parameters(*layers, **options)
    hidden = rng.random((n_chains, 30)) < 0.5
    model.h_samples_ = hidden.astype(float)
    before = model.intercept_visible_.copy()
    mean = expit(hidden @ weights + before)
    model.partial_fit(np.zeros((1, 20)))
    # the step of the biases is minus the mean over chains
    drawn = (before - model.intercept_visible_) * n_chains
    z = (drawn - mean.sum(axis=0)) / np.sqrt((mean * (1 - mean)).sum(axis=0))
    assert np.all(np.abs(z) < 4.5)  # 20 numbers: false alarm 1.4e-4


def fitted(X, **options):
    return BernoulliRBM(20, n_iter=3, random_state=3, **options).fit(X)


def assert_same_bits(model, other):
    for name in (*STATE, "visible_mean_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(other, name))


def test_sparse_rows_in_any_form():
    X = BINARY[:100]
    csr = sp.csr_matrix(X)
    twice = np.repeat(csr.data / 2, 2), np.repeat(csr.indices, 2), 2 * csr.indptr
    doubled = sp.csr_matrix(twice, shape=X.shape)
    assert not doubled.has_canonical_format
    zeros = csr.copy()
    zeros.data[:5] = 0
    assert_same_bits(fitted(doubled), fitted(X))
    assert_same_bits(fitted(zeros), fitted(zeros.toarray()))
    np.testing.assert_array_equal(doubled.data, 0.5)  # the caller's matrix is left as it was


def test_gibbs_draws_from_the_conditional_distributions():
    # the hidden unit is on
    model = BernoulliRBM.from_parameters([[2.0, -2.0]], [0.0, 0.5], [50.0], random_state=0)
    drawn = model.set_output(transform="pandas").gibbs(np.zeros((20000, 2)))
    assert isinstance(drawn, np.ndarray)  # as scikit-learn's
    assert drawn.dtype == bool
    mean = expit([2.0, -1.5])
    z = (drawn.mean(axis=0) - mean) / np.sqrt(mean * (1 - mean) / 20000)
    assert np.all(np.abs(z) < 4.5)  # 2 numbers: false alarm 1.4e-5


# ---- averages, schedules and chains
def weights_after_every_update(X, n_updates, **options):
    """The weights (three arrays) after every call of partial_fit with all rows."""
    model = BernoulliRBM(5, batch_size=len(X), random_state=0, **options)
    return [[part.copy() for part in weights_of(model.partial_fit(X))] for _ in range(n_updates)]


@pytest.mark.parametrize("average", [True, 90])
def test_components_are_the_average_of_the_weights(average):
    X = BINARY[:30]
    plain = weights_after_every_update(X, 6, average=False)
    averaged = weights_after_every_update(X, 6, average=average)
    # 30 rows an update, so that an average from 90 rows on begins with the third
    first, power = (0, 2) if average is True else (2, 0)
    for n_updates in (1, 3, 6):
        counted = plain[first:n_updates] or plain[n_updates - 1 : n_updates]
        weight = rising(len(counted), power)
        for part, expected in zip(averaged[n_updates - 1], zip(*counted)):
            mean = np.tensordot(weight, expected, 1)
            np.testing.assert_allclose(part, mean, rtol=1e-5, atol=1e-6)


def rising(n, power):
    """Weights of n values whose running average moves by (power + 1) / (power + k) of the distance
    to the k-th.
    """
    weights = np.zeros(n)
    for k in range(1, n + 1):
        share = (power + 1) / (power + k)
        weights *= 1 - share
        weights[k - 1] = share
    return weights


def test_partial_fit_refuses_a_linear_schedule():
    model = BernoulliRBM(3, learning_rate_schedule="linear", random_state=0)
    with pytest.raises(ValueError, match='learning_rate_schedule="constant"'):
        model.partial_fit(BINARY[:10])


def test_training_begins_at_independent_units_with_the_means_of_the_data():
    X = BINARY[:200]
    means = (X.sum(axis=0) + 1) / 202
    model = BernoulliRBM(3, n_iter=0, random_state=0).fit(X)
    np.testing.assert_allclose(expit(model.intercept_visible_), means, rtol=1e-6)
    columns = np.mean(X @ np.log(means) + (1 - X) @ np.log1p(-means))
    assert model.score(X) == pytest.approx(columns, abs=0.05)  # for weights of sd 0.01
    zeros = BernoulliRBM(3, n_iter=0, intercept_init="zeros", random_state=0).fit(X)
    np.testing.assert_array_equal(zeros.intercept_visible_, 0)
    np.testing.assert_array_equal(zeros.components_, model.components_)


# ---- scatter between passes
@pytest.mark.filterwarnings("ignore:the model is worse than independent columns")
@pytest.mark.filterwarnings("ignore:training has not settled")
def test_scatter_is_that_of_the_log_likelihood():
    """At a constant rate without averages, whose weights may score below independent columns after
    one pass of several.
    """
    estimates, truths = [], []
    options = {"learning_rate": 0.1, "average": False, "intercept_init": "zeros"}
    for seed in range(5):
        scores = []
        model = BernoulliRBM(12, n_iter=20, random_state=seed, **options)
        model.fit(BINARY[:1000])
        # the same passes: a constant rate does not know how many follow
        for n_iter in range(16, 21):
            shorter = BernoulliRBM(12, n_iter=n_iter, random_state=seed, **options)
            scores.append(shorter.fit(BINARY[:1000]).score(BINARY[:1000]))
        line = np.polyval(np.polyfit(range(5), scores, 1), range(5))
        truths.append(np.sqrt(np.sum((scores - line) ** 2) / 3))
        estimates.append(model.log_likelihood_scatter_)
    ratios = np.array(estimates) / truths
    assert 1 / 2 < np.median(ratios) < 2
    assert np.median(truths) > 0.1


def test_fit_says_once_that_training_has_not_settled():
    restless = BernoulliRBM(12, n_iter=10, average=False, random_state=0)
    with pytest.warns(ConvergenceWarning, match="not settled: .* or choose average=True") as said:
        restless.fit(BINARY[:1000])
    assert len(said) == 1
    assert said[0].filename == __file__
    BernoulliRBM(12, n_iter=10, random_state=0).fit(BINARY[:1000])
