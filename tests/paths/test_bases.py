import numpy as np
import pytest
from continuous_models import slopes
from numpy.testing import assert_allclose
from scipy import integrate, stats

from sklpf import Gaussian, GeometricPath, Mixture, StudentT, Uniform


def as_base(base):
    """What a path makes of a base."""
    return GeometricPath(lambda x: -np.sum(x**2, axis=1), base=base).base


MEAN = np.array([1.0, -2.0, 0.5])
FULL = np.array([[2.0, 0.9, -0.3], [0.9, 1.0, 0.1], [-0.3, 0.1, 0.5]])
VARIANCES = np.array([2.0, 1.0, 0.5])
MATRICES = {"number": (4.0, 4 * np.eye(3)), "full": (FULL, FULL)}
MATRICES["variances"] = VARIANCES, np.diag(VARIANCES)
BASES = {
    "gaussian": Gaussian(MEAN, FULL),
    "diagonal": Gaussian(MEAN, VARIANCES),
    "t": StudentT(MEAN, FULL, 5),
    "cauchy": StudentT(MEAN, VARIANCES, 1),
    "uniform": Uniform([0, -1, 2], [1, 3, 2.5]),
    "truncated": Gaussian(MEAN, VARIANCES).truncated([-np.inf, -1, 0], [2, 0, np.inf]),
    "tails": Gaussian(MEAN, VARIANCES).truncated([31, -42, 12], [32, -40, np.inf]),
    "independent": as_base([stats.cauchy(0, 2), stats.gamma(2), stats.beta(2, 3)]),
}
# distribution function of every coordinate
MARGINALS = {
    "gaussian": [stats.norm(m, v**0.5) for m, v in zip(MEAN, np.diag(FULL))],
    "diagonal": [stats.norm(m, v**0.5) for m, v in zip(MEAN, VARIANCES)],
    "t": [stats.t(5, m, v**0.5) for m, v in zip(MEAN, np.diag(FULL))],
    "cauchy": [stats.t(1, m, v**0.5) for m, v in zip(MEAN, VARIANCES)],
    "uniform": [stats.uniform(0, 1), stats.uniform(-1, 4), stats.uniform(2, 0.5)],
    "truncated": [
        stats.truncnorm(-np.inf, 1 / 2**0.5, 1, 2**0.5),
        stats.truncnorm(1, 2, -2, 1),
        stats.truncnorm(-0.5 / 0.5**0.5, np.inf, 0.5, 0.5**0.5),
    ],
    "tails": [
        stats.truncnorm(30 / 2**0.5, 31 / 2**0.5, 1, 2**0.5),
        stats.truncnorm(-40, -38, -2, 1),
        stats.truncnorm(11.5 / 0.5**0.5, np.inf, 0.5, 0.5**0.5),
    ],
    "independent": [stats.cauchy(0, 2), stats.gamma(2), stats.beta(2, 3)],
}


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("given", MATRICES)
def test_log_densities_are_those_of_scipy(given, rng):
    matrix, full = MATRICES[given]
    x = 5 * rng.standard_normal((50, 3))
    expected = stats.multivariate_normal(MEAN, full).logpdf(x)
    assert_allclose(Gaussian(MEAN, matrix).log_density(x), expected, rtol=1e-12)
    for df in (0.3, 1, 7.5, 1e4):
        expected = stats.multivariate_t(MEAN, full, df).logpdf(x)
        assert_allclose(StudentT(MEAN, matrix, df).log_density(x), expected, rtol=1e-9)


@pytest.mark.parametrize("name", ["uniform", "truncated", "independent"])
def test_log_densities_of_independent_coordinates_are_those_of_scipy(name, rng):
    x = BASES[name].sample(200, rng)
    x[:100] += rng.standard_normal((100, 3))  # some outside
    expected = sum(part.logpdf(column) for part, column in zip(MARGINALS[name], x.T))
    values = BASES[name].log_density(x)
    assert np.all(np.isfinite(values[100:]))
    assert np.any(np.isneginf(values))
    assert_allclose(values, expected, rtol=1e-10)


@pytest.mark.parametrize(
    ("low", "high"), [(37, 40), (-300, -299), (5, np.inf), (-np.inf, -9), (1000, 1001)]
)
def test_far_tails_have_mass_1(low, high):
    base = Gaussian(0, 1).truncated(low, high)
    near = min(abs(low), abs(high))  # the density falls off as exp(-near * distance) from there
    x = np.sign(low) * (near + np.linspace(0, min(high - low, 40 / near), 20001))
    density = np.exp(base.log_density(x[:, np.newaxis]))
    assert_allclose(integrate.simpson(density, x=np.abs(x)), 1, rtol=1e-9)


@pytest.mark.parametrize("low", [-1, -1e-9, 0, 1e-3, 3, -8, 50])
@pytest.mark.parametrize("width", [1e-8, 1e-4, 0.01, 0.3])
def test_narrow_boxes_have_mass_1(low, width):
    """Differences of two distribution functions would lose up to 8 digits."""
    high = low + width
    base = Gaussian(0, 1).truncated(low, high)
    x = np.linspace(low, high, 20001)
    mass = integrate.simpson(np.exp(base.log_density(x[:, np.newaxis])), dx=(high - low) / 20000)
    assert_allclose(mass, 1, rtol=1e-11)


@pytest.mark.parametrize("name", [name for name in BASES if name != "independent"])
def test_gradients_are_those_of_the_log_densities(name, rng):
    base = BASES[name]
    for x in base.center + 0.3 * base.scale * rng.uniform(-1, 1, (20, 3)):
        expected = slopes(lambda point: base.log_density(point[np.newaxis])[0], x, 1e-5)
        assert_allclose(base.grad_log_density(x[np.newaxis])[0], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("seed", range(2))
def test_draws_have_the_right_marginals(name, seed):
    """48 tests at p = 1e-4: 0.5 % false alarms for 2 new seeds."""
    x = BASES[name].sample(2000, np.random.default_rng(seed))
    assert x.shape == (2000, 3)
    assert np.all(np.isfinite(BASES[name].log_density(x)))
    for column, marginal in zip(x.T, MARGINALS[name]):
        assert stats.kstest(column, marginal.cdf).pvalue > 1e-4


@pytest.mark.parametrize("df", [None, 3.0])
@pytest.mark.parametrize("seed", range(2))
def test_draws_have_the_right_correlations(df, seed):
    """4 projections at p = 1e-4: 0.04 % false alarms for 2 new seeds."""
    rng = np.random.default_rng(seed)
    base = Gaussian(MEAN, FULL) if df is None else StudentT(MEAN, FULL, df)
    direction = rng.standard_normal(3)
    z = (base.sample(2000, rng) - MEAN) @ direction / np.sqrt(direction @ FULL @ direction)
    assert stats.kstest(z, stats.norm.cdf if df is None else stats.t(df).cdf).pvalue > 1e-4


# fitted bases
@pytest.mark.parametrize("n", [3, 4, 10, 20])
def test_fit_works_with_few_points_in_any_units(n, rng):
    units = np.logspace(-6, 6, 20)
    points = rng.standard_normal((n, 20))
    base, scaled = Gaussian.fit(points), Gaussian.fit(points * units)
    assert_allclose(base.mean, points.mean(axis=0))
    assert_allclose(base.scale, points.std(axis=0))
    assert_allclose(scaled.covariance, base.covariance * np.outer(units, units), rtol=1e-6)


@pytest.mark.parametrize(("n", "most"), [(60, 1.0), (1000, 0.05)])
def test_fit_keeps_narrow_directions(n, most):
    """The divergence from the truth: of the moments themselves it is about d (d + 3) / 4 n, here
    0.5 and 0.03 nats; with Ledoit and Wolf's shrinkage 8 and 2.7 (means of 40 fits).
    """
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.standard_normal((10, 10)))[0]
    covariance = axes * np.geomspace(1, 1e-5, 10) @ axes.T
    base = Gaussian.fit(rng.multivariate_normal(np.zeros(10), covariance, n))

    ratio = np.linalg.solve(base.covariance, covariance)
    squares = base.squared_distances(np.zeros((1, 10)))[0]
    divergence = 0.5 * (np.trace(ratio) + squares - 10 - np.linalg.slogdet(ratio)[1])
    assert divergence < most


def test_fit_to_repeated_points_keeps_directions_that_they_do_not_span():
    """As resampled particles are: 30 points in 40-D, each some 17 times. The smallest eigenvalue is
    0.05 with the shrinkage of Ledoit and Wolf; where halves shared points it became 4e-11.
    """
    rng = np.random.default_rng(0)
    points = rng.standard_normal((30, 40))[rng.integers(30, size=500)]
    assert np.linalg.eigvalsh(Gaussian.fit(points).covariance)[0] > 0.01


def correlated_gaussian(d, rng):
    root = rng.standard_normal((d, d)) + np.eye(d)
    covariance = root @ root.T
    mean, precision = 10 * rng.standard_normal(d), np.linalg.inv(covariance)
    log_density = lambda x: 7 - 0.5 * np.einsum("ni,ij,nj->n", x - mean, precision, x - mean)  # noqa: E731
    return mean, covariance, log_density, lambda x: -(x - mean) @ precision


@pytest.mark.parametrize("with_grad", [True, False])
@pytest.mark.parametrize("d", [1, 2, 8])
def test_at_mode_finds_a_gaussian(d, with_grad, rng):
    mean, covariance, log_density, grad = correlated_gaussian(d, rng)
    base = Gaussian.at_mode(log_density, np.zeros(d), grad=grad if with_grad else None, factor=2)
    assert_allclose(base.mean, mean, atol=1e-4)
    assert_allclose(base.covariance, 2 * covariance, atol=1e-4 * np.max(covariance))


def test_at_mode_of_a_gaussian_that_is_thin_in_turned_directions(rng):
    axes = np.linalg.qr(rng.normal(size=(20, 20)))[0]
    precision = axes * np.geomspace(1, 1e8, 20) @ axes.T
    base = Gaussian.at_mode(
        lambda x: -np.einsum("ni,ij,nj->n", x, precision, x) / 2,
        np.full(20, 30.0),
        grad=lambda x: -x @ precision,
    )
    assert_allclose(base.mean, 0, atol=1e-4)
    covariance = axes / np.geomspace(1, 1e8, 20) @ axes.T
    assert_allclose(base.covariance, covariance, atol=1e-4)


@pytest.mark.parametrize("start", [1e-3, 0.5, 30, 1000])
@pytest.mark.filterwarnings("ignore:invalid value")
def test_at_mode_where_the_log_density_is_nan_outside_its_support(start):
    base = Gaussian.at_mode(lambda x: 20 * np.log(x[:, 0]) - 10 * x[:, 0] ** 2, [start])
    assert_allclose([base.mean[0], base.covariance[0, 0]], [1, 1 / 40], rtol=1e-4)


@pytest.mark.parametrize("scale", [30.0, 100.0])
def test_at_mode_of_data_that_a_plane_separates(scale):
    # a flat top beside a steep side: a logistic regression of 20 rows in a wide prior
    base = Gaussian.at_mode(
        lambda x: -20 * np.logaddexp(0, -5 * x[:, 0]) - 0.5 * (x[:, 0] / scale) ** 2, [0.0]
    )
    miss = 1 / (1 + np.exp(5 * base.mean[0]))
    assert abs(100 * miss - base.mean[0] / scale**2) < 1e-3 * base.mean[0] / scale**2
    precision = 500 * miss * (1 - miss) + 1 / scale**2
    np.testing.assert_allclose(base.covariance[0, 0], 1 / precision, rtol=0.01)


INSTEAD = r"give another start, or the base itself as Gaussian\(mean, covariance\)"


@pytest.mark.parametrize(
    ("log_density", "start", "message"),
    [
        (lambda x: -(x[:, 0] ** 2), [0, 0], "no mode .* as it has no maximum along column 1"),
        (lambda x: 3 * x[:, 0] * x[:, 1] - np.sum(x**2, axis=1), [0, 0], "the negative Hessian of"),
        (lambda x: -np.sum(x**2, axis=1) / 0.0, [1, 0], "must be finite at start, got -inf"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_at_mode_says_when_there_is_none(log_density, start, message):
    with pytest.raises(ValueError, match=f"{message}.*: {INSTEAD}"):
        Gaussian.at_mode(log_density, start)


def test_at_mode_notices_a_wrong_gradient():
    with pytest.raises(ValueError, match=f"no mode .* was found, as it still rises .*: {INSTEAD}"):
        Gaussian.at_mode(lambda x: -np.sum(x**2, axis=1), [3.0, 1.0], grad=lambda x: -2 * x - 5)


# conversions
@pytest.mark.parametrize(
    ("frozen", "kind"),
    [
        (stats.multivariate_normal(MEAN, FULL), "Gaussian"),
        (stats.multivariate_normal(MEAN), "Gaussian"),
        (stats.multivariate_t(MEAN, FULL, 3), "StudentT"),
        (stats.multivariate_t(MEAN, FULL, np.inf), "Gaussian"),
    ],
)
def test_frozen_multivariate_distributions_are_converted(frozen, kind, rng):
    base, x = as_base(frozen), rng.standard_normal((10, 3))
    assert type(base).__name__ == kind
    assert_allclose(base.log_density(x), frozen.logpdf(x), rtol=1e-12)


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        ([stats.norm(0, 2), stats.norm(loc=1, scale=3)], "Gaussian"),
        ([stats.norm(0, 2), stats.expon()], "_Independent"),
        (stats.cauchy(3, 2), "_Independent"),
        (stats.norm(3, 2), "Gaussian"),
    ],
)
def test_frozen_univariate_distributions_are_converted(parts, kind, rng):
    base = as_base(parts)
    several = parts if isinstance(parts, (list, tuple)) else [parts]
    assert (type(base).__name__, base.n_dimensions, base.normalised) == (kind, len(several), True)
    x = rng.uniform(1, 2, (10, len(several)))
    assert_allclose(base.log_density(x), sum(p.logpdf(column) for p, column in zip(several, x.T)))
    assert hasattr(base, "grad_log_density") == (kind != "_Independent")


# messages
FINITE = "must be free of NaN and infinite numbers"


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (Gaussian, ([], 1), r"mean must have shape \(d,\), one number per dimension, got \(0,\)"),
        (Gaussian, ([0, np.nan], 1), f"mean {FINITE}; replace them"),
        (Gaussian, ("zero", 1), "mean must be a number or a rectangular array of numbers, got"),
        (Gaussian, (np.array([1j, 1.0]), 1), "mean must be a number or a rectangular array"),
        (Gaussian, ([0, 0], np.eye(3)), r"covariance must be a .* \(2, 2\), as .*, got \(3, 3\)"),
        (Gaussian, (0, -1), "covariance must be positive: give variances above 0"),
        (Gaussian, ([0, 0], [[1, 0], [0, 0]]), "covariance must be positive on its diagonal: give"),
        (Gaussian, ([0, 0], [[1, 0.5], [0.4, 1]]), "covariance must be symmetric; average it with"),
        (Gaussian, ([0, 0], [[1, 2], [2, 1]]), "covariance must be positive definite; drop dimen"),
        (StudentT, (0, 1, 0), "df must be positive and finite, between .*, got 0"),
        (StudentT, (0, 1, 0.01), "df must be at least 0.1, as draws overflow with less, got 0.01"),
        (Uniform, ([0, 1], [1, 1]), "low must be below high, but is 1 >= 1 in column 1; swap them"),
        (Uniform, (0, np.inf), "low and high of Uniform must be finite; take Gaussian or StudentT"),
        (Gaussian([0, 0], FULL[:2, :2]).truncated, (0, 1), "truncated needs a diagonal covariance"),
        (Gaussian(0, 1).truncated, (1e6, np.inf), "low and high must not cut off the whole Gauss"),
        (Mixture, (5,), "components must be a sequence of bases, got 5"),
        (Mixture, ([],), "components must be at least one base, got none"),
        (Mixture, ([Gaussian(0, 1), Gaussian([0, 0], 1)],), "components .*, got 1 and 2"),
        (Mixture, ([Gaussian(0, 1)] * 2, [1, 0]), r"weights must be 2 positive .*, got \[1, 0\]"),
        (Mixture, ([Gaussian(0, 1)] * 2, [1, np.nan]), f"weights {FINITE}; replace them"),
        (Gaussian.fit, (1e160 * np.eye(3),), "points must be finite; .* to be squared"),
        (Gaussian.fit, ([[0.0], [1.0]],), r"points must have shape \(n, d\) with n >= 3"),
        (Gaussian.fit, ([[0.0, 5], [1, 5], [2, 5]],), "points must vary in every column, column 1"),
        (Gaussian.at_mode, (abs, [np.inf]), f"start {FINITE}"),
    ],
)
def test_messages(make, arguments, message):
    with pytest.raises((TypeError, ValueError), match=f"^{message}"):
        make(*arguments)
