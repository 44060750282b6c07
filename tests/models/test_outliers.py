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
