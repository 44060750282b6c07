"""What estimators that read runs must not trust: a sampler's alarms, walls without slopes, levels
without states.
"""

import numpy as np
import pytest
from convergence import may_not_converge
from known_problems import make_rbm_problem
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning

from sklpf import RTS, ParallelTempering, PartitionResult
from sklpf.partition import (
    BAR,
    RejectionSampling,
    SteppingStone,
    ThermodynamicIntegration,
    WangLandau,
)
from sklpf.paths import Path


class HalfLine(Path):
    """N(0, 1) on x > 0 from N(0, 1): a density with a wall, in NumPy, without slopes."""

    base_log_partition = 0.0
    has_walls = True

    def sample_base(self, n, stream):
        return stream.generator().normal(size=n)

    def log_f(self, state, levels):
        beta = self.ladder[levels]
        log_f = norm.logpdf(state) - beta * state
        return np.where((beta > 0) & (state <= 0), -np.inf, log_f)

    def gibbs(self, state, levels, stream, reverse=False):
        beta, u = self.ladder[levels], stream.generator().random(len(state))
        return np.where(beta > 0, norm.isf(u * norm.sf(beta)) - beta, norm.isf(u))


TRUTH = 0.5 + norm.logsf(1.0)


@may_not_converge()
@pytest.mark.parametrize("estimator", [SteppingStone(), ParallelTempering(bridge="stepping-stone")])
def test_walls_are_seen_without_slopes(estimator):
    """Half of the base is outside, which no reverse ratio sees: 5 standard errors, false alarm 1e-3
    with t_9.
    """
    sampler = ParallelTempering(n_sweeps=1024, random_state=0).fit(HalfLine())
    fitted = estimator.set_params(random_state=0).fit(sampler.run_)
    assert abs(fitted.log_partition_ - TRUTH) < 5 * fitted.log_partition_std_error_ < 0.2


def test_the_sampler_s_alarms_are_kept():
    path = make_rbm_problem("easy").path
    for sampler in (
        ParallelTempering(n_sweeps=256, tol=1e-9, random_state=0),
        WangLandau(20, 10, 300, flatness=0.99, random_state=0),
    ):
        with pytest.warns(ConvergenceWarning):
            bar = BAR(sampler).fit(path)
        assert not bar.converged_
        assert set(bar.sampler_.result_.reasons) <= set(bar.result_.reasons)
        if isinstance(sampler, WangLandau):
            with pytest.warns(ConvergenceWarning):
                assert not BAR().fit(bar.run_).converged_


@may_not_converge()
def test_an_integral_whose_error_is_not_known_is_not_trusted():
    path = make_rbm_problem("easy").path
    for seed in range(2):  # some of these runs have levels without states
        run = RTS(10, 60, 200, random_state=seed).fit(path).run_
        for rule in ("left", "right", "trapezoid"):
            integral = ThermodynamicIntegration(rule=rule).fit(run)
            known = np.isfinite(integral.result_.diagnostics["quadrature_error"])
            assert known or not integral.converged_


def test_a_number_that_may_be_anything_has_the_whole_line_as_interval():
    result = PartitionResult("RejectionSampling", -np.inf, np.nan, statement="approximate")
    assert result.interval() == (-np.inf, np.inf)
    with pytest.warns(ConvergenceWarning, match="none of"):
        nothing = RejectionSampling(1e3, 10, random_state=0).fit(make_rbm_problem("easy").path)
    assert nothing.log_partition_interval_ == (-np.inf, np.inf)
