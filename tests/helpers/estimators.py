"""Every estimator with a run of a moment, and the path that it reads."""

import copy
import functools

import numpy as np
from convergence import quietly
from sklearn.base import clone

from sklpf import (
    AIS,
    BDMC,
    HAIS,
    RTS,
    SMC,
    AdaptiveSMC,
    BernoulliRBM,
    BridgeSampling,
    Exact,
    GeometricPath,
    LeftToRight,
    ParallelTempering,
    StudentT,
    UntilTrusted,
)
from sklpf.models import LDAPath
from sklpf.partition import (
    BAR,
    MBAR,
    RAISE,
    SAMS,
    AdaptiveRejection,
    ImportanceSampling,
    LevelProcess,
    MarkovMixture,
    RejectionSampling,
    SteppingStone,
    ThermodynamicIntegration,
    WangLandau,
)

WEIGHTS = np.random.default_rng(0).normal(scale=0.5, size=(6, 8))
DRAWS = np.random.default_rng(0).normal(size=(4, 200, 1))


def rbm():
    model = BernoulliRBM.from_parameters(WEIGHTS, np.zeros(8), np.zeros(6), random_state=0)
    return model.path()


def curve():
    base = StudentT(0.0, 1.0, df=3)
    return GeometricPath(lambda x: -0.5 * x[:, 0] ** 2, grad=lambda x: -x, base=base)


def document():
    return LDAPath([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]], 0.3, [[4, 1, 3]]).row(0)


TEMPERING = ParallelTempering(3, 6, 128, random_state=0)
LEVELS = {"n_chains": 20, "n_temperatures": 8, "n_sweeps": 200}
ESTIMATORS = {
    "AIS": (AIS(50, 60), rbm),
    "HAIS": (HAIS(50, 60), curve),
    "BDMC": (BDMC(40, 60), rbm),
    "RAISE": (RAISE(5, 10, 60), rbm),
    "SMC": (SMC(20, 12, 3), rbm),
    "AdaptiveSMC": (AdaptiveSMC(50, 20_000), curve),
    "ParallelTempering": (TEMPERING, rbm),
    "RTS": (RTS(**LEVELS), rbm),
    "TS": (RTS(**LEVELS, rao_blackwell=False), rbm),
    "continuous RTS": (RTS(**LEVELS, continuous=True), curve),
    "SAMS": (SAMS(**LEVELS), rbm),
    "WangLandau": (WangLandau(**LEVELS), rbm),
    "BAR": (BAR(TEMPERING), rbm),
    "MBAR": (MBAR(TEMPERING), rbm),
    "SteppingStone": (SteppingStone(TEMPERING), rbm),
    "LevelProcess": (LevelProcess(TEMPERING), rbm),
    "ThermodynamicIntegration": (ThermodynamicIntegration(TEMPERING), rbm),
    "MarkovMixture": (MarkovMixture(40, n_sweeps=64), rbm),
    "ImportanceSampling": (ImportanceSampling(1000), curve),
    "RejectionSampling": (RejectionSampling(2.0), curve),
    "AdaptiveRejection": (AdaptiveRejection(), curve),
    "BridgeSampling": (BridgeSampling(), curve),
    "LeftToRight": (LeftToRight(20), document),
    "Exact": (Exact(), rbm),
    "UntilTrusted": (UntilTrusted([HAIS(20, 40)]), curve),
}


def fit(name, path=None, **parameters):
    """One of the table, fitted with the seed 0."""
    estimator, make = ESTIMATORS[name]
    estimator = clone(estimator).set_params(**parameters)
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=0)
    options = {"draws": DRAWS} if name == "BridgeSampling" else {}
    return quietly(estimator, path or make(), **options)


_fit_once = functools.cache(fit)


def fitted(name):
    """The same run for all tests of a process, in a copy that may be changed."""
    return copy.deepcopy(_fit_once(name))
