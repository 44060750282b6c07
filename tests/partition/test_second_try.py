"""A run that has missed a region is made again, from a base that covers it, where the base was not
the user's.
"""

from dataclasses import replace

import numpy as np
import pytest
from convergence import quietly
from marks import large
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sklpf import (
    AIS,
    HAIS,
    RTS,
    SMC,
    Gaussian,
    GeometricPath,
    Mixture,
    ParallelTempering,
)
from sklpf.partition import BAR

DISTANCE = 14.0


PEAKS = Mixture([Gaussian([0.0, 0.0], 1.0), Gaussian([DISTANCE, 0.0], 1.0)], [0.25, 0.75])


def two_peaks(x):
    return PEAKS.log_density(x)


def slope(x):
    return PEAKS.grad_log_density(x)


def path(ours):
    """From a base at the first peak; log Z = 0."""
    path = GeometricPath(two_peaks, grad=slope, base=Gaussian([0.0, 0.0], 1.5))
    path.base_is_ours = ours
    return path


QUICK = AIS(n_temperatures=100, random_state=0)
ESTIMATORS = [QUICK, large(HAIS(n_temperatures=200, random_state=0)), large(SMC(random_state=0))]


@pytest.fixture(scope="module")
def first():
    """A run from a base of the user's."""
    return quietly(clone(QUICK), path(ours=False))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_a_base_of_ours_is_replaced_and_the_second_run_is_right(estimator):
    # 4 standard errors, or .02 nats: false-alarm rate below 1e-3, with fixed seeds
    estimator.fit(path(ours=True))
    result = estimator.result_
    assert estimator.converged_
    assert abs(result.log_partition) < max(4 * result.std_error, 0.02)
    assert result.diagnostics["first_try"] == pytest.approx(np.log(0.25), abs=0.1)
    assert "first try" in str(result.summary())
    assert result.n_sweeps == estimator.run_.n_sweeps


def test_sweeps_of_a_first_try_do_not_shrink_the_error_of_the_second():
    run = quietly(ParallelTempering(4, 6, 128, random_state=0), path(ours=False)).run_
    costly = replace(run, sweeps={"chains": 100 * run.n_sweeps})
    assert costly.read().std_error == run.read().std_error


def test_a_base_of_the_users_is_left_as_it_is_and_the_alarm_says_how_it_is_made_to_cover(first):
    # 4 standard errors, or .02 nats: false-alarm rate below 1e-3, with fixed seeds
    assert not first.converged_
    assert "first_try" not in first.result_.diagnostics
    assert "fit path.with_regions(run_.regions)" in first.result_.reasons[-1]
    again = SMC(random_state=0).fit(path(ours=False).with_regions(first.run_.regions))
    assert again.converged_
    assert abs(again.log_partition_) < max(4 * again.log_partition_std_error_, 0.02)


class Failing(GeometricPath):
    base_is_ours = True

    def with_regions(self, regions):
        raise ValueError("no base at all")


def test_a_second_run_that_fails_leaves_the_first_result(first):
    failing = Failing(two_peaks, grad=slope, base=path(ours=False).base)
    with pytest.warns(ConvergenceWarning, match="a second try, .* failed: no base at all"):
        fitted = clone(QUICK).fit(failing)
    assert fitted.log_partition_ == first.log_partition_
    assert fitted.run_.n_sweeps == first.run_.n_sweeps
    with pytest.warns(ConvergenceWarning, match="no base at all: take ParallelTempering, or give"):
        assert AIS().fit(fitted.run_).result_.reasons == fitted.result_.reasons


class Misled(GeometricPath):
    """Its second base is worse: far too narrow."""

    base_is_ours = True

    def with_regions(self, regions):
        return self.with_base(Gaussian([DISTANCE, 0.0], 1e-3))


def test_a_second_run_that_does_not_converge_does_not_replace_a_smaller_error(first):
    misled = Misled(two_peaks, grad=slope, base=path(ours=False).base)
    with pytest.warns(ConvergenceWarning, match="a second try, .* neither can be trusted"):
        fitted = clone(QUICK).fit(misled)
    assert fitted.log_partition_ == first.log_partition_
    assert fitted.log_partition_std_error_ == first.log_partition_std_error_
    assert fitted.result_.n_sweeps > first.result_.n_sweeps  # of both
    assert [alarm.kind for alarm in fitted.result_.alarms].count("missed-region") == 2


# ---- tempering from a mixture of parts far apart
@pytest.mark.parametrize(
    "estimator",
    [ParallelTempering(n_sweeps=512, random_state=1), large(RTS(random_state=1))],
    ids=str,
)
def test_chains_at_a_base_of_several_parts_are_drawn_anew(estimator):
    """Moves don't lead from one part to the other, and without that every run has errors of .1 and
    more. 4 standard errors: false-alarm rate 6e-5.
    """
    base = Mixture([Gaussian([0.0, 0.0], 1.5), Gaussian([DISTANCE, 0.0], 1.5)])
    path = GeometricPath(two_peaks, grad=slope, base=base)
    quietly(estimator, path)  # of simulated tempering, groups may differ by more than a tenth
    assert abs(estimator.log_partition_) < 4 * estimator.log_partition_std_error_
    assert estimator.log_partition_std_error_ < 0.1
    assert estimator.converged_ or isinstance(estimator, RTS)


def test_the_second_try_of_a_given_sampler_has_other_random_numbers(monkeypatch):
    """Also where the sampler has a seed of its own."""
    seeds = []
    sample = ParallelTempering._sample

    def noted(self, path, seed):
        seeds.append(seed)
        return sample(self, path, seed)

    monkeypatch.setattr(ParallelTempering, "_sample", noted)
    quietly(BAR(sampler=ParallelTempering(4, 6, 128, random_state=0)), path(ours=True))
    assert len(seeds) > 1
    assert len(set(seeds)) == len(seeds)
