"""HMC: invariance, reversal, dynamics, tuning. `check_transition` gives false alarms at a rate of
1e-4; fixed seeds.
"""

import numpy as np
import pytest
from densities import LADDER, PATHS, Certain, smallest_p_value

from sklpf import AIS, Gaussian, GeometricPath, Uniform
from sklpf.paths import Stream, stream_key
from sklpf.testing import check_path, check_transition
from sklpf.transitions import HMC

KEY = stream_key(1)
MOVES = {
    "partial": HMC(0.3),
    "full": HMC(0.3, half_life=None),
    "many steps": HMC(0.4, n_leapfrog=5, half_life=2.0),
    "many rejections": HMC(0.8, half_life=5.0),
    "auto": HMC(),
    "diag": HMC(metric="diag", n_leapfrog=2),
    "dense": HMC(metric="dense", n_leapfrog=3),
    "fixed dense": HMC(0.5, metric="dense"),
}
SOME = [*((name, "auto") for name in PATHS), *(("correlated", move) for move in MOVES)]
SOME += [("half-open box", "dense"), ("half-open box", "diag"), ("box", "many steps")]


def tuned(path, move):
    return move.tune(path, KEY)


@pytest.mark.parametrize("name", PATHS)
def test_paths_keep_their_contract(name):
    check_path(PATHS[name])


@pytest.mark.parametrize(("name", "move"), SOME)
def test_moves_leave_every_level_invariant(name, move):
    path, move = PATHS[name], MOVES[move]
    if path.bounds is not None and move.metric == "dense":
        with pytest.raises(ValueError, match='metric must be None or "diag" on a path with bounds'):
            move.check(path)
        return
    check_transition(path, tuned(path, move), variables=path.position)


@pytest.mark.parametrize(
    ("name", "move"),
    [
        ("correlated", "partial"),
        ("Laplace", "many rejections"),
        ("half-open box", "diag"),
        ("wall", "diag"),
    ],
)
def test_chains_reach_the_target_and_stay(name, move):
    """10 groups of 500 chains and all together, 2 marginals, p > 1e-4: false alarms in 2e-3 of runs
    at most.
    """
    path = PATHS[name]
    assert smallest_p_value(name, tuned(path, MOVES[move]), 50) > 1e-4


# ---- what the check must find
class NoTurn(HMC):
    """A rejected chain goes on in its direction."""

    def _trajectory(self, path, state, memory, *rest):
        new, moved = super()._trajectory(path, state, memory, *rest)
        stays = np.all(moved[0] == memory[0], axis=1, keepdims=True)
        return new, (np.where(stays, -moved[0], moved[0]), *moved[1:])


class NotReversed(HMC):
    def move(self, path, state, memory, levels, stream, reverse=False):
        return super().move(path, state, memory, levels, stream)


class AlwaysAccepts(HMC):
    def _trajectory(self, path, state, memory, levels, step, root, stream):
        return super()._trajectory(path, state, memory, levels, step, root, Certain(stream))


class TooMuchNoise(HMC):
    def _refresh(self, memory, step, stream):
        velocity, *rest = super()._refresh(memory, step, stream)
        return 1.1 * velocity, *rest


class StepByPosition(HMC):
    def _trajectory(self, path, state, memory, levels, step, root, stream):
        step = step / (1 + np.abs(path.position(state)[:, :1]))
        return super()._trajectory(path, state, memory, levels, step, root, stream)


@pytest.mark.parametrize(
    ("move", "name"),
    [
        (NoTurn(1.1, half_life=20.0), "correlated"),
        (NotReversed(0.5, half_life=2.0), "correlated"),
        (AlwaysAccepts(1.1), "correlated"),
        (TooMuchNoise(0.5), "correlated"),
        (StepByPosition(1.1, half_life=None), "correlated"),
        (AlwaysAccepts(1.5), "Laplace"),
    ],
)
def test_the_check_finds_wrong_moves(move, name):
    path = PATHS[name]
    with pytest.raises(AssertionError, match="does not leave level|reversal is wrong"):
        check_transition(path, move, variables=path.position, n=20_000)


# ---- the dynamics
def trajectory(path, move, state, velocity, level=3):
    """One trajectory of every chain, always accepted; its velocity is turned around."""
    n = len(velocity)
    levels = np.full(n, level)
    steps = move.steps_at(path.ladder)
    memory = velocity, *path.gradients(state), np.zeros(n)
    certain = Certain(Stream(KEY))
    state, memory = move._trajectory(
        path,
        state,
        memory,
        levels,
        steps.step_sizes[levels],
        steps.root(levels),
        certain,
    )
    return state, memory[0]


def started(path, n=200):
    rng = np.random.default_rng(0)
    state = path.sample_base(2 * n, Stream(KEY))
    state = path.take(state, np.flatnonzero(state.gain > -np.inf)[:n])
    return state, rng.normal(size=state.position.shape)


@pytest.mark.parametrize("metric", [None, "diag", "dense"])
@pytest.mark.parametrize("name", ["correlated", "box", "half-open box"])
def test_trajectories_are_reversible(name, metric):
    """Forward, turn, and back: 20 steps of the leapfrog with reflections end where they began."""
    path = PATHS[name]
    if metric == "dense" and path.bounds is not None:
        return
    move = tuned(path, HMC(0.3, n_leapfrog=20, metric=metric))
    state, velocity = started(path)
    there, turned = trajectory(path, move, state, velocity)
    if path.bounds is not None:
        hits = np.any(
            (np.abs(there.position - state.position) > 1e-3)
            & (np.sign(turned) == np.sign(velocity))
        )
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
    pilot = tuned(covered, HMC(0.5, metric=metric)).pilot

    def error(n):
        move = HMC(0.8 / n, n_leapfrog=n, metric=metric).with_pilot(pilot)
        there, pace = trajectory(covered, move, state, velocity)
        levels = np.full(len(pace), 3)
        potential = covered.log_f(state, levels) - covered.log_f(there, levels)
        return np.sqrt(np.mean((potential + np.sum(pace**2 - velocity**2, axis=1) / 2) ** 2))

    errors = [error(n) for n in (16, 32, 64)]
    np.testing.assert_allclose(np.divide(errors[:-1], errors[1:]), 4, rtol=0.05)
    assert errors[-1] < 1e-3


# ---- tuning
@pytest.mark.parametrize(
    ("target", "move"),
    [(0.8, HMC()), (0.6, HMC(target_acceptance=0.6)), (0.8, HMC(metric="dense"))],
)
@pytest.mark.parametrize("name", ["Laplace", "half-open box"])
def test_step_sizes_give_the_acceptance_that_was_asked_for(name, target, move):
    """At every level; a pilot of 64 chains and 12 moves a level knows it to 0.08."""
    path = PATHS[name]
    if path.bounds is not None and move.metric == "dense":
        return
    path = path.with_ladder(LADDER)
    path.n_moves_per_segment = 10
    ais = AIS(200, 100, ladder="adaptive", transition=move, random_state=0).fit(path)
    acceptance = ais.result_.diagnostics["acceptance"]
    assert np.isnan(acceptance[0])
    assert np.abs(acceptance[1:] - target).max() < 0.08


def test_an_untuned_move_says_so():
    path = PATHS["correlated"]
    state = path.sample_base(3, Stream(KEY))
    with pytest.raises(
        ValueError, match=r"HMC must be tuned before it moves: call tune\(path, key\)"
    ):
        HMC().move(path, state, HMC().init(path, state, Stream(KEY)), np.zeros(3, int), Stream(KEY))


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"step_size": 0}, "step_size"),
        ({"step_size": "short"}, "step_size"),
        ({"target_acceptance": 1.0}, "target_acceptance"),
        ({"n_leapfrog": 0}, "n_leapfrog"),
        ({"half_life": 0.0}, "half_life"),
        ({"metric": "full"}, "metric"),
    ],
)
def test_parameters_are_checked(parameters, name):
    with pytest.raises(ValueError, match=f"The '{name}' parameter of HMC"):
        HMC(**parameters).check(PATHS["correlated"])


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
    memory, levels = move.init(path, state, stream.aside("memory")), np.ones(n, dtype=int)
    for step in range(200):
        state, memory = move.move(path, state, memory, levels, stream.at(step))
    x = state.position[:, 0]
    assert x.min() > 1e-3
    assert abs(x.mean() - 6 / 22) < 4.5 * np.sqrt(6 * 16 / 22**2 / 23 / n)  # false alarm 7e-6
