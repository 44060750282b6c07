"""Training of a density that sklpf does not know, a Gaussian by its Cholesky factor."""

import numpy as np
import pytest

from sklpf.training import (
    Chains,
    MaximumLikelihood,
    MinimumProbabilityFlow,
    PersistentContrastiveDivergence,
    Settled,
    train,
)

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
    rng, bounds = np.random.default_rng(0), np.array([[0.0, -np.inf], [np.inf, np.inf]])
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


def test_passes_are_made_and_nothing_is_printed_unless_asked_for(capsys):
    trainer = Trainer()
    assert train(trainer, 3) == (3, False)
    assert trainer.done == ["run"] * 3
    assert train(trainer, 0) == (0, False)
    assert capsys.readouterr().out == ""


def test_a_callback_ends_training_after_all_are_called():
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
