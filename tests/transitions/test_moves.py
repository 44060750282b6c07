"""Moves on R^d: invariance, reversal and tuning. `check_transition` gives false alarms at a rate of
1e-4; fixed seeds.
"""

import re

import numpy as np
import pytest
from densities import LADDER, PATHS, all_accepted, towards_a_point

from sklpf import AIS, Gaussian, GeometricPath, Uniform
from sklpf.paths import Stream, stream_key
from sklpf.testing import check_transition
from sklpf.transitions import HMC, RandomWalk, Slice

KEY = stream_key(1)
MANY_STEPS = HMC(0.4, n_leapfrog=5, half_life=2.0)
DIAGONAL = HMC(metric="diag", n_leapfrog=2)
DRIFTING = RandomWalk(0.8, drift=towards_a_point)


def label(value):
    """The text of a value without addresses, which differ between processes."""
    return re.sub(r" at 0x\w+", "", str(value))


ON_THE_PLANE = [  # beside the default ones
    HMC(0.3),
    HMC(0.3, half_life=None),
    MANY_STEPS,
    HMC(0.8, half_life=5.0),  # many rejections
    DIAGONAL,
    HMC(metric="dense", n_leapfrog=3),
    HMC(0.5, metric="dense"),
    RandomWalk(0.8),
    RandomWalk(metric="diag"),
    RandomWalk(metric="dense"),
    DRIFTING,
    RandomWalk(drift=towards_a_point, target_acceptance=0.5),
    RandomWalk(metric="diag", drift=towards_a_point),
    RandomWalk(metric="dense", drift=towards_a_point),
    Slice(1.0),
]


@pytest.mark.parametrize(
    ("name", "move"),
    [
        *((name, move) for name in PATHS for move in (HMC(), RandomWalk(), Slice())),
        *(("correlated", move) for move in ON_THE_PLANE),
        ("half-open box", DIAGONAL),
        ("box", MANY_STEPS),
        ("Laplace", DRIFTING),
        ("wall", DRIFTING),
        ("box", Slice(0.3, max_steps=3)),
        ("wall", Slice(0.5, max_steps=1)),
    ],
    ids=label,
)
def test_every_level_is_left_invariant(name, move):
    path = PATHS[name]
    check_transition(path, move.tune(path, KEY), variables=path.position)


@pytest.mark.parametrize("kind", [HMC, RandomWalk])
def test_bounds_want_a_metric_of_coordinates(kind):
    with pytest.raises(ValueError, match='metric must be None or "diag" on a path with bounds'):
        kind(metric="dense").check(PATHS["box"])


# ---- what the check must find
class AlwaysAccepts(HMC):
    def _trajectory(self, *arguments):
        with all_accepted():
            return super()._trajectory(*arguments)


class Uncorrected(RandomWalk):
    """Metropolis's rule for a proposal that is not symmetric."""

    def _drifting(self, *arguments):
        new, log_ratio = super()._drifting(*arguments)
        return new, np.zeros_like(log_ratio)


class BelowTheSlice(Slice):
    def _interval(self, here, width, low, high, threshold, *arguments):
        threshold -= 0.3
        return super()._interval(here, width, low, high, threshold, *arguments)


def not_reversed(move):
    """The same move whose reversal is the move itself."""

    class NotReversed(type(move)):
        def move(self, path, state, auxiliary, levels, stream, reverse=False):
            return super().move(path, state, auxiliary, levels, stream)

    return NotReversed(**move.get_params())


@pytest.mark.parametrize(
    ("move", "name"),
    [
        (not_reversed(HMC(0.5, half_life=2.0)), "correlated"),
        (AlwaysAccepts(1.1), "correlated"),
        (Uncorrected(0.8, drift=towards_a_point), "correlated"),
        (BelowTheSlice(1.0), "correlated"),
    ],
    ids=label,
)
def test_the_check_finds_wrong_moves(move, name):
    path = PATHS[name]
    with pytest.raises(AssertionError, match="does not leave level|reversal is wrong"):
        check_transition(path, move, variables=path.position, n=20_000)


# ---- tuning
@pytest.mark.parametrize(
    ("name", "move", "target", "tolerance"),
    [
        *((name, HMC(), 0.8, 0.08) for name in ("Laplace", "half-open box")),
        *((name, HMC(target_acceptance=0.6), 0.6, 0.08) for name in ("Laplace", "half-open box")),
        ("Laplace", HMC(metric="dense"), 0.8, 0.08),
        *(("wall", RandomWalk(metric=metric), 0.3, 0.1) for metric in (None, "diag", "dense")),
    ],
    ids=label,
)
def test_step_sizes_give_the_acceptance_that_was_asked_for(name, move, target, tolerance):
    """At every level; a pilot of 64 chains and 12 moves a level knows it to the tolerance."""
    path = PATHS[name].with_ladder(LADDER)
    path.n_moves_per_segment = 10
    ais = AIS(200, 100, ladder="adaptive", transition=move, random_state=0).fit(path)
    acceptance = ais.result_.diagnostics["acceptance"]
    assert np.isnan(acceptance[0])
    assert np.abs(acceptance[1:] - target).max() < tolerance


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        (HMC, {"step_size": 0}),
        (HMC, {"step_size": "short"}),
        (HMC, {"target_acceptance": 1.0}),
        (HMC, {"n_leapfrog": 0}),
        (HMC, {"half_life": 0.0}),
        (HMC, {"metric": "full"}),
        (RandomWalk, {"drift": 1.0}),
        (Slice, {"width": 0}),
        (Slice, {"width": "wide"}),
        (Slice, {"max_steps": 0}),
    ],
)
def test_parameters_are_checked(kind, parameters):
    message = f"The '{next(iter(parameters))}' parameter of {kind.__name__}"
    with pytest.raises(ValueError, match=message):
        kind(**parameters).check(PATHS["correlated"])


def test_an_autoregressive_walk_of_a_normal_density_is_never_rejected():
    """In 500 dimensions, where a symmetric walk of such steps would be: its steps of variance
    r (2 - r) leave N(0, I) invariant.
    """
    r, normal = 0.5, Gaussian(np.zeros(500), 1.0)
    path = GeometricPath(lambda x: -np.sum(x**2, axis=1) / 2, base=normal)
    walks = RandomWalk((r * (2 - r)) ** 0.5, drift=lambda x, betas: -r * x), RandomWalk(r)
    rates = []
    for move in walks:
        stream, levels = Stream(KEY), np.zeros(20, dtype=int)
        state = path.sample_base(20, stream)
        _, auxiliary = move.move(path, state, move.init(path, state, stream), levels, stream.at(1))
        rates.append(move.accepted(auxiliary))
    np.testing.assert_allclose(rates[0], 1.0, rtol=1e-9)
    assert rates[1].max() < 0.1


@pytest.mark.parametrize(
    ("drift", "name", "message"),
    [
        (towards_a_point, "box", "drift must be None on a path with bounds"),
        (lambda x, betas: x[0], "correlated", r"drift must give shape \(\d+, 2\)"),
        (lambda x, betas: np.nan * x, "correlated", "drift is not finite at"),
    ],
)
def test_a_drift_that_is_none_is_named(drift, name, message):
    with pytest.raises(ValueError, match=message):
        AIS(10, 20, transition=RandomWalk(drift=drift), random_state=0).fit(PATHS[name])


# ---- the dynamics of HMC
def trajectory(path, move, state, velocity, level=3):
    """One trajectory of every chain, always accepted; its velocity is turned around."""
    n = len(velocity)
    levels = np.full(n, level)
    steps = move.steps_at(path.ladder, levels)
    auxiliary = velocity, *path.gradients(state), np.zeros(n)
    with all_accepted():
        state, auxiliary = move._trajectory(path, state, auxiliary, levels, steps, Stream(KEY))
    return state, auxiliary[0]


def started(path, n=200):
    rng = np.random.default_rng(0)
    state = path.sample_base(2 * n, Stream(KEY))
    state = path.take(state, np.flatnonzero(state.gain > -np.inf)[:n])
    return state, rng.normal(size=state.position.shape)


@pytest.mark.parametrize("kind", [HMC, RandomWalk])
def test_the_dense_metric_whitens_a_target_of_condition_1e6(kind):
    """Ledoit and Wolf's shrinkage alone leaves it one of 9 to 26, random walks 400 to 10,000."""
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    precision = axes * np.geomspace(1, 1e6, 5) @ axes.T
    path = GeometricPath(
        lambda x: -np.einsum("ni,ij,nj->n", x, precision, x) / 2,
        grad=lambda x: -x @ precision,
        base=Gaussian(np.zeros(5), 1.0),
    )
    root = kind(metric="dense").tune(path, KEY).pilot.roots[-1]
    assert np.linalg.cond(root.T @ precision @ root) < 3


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        *(("correlated", metric) for metric in (None, "diag", "dense")),
        *((name, metric) for name in ("box", "half-open box") for metric in (None, "diag")),
    ],
)
def test_trajectories_are_reversible(name, metric):
    """Forward, turn, and back: 20 steps of the leapfrog with reflections end where they began."""
    path = PATHS[name]
    move = HMC(0.3, n_leapfrog=20, metric=metric).tune(path, KEY)
    state, velocity = started(path)
    there, turned = trajectory(path, move, state, velocity)
    if path.bounds.has_sides:
        moved = np.abs(there.position - state.position) > 1e-3
        hits = np.any(moved & (np.sign(turned) == np.sign(velocity)))
        assert hits
    back, again = trajectory(path, move, there, turned)
    np.testing.assert_allclose(back.position, state.position, atol=1e-10)
    np.testing.assert_allclose(again, velocity, atol=1e-10)


@pytest.mark.parametrize("metric", [None, "diag", "dense"])
def test_the_energy_error_is_of_second_order(metric):
    """Trajectories of one length: half the step leaves a quarter of the error in energy."""
    covered = GeometricPath(
        lambda x: -np.sum(x**4, axis=1) / 4 - x[:, 0] ** 2,
        grad=lambda x: -(x**3) - 2 * x * [1, 0],
        base=Gaussian([0.0, 0.0], 1.0),
        ladder=LADDER,
    )
    state, velocity = started(covered)
    pilot = HMC(0.5, metric=metric).tune(covered, KEY).pilot

    def error(n):
        move = HMC(0.8 / n, n_leapfrog=n, metric=metric).with_pilot(pilot)
        there, pace = trajectory(covered, move, state, velocity)
        levels = np.full(len(pace), 3)
        potential = covered.log_f(state, levels) - covered.log_f(there, levels)
        return np.sqrt(np.mean((potential + np.sum(pace**2 - velocity**2, axis=1) / 2) ** 2))

    errors = [error(n) for n in (16, 32, 64)]
    np.testing.assert_allclose(np.divide(errors[:-1], errors[1:]), 4, rtol=0.05)
    assert errors[-1] < 1e-3


def test_an_untuned_move_says_so():
    path = PATHS["correlated"]
    state = path.sample_base(3, Stream(KEY))
    with pytest.raises(ValueError, match=r"must be tuned before it moves: call tune\(path, key\)"):
        HMC().move(path, state, HMC().init(path, state, Stream(KEY)), np.zeros(3, int), Stream(KEY))


def log_beta(x):
    with np.errstate(divide="ignore"):
        return 5 * np.log(x[:, 0]) + 15 * np.log(1 - x[:, 0])


def grad_beta(x):
    with np.errstate(divide="ignore"):
        return 5 / x - 15 / (1 - x)


def test_chains_leave_a_wall_where_the_force_has_no_bound():
    """At x = 1e-6 a kick would be 1e5 times the velocity; 200 moves at the target from there give
    its mean.
    """
    path = GeometricPath(log_beta, grad=grad_beta, base=Uniform([0.0], [1.0]), bounds=(0.0, 1.0))
    move, stream, n = HMC().tune(path, (0, 1)), Stream((1, 2)), 400
    state = path.at(np.full((n, 1), 1e-6))
    auxiliary, levels = move.init(path, state, stream.of("memory")), np.ones(n, dtype=int)
    for step in range(200):
        state, auxiliary = move.move(path, state, auxiliary, levels, stream.at(step))
    x = state.position[:, 0]
    assert x.min() > 1e-3
    assert abs(x.mean() - 6 / 22) < 4.5 * np.sqrt(6 * 16 / 22**2 / 23 / n)  # false alarm 7e-6
