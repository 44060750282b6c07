import numpy as np
import pytest

from sklpf.uncertainty import between_groups, groups_persist


def sums(states):
    """Sums and squares of states (G, n, S)."""
    return states.sum(axis=1), (states**2).sum(axis=1), states.shape[1]


def test_independent_groups_differ_by_one_over_their_size():
    """A share is chi2 with 9 degrees of freedom over 9 n; the mean of 400 within 4.5 errors: false
    alarms 7e-6.
    """
    rng = np.random.default_rng(0)
    shares = np.array([between_groups(*sums(rng.normal(size=(10, 50, 1)))) for _ in range(400)])
    assert abs(shares.mean() * 50 - 1) < 4.5 * np.sqrt(2 / 9 / 400) + 0.02  # and a bias of 1 / 50
    assert np.mean(shares > 0.1) == 0


def test_groups_in_modes_of_their_own_are_far_apart():
    rng = np.random.default_rng(0)
    modes = np.repeat([-3.0, 3.0], 5)[:, np.newaxis, np.newaxis]
    assert between_groups(*sums(modes + rng.normal(size=(10, 50, 4)))) > 0.8
    assert between_groups(*sums(np.ones((10, 50, 4)))) == 0  # nothing varies


def test_weights_count_as_so_many_states():
    """Groups of different sizes, each state with a weight, against the same states repeated."""
    rng = np.random.default_rng(0)
    states, weights = (
        rng.normal(size=(10, 30, 3)) + rng.normal(size=(10, 1, 3)),
        rng.integers(0, 4, size=(10, 30)),
    )
    weighted = [np.einsum("gn,gns->gs", weights, states**power) for power in (1, 2)]
    groups = [np.repeat(group, weight, axis=0) for group, weight in zip(states, weights)]
    repeated = [np.array([(group**power).sum(axis=0) for group in groups]) for power in (1, 2)]
    size = np.array([len(group) for group in groups])
    share = between_groups(*weighted, weights.sum(axis=1))
    assert share == pytest.approx(between_groups(*repeated, size), rel=1e-12)
    everything, means = np.concatenate(groups), np.array([group.mean(axis=0) for group in groups])
    between = (size @ (means - everything.mean(axis=0)) ** 2).sum() / size.sum() * 10 / 9
    assert share == pytest.approx(between / everything.var(axis=0).sum(), rel=1e-12)
    for array in (*weighted, weights):
        array[-1] = 0.0  # a group without weight tells nothing
    assert 0 < between_groups(*weighted, weights.sum(axis=1)) < 1


def test_groups_that_keep_their_own_numbers_are_found():
    """0.1 % of 4,000 right runs: 4 standard deviations are 8; a drift of all groups is none."""
    rng = np.random.default_rng(0)
    right = rng.normal(size=(4_000, 2, 10)) + rng.normal(size=(4_000, 2, 1))
    assert abs(sum(map(groups_persist, right)) - 4) < 8
    kept = np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 2.0, 2.0, 4.0, 4.0], (2, 1))
    noise = 0.1 * rng.normal(size=(2, 10))
    assert groups_persist(kept + noise)
    assert not groups_persist(0.005 * kept)  # immaterial
    assert not groups_persist(np.full((2, 10), np.nan))
