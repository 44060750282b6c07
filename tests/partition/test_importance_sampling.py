"""ImportanceSampling: unbiased weights, honest intervals, proposals, and what chains at the target
see.
"""

import numpy as np
import pytest
from convergence import assert_right, quietly
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from sklpf import Gaussian, GeometricPath, StudentT, Uniform
from sklpf.partition import ImportanceSampling
from sklpf.uncertainty import log_mean_exp

NORMAL = np.log(2 * np.pi)


def normal(x):
    return -np.sum(x**2, axis=1) / 2


PATH = GeometricPath(normal, base=Gaussian(np.zeros(2), 2.0))


def fit(path, seed=0, **options):
    return quietly(ImportanceSampling(random_state=seed, **options), path)


def test_the_mean_weight_is_unbiased():
    """t-test over 20 runs of 50 draws; a false alarm in 2e-4."""
    runs = [fit(PATH, s, n_samples=50, checks=False).run_ for s in range(20)]
    weights = [np.exp(log_mean_exp(run.forward) - NORMAL) for run in runs]
    z = (np.mean(weights) - 1) / stats.sem(weights)
    assert abs(z) < 4.5


def test_light_proposals_are_flagged_by_chains_at_the_target():
    """Weights of infinite variance, of which half of the runs have enough effective ones."""
    for seed in range(4):
        narrow = Gaussian(np.zeros(2), 0.25)
        assert not fit(PATH, seed, n_samples=1000, proposal=narrow).converged_


def test_proposals_whose_tails_fall_too_soon_are_flagged_before():
    heavy = GeometricPath(lambda x: -2 * np.log1p(x[:, 0] ** 2), base=StudentT(0.0, 1.0, df=2))
    assert fit(heavy).converged_
    with pytest.warns(ConvergenceWarning, match="tails are heavier"):
        ImportanceSampling(proposal=stats.norm(0, 3), random_state=0).fit(heavy)


@pytest.mark.parametrize(
    "proposal",
    [
        Gaussian(np.zeros(2), 1.5),
        stats.multivariate_t([0, 0], df=5),
        [stats.norm(0, 1.2), stats.logistic(0, 1)],
    ],
    ids=["Gaussian", "multivariate_t", "by coordinate"],
)
def test_proposals_stand_in_for_the_base(proposal):
    """3 proposals; |error| of 4.5 standard errors: a false alarm in 2e-5."""
    away = GeometricPath(normal, base=Gaussian(np.full(2, 50.0), 1.0))
    fitted = fit(away, n_samples=2000, proposal=proposal)
    assert_right(fitted, NORMAL, 4.5)


def test_bad_proposals_are_refused():
    for proposal in (3.0, "prior", object()):
        with pytest.raises(TypeError, match="proposal can't be used: base must be"):
            fit(PATH, proposal=proposal)
    with pytest.raises(ValueError, match="proposal can't be used: base must have 2 dimensions"):
        fit(PATH, proposal=Gaussian(0.0, 1.0))
    with pytest.raises(ValueError, match="bounds must be the box"):
        fit(PATH, proposal=Uniform([-1, -1], [1, 1]))
    narrow = [stats.expon(), stats.norm(0, 2)]
    with pytest.raises(ValueError, match="base has density 0 at"):
        fit(PATH, proposal=narrow)
