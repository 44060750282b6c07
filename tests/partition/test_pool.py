"""Pools of independent runs: their mean, what its interval covers, and what they refuse."""

import json
import pickle

import numpy as np
import pytest
from scipy.stats import binom
from test_compare_evidence import result

from sklpf import (
    AIS,
    BernoulliRBM,
    Exact,
    PartitionResult,
    compare_evidence,
)
from sklpf.partition import Alarm, pool

FLAGGED = {"alarms": (Alarm("not-mixed", "no round trip was made", "raise n_sweeps"),)}


def drawn(rng, n_runs, *, degrees=9, std_error=0.2, spread=0.0):
    """Runs of one estimator, whose stated errors are right but for the spread."""
    stated = std_error * np.sqrt(rng.chisquare(degrees, size=n_runs) / degrees)
    values = rng.normal(scale=np.hypot(std_error, spread), size=n_runs)
    return [result(value, error, degrees) for value, error in zip(values, stated)]


def other(value, error, method, n_sweeps=0):
    return PartitionResult(method, value, error, sweeps={"chains": n_sweeps})


# ---- the mean
def test_other_estimators_are_weighted_by_their_errors():
    found = pool([other(1.0, 0.2, "AIS"), other(1.15, 0.1, "SMC")])
    np.testing.assert_allclose(found.diagnostics["run_weight"], [0.2, 0.8])
    assert found.log_partition == pytest.approx(1.12)
    assert found.diagnostics["between_std_dev"] == 0
    assert found.converged


def test_runs_of_one_estimator_are_weighted_by_their_sweeps():
    """Not by errors, of which those of low runs are too small."""
    found = pool([other(1.0, 0.1, "AIS", 1000), other(1.1, 0.2, "AIS", 3000)])
    np.testing.assert_allclose(found.diagnostics["run_weight"], [0.25, 0.75])
    assert found.n_sweeps == 4000
    error = np.sqrt((0.25 * 0.1) ** 2 + (0.75 * 0.2) ** 2)
    assert found.diagnostics["between_std_dev"] == 0
    bias = (0.25 * 0.1**2 + 0.75 * 0.2**2) / 2
    assert found.std_error == pytest.approx(np.hypot(error, bias))


@pytest.mark.parametrize(("n_runs", "degrees"), [(2, 9), (4, 4), (4, 99), (16, 9)])
def test_intervals_cover(n_runs, degrees):
    """Of 400 pools at least as many as occur with a probability of 1e-4 if 95 % cover, and at most
    as many are flagged if 1 % are.
    """
    rng = np.random.default_rng(n_runs * 100 + degrees)
    pools = [pool(drawn(rng, n_runs, degrees=degrees)) for _ in range(400)]
    covers = sum(low <= 0 <= high for low, high in (each.interval() for each in pools))
    assert covers >= binom.ppf(1e-4, 400, 0.95)
    assert sum(not each.converged for each in pools) <= binom.ppf(1 - 1e-4, 400, 0.01)


# ---- disagreement
def test_runs_that_disagree_are_an_alarm():
    """A mode of half the mass that two of four runs have missed."""
    found = pool([result(v, 0.02, 9) for v in (1.0, 1.01, 1.69, 1.70)])
    assert not found.converged
    assert "independent runs differ by more than their errors" in found.reasons[0]
    low, high = found.interval()
    assert low < 1.0 and high > 1.7  # noqa: PT018
    assert found.diagnostics["agreement"] < 1e-4


def test_what_is_spread_beyond_the_errors_widens_the_interval():
    rng = np.random.default_rng(0)
    pools = [pool(drawn(rng, 16, spread=0.3)) for _ in range(200)]
    covers = sum(low <= 0 <= high for low, high in (each.interval() for each in pools))
    assert covers >= binom.ppf(1e-4, 200, 0.94)


def test_immaterial_differences_are_none():
    assert pool([result(1.0, 1e-6), result(1.005, 1e-6)]).converged


def test_a_run_that_did_not_converge_makes_the_pool_doubtful():
    rng = np.random.default_rng(0)
    good = drawn(rng, 3)
    found = pool([*good, result(0.9, 0.2, 9, **FLAGGED)])
    assert not found.converged
    assert "1 of 4 runs did not converge (no round trip was made" in found.reasons[0]
    assert found.log_partition == pool(good).log_partition
    assert found.diagnostics["n_left_out"] == 1
    many = pool([*drawn(rng, 19), result(0.9, 0.2, 9, **FLAGGED)])
    assert many.converged  # as few as false alarms are
    none = pool([result(0.1, 0.2, **FLAGGED), result(0.2, 0.2, **FLAGGED)])
    assert none.log_partition == pytest.approx(0.15)
    assert not none.converged
    one = pool([result(0.1, 0.2, 9), result(0.2, 0.2, **FLAGGED)])
    assert np.isfinite(one.interval()).all()
    nan = pool([result(np.nan, np.nan), result(np.nan, 0.1)])
    assert np.isnan(nan.log_partition)
    assert not nan.converged
    infinite = pool([*good, result(0.9, np.inf)])
    assert infinite.log_partition == pool(good).log_partition
    assert "1 of 4 runs did not converge (infinite numbers)" in infinite.reasons[0]


# ---- containers
def test_results_of_other_machines_can_be_pooled():
    rbm = BernoulliRBM.from_parameters(np.ones((2, 3)), np.zeros(3), np.zeros(2))
    fits = [AIS(random_state=seed).fit(rbm) for seed in range(3)]
    whole = pool(fits)
    sent = [PartitionResult.from_json(fit.result_.to_json()) for fit in fits]
    assert pool(sent).log_partition == whole.log_partition
    assert pool(sent).std_error == whole.std_error
    pickled = [pickle.loads(pickle.dumps(fit.run_)) for fit in fits]
    assert pool(pickled).log_partition == whole.log_partition
    assert compare_evidence({"pooled": whole, "exact": Exact().fit(rbm)}).converged
    assert "runs that were pooled" in whole.summary()
    assert whole.to_xarray()["run_weight"].dims == ("run",)


@pytest.mark.parametrize(
    "given",
    [
        result(1.0, 0.1, 9, **FLAGGED),
        result(np.nan, np.nan),
        result(-np.inf, 0.0, statement="exact"),
        result(np.array([1.0, 2.0]), np.array([0.1, 0.2])),
    ],
    ids=["flagged", "nan", "infinite", "rows"],
)
def test_json_keeps_a_result(given):
    back = PartitionResult.from_json(given.to_json())
    for name in ("log_partition", "std_error", "degrees_of_freedom"):
        np.testing.assert_array_equal(getattr(back, name), getattr(given, name))
    assert back.reasons == given.reasons
    assert back.statement == given.statement
    assert "NaN" not in given.to_json()
    with pytest.raises(ValueError, match="to_json"):
        PartitionResult.from_json(given.to_json()[:-20])
    for lost in ("log_partition", "statement", "sweeps", "alarms"):
        fields = json.loads(given.to_json())
        del fields[lost]
        with pytest.raises(ValueError, match=f"to_json has given: KeyError.*{lost}"):
            PartitionResult.from_json(json.dumps(fields))


# ---- bad input
@pytest.mark.parametrize(
    ("runs", "error", "message"),
    [
        ([result(1.0, 0.1)], ValueError, "at least two"),
        ([result(1.0, 0.1), 3.0], TypeError, r"runs\[1\] must be a fitted estimator"),
        ([result(np.float64(1), 0.1), result(1.0, 0.1)], ValueError, "number 1.0: give each run"),
        ([result(1.0, 0.1), result(1.2, statement="exact")], ValueError, "must be an estimate"),
        ([result(1.0, 0.1), result(np.ones(2), np.ones(2))], ValueError, "for each of 2 rows"),
    ],
)
def test_bad_runs_are_named(runs, error, message):
    with pytest.raises(error, match=message):
        pool(runs)
