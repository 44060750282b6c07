"""Bennett's acceptance ratio: known answers, symmetries, extreme weights and bad input; ratios from
sums over pairs.
"""

import numpy as np
import pytest
from scipy.special import expit

from sklpf.reweighting import bar, bar_ratios, mbar, neighbour_overlap, overlap, stepping_stones


def gaussian_weights(log_ratio, spread, n_forward, n_reverse, seed):
    """Log weights of two directions that obey Crooks' relation exactly: normal with means -+
    spread^2 / 2.
    """
    rng = np.random.default_rng(seed)
    forward = log_ratio + rng.normal(-(spread**2) / 2, spread, n_forward)
    return forward, -log_ratio + rng.normal(-(spread**2) / 2, spread, n_reverse)


@pytest.mark.parametrize(("n_forward", "n_reverse"), [(400, 400), (900, 100), (50, 750)])
@pytest.mark.parametrize("spread", [0.3, 2.0, 4.0])
def test_mean_over_replicates_is_the_true_ratio(spread, n_forward, n_reverse):
    errors = [
        bar(*gaussian_weights(7.0, spread, n_forward, n_reverse, seed)) - 7.0 for seed in range(60)
    ]
    z = np.mean(errors) / (np.std(errors, ddof=1) / np.sqrt(len(errors)))
    # |t| with 59 degrees of freedom exceeds 4.5 with probability 3e-5; the bias, of order variance,
    # is far smaller
    assert abs(z) < 4.5


@pytest.mark.parametrize(("n_forward", "n_reverse"), [(40, 40), (30, 70)])
def test_solves_its_equation(n_forward, n_reverse):
    u, r = gaussian_weights(-3.0, 1.5, n_forward, n_reverse, 0)
    log_ratio, shift = bar(u, r), np.log(n_reverse / n_forward)
    left, right = expit(u - log_ratio + shift).sum(), expit(r + log_ratio - shift).sum()
    assert left == pytest.approx(right, rel=1e-10)


def test_draws_that_do_not_overlap_give_a_finite_root():
    assert bar([-1000.0], [-500.0]) == pytest.approx(-250.0)  # sigma(-1000 - L) = sigma(-500 + L)
    assert bar([-1e6] * 3, [-1e5] * 3) == pytest.approx(-450_000.0)


@pytest.mark.parametrize(
    ("forward", "reverse", "message"),
    [
        ([], [0.0], "forward_log_weights must be a sequence of at least one"),
        ([[0.0]], [0.0], "forward_log_weights must be a sequence of at least one"),
        ([0.0], [np.nan], "reverse_log_weights must not hold NaN"),
        ([np.inf], [0.0], "forward_log_weights must not hold NaN or"),
        ([0.0], [-np.inf], "reverse_log_weights are all -inf"),
    ],
)
def test_bad_weights_are_named(forward, reverse, message):
    with pytest.raises(ValueError, match=message):
        bar(forward, reverse)


def test_overlap_is_the_spectral_gap_of_the_overlap_matrix():
    u, r = gaussian_weights(0.5, 1.5, 30, 50, 3)
    log_ratio = bar(u, r)
    n = np.array([30, 50])
    # weights W_ik = n_k f_k / Z_k / sum_j n_j f_j / Z_j of both states at all draws, from log f_1 /
    # f_0
    odds = n[1] / n[0] * np.exp(np.concatenate([u, -r]) - log_ratio)
    posterior = np.stack([1 / (1 + odds), odds / (1 + odds)])
    second = np.sort(np.linalg.eigvals(posterior @ posterior.T / n[:, np.newaxis]).real)[0]
    # at the root the matrix is stochastic: its other eigenvalue is 1
    assert overlap(u, r, log_ratio) == pytest.approx(1 - second, abs=1e-9)
    assert 0 < second < 1


# ---- from sums over pairs, with any number of states at each level
def sums(u, r, shift):
    """What a run adds up of one pair."""
    both = u - shift, r + shift
    return np.array([function(part).sum() for function in (expit, np.exp) for part in both])


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
    vectors = np.stack([np.zeros_like(gaps), gaps], axis=1)
    assert mbar(vectors, [n_low, n_high])[1] == pytest.approx(exact, abs=1e-9)
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
    same = sums(np.zeros(5), np.zeros(5), 0.0)
    apart = sums(np.full(5, -50.0), np.full(5, -50.0), 0.0)
    values = neighbour_overlap(np.stack([same, apart])[np.newaxis], np.array([[5.0, 5.0, 5.0]]))
    np.testing.assert_allclose(values, [1.0, 0.0], atol=1e-12)
    assert neighbour_overlap(np.zeros((1, 1, 4)), np.zeros((1, 2))) == [0.0]
