"""DrawsDisplay: the panels show the report's numbers."""

import numpy as np
import pytest

from sklpf import check_draws
from sklpf.display import DrawsDisplay


def log_density(x):
    return np.logaddexp(*(-np.sum((x - centre) ** 2, axis=1) / 2 for centre in (0, 9)))


@pytest.fixture(scope="module")
def report():
    draws = np.random.default_rng(0).normal(size=(4, 500, 2))
    return check_draws(log_density, draws, random_state=0)


def test_modes_and_log_z_by_parts_of_the_draws(report):
    display = DrawsDisplay.from_report(report)
    modes, log_partition = display.axes_
    heights = [bar.get_height() for bar in modes.patches]
    assert heights == [m.mass for m in report.modes] + [m.share for m in report.modes]
    known = report.result.diagnostics
    values = report.result.log_partition, *known["half_log_partition"], known["check_log_partition"]
    np.testing.assert_array_equal(log_partition.lines[-1].get_xdata(), values)
    assert display.ax_.get_title(loc="left") == "BridgeSampling, not converged"


def test_without_modes_there_is_one_panel():
    def peak(x):  # no Gaussian has its shape
        return -np.sum(np.abs(x), axis=1) * 30

    draws = np.random.default_rng(0).laplace(size=(4, 500, 2)) / 30
    report = check_draws(peak, draws, random_state=0)
    assert len(DrawsDisplay.from_report(report).axes_) == 1 + bool(report.modes)


def test_other_things_are_no_reports(report):
    with pytest.raises(TypeError, match="report must be what check_draws returns, got PartitionR"):
        DrawsDisplay.from_report(report.result)
