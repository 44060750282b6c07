import re
import time

import numpy as np
import pytest
from convergence import alarm_kinds, quietly
from interruption import bits, saves
from known_problems import make_rbm_problem
from sklearn.base import clone
from told import Says

from sklpf import (
    AIS,
    HAIS,
    SMC,
    AdaptiveSMC,
    BernoulliRBM,
    Exact,
    Gaussian,
    GeometricPath,
    Mixture,
    Uniform,
    UntilTrusted,
)
from sklpf.models import LDAPath, RBMPath
from sklpf.partition import RAISE


@pytest.fixture
def gaussian():
    return GeometricPath(lambda x: -np.sum(x**2, axis=1) / 2, base=Gaussian([3.0, 0.0], 1.0))


@pytest.mark.parametrize(
    ("said", "n_attempts", "number", "reason"),
    [
        ([Says(1.0), Says(2.0)], 1, 1.0, None),
        ([Says(1.0, trusted=False), Says(1.01)], 2, 1.01, None),
        ([Says(1.0, 0.5), Says(1.2, 0.05)], 2, 1.2, None),
        ([Says(1.0, 0.5), Says(1.2, 0.3)], 2, 1.2, "is above tol: give more estimators"),
        ([Says(1.0, 0.3, False), Says(1.2, 0.2, False)], 2, 1.2, "it was told so: raise n_chains"),
        ([Says(1.0, np.nan, False), Says(1.2, 0.2, False)], 2, 1.2, "it was told so"),
        ([Says(2.0, 0.1, False), Says(1.0)], 2, 1.0, "before found 2.00 .* which is more"),
        ([Says(-2.0, 0.1, False), Says(1.0)], 2, 1.0, None),  # low ones have missed something
    ],
)
def test_which_attempt_counts(said, n_attempts, number, reason, gaussian):
    estimator = UntilTrusted(said, random_state=0)
    if reason is None:
        estimator.fit(gaussian)
    else:
        with pytest.warns(match=reason):
            estimator.fit(gaussian)
    assert len(estimator.attempts_) == n_attempts
    assert estimator.log_partition_ == number
    assert estimator.converged_ == (reason is None)
    assert len(estimator.result_.diagnostics["attempt_std_error"]) == n_attempts


def test_a_bound_is_not_enough():
    rbm = BernoulliRBM.from_parameters(np.full((3, 4), 0.5), np.zeros(4), np.zeros(3))
    fitted = UntilTrusted([RAISE(random_state=0), Exact()]).fit(rbm)
    assert fitted.result_.statement == "exact"


def test_no_attempt_begins_when_time_is_over(gaussian):
    said = [Says(trusted=False), Says()]
    late = quietly(UntilTrusted(said, max_seconds=1e-9), gaussian)
    assert len(late.attempts_) == 1


def test_attempts_say_how_far_they_are(gaussian, capsys):
    UntilTrusted(random_state=0, max_evaluations=100_000, verbose=1).fit(gaussian)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 3
    assert all(re.search(r"of 100,000 evaluations, at most .* left$", line) for line in lines[:-1])
    assert "log Z = " in lines[-1]


def test_an_estimator_that_needs_something_else_is_passed_over(gaussian):
    estimator = UntilTrusted([HAIS(), Says(1.0)])
    with pytest.warns(UserWarning, match="HAIS failed, and other estimators .*: .*grad"):
        estimator.fit(gaussian)
    assert [attempt.method for attempt in estimator.attempts_] == ["Says"]
    with pytest.raises(TypeError, match="grad"):
        UntilTrusted([HAIS()]).fit(gaussian)


def test_an_error_of_the_density_in_a_later_attempt_loses_no_earlier_one():
    def log_density(x):
        if np.any(x > 8):  # climbs get there, for which it is NaN, and then particles
            raise OverflowError
        return -0.5 * np.sum(x**2, axis=1)

    path = GeometricPath(log_density, base=Gaussian([0.0, 0.0], 9.0))
    estimator = UntilTrusted([Says(trusted=False), AdaptiveSMC(random_state=0)])
    with pytest.warns(UserWarning, match="AdaptiveSMC failed, .*OverflowError"):
        quietly(estimator, path)
    assert [attempt.method for attempt in estimator.attempts_] == ["Says"]


@pytest.mark.parametrize(
    ("budget", "trusted"),
    [
        ({"max_evaluations": 1500}, False),
        ({"max_evaluations": 5000}, True),
        ({"max_seconds": 5}, True),
    ],
)
def test_a_bridge_takes_no_more_draws_than_a_budget_allows(budget, trusted, monkeypatch):
    """All would take 48,000 evaluations, of a millisecond each."""
    draws = np.random.default_rng(0).normal(size=(4, 2000, 3))
    seconds = 0.0

    def log_density(x):
        nonlocal seconds
        seconds += 1e-3 * len(x)
        return log_normal(x)

    for clock in ("time", "perf_counter"):
        monkeypatch.setattr(time, clock, lambda: seconds)
    path = GeometricPath(log_density, base=Gaussian(np.zeros(3), 3.0))
    estimator = quietly(UntilTrusted(random_state=0, **budget), path, draws=draws)
    error = estimator.log_partition_ - 1.5 * np.log(2 * np.pi)
    assert abs(error) < 4.5 * estimator.log_partition_std_error_ < 0.2  # 7e-6
    assert seconds < 5.1
    assert estimator.converged_ == trusted  # unless the search for modes is cut short


def test_what_a_later_attempt_says_of_its_own_number_is_left_out(gaussian):
    attempts = [Says(trusted=False), AdaptiveSMC(random_state=0)]
    estimator = quietly(UntilTrusted(attempts, max_evaluations=500), gaussian)
    assert "no-usable-estimate" in [alarm.kind for alarm in estimator.attempts_[-1].alarms]
    assert "budget-spent" in alarm_kinds(estimator)
    assert "no-usable-estimate" not in alarm_kinds(estimator)


def test_later_attempts_begin_at_the_draws():
    """One of four chains is stuck in a narrow mode that no search from the box would find."""
    rng = np.random.default_rng(0)
    narrow, wide = np.array([4.0, 4, -4]), np.array([-5.0, 2, 6])
    both = Mixture([Gaussian(narrow, 0.02**2), Gaussian(wide, 0.5**2)])
    box = [-10] * 3, [10] * 3
    path = GeometricPath(both.log_density, base=Uniform(*box), bounds=box)
    stuck = narrow + 0.02 * rng.normal(size=(1, 500, 3))
    draws = np.concatenate([stuck, wide + 0.5 * rng.normal(size=(3, 500, 3))])
    estimator = UntilTrusted(random_state=0).fit(path, draws=draws)
    assert estimator.attempts_[-1].method == "AdaptiveSMC"
    assert abs(estimator.log_partition_) < 4.8 * estimator.log_partition_std_error_  # 1e-3


def test_a_density_is_explored_first_and_a_smaller_tol_takes_draws_alone(gaussian):
    rough, fine = (UntilTrusted(tol=tol, random_state=0).fit(gaussian) for tol in (0.1, 0.004))
    for estimator in rough, fine:
        assert [attempt.method for attempt in estimator.attempts_] == ["ImportanceSampling"]
        error = estimator.log_partition_ - np.log(2 * np.pi)
        assert abs(error) < 4.5 * estimator.log_partition_std_error_  # 7e-6
    assert fine.log_partition_std_error_ <= 0.004
    sweeps = [estimator.result_.sweeps for estimator in (rough, fine)]
    assert sweeps[0]["exploration"] == sweeps[1]["exploration"] < 6000
    assert sweeps[0].get("chains", 0) < sweeps[1]["chains"] < 30_000


def log_normal(x):
    """Of one point or of many."""
    return -0.5 * np.sum(x**2, axis=-1)


@pytest.mark.parametrize(
    "target",
    [
        GeometricPath(log_normal, base=Gaussian([3.0, 0.0], 1.0)),
        log_normal,
        lambda point: -(point[0] ** 2 + point[1] ** 2) / 2,
    ],
)
def test_draws_come_first(target):
    draws = np.random.default_rng(0).normal(size=(4, 500, 2))
    estimator = UntilTrusted(random_state=0).fit(target, draws=draws)
    assert [attempt.method for attempt in estimator.attempts_] == ["BridgeSampling"]
    assert estimator.result_.check_evaluations < 12_000  # no full search for modes
    assert abs(estimator.log_partition_ - np.log(2 * np.pi)) < 0.05  # six standard errors


def test_a_model_by_its_default_and_as_its_estimator():
    rng = np.random.default_rng(0)
    rbm = BernoulliRBM.from_parameters(rng.normal(size=(4, 6)), np.zeros(6), np.zeros(4))
    estimator = UntilTrusted(random_state=0).fit(rbm)
    truth = Exact().fit(rbm).log_partition_
    assert estimator.log_partition_ == truth
    rows = (rng.random((5, 6)) < 0.5).astype(float)
    mean = rbm.score(rows)
    assert rbm.set_params(partition_estimator=UntilTrusted(random_state=0)).score(rows) == mean


class ShortSegments(RBMPath):
    n_moves_per_segment = 17


def test_an_interrupted_attempt_goes_on_and_those_before_are_read(tmp_path):
    path = make_rbm_problem("easy").path
    path.__class__ = ShortSegments
    own = np.random.RandomState(0)  # such an estimator can't keep segments: it runs again
    short = AIS(20, 40), AIS(10, 10, random_state=own), SMC(10, 60, 4)
    estimators = [estimator.set_params(checks=False) for estimator in short]
    estimator = UntilTrusted(estimators, tol=1e-6, random_state=3)
    whole = quietly(clone(estimator), path)
    kept = clone(estimator).set_params(checkpoint=tmp_path)
    with saves() as everything:
        quietly(clone(kept), path)
    assert not list(tmp_path.iterdir())
    with saves() as first:
        quietly(clone(kept).set_params(estimators=estimators[:1]), path)
    with saves(interrupt_at=len(first) + 2) as before:
        quietly(clone(kept), path)
    assert list(tmp_path.iterdir())
    with saves() as after:
        resumed = quietly(clone(kept).set_params(n_jobs=2), path)
    assert before[: len(first)] == first
    assert before + after == everything  # nothing that was finished ran again
    assert not list(tmp_path.iterdir())
    assert len(resumed.attempts_) == 3
    for found, known in zip(resumed.attempts_, whole.attempts_):
        assert found.log_partition == known.log_partition
        assert bits(found.diagnostics) == bits(known.diagnostics)
        assert bits(found.draws) == bits(known.draws)
    assert bits(resumed.result_.diagnostics) == bits(whole.result_.diagnostics)


def test_rows_have_a_number_each_and_no_attempts():
    path = LDAPath([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]], 0.3, [[2, 1, 0], [0, 1, 2]])
    estimator = UntilTrusted([Exact()]).fit(path)
    assert np.array_equal(estimator.log_partition_, Exact().fit(path).log_partition_)
    assert not hasattr(estimator, "attempts_")


def test_what_is_refused(gaussian, tmp_path):
    with pytest.raises(ValueError, match="checkpoint needs random_state to be an int"):
        UntilTrusted([Says()], checkpoint=tmp_path).fit(gaussian)
    with pytest.raises(ValueError, match="must be picklable"):  # the density is a lambda
        UntilTrusted([Says()], checkpoint=tmp_path, random_state=0).fit(gaussian)
