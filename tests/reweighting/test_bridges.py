"""Ratios from sums over pairs, with any number of states at each level."""

import numpy as np
import pytest
from scipy.special import expit

from sklpf.reweighting import bar, bar_ratios, mbar, neighbour_overlap, overlap, stepping_stones


def sums(u, r, shift):
    """What a run adds up of one pair."""
    return np.array(
        [
            expit(u - shift).sum(),
            expit(r + shift).sum(),
            np.exp(u - shift).sum(),
            np.exp(r + shift).sum(),
        ]
    )


def pair(n_low, n_high):
    """log f_1 - log f_0 at draws from N(0, 1), and its negative at draws from N(1, 1)."""
    rng = np.random.default_rng(0)
    return rng.normal(size=n_low) - 0.5 + 3.0, -(rng.normal(size=n_high) + 1 - 0.5 + 3.0)


@pytest.mark.parametrize(("n_low", "n_high"), [(400, 400), (600, 200)])
def test_bridge_at_its_own_reference_is_bar_and_mbar_of_two_levels(n_low, n_high):
    u, r = pair(n_low, n_high)
    exact, counts = bar(u, r), np.array([[n_low, n_high]], dtype=float)
    shift = np.array([exact - np.log(n_high / n_low)])
    pair_sums = sums(u, r, shift[0])[np.newaxis, np.newaxis]
    assert bar_ratios(pair_sums, shift, counts)([0])[0] == pytest.approx(exact, abs=1e-9)
    gaps = np.r_[u, -r]
    assert mbar(np.stack([np.zeros_like(gaps), gaps], axis=1), [n_low, n_high])[1] == pytest.approx(
        exact, abs=1e-9
    )
    assert exact == pytest.approx(3.0, abs=0.2)


def test_stepping_stones_are_means_of_ratios():
    u, r = pair(300, 100)
    pair_sums = sums(u, r, 2.0)[np.newaxis, np.newaxis]
    forward, reverse = stepping_stones(pair_sums, np.array([2.0]), np.array([[300.0, 100.0]]))([0])
    assert forward[0] == pytest.approx(np.log(np.mean(np.exp(u))), abs=1e-12)
    assert reverse[0] == pytest.approx(-np.log(np.mean(np.exp(r))), abs=1e-12)


def test_neighbours_overlap_as_their_states_do():
    u, r = pair(300, 300)
    counts, exact = np.array([[300.0, 300.0]]), bar(u, r)
    at_exact, nearby = (sums(u, r, shift)[np.newaxis, np.newaxis] for shift in (exact, exact + 0.2))
    assert neighbour_overlap(at_exact, counts)[0] == pytest.approx(overlap(u, r, exact), abs=0.01)
    assert neighbour_overlap(nearby, counts)[0] == pytest.approx(overlap(u, r, exact), abs=0.02)
    same, apart = (
        sums(np.zeros(5), np.zeros(5), 0.0),
        sums(np.full(5, -50.0), np.full(5, -50.0), 0.0),
    )
    values = neighbour_overlap(np.stack([same, apart])[np.newaxis], np.array([[5.0, 5.0, 5.0]]))
    np.testing.assert_allclose(values, [1.0, 0.0], atol=1e-12)
    assert neighbour_overlap(np.zeros((1, 1, 4)), np.zeros((1, 2))) == [0.0]
