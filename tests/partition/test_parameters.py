"""Parameters of estimators that can't be used are named."""

import numpy as np
import pytest
from known_problems import make_rbm_problem

from sklpf import AIS, RTS, SMC, ParallelTempering
from sklpf.partition import SAMS, WangLandau

IN_ORDER = "ladder must be strictly increasing"
INSIDE = r"ladder must hold inverse temperatures in \[0, 1\]"
WASTE_FREE = {"variant": "waste-free"}


@pytest.mark.parametrize(
    ("kind", "parameters", "message"),
    [
        (AIS, {"n_chains": 1}, "n_chains"),
        (AIS, {"n_temperatures": 1}, "n_temperatures"),
        (AIS, {"ladder": "cubic"}, "ladder"),
        (AIS, {"ladder": []}, "ladder must be a sequence of at least 2"),
        (AIS, {"ladder": [-1, 0, 1]}, INSIDE),
        (AIS, {"ladder": [0, np.nan, 1]}, INSIDE),
        (AIS, {"ladder": [0, 0.5, 0.5, 1]}, IN_ORDER),
        (AIS, {"ladder": [0.1, 1]}, "ladder must begin at 0"),
        (AIS, {"ladder": [0, 0.9]}, "end at 1"),
        (AIS, {"checkpoint": 5}, "checkpoint"),
        (AIS, {"transition": "gibbs"}, "transition"),
        (AIS, {"random_state": -1}, "random_state"),
        (SMC, {"n_populations": 1}, "n_populations"),
        (SMC, {"resample_at": np.nan}, "resample_at"),
        (SMC, {"variant": "wasteful"}, "variant"),
        (SMC, WASTE_FREE | {"chain_length": 1}, "chain_length"),
        (SMC, WASTE_FREE | {"chain_length": 7}, "n_particles must be a multiple of chain_length"),
        (SMC, WASTE_FREE | {"n_particles": 10}, "at least twice as large, got 10 and 10"),
        (ParallelTempering, {"n_ladders": 1}, "n_ladders"),
        (ParallelTempering, {"tol": 0}, "tol"),
        (ParallelTempering, {"adapt": False}, "adapt=False"),
        (RTS, {"n_chains": 9}, "n_chains"),
        (RTS, {"n_sweeps": 40, "sweeps_per_redraw": 4}, "n_sweeps must be at least 64"),
        (RTS, {"prior": np.inf}, "prior"),
        (RTS, {"prior": np.ones(7)}, "prior must hold 100 positive numbers"),
        (SAMS, {"exponent": 1.0}, "exponent"),
        (SAMS, {"update": "both"}, "update"),
        (SAMS, {"prior": np.array(["a", "b"])}, "prior must be real numbers"),
        (SAMS, {"prior": 1e300}, "prior must leave each level a share"),
        (WangLandau, {"flatness": 1.0}, "flatness"),
    ],
)
def test_bad_parameters_are_named(kind, parameters, message):
    with pytest.raises((TypeError, ValueError), match=message):
        kind(**{"random_state": 0} | parameters).fit(make_rbm_problem("easy").path)
