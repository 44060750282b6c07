"""ParallelTempering: right values, honest errors and alarms.

z-bounds: 3.7 standard errors is a false-alarm rate of 2e-4 a comparison for a normal error; seeds
are fixed.
"""

from dataclasses import replace

import numpy as np
import pytest
from convergence import alarm_kinds, quietly
from known_problems import make_rbm_problem
from marks import large
from scipy.stats import binom
from sklearn.exceptions import ConvergenceWarning

from sklpf import (
    BernoulliRBM,
    Exact,
    Gaussian,
    GeometricPath,
    ParallelTempering,
    Uniform,
)
from sklpf.transitions import RandomWalk


@pytest.mark.parametrize("n_temperatures", [2, 6])
def test_levels_that_do_not_overlap_are_reported_and_leave_any_number_possible(n_temperatures):
    """A target of width 0.001, fifty standard deviations of the base away."""
    base = Gaussian(np.zeros(2), 1.0)
    path = GeometricPath(lambda x: -0.5e6 * ((x - 50.0) ** 2).sum(axis=1), base=base)
    options = {"n_temperatures": n_temperatures, "n_sweeps": 64, "random_state": 0}
    tempering = ParallelTempering(transition=RandomWalk(1.0), **options)
    with pytest.warns(ConvergenceWarning, match="levels do not overlap at all: raise n_sweeps, or"):
        tempering.fit(path)
    assert not tempering.converged_
    assert tempering.log_partition_std_error_ == np.inf
    assert tempering.log_partition_interval_ == (-np.inf, np.inf)


def test_tolerance_stops_early_and_is_kept():
    problem = make_rbm_problem("easy")
    full = ParallelTempering(n_sweeps=2048, random_state=0).fit(problem.path)
    early = ParallelTempering(n_sweeps=2048, tol=0.1, random_state=0).fit(problem.path)
    assert early.log_partition_std_error_ < 0.1
    assert early.result_.n_sweeps < full.result_.n_sweeps / 2


def test_error_of_the_last_round_is_that_of_the_result():
    """Rounds before that scatter more make it larger than the round's own."""
    run = ParallelTempering(n_sweeps=256, random_state=0).fit(make_rbm_problem("easy").path).run_
    history = run.history * [1, 10, 1]
    result = replace(run, history=history).read()
    errors = result.diagnostics["round_std_error"]
    np.testing.assert_array_equal(errors[:-1], history[:, 1])
    own = result.diagnostics["curve_std_error"][-1]
    assert errors[-1] == result.std_error > 2 * own
    of_ladders = result.diagnostics["ladder_log_partitions"]
    assert own == pytest.approx(of_ladders.std(ddof=1) / np.sqrt(len(of_ladders)), rel=0.05)


def test_halves_of_which_one_has_no_overlap_disagree():
    run = ParallelTempering(n_sweeps=256, random_state=0).fit(make_rbm_problem("easy").path).run_
    pair_sums = run.last.pair_sums.copy()
    pair_sums[0, :, 0, 0] = 0.0
    result = replace(run, last=replace(run.last, pair_sums=pair_sums)).read()
    assert result.diagnostics["drift_t"] == -np.inf
    assert "halves of the last round disagree" in " ".join(result.reasons)


def test_levels_end_at_equal_rejection():
    problem = make_rbm_problem("digits")
    tempering = ParallelTempering(n_sweeps=2048, random_state=0).fit(problem.path)
    diagnostics = tempering.result_.diagnostics
    rejection = diagnostics["rejection"]
    assert rejection.std() / rejection.mean() < 0.25
    assert diagnostics["barrier"] == pytest.approx(rejection.sum())


def test_ladders_of_which_some_sit_in_a_spike_are_in_different_modes():
    """Between the ladders places differ by little, and log f by 17 nats."""

    def log_density(x):
        return np.where(np.abs(x[:, 0]) < 5e-4, 17.0, 0.0)

    path = GeometricPath(log_density, base=Uniform([-5.0], [5.0]), bounds=(-5.0, 5.0))
    path.regions = lambda stream: None
    both = "ladders differ in their states.*after 1024 sweeps of every chain and after 4096"
    with pytest.warns(ConvergenceWarning, match=both):
        tempering = ParallelTempering(n_sweeps=1024, random_state=0).fit(path)
    assert "not-mixed" in alarm_kinds(tempering)


@pytest.mark.parametrize("n", [16, large(150)])
def test_intervals_of_runs_that_went_on_cover(n):
    """Of about 45 % of these models: a false alarm of 1e-4 if 93 % cover."""
    covered = []
    for seed in range(n):
        rng = np.random.default_rng([seed, 2])
        weights = rng.normal(size=(10, 14)) * rng.uniform(2.5, 3.5)
        biases = -weights.sum(axis=0) / 2, -weights.sum(axis=1) / 2
        rbm = BernoulliRBM.from_parameters(weights, *biases, visible_mean=np.full(14, 0.5))
        tempering = quietly(ParallelTempering(n_sweeps=256, random_state=seed), rbm)
        if tempering.run_.continued_from and tempering.converged_:
            low, high = tempering.log_partition_interval_
            covered.append(low <= Exact().fit(rbm).log_partition_ <= high)
    assert len(covered) > n / 4
    assert binom.cdf(sum(covered), len(covered), 0.93) > 1e-4


def test_ladders_that_keep_their_log_partition_are_in_different_modes():
    """The ratios of one pair are moved by as much in both halves of a ladder, states are not."""
    path = make_rbm_problem("medium").path
    tempering = ParallelTempering(n_sweeps=256, random_state=0)
    run = quietly(tempering, path).run_
    assert "different modes" not in " ".join(tempering.result_.reasons)
    pair_sums = run.last.pair_sums.copy()
    moves = np.repeat([0.0, 4.0], run.n_groups // 2)  # nats
    for column, share in enumerate([0.5, -0.5, 1, -1]):  # of BAR, forward and reverse
        pair_sums[:, :, 0, column] *= np.exp(share * moves)
    with pytest.warns(ConvergenceWarning, match="more between ladders than between the halves"):
        tempering.fit(replace(run, last=replace(run.last, pair_sums=pair_sums)))
    assert sum("different modes" in reason for reason in tempering.result_.reasons) == 1


def test_the_error_is_the_median_of_three_rounds_by_the_sweeps_of_each_without_the_pilot():
    base = Gaussian(np.zeros(2), 1.0)
    path = GeometricPath(lambda x: -0.5 * ((x - 1.0) ** 2).sum(axis=1), base=base)
    options = {"n_ladders": 4, "n_temperatures": 4, "n_sweeps": 112, "random_state": 0}
    run = quietly(ParallelTempering(transition=RandomWalk(), **options), path).run_
    assert run.sweeps["pilot"] > 0
    history = run.history * [1, 100, 1]  # so that the first rounds decide
    result = replace(run, history=history).read()
    own = result.diagnostics["curve_std_error"][-1]
    lengths = 4 * 4 * np.array([28, 28, 56])
    assert sum(lengths) + run.sweeps["pilot"] == run.n_sweeps
    scaled = [*history[:, 1], own] * np.sqrt(lengths / lengths[-1])
    assert result.std_error == pytest.approx(np.median(scaled))
