"""The variational posterior of the factorial mixture against direct formulas, enumeration and
quadrature.
"""

import itertools

import numpy as np
import pytest
from marks import large
from scipy.integrate import quad
from scipy.special import entr, expit, logit
from scipy.stats import norm

from sklpf.models import FactorialPosterior
from sklpf.variational import (
    Annealed,
    GlobalTempering,
    LocalTempering,
    sweeps,
    temperature_ladder,
    temperature_schedule,
)

ALL = ("noise_variance", "component_variance", "activation_probability")


def make_posterior(X, n_components, seed=0, noise=0.1, variance=1.0, probability=0.3, **options):
    activations = np.random.default_rng(seed).random((len(X), n_components)) < 0.5
    probability = np.broadcast_to(probability, n_components)
    return FactorialPosterior(X, activations, noise, variance, probability, **options)


def rows(n=300, n_components=4, n_features=6, noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.random((n, n_components)) < 0.3
    means = z @ rng.normal(size=(n_components, n_features))
    return means + np.sqrt(noise) * rng.normal(size=(n, n_features))


def make_tempering(kind, posterior):
    temperatures = temperature_ladder(20.0, 25)
    log_partition, n = posterior.log_partition(temperatures), len(posterior.X)
    return {
        "none": lambda: None,
        "annealed": lambda: Annealed(temperature_schedule("geometric", 20.0, 40)),
        "global": lambda: GlobalTempering(temperatures, log_partition),
        "monotone": lambda: GlobalTempering(temperatures, log_partition, monotone=True),
        "local": lambda: LocalTempering(temperatures, log_partition / n, n),
    }[kind]()


def direct_bound(X, activations, means, covariance, noise, variance, probability, inverse=1.0):
    """The bound at inverse temperatures `inverse`, with every expectation written out, in NumPy."""
    n_components, n_features = means.shape
    second = activations[:, :, None] * activations[:, None, :]
    diagonal = np.arange(n_components)
    second[:, diagonal, diagonal] = activations
    squares = np.sum(X**2, axis=1) - 2 * np.sum(activations * (X @ means.T), axis=1)
    squares += np.einsum("nkj,kj->n", second, means @ means.T + n_features * covariance)
    joint = -0.5 * n_features * np.log(2 * np.pi * noise) - squares / (2 * noise)
    off = (1 - activations) * np.log(1 - probability)
    joint += np.sum(activations * np.log(probability) + off, axis=1)
    prior = -0.5 * n_features * n_components * np.log(2 * np.pi * variance)
    prior -= (np.sum(means**2) + n_features * np.trace(covariance)) / (2 * variance)
    entropy = 0.5 * n_features * np.linalg.slogdet(2 * np.pi * np.e * covariance)[1]
    entropy += np.sum(entr(activations) + entr(1 - activations))
    return float(prior + entropy + np.sum(inverse * joint))


# -- log C(T)
@pytest.mark.parametrize("temperature", [1.0, 1.7, 10.0])
def test_log_partition_against_quadrature(temperature):
    posterior = make_posterior(np.zeros((1, 1)), 2, probability=np.array([0.3, 0.4]))
    value = posterior.log_partition(np.array([temperature]))[0]
    total = 0.0
    for z in itertools.product([0, 1], repeat=2):
        prior = np.prod(np.where(z, [0.3, 0.4], [0.7, 0.6]))

        # the integral over the means is 1: C does not depend on them
        def tempered(x, prior=prior):
            return (prior * norm.pdf(x, 0, np.sqrt(0.1))) ** (1 / temperature)

        total += quad(tempered, -20, 20)[0]
    assert value == pytest.approx(np.log(total), abs=1e-8)


# -- the bound
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("kind", ["one", "hot", "local"])
def test_bound_equals_the_direct_formula(diagonal, kind):
    X = rows()
    local = np.random.default_rng(1).uniform(0.1, 1, len(X))
    inverse = {"one": 1.0, "hot": 0.2, "local": local}[kind]
    posterior = make_posterior(X, 4, diagonal=diagonal)
    for _ in range(3):
        posterior.update(inverse)
    per_datum = posterior.expected_log_joint(per_datum=True)
    assert posterior.expected_log_joint() == pytest.approx(per_datum.sum(), rel=1e-12)
    value = posterior.regulariser() + np.sum(inverse * per_datum)
    state = posterior.activations, posterior.means, posterior.covariance
    expected = direct_bound(X, *state, 0.1, 1.0, np.full(4, 0.3), inverse)
    assert value == pytest.approx(expected, rel=1e-12)
    if diagonal:
        assert np.count_nonzero(posterior.covariance) == 4


@pytest.mark.parametrize("learned", [(), ALL], ids=["given", "learned"])
@pytest.mark.parametrize("diagonal", [False, True], ids=["full", "diag"])
@pytest.mark.parametrize("kind", ["none", "annealed", "global", "monotone", "local"])
def test_no_sweep_lowers_its_objective(kind, diagonal, learned):
    posterior = make_posterior(rows(), 4, diagonal=diagonal, learned=learned)
    steps = list(sweeps(posterior, make_tempering(kind, posterior), tol=1e-6, max_iter=300))
    hot = sum(step.temperature > 1 for step in steps)
    assert (hot == 0) == (kind == "none")
    assert steps[-1].temperature == 1
    phases = [steps[hot:]] if kind == "annealed" else [steps[:hot], steps[hot:]]
    for phase in phases:
        objective = np.array([step.objective for step in phase])
        assert np.all(np.diff(objective) >= -1e-11 * np.abs(objective[1:]))


@pytest.mark.parametrize(("diagonal", "learned"), [(False, ALL), large(True, ())])
def test_gradient_is_zero_at_the_fixed_point(diagonal, learned):
    """Central differences of the direct formula in every variational parameter and learned
    hyperparameter.
    """
    X = rows(12, 2, 3, seed=3)
    posterior = make_posterior(X, 2, seed=1, diagonal=diagonal, learned=learned)
    steps = list(sweeps(posterior, tol=-1.0, max_iter=3000))
    assert len(steps) == 3000
    factor = np.linalg.cholesky(posterior.covariance)
    lower = np.diag_indices(2) if diagonal else np.tril_indices(2)
    hyper = [posterior.noise_variance, posterior.component_variance]
    odds, prior_odds = logit(posterior.activations), logit(posterior.activation_probability)
    parts = odds, posterior.means, factor[lower], np.log(hyper), prior_odds
    start = np.concatenate([np.ravel(part) for part in parts])

    def bound(parameters):
        edges = [24, 30, 30 + len(lower[0]), -2]
        activations, means, entries, logs, log_odds = np.split(parameters, edges)
        factor = np.zeros((2, 2))
        factor[lower] = entries
        state = expit(activations).reshape(12, 2), means.reshape(2, 3), factor @ factor.T
        return direct_bound(X, *state, *np.exp(logs), expit(log_odds))

    n_free = len(start) if learned else len(start) - 4
    for i in range(n_free):
        step = np.zeros(len(start))
        step[i] = 1e-5 * max(1, abs(start[i])) if i < 30 else 1e-4 * abs(start[i])
        slope = (bound(start + step) - bound(start - step)) / (2 * step[i])
        assert abs(slope) < 1e-4, (i, slope)
