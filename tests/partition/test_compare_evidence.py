"""Bayes factors and posterior probabilities of models, with their errors."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import t as student_t

from sklpf import PartitionResult, compare_evidence
from sklpf.partition import Alarm


def result(value, error=0.0, degrees=np.inf, **options):
    return PartitionResult("HAIS", value, error, degrees, **options)


def test_two_models_are_exact():
    """The log odds are the difference, and its interval is that of the probability."""
    comparison = compare_evidence({"b": result(-3.0, 0.3), "a": result(-2.0, 0.4)})
    found = comparison.models
    assert list(found) == ["a", "b"]
    assert found["a"].difference == 0
    assert found["b"].difference == pytest.approx(-1)
    assert found["b"].difference_std_error == pytest.approx(0.5)
    half = 1.959964 * 0.5
    assert repr(comparison).splitlines()[0].split()[:4] == [
        "model",
        "log",
        "evidence",
        "difference",
    ]
    assert found["b"].difference_interval == pytest.approx((-1 - half, -1 + half), rel=1e-6)
    assert found["a"].probability == pytest.approx(expit(1))
    interval = expit(1 - half), expit(1 + half)
    assert found["a"].probability_interval == pytest.approx(interval, rel=1e-6)
    other = found["b"].probability_interval
    assert other == pytest.approx((expit(-1 - half), expit(-1 + half)), rel=1e-6)


def test_degrees_of_freedom_are_welchs():
    found = compare_evidence({"a": result(0, 0.3, 4), "b": result(-1, 0.4, 9)}).models["b"]
    degrees = 0.25**2 / (0.09**2 / 4 + 0.16**2 / 9)
    width = found.difference_interval[1] - found.difference
    assert width == pytest.approx(student_t.ppf(0.975, degrees) * 0.5)


def test_intervals_of_probabilities_cover():
    """500 sets of four estimates: each covers in 91 to 99 %, 4 standard errors around 95."""
    truth = np.array([-10.0, -10.5, -11.0, -13.0])
    errors = np.array([0.1, 0.2, 0.05, 0.3])
    shares = np.exp(truth - np.logaddexp.reduce(truth))
    rng = np.random.default_rng(0)
    covered = np.zeros(4)
    for _ in range(500):
        noisy = truth + errors * rng.standard_normal(4)
        models = compare_evidence({str(i): result(noisy[i], errors[i]) for i in range(4)}).models
        for i in range(4):
            low, high = models[str(i)].probability_interval
            covered[i] += low <= shares[i] <= high
    assert np.all((covered > 0.91 * 500) & (covered < 0.99 * 500))


def test_prior_probabilities():
    results = {"a": result(-2.0), "b": result(-3.0)}
    found = compare_evidence(results, prior={"b": 2.0, "a": 1.0}).models
    assert found["a"].probability == pytest.approx(1 / (1 + 2 * np.exp(-1)))
    assert found["a"].probability_interval == (found["a"].probability,) * 2
    assert sum(model.probability for model in found.values()) == pytest.approx(1)


def test_a_model_without_a_number_is_last():
    found = compare_evidence({"none": result(np.nan, np.nan), "b": result(-1.0), "c": result(-2.0)})
    assert list(found.models) == ["b", "c", "none"]
    assert found.models["c"].difference == -1.0
    assert not found.models["none"].converged


def test_what_is_not_to_be_trusted():
    results = {
        "fine": result(0.0, 0.1),
        "alarmed": result(-1.0, 0.1, alarms=(Alarm("kind", "seen", "remedy"),)),
        "bound": result(-2.0, 0.1, statement="lower bound"),
    }
    comparison = compare_evidence(results)
    assert not comparison.converged
    reasons = "alarmed: seen: remedy", "bound: log Z is not estimated, but lower bound"
    assert comparison.reasons == reasons
    assert [model.converged for model in comparison.models.values()] == [True, False, False]
    assert comparison.models["fine"].probability_interval == (0.0, 1.0)
    assert comparison.summary().count("not converged") == 2


@pytest.mark.parametrize(
    ("fitted", "options", "error", "sentence"),
    [
        ({"a": result(0.0)}, {}, ValueError, "at least two"),
        ({"a": result(0.0), "b": 3}, {}, TypeError, r"fitted\['b'\] must be a fitted"),
        ({"a": (0.0, 0.1), "b": (1.0, 0.1)}, {}, TypeError, r"PartitionResult\(method, log_part"),
        ({"a": result(0.0), "b": result(1.0)}, {"prior": {"a": 1}}, ValueError, "must name"),
        ({"a": result(0.0), "b": result(1.0)}, {"prior": [1, 2]}, TypeError, "must be a dict"),
        ({"a": result(0.0), "b": result(1.0)}, {"prior": {"a": 1, "b": 0}}, ValueError, "positive"),
        ({"a": result(0.0), "b": result(1.0)}, {"level": 2}, ValueError, "between 0 and 1"),
    ],
)
def test_errors(fitted, options, error, sentence):
    with pytest.raises(error, match=sentence):
        compare_evidence(fitted, **options)
