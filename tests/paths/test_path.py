"""Paths: their contract and what it must find, tempered ones, and ladders."""

from typing import NamedTuple

import numpy as np
import pytest
from known_problems import hidden_mode_problem
from numpy.testing import assert_allclose, assert_array_equal

from sklpf.paths import LADDERS, Path, TemperedPath, make_ladder
from sklpf.testing import check_path


class Pair(NamedTuple):
    x: np.ndarray
    y: np.ndarray


class PairPath(Path):
    """log f_k = beta_k * (sum of x + y)."""

    base_log_partition = 0.0
    ladder = np.array([0.0, 0.5, 1.0])

    def log_f(self, state, levels):
        return self.ladder[levels] * (state.x.sum(axis=1) + state.y)

    def sample_base(self, n, stream):
        rng = stream.generator()
        return Pair(rng.normal(size=(n, 3)), rng.normal(size=n))


def test_check_path_passes_good_paths():
    check_path(PairPath())
    check_path(hidden_mode_problem(6).path)


@pytest.mark.parametrize("options", [{"random_state": "x"}, {"rtol": None}, {"rtol": -1.0}])
def test_check_path_names_what_it_can_not_use(options):
    with pytest.raises((TypeError, ValueError), match=next(iter(options))):
        check_path(PairPath(), **options)


class NotFinite(PairPath):
    def log_f(self, state, levels):
        return super().log_f(state, levels) / np.where(levels == 2, np.nan, 1)


class OneNumber(PairPath):
    def log_f(self, state, levels):
        return super().log_f(state, levels).sum()

    def log_f_ladder(self, state):
        return np.zeros((len(state.y), 3))


class OtherLadder(PairPath):
    def log_f_ladder(self, state):
        return 1 + super().log_f_ladder(state)


class GlobalRandomness(PairPath):
    def sample_base(self, n, stream):
        return Pair(np.random.default_rng().normal(size=(n, 3)), np.zeros(n))


class IgnoresBlock(PairPath):
    def sample_base(self, n, stream):
        return Pair(np.random.default_rng(0).normal(size=(n, 3)), np.zeros(n))


class WrongCount(PairPath):
    def sample_base(self, n, stream):
        return super().sample_base(n + 1, stream)


class WrongTake(PairPath):
    def take(self, state, index):
        return Pair(state.x[: len(index)], state.y[: len(index)])


class Destructive(PairPath):
    def log_f(self, state, levels):
        state.x[:] += 1e-9
        return super().log_f(state, levels)


class LosesParameters(PairPath):
    factor = 1.0

    def __init__(self):
        self.factor = 2.0

    def __getstate__(self):
        return {}

    def log_f(self, state, levels):
        return self.factor * super().log_f(state, levels)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (NotFinite, "must be finite"),
        (OneNumber, "log_f must have shape"),
        (GlobalRandomness, "the same draws for the same stream"),
        (WrongCount, "must return 61 chains, got 62"),
        (OtherLadder, "log_f_ladder"),
        (IgnoresBlock, "block"),
        (WrongTake, "take"),
        (LosesParameters, "pickle"),
        (Destructive, "must not change the state"),
    ],
)
def test_check_path_finds(kind, message):
    with pytest.raises(AssertionError, match=message):
        check_path(kind())


# ---- tempered paths
class TemperedPair(TemperedPath):
    """From a narrow to a wide normal density of (x, y)."""

    ladder = np.array([0.0, 0.5, 1.0])

    def ends(self, state):
        squares = np.sum(state.x**2, axis=1) + state.y**2
        return -2 * squares, 1.5 * squares + 1


def test_tempered_densities_follow_from_the_ends():
    path, rng = TemperedPair(), np.random.default_rng(0)
    state = Pair(rng.normal(size=(6, 3)), rng.normal(size=6))
    base, gain = path.ends(state)
    ladder = np.stack([base, base + 0.5 * gain, base + gain], axis=1)
    assert_array_equal(path.log_f_ladder(state), ladder)
    levels = np.arange(6) % 3
    assert_array_equal(path.log_f(state, levels), ladder[np.arange(6), levels])
    assert_array_equal(path.derivatives(state, levels), np.stack([gain, 0 * gain], axis=1))


def test_a_tempered_path_without_ends_says_so():
    with pytest.raises(NotImplementedError, match=r"TemperedPath must define ends\(state\)"):
        TemperedPath().log_f(np.zeros(2), np.zeros(2, dtype=int))


# ---- ladders
@pytest.mark.parametrize("kind", LADDERS)
@pytest.mark.parametrize("n", [2, 3, 10, 1001])
def test_ladders_go_from_0_to_1(kind, n):
    ladder = make_ladder(kind, n)
    assert len(ladder) == n
    assert (ladder[0], ladder[-1]) == (0, 1)
    assert np.all(np.diff(ladder) > 0)


def test_shapes_of_the_ladders():
    assert_allclose(make_ladder("linear", 5), [0, 0.25, 0.5, 0.75, 1])
    assert_allclose(make_ladder("power", 5), [0, 0.0625, 0.25, 0.5625, 1])
    sigmoid = make_ladder("sigmoid", 101)
    assert_allclose(sigmoid, 1 - sigmoid[::-1], atol=1e-12)
    assert sigmoid[1] < 0.005
    # 500 levels to 0.5, 4000 to 0.9, 10000 to 1, as published
    three_pieces = make_ladder("salakhutdinov-murray", 14501)
    assert_allclose(three_pieces[[500, 4500]], [0.5, 0.9])
    assert_allclose(np.diff(three_pieces)[[0, 1000, 10000]], [0.5 / 500, 0.4 / 4000, 0.1 / 10000])


def test_rejects_unknown_kinds_and_short_ladders():
    with pytest.raises(ValueError, match="ladder must be one of"):
        make_ladder("cubic", 10)
    with pytest.raises(ValueError, match="n_temperatures must be an integer of at least 2"):
        make_ladder("linear", 1)
    with pytest.raises(ValueError, match="n_temperatures must be an integer of at least 2"):
        make_ladder("linear", "ten")
