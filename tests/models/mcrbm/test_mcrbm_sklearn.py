"""MeanCovarianceRBM as a scikit-learn estimator, and its training."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks as checks
from third_party_checks import third_party_checks

from sklpf import HAIS, HMC, MeanCovarianceRBM
from sklpf.models import MeanCovariancePath
from sklpf.paths import Gaussian

SMALL = MeanCovarianceRBM(
    max_iter=2, n_chains=20, partition_estimator=HAIS(20, 100), random_state=0
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:training has not settled"),  # after two passes
    pytest.mark.filterwarnings("ignore:log Z is not to be trusted"),  # after 100 levels
    pytest.mark.filterwarnings("ignore:X (does not have valid|has) feature names"),
]


def contrasts(n_samples, n_features=3, seed=0):
    """Rows of two lengths, off the center: a mixture of two Gaussians with one mean."""
    rng = np.random.default_rng(seed)
    return (
        rng.normal(size=(n_samples, n_features)) * rng.choice([0.3, 2.0], size=(n_samples, 1)) + 5
    )


@pytest.fixture
def rough_losses(monkeypatch):
    """log Z after every pass from 20 chains over 20 levels without a pilot, which is fast."""
    monitor = HAIS(20, 20, transition=HMC(0.3), random_state=0)
    monkeypatch.setattr(MeanCovarianceRBM, "_monitor", monitor)


@pytest.mark.usefixtures("rough_losses")
@checks.parametrize_with_checks([SMALL])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.large
@pytest.mark.usefixtures("rough_losses")
@checks.parametrize_with_checks(
    [clone(SMALL).set_params(algorithm="mpf", n_factors=3, n_covariance=2, n_mean=1)]
)
def test_scikit_learn_checks_of_other_options(estimator, check):
    check(estimator)


@pytest.mark.usefixtures("rough_losses")
@third_party_checks
def test_checks_that_third_parties_call_themselves(check):
    check("MeanCovarianceRBM", SMALL)


@pytest.mark.parametrize("algorithm", ["pcd", "mpf"])
def test_training_finds_what_a_gaussian_has_not(algorithm):
    X, new = contrasts(1000), contrasts(2000, seed=1)
    model = MeanCovarianceRBM(algorithm=algorithm, max_iter=20, random_state=0).fit(X)
    gaussian = Gaussian(X.mean(axis=0), np.cov(X.T)).log_density(new).mean()
    assert model.score(new) > gaussian + 0.3
    assert model.partition_estimator_.converged_
    assert np.all(model.pooling_ >= 0)
    unscaled = MeanCovariancePath(
        model._units(), np.zeros(3), 1.0
    )  # the loss is that of the rows as they are
    log_partition = clone(model._monitor).fit(unscaled).log_partition_ + 3 * np.log(model.scale_)
    assert model.loss_curve_[-1] == pytest.approx(
        log_partition - model._log_f(X)[0].mean(), abs=1e-9
    )


def test_rows_in_another_unit_give_the_same_model():
    X, model = contrasts(300), clone(SMALL)
    first, second = model.fit(X), clone(model).fit(1e3 * X - 7)
    expected = first.score_samples(X) - 3 * np.log(1e3)
    np.testing.assert_allclose(second.score_samples(1e3 * X - 7), expected, rtol=0, atol=1e-4)
    np.testing.assert_allclose(second.noise_std_, first.noise_std_, rtol=1e-6)


def test_the_same_seed_gives_the_same_bits_for_any_number_of_jobs():
    X = contrasts(300)
    for algorithm in ("pcd", "mpf"):
        model = clone(SMALL).set_params(algorithm=algorithm, n_factors=4)
        first, second = model.fit(X), clone(model).set_params(n_jobs=2).fit(X)
        for name in (
            "factors_",
            "pooling_",
            "mean_components_",
            "intercept_visible_",
            "loss_curve_",
        ):
            np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
        np.testing.assert_array_equal(first.score_samples(X), second.score_samples(X))
        assert not np.array_equal(
            first.factors_, clone(model).set_params(random_state=1).fit(X).factors_
        )


def test_partial_fit_makes_a_step_at_a_time():
    X, model = contrasts(2000), clone(SMALL).set_params(n_chains=200)
    scores = []
    for start in [*range(0, 2000, 200)] * 8:
        model.partial_fit(X[start : start + 200])
        scores.append(model.score(X) if start == 0 else np.nan)
    assert scores[70] > scores[0]


def test_grid_search_over_a_whitening_pipeline():
    X = contrasts(600) @ np.array([[1.0, 0.5, 0.0], [0.0, 10.0, 0.0], [0.0, 3.0, 0.1]])
    pipeline = make_pipeline(
        PCA(whiten=True), clone(SMALL).set_params(algorithm="mpf", max_iter=10)
    )
    search = GridSearchCV(pipeline, {"meancovariancerbm__n_covariance": [1, 4]}, cv=2).fit(X)
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))
    names = search.best_estimator_[-1].get_feature_names_out()
    assert names[0] == "meancovariancerbm0"
    assert len(names) == search.best_params_["meancovariancerbm__n_covariance"] + 3


def test_rows_that_do_not_vary():
    X = np.tile([1.0, -2.0], (20, 1))
    X[:, 1] += np.arange(20)
    for rows in (X, X[:, :1]):
        assert np.isfinite(clone(SMALL).fit(rows).score(rows))


def test_bad_input_is_named():
    X = contrasts(50)
    with pytest.raises(ValueError, match="X must be small enough for the squares"):
        MeanCovarianceRBM().fit(X * 1e200)
    with pytest.raises(ValueError, match="'n_covariance' parameter of MeanCovarianceRBM must be"):
        MeanCovarianceRBM(n_covariance=0).fit(X)
    with pytest.raises(ValueError, match="'algorithm' parameter of MeanCovarianceRBM must be"):
        MeanCovarianceRBM(algorithm="ml").fit(X)
    with pytest.warns(
        ConvergenceWarning, match="training has not settled after 2 passes: raise max_iter"
    ):
        model = clone(SMALL).fit(X)
    with pytest.raises(ValueError, match="n_samples must be an integer of at least 1"):
        model.sample(0)
    X[3, 1] = np.nan
    for method in (
        model.score,
        model.score_samples,
        model.transform,
        clone(model).fit,
        model.partial_fit,
    ):
        with pytest.raises(ValueError, match="Input X contains NaN"):
            method(X)
    model.pooling_ = model.pooling_ * np.nan
    with pytest.raises(
        ValueError, match="pooling_ holds NaN or infinity, so there is no likelihood"
    ):
        model.score(contrasts(50))
