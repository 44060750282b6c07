"""FactorialMixture as a scikit-learn estimator."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks as checks
from third_party_checks import third_party_checks

from sklpf import FactorialMixture
from sklpf.datasets import make_factorial_shapes

# Most time goes to moves of components, which have tests of their own.
SMALL = FactorialMixture(3, max_iter=20, n_moves=1, random_state=0)

pytestmark = [
    pytest.mark.filterwarnings(
        "ignore:the evidence lower bound still rises"
    ),  # the checks allow 5 sweeps
    pytest.mark.filterwarnings(
        "ignore:X (does not have valid|has) feature names"
    ),  # these checks mix frames and arrays
]


@checks.parametrize_with_checks(
    [
        SMALL,
        FactorialMixture(
            2,
            noise_variance=0.5,
            covariance="diag",
            tempering="annealed",
            n_tempered=5,
            n_init=2,
            n_moves=0,
        ),
        FactorialMixture(
            2, component_variance=1.0, activation_probability=0.2, tempering="global", n_moves=0
        ),
        FactorialMixture(2, tempering="local", n_tempered=5, initial_temperature=3.0, n_moves=0),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@third_party_checks
def test_checks_that_third_parties_call_themselves(check):
    check("FactorialMixture", SMALL)


def test_grid_search_over_a_pipeline():
    X, _, _ = make_factorial_shapes(400, random_state=0)
    model = FactorialMixture(tempering="annealed", n_tempered=20, max_iter=100, random_state=0)
    pipeline = make_pipeline(StandardScaler(), model)
    search = GridSearchCV(pipeline, {"factorialmixture__n_components": [2, 8]}, cv=3).fit(X)
    assert search.best_params_ == {"factorialmixture__n_components": 8}
    scaled = search.best_estimator_[0].transform(X)
    assert search.score(X) == pytest.approx(
        search.best_estimator_[1].score_samples(scaled).mean(), rel=1e-12
    )


def test_a_clone_with_the_same_seed_and_any_number_of_jobs_gives_the_same_bits(monkeypatch):
    from sklpf.models.factorial import _model as _factorial
    from sklpf.models.factorial.learning import _posterior as _factorial_posterior

    monkeypatch.setattr(_factorial_posterior, "_VALUES_AT_ONCE", 1)  # 256 rows a block
    monkeypatch.setattr(_factorial, "_ROWS_AT_ONCE", 100)
    X, _, _ = make_factorial_shapes(700, random_state=0)
    model = FactorialMixture(4, tempering="annealed", n_tempered=5, max_iter=5, random_state=0)
    one, three = model.fit(X), clone(model).set_params(n_jobs=3).fit(X)
    np.testing.assert_array_equal(one.components_, three.components_)
    np.testing.assert_array_equal(one.elbo_curve_, three.elbo_curve_)
    np.testing.assert_array_equal(one.transform(X), three.transform(X))
    np.testing.assert_array_equal(one.score_samples(X[:50]), three.score_samples(X[:50]))
