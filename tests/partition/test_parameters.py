"""Parameters and paths that an estimator can't use are named."""

import numpy as np
import pytest
from known_problems import hidden_mode_problem, make_rbm_problem
from sklearn.utils.estimator_checks import check_param_validation

import sklpf
from sklpf import (
    AIS,
    BDMC,
    HAIS,
    RTS,
    AdaptiveSMC,
    BernoulliRBM,
    Gaussian,
    GeometricPath,
    LeftToRight,
    ParallelTempering,
    PartitionEstimator,
    UntilTrusted,
)
from sklpf.models import LDAPath
from sklpf.partition import (
    SAMS,
    AdaptiveRejection,
    ImportanceSampling,
    MarkovMixture,
    RejectionSampling,
)
from sklpf.transitions import Gibbs

RBM = make_rbm_problem("easy").path
JOINT = make_rbm_problem("easy", weights="joint").path
LINE = GeometricPath(lambda x: -(x[:, 0] ** 2), grad=lambda x: -2 * x, base=Gaussian([0.0], 1.0))
TRACKED = BernoulliRBM(2, n_iter=3, track_trajectory=True, random_state=0).fit(np.eye(4))
DOCUMENTS = LDAPath([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]], 0.3, [[4, 1, 3]])
HIDDEN_MODE = hidden_mode_problem(4).path
PATHS = {AdaptiveRejection: LINE, AdaptiveSMC: LINE, LeftToRight: DOCUMENTS}

IN_ORDER = "ladder must be strictly increasing"
INSIDE = r"ladder must hold inverse temperatures in \[0, 1\]"
CONTINUOUS = {"continuous": True}


ESTIMATORS = [
    kind
    for kind in (getattr(sklpf.partition, name) for name in sklpf.partition.__all__)
    if isinstance(kind, type) and PartitionEstimator in kind.__mro__[1:]
]


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_each_parameter_that_can_not_be_used_is_named(kind):
    check_param_validation(kind.__name__, kind())


@pytest.mark.parametrize(
    ("kind", "parameters", "message"),
    [
        (AIS, {"ladder": []}, "ladder must be a sequence of at least 2"),
        (AIS, {"ladder": [-1, 0, 1]}, INSIDE),
        (AIS, {"ladder": [0, np.nan, 1]}, INSIDE),
        (AIS, {"ladder": [0, 0.5, 0.5, 1]}, IN_ORDER),
        (AIS, {"ladder": [0.1, 1]}, "ladder must begin at 0"),
        (AIS, {"ladder": [0, 0.9]}, "end at 1"),
        (AdaptiveSMC, {"transition": Gibbs()}, "transition must be HMC, RandomWalk or Slice"),
        (ParallelTempering, {"adapt": False}, "adapt=False"),
        (RTS, {"n_sweeps": 40, "sweeps_per_redraw": 4}, "n_sweeps must be at least 64"),
        (RTS, {"prior": np.inf}, "prior"),
        (RTS, {"prior": np.ones(7)}, "prior must hold 100 positive numbers"),
        (RTS, CONTINUOUS | {"tol": 0.1}, "tol must be None"),
        (RTS, CONTINUOUS | {"rao_blackwell": False}, "rao_blackwell must be True"),
        (SAMS, {"prior": np.array(["a", "b"])}, "prior must be real numbers"),
        (SAMS, {"prior": 1e300}, "prior must leave each level a share"),
        (
            UntilTrusted,
            {"estimators": [AIS(), "HAIS"]},
            "estimators must be a list of at",
        ),
        (UntilTrusted, {"estimators": AIS()}, r"must be a list .* such as \[AIS\(\)\], or None"),
        (UntilTrusted, {"estimators": []}, "estimators must be a list of at"),
        (RejectionSampling, {"log_bound": np.nan}, "log_bound"),
    ],
)
def test_values_that_do_not_go_together_are_named(kind, parameters, message):
    estimator = kind(**parameters)
    if "random_state" in estimator.get_params() and "random_state" not in parameters:
        estimator.set_params(random_state=0)
    with pytest.raises((TypeError, ValueError), match=message):
        estimator.fit(PATHS.get(kind, LINE if "continuous" in parameters else RBM))


def without_base(path):
    path = path.with_ladder(path.ladder)
    path.base_log_partition = None
    return path


@pytest.mark.parametrize(
    ("estimator", "path", "error", "message"),
    [
        (HAIS(transition=Gibbs()), LINE, TypeError, "Gibbs needs a path with the method gibbs"),
        (BDMC(), without_base(RBM), ValueError, "BDMC needs a base with a known normaliser"),
        (LeftToRight(), HIDDEN_MODE, TypeError, r"the method left_to_right\(n, n_particles"),
        (MarkovMixture(), LINE, TypeError, "needs a path with the method draw_conditional"),
        (MarkovMixture(), TRACKED, TypeError, r"take model\.path\(trajectory=False\)"),
        (RTS(**CONTINUOUS), RBM, ValueError, r"no method ends\(state\)"),
        (RTS(**CONTINUOUS), JOINT, ValueError, r"no method ends\(state\)"),
        (AdaptiveRejection(), RBM, TypeError, "GeometricPath"),
        (RejectionSampling(), HIDDEN_MODE, TypeError, "must be given for a HiddenModePath"),
        (ImportanceSampling(proposal=3.0), RBM, TypeError, "must be None for a RBMPath"),
        (ImportanceSampling(proposal="explored"), RBM, TypeError, "needs a density of your own"),
    ],
    ids=str,
)
def test_paths_that_can_not_be_used_are_named(estimator, path, error, message):
    with pytest.raises(error, match=message):
        estimator.fit(path)
