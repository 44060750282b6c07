"""Calibration of posterior model probabilities: right evidences pass, wrong ones don't."""

import numpy as np
import pytest
from scipy.stats import norm

from sklpf import PartitionResult
from sklpf.partition import Alarm
from sklpf.testing import check_bayes_factors

N = 10  # observations
SPREAD = 5.0  # of the mean's prior


def zero(rng):
    return rng.normal(size=N)


def free(rng):
    return rng.normal(rng.normal(scale=SPREAD), size=N)


MODELS = {"zero": zero, "free": free}


def exact(name, y):
    """log N(y; 0, 1 + SPREAD^2 of all pairs), or without."""
    common = SPREAD**2 if name == "free" else 0.0
    squares = y @ y - common / (1 + N * common) * y.sum() ** 2
    return -0.5 * (N * np.log(2 * np.pi) + np.log1p(N * common) + squares)


def bic(name, y):
    if name == "zero":
        return norm.logpdf(y).sum()
    return norm.logpdf(y, y.mean()).sum() - 0.5 * np.log(N)


def test_right_evidences_pass():
    check = check_bayes_factors(MODELS, exact, n_simulations=400)
    assert check.names == ("zero", "free")
    assert check.probabilities.shape == (400, 2)
    assert check.n_left_out == 0
    assert list(check.p_values) == ["zero", "free", "confidence"]
    assert np.mean(check.true) == pytest.approx(0.5, abs=0.1)
    weighted = check_bayes_factors(MODELS, exact, n_simulations=400, prior={"zero": 1, "free": 3})
    assert np.mean(weighted.true) == pytest.approx(0.75, abs=0.09)


def test_models_that_exclude_data_have_the_probability_0():
    """Uniform between 0 and 1, or 0 and 2: the first excludes half of the data of the second."""
    simulators = {"narrow": lambda rng: rng.random(), "wide": lambda rng: 2 * rng.random()}

    def evidence(name, y):
        return -np.log(2) if name == "wide" else 0.0 if y < 1 else -np.inf

    check = check_bayes_factors(simulators, evidence, n_simulations=400)
    assert check.n_left_out == 0
    assert np.mean(check.probabilities[:, 0] == 0) == pytest.approx(0.25, abs=0.1)
    with pytest.raises(AssertionError, match="probabilities are too sure|has the mean"):
        check_bayes_factors(
            simulators, lambda name, y: evidence(name, y + 0.5 * (name == "narrow"))
        )
    with pytest.raises(AssertionError, match="-inf by all models"):
        check_bayes_factors(simulators, lambda name, y: -np.inf)


def test_false_alarms_are_as_rare_as_said():
    """Of 100 checks with a rate of 5 % at most 14: 2e-4 by chance."""
    alarms = 0
    for seed in range(100):
        try:
            size = {"n_simulations": 50, "false_alarm": 0.05}
            check_bayes_factors(MODELS, exact, **size, random_state=seed)
        except AssertionError:
            alarms += 1
    assert alarms <= 14


def half_missed(name, y):
    return exact(name, y) - (name == "free") * np.log(2)


@pytest.mark.parametrize("log_evidence", [bic, half_missed])
def test_wrong_evidences_fail(log_evidence):
    with pytest.raises(AssertionError, match="posterior probability of"):
        check_bayes_factors(MODELS, log_evidence, n_simulations=1000)


def test_probabilities_that_are_too_sure_or_unsure_are_seen():
    """Two means that are symmetric about 0, so that the frequencies are right whatever is said."""
    models = {"low": lambda rng: rng.normal(-1.0), "high": lambda rng: rng.normal(1.0)}
    for factor, word in ((2.5, "too sure"), (0.3, "too unsure")):
        with pytest.raises(AssertionError, match=word):
            check_bayes_factors(
                models,
                lambda name, y: factor * norm.logpdf(y, -1.0 if name == "low" else 1.0),  # noqa: B023
                n_simulations=500,
            )


def test_estimates_that_did_not_converge_are_left_out():
    def estimated(name, y):
        alarms = (Alarm("few", "too few"),) if y[0] > 1 else ()
        return PartitionResult("SMC", exact(name, y), 0.01, alarms=alarms)

    check = check_bayes_factors(MODELS, estimated)
    assert 0 < check.n_left_out == 200 - len(check.true)
    with pytest.raises(AssertionError, match="no data set has converged"):
        check_bayes_factors(MODELS, lambda name, y: np.nan, n_simulations=10)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (([zero, free], exact), {}, TypeError, "dict of models' names"),
        (({"zero": zero}, exact), {}, ValueError, "at least two"),
        ((MODELS, exact), {"n_simulations": 2}, ValueError, "n_simulations"),
        ((MODELS, exact), {"prior": {"zero": 1}}, ValueError, "models zero, free"),
        ((MODELS, exact), {"prior": {"zero": 1, "free": 0}}, ValueError, "positive"),
        ((MODELS, lambda name, y: "3"), {}, TypeError, "must return a number"),
        ((MODELS, lambda name, y: np.inf), {}, ValueError, "must be finite or -inf, got .inf for"),
    ],
)
def test_bad_input_is_named(arguments, options, error, message):
    with pytest.raises(error, match=message):
        check_bayes_factors(*arguments, **options)
