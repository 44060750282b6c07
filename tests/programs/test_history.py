"""Runs in rounds keep the estimate after every round, and the result is the last."""

import numpy as np
import pytest

from sklpf import HAIS, RTS, BernoulliRBM, Gaussian, GeometricPath, ParallelTempering
from sklpf.partition import SAMS

WEIGHTS = np.random.default_rng(0).normal(size=(5, 6))
RBM = BernoulliRBM.from_parameters(WEIGHTS, np.zeros(6), np.zeros(5))
QUARTIC = GeometricPath(
    lambda x: -np.sum(x**4, axis=1), grad=lambda x: -4 * x**3, base=Gaussian(np.zeros(3), 1.0)
)


@pytest.mark.parametrize(
    ("estimator", "target", "fewest"),
    [
        (ParallelTempering(n_ladders=4, n_sweeps=256, random_state=0), RBM, 5),
        (ParallelTempering(n_ladders=4, n_sweeps=2048, tol=0.1, random_state=0), RBM, 2),
        (RTS(n_temperatures=10, n_sweeps=400, random_state=0), RBM, 3),
        (RTS(n_temperatures=10, n_sweeps=200, tol=0.02, random_state=0), RBM, 4),
        (RTS(n_temperatures=10, n_sweeps=160, continuous=True, random_state=0), QUARTIC, 3),
        (SAMS(n_temperatures=10, n_sweeps=500, random_state=0), RBM, 3),
        (HAIS(n_temperatures=200, tol=0.1, random_state=0), QUARTIC, 2),
    ],
)
@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_the_last_round_is_the_result_and_earlier_ones_agree_with_it(estimator, target, fewest):
    result = estimator.fit(target).result_
    names = (f"round_{name}" for name in ("log_partition", "std_error", "sweeps"))
    values, errors, sweeps = (result.diagnostics[name] for name in names)
    assert len(values) == len(errors) == len(sweeps) >= fewest
    assert values[-1] == result.log_partition
    assert errors[-1] == result.std_error
    assert sweeps[-1] == result.n_sweeps
    assert np.all(np.diff(sweeps) > 0)
    assert np.all(np.isfinite(values))
    # at most 8 rounds, each within 6 joint errors, t with at least 3 degrees of freedom, plus what
    # short rounds lie off
    assert np.all(np.abs(values - values[-1]) <= 6 * np.hypot(errors, errors[-1]) + 0.1)
