"""BilinearGenerativeModel: what it explains, its samples, and bad parameters."""

import numpy as np
import pytest
from sklearn.base import clone

from sklpf import HAIS, BilinearGenerativeModel, LinearGenerativeModel, compare

SMALL = BilinearGenerativeModel(
    2, 2, 1, max_iter=3, partition_estimator=HAIS(20, 20), random_state=0
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:training has not settled"),
    # so few levels are for speed
    pytest.mark.filterwarnings("ignore:likelihoods are not to be trusted"),
]


def bilinear_rows(n, seed=0):
    """Independent causes whose scale varies from row to row."""
    rng = np.random.default_rng(seed)
    causes = 2 * rng.laplace(size=(n, 3)) * rng.exponential(size=(n, 1))
    return causes + 0.3 * rng.normal(size=(n, 3))


def test_rows_whose_scale_varies_are_explained_by_style():
    X, test = bilinear_rows(1000), bilinear_rows(60, seed=1)
    options = {"noise_std": 0.3, "random_state": 0, "partition_estimator": HAIS(50, 500)}
    bilinear = BilinearGenerativeModel(n_style=2, **options).fit(X)
    assert bilinear.converged_
    linear = LinearGenerativeModel(**options).fit(X)
    assert compare(bilinear, linear, test).combined[0] > 0
    again = clone(bilinear).fit(X)
    np.testing.assert_array_equal(again.style_weights_, bilinear.style_weights_)
    np.testing.assert_array_equal(again.score_samples(test[:2]), bilinear.score_samples(test[:2]))


def test_samples_have_the_moments_of_the_model():
    """E x² = E c² (sum of E d²) phi²: five standard errors of a sixth moment bounded by 100 times
    its square.
    """
    sizes = {"n_components": 1, "n_content": 1, "n_style": 1}
    model = clone(SMALL).set_params(**sizes, noise_std=0.5).fit(np.eye(2))
    model.components_, model.mean_ = np.array([[1.0, 2.0]]), np.zeros(2)
    model.content_weights_ = model.style_weights_ = np.ones((1, 1))
    X = model.sample(100_000, random_state=0)
    expected = 4 * np.array([1.0, 4.0]) + 0.25
    assert np.all(np.abs(np.mean(X**2, axis=0) - expected) < 5 * np.sqrt(100 / len(X)) * expected)
