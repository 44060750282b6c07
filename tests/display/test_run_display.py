"""RunDisplay and DrawsDisplay: the panels show the arrays of a run, and the numbers of a report.

z-bound: 4 standard errors of a share, a false-alarm rate of 6e-5 a comparison; seeds are fixed.
"""

import numpy as np
import pytest
from convergence import may_not_converge
from sklearn.exceptions import NotFittedError

from sklpf import (
    BDMC,
    SMC,
    BridgeSampling,
    Gaussian,
    GeometricPath,
    Mixture,
    check_draws,
)
from sklpf.display import DrawsDisplay, RunDisplay
from sklpf.partition import BAR, ImportanceSampling
from sklpf.transitions import RandomWalk

TWO = Mixture([Gaussian([-2, -2], 0.25), Gaussian([2, 2], 0.25)], [0.3, 0.7])


@pytest.fixture(scope="module")
def path():
    return GeometricPath(TWO.log_density, base=Gaussian([0.0, 0.0], 9.0))


@pytest.fixture(scope="module")
def smc(path):
    return SMC(n_temperatures=20, random_state=0).fit(path)


def labels(display):
    return [axes.get_ylabel() for axes in display.axes_]


def test_populations_show_acceptance_effective_shares_and_regions(smc):
    display = RunDisplay.from_result(smc.result_, smc.run_)
    assert display.panels_ == ("log Z", "band", "acceptance", "weights", "regions")
    assert len(display.axes_) == len(display.figure_.axes) == 5
    (levels,) = display.axes_[0].lines
    np.testing.assert_array_equal(levels.get_xdata(), smc.run_.ladder)
    lines = display.axes_[3].lines
    assert len(lines) == 10
    shares = smc.run_.effective_sizes / 100
    np.testing.assert_allclose([line.get_ydata() for line in lines], shares, rtol=1e-12)
    heights = [bar.get_height() for bar in display.axes_[4].patches]
    np.testing.assert_array_equal(
        heights, [*display.arrays["region_masses"], *display.arrays["region_shares"]]
    )


@pytest.mark.parametrize("n_columns", [1, 3])
def test_explored_targets_show_draws_by_region(n_columns):
    """The columns are those that tell the modes apart: with three, not the one between."""
    centre = np.full(n_columns, 2.0)
    centre[1:2] = 0.0
    two = Mixture([Gaussian(-centre, 0.25), Gaussian(centre, 0.25)], [0.3, 0.7])
    path = GeometricPath(two.log_density, base=Gaussian(np.zeros(n_columns), 9.0))
    explored = ImportanceSampling(proposal="explored", random_state=0).fit(path)
    display = RunDisplay.from_estimator(explored)
    assert display.panels_ == ("weights", "cover")
    assert list(display.arrays["cover_columns"]) == {1: [0], 3: [0, 2]}[n_columns]
    is_right = display.arrays["cover_draws"][:, 0] > 0
    share = np.mean(is_right)
    numbers = np.unique(display.arrays["cover_regions"][is_right])
    assert len(np.unique(display.arrays["cover_regions"])) == 2
    assert len(numbers) == 1
    error = np.sqrt(0.3 * 0.7 / len(explored.run_.draws.points))
    assert abs(share - 0.7) < 4 * error


def test_tempering_shows_neighbours_and_round_trips(tempering):
    display, found = RunDisplay.from_estimator(tempering), tempering.result_.diagnostics
    swaps, overlap = display.axes_[2].patches
    np.testing.assert_array_equal(swaps.get_data().values, 1 - found["rejection"])
    np.testing.assert_array_equal(overlap.get_data().values, found["overlap"])
    np.testing.assert_array_equal(overlap.get_data().edges, tempering.result_.ladder)
    # few levels of an easy model
    assert np.all((found["overlap"] > 0.3) & (found["overlap"] <= 1.05))
    trips = [bar.get_height() for bar in display.axes_[3].patches]
    np.testing.assert_array_equal(trips, found["round_trips"])


@may_not_converge()
def test_panels_are_named_and_two_estimates_share_axes(tempering):
    display = RunDisplay.from_estimator(tempering, panels=["band", "log Z"])
    assert labels(display) == ["95 % band (nats)", "log Z (nats)"]
    bar = BAR().fit(tempering.run_)
    RunDisplay.from_estimator(bar, panels=["band", "log Z"], ax=display.axes_)
    assert len(display.axes_[1].lines) == 2
    names = [text.get_text() for text in display.axes_[1].get_legend().texts]
    assert names == [display.name, bar.result_.method]
    assert display.ax_.get_title(loc="left") == ""  # the legend has both
    for panels in (["tail"], []):
        with pytest.raises(ValueError, match="panels must be some of 'log Z', 'band', 'accept"):
            RunDisplay.from_estimator(tempering, panels=panels)


def test_what_has_no_run_or_no_levels_is_refused(smc):
    with pytest.raises(TypeError, match="result must be a PartitionResult, such as result_"):
        RunDisplay.from_result(smc.run_)
    with pytest.raises(NotFittedError):
        RunDisplay.from_estimator(SMC())
    draws = np.random.default_rng(0).normal(size=(4, 200, 1))
    bridge = BridgeSampling(random_state=0).fit(lambda x: -np.sum(x**2, axis=1) / 2, draws=draws)
    assert RunDisplay.from_estimator(bridge).panels_ == ("regions",)
    with pytest.raises(ValueError, match="this result of BridgeSampling has none"):
        RunDisplay.from_result(bridge.result_)


@may_not_converge()
def test_bdmc_shows_forward_weights_and_no_overlap_of_levels():
    path = GeometricPath(lambda x: -np.sum(x**2, axis=1), base=Gaussian([0.0], 1.0))
    bdmc = BDMC(10, 20, transition=RandomWalk(1.0), random_state=0).fit(path)
    display = RunDisplay.from_estimator(bdmc)
    assert "overlap" not in display.arrays
    forward = bdmc.result_.diagnostics["forward_log_weights"]
    np.testing.assert_array_equal(display.arrays["log_weights"], forward)
    assert "weights" in display.panels_


# ---- reports of draws
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
    assert display.ax_.get_title(loc="left").strip() == "BridgeSampling, not converged"
    display.figure_.canvas.draw()
    first_line = display.ax_._left_title.get_window_extent().y1 - modes.get_legend().prop.get_size()
    assert modes.get_legend().get_window_extent().y1 < first_line
    with pytest.raises(TypeError, match="report must be what check_draws returns, got PartitionR"):
        DrawsDisplay.from_report(report.result)
