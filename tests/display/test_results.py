"""Displays of what a partition estimator found: the arrays drawn are the result's, and others are
refused.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from convergence import may_not_converge
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import t as student_t

from sklpf import RTS, SMC, Exact, ParallelTempering
from sklpf.display import (
    ComparisonDisplay,
    RunDisplay,
    TopicsDisplay,
    TrainingDisplay,
)
from sklpf.partition import BAR, PartitionResult


# ---- what is drawn
def test_log_partition_is_drawn_with_a_band_that_ends_in_the_interval(tempering):
    display, result = RunDisplay.from_estimator(tempering, level=0.9), tempering.result_
    (line,) = display.ax_.lines
    assert_array_equal(line.get_xydata(), np.c_[result.ladder, result.log_partition_curve])
    low, high = result.interval(0.9)
    half = display.arrays["half_width"]
    assert half[-1] == pytest.approx(high - result.log_partition)
    errors = result.diagnostics["curve_std_error"]
    assert_allclose(half, half[-1] * errors / errors[-1], rtol=1e-12)
    corners = display.axes_[1].collections[0].get_paths()[0].vertices
    assert corners[:, 1].max() == pytest.approx(half.max())
    assert line.get_label() == display.name
    assert display.axes_[1].get_ylabel() == "90 % band (nats)"
    assert display.figure_ is display.ax_.figure


@may_not_converge()
@pytest.mark.parametrize(
    "estimator",
    [
        RTS(20, 6, 200, random_state=0),
        SMC(20, 10, random_state=0),
        BAR(ParallelTempering(4, 4, 64, random_state=0)),
    ],
    ids=["RTS", "SMC", "BAR"],
)
def test_every_curve_has_errors_that_rise_from_the_base_to_those_of_the_result(rbm, estimator):
    result = estimator.fit(rbm).result_
    errors = result.diagnostics["curve_std_error"]
    assert errors.shape == result.ladder.shape
    assert errors[0] == 0
    assert 0 < errors[-1] <= result.std_error * (1 + 1e-12)  # which other errors may widen
    display = RunDisplay.from_result(result)
    half = display.arrays["half_width"][-1]
    assert half == pytest.approx(result.interval()[1] - result.log_partition)


def test_weights_are_drawn_in_order_with_their_tail(ais):
    display = RunDisplay.from_estimator(ais, panels=["weights"])
    found = ais.result_.diagnostics
    assert display.ax_.get_title(loc="left") == "AIS"  # beside a legend without the name
    points, tail, _ = display.ax_.lines
    weights = np.exp(found["log_weights"])
    assert_allclose(points.get_ydata(), np.sort(weights)[::-1] / weights.mean())
    assert_array_equal(points.get_xdata(), np.arange(1, 101))
    assert len(tail.get_ydata()) == 20
    assert tail.get_label() == f"Pareto tail, k = {found['pareto_shape']:.2f}"
    assert points.get_label() == f"100 weights, {found['effective_sample_size']:.1f} effective"


def test_rounds_are_drawn_against_sweeps(tempering):
    display = RunDisplay.from_estimator(tempering, level=0.8, panels=["rounds"])
    result = tempering.result_
    bars = display.ax_.containers[0]
    found = result.diagnostics
    points = np.column_stack([found["round_sweeps"], found["round_log_partition"]])
    assert_array_equal(bars.lines[0].get_xydata(), points)
    half = student_t.ppf(0.9, result.degrees_of_freedom) * found["round_std_error"]
    assert_allclose(display.arrays["round_half_width"], half)
    last = display.arrays["round_half_width"][-1]
    assert last == pytest.approx(result.interval(0.8)[1] - result.log_partition)
    assert found["round_sweeps"][-1] == result.n_sweeps


def test_a_result_without_what_is_drawn_is_refused_and_who_has_it_is_named(rbm):
    message = "draws levels, rounds or weights, and this result of Exact has none: .*SMC"
    with pytest.raises(ValueError, match=message):
        RunDisplay.from_estimator(Exact().fit(rbm))
    with pytest.raises(ValueError, match=message):
        RunDisplay.from_result(PartitionResult("Exact", 1.0, 0.0))
    assert not plt.get_fignums()


# ---- matplotlib
def test_matplotlib_is_missed_in_a_sentence(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("matplotlib")]:
        monkeypatch.setitem(sys.modules, name, None)
    message = r"^TrainingDisplay needs matplotlib to draw: pip install 'sklpf\[plot\]'$"
    with pytest.raises(ImportError, match=message):
        TrainingDisplay([0.0, 1.0]).plot()


@pytest.mark.parametrize(
    ("display", "message"),
    [
        (TrainingDisplay([1.0], std_errors=[0.1, 0.2]), "std_errors must be an array of shape"),
        (TrainingDisplay(), "values or log_partition"),
        (TopicsDisplay([["a"]], [[0.5, 0.5]]), "words must have shape"),
        (ComparisonDisplay(scores=[1.0]), "scores must be a dict"),
    ],
)
def test_what_can_not_be_drawn_is_named(display, message):
    with pytest.raises((TypeError, ValueError), match=message):
        display.plot()
