import numpy as np
import pytest

from sklpf.paths import LADDERS, make_ladder


@pytest.mark.parametrize("kind", LADDERS)
@pytest.mark.parametrize("n", [2, 3, 10, 1001])
def test_ladders_go_from_0_to_1(kind, n):
    ladder = make_ladder(kind, n)
    assert len(ladder) == n
    assert (ladder[0], ladder[-1]) == (0, 1)
    assert np.all(np.diff(ladder) > 0)


def test_shapes_of_the_ladders():
    np.testing.assert_allclose(make_ladder("linear", 5), [0, 0.25, 0.5, 0.75, 1])
    np.testing.assert_allclose(make_ladder("power", 5), [0, 0.0625, 0.25, 0.5625, 1])
    sigmoid = make_ladder("sigmoid", 101)
    np.testing.assert_allclose(sigmoid, 1 - sigmoid[::-1], atol=1e-12)
    assert sigmoid[1] < 0.005
    # 500 levels to 0.5, 4000 to 0.9, 10000 to 1, as published
    three_pieces = make_ladder("salakhutdinov-murray", 14501)
    np.testing.assert_allclose(three_pieces[[500, 4500]], [0.5, 0.9])
    np.testing.assert_allclose(
        np.diff(three_pieces)[[0, 1000, 10000]], [0.5 / 500, 0.4 / 4000, 0.1 / 10000]
    )


def test_an_array_is_taken_as_it_is():
    np.testing.assert_array_equal(make_ladder([0.1, 0.2, 1], 77), [0.1, 0.2, 1])


def test_rejects_unknown_kinds_and_short_ladders():
    with pytest.raises(ValueError, match="ladder must be one of"):
        make_ladder("cubic", 10)
    with pytest.raises(ValueError, match="n_temperatures must be an integer of at least 2"):
        make_ladder("linear", 1)
    with pytest.raises(ValueError, match="n_temperatures must be an integer of at least 2"):
        make_ladder("linear", "ten")
