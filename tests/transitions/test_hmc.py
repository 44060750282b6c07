"""HMC: the dynamics, and what it says untuned."""

import numpy as np
import pytest
from densities import LADDER, PATHS, Certain

from sklpf import Gaussian, GeometricPath, Uniform
from sklpf.paths import Stream, stream_key
from sklpf.testing import check_path
from sklpf.transitions import HMC

KEY = stream_key(1)


@pytest.mark.parametrize("name", PATHS)
def test_paths_keep_their_contract(name):
    check_path(PATHS[name])


# ---- the dynamics
def trajectory(path, move, state, velocity, level=3):
    """One trajectory of every chain, always accepted; its velocity is turned around."""
    n = len(velocity)
    levels = np.full(n, level)
    steps = move.steps_at(path.ladder, levels)
    auxiliary = velocity, *path.gradients(state), np.zeros(n)
    certain = Certain(Stream(KEY))
    state, auxiliary = move._trajectory(path, state, auxiliary, levels, steps, certain)
    return state, auxiliary[0]


def started(path, n=200):
    rng = np.random.default_rng(0)
    state = path.sample_base(2 * n, Stream(KEY))
    state = path.take(state, np.flatnonzero(state.gain > -np.inf)[:n])
    return state, rng.normal(size=state.position.shape)


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
    if path.bounds is not None:
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


# ---- tuning


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
    auxiliary, levels = move.init(path, state, stream.aside("memory")), np.ones(n, dtype=int)
    for step in range(200):
        state, auxiliary = move.move(path, state, auxiliary, levels, stream.at(step))
    x = state.position[:, 0]
    assert x.min() > 1e-3
    assert abs(x.mean() - 6 / 22) < 4.5 * np.sqrt(6 * 16 / 22**2 / 23 / n)  # false alarm 7e-6
