"""LinearGenerativeModel as a scikit-learn estimator."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks as checks
from third_party_checks import third_party_checks

from sklpf import HAIS, LinearGenerativeModel

SMALL = LinearGenerativeModel(2, max_iter=20, partition_estimator=HAIS(20, 30), random_state=0)

pytestmark = [
    pytest.mark.filterwarnings("ignore:training has not settled"),
    pytest.mark.filterwarnings(
        "ignore:likelihoods are not to be trusted"
    ),  # so few levels are for speed
    pytest.mark.filterwarnings(
        "ignore:X (does not have valid|has) feature names"
    ),  # these checks mix frames and arrays
]


@checks.parametrize_with_checks(
    [SMALL, clone(SMALL).set_params(n_components=None), LinearGenerativeModel(prior="gaussian")]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@third_party_checks
def test_checks_that_third_parties_call_themselves(check):
    check("LinearGenerativeModel", SMALL)


def test_grid_search_over_a_pipeline():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 4)) + 0.1 * rng.normal(size=(300, 4))
    pipeline = make_pipeline(StandardScaler(), LinearGenerativeModel(prior="gaussian"))
    search = GridSearchCV(pipeline, {"lineargenerativemodel__n_components": [1, 2]}, cv=3).fit(X)
    assert search.best_params_ == {"lineargenerativemodel__n_components": 2}
    laplace = clone(pipeline).set_params(lineargenerativemodel=SMALL).fit(X)
    assert np.isfinite(laplace.score(X[:5]))
