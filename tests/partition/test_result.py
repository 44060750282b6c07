"""A result that one can read: a line, a table, a frame, and labelled arrays."""

import numpy as np
import pytest
from convergence import may_not_converge
from sklearn.base import clone

from sklpf import (
    AIS,
    SMC,
    BernoulliRBM,
    Exact,
    FactorialMixture,
    ParallelTempering,
    compare,
)
from sklpf.partition import PartitionResult

RNG = np.random.default_rng(0)
RBM = BernoulliRBM.from_parameters(RNG.normal(size=(5, 6)), np.zeros(6), np.zeros(5))
FAIR = BernoulliRBM.from_parameters(np.zeros((1, 6)), np.zeros(6), np.zeros(1))
X = (RNG.random((20, 6)) < 0.5).astype(float)


@pytest.fixture(scope="module")
def tempering():
    return ParallelTempering(n_ladders=4, n_sweeps=256, random_state=0).fit(RBM)


@pytest.fixture(scope="module")
def rows():
    model = FactorialMixture(2, tol=0.1, random_state=0).fit(RNG.normal(size=(30, 3)))
    return Exact().fit(model.path(RNG.normal(size=(7, 3)))).result_


@pytest.mark.parametrize("value", [35.2, -2e5])
def test_what_is_exact_but_for_rounding_shows_no_digits_of_it(value):
    off = 4e-16 * abs(value)
    result = PartitionResult("Exact", value, off, statement="enclosed")
    assert f"log Z = {value:.6f}, converged" in repr(result)
    assert "= 1.00000000 ± 0.00000023" in repr(PartitionResult("AIS", 1.0, 2.3e-7))


def test_a_repr_is_one_short_line(tempering, rows):
    for result in (tempering.result_, rows, RBM.score_interval(X), compare(RBM, FAIR, X)):
        assert len(repr(result).splitlines()) == 1
        assert len(repr(result)) < 160
    assert "7 rows" in repr(rows)


def test_a_frame_has_a_row_for_each_log_partition(tempering, rows):
    pytest.importorskip("pandas")
    one, several = tempering.result_.to_frame(), rows.to_frame()
    row = one.loc["ParallelTempering"]
    assert row["log_partition"] == tempering.log_partition_
    assert (row["low"], row["high"]) == tempering.result_.interval()
    assert row["converged"]
    np.testing.assert_array_equal(several["log_partition"], rows.log_partition)
    assert several["converged"].all()
    score = RBM.score_interval(X)
    assert score.to_frame().loc[0, "mean"] == score.mean
    apart = compare(RBM, FAIR, X)
    assert apart.to_frame().loc[0, "method"] == apart.method != ""
    assert (score.to_frame().loc[0, "low"], score.to_frame().loc[0, "high"]) == score.combined


def test_labelled_arrays(tempering, rows):
    pytest.importorskip("xarray")
    result, run = tempering.result_, tempering.run_
    data = result.to_xarray()
    np.testing.assert_array_equal(data["log_partition_curve"], result.log_partition_curve)
    np.testing.assert_array_equal(data["beta"], result.ladder)
    assert data["round_sweeps"].dims == ("round",)
    assert data.attrs["method"] == "ParallelTempering"
    np.testing.assert_array_equal(rows.to_xarray()["log_partition"], rows.log_partition)
    kept = run.to_xarray()
    assert kept["log_f"].dims == ("chain", "draw", "level")
    assert kept.sizes["chain"] == 4
    np.testing.assert_array_equal(kept["moved_at"], run.last.vector_levels)
    vectors = kept["log_f"].values.reshape(-1, len(run.ladder))
    np.testing.assert_array_equal(vectors, run.samples.vectors)


@pytest.mark.parametrize("estimator", [AIS(20, 50), SMC(10, 5, 3)])
def test_few_draws_of_one_state_have_no_error(estimator):
    """The base gives the state 0 only 0.95 of its mass; some seeds draw nothing else."""
    rbm = BernoulliRBM.from_parameters([[0.0]], [-1e5], [0.0])
    with may_not_converge():
        runs = [clone(estimator).set_params(random_state=s).fit(rbm) for s in range(10)]
    blind = [run for run in runs if run.log_partition_std_error_ < 1e-3]
    assert blind
    for run in blind:
        assert run.log_partition_ - np.log(2) == pytest.approx(-np.log(0.95), abs=1e-3)
        assert [alarm.kind for alarm in run.result_.alarms] == ["few-states"]
    assert AIS(100, 50, random_state=0).fit(rbm).converged_


def test_a_nan_is_not_converged_and_statements_are_of_a_fixed_set():
    assert not PartitionResult("AIS", log_partition=np.nan, std_error=0.1).converged
    assert not PartitionResult("AIS", np.array([1.0, np.nan]), 0.1).converged
    assert not PartitionResult("AIS", 1.0, np.nan).converged
    assert not PartitionResult("AIS", np.array([1.0, 2.0]), np.array([0.1, np.nan])).converged
    assert PartitionResult("AIS", np.nan, 0.1).reasons[0].startswith("log Z or its error is NaN")
    assert "not converged: log Z or its error is NaN" in repr(PartitionResult("AIS", np.nan, 0.1))
    with pytest.raises(ValueError, match="statement must be one of 'exact', .*, got 'estimated'"):
        PartitionResult("AIS", log_partition=1.0, std_error=0.1, statement="estimated")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"log_partition": []}, "log_partition must be real numbers in nats"),
        ({"alarms": 5}, "alarms must be a tuple of Alarm, got 5"),
        (
            {"sweeps": {"chains": "many"}},
            "sweeps must be numbers by purpose, got {'chains': 'many'}",
        ),
    ],
)
def test_fields_of_another_kind_are_named(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        PartitionResult(**{"method": "AIS", "log_partition": 1.0, "std_error": 0.1, **options})
