"""Estimators that read a run: right values from the runs of both samplers, identities, alarms and
bad input.

z-bound 4.8 with 9 degrees of freedom: 1e-3 a comparison, of which there are 14 on fixed seeds.
"""

from dataclasses import replace

import numpy as np
import pytest
from convergence import may_not_converge, quietly
from known_problems import hidden_mode_problem, make_rbm_problem
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sklpf import RTS, BernoulliRBM, Exact, ParallelTempering, PartitionResult
from sklpf.models import LDAPath
from sklpf.partition import (
    BAR,
    MBAR,
    LevelProcess,
    RejectionSampling,
    SteppingStone,
    ThermodynamicIntegration,
    compare_estimates,
)
from sklpf.paths import GeometricPath, Uniform
from sklpf.transitions import RandomWalk

T_BOUND = 4.8
METHODS = {
    "BAR": BAR(),
    "MBAR": MBAR(),
    "forward": SteppingStone(direction="forward"),
    "reverse": SteppingStone(direction="reverse"),
    "LevelProcess": LevelProcess(),
    "TI": ThermodynamicIntegration(),
    "TI-RB": ThermodynamicIntegration(rao_blackwell=True),
}
SAMPLERS = [
    (ParallelTempering(n_temperatures=12, n_sweeps=512, random_state=1), "marginal"),
    (RTS(60, 20, n_sweeps=800, random_state=1), "joint"),
]


@pytest.fixture(scope="module")
def exchange():
    return ParallelTempering(n_sweeps=256, random_state=0).fit(make_rbm_problem("easy").path)


@pytest.fixture(scope="module")
def tempering():
    return RTS(50, 12, n_sweeps=600, random_state=0).fit(make_rbm_problem("easy").path)


# ---- values
def test_a_run_reads_itself_by_every_method(exchange):
    run = exchange.run_
    ways = {
        "bar": BAR(),
        "mbar": MBAR(),
        "stepping-stone": SteppingStone(),
        "level-process": LevelProcess(),
        "thermodynamic-integration": ThermodynamicIntegration(),
    }
    for name, estimator in ways.items():
        read, fitted = run.read(name), quietly(estimator, run).result_
        assert read.log_partition == fitted.log_partition
        assert read.std_error == fitted.std_error
    forward = quietly(SteppingStone(direction="forward"), run)
    assert run.read("stepping-stone", direction="forward").log_partition == forward.log_partition_
    with pytest.raises(ValueError, match="method must be None or one of 'bar', .* got 'best'"):
        run.read("best")


@pytest.mark.parametrize(("sampler", "weights"), SAMPLERS, ids=str)
def test_curves_match_enumeration_at_every_level(sampler, weights):
    path = make_rbm_problem("digits", weights=weights).path
    run = sampler.fit(path).run_
    exact = [Exact().fit(path.with_ladder([0, beta])).log_partition_ for beta in run.ladder[1:]]
    for method in (sampler, *METHODS.values()):
        method = method if method is sampler else quietly(clone(method), run)
        result = method.result_
        assert method.run_ is run
        assert result.degrees_of_freedom == 9
        assert 0 < result.std_error < 0.15
        assert abs(result.log_partition - exact[-1]) < T_BOUND * result.std_error
        difference = result.log_partition - sampler.log_partition_
        assert result.diagnostics.get("difference", 0) == pytest.approx(difference, abs=1e-9)
        assert result.log_partition_curve[0] == 0
        assert result.log_partition_curve[-1] == pytest.approx(result.log_partition, abs=1e-9)
        # an error grows along the ladder to the one that is said: 5 of these hold for all levels
        # together
        np.testing.assert_allclose(result.log_partition_curve[1:], exact, atol=5 * result.std_error)


def test_left_and_right_sums_lie_on_both_sides_of_a_tempered_path():
    """U = log f_1 - log f_0 of the joint path does not depend on beta, so that log Z is convex."""
    problem = make_rbm_problem("easy", weights="joint")
    run = ParallelTempering(n_temperatures=8, n_sweeps=512, random_state=0).fit(problem.path).run_
    assert run.last.log_q is None
    assert run.last.slopes.shape[-1] == 1
    diagnostics = ThermodynamicIntegration().fit(run).result_.diagnostics
    left, right = (diagnostics[f"{side}_log_partition"] for side in ("left", "right"))
    assert left < problem.log_partition < right


# ---- alarms
SAMPLERS_WITH_OPTIONS = [
    RTS(20, 12, n_sweeps=300, rao_blackwell=False, random_state=0),
    ParallelTempering(5, n_sweeps=256, tol=1e-4, random_state=0),
]


@pytest.mark.parametrize("sampler", SAMPLERS_WITH_OPTIONS, ids=lambda sampler: repr(sampler)[:60])
def test_every_reader_gets_the_number_of_the_sampler_that_was_used(sampler):
    """Its options are those of the fit, not the defaults: TS is another number than RTS, and `tol`
    an alarm.
    """
    rng = np.random.default_rng(0)
    rbm = BernoulliRBM.from_parameters(*(rng.normal(size=size) for size in ((8, 10), 10, 8)))
    sampler = quietly(clone(sampler), rbm)
    reasons = sampler.result_.reasons
    for method in METHODS.values():
        result = quietly(clone(method), sampler.run_).result_
        assert result.diagnostics["sampler_log_partition"] == sampler.log_partition_
        difference = result.log_partition - sampler.log_partition_
        assert result.diagnostics["difference"] == pytest.approx(difference, abs=1e-9)
        assert result.reasons[: len(reasons)] == reasons
    own = compare_estimates(sampler.run_).results[0]
    assert own.log_partition == sampler.log_partition_
    assert own.std_error == sampler.log_partition_std_error_
    assert own.method == sampler.result_.method


def test_base_draws_where_the_target_is_zero():
    """A half of the square: the first ratio needs no states with f_1 = 0 at level 1, and slopes are
    infinite.
    """
    box = [0, 0], [1, 1]
    base = Uniform(*box)
    path = GeometricPath(lambda x: np.where(x[:, 0] > 0.5, 0, -np.inf), base=base, bounds=box)
    options = {"n_temperatures": 4, "n_sweeps": 512, "random_state": 0}
    sampler = quietly(ParallelTempering(transition=RandomWalk(), **options), path)
    for name in ("BAR", "MBAR", "forward", "reverse", "LevelProcess"):
        result = quietly(clone(METHODS[name]), sampler.run_).result_
        assert abs(result.log_partition + np.log(2)) < T_BOUND * result.std_error
    with pytest.raises(ValueError, match="draws where the target is 0"):
        ThermodynamicIntegration().fit(sampler.run_)
    assert len(compare_estimates(sampler.run_).results) == 5


@pytest.mark.parametrize(("n_temperatures", "least"), [(3, 0.02), (4, 0.09)])
def test_levels_that_do_not_overlap_are_refused(n_temperatures, least):
    path = make_rbm_problem("medium").path
    run = quietly(ParallelTempering(10, n_temperatures, n_sweeps=256, random_state=0), path).run_
    result = quietly(MBAR(), run).result_
    assert result.diagnostics["neighbour_overlap"].min() == pytest.approx(least, rel=0.3)
    assert any("overlap by" in reason for reason in result.reasons) == (least < 0.03)
    assert result.diagnostics["second_eigenvalue"] > 0.7


def test_simulated_tempering_shows_the_number_of_bar(tempering):
    again = BAR().fit(tempering.run_)
    shown = tempering.result_.diagnostics
    assert shown["bar_log_partition"] == pytest.approx(again.log_partition_, abs=1e-9)
    assert shown["bar_std_error"] == pytest.approx(again.log_partition_std_error_, rel=1e-9)


# ---- what can't be read
def of_ladders(run, kept):
    """A run by some of its ladders alone."""
    by_level = {name: getattr(run.last, name)[:, kept] for name in ("pair_sums", "level_sums")}
    names = "summaries", "round_trips", "slopes", "log_q", "vector_levels"
    arrays = {name: getattr(run.last, name)[kept] for name in names}
    return replace(run, last=replace(run.last, **by_level, **arrays))


@pytest.mark.parametrize("method", [BAR(), LevelProcess()], ids=str)
def test_what_no_method_can_read(method, exchange):
    with pytest.raises(TypeError, match="path must be a fitted model of sklpf or a path"):
        clone(method).fit(np.zeros(3))
    run = exchange.run_
    last = run.last
    with pytest.raises(ValueError, match="at least 2 independent groups, got 1: raise n_ladders"):
        clone(method).fit(of_ladders(run, [0]))
    with pytest.raises(ValueError, match="run holds no states"):
        clone(method).fit(replace(run, last=replace(last, n_scans=0)))
    rows = LDAPath([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]], 0.3, [[4, 1, 3], [1, 0, 0]])
    with pytest.raises(ValueError, match=r"path must have one log Z.*path\.row\(t\)"):
        clone(method).fit(rows)


def test_runs_without_slopes_or_vectors(exchange):
    path = hidden_mode_problem().path
    none = property(lambda self: self.no_such_attribute)
    path.__class__ = type("Plain", (type(path),), {"derivatives": none})
    run = ParallelTempering(4, n_temperatures=4, n_sweeps=256, random_state=0).fit(path).run_
    with pytest.raises(ValueError, match="run must come from a path with the method derivatives"):
        ThermodynamicIntegration().fit(run)
    assert [result.method for result in compare_estimates(run).results][-1] == "LevelProcess"
    kept = ("slopes", "log_q", "vector_levels")
    last = exchange.run_.last
    last = replace(last, **{name: getattr(last, name)[:, :0] for name in kept})
    bare = replace(exchange.run_, last=last)
    for method in (MBAR(), LevelProcess(), ThermodynamicIntegration(rao_blackwell=True)):
        with pytest.raises(ValueError, match="run has kept no states"):
            method.fit(bare)


def test_the_error_of_quadrature_is_in_the_standard_error(exchange):
    """All groups share it, so that their jackknife does not see it."""
    integral = quietly(ThermodynamicIntegration(rule="trapezoid"), exchange.run_)
    diagnostics = integral.result_.diagnostics
    assert integral.result_.statement == "estimate"
    assert abs(diagnostics["quadrature_error"]) > 0
    expected = np.hypot(diagnostics["curve_std_error"][-1], diagnostics["quadrature_error"])
    assert integral.log_partition_std_error_ == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("rule", ["left", "corrected"])
def test_an_integral_is_approximate_that_is_off_by_more_than_its_errors(rule):
    """By half of its own, the larger bound of the corrected rule, or three of the difference, that
    of left sums; the latter error is the jackknife's over ladders, written out.
    """
    path = make_rbm_problem("easy").path
    run = quietly(ParallelTempering(10, 4, 256, random_state=0), path).run_

    def read(run):
        return run.read("thermodynamic-integration", rule=rule, rao_blackwell=True)

    fewer = (of_ladders(run, np.delete(np.arange(10), ladder)) for ladder in range(10))
    errors = [read(each).diagnostics["quadrature_error"] for each in fewer]
    known = read(run).diagnostics
    bounds = 0.5 * known["curve_std_error"][-1], 3 * 3 * np.std(errors)  # sqrt(10 - 1) of them
    assert np.argmax(bounds) == (rule == "left")
    for times in (0.7, 1.3):
        slopes = run.last.slopes + times * max(bounds) - known["quadrature_error"]
        result = read(replace(run, last=replace(run.last, slopes=slopes)))
        assert result.statement == ("approximate" if times > 1 else "estimate")


# ---- what must not be trusted
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
