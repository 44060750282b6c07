import itertools

import numpy as np
import pytest
from convergence import alarm_kinds, quietly
from joblib import parallel_config
from known_problems import random_layers
from reference_data import shared_data
from scipy.special import logsumexp
from scipy.stats import chi2
from sklearn import neural_network
from sklearn.pipeline import make_pipeline

from sklpf.models import RBMPath
from sklpf.partition import Exact


def make_path(n_visible, n_hidden, scale=1.0, weights="marginal"):
    parameters = random_layers(np.random.default_rng(n_visible), n_hidden, n_visible, scale)
    return RBMPath(*parameters, np.full(n_visible, 0.3), weights=weights)


def brute_force(path):
    """Log Z by summing over the states of both layers, the smaller one in a loop."""
    n_hidden, n_visible = path.components.shape
    sums = []
    for h in itertools.product([0, 1], repeat=n_hidden):
        field = path.intercept_visible + np.array(h) @ path.components
        sums.append(path.intercept_hidden @ h + np.logaddexp(0, field).sum())
    return logsumexp(sums)


@pytest.mark.parametrize("weights", ["marginal", "joint"])
@pytest.mark.parametrize(
    ("n_visible", "n_hidden", "scale"),
    [(1, 1, 1), (1, 7, 1), (7, 1, 1), (4, 10, 1), (600, 3, 1), (16, 15, 1)]
    + [(9, 6, 1e-8), (9, 6, 30.0), (9, 6, 1e4)],
)
def test_equals_brute_force_over_either_layer(n_visible, n_hidden, scale, weights):
    path = make_path(n_visible, n_hidden, scale, weights=weights)
    exact = Exact().fit(path)
    assert exact.log_partition_ == pytest.approx(brute_force(path), rel=1e-12, abs=1e-10)
    assert exact.log_partition_std_error_ == 0
    assert exact.log_partition_interval_ == (exact.log_partition_, exact.log_partition_)
    assert exact.converged_
    assert exact.result_.statement == "exact"
    assert exact.result_.diagnostics["n_states"] == 2 ** min(n_visible, n_hidden)


def test_blocks_give_the_same_bits_for_any_number_of_jobs():
    path = make_path(17, 40)
    assert path.n_enumeration_blocks == 8
    serial = Exact(n_jobs=1).fit(path).log_partition_
    with parallel_config(backend="threading"):
        assert Exact(n_jobs=2).fit(path).log_partition_ == serial
    v = states(17)
    fields = path.intercept_hidden + v @ path.components.T
    log_f = v @ path.intercept_visible + np.logaddexp(0, fields).sum(axis=1)
    assert serial == pytest.approx(logsumexp(log_f), rel=1e-13)


def states(n):
    return ((np.arange(2**n)[:, np.newaxis] >> np.arange(n)) & 1).astype(float)


@pytest.mark.parametrize(("n_visible", "n_hidden"), [(26, 26), (30, 500), (1100, 1100)])
def test_refuses_large_models_with_the_cost(n_visible, n_hidden):
    layers = np.zeros((n_hidden, n_visible)), np.zeros(n_visible), np.zeros(n_hidden)
    path = RBMPath(*layers, np.full(n_visible, 0.5))
    states = rf"2\*\*{n_visible} = .* states, about .* hours"
    message = rf"Exact would enumerate {states}; at most 2\*\*25.*25 units"
    with pytest.raises(ValueError, match=message):
        Exact().fit(path)
    with pytest.raises(ValueError, match=message):
        Exact().sample(path, 3, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("model", "advice"),
    [
        (neural_network.BernoulliRBM(), r"; sklpf.interop.from_sklearn\(model\) makes one of it$"),
        (make_pipeline(neural_network.BernoulliRBM()), r"; take the last step, pipeline\[-1\]"),
        (type("LdaModel", (), {})(), r"another library's topic model take sklpf.models.LDAPath\("),
        (lambda x: -x @ x, r"; GeometricPath\(log_density, base=…\) makes a path of a function$"),
    ],
)
def test_models_of_other_libraries_are_told_what_fits_them(model, advice):
    with pytest.raises(TypeError, match=advice):
        Exact().fit(model)


@pytest.mark.parametrize(("n_visible", "n_hidden"), [(4, 3), (3, 4), (5, 5)])
def test_samples_have_the_exact_distribution(n_visible, n_hidden):
    path, n = make_path(n_visible, n_hidden), 20_000
    state = Exact().sample(path, n, np.random.default_rng(1))
    rows = state.v
    last, again = np.ones(n, dtype=int), path.state_from_rows(rows)
    np.testing.assert_array_equal(path.log_f(state, last), path.log_f(again, last))
    assert rows.dtype == np.uint8
    v = states(n_visible)
    fields = path.intercept_hidden + v @ path.components.T
    log_f = v @ path.intercept_visible + np.logaddexp(0, fields).sum(axis=1)
    expected = n * np.exp(log_f - logsumexp(log_f))
    counts = np.bincount(rows @ (1 << np.arange(n_visible)), minlength=2**n_visible)
    common = expected >= 5
    observed = np.append(counts[common], counts[~common].sum())
    expected = np.append(expected[common], expected[~common].sum() + 1e-9)
    statistic = np.sum((observed - expected) ** 2 / expected)
    assert chi2.sf(statistic, len(observed) - 1) > 1e-5  # false alarm 1e-5


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "log_partition"), [("mnist_toy15", 216.0615441), ("mnist_h10", 226.1131549)]
)
def test_reference_models(name, log_partition):
    with shared_data(f"rbm/{name}.npz") as data:
        parameters = [data[key] for key in ("components", "intercept_visible", "intercept_hidden")]
        stored = float(data["exact_log_partition"])
    result = Exact().fit(RBMPath(*parameters, np.full(784, 0.5))).log_partition_
    assert result == pytest.approx(stored, abs=1e-8)
    assert result == pytest.approx(log_partition, abs=1e-6)


@pytest.mark.parametrize(("scale", "trusted"), [(1e4, True), (1e10, True), (1e16, False)])
def test_weights_too_large_for_float64_are_an_alarm(scale, trusted):
    exact = quietly(Exact(), make_path(4, 3, scale))
    assert exact.converged_ == trusted
    assert alarm_kinds(exact) == (set() if trusted else {"rounding"})
