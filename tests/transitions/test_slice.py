"""Slice: invariance and its limits. `check_transition` gives false alarms at a rate of 1e-4; fixed
seeds.
"""

import numpy as np
import pytest
from densities import PATHS, smallest_p_value

from sklpf.paths import Stream, stream_key
from sklpf.testing import check_transition
from sklpf.transitions import Slice

KEY = stream_key(1)
MOVES = {
    "fixed": Slice(1.0),
    "auto": Slice(),
    "short": Slice(0.3, max_steps=3),
    "one": Slice(0.5, max_steps=1),
}


@pytest.mark.parametrize(
    ("name", "move"),
    [
        *((name, "auto") for name in PATHS),
        ("correlated", "fixed"),
        ("box", "short"),
        ("wall", "one"),
    ],
)
def test_moves_leave_every_level_invariant(name, move):
    path = PATHS[name]
    check_transition(path, MOVES[move].tune(path, KEY), variables=path.position)


@pytest.mark.parametrize("name", ["correlated", "half-open box", "wall"])
def test_chains_reach_the_target_and_stay(name):
    """10 groups of 500 chains and all together, 2 marginals, p > 1e-4: false alarms in 2e-3 of runs
    at most.
    """
    assert smallest_p_value(name, MOVES["fixed"], 15) > 1e-4


class StepsToTheRightToo(Slice):
    """Steps are not shared out: as many to the right as were given to the left."""

    def _interval(self, path, position, levels, j, threshold, rng):
        left, right = super()._interval(path, position, levels, j, threshold, rng)
        return left, np.minimum(right + (position[:, j] - left) * (position[:, j] > 0), np.inf)


class BelowTheSlice(Slice):
    @staticmethod
    def _evaluate(path, position, levels, j, values, threshold):
        return Slice._evaluate(path, position, levels, j, values, threshold - 0.3)


class NotReversed(Slice):
    def move(self, path, state, memory, levels, stream, reverse=False):
        return super().move(path, state, memory, levels, stream)


@pytest.mark.parametrize(
    "move",
    [
        StepsToTheRightToo(0.5, max_steps=2),
        BelowTheSlice(1.0),
        NotReversed(1.0),
    ],
)
def test_the_check_finds_wrong_moves(move):
    path = PATHS["correlated"]
    with pytest.raises(AssertionError, match="does not leave level|reversal is wrong"):
        check_transition(path, move, variables=path.position, n=20_000)


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


@pytest.mark.parametrize("parameters", [{"width": 0}, {"width": "wide"}, {"max_steps": 0}])
def test_parameters_are_checked(parameters):
    with pytest.raises(ValueError, match=f"The '{next(iter(parameters))}' parameter of Slice"):
        Slice(**parameters).check(PATHS["correlated"])
