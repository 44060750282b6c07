"""What CategoricalRBM shares with BernoulliRBM: tracking, early stopping, levels along training and
ratios of two models, against enumeration.
"""

import numpy as np
import pytest
from test_categorical_rbm import N_CATEGORIES, all_rows, indicators, random_model, two_kinds

from sklpf import AIS, BernoulliRBM, CategoricalRBM, Exact, ParallelTempering, compare
from sklpf.models import RBMTrajectoryPath
from sklpf.testing import check_path, check_transition
from sklpf.transitions import Gibbs

Z_BOUND = 4.5  # of one estimate: a false alarm in 150,000


@pytest.fixture(scope="module")
def tracked():
    options = {"early_stopping": True, "track_trajectory": True, "random_state": 0}
    return CategoricalRBM(3, n_iter=12, **options).fit(two_kinds())


def test_tracked_log_z_is_that_of_the_last_pass():
    model = CategoricalRBM(3, n_iter=6, track_log_partition="particles", random_state=0)
    model.fit(two_kinds())
    exact = model.estimate_log_partition().log_partition_
    off = model.log_partition_curve_[-1] - exact
    assert 0 < model.log_partition_std_errors_[-1] < 0.1
    assert abs(off) < Z_BOUND * model.log_partition_std_errors_[-1]
    untracked = CategoricalRBM(3, n_iter=6, random_state=0).fit(two_kinds())
    np.testing.assert_array_equal(model.components_, untracked.components_)


def test_early_stopping_keeps_the_best_pass(tracked):
    assert np.nanargmax(tracked.validation_scores_) == tracked.best_iteration_ - 1
    best = tracked.best_iteration_
    same = CategoricalRBM(3, n_iter=best, early_stopping=True, random_state=0).fit(two_kinds())
    np.testing.assert_array_equal(tracked.components_, same.components_)
    assert np.isfinite(tracked.log_likelihood_scatter_)


def test_the_scatter_is_that_of_exact_log_likelihoods():
    """Within a factor of three of the spread of exact scores around their trend."""
    X = two_kinds()
    options = {"learning_rate": 0.5, "average": False, "random_state": 1}
    *models, model = (CategoricalRBM(3, n_iter=n, **options).fit(X) for n in (*range(6, 11), 10))
    some = X[np.linspace(0, len(X) - 1, 200).astype(int)]
    exact = [one.score(some) for one in models]
    time = np.arange(5)
    residuals = exact - np.polyval(np.polyfit(time, exact, 1), time)
    spread = np.sqrt(np.sum(residuals**2) / 3)
    assert spread / 3 < model.log_likelihood_scatter_ < 3 * spread


def test_partial_fit_tracks():
    model = CategoricalRBM(2, random_state=0, track_log_partition="particles")
    for _ in range(3):
        model.partial_fit(two_kinds())
    exact = Exact().fit(model).log_partition_
    off = model.log_partition_curve_[-1] - exact
    assert abs(off) < Z_BOUND * model.log_partition_std_errors_[-1]


# ---- levels along training
def trajectory_path():
    rng = np.random.default_rng(0)
    target = random_model(n_categories=[3, 2, 4]).path()
    return RBMTrajectoryPath(target, rng.normal(size=(2, 4, 10)), [0.3, 0.5], (0, 0.2, 0.6, 1))


def test_levels_along_training_keep_the_contract():
    path = trajectory_path()
    check_path(path)
    finer = path.with_ladder(np.linspace(0, 1, 21))
    check_transition(finer, Gibbs(), variables=lambda state: state.v)
    v = indicators(all_rows([3, 2, 4]), [3, 2, 4])
    at_all = np.logaddexp.reduce(path.log_f_ladder(path.state_from_rows(v)), axis=0)
    for level, log_partition in enumerate(at_all):
        enumerated = np.logaddexp.reduce(path.enumerate_block(0, level))
        assert enumerated == pytest.approx(log_partition, abs=1e-5)
    assert at_all[0] == pytest.approx(0, abs=1e-6)


def test_estimates_along_training_agree_with_enumeration(tracked):
    path = tracked.path()
    assert isinstance(path, RBMTrajectoryPath)
    exact = Exact().fit(tracked.path(trajectory=False)).log_partition_
    assert Exact().fit(path).log_partition_ == pytest.approx(exact, abs=1e-4)
    for estimator in (AIS(n_temperatures=200), ParallelTempering(n_sweeps=1024)):
        result = estimator.set_params(random_state=0).fit(path).result_
        assert result.converged, result.reasons
        assert abs(result.log_partition - exact) < Z_BOUND * result.std_error


# ---- ratios
def test_the_ratio_of_two_models_is_estimated_directly():
    """The difference of scores within 4.5 standard errors of the exact one, and with a smaller
    error than two log Z would leave.
    """
    X = two_kinds(100)
    tempering = ParallelTempering(n_sweeps=256, random_state=0)
    a = CategoricalRBM(4, n_iter=5, random_state=0, partition_estimator=tempering).fit(two_kinds())
    near = a.components_ + 0.02, a.intercept_visible_, a.intercept_hidden_ - 0.02
    options = {"partition_estimator": tempering, "random_state": 1}
    b = CategoricalRBM.from_parameters(*near, a.n_categories_, **options)
    check_path(a._ratio_path(b).with_ladder(np.linspace(0, 1, 5)))
    exact = [m.set_params(partition_estimator=None).score(X) for m in (a, b)]
    for model in (a, b):
        model.set_params(partition_estimator=tempering)
    difference = compare(a, b, X)
    half = np.diff(difference.partition)[0] / 2
    apart = np.hypot(*(model.log_partition_std_error_ for model in (a, b)))
    assert half < 1.96 * apart
    assert abs(difference.mean - (exact[0] - exact[1])) < Z_BOUND / 1.96 * half


def test_models_of_other_units_have_no_ratio():
    model = random_model(n_categories=[2, 2])
    binary = BernoulliRBM.from_parameters(*(np.zeros(s) for s in ((3, 4), 4, 3)))
    other = random_model(n_categories=[1, 3])
    assert model._ratio_path(other) is None
    assert model._ratio_path(binary) is None
    assert binary._ratio_path(model) is None


# ---- Gibbs steps
def test_gibbs_steps_of_rows_leave_the_model_invariant():
    """Shares of 24 rows within 4.5 standard errors: a false alarm in 6,000."""
    model = random_model()
    n = 4000
    moved = model.gibbs(model.gibbs(model.sample(n, random_state=1)))
    X = all_rows(N_CATEGORIES)
    shares = np.array([np.mean(np.all(moved == row, axis=1)) for row in X])
    expected = np.exp(model.score_samples(X))
    assert np.abs((shares - expected) / np.sqrt(expected * (1 - expected) / n)).max() < 4.5
