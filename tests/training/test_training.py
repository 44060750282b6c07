"""Training of densities that sklpf does not know, by likelihood and by EM; and log Z on the way."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import t as student_t

from sklpf.paths import Gaussian, GeometricPath
from sklpf.training import (
    EM,
    Chains,
    EarlyStopping,
    LogPartitionTracker,
    MaximumLikelihood,
    MinimumProbabilityFlow,
    PersistentContrastiveDivergence,
    Settled,
    train,
)
from sklpf.uncertainty import log_mean_exp

COVARIANCE = np.array([[1.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 0.5]])
X = np.random.default_rng(0).multivariate_normal(np.zeros(3), COVARIANCE, size=4000)
LOWER = np.tril_indices(3)


class GaussianFamily:
    """log f = -|Lᵀ x|² / 2 with a lower triangular L: -log Z = log |det L| - 3/2 log 2 pi."""

    def factor(self, parameters):
        factor = np.zeros((3, 3))
        factor[LOWER] = parameters
        return factor

    def log_density(self, parameters, x):
        return -0.5 * np.sum((x @ self.factor(parameters)) ** 2, axis=1)

    def grad(self, parameters, x):
        factor = self.factor(parameters)
        return -x @ factor @ factor.T

    def grad_parameters(self, parameters, x, weights):
        return -((x * weights[:, np.newaxis]).T @ (x @ self.factor(parameters)))[LOWER]

    def log_partition(self, parameters):
        factor = self.factor(parameters)
        value = 1.5 * np.log(2 * np.pi) - np.linalg.slogdet(factor)[1]
        return value, -np.linalg.inv(factor).T[LOWER]


FAMILY, START = GaussianFamily(), np.eye(3)[LOWER]


def loss(parameters):
    return FAMILY.log_partition(parameters)[0] - FAMILY.log_density(parameters, X).mean()


BEST = 0.5 * np.linalg.slogdet(2 * np.pi * np.e * X.T @ X / len(X))[1]


def trainers():
    rng = np.random.default_rng(0)
    chains = Chains(rng.standard_normal((500, 3)), rng, n_leapfrog=5)
    return {
        "ml": (MaximumLikelihood(FAMILY, START, X), 1e-3),
        "pcd": (PersistentContrastiveDivergence(FAMILY, START, X, chains, 200, 0.02), 0.01),
        "mpf": (MinimumProbabilityFlow(FAMILY, START, X, np.random.default_rng(0)), 0.01),
    }


@pytest.mark.parametrize("name", ["ml", "pcd", "mpf"])
def test_a_family_of_the_user_s_is_learned(name):
    """To within a hundredth of a nat of the maximum; the moments of 500 chains leave about .002."""
    trainer, excess = trainers()[name]
    settled = Settled(loss, 1e-4, 5)
    n_passes, ended = train(trainer, 300, callbacks=[settled])
    assert ended
    assert len(settled.curve) == n_passes
    assert -1e-9 < loss(trainer.parameters) - BEST < excess


def test_constraints_hold_after_every_step():
    class Narrow(GaussianFamily):
        def project(self, parameters):
            return np.minimum(parameters, 1.05)

    rng = np.random.default_rng(0)
    chains = Chains(np.zeros((50, 3)), rng)
    flow = MinimumProbabilityFlow(Narrow(), START, X, rng)
    for trainer in (PersistentContrastiveDivergence(Narrow(), START, X, chains, 200, 0.05), flow):
        for _ in range(3):
            trainer.run()
            assert trainer.parameters.max() <= 1.05
        assert trainer.parameters.max() == 1.05  # the maximum lies beyond


# -- when training has settled
class Descent:
    """Its loss falls by the learning rate at every pass, down to a floor."""

    def __init__(self, floor):
        self.parameters, self.learning_rate, self.floor = 10.0, 1.0, floor

    def run(self):
        self.parameters = max(self.parameters - self.learning_rate, self.floor)


def test_the_rate_is_lowered_twice_before_training_ends():
    trainer = Descent(floor=0.0)
    settled = Settled(float, 0.01, 5)
    n_passes, ended = train(trainer, 100, callbacks=[settled])
    assert ended
    assert trainer.learning_rate == pytest.approx(0.09)
    # 10 passes down, then two windows of 5 at the floor for each rate
    assert n_passes == 19 + 10 + 10
    np.testing.assert_array_equal(settled.curve[:11], [9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0])


# -- chains
def test_chains_follow_their_density_within_a_box():
    """exp(-x - y² / 2) for x > 0 from a point: means and variances of 4000 chains within 4.5
    standard errors.

    Four numbers: false alarm 3e-5.
    """
    rng, bounds = np.random.default_rng(0), ([0.0, -np.inf], [np.inf, np.inf])
    chains = Chains(np.ones((4000, 2)), rng, n_leapfrog=5, bounds=bounds)
    for _ in range(100):
        chains.move(
            lambda x: -x[:, 0] - x[:, 1] ** 2 / 2,
            lambda x: np.column_stack([-np.ones(len(x)), -x[:, 1]]),
        )
    assert chains.position[:, 0].min() >= 0
    for values, mean, fourth in ((chains.position[:, 0], 1, 9), (chains.position[:, 1], 0, 3)):
        assert abs(values.mean() - mean) < 4.5 / np.sqrt(4000)
        assert abs(np.mean((values - mean) ** 2) - 1) < 4.5 * np.sqrt((fourth - 1) / 4000)


def test_trajectories_that_run_away_are_rejected_and_shorten_the_steps():
    chains = Chains(np.ones((10, 1)), np.random.default_rng(0), step_size=1.0)
    chains.move(lambda x: -(x[:, 0] ** 8), lambda x: -8 * x**7)
    assert np.all(np.isfinite(chains.position))
    assert chains.acceptance < 0.5
    assert chains.step_size < 1.0


# -- the loop
class Trainer:
    """Writes down what is done with it."""

    def __init__(self):
        self.done = []

    def run(self):
        self.done.append("run")

    def quiet(self, trainer, iteration):
        self.done.append(f"quiet {iteration}")

    def end_at_two(self, trainer, iteration):
        self.done.append(f"end {iteration}")
        return iteration == 2


def test_a_callback_ends_training_after_all_are_called(capsys):
    assert train(Trainer(), 0) == (0, False)
    assert train(Trainer(), 3) == (3, False)
    assert capsys.readouterr().out == ""
    trainer = Trainer()
    callbacks = [trainer.end_at_two, trainer.quiet]
    assert train(trainer, 5, callbacks=callbacks) == (2, True)
    assert trainer.done == ["run", "end 1", "quiet 1", "run", "end 2", "quiet 2"]


def test_chains_that_are_rescaled_find_points_of_all_lengths():
    """Two concentric Gaussians that trajectories hardly cross between: shares of 400 chains, 5
    standard deviations.
    """
    widths, d = np.array([0.8, 3.0]), 20

    def log_parts(x):
        return -0.5 * np.sum(x**2, axis=1)[:, np.newaxis] / widths**2 - d * np.log(widths)

    def grad(x):
        parts = log_parts(x)
        shares = np.exp(parts - np.logaddexp.reduce(parts, axis=1)[:, np.newaxis])
        return -x * (shares @ widths**-2.0)[:, np.newaxis]

    rng = np.random.default_rng(0)
    chains = Chains(3.0 * rng.normal(size=(400, d)), rng, rescale=True)
    for _ in range(300):
        chains.move(lambda x: np.logaddexp.reduce(log_parts(x), axis=1), grad)
    share = np.mean(np.linalg.norm(chains.position, axis=1) < 7)
    assert abs(share - 0.5) < 5 * 0.5 / np.sqrt(400)


# -- EM
class Exponential:
    """x = z + N(0, noise²) with z >= 0 exponential of mean `scale`, which is learned: its M-step is
    the mean of z.
    """

    def __init__(self, x, noise, scale=1.0):
        self.x, self.noise, self.scale = x, noise, scale

    def log_density(self, position):
        z = position[:, 0]
        return -0.5 * ((self.x - z) / self.noise) ** 2 - z / self.scale

    def grad(self, position):
        return ((self.x - position[:, 0]) / self.noise**2 - 1 / self.scale)[:, np.newaxis]

    def maximise(self, position, rate):
        self.scale += rate * (position.mean() - self.scale)

    def loss(self, position):
        return np.log(self.scale) + position.mean() / self.scale


def best_scale(x, noise):
    """Of greatest likelihood, on a grid: p(x) is an exponentially modified Gaussian."""
    from scipy.stats import exponnorm

    scales = np.linspace(1.0, 4.0, 601)
    return scales[np.argmax([exponnorm(s / noise, scale=noise).logpdf(x).sum() for s in scales])]


def test_a_users_model_arrives_at_the_greatest_likelihood():
    rng = np.random.default_rng(0)
    x = rng.exponential(2.0, size=1000) + rng.normal(size=1000)
    model = Exponential(np.tile(x, 4), 1.0)  # four draws of each row
    bounds = [0.0], [np.inf]
    em = EM(model, np.ones((len(model.x), 1)), rng, bounds=bounds, tol=0.005)
    em.fit(200)
    assert em.converged
    assert len(em.losses) >= 40
    assert em.chains.position.min() >= 0
    # the posterior's spread of a mean over 1000 rows is 0.03 in a pass: 0.1 leaves out of account
    # what averaging gains
    assert model.scale == pytest.approx(best_scale(x, 1.0), abs=0.1)


# -- log Z on the way
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
    without = [log_mean_exp(np.delete(estimate.groups, g)) for g in range(10)]
    assert estimate.std_error == pytest.approx(3 * np.std(without))  # sqrt(10 - 1)
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
        ([1, 2, 3, 3.05, 3.0, 3.0, 9], 0.0, (6, 4)),  # a rise below tol ends training, but is kept
        ([3, 2.99, 2.98, 2.97, 2.96], 5.0, (5, 1)),  # within the error
        ([3, 3, 3, 3, 3], 0.5, (5, 1)),  # tol is half of the difference's error, 0.5 sqrt(2 / 10)
        ([3, 3, 3, 3, 3], 0.1, (4, 1)),  # tol is twice that
        ([3, 2, 2, 2, 2], np.inf, (5, 0)),
    ],
)
def test_the_rule_that_ends_training(scores, error, expected):
    assert run(scores, [error] * len(scores), tol=0.1, n_iter_no_change=3) == expected
