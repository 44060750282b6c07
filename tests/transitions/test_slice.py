"""Slice: its limits and its widths."""

import numpy as np
from densities import PATHS

from sklpf.paths import Stream, stream_key
from sklpf.transitions import Slice

KEY = stream_key(1)


def test_points_of_density_0_stay():
    path = PATHS["wall"]
    state, levels = path.at(np.array([[-3.0, -3.0], [1.0, 1.0]])), np.array([3, 3])
    moved, _ = Slice(1.0).move(path, state, (), levels, Stream(KEY))
    np.testing.assert_array_equal(moved.position[0], [-3, -3])
    assert np.all(moved.position[1] != 1)


def test_intervals_stay_within_bounds():
    path = PATHS["half-open box"]
    state = path.sample_base(500, Stream(KEY))
    moved, _ = Slice(30.0).move(path, state, (), np.full(500, 5), Stream(KEY, step=1))
    assert np.all(moved.position[:, 0] >= 0)
    assert np.all(np.isfinite(moved.gain))


def test_widths_follow_the_scales_of_every_level():
    """Twice the standard deviation, at the base and at the target: a pilot knows it to 30 %."""
    path = PATHS["correlated"]
    pilot = Slice().tune(path, KEY).pilot
    np.testing.assert_allclose(np.exp(pilot.log_steps), 2)
    np.testing.assert_allclose(pilot.roots[[0, -1]], [[2**0.5] * 2, [1, 1]], rtol=0.3)
