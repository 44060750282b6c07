"""The callbacks on their own: a Gaussian whose scale is trained, and the rule that ends
training.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import t as student_t

from sklpf.paths import Gaussian, GeometricPath
from sklpf.training import EarlyStopping, LogPartitionTracker, train


def path_of(trainer):
    precision = trainer.precision
    base = Gaussian(np.zeros(2), np.eye(2))
    return GeometricPath(lambda x: -0.5 * precision * np.sum(x**2, axis=1), base=base)


class Sharper:
    precision = 0.8

    def run(self):
        self.precision *= 1.2


def test_a_path_of_the_users_own_is_followed():
    tracker, trainer = LogPartitionTracker(path_of, 0), Sharper()
    train(trainer, 4, callbacks=[tracker])
    estimate = tracker.estimates[-1]
    truth = np.log(2 * np.pi / trainer.precision)
    # false alarm 1e-3
    assert abs(estimate.log_partition - truth) < student_t.isf(5e-4, 9) * estimate.std_error
    assert estimate.std_error < 0.1
    assert [anchor.iteration for anchor in tracker.anchors] == [1, 2, 4]


def run(scores, errors, **options):
    rng = np.random.default_rng(0)
    tracker = SimpleNamespace(estimates=[], path=None)
    stopping = EarlyStopping(
        tracker, lambda path: scores[len(tracker.estimates) - 1], lambda t: None, **options
    )
    for iteration, error in enumerate(errors, 1):
        groups = error * rng.standard_normal(10) if error < 9 else np.zeros(10)
        numbers = {"std_error": error, "groups": groups, "weights_error": error}
        tracker.estimates.append(SimpleNamespace(log_partition=0.0, **numbers))
        if stopping(None, iteration):
            break
    return iteration, stopping.best_iteration


@pytest.mark.parametrize(
    ("scores", "error", "expected"),
    [
        ([1, 2, 3, 2, 1, 0, 9], 0.0, (6, 3)),
        (
            [1, 2, 3, 3.05, 3.0, 3.0, 9],
            0.0,
            (6, 4),
        ),  # a rise below tol is kept, and ends training all the same
        ([3, 2.99, 2.98, 2.97, 2.96], 5.0, (5, 1)),  # within the error
        ([3, 2, 2, 2, 2], np.inf, (5, 0)),
    ],
)
def test_the_rule_that_ends_training(scores, error, expected):
    assert run(scores, [error] * len(scores), tol=0.1, n_iter_no_change=3) == expected
