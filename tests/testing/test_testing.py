"""The helpers that are offered for tests: reference data, known problems, and what the estimator
check must find.
"""

from dataclasses import replace

import joblib
import numpy as np
import pytest
from convergence import may_not_converge
from known_problems import hidden_mode_problem, make_rbm_problem
from reference_data import shared_data

from sklpf import AIS
from sklpf.partition import Alarm, PartitionEstimator, PartitionResult
from sklpf.paths import TemperedPath
from sklpf.testing import (
    Problem,
    check_parallel,
    check_partition_estimator,
    check_path,
    find_shared_data,
)


def test_reference_data_is_found_by_environment_variable(tmp_path, monkeypatch):
    (tmp_path / "rbm").mkdir()
    np.savez(tmp_path / "rbm" / "mine.npz", x=np.arange(3))
    monkeypatch.setenv("SKLPF_DATA", str(tmp_path))
    assert find_shared_data("rbm/mine.npz") == tmp_path / "rbm" / "mine.npz"
    with shared_data("rbm/mine.npz") as data:
        np.testing.assert_array_equal(data["x"], [0, 1, 2])


class Made(PartitionEstimator):
    """An estimator that says what it is told."""

    def __init__(self, result=None, jitter=0.0, random_state=None, n_jobs=None):
        self.result = result
        self.jitter = jitter
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _estimate(self, path, seed):
        off = self.jitter * (self.n_jobs or 1)
        return replace(self.result, log_partition=self.result.log_partition + off)


# the problem's log Z is 0
GOOD = PartitionResult(method="Made", log_partition=0.03, std_error=0.01)


@pytest.mark.parametrize(
    "result",
    [
        GOOD,
        replace(GOOD, log_partition=1e-9, std_error=0.0, statement="exact"),
        replace(GOOD, log_partition=-20.0, statement="lower bound"),
        replace(GOOD, log_partition=8.0, statement="lower bound"),  # log(1 / 2e-4) = 8.5
        replace(GOOD, log_partition=20.0, statement="upper bound"),
        replace(GOOD, log_partition=0.2, degrees_of_freedom=1),
    ],
)
def test_check_passes_honest_results(result):
    check_partition_estimator(Made(result), hidden_mode_problem(2))


def test_check_knows_errors_of_the_truth_and_rows():
    path = hidden_mode_problem(2).path
    check_partition_estimator(Made(GOOD), Problem("measured", path, 0.1, 0.02))
    with pytest.raises(AssertionError, match="off by -0.07"):
        check_partition_estimator(Made(GOOD), Problem("exact", path, 0.1))
    rows = replace(GOOD, log_partition=np.array([0.03, 1.0]), std_error=np.array([0.01, 0.01]))
    check_partition_estimator(Made(rows), Problem("rows", path, np.array([0.0, 1.0])))
    with pytest.raises(AssertionError, match="off by 0.5"):
        check_partition_estimator(Made(rows), Problem("rows", path, np.array([0.0, 0.5])))


class CoinPath(TemperedPath):
    """One fair coin, which is tempered to one that shows 1 three times as often."""

    base_log_partition = 0.0

    def sample_base(self, n, stream):
        return stream.generator().integers(2, size=n)

    def ends(self, state):
        log_base = np.full(len(state), np.log(0.5))
        return log_base, np.log(np.where(state, 3, 1)) - log_base


def test_check_path_passes_a_coin_with_every_seed():
    for seed in range(100):  # seven draws of two blocks were the same with three of 300 seeds
        check_path(CoinPath(), random_state=seed)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (Made(replace(GOOD, log_partition=0.04)), "its estimate's interval of 99.98 %"),
        (Made(replace(GOOD, log_partition=1e-7, std_error=0.0, statement="exact")), "off by 1e-07"),
        (Made(replace(GOOD, log_partition=9.0, statement="lower bound")), "its lower bound's int"),
        (Made(replace(GOOD, log_partition=-9.0, statement="upper bound")), "its upper bound's int"),
        (Made(replace(GOOD, alarms=(Alarm("short", "too short"),))), "did not converge: too short"),
        (Made(GOOD, jitter=1e-12), "the same bits"),
    ],
)
@may_not_converge()
def test_check_finds(estimator, message):
    with pytest.raises(AssertionError, match=message):
        check_partition_estimator(estimator, hidden_mode_problem(2))


# ---- check_parallel
class CountsJobs(PartitionEstimator):
    """One whose number is that of the jobs, or whose draws are those of a common stream."""

    def __init__(self, n_jobs=None, random_state=None):
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _estimate(self, path, seed):
        return PartitionResult("CountsJobs", float(joblib.effective_n_jobs(self.n_jobs)), 0.1)


@may_not_converge()
def test_check_parallel_takes_bounds_and_nan():
    bound = replace(GOOD, statement="lower bound", std_error=np.nan)
    check_parallel(Made(bound), hidden_mode_problem(2).path)


def test_check_parallel_compares_bits():
    path = make_rbm_problem("easy").path
    with joblib.parallel_config(backend="threading", n_jobs=2):
        check_parallel(AIS(40, 30, checks=False), path)
        with pytest.raises(
            AssertionError,
            match="this back end must give the same bits as one job, and log_partition",
        ):
            check_parallel(CountsJobs(), path)
    with pytest.raises(TypeError, match="takes an estimator first"):
        check_parallel(path, AIS())
