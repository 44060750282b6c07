"""MeanCovarianceRBM as a scikit-learn estimator, and its training."""

import numpy as np
import pytest
from marks import large
from sklearn.base import clone

from sklpf import HAIS, MeanCovarianceRBM
from sklpf.models import MeanCovariancePath
from sklpf.paths import Gaussian

SMALL = MeanCovarianceRBM(
    max_iter=2, n_chains=20, partition_estimator=HAIS(20, 100), random_state=0
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:training has not settled"),  # after two passes
    pytest.mark.filterwarnings("ignore:log Z is not to be trusted"),  # after 100 levels
]


def contrasts(n_samples, n_features=3, seed=0):
    """Rows of two lengths, off the center: a mixture of two Gaussians with one mean."""
    rng = np.random.default_rng(seed)
    return (
        rng.normal(size=(n_samples, n_features)) * rng.choice([0.3, 2.0], size=(n_samples, 1)) + 5
    )


@pytest.mark.parametrize("algorithm", ["pcd", large("mpf")])
def test_training_finds_what_a_gaussian_has_not(algorithm):
    X, new = contrasts(500), contrasts(2000, seed=1)
    model = MeanCovarianceRBM(algorithm=algorithm, max_iter=10, random_state=0).fit(X)
    gaussian = Gaussian(X.mean(axis=0), np.cov(X.T)).log_density(new).mean()
    assert model.score(new) > gaussian + 0.3
    assert model.partition_estimator_.converged_
    assert np.all(model.pooling_ >= 0)
    # the loss is that of the rows as they are
    unscaled = MeanCovariancePath(model._units(), np.zeros(3), 1.0)
    log_partition = clone(model._monitor).fit(unscaled).log_partition_ + 3 * np.log(model.scale_)
    loss = log_partition - model._log_f(X)[0].mean()
    assert model.loss_curve_[-1] == pytest.approx(loss, abs=1e-9)


def test_rows_that_do_not_vary():
    X = np.tile([1.0, -2.0], (20, 1))
    X[:, 1] += np.arange(20)
    for rows in (X, X[:, :1]):
        assert np.isfinite(clone(SMALL).fit(rows).score(rows))
