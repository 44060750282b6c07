"""What holds for every estimator: its contract, unbiased weights, intervals that cover, runs that
are read anew or were interrupted, results, alarms, and modes that were missed.

The tables of doc/benchmarks are of the same kind with many more runs.
"""

import dataclasses
import functools
import pickle

import numpy as np
import pytest
from convergence import alarm_kinds, quietly
from estimators import ESTIMATORS, curve, document, fit, fitted
from interruption import bits, saves
from known_densities import make_density_problem
from known_problems import RBM_PROBLEMS, make_rbm_problem
from marks import large
from scipy.stats import binom
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_info, threadpool_limits

import sklpf
from sklpf import (
    AIS,
    BDMC,
    HAIS,
    RTS,
    SMC,
    AdaptiveSMC,
    Exact,
    GeometricPath,
    LeftToRight,
    ParallelTempering,
    PartitionEstimator,
)
from sklpf.models import RBMPath
from sklpf.partition import (
    BAR,
    MBAR,
    RAISE,
    SAMS,
    AdaptiveRejection,
    ImportanceSampling,
    LevelProcess,
    MarkovMixture,
    RejectionSampling,
    SteppingStone,
    ThermodynamicIntegration,
    WangLandau,
)
from sklpf.paths import LADDERS
from sklpf.testing import Problem, check_partition_estimator
from sklpf.transitions import HMC, RandomWalk

SAMPLER = ParallelTempering(n_temperatures=6, n_sweeps=512, random_state=0)
CONTINUOUS = RTS(50, 10, 300, continuous=True, random_state=0)


@functools.cache
def problem(kind):
    if kind == "document":
        path = document()
        return Problem(kind, path, float(Exact().fit(path).log_partition_))
    name, _, weights = kind.partition(", ")
    if name in RBM_PROBLEMS:
        return make_rbm_problem(name, weights=weights or "marginal")
    return make_density_problem(kind)


# ---- right numbers, error bars, the same bits again and on two jobs
@pytest.mark.parametrize(
    ("estimator", "kind"),
    [
        (AIS(n_temperatures=200), "digits"),
        large(AIS(n_temperatures=200, ladder="adaptive"), "easy, joint"),
        (AIS(n_temperatures=100, transition=RandomWalk()), "gaussian 2-D, condition 1"),
        (SMC(), "digits"),
        (SMC(n_temperatures=40), "laplace 6-D"),
        (AdaptiveSMC(), "gaussian 2-D, condition 1"),
        (ParallelTempering(n_sweeps=512), "digits"),
        large(ParallelTempering(n_sweeps=1024), "easy, joint"),
        (RTS(n_temperatures=20, n_sweeps=750), "easy, joint"),
        (RTS(n_temperatures=20, n_sweeps=750, prior=2.0, ladder="sigmoid"), "easy"),
        (RTS(n_temperatures=20, n_sweeps=750, rao_blackwell=False), "easy"),
        (RTS(30, 4, n_sweeps=400, transition=HMC()), "gaussian 2-D, condition 1"),
        (SAMS(n_temperatures=20, n_sweeps=750), "easy"),
        (WangLandau(n_temperatures=20, n_sweeps=750), "easy"),
        large(RTS(20, 10, 300, continuous=True), "laplace 6-D"),
        (BDMC(n_temperatures=300), "digits"),
        large(BDMC(n_temperatures=300), "easy, joint"),
        (RAISE(), "digits"),
        (MarkovMixture(n_centres=200, n_sweeps=256), "easy"),
        large(MarkovMixture(n_centres=200, n_sweeps=512), "easy, joint"),
        (HAIS(50, 100), "laplace 6-D"),
        (HAIS(50, 150, transition=HMC(metric="dense")), "gaussian 2-D, condition 100"),
        (BDMC(50, 40, transition=HMC()), "gaussian 2-D, condition 1"),
        (ImportanceSampling(1000), "gaussian 2-D, condition 1"),
        (AdaptiveRejection(), "beta-binomial"),
        (RejectionSampling(), "beta-binomial"),
        (LeftToRight(), "document"),
        (Exact(), "medium"),
        *[
            (kind(SAMPLER), "easy")
            for kind in (BAR, MBAR, SteppingStone, LevelProcess, ThermodynamicIntegration)
        ],
        large(ThermodynamicIntegration(CONTINUOUS, rule="continuous"), "beta-binomial"),
    ],
    ids=str,
)
def test_the_contract(estimator, kind):
    """A right estimator fails with a probability of 2e-4."""
    check_partition_estimator(estimator, problem(kind))


@pytest.mark.parametrize(
    ("ladder", "weights"),
    [("linear", "joint"), ("adaptive", "marginal"), *(large(each, "marginal") for each in LADDERS)],
)
@pytest.mark.parametrize(
    ("estimator", "name"),
    [
        (AIS(2000, 60), "log_weights"),
        (SMC(20, 20, 50, resample_at=0.9), "log_partition_by_population"),
    ],
    ids=str,
)
def test_weights_are_unbiased_on_any_ladder(estimator, name, ladder, weights):
    """t with 49 degrees of freedom at 4.5: a false alarm in 4e-5 of each."""
    path, log_partition = make_rbm_problem("easy", weights=weights)[1:3]
    fitted = quietly(clone(estimator).set_params(ladder=ladder, random_state=0), path)
    relative = np.exp(fitted.result_.diagnostics[name] - log_partition)
    assert abs(relative.mean() - 1) < 4.5 * relative.std(ddof=1) / np.sqrt(len(relative))
    if name == "log_weights":
        assert fitted.log_partition_ == pytest.approx(log_partition + np.log(relative.mean()))


# ---- coverage
RBMS, DENSITIES = ("easy", "medium", "digits"), ("laplace 6-D", "beta-binomial")
PLANES = "gaussian 2-D, condition 1", "two gaussians 2-D"
GAUSSIANS = "gaussian 2-D, condition 100", "gaussian 20-D, condition 1"
COVERAGE = {  # and the share of the runs that converge at least: to flag everything is no way out
    "AIS, few chains": (AIS(10, 10), (*RBMS, "hard"), 0.0),
    "AIS, short": (AIS(30, 100), (*RBMS, "hard"), 0.3),
    "AIS": (AIS(100, 300), (*RBMS, "hard"), 0.5),
    "ParallelTempering": (ParallelTempering(n_sweeps=512), RBMS, 0.8),
    "RTS": (RTS(20, 20, 500), (*RBMS, "hard"), 0.4),
    "RTS, 8 levels": (RTS(n_temperatures=8, n_sweeps=400), ("easy",), 0.9),
    "RTS, continuous": (RTS(50, 10, 240, continuous=True), DENSITIES, 0.75),
    "SAMS": (SAMS(30, 15, 600), ("medium", "digits"), 0.6),
    "SAMS, binary": (SAMS(30, 15, 1200, update="binary"), ("medium", "digits"), 0.8),
    "WangLandau": (WangLandau(30, 15, 600), ("medium", "digits"), 0.6),
    "SMC": (SMC(100, 25), RBMS, 0.8),
    "BDMC": (BDMC(n_temperatures=50), RBMS, 0.9),
    "MarkovMixture": (MarkovMixture(n_centres=200, n_sweeps=256), RBMS, 0.6),
    "ImportanceSampling": (ImportanceSampling(400), (*PLANES, "beta-binomial"), 0.6),
    "HAIS": (HAIS(50, 200), (*PLANES, "student-t 6-D", *DENSITIES), 0.7),
    "HAIS, diag": (HAIS(50, 200, transition=HMC(metric="diag")), DENSITIES, 0.7),
    "HAIS, dense": (HAIS(50, 200, transition=HMC(metric="dense")), GAUSSIANS, 0.7),
    "BAR": (BAR(SAMPLER), RBMS, 0.7),
    "MBAR": (MBAR(SAMPLER), RBMS, 0.7),
    "LevelProcess": (LevelProcess(SAMPLER), RBMS, 0.7),
    "ThermodynamicIntegration": (ThermodynamicIntegration(SAMPLER), RBMS, 0.7),
}


def runs(name, seeds, n_kinds=None):
    """Whether each run converged, and whether its interval covers, (2, n)."""
    estimator, kinds, _ = COVERAGE[name]
    rows = []
    for kind in kinds[:n_kinds]:
        for seed in seeds:
            fitted = clone(estimator)
            seeded = {name: seed for name in fitted.get_params() if name.endswith("random_state")}
            quietly(fitted.set_params(**seeded), problem(kind).path)
            low, high = fitted.log_partition_interval_
            rows.append((fitted.converged_, low <= problem(kind).log_partition <= high))
    return np.array(rows).T


def assert_covered(converged, covered):
    """Fails in 1e-4 of the cases where intervals of converged runs cover 94 %."""
    assert covered[converged].sum() >= binom.ppf(1e-4, converged.sum(), 0.94)


def test_intervals_of_converged_runs_cover():
    """One run of each estimator, of which four fifths converge at least."""
    converged, covered = np.concatenate([runs(name, [0], 1) for name in COVERAGE], axis=1)
    assert_covered(converged, covered)
    assert converged.mean() > 0.8


@pytest.mark.large
@pytest.mark.parametrize("name", COVERAGE)
def test_intervals_of_each_estimator_cover(name):
    converged, covered = runs(name, range(2, 10))
    assert_covered(converged, covered)
    assert converged.mean() >= COVERAGE[name][2]


# ---- results and runs
WITHOUT_A_RUN = "AdaptiveRejection", "AdaptiveSMC", "Exact", "UntilTrusted"
RUNS = [name for name in ESTIMATORS if name not in WITHOUT_A_RUN]
SIZES = {"pair": -1, "level": 0, "other_level": 0}  # how many more than levels


def test_the_table_has_every_estimator():
    public = [getattr(sklpf.partition, name) for name in sklpf.partition.__all__]
    kinds = {kind for kind in public if isinstance(kind, type)}
    kinds = {kind for kind in kinds if issubclass(kind, PartitionEstimator)}
    assert {type(estimator) for estimator, _ in ESTIMATORS.values()} == kinds - {PartitionEstimator}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_array_of_a_result_has_named_dimensions(name):
    pytest.importorskip("xarray")
    result = fitted(name).result_
    data = result.to_xarray()
    for key, value in result.diagnostics.items():
        if key not in ("ladder", "draws") and np.ndim(value):
            assert data[key].dims, key
            assert not any(dimension.startswith(key) for dimension in data[key].dims), key
    for dimension, size in data.sizes.items():
        if dimension in SIZES:
            assert size == len(result.ladder) + SIZES[dimension], dimension


FAR = 1e16  # nats, where numbers are two apart


class FarCurve:
    """A standard normal density and a large constant."""

    def __call__(self, x):
        return FAR - 0.5 * x[:, 0] ** 2


def rounded(make):
    """The path of an estimator with a log f that is rounded by a nat or more."""
    path = make()
    if make is curve:
        return GeometricPath(FarCurve(), grad=path.grad, base=path.base)
    path.__class__ = type(
        "Rounded", (type(path),), {"log_f_rounding": 1.0, "enumeration_rounding": 1.0}
    )
    return path


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_says_that_log_f_is_rounded(name):
    options = {"RejectionSampling": {"log_bound": FAR + 2}, "AdaptiveSMC": {"max_sweeps": 5000}}
    found = fit(name, rounded(ESTIMATORS[name][1]), **options.get(name, {}))
    assert "rounding" in alarm_kinds(found)


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


def numbers(result):
    """All bits of a result but its time."""
    return bits(dataclasses.replace(result, seconds=0.0))


@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_plain_arrays_and_read_anew_gives_the_numbers_of_its_fit(name):
    first = fitted(name)
    copied = pickle.loads(pickle.dumps(first))
    assert is_plain(first.run_)
    assert numbers(copied.result_) == numbers(first.result_)
    for run in (first.run_, copied.run_):
        again = quietly(clone(first), run)
        assert numbers(again.result_) == numbers(first.result_)
        assert again.run_ is run
    assert numbers(quietly(first, first.run_).result_) == numbers(copied.result_)  # by itself too


CHECKED = [name for name, (each, _) in ESTIMATORS.items() if hasattr(each, "checks")]


@pytest.mark.parametrize("name", CHECKED)
def test_without_checks_numbers_are_the_same_and_the_result_says_that_nothing_looked(name):
    """But for errors in which the way back from the target counts, and modes that climbs find."""
    looked, blind = fitted(name), fit(name, checks=False)
    if name != "AdaptiveSMC":
        assert blind.log_partition_ == looked.log_partition_
    assert looked.result_.check_evaluations is not None
    for result in (blind.result_, quietly(clone(blind), blind.run_).result_):
        assert result.check_evaluations is None
        assert "without checks" in str(result)
        assert "left out" in result.summary()
    assert "without checks" not in str(looked.result_)
    if name in ("AIS", "SMC"):  # no chain goes back
        n_back = looked.result_.sweeps["reverse chains"]
        assert blind.result_.n_sweeps == looked.result_.n_sweeps - n_back


READERS = [
    *(type(estimator)() for name, (estimator, _) in ESTIMATORS.items() if name != "UntilTrusted"),
    ThermodynamicIntegration(rule="continuous"),
]
READ_ELSEWHERE = {
    "AIS": {"HAIS"},
    "HAIS": {"AIS"},
    "ImportanceSampling": {"AIS", "HAIS"},
    "ParallelTempering": {"BAR", "MBAR", "SteppingStone", "LevelProcess"},
    "RTS": {"BAR", "MBAR", "SteppingStone", "LevelProcess"},
    "SAMS": {"RTS", "BAR", "MBAR", "SteppingStone", "LevelProcess"},
    "WangLandau": {"RTS", "BAR", "MBAR", "SteppingStone", "LevelProcess"},
}
SAMPLERS = [name for name in RUNS if type(ESTIMATORS[name][0]).__name__ == name.split()[-1]]
SAMPLERS = [name for name in SAMPLERS if not hasattr(ESTIMATORS[name][0], "sampler")]


@pytest.mark.parametrize("made_by", SAMPLERS)
def test_a_run_is_read_right_or_refused_by_whoever_did_not_make_it(made_by):
    """Numbers within 5 standard errors and 0.1 nats of log Z: of 45 that are read, correlated and
    with t errors, a false alarm in fewer than 1e-3.
    """
    first, make = fitted(made_by), ESTIMATORS[made_by][1]
    truth = np.log(2 * np.pi) / 2 if make is curve else Exact().fit(make()).log_partition_
    readers = set()
    for reader in READERS:
        other_rule = getattr(reader, "rule", "") == "continuous"
        if isinstance(reader, ThermodynamicIntegration) and reader._reads(first.run_):
            if other_rule != (made_by == "continuous RTS"):
                continue  # refused by its rule, not by the run
        elif not reader._reads(first.run_):
            names = type(reader).__name__, type(first).__name__
            refusal = "a run that {} can read, got a run of {}: give it to ".format(*names)
            with pytest.raises(TypeError, match=refusal):
                clone(reader).fit(first.run_)
            continue
        result = quietly(clone(reader), first.run_).result_
        if np.isfinite(result.std_error):
            assert abs(result.log_partition - truth) < 5 * result.std_error + 0.1
        else:
            assert not result.converged
        readers.add(type(reader).__name__)
    theirs = READ_ELSEWHERE.get(made_by, set())
    assert readers - {"ThermodynamicIntegration"} == theirs | {type(first).__name__}


def test_tol_is_judged_when_a_run_is_read():
    with pytest.warns(ConvergenceWarning, match="above tol"):
        assert not RTS(tol=1e-6).fit(fitted("RTS").run_).converged_


def test_blas_has_one_thread_where_a_run_is_read(monkeypatch):
    """More threads may give other bits, and wait for each other at full load."""
    run = fitted("ParallelTempering").run_
    read, seen = type(run)._read, set()

    def noted(self):
        seen.update(each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas")
        return read(self)

    monkeypatch.setattr(type(run), "_read", noted)
    with threadpool_limits(2, user_api="blas"):
        run.read()
        quietly(MBAR(), run)
    assert seen == {1}


# ---- seeds and interruptions
class ShortSegments(RBMPath):
    n_moves_per_segment = 17


def short_segments(kind):
    path = problem(kind).path
    path = path.with_ladder(path.ladder)
    if isinstance(path, RBMPath):
        path.__class__ = ShortSegments
    else:
        path.n_moves_per_segment = 17
    return path


@pytest.mark.parametrize(
    ("estimator", "kind"),
    [
        (AIS(20, 40), "easy"),
        large(AIS(20, 40, ladder="adaptive"), "easy"),
        (HAIS(20, 40, transition=HMC(metric="diag", half_life=3.0)), "gaussian 2-D, condition 1"),
        large(BDMC(10, 40), "easy, joint"),
        (RAISE(10, 10, 40), "easy, joint"),
        (SMC(10, 30, 4, resample_at=0.9), "easy"),
        (AdaptiveSMC(50), "gaussian 2-D, condition 1"),
        (ParallelTempering(4, 6, 128), "easy"),
        (RTS(20, 6, 100), "easy"),
        (RTS(20, 6, 100, continuous=True), "gaussian 2-D, condition 1"),
        (SAMS(20, 6, 100), "easy"),
        large(WangLandau(20, 6, 100), "easy"),
        (LeftToRight(20, 30), "document"),
    ],
    ids=str,
)
def test_an_interrupted_run_goes_on_with_the_same_bits(estimator, kind, tmp_path):
    path = short_segments(kind)
    estimator.set_params(random_state=3)
    whole = quietly(clone(estimator), path)
    kept = clone(estimator).set_params(checkpoint=tmp_path)
    with saves() as everything:
        quietly(clone(kept), path)
    assert not list(tmp_path.iterdir())
    with saves(interrupt_at=2 * len(everything) // 3) as before:
        quietly(clone(kept), path)
    assert list(tmp_path.iterdir())
    with saves() as after:
        resumed = quietly(clone(kept).set_params(n_jobs=2), path)
    assert sorted(before + after) == sorted(everything)  # nothing that was finished ran again
    assert not list(tmp_path.iterdir())
    assert bits(resumed.result_.diagnostics) == bits(whole.result_.diagnostics)
    assert resumed.log_partition_ == whole.log_partition_
    assert bits(resumed.run_) == bits(whole.run_)
    other = quietly(clone(estimator).set_params(random_state=4), path)
    assert other.log_partition_ != whole.log_partition_


# ---- alarms
ROUND_TRIPS = "visited both ends of the ladder"
GROUPS = "groups of chains differ in their states at the target"


@pytest.mark.parametrize(
    ("estimator", "kind", "sentence"),
    [
        (AIS(20, 3), "hard", "effective sample size .* needed.: raise n_temperatures or n_chains"),
        (BDMC(n_temperatures=2), "hard", "the two directions overlap .* needed.: raise"),
        (SMC(20, 10), "hard", "effective number of ancestors .* needed.: raise n_temperatures"),
        (SMC(), "two gaussians 2-D, base on one", r"populations differ in .* target \(\d+% of"),
        (ParallelTempering(n_sweeps=48), "sharp digits", "no round trip.*: raise n_sweeps"),
        (RTS(20, n_sweeps=100), "sharp digits", f"{ROUND_TRIPS}.*: raise n_sweeps"),
        (SAMS(20, n_sweeps=100), "sharp digits", ROUND_TRIPS),
        (WangLandau(20, n_sweeps=100), "sharp digits", ROUND_TRIPS),
        (RTS(10, 30, 1000), "sharp digits", GROUPS),
        (RTS(10, 10, 300, continuous=True), "two gaussians 2-D", GROUPS),
        (SAMS(n_sweeps=60), "hard", "weights had not settled when they were.*: raise n_sweeps"),
        (WangLandau(n_sweeps=150, flatness=0.8), "hard", "weights had not settled when they were"),
    ],
    ids=str,
)
def test_a_run_that_is_not_to_be_trusted_says_so(estimator, kind, sentence):
    with pytest.warns(ConvergenceWarning, match=sentence):
        fitted = clone(estimator).set_params(random_state=2).fit(problem(kind).path)
    assert not fitted.converged_


# ---- modes that were missed
@pytest.mark.parametrize(
    ("estimator", "kinds"),
    [
        (AIS(), ["two modes", "far mode"]),
        (SMC(20, 20), ["two modes", "far mode"]),
        (SMC(), ["two modes", "far mode"]),
        (BDMC(n_temperatures=300), ["far mode"]),
        (RTS(50, 30, 400), ["two modes", "far mode"]),
        (SAMS(30, 20, 60), ["two modes", "far mode"]),
        (WangLandau(30, 20, 60), ["two modes", "far mode"]),
        (ParallelTempering(n_sweeps=256), ["two modes", "far mode"]),
        (ParallelTempering(n_sweeps=2048, tol=0.1), ["two modes", "far mode"]),
        (MarkovMixture(n_centres=200, n_sweeps=256), ["two modes", "far mode"]),
        (ImportanceSampling(3000), ["two modes", "far mode"]),
    ],
    ids=str,
)
def test_runs_that_miss_a_mode_are_flagged(estimator, kinds):
    for kind in kinds:
        fitted = quietly(clone(estimator).set_params(random_state=5), problem(kind).path)
        error = fitted.log_partition_std_error_
        error = fitted.result_.diagnostics.get("delta_std_error", error)  # by its weights alone
        assert fitted.log_partition_ < problem(kind).log_partition - 2 * error
        assert not fitted.converged_
