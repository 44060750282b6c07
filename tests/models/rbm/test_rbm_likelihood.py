"""BernoulliRBM's log-likelihood: against enumeration, its error, and the log Z that it keeps."""

import contextlib
import copy
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from convergence import assert_right, may_not_converge
from known_problems import all_rows, random_layers
from reference_data import shared_data
from scipy.special import logsumexp
from scipy.stats import t as student_t
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from told import Says, Shifted

from sklpf import AIS, BernoulliRBM, ParallelTempering
from sklpf.scoring import ScoreInterval

BINARY = (load_digits().data > 7).astype(np.float64)


def small_model(n_components=4, n_features=5, seed=0, **parameters):
    rng, parameters = np.random.default_rng(seed), {"random_state": 0} | parameters
    return BernoulliRBM.from_parameters(*random_layers(rng, n_components, n_features), **parameters)


def brute_log_f(model, v):
    """log sum over all h of exp(-energy), one energy at a time."""
    h = all_rows(len(model.intercept_hidden_))
    energies = v @ model.components_.T @ h.T + h @ model.intercept_hidden_
    return v @ model.intercept_visible_ + logsumexp(energies, axis=1)


# ---- the numbers
@pytest.mark.parametrize(("n_components", "n_features"), [(4, 5), (7, 3), (1, 1), (1, 6), (6, 1)])
def test_score_samples_against_enumeration(n_components, n_features):
    model = small_model(n_components, n_features)
    v = all_rows(n_features)
    log_f = brute_log_f(model, v)
    expected = log_f - logsumexp(log_f)
    for rows in (v, sp.csr_matrix(v)):
        np.testing.assert_allclose(model.score_samples(rows), expected, atol=1e-12)
    assert model.log_partition_ == pytest.approx(logsumexp(log_f), abs=1e-12)
    assert isinstance(model.score(v), float)
    assert model.score(v) == pytest.approx(np.mean(expected), abs=1e-12)


@pytest.mark.parametrize("scale", [0.0, 0.01, 1.0, 30.0, 3000.0])  # the last one's exp overflows
@pytest.mark.parametrize(("n_components", "n_features"), [(4, 5), (7, 3), (1, 1)])
def test_pseudo_log_likelihood_against_enumeration(n_components, n_features, scale):
    model = small_model(n_components, n_features)
    model.components_ *= scale
    v = all_rows(n_features)
    log_f = brute_log_f(model, v)
    expected = np.zeros(len(v))
    for i in range(n_features):
        flipped = v.copy()
        flipped[:, i] = 1 - flipped[:, i]
        expected += log_f - np.logaddexp(log_f, brute_log_f(model, flipped))
    for rows in (v, sp.csr_matrix(v)):
        found = model.pseudo_log_likelihood(rows)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_reference_model_has_its_stored_log_z_and_log_likelihood():
    stored = shared_data("rbm/mnist_h10.npz")
    packed = shared_data("binary/mnist.npz")
    test = np.unpackbits(packed["test"], axis=1)[:, : int(packed["n_features"])]
    names = "components", "intercept_visible", "intercept_hidden"
    model = BernoulliRBM.from_parameters(*(stored[name] for name in names))
    assert model.score(test) == pytest.approx(-173.8761, abs=5e-5)
    assert model.log_partition_ == pytest.approx(float(stored["exact_log_partition"]), abs=1e-8)


# ---- the kept log Z
def test_log_z_does_not_exist_before_it_is_computed_and_nothing_but_score_computes_it():
    model = small_model(partition_estimator=Says(3.0, 0.1))
    Says.runs = 0
    parts = ("partition_", "partition_std_error_", "partition_interval_")
    names = [*(f"log_{part}" for part in parts), "partition_estimator_"]
    for name in names:
        assert not hasattr(model, name)
        with pytest.raises(AttributeError, match="call score or estimate_log_partition first"):
            getattr(model, name)
    for name in dir(model):
        getattr(model, name, None)
    repr(model), model._repr_html_(), pickle.dumps(model), clone(model), copy.deepcopy(model)
    model.transform(np.zeros((1, 5))), model.pseudo_log_likelihood(np.zeros((1, 5)))
    assert Says.runs == 0
    model.score(np.zeros((1, 5)))
    model.score_samples(np.zeros((1, 5)))
    assert Says.runs == 1
    assert all(hasattr(model, name) for name in names)
    assert model.log_partition_ == 3.0
    assert model.estimate_log_partition() is model
    assert Says.runs == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda model: model.fit(BINARY[:20, :5]),
        lambda model: model.partial_fit(BINARY[:20, :5]),
        lambda model: model.components_.__setitem__((0, 0), 9.0),
        lambda model: setattr(model, "intercept_hidden_", model.intercept_hidden_ + 1),
        lambda model: model.set_params(partition_estimator__log_partition=4.0),
        lambda model: model.set_params(partition_estimator=None),
    ],
    ids=["fit", "partial_fit", "weight", "intercept", "parameter", "estimator"],
)
def test_a_change_drops_the_kept_log_z(change):
    model = small_model(partition_estimator=Says(30.0, 0.1)).estimate_log_partition()
    change(model)
    assert not hasattr(model, "log_partition_")
    model.score(np.zeros((1, 5)))
    assert hasattr(model, "log_partition_")


# ---- trust
def test_on_nonconvergence():
    X = all_rows(5)
    model = small_model(partition_estimator=Says(3.0, 0.1, trusted=False))
    for _ in range(2):  # the kept value warns as well
        with pytest.warns(ConvergenceWarning, match="log Z is not to be trusted.*it was told so"):
            assert np.isfinite(model.score(X))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(on_nonconvergence="nan")
        assert np.isnan(model.score(X))
        assert np.all(np.isnan(model.score_samples(X)))
        assert np.isnan(model.score_interval(X).mean)
        model.estimate_log_partition()
        assert model.log_partition_ == 3.0
    model.set_params(on_nonconvergence="raise")
    for method in (model.score, model.score_samples, model.score_interval):
        with pytest.raises(RuntimeError, match="it was told so"):
            method(X)
    with pytest.raises(RuntimeError, match="it was told so"):
        model.estimate_log_partition()
    with pytest.raises(ValueError, match="on_nonconvergence"):
        model.set_params(on_nonconvergence="ignore").score(X)


# ---- intervals
def test_score_interval_adds_both_errors():
    model = small_model(partition_estimator=Says(30.0, std_error=0.2))
    X = all_rows(5)
    values = model.score_samples(X)
    interval = model.score_interval(X, level=0.9)
    assert isinstance(interval, ScoreInterval)
    assert interval.level == 0.9
    assert interval.mean == pytest.approx(values.mean())
    half = student_t.isf(0.05, 31) * values.std(ddof=1) / np.sqrt(32)
    common = 1.6448536269514722 * 0.2
    widths = {"sampling": half, "partition": common, "combined": np.hypot(half, common)}
    for name, width in widths.items():
        pair = getattr(interval, name)
        np.testing.assert_allclose(pair, (values.mean() - width, values.mean() + width), rtol=1e-12)
        assert all(type(end) is float for end in pair)


# ---- input
@pytest.mark.parametrize(
    ("missed", "std_error", "impossible"),
    [(0.0, 0.0, False), (0.05, 0.0, True), (0.05, 0.02, False), (0.1, 0.02, True)],
)
def test_probabilities_of_distinct_rows_sum_to_at_most_one(missed, std_error, impossible):
    X = np.repeat(all_rows(5), 2, axis=0)
    model = small_model(partition_estimator=Shifted(-missed, std_error))
    with may_not_converge():
        score = model.score_interval(X)
    assert score.converged == (not impossible)
    if impossible:
        assert "distinct rows sum to exp" in score.reasons[0]
        assert np.isnan(model.set_params(on_nonconvergence="nan").score(X))


# ---- enormous weights
def with_weight(value, **options):
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(6, 8))
    weights[2, 3] = value
    return BernoulliRBM.from_parameters(weights, rng.normal(size=8), rng.normal(size=6), **options)


@pytest.mark.parametrize("value", [1e4, -1e4, 1e30])
def test_enormous_weights_give_the_right_numbers(value):
    """Beside 1e30 nothing else has a digit left: here that cancels, and an alarm is raised."""
    model = with_weight(value)
    v = all_rows(8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with may_not_converge() if value == 1e30 else contextlib.nullcontext():
            log_p = model.score_samples(v)
        assert model.partition_estimator_.converged_ == (value != 1e30)
        pseudo = model.pseudo_log_likelihood(v)
        hidden = model.transform(v)
        drawn = model.sample(50, random_state=0)
    fields = v @ model.components_.T + model.intercept_hidden_
    log_f = v @ model.intercept_visible_ + np.logaddexp(0, fields).sum(axis=1)
    np.testing.assert_allclose(log_p, log_f - logsumexp(log_f), rtol=1e-12, atol=1e-9)
    assert np.all(np.isfinite(pseudo))
    assert np.all((hidden >= 0) & (hidden <= 1))
    assert value < 0 or np.all(drawn[:, 3] == 1)


@pytest.mark.parametrize("value", [1e4, -1e4])
@pytest.mark.parametrize("estimator", [AIS(), ParallelTempering(n_sweeps=1024)])
def test_sampling_with_an_enormous_weight_is_right(value, estimator):
    """5 standard errors with 9 degrees of freedom: false alarm 7e-4."""
    exact = with_weight(value).estimate_log_partition().log_partition_
    model = with_weight(value, partition_estimator=estimator, random_state=0)
    assert_right(model.estimate_log_partition().partition_estimator_, exact, 5)
