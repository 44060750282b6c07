"""RandomWalk: invariance, tuning, drifts. `check_transition` gives false alarms at a rate of 1e-4;
fixed seeds.
"""

import numpy as np
import pytest
from densities import LADDER, PATHS, smallest_p_value

from sklpf import AIS, Gaussian, GeometricPath
from sklpf.paths import Stream, stream_key
from sklpf.testing import check_transition
from sklpf.transitions import RandomWalk

KEY = stream_key(1)
MOVES = {"fixed": RandomWalk(0.8), "auto": RandomWalk(), "diag": RandomWalk(metric="diag")}
MOVES["dense"] = RandomWalk(metric="dense")


@pytest.mark.parametrize(
    ("name", "move"),
    [
        *((name, "auto") for name in PATHS),
        *(("correlated", move) for move in MOVES),
        ("box", "dense"),
    ],
)
def test_moves_leave_every_level_invariant(name, move):
    path, move = PATHS[name], MOVES[move]
    if path.bounds is not None and move.metric == "dense":
        with pytest.raises(ValueError, match='metric must be None or "diag" on a path with bounds'):
            move.check(path)
        return
    check_transition(path, move.tune(path, KEY), variables=path.position)


@pytest.mark.parametrize("name", ["correlated", "half-open box"])
def test_chains_reach_the_target_and_stay(name):
    """10 groups of 500 chains and all together, 2 marginals, p > 1e-4: false alarms in 2e-3 of runs
    at most.
    """
    assert smallest_p_value(name, MOVES["fixed"], 150) > 1e-4


@pytest.mark.parametrize("metric", [None, "diag", "dense"])
@pytest.mark.parametrize("name", ["wall"])
def test_step_sizes_give_the_acceptance_that_was_asked_for(name, metric):
    """At every level; a pilot of 64 chains and 12 moves a level knows it to 0.1."""
    path = PATHS[name].with_ladder(LADDER)
    path.n_moves_per_segment = 10
    move = RandomWalk(metric=metric)
    ais = AIS(200, 100, ladder="adaptive", transition=move, random_state=0).fit(path)
    assert np.abs(ais.result_.diagnostics["acceptance"][1:] - 0.3).max() < 0.1


def test_a_diagonal_metric_finds_scales_far_apart():
    path = PATHS["correlated"]
    stretched = type(path)(stretched_log_density, base=type(path.base)([0.0, 0.0], [4.0, 4e-4]))
    pilot = RandomWalk(metric="diag").tune(stretched, KEY).pilot
    np.testing.assert_allclose(pilot.roots[-1], [1, 0.01], rtol=0.3)
    fitted = AIS(
        50, 200, transition=RandomWalk(metric="diag"), ladder="adaptive", random_state=0
    ).fit(stretched)
    assert (
        abs(fitted.log_partition_ - np.log(2 * np.pi * 0.01))
        < 4.8 * fitted.log_partition_std_error_
    )


def stretched_log_density(x):
    return -((x[:, 0]) ** 2 + (100 * x[:, 1]) ** 2) / 2


# ---- asymmetric proposals
def towards_a_point(x, betas):
    return 0.3 * (np.array([1.0, -1.0]) - x) * (0.5 + betas[:, np.newaxis])


class Uncorrected(RandomWalk):
    """Metropolis's rule for a proposal that is not symmetric."""

    def _drifting(self, *arguments):
        new, log_ratio = super()._drifting(*arguments)
        return new, np.zeros_like(log_ratio)


DRIFTS = {
    "fixed": RandomWalk(0.8, drift=towards_a_point),
    "auto": RandomWalk(drift=towards_a_point, target_acceptance=0.5),
    "diag": RandomWalk(metric="diag", drift=towards_a_point),
    "dense": RandomWalk(metric="dense", drift=towards_a_point),
}


@pytest.mark.parametrize(
    ("name", "move"),
    [
        *(("correlated", move) for move in DRIFTS),
        *((name, "fixed") for name in ("Laplace", "wall")),
    ],
)
def test_a_walk_that_drifts_leaves_every_level_invariant(name, move):
    path = PATHS[name]
    check_transition(path, DRIFTS[move].tune(path, KEY), variables=path.position)


def test_without_its_correction_it_would_not():
    path = PATHS["correlated"]
    with pytest.raises(AssertionError, match="does not leave level"):
        check_transition(path, Uncorrected(0.8, drift=towards_a_point), variables=path.position)


def test_chains_that_drift_reach_the_target_and_stay():
    """As above: a false alarm in 2e-3 at most."""
    assert smallest_p_value("wall", DRIFTS["fixed"], 150) > 1e-4


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
        _, memory = move.move(path, state, move.init(path, state, stream), levels, stream.at(1))
        rates.append(move.accepted(memory))
    np.testing.assert_allclose(rates[0], 1.0, rtol=1e-9)
    assert rates[1].max() < 0.1


@pytest.mark.parametrize(
    ("drift", "name", "error", "message"),
    [
        (1.0, "correlated", ValueError, "'drift' parameter"),
        (towards_a_point, "box", ValueError, "drift must be None on a path with bounds"),
        (lambda x, betas: x[0], "correlated", ValueError, r"drift must give shape \(\d+, 2\)"),
        (lambda x, betas: np.nan * x, "correlated", ValueError, "drift is not finite at"),
    ],
)
def test_a_drift_that_is_none_is_named(drift, name, error, message):
    with pytest.raises(error, match=message):
        AIS(10, 20, transition=RandomWalk(drift=drift), random_state=0).fit(PATHS[name])
