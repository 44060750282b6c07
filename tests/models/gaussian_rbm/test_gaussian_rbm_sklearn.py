"""GaussianRBM as a scikit-learn estimator."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sklpf import GaussianRBM

SMALL = GaussianRBM(2, n_iter=5, random_state=0)
rng = np.random.default_rng(0)
REAL = rng.normal(size=(60, 3)) + 3 * rng.integers(2, size=(60, 1))


def test_partial_fit_goes_on_and_keeps_no_rows():
    model = GaussianRBM(2, random_state=0)
    for start in range(0, 60, 20):
        model.partial_fit(REAL[start : start + 20])
    np.testing.assert_allclose(model.visible_mean_, REAL.mean(axis=0), atol=1e-12)
    floor = np.maximum(REAL.var(axis=0), model.variances_)
    np.testing.assert_allclose(model.visible_variance_, floor, atol=1e-12)
    assert model._training.X.size == 0
    before = model.score(REAL)
    for _ in range(200):
        model.partial_fit(REAL)
    assert model.score(REAL) > before + 0.1
    known = GaussianRBM.from_parameters(*model._parameters, random_state=0)
    known.set_params(learning_rate=1e-9).partial_fit(REAL)
    np.testing.assert_allclose(known.components_, model.components_, rtol=1e-6)
    with pytest.raises(ValueError, match="partial_fit does not know after how many updates"):
        known.set_params(learning_rate_schedule="linear").partial_fit(REAL)


def test_variances_at_the_floor_raise_an_alarm():
    """A unit learns two columns that hold one of two values, and both variances fall to 0."""
    X = np.repeat(np.random.default_rng(3).integers(2, size=(300, 1)), 2, axis=1)
    model = GaussianRBM(2, n_iter=100, variance_floor=0.05, average=False, random_state=0)
    with pytest.warns(ConvergenceWarning, match="variances of 2 of 2 visible units are at their"):
        model.fit(X)
    np.testing.assert_allclose(model.variances_, 0.05 * X.var(axis=0))


def test_rows_that_are_too_far_away_have_no_likelihood():
    model = clone(SMALL).fit(REAL)
    with pytest.warns(ConvergenceWarning, match="1 of 2 rows of X have no likelihood"):
        model.score_samples([[0.0, 0.0, 0.0], [1e200, 0.0, 0.0]])
    values = model.set_params(on_nonconvergence="nan").score_samples([[0.0] * 3, [1e200, 0, 0]])
    assert np.isnan(values).tolist() == [False, True]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"components": [[np.nan, 1.0]]}, "components contains NaN"),
        ({"intercept_visible": [0.0]}, "intercept_visible must have shape"),
        ({"variances": [1.0, 0.0]}, "variances_ must be positive and finite"),
        ({"visible_variance": [0.0, 1.0]}, "visible_variance_ must be positive and finite"),
        ({"variances": [1e-300, 1.0], "components": [[1e10, 1.0]]}, "variances_ must be positive"),
        ({"visible_mean": [1e200, 1.0]}, "visible_mean must be at most"),
    ],
)
def test_parameters_that_make_no_model_are_named(changed, message):
    parameters = {
        "components": [[1.0, 2.0]],
        "intercept_visible": [0.0, 0.0],
        "intercept_hidden": [0.0],
        "variances": [1.0, 1.0],
    }
    with pytest.raises(ValueError, match=message):
        GaussianRBM.from_parameters(**parameters | changed)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="training diverged"):
        GaussianRBM(2, learning_rate=1e300, random_state=0).fit(REAL)
    with pytest.raises(ValueError, match="X holds such large values"):
        GaussianRBM(2, random_state=0).fit(1e300 * REAL)
    model = clone(SMALL).fit(REAL)
    with pytest.raises(ValueError, match="n_samples must be an integer of at least 1"):
        model.sample(0)
    model.components_[0, 0] = np.nan
    with pytest.raises(ValueError, match="components_ holds NaN"):
        model.path()
    with pytest.raises(ValueError, match="visible rows must have the shape"):
        clone(SMALL).fit(REAL).path().state_from_rows(np.zeros((2, 5)))
