"""RandomWalk: invariance and tuning. `check_transition` gives false alarms at a rate of 1e-4; fixed
seeds.
"""

import numpy as np
import pytest
from densities import LADDER, PATHS, smallest_p_value

from sklpf import AIS
from sklpf.paths import stream_key
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
