"""Runs are read anew: `fit(run)` gives the numbers of the fit that left it, and a run is plain
arrays.
"""

import copy
import dataclasses
import functools
import pickle
import subprocess
import sys

import numpy as np
import pytest
from convergence import quietly
from known_problems import make_rbm_problem
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_info, threadpool_limits

from sklpf import (
    AIS,
    BDMC,
    HAIS,
    RTS,
    SMC,
    BridgeSampling,
    Exact,
    GeometricPath,
    LeftToRight,
    ParallelTempering,
    StudentT,
)
from sklpf.models import LDAPath
from sklpf.partition import (
    BAR,
    MBAR,
    RAISE,
    SAMS,
    AdaptiveRejection,
    Draws,
    ImportanceSampling,
    LevelProcess,
    MarkovMixture,
    RejectionSampling,
    SteppingStone,
    ThermodynamicIntegration,
    WangLandau,
)

PROBLEM = make_rbm_problem("easy")
DOCUMENT = LDAPath([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]], 0.3, [[4, 1, 3]]).row(0)
CURVE = GeometricPath(lambda x: -0.5 * x[:, 0] ** 2, grad=lambda x: -x, base=StudentT(0, 1, df=3))
SHORT = {"n_chains": 20, "n_temperatures": 12, "n_sweeps": 300, "random_state": 0}
SAMPLERS = {
    "AIS": (AIS(50, 100, random_state=0), PROBLEM.path),
    "HAIS": (HAIS(50, 100, random_state=0), CURVE),
    "BDMC": (BDMC(40, 100, random_state=0), PROBLEM.path),
    "RAISE": (RAISE(5, 10, 100, random_state=0), PROBLEM.path),
    "ImportanceSampling": (ImportanceSampling(2000, random_state=0), CURVE),
    "RejectionSampling": (RejectionSampling(2.0, random_state=0), CURVE),
    "BridgeSampling": (BridgeSampling(random_state=0), CURVE),
    "MarkovMixture": (MarkovMixture(200, n_sweeps=256, random_state=0), PROBLEM.path),
    "SMC": (SMC(20, 20, random_state=0), PROBLEM.path),
    "ParallelTempering": (ParallelTempering(5, n_sweeps=512, random_state=0), PROBLEM.path),
    "RTS": (RTS(**SHORT), PROBLEM.path),
    "continuous RTS": (RTS(continuous=True, **SHORT), CURVE),
    "SAMS": (SAMS(**SHORT), PROBLEM.path),
    "WangLandau": (WangLandau(**SHORT), PROBLEM.path),
    "LeftToRight": (LeftToRight(20, random_state=0), DOCUMENT),
}
OF_THEIR_OWN = {
    "TS": (RTS(20, 12, n_sweeps=300, rao_blackwell=False, random_state=0), PROBLEM.path),
}
FITTED = OF_THEIR_OWN | {
    name: run for name, run in SAMPLERS.items() if name not in ("BridgeSampling", "HAIS")
}


@functools.cache
def fit(name):
    estimator, path = (SAMPLERS | OF_THEIR_OWN)[name]
    options = {}
    if name == "BridgeSampling":
        options["draws"] = np.random.default_rng(0).normal(size=(4, 500, 1))
    return quietly(clone(estimator), path, **options)


@pytest.fixture(params=FITTED)
def fitted(request):
    return copy.deepcopy(fit(request.param))


def assert_same(first, second):
    """Equal to the bit, all fields and diagnostics but the wall time."""
    for field in dataclasses.fields(first):
        if field.name == "seconds":
            continue
        a, b = getattr(first, field.name), getattr(second, field.name)
        pairs = [(a, b)]
        if isinstance(a, dict):
            pairs = [(a[key], b[key]) for key in a.keys() | b.keys()]
        for one, other in pairs:
            parts = zip(one, other) if isinstance(one, Draws) else [(one, other)]
            for part, same in parts:
                np.testing.assert_array_equal(part, same, err_msg=field.name)


def test_a_run_gives_the_numbers_of_its_fit(fitted):
    again = quietly(clone(fitted), fitted.run_)
    assert_same(again.result_, fitted.result_)
    assert again.log_partition_ == fitted.log_partition_
    assert again.log_partition_std_error_ == fitted.log_partition_std_error_
    assert again.log_partition_interval_ == fitted.log_partition_interval_
    assert again.converged_ == fitted.converged_
    assert again.run_ is fitted.run_
    assert_same(quietly(fitted, fitted.run_).result_, again.result_)  # by itself too


def test_a_run_reads_itself_in_another_process(tmp_path):
    tempering = ParallelTempering(5, n_sweeps=512, random_state=0).fit(PROBLEM.path)
    file = tmp_path / "run.pickle"
    file.write_bytes(pickle.dumps(tempering.run_))
    code = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb')).read().log_partition)"
    command = [sys.executable, "-c", code, file]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(found.stdout) == tempering.log_partition_


def is_plain(value):
    """Arrays without objects, numbers, strings, None, and tuples, dictionaries and dataclasses of
    these.
    """
    if dataclasses.is_dataclass(value):
        return all(is_plain(getattr(value, field.name)) for field in dataclasses.fields(value))
    if isinstance(value, dict):
        return all(isinstance(name, str) and is_plain(part) for name, part in value.items())
    if isinstance(value, tuple):
        return all(is_plain(part) for part in value)
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "fiu"
    return value is None or isinstance(value, (int, float, str))


def test_runs_are_plain_arrays_and_can_be_pickled(fitted):
    run = fitted.run_
    assert is_plain(run)
    copied = pickle.loads(pickle.dumps(run))
    assert type(copied) is type(run)
    assert_same(quietly(clone(fitted), copied).result_, fitted.result_)
    assert_same(pickle.loads(pickle.dumps(fitted)).result_, fitted.result_)


# ---- other ways to read a run
def test_tol_is_judged_when_a_run_is_read():
    run = RTS(50, 12, n_sweeps=600, random_state=0).fit(PROBLEM.path).run_
    with pytest.warns(ConvergenceWarning, match="above tol"):
        assert not RTS(tol=1e-6).fit(run).converged_


# ---- runs that another estimator left
READERS = (
    *(type(estimator)() for name, (estimator, _) in SAMPLERS.items() if "Rej" not in name),
    *(BAR(), MBAR(), SteppingStone(), LevelProcess(), ThermodynamicIntegration(), Exact()),
    *(RejectionSampling(2.0), ThermodynamicIntegration(rule="continuous"), AdaptiveRejection()),
)
READ_ELSEWHERE = {
    "AIS": {"HAIS"},
    "HAIS": {"AIS"},
    "ImportanceSampling": {"AIS", "HAIS"},
    "ParallelTempering": {"BAR", "MBAR", "SteppingStone", "LevelProcess"},
    "RTS": {"BAR", "MBAR", "SteppingStone", "LevelProcess"},
    "SAMS": {"RTS", "BAR", "MBAR", "SteppingStone", "LevelProcess"},
    "WangLandau": {"RTS", "BAR", "MBAR", "SteppingStone", "LevelProcess"},
}


@pytest.mark.parametrize("made_by", SAMPLERS)
def test_a_run_is_read_right_or_refused_by_whoever_did_not_make_it(made_by):
    """Numbers within 5 standard errors and 0.1 nats of log Z: of 45 that are read, correlated and
    with t errors, a false alarm in fewer than 1e-3.
    """
    fitted, path = fit(made_by), SAMPLERS[made_by][1]
    truth = np.log(2 * np.pi) / 2 if path is CURVE else PROBLEM.log_partition
    if path is DOCUMENT:
        truth = Exact().fit(DOCUMENT).log_partition_

    readers = set()
    for reader in READERS:
        other_rule = getattr(reader, "rule", "") == "continuous"
        if isinstance(reader, ThermodynamicIntegration) and reader._reads(fitted.run_):
            if other_rule != (made_by == "continuous RTS"):
                continue  # refused by its rule, not by the run
        elif not reader._reads(fitted.run_):
            names = type(reader).__name__, type(fitted).__name__
            refusal = "a run that {} can read, got a run of {}: give it to ".format(*names)
            with pytest.raises(TypeError, match=refusal):
                clone(reader).fit(fitted.run_)
            continue
        result = quietly(clone(reader), fitted.run_).result_
        if np.isfinite(result.std_error):
            assert abs(result.log_partition - truth) < 5 * result.std_error + 0.1
        else:
            assert not result.converged
        readers.add(type(reader).__name__)
    theirs = READ_ELSEWHERE.get(made_by, set())
    assert readers - {"ThermodynamicIntegration"} == theirs | {type(fitted).__name__}


def test_blas_has_one_thread_where_a_run_is_read(monkeypatch):
    """More threads may give other bits, and wait for each other at full load."""
    tempering = ParallelTempering(4, n_sweeps=64, random_state=0)
    run = quietly(tempering, make_rbm_problem("easy").path).run_
    read, seen = type(run)._read, set()

    def noted(self):
        seen.update(each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas")
        return read(self)

    monkeypatch.setattr(type(run), "_read", noted)
    with threadpool_limits(2, user_api="blas"):
        run.read()
        quietly(MBAR(), run)
    assert seen == {1}
