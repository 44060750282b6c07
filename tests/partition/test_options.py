"""Options of a path belong to `model.path`; estimators take the path that it returns."""

import numpy as np
import pytest
from convergence import may_not_converge
from known_problems import hidden_mode_problem

from sklpf import (
    AIS,
    RTS,
    BernoulliRBM,
    ParallelTempering,
)

SMALL = [AIS(8, 50), RTS(10, 5, 100), ParallelTempering(n_ladders=2, n_sweeps=64)]


def rbm():
    rng = np.random.default_rng(0)
    mean = rng.uniform(0.2, 0.8, 6)
    return BernoulliRBM.from_parameters(
        rng.normal(size=(4, 6)), rng.normal(size=6), rng.normal(size=4), mean
    )


class Own:
    """A model of the user's whose path has no options; nothing of scikit-learn is in it."""

    def path(self):
        return hidden_mode_problem(4, 0.6).path


@may_not_converge()
@pytest.mark.parametrize("estimator", SMALL, ids=lambda estimator: type(estimator).__name__)
def test_a_model_stands_for_its_default_path(estimator):
    def log_partition(path):
        return estimator.set_params(random_state=0).fit(path).log_partition_

    model = rbm()
    plain = log_partition(model)
    assert plain == log_partition(model.path())
    assert plain == log_partition(model.path(weights="marginal", base="data"))
    for options in ({"weights": "joint"}, {"base": "uniform"}, {"base": np.full(6, 0.3)}):
        assert log_partition(model.path(**options)) != plain


def test_a_users_model_is_taken():
    assert AIS(20, 20, random_state=0).fit(Own()).log_partition_ == pytest.approx(0, abs=0.1)
