"""Outliers by the likelihood of a model, in scikit-learn's hands."""

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks as checks

from sklpf import GaussianRBM, LikelihoodOutliers


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:X (does not have valid|has) feature names")
@checks.parametrize_with_checks(
    [
        LikelihoodOutliers(GaussianMixture(random_state=0)),
        LikelihoodOutliers(GaussianRBM(1, n_iter=3, random_state=0)),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_rows_far_from_the_others_are_outliers():
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(size=(95, 3)), rng.normal(size=(5, 3)) + 8]
    model = make_pipeline(StandardScaler(), GaussianMixture(random_state=0))
    detector = LikelihoodOutliers(model, contamination=0.05)
    labels = detector.fit_predict(X)
    assert np.array_equal(labels == -1, np.arange(100) >= 95)
    np.testing.assert_allclose(
        detector.decision_function(X) + detector.offset_, detector.score_samples(X)
    )
    with pytest.raises(ValueError, match="contamination"):
        detector.set_params(contamination=0.9).fit(X)


class SomeHaveNone(GaussianMixture):
    """A mixture that has no likelihood of rows with a large first column."""

    def score_samples(self, X):
        return np.where(X[:, 0] > 2, np.nan, super().score_samples(X))


def test_rows_without_a_likelihood_are_outliers():
    X = np.random.default_rng(0).normal(size=(200, 2))
    detector = LikelihoodOutliers(SomeHaveNone(random_state=0), contamination=0.1).fit(X)
    assert np.isfinite(detector.offset_)
    assert np.all(detector.predict(X)[X[:, 0] > 2] == -1)
    assert np.mean(detector.predict(X) == -1) == pytest.approx(0.1 + np.mean(X[:, 0] > 2), abs=0.01)
    with pytest.raises(ValueError, match="no row of X has a likelihood"):
        detector.fit(X + 9)
