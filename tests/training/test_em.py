"""EM with Hamiltonian draws, on a model of the user's own whose likelihood has a maximum in closed
form.
"""

import numpy as np
import pytest

from sklpf.training import EM


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


@pytest.mark.parametrize("n_draws", [1, 4])
def test_a_users_model_arrives_at_the_greatest_likelihood(n_draws):
    rng = np.random.default_rng(0)
    x = rng.exponential(2.0, size=1000) + rng.normal(size=1000)
    model = Exponential(np.tile(x, n_draws), 1.0)
    bounds = np.array([[0.0], [np.inf]])
    em = EM(model, np.ones((len(model.x), 1)), rng, bounds=bounds, tol=0.005)
    em.fit(200)
    assert em.converged
    assert len(em.losses) >= 40
    assert em.chains.position.min() >= 0
    # the posterior's spread of a mean over 1000 rows is 0.03 in a pass: 0.1 leaves out of account
    # what averaging gains
    assert model.scale == pytest.approx(best_scale(x, 1.0), abs=0.1)
