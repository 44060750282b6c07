"""Densities with known log Z: closed forms by quadrature, gradients by differences, draws by their
laws.
"""

import pickle

import known_densities
import numpy as np
import pytest
from known_densities import DENSITY_PROBLEMS, make_density_problem
from scipy import integrate, stats
from scipy.special import logsumexp

from sklpf.partition._raise import find_starts
from sklpf.paths import Stream
from sklpf.testing import check_partition_estimator, check_path

FALSE_ALARM = 1e-4
SAMPLED = [kind for kind in DENSITY_PROBLEMS if kind != "logistic regression"]


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


def test_closed_form_of_the_student_t_product_in_two_dimensions():
    """In coordinates u with x = W^-1 sinh(u), so that tails are met."""
    target, _ = known_densities._make_student_t(2, True, np.random.default_rng(0))
    filters = target.log_density.constants[0]
    nodes, weights = line(-20, 20, 400)

    def stretched(u):
        x = np.linalg.solve(filters.T, np.sinh(u).T).T
        return (
            target.log_density(x) + np.log(np.cosh(u)).sum(axis=1) - np.linalg.slogdet(filters)[1]
        )

    value = log_integral(stretched, [nodes, nodes], [weights, weights])
    assert value == pytest.approx(target.log_partition, abs=1e-4)


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


@pytest.mark.parametrize("kind", ["beta-binomial", "beta-binomial, beta prior"])
def test_closed_form_of_the_beta_binomial(kind):
    problem = make_density_problem(kind)
    nodes, weights = line(0, 1, 2000)
    value = logsumexp(problem.path.log_density(nodes[:, np.newaxis]) + weights)
    assert value == pytest.approx(problem.log_partition, abs=1e-6)
    a, b = (1, 1) if kind == "beta-binomial" else (2, 3)
    expected = stats.betabinom(20, a, b).logpmf(5)
    assert problem.log_partition == pytest.approx(expected, abs=1e-10)


def test_the_funnel_is_normalised():
    """Integral over x given v in closed form leaves N(0, 1)."""
    problem = make_density_problem("funnel")
    v = np.linspace(-3, 3, 7)
    x = np.column_stack([v, *np.ones((5, 7))])
    conditional = stats.norm.logpdf(1, 0, np.exp(v / 2)) * 5
    np.testing.assert_allclose(
        problem.path.log_density(x), stats.norm.logpdf(v) + conditional, rtol=1e-12
    )


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


def test_reference_of_the_logistic_regression():
    """Importance sampling from the curvature at the mode, as far as 20,000 draws tell."""
    problem = make_density_problem("logistic regression")
    from sklpf import Gaussian, StudentT

    mode = Gaussian.at_mode(
        problem.path.log_density, np.zeros(31), grad=problem.path.grad, factor=1.3
    )
    proposal = StudentT(mode.mean, mode.covariance, 20)
    x = proposal.sample(20_000, np.random.default_rng(0))
    log_weights = problem.path.log_density(x) - proposal.log_density(x)
    weights = np.exp(log_weights - log_weights.max())
    error = weights.std() / weights.mean() / np.sqrt(len(x))
    assert error < 0.2
    assert logsumexp(log_weights) - np.log(len(x)) == pytest.approx(
        problem.log_partition, abs=4 * error
    )
    assert 0 < problem.std_error < 1e-3


@pytest.mark.parametrize("kind", DENSITY_PROBLEMS)
def test_gradients(kind):
    """`GeometricPath` compares at draws of the base; here at those of the target, in every
    direction.
    """
    problem = make_density_problem(kind)
    path, rng = problem.path, np.random.default_rng(5)
    x = draws(problem, 3) if kind in SAMPLED else 0.3 * rng.normal(size=(3, 31))
    slopes, width = path.grad(x), 1e-6
    for i in range(path.n_dimensions):
        step = width * np.eye(path.n_dimensions)[i]
        differences = (path.log_density(x + step) - path.log_density(x - step)) / (2 * width)
        size = np.abs(slopes).max()
        np.testing.assert_allclose(slopes[:, i], differences, rtol=1e-4, atol=1e-5 * size + 1e-6)


@pytest.mark.parametrize("kind", SAMPLED)
def test_exact_draws(kind):
    """E of (x - c) . grad log f over the target is -d, and of grad log f is 0, wherever f vanishes
    at the ends.
    """
    problem = make_density_problem(kind)
    assert find_starts(_Free(), problem.path, 3, 0)[1] == "exact"
    x = draws(problem)
    assert x.shape == (2000, problem.path.n_dimensions)
    assert np.all(np.isfinite(problem.path.log_density(x)))
    if not kind.startswith("box"):
        terms = (
            np.sum(x * problem.path.grad(x), axis=1)
            if "beta" not in kind
            else _beta_terms(problem.path, x)
        )
        expected = -problem.path.n_dimensions if "beta" not in kind else 0.0
        assert stats.ttest_1samp(terms, expected).pvalue > FALSE_ALARM / len(SAMPLED)


def _beta_terms(path, x):
    """The derivative of p (1 - p) f integrates to 0."""
    return (x * (1 - x) * path.grad(x) + 1 - 2 * x)[:, 0]


class _Free:
    starts = None


def standardised(kind, x):
    """Independent coordinates of draws, and the distribution of each."""
    constants = make_density_problem(kind).path.log_density.constants
    if kind.startswith("gaussian"):
        return x @ constants[1], [stats.norm()] * x.shape[1]
    if kind.startswith("laplace"):
        return x @ constants[0], [stats.laplace()] * x.shape[1]
    if kind.startswith("student-t"):
        df = 2 * constants[1] - 1
        return x @ constants[0] * np.sqrt(df), [stats.t(nu) for nu in df]
    if kind == "box exponential":
        rates = constants[0]
        flipped = np.where(rates > 0, x, 1 - x) * np.abs(rates)
        return flipped, [stats.truncexpon(rate) for rate in np.abs(rates)]
    if kind == "box gaussian":
        z = (x - constants[0]) * constants[1]
        sides = (np.array([[0.0], [1.0]]) - constants[0]) * constants[1]
        return z, [stats.truncnorm(*side) for side in sides.T]
    if kind.startswith("funnel"):
        return np.column_stack([x[:, 0], x[:, 1:] * np.exp(-x[:, :1] / 2)]), [stats.norm()] * 6
    axis = constants[0] / 5
    along = x @ axis
    share = np.mean(along > 0)
    assert abs(share - 0.3) < 4 * np.sqrt(0.21 / len(x))
    return (along - np.where(along > 0, 5, -5))[:, np.newaxis], [stats.norm()]


@pytest.mark.parametrize(
    "kind", [k for k in SAMPLED if "beta" not in k and k != "linear regression"]
)
def test_distribution_of_exact_draws(kind):
    """Kolmogorov and Smirnov's test of every coordinate, and no correlation between them."""
    z, laws = standardised(kind, draws(make_density_problem(kind)))
    values = [stats.kstest(column, law.cdf).pvalue for column, law in zip(z.T, laws)]
    assert min(values) > FALSE_ALARM / len(values)


def test_problems_are_reproducible_and_differ_by_seed():
    first, again, other = (make_density_problem("laplace 6-D", seed) for seed in (0, 0, 1))
    x = np.random.default_rng(0).normal(size=(4, 6))
    np.testing.assert_array_equal(first.path.log_density(x), again.path.log_density(x))
    assert not np.allclose(first.path.log_density(x), other.path.log_density(x))
    with pytest.raises(ValueError, match="kind must be one of"):
        make_density_problem("impossible")


@pytest.mark.parametrize("kind", DENSITY_PROBLEMS)
def test_paths_keep_their_contract_and_can_be_pickled(kind):
    path = make_density_problem(kind).path
    check_path(path)
    copied = pickle.loads(pickle.dumps(path))
    x = path.base.sample(3, np.random.default_rng(0))
    np.testing.assert_array_equal(copied.grad(x), path.grad(x))
    assert hasattr(copied, "sample_target") == (kind in SAMPLED)


def test_compiled_functions_give_the_same():
    plain, compiled = (make_density_problem("beta-binomial", compiled=c) for c in (False, True))
    x = plain.path.base.sample(10, np.random.default_rng(0))
    np.testing.assert_allclose(compiled.path.log_density(x), plain.path.log_density(x), rtol=1e-12)
    np.testing.assert_allclose(compiled.path.grad(x), plain.path.grad(x), rtol=1e-12)


def test_an_estimator_agrees():
    from sklpf import BDMC

    check_partition_estimator(
        BDMC(n_temperatures=100, random_state=0), make_density_problem("laplace 6-D")
    )
