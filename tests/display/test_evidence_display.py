"""ComparisonDisplay draws what a comparison of evidences says."""

import numpy as np
import pytest

from sklpf import PartitionResult, compare_evidence
from sklpf.partition import Alarm

pytest.importorskip("matplotlib")
from sklpf.display import ComparisonDisplay

DOUBTED = PartitionResult("HAIS", -106.0, 0.3, alarms=(Alarm("kind", "seen"),))
RESULTS = {"line": PartitionResult("HAIS", -104.2, 0.05), "sine": DOUBTED}


def test_both_panels():
    comparison = compare_evidence(RESULTS)
    display = ComparisonDisplay.from_result(comparison)
    left, right = display.axes_
    assert [label.get_text() for label in left.get_yticklabels()] == ["line", "sine"]
    bars = [line.get_xdata() for line in right.lines if len(line.get_xdata()) == 2]
    np.testing.assert_allclose(bars[1], comparison.models["sine"].probability_interval)
    points = [line for line in left.lines if len(line.get_xdata()) == 1]
    assert [line.get_markerfacecolor() for line in points] == ["k", "none"]
    again = display.plot(display.axes_)
    assert again.figure_ is display.figure_


def test_other_results():
    with pytest.raises(TypeError, match="compare_evidence"):
        ComparisonDisplay.from_result(RESULTS)
