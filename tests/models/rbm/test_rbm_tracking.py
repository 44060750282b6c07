"""log Z while an RBM trains: against enumeration, and what tracking must leave alone."""

import pickle

import numpy as np
import pytest
from scipy.stats import t as student_t
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from sklpf import BernoulliRBM, Exact

BINARY = (load_digits().data > 7).astype(np.float64)
OPTIONS = {"n_components": 10, "learning_rate": 0.05, "random_state": 0, "n_iter": 12}
pytestmark = pytest.mark.filterwarnings("ignore:training has not settled")  # of few passes
WEIGHTS = ("components_", "intercept_visible_", "intercept_hidden_", "h_samples_")


def rbm(**options):
    return BernoulliRBM(**(OPTIONS | options))


def assert_same(model, other):
    for name in WEIGHTS:
        np.testing.assert_array_equal(getattr(model, name), getattr(other, name))


@pytest.fixture(scope="module")
def tracked():
    """A model, and the truth after every pass: that of as many passes."""
    passes = (rbm(n_iter=n_iter).fit(BINARY) for n_iter in range(1, OPTIONS["n_iter"] + 1))
    truth = [Exact().fit(model).log_partition_ for model in passes]
    return rbm(track_log_partition="particles").fit(BINARY), np.array(truth)


def test_tracked_values_are_near_the_truth(tracked):
    model, truth = tracked
    errors, std_errors = model.log_partition_curve_ - truth, model.log_partition_std_errors_
    assert np.all(std_errors < 0.11)
    # 12 passes, each beyond the bound with probability 8e-5: false alarm 1e-3 at most
    assert np.all(np.abs(errors) < student_t.isf(4e-5, 9) * std_errors)


def test_tracking_changes_no_other_number(tracked):
    plain, model = rbm().fit(BINARY), rbm(track_log_partition="particles").fit(BINARY)
    assert_same(plain, model)
    assert plain._partition_seed == model._partition_seed
    assert not hasattr(plain, "log_partition_curve_")
    np.testing.assert_array_equal(model.log_partition_curve_, tracked[0].log_partition_curve_)


def test_tempered_chains_follow_without_an_error(tracked):
    plain, model = rbm(n_iter=3).fit(BINARY), rbm(n_iter=3, track_log_partition="rts").fit(BINARY)
    assert_same(plain, model)
    assert np.all(np.isnan(model.log_partition_std_errors_))
    assert np.abs(model.log_partition_curve_ - tracked[1][:3]).max() < 0.5


def test_early_stopping_keeps_the_best_pass():
    options = {"n_iter_no_change": 3, "n_iter": 40, "learning_rate": 0.1, "average": False}
    model = rbm(early_stopping=True, **options).fit(BINARY)
    scores = model.validation_scores_
    assert model.n_iter_ == len(scores) < 40
    assert model.best_iteration_ == np.argmax(scores) + 1
    X, held_out = train_test_split(BINARY, test_size=0.1, random_state=np.random.RandomState(0))
    error = model.score(held_out) - scores.max()
    bound = student_t.isf(5e-4, 9) * model.validation_score_std_errors_[np.argmax(scores)]
    assert abs(error) < bound
    np.testing.assert_allclose(model.visible_mean_, (X.sum(axis=0) + 1) / (len(X) + 2))


def test_partial_fit_goes_on_from_a_fit():
    model = rbm(track_log_partition="particles").fit(BINARY)
    before = model.log_partition_curve_
    for first in range(0, 200, 10):
        model = pickle.loads(pickle.dumps(model.partial_fit(BINARY[first : first + 10])))
    curve, std_errors = model.log_partition_curve_, model.log_partition_std_errors_
    assert len(curve) == len(before) + 20
    np.testing.assert_array_equal(curve[: len(before)], before)
    # false alarm 1e-3
    off = curve[-1] - Exact().fit(model).log_partition_
    assert abs(off) < student_t.isf(5e-4, 9) * std_errors[-1]
    assert std_errors[-1] < 0.11
    model.set_params(track_log_partition=False).partial_fit(BINARY[:10])
    assert not hasattr(model, "log_partition_curve_")


def test_what_can_not_be_followed_is_not_known():
    model = rbm(n_components=300, learning_rate=1.0, n_iter=3, track_log_partition="particles")
    with pytest.warns(ConvergenceWarning, match="could not be followed in [1-9]"):
        model.fit(BINARY)
    assert np.isinf(model.log_partition_std_errors_).any()


def test_early_stopping_needs_binary_rows_and_passes():
    with pytest.raises(ValueError, match="binarise X"):
        rbm(early_stopping=True).fit(load_digits().data / 16)
    with pytest.raises(ValueError, match="call fit"):
        rbm(early_stopping=True).partial_fit(BINARY)
