"""Regions of an RBM whose mass is known, and runs that miss one.

z-bounds: 4 standard errors is a false-alarm rate of 6e-5 a comparison; seeds are fixed.
"""

import numpy as np
import pytest
from convergence import alarm_kinds, quietly
from known_problems import all_rows, opening_biases
from scipy.special import expit

from sklpf import AIS, RTS, SMC, BernoulliRBM, Exact, ParallelTempering, PartitionResult
from sklpf.models import RBMPath
from sklpf.partition import Draws, Run
from sklpf.partition.checks.missed_mass import MissedMass
from sklpf.paths import Regions, Stream, stream_key

Z_BOUND = 4.0


def small_path(seed):
    rng = np.random.default_rng(seed)
    components = rng.normal(scale=1.2, size=(6, 9))
    layers = components, rng.normal(size=9), rng.normal(size=6)
    return RBMPath(*layers, np.full(9, 0.5))


def with_a_narrow_mode(share=0.2):
    """An RBM of 60 units, a pattern that one hidden unit more gives a share of Z, and log Z."""
    rng = np.random.default_rng(3)
    components = rng.normal(scale=0.3, size=(8, 60))
    visible = rng.normal(scale=0.5, size=60) - 1
    mean = expit(visible)

    pattern = 2.0 * rng.integers(2, size=(1, 60)) - 1
    log_odds = np.log(share / (1 - share))
    biases, plain = opening_biases(components, visible, mean, 3 * pattern, log_odds)
    layers = np.vstack([components, 3 * pattern]), visible, np.r_[np.zeros(8), biases]
    return RBMPath(*layers, mean), pattern[0] > 0, plain + np.log1p(np.exp(log_odds))


def test_the_masses_of_balls_are_right():
    """Means of 30 to 100 estimates lie within 4 standard errors of the sum over all rows."""
    rows = all_rows(9)
    n_compared = 0
    for seed in range(3):
        path = small_path(seed)
        exact = np.exp(path._log_f_of_rows(rows))
        errors: dict = {}
        for stream in range(100):
            regions = path.regions(Stream(stream_key(stream)))
            truth = exact @ regions.contain(rows)
            means = np.exp(regions.log_masses).mean(axis=1)
            for centre, error in zip(regions.centres, means / truth - 1):
                errors.setdefault(centre.tobytes(), []).append(error)
        for found in map(np.array, errors.values()):
            if len(found) >= 30:
                n_compared += 1
                assert abs(found.mean()) < Z_BOUND * found.std(ddof=1) / np.sqrt(len(found))
    assert n_compared >= 3


@pytest.mark.parametrize(
    "estimator",
    [
        AIS(random_state=5),
        SMC(random_state=5),
        RTS(random_state=11),
    ],  # runs that have not been there
    ids=str,
)
def test_a_run_that_has_missed_a_region_says_so_and_names_it(estimator):
    path, pattern, exact = with_a_narrow_mode()
    result = quietly(estimator, path).result_
    std_error = result.diagnostics.get("delta_std_error", result.std_error)
    assert result.log_partition < exact - 3 * std_error
    assert not result.converged
    assert "missed-region" in alarm_kinds(estimator)
    assert np.mean(result.diagnostics["missed_region"] == pattern) > 0.9


@pytest.mark.parametrize("covered", [False, True])
def test_a_run_that_has_been_in_the_region_misses_none(covered):
    """From a base that does not cover it, and from one that does."""
    path, pattern, exact = with_a_narrow_mode()
    if covered:
        mean = 0.7 * expit(path.intercept_visible) + 0.3 * np.where(pattern, 0.95, 0.05)
        path = RBMPath(path.components, path.intercept_visible, path.intercept_hidden, mean)
    result = quietly(ParallelTempering(random_state=0), path).result_
    assert abs(result.log_partition - exact) < (Z_BOUND if covered else 3) * result.std_error
    assert "missed_region" not in result.diagnostics


def test_models_without_a_narrow_mode_raise_no_alarm():
    """One of a hundred right runs may: with 8 the probability of more than one is 0.3 %."""
    n_raised = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        components = rng.normal(scale=rng.uniform(0.2, 1.0), size=(10, 30))
        rbm = BernoulliRBM.from_parameters(components, rng.normal(size=30), rng.normal(size=10))
        tempering = quietly(ParallelTempering(n_sweeps=1024, random_state=seed), rbm)
        n_raised += "missed_region" in tempering.result_.diagnostics
    assert n_raised <= 1


@pytest.mark.parametrize(("share", "is_missed"), [(0.5, True), (0.024, True), (0.009, False)])
def test_a_path_of_one_s_own_joins_in(share, is_missed):
    """This share of Z is said to lie where no draw is; what is below .015 counts as nothing."""

    class Told(RBMPath):
        def regions(self, stream):
            exact = Exact().fit(RBMPath(*small)).log_partition_
            far = np.ones((1, 9), dtype=np.uint8)
            return Regions(far, np.zeros(1), np.full((1, 10), exact + np.log(share)))

    small = (np.zeros((2, 9)), np.full(9, -4.0), np.zeros(2), np.full(9, 0.02))
    path = Told(*small)
    result = quietly(AIS(1000, 20, random_state=0), path).result_
    assert [alarm.kind for alarm in result.alarms] == ["missed-region"] * is_missed
    if is_missed:
        np.testing.assert_array_equal(result.diagnostics["missed_region"], np.ones(9))
    assert isinstance(result.draws, Draws)


@pytest.mark.parametrize(("n_seen", "is_missed"), [(1, True), (4, False)])
def test_regions_that_draws_hardly_have_are_missed_together(n_seen, is_missed):
    """Twenty of a hundredth of the mass each, of which none is material alone."""
    centres = np.eye(20, dtype=np.uint8)
    regions = Regions(centres, np.zeros(20), np.full((20, 10), np.log(0.01)))
    rows = np.zeros((1000, 20), dtype=np.uint8)
    rows[: 20 * n_seen] = np.repeat(centres, n_seen, axis=0)
    draws = Draws(rows, np.zeros(1000), np.arange(1000) % 10)
    run = Run(findings={"missed_mass": MissedMass(regions=regions)}, draws=draws)
    alarms = run.judge(PartitionResult("", 0.0, 0.01)).alarms
    assert [alarm.kind for alarm in alarms] == ["missed-region"] * is_missed
