"""Densities with known log Z: closed forms by quadrature, gradients by differences, draws by their
laws.
"""

import known_densities
import numpy as np
import pytest
from known_densities import make_density_problem
from scipy import integrate, stats
from scipy.special import logsumexp

from sklpf.paths import Stream


def draws(problem, n=2000):
    return problem.path.sample_target(n, Stream((1, 2))).position


def log_integral(log_density, points, log_weights):
    """By a rule on a product of two axes, or of one."""
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*points, indexing="ij")], axis=1)
    logs = sum(np.meshgrid(*log_weights, indexing="ij")).ravel()
    return logsumexp(log_density(grid) + logs)


def line(low, high, n):
    """Nodes and log weights of the midpoint rule, which is accurate for what is smooth and vanishes
    at both ends.
    """
    width = (high - low) / n
    return low + width * (np.arange(n) + 0.5), np.full(n, np.log(width))


@pytest.mark.parametrize(
    ("target", "side", "n"),
    [
        (known_densities._make_gaussian(2, 100, np.random.default_rng(0)), 8, 400),
        (known_densities._make_laplace(2, np.random.default_rng(0)), 20, 1000),
        (known_densities._make_two(2, False, np.random.default_rng(0)), 15, 400),
    ],
)
def test_closed_forms_in_two_dimensions(target, side, n):
    nodes, weights = line(-side, side, n)
    value = log_integral(target[0].log_density, [nodes, nodes], [weights, weights])
    assert value == pytest.approx(target[0].log_partition, abs=1e-3)


@pytest.mark.parametrize("kind", ["box exponential", "box gaussian"])
def test_closed_forms_of_boxes(kind):
    """Their coordinates are independent: log f is a sum along axes."""
    problem, center = make_density_problem(kind), np.full((1, 10), 0.5)
    at_center, total = problem.path.log_density(center)[0], 0.0
    for i in range(10):

        def along(p, i=i):
            x = center.copy()
            x[0, i] = p
            return np.exp(problem.path.log_density(x)[0] - at_center)

        total += np.log(integrate.quad(along, 0, 1, limit=200)[0])
    assert total + at_center == pytest.approx(problem.log_partition, abs=1e-6)


def test_evidence_of_the_linear_regression():
    """prior times likelihood over posterior is the same at every point."""
    problem, x = (
        make_density_problem("linear regression"),
        np.random.default_rng(3).normal(size=(4, 8)),
    )
    mean, factor = problem.path.draw.args
    posterior = stats.multivariate_normal(mean, factor @ factor.T).logpdf(x)
    np.testing.assert_allclose(
        problem.path.log_density(x) - posterior, problem.log_partition, rtol=1e-8
    )
