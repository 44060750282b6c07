"""Error bars, tails of weights, groups that disagree, and effective numbers of draws."""

import numpy as np
import pytest
from draws import autoregressive
from scipy.special import logsumexp
from scipy.stats import genpareto

from sklpf.uncertainty import (
    between_groups,
    count_interleaved,
    deinterleaved,
    difference,
    effective_draws,
    first_axis_is_time,
    groups_persist,
    jackknife,
    log_mean_exp,
    pareto_shape,
    pareto_tail,
    split_r_hat,
)


def test_jackknife_of_means_gives_the_usual_standard_errors():
    x = np.random.default_rng(0).normal(size=(20, 3))
    value, std_error = jackknife(lambda keep: x[keep].mean(axis=0), 20)
    np.testing.assert_allclose(value, x.mean(axis=0))
    np.testing.assert_allclose(std_error, x.std(axis=0, ddof=1) / np.sqrt(20))
    found = difference(lambda keep: x[keep, 0].mean(), 20)
    assert (found.value, found.t) == pytest.approx((value[0], value[0] / std_error[0]))


def test_jackknife_of_a_log_mean_is_honest():
    # 2000 repeats of the log of a mean of 40: the estimated variance averages to the real one
    # within 10 %, where the ratio's own standard error is 3 %
    rng = np.random.default_rng(1)
    samples = rng.exponential(size=(2000, 40))
    runs = np.array([jackknife(lambda keep, x=x: np.log(x[keep].mean()), 40) for x in samples])
    assert np.mean(runs[:, 1] ** 2) / runs[:, 0].var() == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_log_mean_exp_is_as_exact_as_scipy(axis):
    x = np.random.default_rng(0).normal(-1e4, [[1e-6], [1], [1e3]], size=(3, 50))
    n = x.size if axis is None else x.shape[axis]
    expected = logsumexp(x, axis=axis) - np.log(n)
    np.testing.assert_allclose(log_mean_exp(x, axis), expected, rtol=1e-14)


@pytest.mark.filterwarnings("error")
def test_log_mean_exp_of_nothing_but_zeros():
    assert log_mean_exp([-np.inf, -np.inf]) == -np.inf
    np.testing.assert_equal(log_mean_exp([[-np.inf, -np.inf], [0, 0]], axis=1), [-np.inf, 0])


# ---- the shape of a tail
@pytest.mark.parametrize("shape", [0.1, 0.3, 0.5, 0.7, 1.0, 1.5])
def test_shape_of_pareto_tails(shape):
    # tail of 300 of 10000: the shape's standard error is about (1 + shape) / sqrt(300); 4.5 of
    # them, 7e-6 each
    weights = genpareto.rvs(shape, size=10_000, random_state=1)
    estimate = pareto_shape(np.log(weights))
    expected = (300 * shape + 5) / 310  # drawn towards 0.5 by ten observations
    assert estimate == pytest.approx(expected, abs=4.5 * (1 + shape) / np.sqrt(300))


def test_light_tails_are_not_flagged():
    rng = np.random.default_rng(0)
    shapes = [pareto_shape(rng.normal(scale=0.1, size=100)) for _ in range(200)]
    # bounded in practice: over 200 runs of narrow weights none may look heavy
    assert max(shapes) < 0.7


def test_the_fitted_tail_follows_the_weights():
    weights = np.sort(genpareto.rvs(0.4, size=10_000, random_state=2))[::-1]
    tail = pareto_tail(np.log(weights))
    assert tail.shape == pareto_shape(np.log(weights))
    assert tail.n == 300
    assert tail.threshold == pytest.approx(weights[300] / weights[0])
    # quantiles 10 to 290 of 300: those of the fit are within a few percent (relative errors of
    # about 1.4 / sqrt(i))
    np.testing.assert_allclose(tail.weights(300)[10:290], weights[10:290] / weights[0], rtol=0.5)
    np.testing.assert_allclose(tail.weights(300)[100:290], weights[100:290] / weights[0], rtol=0.1)


# ---- groups that disagree
def group_sums(states):
    """Sums and squares of states (G, n, S)."""
    return states.sum(axis=1), (states**2).sum(axis=1), states.shape[1]


def test_independent_groups_differ_by_one_over_their_size():
    """A share is chi2 with 9 degrees of freedom over 9 n; the mean of 400 within 4.5 errors: false
    alarms 7e-6.
    """
    rng = np.random.default_rng(0)
    runs = rng.normal(size=(400, 10, 50, 1))
    shares = np.array([between_groups(*group_sums(states)) for states in runs])
    assert abs(shares.mean() * 50 - 1) < 4.5 * np.sqrt(2 / 9 / 400) + 0.02  # and a bias of 1 / 50
    assert np.mean(shares > 0.1) == 0


def test_weights_count_as_so_many_states():
    """Groups of different sizes, each state with a weight, against the same states repeated."""
    rng = np.random.default_rng(0)
    states = rng.normal(size=(10, 30, 3)) + rng.normal(size=(10, 1, 3))
    weights = rng.integers(0, 4, size=(10, 30))
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


# ---- correlated draws
@pytest.mark.parametrize(("correlation", "n_chains"), [(0.5, 1), (0.9, 4)])
def test_effective_number_of_autoregressive_chains(correlation, n_chains):
    """n (1 - r) / (1 + r); over 8 chains of these lengths the mean is within 10 %."""
    truth = 20_000 * (1 - correlation) / (1 + correlation)
    n_draws = 20_000 // n_chains
    samples = (autoregressive(correlation, (n_chains, n_draws), seed) for seed in range(8))
    found = [effective_draws(sample) for sample in samples]
    assert np.mean(found) == pytest.approx(truth, rel=0.1)


def test_differences_between_chains_count():
    x = autoregressive(0.0, (4, 1000))
    apart = x + np.array([[0.0], [0.0], [1.0], [1.0]])
    assert effective_draws(apart) < 20
    assert split_r_hat(apart) > 1.1
    assert split_r_hat(x) < 1.01


def test_constants_and_short_chains():
    assert effective_draws(np.full((2, 100), 0.3)) == 200
    assert effective_draws(np.zeros((2, 5))) == 10
    assert split_r_hat(np.full((2, 100), 0.3)) == 1
    assert split_r_hat(np.array([[1.0, 2.0]])) == 1


# -- the order of draws
def walkers(correlation, n_chains=16, n_steps=200, d=4, seed=0):
    """Normal AR(1) chains (n_chains, n_steps, d)."""
    return autoregressive(correlation, (n_chains, n_steps, d), seed)


@pytest.mark.parametrize("correlation", [0.5, 0.9, 0.97])
def test_orders_are_seen(correlation):
    """Chains that take turns, in one series and from its middle on, and steps first."""
    right = walkers(correlation)
    flat = right.swapaxes(0, 1).reshape(1, -1, 4)
    assert count_interleaved(flat) == count_interleaved(flat[:, 7:]) == 16
    np.testing.assert_array_equal(deinterleaved(flat, 16), right)
    assert first_axis_is_time(right.swapaxes(0, 1))


@pytest.mark.parametrize("correlation", [-0.5, 0.0, 0.9, 0.97])
@pytest.mark.parametrize("n_chains", [1, 4, 20])
def test_the_right_order_is_left(correlation, n_chains):
    """3 of each, at a false alarm of 1e-5 each: .1 % of all 12 times 9 tests."""
    for seed in range(3):
        right = walkers(correlation, n_chains, 1000, 3, seed)
        assert count_interleaved(right) == 1
        assert not first_axis_is_time(right)
        assert count_interleaved(right.reshape(1, -1, 3)) == 1  # one after another


def test_walkers_that_depend_on_each_other_are_seen():
    """A slow part that all have in common leaves no lag without correlation between walkers."""
    right = walkers(0.95) + 0.3 * walkers(0.99, 1)
    flat = right.swapaxes(0, 1).reshape(1, -1, 4)
    assert count_interleaved(flat) == 16


@pytest.mark.parametrize("n_steps", [12, 20, 40])
def test_short_chains_are_left(n_steps):
    """20 sets at a false alarm of 1e-5 each."""
    assert all(count_interleaved(walkers(0.5, 64, n_steps, seed=seed)) == 1 for seed in range(20))


def test_chains_in_modes_of_their_own_are_no_steps():
    apart = walkers(0.5) + 5.0 * (np.arange(16) > 7)[:, np.newaxis, np.newaxis]
    assert not first_axis_is_time(apart)


def test_batches_contradict_a_sum_that_ended_too_early():
    """A slow part with a tenth of the variance, below noise at every lag: its time of 400 makes 40
    of the sum. And chains that move together.
    """
    rng = np.random.default_rng(0)
    slow = walkers(0.995, 1, 40_000, 1)[..., 0]
    series = np.sqrt(0.9) * rng.standard_normal(slow.shape) + np.sqrt(0.1) * slow
    assert float(effective_draws(series)) < 3 * 40_000 / 41

    common = walkers(0.9, 1, 2000, 1)[..., 0]
    together = common + rng.standard_normal((50, 2000))
    assert float(effective_draws(together)) < 1000


def test_short_chains_that_differ_are_a_draw_each():
    stuck = np.repeat(np.random.default_rng(0).standard_normal((50, 1)), 5, axis=1)
    assert float(effective_draws(stuck)) == pytest.approx(50, rel=0.1)
    free = np.random.default_rng(0).standard_normal((50, 5))
    assert float(effective_draws(free)) == 250


def test_draws_that_drift_are_not_those_of_walkers_that_take_turns():
    """200 sets: none by chance, at 1e-5 each."""
    for seed in range(200):
        x = np.random.default_rng(seed).normal(size=(1, 1500, 1))
        x[:, :500] -= 0.7
        assert count_interleaved(x) == 1
