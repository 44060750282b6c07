"""`weights` and `base`, which estimators hand to a model's path."""

import inspect

import numpy as np
import pytest
from convergence import may_not_converge

from sklpf import (
    AIS,
    BDMC,
    RAISE,
    RTS,
    SAMS,
    SMC,
    BernoulliRBM,
    Exact,
    LeftToRight,
    ParallelTempering,
    WangLandau,
)
from sklpf.testing import hidden_mode_problem

WITH_OPTIONS = (AIS, BDMC, RAISE, RTS, SAMS, WangLandau, SMC, ParallelTempering)
SMALL = {
    AIS: {"n_chains": 8, "n_temperatures": 50},
    BDMC: {"n_chains": 20, "n_temperatures": 50},
    RAISE: {"n_starts": 2, "n_temperatures": 50},
    RTS: {"n_chains": 10, "n_temperatures": 5, "n_sweeps": 300},
    SAMS: {"n_chains": 10, "n_temperatures": 5, "n_sweeps": 300},
    WangLandau: {"n_chains": 10, "n_temperatures": 5, "n_sweeps": 300},
    SMC: {"n_particles": 8, "n_temperatures": 20},
    ParallelTempering: {"n_ladders": 3, "n_sweeps": 256},
}


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


@pytest.mark.parametrize("kind", WITH_OPTIONS)
def test_options_default_to_none(kind):
    assert kind().weights is None
    assert kind().base is None
    parameters = inspect.signature(kind).parameters
    assert parameters["weights"].kind == parameters["base"].kind == inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize("kind", [Exact, LeftToRight])
def test_estimators_without_a_base_have_no_options(kind):
    assert not {"weights", "base"} & kind().get_params().keys()


@may_not_converge()
@pytest.mark.parametrize("kind", WITH_OPTIONS)
def test_options_reach_the_path_of_a_model(kind):
    def log_partition(path, **options):
        return kind(random_state=0, **SMALL[kind], **options).fit(path).log_partition_

    model = rbm()
    plain = log_partition(model)
    assert plain == log_partition(model.path())
    assert plain == log_partition(model, weights="marginal", base="data")
    assert (
        log_partition(model, weights="joint") == log_partition(model.path(weights="joint")) != plain
    )
    assert (
        log_partition(model, base="uniform") == log_partition(model.path(base="uniform")) != plain
    )
    given = np.full(6, 0.3)
    assert log_partition(model, base=given) == log_partition(model.path(base=given)) != plain


@pytest.mark.parametrize(
    "options", [{"weights": "joint"}, {"weights": "marginal"}, {"base": "data"}]
)
@pytest.mark.parametrize("kind", WITH_OPTIONS)
def test_a_ready_path_takes_no_options(kind, options):
    name = next(iter(options))
    with pytest.raises(
        TypeError, match=f"{name} is no option of a path, which has them already: leave it at None"
    ):
        kind(**options).fit(rbm().path())


@pytest.mark.parametrize(
    "options", [{"weights": "joint"}, {"base": "uniform"}, {"base": np.full(4, 0.5)}]
)
@pytest.mark.parametrize("kind", WITH_OPTIONS)
def test_a_model_without_the_option_is_named(kind, options):
    name = next(iter(options))
    with pytest.raises(TypeError, match=f"{name} is no option of Own: leave it at None"):
        kind(**options).fit(Own())


def test_bad_options_are_named_by_the_model():
    with pytest.raises(ValueError, match='weights must be "marginal" or "joint", got \'both\''):
        AIS(weights="both").fit(rbm())
    with pytest.raises(ValueError, match='base must be "data", "uniform" or an array'):
        AIS(base="best").fit(rbm())


def test_a_model_without_options_is_taken():
    assert AIS(20, 20, random_state=0).fit(Own()).log_partition_ == pytest.approx(0, abs=0.1)
