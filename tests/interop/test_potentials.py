"""Draws of several states by their reduced potentials: values, coverage, refusals and bad input.

Where nothing else is said a comparison with a known log Z has the bound of 4.9 standard errors with
29 degrees of freedom: 3e-5 by chance, of which there are 5 on fixed seeds.
"""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
from convergence import quietly
from draws import autoregressive
from marks import large

from sklpf.interop import from_alchemlyb, from_pymbar, from_tempering
from sklpf.partition import (
    BAR,
    MBAR,
    LevelProcess,
    SteppingStone,
    ThermodynamicIntegration,
    compare_estimates,
)
from sklpf.reweighting import bar, mbar
from sklpf.testing import check_coverage

T_BOUND = 4.9
PLACES, STIFFNESS = (0, 1, 2, 3), (1, 2, 4, 8)
EXACT = -0.5 * np.log(8)


def harmonic(n_k, seed=0, places=PLACES, stiffness=STIFFNESS, rho=0.0):
    """u_kn of harmonic oscillators; draws have the autocorrelation rho."""
    rng = np.random.default_rng(seed)
    stiffness = np.array(stiffness, dtype=float)[:, np.newaxis]
    z = autoregressive(rho, (1, sum(n_k)), rng)[0] if rho else rng.normal(size=sum(n_k))
    x = np.repeat(places, n_k) + z / np.sqrt(np.repeat(stiffness[:, 0], n_k))
    return 0.5 * stiffness * (x - np.array(places, dtype=float)[:, np.newaxis]) ** 2


def exponential(n_k, seed):
    """u_kn of exponential distributions with the rates 1 to K."""
    rates = np.arange(1.0, len(n_k) + 1)
    x = np.random.default_rng(seed).exponential(1 / np.repeat(rates, n_k))
    return rates[:, np.newaxis] * x


# ---- values
def test_mbar_and_bar_are_those_of_the_arrays():
    n_k = np.array([300, 500, 200, 400])
    u_kn = harmonic(n_k)
    run = from_pymbar(u_kn, n_k)
    estimate = MBAR().fit(run)
    np.testing.assert_allclose(estimate.result_.log_partition_curve, mbar(-u_kn.T, n_k), atol=1e-9)
    starts = np.r_[0, np.cumsum(n_k)]
    ratios = []
    for k in range(3):
        differences = np.split(u_kn[k] - u_kn[k + 1], starts[1:-1])
        ratios.append(bar(differences[k], -differences[k + 1]))
    assert BAR().fit(run).log_partition_ == pytest.approx(sum(ratios), abs=1e-9)


def test_every_method_is_right():
    n_k = [1000] * 4
    near = from_pymbar(harmonic(n_k, places=(0, 0.5, 1, 1.5)), n_k)
    comparison = compare_estimates(near)
    methods = [result.method for result in comparison.results]
    assert methods == ["MBAR", "BAR", "SteppingStone", "LevelProcess"]
    for result in comparison.results:
        if result.method == "SteppingStone":
            continue  # one of its directions has weights without a variance
        assert result.converged
        assert result.degrees_of_freedom == 29
        assert abs(result.log_partition - EXACT) < T_BOUND * result.std_error


def test_thermodynamic_integration_of_slopes():
    lambdas = np.linspace(1, 4, 8)
    n_k = [500] * 8
    x = np.random.default_rng(0).normal(scale=1 / np.sqrt(np.repeat(lambdas, n_k)))
    u_kn = 0.5 * lambdas[:, np.newaxis] * x**2
    run = from_pymbar(u_kn, n_k, dudl=0.5 * x**2, lambdas=lambdas)
    result = ThermodynamicIntegration().fit(run).result_
    assert abs(result.log_partition + 0.5 * np.log(4)) < T_BOUND * result.std_error
    falling = {"dudl": 0.5 * x[::-1] ** 2, "lambdas": lambdas[::-1]}
    down = ThermodynamicIntegration().fit(from_pymbar(u_kn[::-1, ::-1], n_k, **falling))
    assert down.log_partition_ == pytest.approx(-result.log_partition, rel=1e-10)
    with pytest.raises(ValueError, match="derivatives"):
        ThermodynamicIntegration().fit(from_pymbar(u_kn, n_k))
    with pytest.raises(ValueError, match="rao_blackwell must be False"):
        ThermodynamicIntegration(rao_blackwell=True).fit(run)


def test_states_without_draws_are_seen_by_the_others():
    n_k = [1000, 0, 1000, 1000]
    result = MBAR().fit(from_pymbar(harmonic(n_k), n_k)).result_
    assert result.converged
    curve, errors = result.log_partition_curve, result.diagnostics["curve_std_error"]
    exact = -0.5 * np.log(STIFFNESS)
    assert np.all(np.abs(curve - exact)[1:] < T_BOUND * errors[1:])
    bar_result = quietly(BAR(), from_pymbar(harmonic(n_k), n_k)).result_
    assert any("MBAR alone can do without" in reason for reason in bar_result.reasons)


# ---- coverage
@pytest.mark.parametrize("n", [80, large(200)])
@pytest.mark.parametrize(
    ("name", "n_k", "rho"),
    [("harmonic", [1500] * 4, 0.8), ("exponential", [100] * 5, 0.0)],
    ids=str,
)
def test_intervals_cover(name, n_k, rho, n):

    def problem(seed):
        u_kn = exponential(n_k, seed) if name == "exponential" else harmonic(n_k, seed, rho=rho)
        return name, from_pymbar(u_kn, n_k), -np.log(5) if name == "exponential" else EXACT

    check_coverage(problem, MBAR(), n, least_converged=0.975, false_alarm=2e-4)


def test_groups_of_the_user_are_the_jackknifes():
    """Repetitions that share an offset, which blocks in the order of time can't see."""
    n_k = [400] * 4
    shift = np.repeat(np.random.default_rng(5).normal(scale=0.3, size=8), 50)
    groups = np.tile(np.repeat(np.arange(8), 50), 4)
    places = np.array(PLACES, dtype=float)[:, np.newaxis]
    x = np.random.default_rng(0).normal(size=1600) / np.sqrt(np.repeat(STIFFNESS, n_k))
    x += np.repeat(PLACES, n_k) + np.tile(shift, 4)
    u_kn = 0.5 * np.array(STIFFNESS)[:, np.newaxis] * (x - places) ** 2
    named = from_pymbar(u_kn, n_k, groups=np.array(list("abcdefgh"))[groups])
    assert named.n_groups == 8
    assert named.read().degrees_of_freedom == 7
    shuffled = from_pymbar(u_kn, n_k, groups=np.tile(np.arange(400) % 8, 4))
    assert named.read().std_error > 2 * shuffled.read().std_error


# ---- alarms
def of_oscillators(x, places=PLACES, stiffness=STIFFNESS):
    """u_kn at points of equally many draws of each state, and N_k."""
    stiffness, places = (np.array(each, dtype=float)[:, np.newaxis] for each in (stiffness, places))
    return 0.5 * stiffness * (x - places) ** 2, [len(x) // len(places)] * len(places)


def moved(seed):
    x = np.random.default_rng(seed).normal(size=5000) + np.repeat(np.arange(5), 1000)
    x[2000:3000] += 0.5
    return of_oscillators(x, range(5), (1,) * 5)


def drifting(seed):
    """All states are at first near the next one."""
    x = np.random.default_rng(seed).normal(size=4000) / np.sqrt(np.repeat(STIFFNESS, 1000))
    return of_oscillators(x + np.repeat(PLACES, 1000) + np.tile(np.linspace(0.5, 0, 1000), 4))


def restrained(half_width, seed):
    """u_kn of harmonic restraints of stiffness 4 and 1 and of a box without draws, and N_k."""
    x = np.random.default_rng(seed).normal(size=2000) / np.sqrt(np.repeat([4, 1], 1000))
    box = np.where(np.abs(x) < half_width, 0.0, np.inf)
    return np.stack([2 * x**2, 0.5 * x**2, box]), [1000, 1000, 0]


def in_boxes(seed):
    """Few draws lie beyond the smaller box, all with one weight, and none beyond the larger."""
    halves = np.array([[10.0], [10.5], [12.0]])
    x = np.random.default_rng(seed).uniform(-1, 1, 4000) * np.repeat(halves[:2], 2000)
    return np.where(np.abs(x) < halves, 0.0, np.inf), [2000, 2000, 0]


def hardly_overlapping(seed):
    """Their error is 22 nats, and the asymptotic one says 0.018."""
    return harmonic([1000] * 3, seed, (0, 0.5, 2), (10, 10, 1000)), [1000] * 3


REFUSED = {  # draws by seed, how many seeds, and words of a reason
    "hardly overlap": (hardly_overlapping, 20, "share only"),
    "one has moved": (moved, 5, "draws of state 2 are not from the density"),
    "two sets, whatever the order of states": (
        lambda seed: (harmonic([500] * 4, seed, (0, 9, 0.5, 9.5), (1,) * 4), [500] * 4),
        1,
        "states (0, 2|1, 3) and the others",
    ),
    "few": (lambda seed: (harmonic([15] * 4, seed), [15] * 4), 1, "draws of a state are effective"),
    "drift": (drifting, 1, "first and the second half"),
    # weights have no variance, and by chance their tail looked light in 5 % of the sets
    "released into a box": (lambda seed: restrained(4, seed), 40, "has no draws"),
    "a box around those that were drawn in": (in_boxes, 10, ""),
    "an error of 0": (
        lambda seed: (np.zeros((2, 1000)), [1000, 0]),
        1,
        "largest weights of the others are equal",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_draws_that_do_not_do_are_refused_with_the_reason(name):
    make, n_seeds, words = REFUSED[name]
    for seed in range(n_seeds):
        result = from_pymbar(*make(seed)).read()
        assert not result.converged
        assert any(re.search(words, reason) for reason in result.reasons)
    if name in ("hardly overlap", "few"):
        reasons = quietly(BAR(), from_pymbar(*make(0))).result_.reasons
        assert any(words in reason for reason in reasons)


WRONG = {
    "kJ/mol": (lambda u: 2.494 * u, "agree with .* times the log densities"),
    "20 % too hot": (lambda u: u / 1.2, "agree with .* times the log densities"),
    "states exchanged": (lambda u: u[[0, 2, 1, 3]], "draws of state [12] look like those of state"),
    "draws in another order": (
        lambda u: np.hstack(np.split(u, 4, axis=1)[::-1]),
        "draws of state [03] look like those of state [03]",
    ),
    "draws in any order": (
        lambda u: u[:, np.random.default_rng(0).permutation(u.shape[1])],
        "draws of state . look like those of all states",
    ),
    "a state's draws from elsewhere": (
        lambda u: np.where(np.arange(u.shape[1]) // 1000 == 1, u[:, ::-1], u),
        "draws of state 1 look like those of state 2",
    ),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_draws_that_are_not_of_their_densities_are_named_by_all(mistake):
    n_k = [1000] * 4
    change, message = WRONG[mistake]
    for seed, rho in ((0, 0.0), (1, 0.0), (2, 0.2)):
        u_kn = harmonic(n_k, seed, places=(0, 0.6, 1.2, 1.8), rho=rho)
        run = from_pymbar(change(u_kn), n_k)
        named = [reason for reason in run.read().reasons if re.search(message, reason)]
        assert len(named) == 1
        for estimator in (BAR(), SteppingStone(), LevelProcess()) if seed == 0 else ():
            result = quietly(estimator, run).result_
            assert named[0] in result.reasons
            assert not any("differs from MBAR" in reason for reason in result.reasons)


def test_draws_of_groups_that_share_an_offset_are_no_draws_from_elsewhere():
    """Their groups say how far means scatter, and correlation in time does not."""
    groups = np.tile(np.repeat(np.arange(8), 50), 4)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=1600) / np.sqrt(np.repeat(STIFFNESS, 400))
        x += np.repeat(PLACES, 400) + rng.normal(scale=0.3, size=(4, 8, 1)).repeat(50, 2).ravel()
        potentials = np.array(STIFFNESS)[:, np.newaxis] * (x - np.array(PLACES)[:, np.newaxis]) ** 2
        alarms = from_pymbar(0.5 * potentials, [400] * 4, groups=groups).read().alarms
        assert not any(alarm.kind == "not-of-this-density" for alarm in alarms)


def test_alarms_of_states_far_apart_follow_the_numbers_that_results_show():
    """Two states, and a third without draws, at growing distances."""
    seen = []
    for place in np.arange(2.5, 6.0, 0.25):
        apart = from_pymbar(harmonic([500, 500], places=(0, place), stiffness=(1, 1)), [500, 500])
        n_k = [500, 500, 0]
        far = from_pymbar(harmonic(n_k, places=(0, 1, place), stiffness=(1, 1, 1)), n_k)
        two, three = apart.read(), far.read()
        numbers = two.diagnostics
        weights = three.diagnostics["effective_weights"][2]
        beyond = [
            (two, "share only", numbers["shared_draws"] < 5),
            (two, "a single draw makes", numbers["largest_share"] > 0.25),
            (three, "has no draws, and those of the others", weights < 25),
        ]
        for result, words, expected in beyond:
            assert any(words in reason for reason in result.reasons) == expected
        seen.append([expected for *_, expected in beyond])
    assert 0.1 < np.mean(seen, axis=0).min() <= np.mean(seen, axis=0).max() < 0.9
    wide = from_pymbar(harmonic(n_k, places=(0, 0, 0), stiffness=(4, 4, 0.5)), n_k).read()
    assert any("Pareto shape" in reason or "worth" in reason for reason in wide.reasons)


def test_a_small_box_is_seen_from_the_restraint():
    for seed in range(10):
        result = from_pymbar(*restrained(2, seed)).read()
        assert result.converged
        exact = np.log(8 / np.sqrt(2 * np.pi))
        assert abs(result.log_partition - exact) < T_BOUND * result.std_error


def test_walkers_that_take_turns_are_read_as_such():
    """20 walkers of correlation .97 and 100 times: each has 1.5 independent ones."""
    z = autoregressive(0.97, (20, 100, 4)).swapaxes(0, 1)
    x = np.concatenate([(z[:, :, k] / np.sqrt(s) + k).ravel() for k, s in enumerate(STIFFNESS)])
    u_kn = 0.5 * np.array(STIFFNESS)[:, np.newaxis] * (x - np.arange(4)[:, np.newaxis]) ** 2
    with pytest.warns(UserWarning, match="20 walkers that take turns"):
        run = from_pymbar(u_kn, [2000] * 4)
    np.testing.assert_array_equal(run.walkers, 20)
    assert any("draws of a state are effective" in reason for reason in run.read().reasons)
    with pytest.raises(ValueError, match="leave out draws of times that some lack"):
        from_pymbar(u_kn[:, :-1], [2000, 2000, 2000, 1999])


# ---- tempered ensembles
BETAS = np.linspace(0, 1, 8) ** 2
EVIDENCE = -0.5 * 3 * np.log(26)


def tempered(seed, n_steps=300, n_walkers=8, rho=0.5):
    """Log-likelihoods of the prior N(0, 1) times exp(-12.5 x^2) in three dimensions."""
    x = autoregressive(rho, (8, n_steps, n_walkers, 3), seed)
    x /= np.sqrt(1 + 25 * BETAS)[:, np.newaxis, np.newaxis, np.newaxis]
    return -12.5 * np.sum(x**2, axis=-1)


def test_ladders_of_ensembles_give_the_evidence():
    run = from_tempering(tempered(0)[::-1], BETAS[::-1])
    for estimator in (MBAR(), BAR(), ThermodynamicIntegration()):
        result = quietly(estimator, run).result_
        assert abs(result.log_partition - EVIDENCE) < T_BOUND * result.std_error
        assert result.converged or result.method.startswith("Thermo")
    with pytest.warns(UserWarning, match=r"swapaxes\(1, 2\)"):
        swapped = from_tempering(tempered(0, rho=0.9).swapaxes(1, 2), BETAS)
    np.testing.assert_array_equal(swapped.walkers, 8)


@pytest.mark.parametrize("n", [12, large(200)])
def test_intervals_of_correlated_walkers_cover(n):
    """Eight walkers that forget in 19 steps: if all draws counted, few intervals would cover."""

    def problem(seed):
        run = from_tempering(tempered(seed, n_steps=1000, rho=0.9), BETAS)
        return "walkers", run, EVIDENCE

    check_coverage(problem, MBAR(), n, least_converged=0.9, false_alarm=2e-4)


def test_walkers_that_exchange_their_states_have_not_forgotten_them():
    """At each level alone draws seem independent, and errors were half of what they should be."""
    rng = np.random.default_rng(0)
    z = autoregressive(0.97, (64, 300, 3), rng).swapaxes(0, 1)
    order = rng.permuted(np.tile(np.arange(64), (300, 1)), axis=1)
    z = np.take_along_axis(z, order[:, :, np.newaxis], axis=1).reshape(300, 8, 8, 3)
    squares = np.moveaxis(np.sum(z**2, axis=-1), 0, 1) / (1 + 25 * BETAS)[:, np.newaxis, np.newaxis]
    for prior in (None, -12.5 * np.sum(rng.normal(size=(3000, 3)) ** 2, axis=1)):
        some = slice(prior is not None, None)
        run = from_tempering(-12.5 * squares[some], BETAS[some], prior_log_likelihoods=prior)
        assert any("draws of a state are effective" in reason for reason in run.read().reasons)


def test_a_ladder_that_ends_above_the_prior_says_what_is_missing():
    values = tempered(1)
    short = from_tempering(values[3:], BETAS[3:])
    assert short.ladder[0] == 0
    assert any("give prior_log_likelihoods" in reason for reason in short.read().reasons)
    prior = -12.5 * np.sum(np.random.default_rng(0).normal(size=(3000, 3)) ** 2, axis=1)
    result = from_tempering(values[1:], BETAS[1:], prior_log_likelihoods=prior).read()
    assert result.converged
    assert abs(result.log_partition - EVIDENCE) < T_BOUND * result.std_error


def test_burn_in_that_was_left_in_is_seen():
    for seed in range(5):
        values = tempered(seed)
        values[:, :20] -= 40 * np.exp(-np.arange(20) / 8)[:, np.newaxis]
        assert not from_tempering(values, BETAS).read().converged


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros((3, 4)), [0, 1]), "np.moveaxis brings the levels first"),
        ((np.zeros((2, 4)), [0, 0.5]), "one be 1"),
        ((np.full((2, 4), np.nan), [0, 1]), "NaN"),
    ],
)
def test_bad_ladders_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        from_tempering(*arguments)


def test_false_alarms_are_rare():
    """0.1 % of runs by the halves; the other bounds are far. 5 of 150: 1e-4 at a rate of 0.3 %."""
    runs = (from_pymbar(exponential([200] * 3, seed), [200] * 3) for seed in range(150))
    assert sum(not run.read().converged for run in runs) <= 4


# ---- containers
def test_a_run_is_read_by_other_programs_and_after_pickling():
    n_k = [100] * 4
    u_kn = harmonic(n_k)
    run = from_pymbar(u_kn, n_k)

    class PymbarMBAR:
        """What is read of pymbar's."""

    other = PymbarMBAR()
    other.u_kn, other.N_k = u_kn, np.array(n_k)
    value = run.read().log_partition
    other.x_kindices = np.repeat(np.arange(4), 100)
    assert from_pymbar(other).read().log_partition == value
    other.x_kindices = other.x_kindices[::-1]
    with pytest.raises(ValueError, match="x_kindices of this MBAR has another order"):
        from_pymbar(other)
    assert pickle.loads(pickle.dumps(run)).read().log_partition == value
    assert run.to_xarray().sizes == {"chain": 1, "draw": 400, "level": 4}
    assert LevelProcess().fit(run).run_ is run


def frame(u_kn, n_k, names):
    """alchemlyb's, with the draws of all states in turn."""
    times = np.concatenate([np.arange(n) for n in n_k])
    index = pd.MultiIndex.from_arrays([times, np.repeat(names, n_k)], names=["time", "fep-lambda"])
    return pd.DataFrame(u_kn.T, index=index, columns=names)


def test_frames_of_alchemlyb():
    n_k = [200] * 4
    names = [0.0, 0.3, 0.7, 1.0]
    repeats = [harmonic(n_k, seed) for seed in range(4)]
    frames = [frame(u_kn, n_k, names).sort_index(level="time") for u_kn in repeats]
    alone = from_alchemlyb(frames[0])
    np.testing.assert_allclose(alone.vectors, -repeats[0].T)
    assert alone.given_groups is None
    together = from_alchemlyb(frames)
    assert together.n_groups == 4
    result = MBAR().fit(together).result_
    assert result.degrees_of_freedom == 3
    assert abs(result.log_partition - EXACT) < 22 * result.std_error  # 2e-4 by chance
    gradients = pd.DataFrame({"fep": repeats[0][3]}, index=frame(repeats[0], n_k, names).index)
    slopes = from_alchemlyb(frame(repeats[0], n_k, names), gradients)
    np.testing.assert_array_equal(slopes.slopes[:, 0], -repeats[0][3])
    np.testing.assert_array_equal(slopes.ladder, names)
    with pytest.raises(ValueError, match="dHdl must have the rows of u_nk in the same order"):
        from_alchemlyb(frame(repeats[0], n_k, names).sort_index(level="time"), gradients)


def test_frames_of_states_with_several_coordinates():
    n_k = [50, 50]
    index = pd.MultiIndex.from_arrays(
        [np.tile(np.arange(50), 2), np.repeat([0.0, 1.0], 50), np.repeat([0.0, 0.5], 50)],
        names=["time", "coul-lambda", "vdw-lambda"],
    )
    u_kn = harmonic(n_k, places=(0, 1), stiffness=(1, 1))
    u_nk = pd.DataFrame(u_kn.T, index=index, columns=[0, 1])
    u_nk.columns = pd.Index([(0.0, 0.0), (1.0, 0.5)], tupleize_cols=False)
    np.testing.assert_array_equal(from_alchemlyb(u_nk).levels, np.repeat([0, 1], 50))


# ---- bad input
U = harmonic([20, 20], places=(0, 1), stiffness=(1, 1))


def with_first(value):
    """U with another first entry."""
    return np.r_[value, U.ravel()[1:]].reshape(U.shape)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((U.T, [20, 20]), {}, "N_k must be 40 whole numbers"),
        ((U[0], [20, 20]), {}, r"\(K, N\)"),
        ((np.zeros((2, 2, 20)), [20, 20]), {}, "kln_to_kn"),
        ((U, [20, 10]), {}, r"whose sum is that of its 40 columns, got \[20, 10\]"),
        ((U, [20.5, 19.5]), {}, r"whole numbers of draws, .* got \[20.5, 19.5\]"),
        ((with_first(np.nan), [20, 20]), {}, "NaN or -inf"),
        ((with_first(np.inf), [20, 20]), {}, "order the columns by state"),
        ((harmonic([1] * 4), [1] * 4), {}, "N_k must have at least 2 draws of a state"),
        ((U, [20, 20]), {"groups": [0] * 40}, "groups must be at least 2"),
        ((U, [20, 20]), {"groups": [0, 1]}, "groups must name"),
        ((U, [20, 20]), {"groups": np.repeat([0, 1], 20)}, "group 0 has none of state 1"),
        ((U, [20, 20]), {"dudl": np.zeros(3)}, "dudl must be 40"),
        ((U, [20, 20]), {"lambdas": [0, np.nan]}, "lambdas must be 2"),
    ],
)
def test_bad_arrays_are_named(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        from_pymbar(*arguments, **options)


def test_bad_types_and_frames_are_named():
    with pytest.raises(TypeError, match="needs N_k"):
        from_pymbar(U)
    with pytest.raises(TypeError, match="u_kn must be real numbers"):
        from_pymbar("u", [1])
    good = frame(U, [20, 20], [0.0, 1.0])
    with pytest.raises(TypeError, match="DataFrame"):
        from_alchemlyb(U)
    with pytest.raises(ValueError, match="u_nk must have an index of the time and of the state"):
        from_alchemlyb(good.reset_index(drop=True))
    with pytest.raises(ValueError, match="no column of this name"):
        from_alchemlyb(good.rename(columns={1.0: 0.5}))
    with pytest.raises(ValueError, match="same columns"):
        from_alchemlyb([good, good[[1.0, 0.0]]])
    with pytest.raises(ValueError, match=r"u_nk\[0\] has no draws of the state 1.0.*concat"):
        from_alchemlyb([good.iloc[:20], good.iloc[20:]])
    other = good.copy()
    other.attrs["energy_unit"] = "kJ/mol"
    with pytest.raises(ValueError, match="units of kT"):
        from_alchemlyb(other)
    with pytest.raises(ValueError, match="one column"):
        from_alchemlyb(good, good)
