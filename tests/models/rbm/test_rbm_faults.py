"""BernoulliRBM under conditions that break software: extreme weights, empty layers, other
processes.
"""

import contextlib
import warnings

import numpy as np
import pytest
from convergence import assert_right, may_not_converge
from interruption import bits
from known_problems import all_rows
from scipy.special import logsumexp
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from sklpf import AIS, BernoulliRBM, ParallelTempering

BINARY = (load_digits().data > 7).astype(np.float64)


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


# ---- training that fails


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("verbose", [0, 1])
def test_a_model_whose_training_diverged_is_not_fitted(method, verbose):
    options = {"learning_rate": 1e300, "batch_size": 100, "random_state": 0, "verbose": verbose}
    model = BernoulliRBM(3, **options)
    before = bits(model)
    with pytest.raises(ValueError, match="training diverged"):
        getattr(model, method)(BINARY)
    assert bits(model) == before
    for use in (model.transform, model.score, model.gibbs, check_is_fitted):
        with pytest.raises(NotFittedError):
            use(model if use is check_is_fitted else BINARY)
