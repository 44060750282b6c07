"""HAIS: right numbers and unbiased weights.

Bounds of 4.8 standard errors are false alarms in 1e-3 of comparisons (Student t with at least 9
degrees of freedom); seeds are fixed.
"""

import numpy as np
import pytest
from convergence import may_not_converge
from densities import PATHS
from scipy.special import log_ndtr
from sklearn.base import clone

from sklpf import AIS, GeometricPath
from sklpf.transitions import HMC, RandomWalk

PLANE_LOG_Z = float(np.log(2 * np.pi * 0.6))


class Plane(GeometricPath):
    """A correlated Gaussian on the plane, with exact draws from the target."""

    def __init__(self):
        path = PATHS["correlated"]
        super().__init__(path.log_density, grad=path.grad, base=path.base)

    def sample_target(self, n, stream):
        root = np.linalg.cholesky([[1.0, 0.8], [0.8, 1.0]])
        return self.at(stream.generator().normal(size=(n, 2)) @ root.T)


# ---- right numbers
@pytest.mark.parametrize(
    ("name", "move"),
    [
        ("correlated", HMC(0.9, half_life=20.0)),
        ("wall", HMC(0.5, half_life=2.0)),
        ("wall", RandomWalk(0.5)),
    ],
)
def test_estimates_of_short_runs_are_unbiased(name, move):
    """150 runs of 20 chains with 4 levels: the mean of Z estimate / Z is 1; normal bound 4.5: false
    alarms in 7e-6.
    """
    truth = PLANE_LOG_Z if name == "correlated" else np.log(2 * np.pi) + log_ndtr(0.5 / 2**0.5)
    with may_not_converge():
        fitted = AIS(150 * 20, ladder=[0, 0.1, 0.4, 1], transition=move, random_state=0)
        log_weights = fitted.fit(PATHS[name]).run_.forward
    ratios = np.exp(log_weights.ravel() - truth).reshape(150, 20).mean(axis=1)
    assert ratios.std() > 0.05
    assert abs(ratios.mean() - 1) < 4.5 * ratios.std() / 150**0.5


def test_weights_with_a_tuned_move_are_unbiased():
    """20 runs, each with a pilot of its own; t with 19 degrees of freedom: false alarms in 8e-5."""
    move = HMC(metric="diag")
    with may_not_converge():
        ais = AIS(20, ladder=[0, 0.3, 1], transition=move, checks=False)
        runs = [clone(ais).set_params(random_state=s).fit(Plane()).run_ for s in range(20)]
    ratios = [np.mean(np.exp(run.forward - PLANE_LOG_Z)) for run in runs]
    assert abs(np.mean(ratios) - 1) < 5 * np.std(ratios, ddof=1) / np.sqrt(20)
