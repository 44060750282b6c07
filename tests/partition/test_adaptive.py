"""SAMS and WangLandau: gains, updates, right values, alarms, streams and bad input.

z-bounds: 4.8 standard errors with 9 degrees of freedom is a false-alarm rate of 1e-3 a comparison;
seeds are fixed.
"""

import numpy as np
import pytest
from convergence import quietly
from known_problems import make_rbm_problem
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sklpf import SAMS, Gaussian, GeometricPath, WangLandau
from sklpf.partition._sams import TwoStageGain
from sklpf.partition._wang_landau import HalvingGain
from sklpf.paths import Path
from sklpf.programs._adaptive import adapt
from sklpf.programs._tempering import START, Setup, run_round
from sklpf.transitions import Gibbs

T_BOUND = 4.8
KINDS = {
    "SAMS": SAMS,
    "WangLandau": WangLandau,
}


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


# ---- gains
def test_two_stage_gain_by_the_formula():
    """Draw by draw: min(r_min, t^-b) until visits are even, then min(r_min, 1 / (t - t0 +
    t0^b)).
    """
    prior = np.array([0.5, 0.3, 0.2])
    rule = TwoStageGain(prior, exponent=0.6)
    gains, t0 = [], None
    for t in range(1, 400):
        gains.append(rule.gain(1))
        expected = t**-0.6 if t0 is None else 1 / (t - t0 + t0**0.6)
        assert gains[-1] == pytest.approx(min(0.2, expected), rel=1e-12)
        shares = np.eye(3)[0] if t <= 20 else prior
        evenness = rule.observe(shares, 1)
        visits = (20 * np.eye(3)[0] + (t - 20) * prior) / t if t > 20 else np.eye(3)[0]
        assert evenness == pytest.approx(1 - np.abs(visits / prior - 1).max())
        if t0 is None and evenness > 0.8:
            t0 = t
    assert (
        rule.settled_at == t0 == 101
    )  # 20 / t is the excess of all but the first level's share that lacks
    assert gains[-1] < gains[100]


def test_gamma_is_halved_when_visits_are_flat_and_falls_as_one_over_t_later():
    rule = HalvingGain(4, flatness=0.5)
    uneven, even = np.array([0.7, 0.1, 0.1, 0.1]), np.full(4, 0.25)
    assert rule.observe(uneven, 10) == pytest.approx(0.4)
    assert rule.gamma == 1.0
    rule.observe(even, 10)  # (9.5, 3.5, 3.5, 3.5) is flat
    assert rule.gamma == 0.5
    np.testing.assert_array_equal(rule.histogram, 0)
    assert rule.gain(8) == 8 * 0.5 / 4  # gamma for every visit: K times the share times n / K
    assert not rule.settled
    rule.observe(even, 4)  # 24 draws are t = 6 per level: 1/4 > 1/6
    assert not rule.settled
    rule.observe(even, 1)
    assert rule.gamma == 0.125
    assert rule.settled  # 1/8 < 4/25
    assert rule.gain(5) == pytest.approx(5 / 30)
    rule.observe(even, 5)
    assert rule.gamma == 0.125


# ---- updates
class Exact(Path):
    """States are drawn from their level at every move, whatever they were: x of 0 … 5 with weights
    e^(beta g_x).
    """

    base_log_partition = 0.0
    gains = np.array([0.0, 3.0, -1.0, 2.0, 0.5, 5.0])

    def log_f(self, state, levels):
        return self.ladder[levels] * self.gains[state] - np.log(6)

    def sample_base(self, n, stream):
        return stream.generator().integers(6, size=n)

    def gibbs(self, state, levels, stream):
        weights = np.exp(np.multiply.outer(self.ladder, self.gains))
        cumulative = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)[levels]
        return np.minimum(
            np.sum(cumulative < stream.generator().random((len(levels), 1)), axis=1), 5
        )

    @property
    def curve(self):
        return np.log(np.exp(np.multiply.outer(self.ladder, self.gains)).mean(axis=1))


def make_setup(n_levels=6):
    path = Exact().with_ladder(np.linspace(0, 1, n_levels))
    setup = Setup(path, Gibbs(), np.arange(0, 101, 10), 3, 1, {"n_jobs": None, "checkpoint": None})
    return setup, [setup.base_chains(START, group) for group in range(10)]


@pytest.mark.parametrize("rao_blackwell", [True, False])
def test_updates_are_those_of_a_plain_loop(rao_blackwell):
    setup, chains = make_setup()
    prior = np.array([0.1, 0.2, 0.2, 0.1, 0.2, 0.2])
    adapted = adapt(
        setup, chains, np.log(prior), np.zeros(6), 40, TwoStageGain(prior, 0.7), rao_blackwell
    )
    curve, rule, done, estimates = np.zeros(6), TwoStageGain(prior, 0.7), 0, []
    for i, n in enumerate([1] * 20 + [2] * 5 + [3] * 3 + [1]):
        chains, last = run_round(setup, (0, i), chains, np.log(prior) - curve, n)
        done += n
        sums = np.exp(last.log_q_sums).sum(axis=0) if rao_blackwell else last.counts.sum(axis=0)
        step = sums.sum(axis=0) / (n * 100) / prior
        step *= min(rule.gain(n * 100), 1 / step.max())
        rule.observe(sums.sum(axis=0) / (n * 100), n * 100)
        curve = curve + step - step[0]
        estimates.append(curve[-1])
    np.testing.assert_allclose(adapted.curve, curve, atol=1e-12)
    np.testing.assert_allclose(adapted.history["log_partition"], estimates, atol=1e-12)
    np.testing.assert_array_equal(
        adapted.history["n_draws"][[0, 19, 20, -1]], [100, 2000, 2200, 4000]
    )
    assert sum(r.n_redraws for r in adapted.recent) in (20, 21, 22)
    assert np.abs(curve - setup.path.curve).max() < 0.5  # from 0: log Z is 3.5


# ---- the estimators
def test_is_right_at_a_known_log_partition(kind):
    problem = make_rbm_problem("easy")
    fitted = kind(n_temperatures=20, n_sweeps=1500, random_state=1).fit(problem.path)
    assert fitted.converged_
    assert fitted.log_partition_std_error_ < 0.15
    assert (
        abs(fitted.log_partition_ - problem.log_partition)
        < T_BOUND * fitted.log_partition_std_error_
    )
    diagnostics = fitted.result_.diagnostics
    assert fitted.result_.method == type(fitted).__name__
    assert abs(diagnostics["adaptive_log_partition"][-1] - problem.log_partition) < 0.5
    assert fitted.run_.adaptation.settled
    assert np.all(np.diff(diagnostics["adaptive_n_draws"]) > 0)
    assert 0.97 * 1500 * 100 <= fitted.result_.n_sweeps <= 1500 * 100


def test_what_chains_should_visit_is_kept():
    problem = make_rbm_problem("easy")
    ladder, prior = np.array([0.0, 0.1, 0.4, 1.0]), np.array([1.0, 2.0, 3.0, 4.0])
    sams = SAMS(ladder=ladder, prior=prior, n_sweeps=2000, random_state=0).fit(problem.path)
    np.testing.assert_allclose(sams.result_.diagnostics["shares"], prior / 10, atol=0.05)
    assert (
        abs(sams.log_partition_ - problem.log_partition) < T_BOUND * sams.log_partition_std_error_
    )


def test_tolerance_is_met_by_more_rounds(kind):
    problem = make_rbm_problem("digits")
    fitted = kind(n_temperatures=20, n_sweeps=600, tol=0.03, random_state=0).fit(problem.path)
    assert fitted.log_partition_std_error_ <= 0.03
    assert fitted.result_.diagnostics["n_rounds"] >= 2
    assert (
        abs(fitted.log_partition_ - problem.log_partition)
        < T_BOUND * fitted.log_partition_std_error_
    )


# ---- alarms


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (
            SAMS(n_sweeps=60, random_state=0),
            "weights had not settled when they were frozen",
        ),
        (
            WangLandau(n_sweeps=300, flatness=0.8, random_state=0),
            "weights had not settled when they were frozen",
        ),
    ],
)
def test_weights_that_have_not_settled_are_reported_in_words(estimator, words):
    problem = make_rbm_problem("hard")
    with pytest.warns(ConvergenceWarning, match=words):
        fitted = clone(estimator).fit(problem.path)
    assert not fitted.converged_
    assert fitted.result_.reasons[0].endswith("raise n_sweeps")


def test_a_ladder_that_was_not_traversed_is_reported(kind):
    with pytest.warns(ConvergenceWarning, match="visited both ends of the ladder"):
        kind(n_sweeps=100, random_state=0).fit(make_rbm_problem("sharp digits").path)


def test_base_draws_outside_of_the_target_are_no_confident_wrong_answer(kind):
    """7 of 8 base draws are where the target is 0: chains that never come back to level 0 don't
    know it.

    Four standard errors, the t law of ten groups: false alarms in 0.3 % of the runs, for 1.2 % of
    the seeds.
    """
    path = GeometricPath(
        lambda x: np.where(np.all(x > 0, axis=1), -np.sum(x**2, axis=1) / 2, -np.inf),
        base=Gaussian(np.zeros(3), 1.5),
    )
    truth = 1.5 * np.log(2 * np.pi) - 3 * np.log(2)
    for seed in (0, 1):
        fitted = quietly(kind(20, 15, 400, random_state=seed), path)
        assert abs(fitted.log_partition_ - truth) < 4 * fitted.log_partition_std_error_ < 0.6


# ---- bad input
@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (SAMS(9), "n_chains"),
        (SAMS(exponent=0.5), "exponent"),
        (SAMS(exponent=1.0), "exponent"),
        (SAMS(exponent=np.nan), "exponent"),
        (SAMS(update="both"), "update"),
        (SAMS(n_sweeps=15), "n_sweeps"),
        (SAMS(prior=np.zeros(100)), "prior must hold 100 positive numbers"),
        (SAMS(prior=np.array(["a", "b"])), "prior must be real numbers"),
        (SAMS(prior=1e300), "prior must leave each level a share"),
        (SAMS(ladder=[0.1, 1.0]), "begin at 0"),
        (WangLandau(flatness=1.0), "flatness"),
        (WangLandau(flatness=-0.1), "flatness"),
        (WangLandau(flatness=np.nan), "flatness"),
        (WangLandau(n_sweeps=40, sweeps_per_redraw=4), "n_sweeps must be at least 64"),
    ],
)
def test_bad_parameters_are_named(estimator, message):
    with pytest.raises((TypeError, ValueError), match=message):
        clone(estimator).fit(make_rbm_problem("easy").path)
