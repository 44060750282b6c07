"""check_coverage: what passes, what is found, and how often honest estimators fail."""

from dataclasses import replace

import numpy as np
import pytest
from marks import large
from scipy.stats import binom

from sklpf import AIS, BernoulliRBM, Exact, Gaussian, GeometricPath
from sklpf.partition import Alarm, PartitionEstimator, PartitionResult
from sklpf.testing import check_coverage

PATH = GeometricPath(lambda x: -0.5 * np.sum(x**2, axis=1), base=Gaussian(np.zeros(1), 1.0))


class Drawn(PartitionEstimator):
    """Estimates of 0 with a normal error, whose standard error is a share of the right one."""

    def __init__(self, share=1.0, bias=0.0, flagged=0.0, statement="estimate", random_state=None):
        self.share = share
        self.bias = bias
        self.flagged = flagged
        self.statement = statement
        self.random_state = random_state

    def _estimate(self, path, seed):
        rng = np.random.default_rng(seed)
        error = np.sqrt(rng.chisquare(9) / 9)  # as estimated from ten groups
        alarms = (Alarm("few", "drawn", "none"),) if rng.random() < self.flagged else ()
        numbers = self.bias + rng.normal(), self.share * error, 9
        return PartitionResult("Drawn", *numbers, statement=self.statement, alarms=alarms)


def known(seed):
    return "known", PATH, 0.0


def random_rbm(seed):
    rng = np.random.default_rng(seed)
    return BernoulliRBM.from_parameters(rng.normal(size=(4, 6)), np.zeros(6), np.zeros(4))


def test_honest_intervals_pass_in_all_forms_of_a_problem():
    check = check_coverage(random_rbm, AIS(n_temperatures=100), 30)
    assert check.converged.shape == check.errors.shape == (30,)
    np.testing.assert_array_equal(check.far, np.abs(check.errors) > 1e3)
    check_coverage(lambda seed: random_rbm(seed).path(), Exact(), 3, least_converged=1.0)
    again = check_coverage(random_rbm, AIS(n_temperatures=100), 5, random_state=25)
    np.testing.assert_array_equal(again.errors, check.errors[25:])


def test_the_error_of_the_truth_widens_intervals():
    def measured(seed):
        truth = np.random.default_rng(10_000 + seed).normal(scale=3.0)
        return "measured", PATH, truth, 3.0

    check = check_coverage(measured, Drawn(), 200)
    assert np.all(check.std_errors > 3)


@pytest.mark.parametrize("n", [50, large(100)])
def test_fewer_than_the_false_alarms_fail(n):
    """Of n checks of 95 % intervals no more than occur with a probability of 1e-4."""
    failures = 0
    for k in range(n):
        try:
            check_coverage(known, Drawn(), 40, false_alarm=0.05, random_state=1000 * k)
        except AssertionError:
            failures += 1
    assert failures <= binom.isf(1e-4, n, 0.05)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (Drawn(0.5), "intervals cover less often than 94%"),
        (Drawn(bias=2.0), "intervals cover less often than 94%"),
        (Drawn(flagged=0.5), "runs converged, .* fewer than 90%"),
        (Drawn(flagged=1.0), "0 of 100 runs converged"),
    ],
)
def test_it_finds(estimator, message):
    with pytest.raises(AssertionError, match=message):
        check_coverage(known, estimator, least_converged=0.9)


def test_it_finds_wide_intervals_with_a_few_that_are_far_off():
    class SometimesLost(Drawn):
        def _estimate(self, path, seed):
            result = super()._estimate(path, seed)
            lost = np.random.default_rng([seed, 1]).random() < 0.05
            return replace(result, log_partition=100.0) if lost else result

    with pytest.raises(AssertionError, match="wrong more often than 0.5%"):
        check_coverage(known, SometimesLost(), 200, least_coverage=0.9)


def test_a_bound_is_judged_by_its_side():
    check = check_coverage(known, Drawn(bias=-3.0, statement="lower bound"), 50)
    assert check.covered.mean() > 0.9
    with pytest.raises(AssertionError, match="cover less often"):
        check_coverage(known, Drawn(bias=6.0, statement="lower bound"), 50)


def test_arguments_that_were_swapped_are_named():
    with pytest.raises(TypeError, match="takes a function make_problem"):
        check_coverage(AIS(), random_rbm)
