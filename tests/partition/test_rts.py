"""RTS: equations, right values, honest errors, alarms, streams and bad input.

z-bounds: 4.8 standard errors with 9 degrees of freedom is a false-alarm rate of 1e-3 a comparison; seeds are fixed.
"""

import warnings

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp, softmax
from sklearn.exceptions import ConvergenceWarning
from sklpf.partition._mbar import mbar
from sklpf.partition._rts_combine import Pooled, bias, combine_rounds, influence, rts_curve, standard_error
from sklpf.partition._rts_rounds import Setup, run_pilot, run_round

from sklpf import RTS, Exact
from sklpf._random import Stream
from sklpf.models.rbm._path import RBMPath
from sklpf.partition._rts import _doubling
from sklpf.partition._rts_judge import judge
from sklpf.paths import Path
from sklpf.testing import hidden_mode_problem, make_rbm_problem, shared_data
from sklpf.transitions import Gibbs

T_BOUND = 4.8
CURVE = np.array([0.0, 3.0, -2.0, 700.0, 5.0])  # some log Z_k


def marginal(log_weights):
    """The exact distribution of the level, equation 8."""
    return log_softmax(CURVE + log_weights)


def random_weights(seed, scale=1.0):
    return np.random.default_rng(seed).normal(scale=scale, size=len(CURVE)) - CURVE


# ---- equations -----------------------------------------------------------------------------------
def test_equation_12_inverts_equation_8():
    log_weights = random_weights(0, scale=3.0)
    np.testing.assert_allclose(rts_curve(log_weights, marginal(log_weights)), CURVE, rtol=1e-12)


def test_one_round_combined_is_equation_12():
    log_weights, log_shares = random_weights(0), np.log(softmax(np.random.default_rng(1).normal(size=5)))
    alone = combine_rounds(log_weights[np.newaxis], log_shares[np.newaxis], [1.0])
    np.testing.assert_allclose(alone, rts_curve(log_weights, log_shares), rtol=1e-12)


def test_rounds_with_equal_weights_are_pooled():
    """Here Newton's method has work to do, and equation 12 on the pooled averages gives its result."""
    log_weights, rng = random_weights(0), np.random.default_rng(1)
    shares, sizes = softmax(rng.normal(size=(3, 5)), axis=1), np.array([1.0, 2.0, 5.0])
    pooled = sizes @ shares / sizes.sum()
    combined = combine_rounds(np.tile(log_weights, (3, 1)), np.log(shares), sizes)
    np.testing.assert_allclose(combined, rts_curve(log_weights, np.log(pooled)), atol=1e-12, rtol=1e-12)


def test_rounds_with_different_weights():
    log_weights = np.array([random_weights(seed, scale=2.0) for seed in range(4)])
    exact = np.array([marginal(row) for row in log_weights])
    sizes = np.array([1.0, 10.0, 3.0, 7.0])
    np.testing.assert_allclose(combine_rounds(log_weights, exact, sizes), CURVE, atol=1e-9)
    shares = softmax(exact + np.random.default_rng(5).normal(scale=0.3, size=exact.shape), axis=1)
    zeta = combine_rounds(log_weights, np.log(shares), sizes)
    gradient = sizes @ (shares - softmax(zeta + log_weights, axis=1))
    np.testing.assert_allclose(gradient, 0, atol=1e-10)
    last_only = combine_rounds(log_weights, np.log(shares), [1e-12, 1e-12, 1e-12, 1.0])
    np.testing.assert_allclose(last_only, rts_curve(log_weights, np.log(shares))[3], atol=1e-8)


def test_combination_survives_shares_that_underflow():
    log_shares = np.array([[-1.0, np.log1p(-np.exp(-1.0)), -1200.0], [-900.0, 0.0, -800.0]])
    zeta = combine_rounds(np.zeros((2, 3)), log_shares, [1.0, 1.0])
    assert np.all(np.isfinite(zeta))


def chain_shares(n_chains, seed):
    """Averages of correlated chains, and the weights they ran with."""
    rng = np.random.default_rng(seed)
    return softmax(rng.normal(scale=0.5, size=(n_chains, 5)), axis=1), rng.normal(size=5)


def test_influence_gives_equation_16():
    shares, log_weights = chain_shares(50, 0)
    zeta = rts_curve(log_weights, np.log(shares.mean(axis=0)))
    influences = influence(log_weights[np.newaxis], shares[np.newaxis], np.ones(1), zeta, 3)
    covariance, mean = np.cov(shares.T) / 50, shares.mean(axis=0)
    expected = covariance[0, 0] / mean[0] ** 2 + covariance[3, 3] / mean[3] ** 2
    expected -= 2 * covariance[0, 3] / (mean[0] * mean[3])
    assert standard_error(influences) == pytest.approx(np.sqrt(expected), rel=1e-10)
    assert influences.mean() == pytest.approx(0, abs=1e-12)


def test_influence_of_several_rounds_is_the_derivative():
    shares, log_weights = (
        np.array([chain_shares(50, s)[0] for s in range(2)]),
        np.random.default_rng(3).normal(size=(2, 5)),
    )
    sizes = np.array([1.0, 4.0])

    def estimate(weights):
        return combine_rounds(log_weights, np.log(np.einsum("m,tmk->tk", weights, shares)), sizes)

    equal, step = np.full(50, 0.02), 1e-6
    influences = influence(log_weights, shares, sizes / sizes.max(), estimate(equal), 3)
    for chain in (0, 17):
        tilted = (1 - step) * equal + step * (np.arange(50) == chain)
        assert (estimate(tilted) - estimate(equal))[3] / step == pytest.approx(influences[chain], abs=1e-4)


def test_equation_15_is_the_bias_to_second_order():
    """2000 experiments of 100 chains: the mean error of log ratios against the mean prediction, z-bound 4."""
    rng = np.random.default_rng(0)
    shares = rng.gamma([0.3, 5.0], 1.0, size=(2000, 100, 2)) / [0.3, 5.0]  # means 1, variances 1 / 0.3 and 1 / 5
    error = np.log(shares[..., 1].mean(axis=1)) - np.log(shares[..., 0].mean(axis=1))
    predicted = np.array([bias(experiment) for experiment in shares])
    assert predicted.mean() == pytest.approx((1 / 0.3 - 1 / 5) / 200, rel=0.1)
    assert abs((error - predicted).mean()) < 4 * (error - predicted).std() / np.sqrt(2000)


def test_rts_is_one_step_of_mbar_from_the_prior():
    """Appendix D of the paper: with n_j / N := r_j, one fixed-point step from the estimate gives equation 12."""
    vectors, guess = np.random.default_rng(0).normal(size=(200, 4)) * 3, np.array([0.0, 1.0, -2.0, 0.5])
    log_prior = np.log([0.1, 0.2, 0.3, 0.4])
    log_mixture = logsumexp(vectors + log_prior - guess, axis=1, keepdims=True)
    step = logsumexp(vectors - log_mixture, axis=0)
    log_shares = logsumexp(log_softmax(vectors + log_prior - guess, axis=1), axis=0)
    np.testing.assert_allclose(rts_curve(log_prior - guess, log_shares), step - step[0], atol=1e-12)


def test_pooled_uses_the_groups_it_is_given():
    sums = np.log(np.array([[[1.0, 3.0], [2.0, 2.0], [4.0, 1.0]]]))
    pooled = Pooled(np.zeros((1, 2)), sums)
    np.testing.assert_allclose(pooled(np.array([0, 2])), [0, np.log(4 / 5)], atol=1e-12)
    smoothed = Pooled(np.zeros((1, 2)), sums, log_extra=np.log(0.1))
    np.testing.assert_allclose(np.exp(smoothed.log_shares([1])), [[0.5, 0.5]], atol=1e-12)


# ---- stages --------------------------------------------------------------------------------------
def make_setup(path, n_levels=11, sweeps_per_redraw=1):
    first = np.arange(0, 101, 10)
    path = path.with_ladder(np.linspace(0, 1, n_levels))
    return Setup(path, Gibbs(), first, 0, sweeps_per_redraw, True, {"n_jobs": None, "checkpoint": None})


@pytest.mark.parametrize("n_sweeps", [4, 10, 37])
def test_pilot_knows_every_level_and_starts_at_all(n_sweeps):
    """Also with fewer sweeps than levels; 5 standard errors hold for the 10 levels together."""
    problem = make_rbm_problem("easy")
    setup = make_setup(problem.path)
    starts, log_weights = run_pilot(setup, np.full(11, -np.log(11)), n_sweeps)
    exact = [Exact().fit(problem.path.with_ladder([0, beta])).log_partition_ for beta in setup.path.ladder[1:]]
    estimate = logsumexp(log_weights, axis=0) - np.log(100)
    error = np.exp(log_weights - estimate).std(axis=0) / 10
    assert np.all(np.abs(estimate[1:] - exact) < 5 * error[1:])
    levels = np.concatenate([levels for _, levels in starts])
    reached = {4: [0, 3, 5, 8, 10]}.get(n_sweeps, np.arange(11))
    np.testing.assert_array_equal(np.unique(levels), reached)
    assert all(len(state.v) == 10 for state, _ in starts)


class Echo(Path):
    """A chain remembers the level it was moved at last, and log f_k says which it was."""

    base_log_partition = 0.0

    def log_f(self, state, levels):
        return -0.1 * (state - levels) ** 2.0

    def sample_base(self, n, stream):
        return np.zeros(n, dtype=int)

    def gibbs(self, state, levels, stream):
        return levels.copy()


@pytest.mark.parametrize("n_moves_per_segment", [3, 8, 100])
def test_kept_vectors_are_a_thinning_with_the_levels_they_were_moved_at(n_moves_per_segment):
    path = Echo()
    path.n_moves_per_segment = n_moves_per_segment
    setup = make_setup(path, n_levels=7)
    starts = [(np.zeros(10, dtype=int), np.full(10, 3)) for _ in range(10)]
    last = run_round(setup, (0,), starts, np.zeros(7), 90, n_kept=1500)
    assert last.vectors.shape == (100, last.vectors.shape[1], 7)
    assert 900 <= last.vector_levels.size <= 1500 * 1.1
    np.testing.assert_array_equal(last.vectors.argmax(axis=2), last.vector_levels)
    assert len(np.unique(last.vector_levels)) == 7
    np.testing.assert_array_equal(last.counts.sum(axis=2), 45)
    np.testing.assert_allclose(logsumexp(last.log_q_sums, axis=2), np.log(45), rtol=1e-12)


def test_round_has_the_stationary_distribution_of_equation_8():
    """True log Z minus a known tilt as weights: the shares are known. z-bound 4.8 at every level (t, 9 groups)."""
    problem = make_rbm_problem("easy")
    setup = make_setup(problem.path, n_levels=5)
    exact = np.r_[0, [Exact().fit(problem.path.with_ladder([0, b])).log_partition_ for b in setup.path.ladder[1:]]]
    log_prior = np.log([0.1, 0.3, 0.2, 0.1, 0.3])
    starts, _ = run_pilot(setup, log_prior, 40)
    burnt = run_round(setup, (0,), starts, log_prior - exact, 200)
    last = run_round(setup, (1,), burnt.starts, log_prior - exact, 1000)
    groups = last.shares(True).reshape(10, 10, 5).mean(axis=1)
    error = groups.std(axis=0, ddof=1) / np.sqrt(10)
    assert np.all(np.abs(groups.mean(axis=0) - np.exp(log_prior)) < T_BOUND * error)
    assert error.max() < 0.02
    counted = last.shares(False).mean(axis=0)
    np.testing.assert_allclose(counted, groups.mean(axis=0), atol=0.01)  # 1e5 draws, correlated


@pytest.mark.parametrize("n_redraws", [4, 8, 15, 16, 250, 1001])
def test_burn_in_rounds_double(n_redraws):
    lengths = _doubling(n_redraws)
    assert sum(lengths) == n_redraws
    assert all(later >= earlier - 1 for earlier, later in zip(lengths, lengths[1:]))


# ---- the estimator -------------------------------------------------------------------------------
@pytest.mark.parametrize("weights", ["marginal", "joint"])
@pytest.mark.parametrize("parameters", [{}, {"rao_blackwell": False}, {"prior": 2.0}, {"ladder": "sigmoid"}])
def test_is_right_at_a_known_log_partition(parameters, weights):
    problem = make_rbm_problem("easy", weights=weights)
    rts = RTS(n_temperatures=20, n_sweeps=1500, random_state=1, **parameters).fit(problem.path)
    assert rts.converged_
    assert rts.log_partition_std_error_ < 0.15
    z = (rts.log_partition_ - problem.log_partition) / rts.log_partition_std_error_
    assert abs(z) < T_BOUND
    assert rts.result_.method == ("RTS" if parameters.get("rao_blackwell", True) else "TS")


def test_curve_matches_enumeration_at_every_level():
    problem = make_rbm_problem("digits")
    result = RTS(n_temperatures=20, n_sweeps=3000, random_state=0).fit(problem.path).result_
    exact = [Exact().fit(problem.path.with_ladder([0, beta])).log_partition_ for beta in result.ladder[1:]]
    # the curve's error grows along the ladder to the reported one: 5 standard errors hold for all levels together
    np.testing.assert_allclose(result.log_partition_curve[1:], exact, atol=5 * result.std_error)
    assert result.log_partition_curve[0] == 0.0
    assert result.log_partition_curve[-1] == result.log_partition


def test_intervals_cover_without_false_alarms():
    """60 seeds: at 95 % coverage fewer than 51 covered has probability 2e-3 (binomial); alarms 0.5 % a run."""
    problem = make_rbm_problem("easy")
    covered, flagged = 0, 0
    for seed in range(60):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            rts = RTS(n_temperatures=8, n_sweeps=400, random_state=seed).fit(problem.path)
        low, high = rts.log_partition_interval_
        covered += low <= problem.log_partition <= high
        flagged += not rts.converged_
    assert covered >= 51
    assert flagged <= 3  # 4 or more of 60 has probability 3e-4


def test_given_ladder_and_prior_stay():
    ladder, prior = np.array([0.0, 0.1, 0.4, 1.0]), np.array([1.0, 2.0, 3.0, 4.0])
    problem = make_rbm_problem("easy")
    rts = RTS(ladder=ladder, prior=prior, n_sweeps=2000, random_state=0).fit(problem.path)
    np.testing.assert_array_equal(rts.result_.ladder, ladder)
    shares = rts.result_.diagnostics["shares"]
    np.testing.assert_allclose(shares, prior / 10, atol=0.05)
    assert abs(rts.log_partition_ - problem.log_partition) < T_BOUND * rts.log_partition_std_error_


def test_paper_initialisation_is_right_where_chains_mix():
    problem = make_rbm_problem("easy")
    rts = RTS(n_temperatures=20, n_sweeps=1500, init="paper", random_state=1).fit(problem.path)
    assert rts.converged_
    assert abs(rts.log_partition_ - problem.log_partition) < T_BOUND * rts.log_partition_std_error_


@pytest.mark.shared
@pytest.mark.parametrize("name", ["mnist_toy15", "mnist_h10"])
def test_reference_models(name):
    rbm, train = shared_data(f"rbm/{name}.npz"), shared_data("binary/mnist.npz")
    mean = np.unpackbits(train["train"], axis=1)[:, :784].mean(axis=0).clip(1e-4, 1 - 1e-4)
    path = RBMPath(rbm["components"], rbm["intercept_visible"], rbm["intercept_hidden"], mean)
    rts = RTS(tol=0.04, random_state=0, n_jobs=2).fit(path)
    assert rts.converged_
    assert rts.log_partition_std_error_ <= 0.04
    assert abs(rts.log_partition_ - rbm["exact_log_partition"]) < 3.7 * rts.log_partition_std_error_


def test_tolerance_is_met_by_more_rounds():
    problem = make_rbm_problem("digits")
    once = RTS(n_temperatures=20, n_sweeps=300, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        first_error = once.fit(problem.path).log_partition_std_error_
    rts = RTS(n_temperatures=20, n_sweeps=300, tol=first_error / 2, random_state=0).fit(problem.path)
    assert rts.log_partition_std_error_ <= first_error / 2
    assert rts.result_.diagnostics["n_rounds"] >= 3
    assert abs(rts.log_partition_ - problem.log_partition) < T_BOUND * rts.log_partition_std_error_
    with pytest.warns(ConvergenceWarning, match="above tol"):
        stopped = RTS(n_temperatures=20, n_sweeps=300, tol=1e-4, max_sweeps=1200, random_state=0).fit(problem.path)
    assert 900 * 100 <= stopped.result_.n_sweeps <= 1200 * 100


# ---- alarms --------------------------------------------------------------------------------------
def test_a_ladder_that_was_not_traversed_is_reported_in_words():
    problem = make_rbm_problem("sharp digits")
    with pytest.warns(ConvergenceWarning, match="visited both ends of the ladder"):
        rts = RTS(n_sweeps=100, random_state=0).fit(problem.path)
    assert not rts.converged_
    assert "raise n_sweeps" in rts.result_.reasons[0]
    assert rts.result_.diagnostics["crossed"].mean() < 0.9


def test_the_papers_initialisation_of_joint_weights_is_no_confident_wrong_answer():
    """Ten rounds from log Z = 0 end far from equilibrium: the error is many times the reported one, and is flagged."""
    problem = make_rbm_problem("sharp digits", weights="joint")
    with pytest.warns(ConvergenceWarning):
        rts = RTS(n_sweeps=1000, init="paper", random_state=0).fit(problem.path)
    assert abs(rts.log_partition_ - problem.log_partition) > 1
    assert any("MBAR gives another value" in reason for reason in rts.result_.reasons)


def test_mbar_tells_chains_that_have_not_spread():
    """Starts that crowd near the base and ten redraws: RTS takes the crowd for small Z_k, MBAR knows the levels."""
    problem = make_rbm_problem("digits", weights="joint")
    setup = make_setup(problem.path, n_levels=30)
    starts, log_weights = run_pilot(setup, log_softmax(-4 * setup.path.ladder), 400)
    pilot = Pooled(np.zeros((1, 30)), setup.pool(log_weights, axis=0)[np.newaxis])
    last = run_round(setup, (0,), starts, -pilot(np.arange(10)), 10, n_kept=20_000)
    verdict, _ = judge(setup, [last], pilot)
    error = verdict.curve[-1] - problem.log_partition
    assert error < -T_BOUND * verdict.std_error
    assert abs(verdict.diagnostics["mbar_log_partition"] - problem.log_partition) < abs(error) / 2
    assert any("MBAR gives another value" in reason for reason in verdict.reasons)


def test_sees_no_hidden_mode_as_its_documentation_says():
    problem = hidden_mode_problem()
    rts = RTS(n_temperatures=4, n_sweeps=300, n_chains=20, random_state=0).fit(problem.path)
    assert rts.log_partition_ == pytest.approx(problem.log_partition - np.log(2), abs=1e-6)


# ---- what is kept --------------------------------------------------------------------------------
def test_kept_vectors_serve_mbar():
    problem = make_rbm_problem("easy")
    result = RTS(n_temperatures=15, n_sweeps=600, random_state=0).fit(problem.path).result_
    vectors, levels = result.diagnostics["vectors"], result.diagnostics["vector_levels"]
    counts = np.bincount(levels.ravel(), minlength=15)
    curve = mbar(vectors.reshape(-1, 15), counts)
    error = result.std_error * 2  # MBAR has the noise of the drawn levels on top
    assert abs(curve[-1] - problem.log_partition) < T_BOUND * error
    log_weights = result.diagnostics["log_weights"]
    shares = softmax(vectors + log_weights, axis=2).mean(axis=(0, 1))
    np.testing.assert_allclose(shares, result.diagnostics["shares"], rtol=0.3)


@pytest.mark.parametrize("n_sweeps", [2000, 20_000])
def test_kept_vectors_stay_within_bounds(n_sweeps):
    path = make_rbm_problem("easy").path
    result = RTS(n_temperatures=3, n_sweeps=n_sweeps, sweeps_per_redraw=1, random_state=0).fit(path).result_
    assert 10_000 <= result.diagnostics["vector_levels"].size <= 20_000
    assert 0.98 * n_sweeps * 100 <= result.n_sweeps <= n_sweeps * 100


# ---- streams -------------------------------------------------------------------------------------
def test_same_bits_for_any_number_of_jobs_and_segmentation():
    path = make_rbm_problem("digits").path
    options = {"n_temperatures": 12, "n_sweeps": 400, "random_state": 3}
    reference, parallel = RTS(**options).fit(path), RTS(n_jobs=2, **options).fit(path)

    class Short(type(path)):
        n_moves_per_segment = 7

    path.__class__ = Short
    segmented = RTS(**options).fit(path)
    assert parallel.log_partition_ == reference.log_partition_
    np.testing.assert_allclose(segmented.log_partition_, reference.log_partition_, rtol=1e-12)  # sums in other order


def test_fused_and_generic_programs_agree():
    path = make_rbm_problem("digits").path
    options = {"n_temperatures": 12, "n_sweeps": 400, "random_state": 3}
    fused = RTS(**options).fit(path)

    class Plain(Gibbs):
        """Without the path's fused programs."""

        anneal, temper = Gibbs.__mro__[1].anneal, Gibbs.__mro__[1].temper

    generic = RTS(transition=Plain(), **options).fit(path)
    np.testing.assert_allclose(generic.log_partition_, fused.log_partition_, rtol=1e-6)


def test_checkpoint_resumes_with_the_same_bits(tmp_path, monkeypatch):
    path = make_rbm_problem("easy").path
    options = {"n_temperatures": 12, "n_sweeps": 400, "random_state": 3}
    reference = RTS(**options).fit(path)
    from sklpf._parallel import Checkpoint

    save, calls = Checkpoint.save, []

    def interrupted(self, *arguments):
        save(self, *arguments)
        calls.append(arguments[0])
        if len(calls) == 25:
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        RTS(checkpoint=tmp_path, **options).fit(path)
    resumed = RTS(checkpoint=tmp_path, **options).fit(path)
    assert resumed.log_partition_ == reference.log_partition_
    assert not list(tmp_path.iterdir())
    assert calls.count("pilot-0") == 1  # what was finished never ran again


# ---- bad input -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_chains": 9}, "n_chains"),
        ({"n_temperatures": 1}, "n_temperatures"),
        ({"n_sweeps": 10}, "n_sweeps"),
        ({"n_sweeps": 40, "sweeps_per_redraw": 4}, "n_sweeps must be at least 64"),
        ({"tol": 0.0}, "tol"),
        ({"init": "flat"}, "init"),
        ({"ladder": [0.1, 1.0]}, "begin at 0"),
        ({"prior": "flat"}, "prior"),
        ({"prior": np.inf}, "prior"),
        ({"prior": np.ones(7)}, "prior must hold 100 positive numbers"),
        ({"prior": np.zeros(100)}, "prior must hold 100 positive numbers"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        RTS(**parameters).fit(make_rbm_problem("easy").path)


class Broken(Echo):
    """log f is not a number from the second level on."""

    def log_f(self, state, levels):
        return np.where(levels > 1, np.nan, 0.0)


@pytest.mark.parametrize("init", ["adaptive", "paper"])
def test_densities_that_are_no_numbers_are_refused(init):
    with pytest.raises(ValueError, match="log_f gave values that are not finite"):
        RTS(n_temperatures=5, n_sweeps=200, init=init, random_state=0).fit(Broken())


def test_base_draw_at_the_first_level():
    """A chain whose level is 0 starts from its own base draw."""
    setup = make_setup(make_rbm_problem("easy").path)
    starts, _ = run_pilot(setup, np.log([1 - 1e-9, *[1e-10] * 10]), 10)
    state = setup.path.sample_base(10, Stream(setup.stream(3, 4).key, 40))
    np.testing.assert_array_equal(starts[4][0].v, state.v)
