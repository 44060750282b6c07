"""RandomWalk: metrics and drifts."""

import numpy as np
import pytest
from convergence import z_score
from densities import PATHS, towards_a_point

from sklpf import AIS, Gaussian, GeometricPath
from sklpf.paths import Stream, stream_key
from sklpf.transitions import RandomWalk

KEY = stream_key(1)


def test_a_diagonal_metric_finds_scales_far_apart():
    path = PATHS["correlated"]
    stretched = type(path)(stretched_log_density, base=type(path.base)([0.0, 0.0], [4.0, 4e-4]))
    pilot = RandomWalk(metric="diag").tune(stretched, KEY).pilot
    np.testing.assert_allclose(pilot.roots[-1], [1, 0.01], rtol=0.3)
    move = RandomWalk(metric="diag")
    fitted = AIS(50, 200, transition=move, ladder="adaptive", random_state=0).fit(stretched)
    assert abs(z_score(fitted, np.log(2 * np.pi * 0.01))) < 4.8


def stretched_log_density(x):
    return -((x[:, 0]) ** 2 + (100 * x[:, 1]) ** 2) / 2


# ---- asymmetric proposals


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
