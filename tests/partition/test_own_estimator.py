"""An estimator of one's own is one class: its runs are read, its diagnostics shown and labelled,
its alarms counted.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from known_problems import make_rbm_problem
from sklearn.exceptions import ConvergenceWarning

from sklpf import PartitionEstimator
from sklpf.partition import DIAGNOSTICS, Alarm, Diagnostic, Run
from sklpf.paths import Stream, require_base, stream_key
from sklpf.testing import check_partition_estimator
from sklpf.uncertainty import jackknife, log_mean_exp


@dataclass(frozen=True, repr=False, kw_only=True)
class DrawnRun(Run):
    options = ("trim",)
    log_weights: np.ndarray
    trim: bool = False

    def _read(self):
        value, error = jackknife(lambda keep: log_mean_exp(self.log_weights[keep]), 20)
        numbers = self.base_log_partition + float(value), float(error), 19
        diagnostics = {"largest": self.log_weights.max(axis=1), "every": self.log_weights}
        alarms = []
        if self.trim:
            alarms = [Alarm("trimmed", "the largest weight was dropped", "keep it")]
        return self.conclude(*numbers, alarms=alarms, diagnostics=diagnostics)


class Drawn(PartitionEstimator):
    """Importance sampling from the base in groups."""

    def __init__(self, n_samples=10_000, *, trim=False, random_state=None):
        self.n_samples = n_samples
        self.trim = trim
        self.random_state = random_state

    _run_class = DrawnRun

    def _sample(self, path, seed):
        base = require_base(path, "Drawn")
        vectors = path.log_f_ladder(path.sample_base(self.n_samples, Stream(stream_key(seed))))
        log_weights = (vectors[:, -1] - vectors[:, 0]).reshape(20, -1)
        return DrawnRun(ladder=path.ladder, base_log_partition=base, log_weights=log_weights)


@pytest.fixture(scope="module", autouse=True)
def described():
    own = {
        "largest": Diagnostic("largest weight of a group (nats)", "low", ("group",)),
        "every": Diagnostic(dimensions=("group", "draw"), per_chain=True),
    }
    DIAGNOSTICS.update(own)
    yield
    for name in own:
        del DIAGNOSTICS[name]


@pytest.fixture(scope="module")
def fitted():
    return Drawn(random_state=0).fit(make_rbm_problem("easy").path)


def test_it_keeps_the_contract_of_an_estimator():
    check_partition_estimator(Drawn(), make_rbm_problem("easy"))


def test_its_runs_say_who_made_them_and_are_read_alike(fitted):
    run = fitted.run_
    assert (run.method, run.trim) == ("Drawn", False)
    assert run.read().log_partition == fitted.log_partition_
    with pytest.warns(ConvergenceWarning, match="the largest weight was dropped: keep it"):
        other = Drawn(trim=True).fit(run)
    assert other.result_.alarms[0].kind == "trimmed"
    assert other.run_ is run
    assert run.read().converged  # as it was made


def test_its_diagnostics_are_shown_labelled_and_dropped(fitted):
    pytest.importorskip("xarray")
    result = fitted.result_
    lines = result.summary().splitlines()
    (line,) = (line for line in lines if "largest weight of a group" in line)
    assert line.split()[-1] == f"{result.diagnostics['largest'].max():.6g}"
    data = result.to_xarray()
    assert data["largest"].dims == ("group",)
    assert data["every"].dims == ("group", "draw")
    bound = {"plain_bound", "plain_bound_std_error"}  # by the checks, which every run has
    kept = set(result.without_samples().diagnostics)
    assert kept == {"largest", "ladder", *bound}
