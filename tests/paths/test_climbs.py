"""Climbs to the modes of densities on R^d, and the masses around them.

z-bounds: 4 standard errors is a false-alarm rate of 6e-5 a comparison; seeds are fixed.
"""

import numpy as np
import pytest
from convergence import quietly
from known_densities import DENSITY_PROBLEMS, make_density_problem
from marks import large
from scipy.special import ndtri

from sklpf import SMC, Gaussian, GeometricPath, Mixture, ProductOfExperts, Uniform
from sklpf.interop import from_prior_transform
from sklpf.partition import Draws, PartitionResult, Run
from sklpf.partition.checks.missed_mass import MissedMass
from sklpf.paths import Stream, stream_key

Z_BOUND = 4.0
BASE = Gaussian(np.zeros(2), 9.0)


def stream(key=0):
    return Stream(stream_key(key))


def alarms_of(regions, draws, log_partition, std_error):
    run = Run(findings={"missed_mass": MissedMass(regions=regions)}, draws=draws)
    return run.judge(PartitionResult("", log_partition, std_error)).alarms


def log_banana(x):
    return -0.5 * x[:, 0] ** 2 - 2 * (x[:, 1] - 0.5 * x[:, 0] ** 2) ** 2


log_two = Mixture([Gaussian([-2, -2], 0.01), Gaussian([2, 1], 0.04)], [0.3, 0.7]).log_density


@pytest.mark.parametrize(
    ("log_density", "bounds"),
    [(log_banana, None), (log_banana, (-1.0, 1.0)), (log_two, None), (lambda x: x[:, 0], (0, 1))],
    ids=["banana", "banana in a box", "two", "at a side"],
)
def test_the_masses_of_ellipsoids_are_right(log_density, bounds):
    """Means of 10 estimates lie within 5.5 standard errors (t with 9 degrees of freedom: a false
    alarm in 4e-4, and at most 20 are looked at) and half a percent of sums over a grid.
    """
    base = BASE if bounds is None else Uniform([bounds[0]] * 2, [bounds[1]] * 2)
    path = GeometricPath(log_density, base=base, bounds=bounds)
    regions = path.regions(stream())
    low, high = (-7, 14) if bounds is None else bounds  # on slopes regions lie far out
    edges = np.linspace(low, high, 1001)
    middles = (edges[1:] + edges[:-1]) / 2
    grid = np.stack(np.meshgrid(middles, middles), axis=-1).reshape(-1, 2)
    densities = np.exp(log_density(grid)) * (edges[1] - edges[0]) ** 2
    truth = densities @ regions.contain(grid)
    masses = np.exp(regions.log_masses)
    errors = masses.std(axis=1, ddof=1) / np.sqrt(10)
    assert len(masses) >= 1
    assert np.all(np.abs(masses.mean(axis=1) - truth) < 5.5 * errors + 0.005 * truth)
    assert truth.max() > 0.2 * densities.sum()


@pytest.mark.parametrize("grad", [True, False])
def test_modes_far_from_each_other_are_found(grad):
    problem = make_density_problem("two gaussians 10-D, base on one")
    slope = problem.path.grad if grad else None
    path = GeometricPath(problem.path.log_density, grad=slope, base=problem.path.base)
    regions = path.regions(stream())
    masses = np.exp(regions.log_masses.mean(axis=1) - problem.log_partition)
    np.testing.assert_allclose(np.sort(masses)[-2:], [0.285, 0.665], rtol=0.05)


class Fails:
    """A Gaussian that fails in one way or another outside the unit ball."""

    def __init__(self, how):
        self.how = how

    def __call__(self, x):
        far = np.sum(x**2, axis=1) > 9
        if self.how == "raises" and far.any() and len(x) > 5:  # 5: what the path checks
            raise OutOfRangeError("far out")
        with np.errstate(all="ignore"):
            value = {"nan": np.nan, "inf": np.inf, "minus inf": -np.inf, "raises": 0.0}[self.how]
            return np.where(far & (len(x) > 5), value, -0.5 * np.sum(x**2, axis=1))


class OutOfRangeError(Exception):
    """What a user's simulator may raise: none of NumPy's errors."""


@pytest.mark.parametrize("how", ["nan", "inf", "minus inf", "raises"])
def test_climbs_go_on_where_the_density_fails(how):
    path = GeometricPath(Fails(how), base=BASE)
    regions = path.regions(stream())
    # N(0, I) within a distance of 3, but for what the ellipsoid leaves out.
    masses = np.exp(regions.log_masses.mean(axis=1)) / (2 * np.pi)
    assert masses.max() == pytest.approx(0.95, abs=0.01)


def test_a_density_that_is_zero_all_but_everywhere_has_no_region():
    def log_density(x):
        return np.where(np.sum((x - 7) ** 2, axis=1) < 1e-6, 0.0, -np.inf)

    regions = GeometricPath(log_density, base=BASE).regions(stream())
    assert regions.log_masses.shape == (0, 10)
    points = np.zeros((8, 2))
    draws = Draws(points, np.zeros(8), np.arange(8))
    assert alarms_of(regions, draws, 0.0, 0.1) == ()


def test_regions_of_a_model_are_in_the_coordinates_of_its_rows():
    """Exact draws of a product of experts lie in its region as often as the mass says."""
    rng = np.random.default_rng(0)
    model = ProductOfExperts.from_parameters(rng.normal(size=(3, 3)), mean=rng.normal(size=3) * 5)
    path = model.path()
    regions = path.regions(stream())
    n = 20_000
    rows = path.rows(path.sample_target(n, stream(1)))
    shares = regions.contain(rows).mean(axis=0)
    masses = np.exp(regions.log_masses - path.closed_log_partition())
    error = masses.std(axis=1, ddof=1) / np.sqrt(10) + np.sqrt(shares * (1 - shares) / n)
    assert np.all(np.abs(masses.mean(axis=1) - shares) < Z_BOUND * error)
    assert shares.max() > 0.02


@pytest.mark.parametrize(
    ("kind", "n_sets"),
    [("laplace 6-D", 3), ("two gaussians 10-D", 3), ("box gaussian", 3)]
    + [large(kind, 20) for kind in DENSITY_PROBLEMS if kind != "logistic regression"],
)
def test_right_draws_raise_no_alarm(kind, n_sets):
    """Sets of 1000 exact draws, with an error of .02 nats. At one false alarm in a hundred two of
    20 of one kind come with a probability of .02; seeds are fixed.
    """
    problem = make_density_problem(kind)
    n_alarms = 0
    for seed in range(n_sets):
        regions = problem.path.regions(stream(seed))
        state = problem.path.sample_target(1000, stream(100 + seed))
        draws = Draws(problem.path.position(state), np.zeros(1000), np.arange(1000) % 10)
        n_alarms += len(alarms_of(regions, draws, problem.log_partition, 0.02))
    assert n_alarms <= 1


# ---- parts without a mode, and narrow ones
def log_funnel(x):
    """v ~ N(0, 9) and five coordinates N(0, e^v), normalised."""
    v = x[:, 0]
    squares = np.sum(x[:, 1:] ** 2, axis=1)
    log_v = -(v**2) / 18 - np.log(3) - 0.5 * np.log(2 * np.pi)
    return log_v - squares * np.exp(-v) / 2 - 2.5 * (v + np.log(2 * np.pi))


@pytest.mark.parametrize(("lowest", "n_alarms"), [(-np.inf, 0), (0.0, 2)])
def test_the_neck_of_a_funnel_is_missed(lowest, n_alarms):
    """Exact draws of the funnel, and of its wide half alone, whose log Z is log 2 less. At one
    false alarm in a hundred one of two comes with a probability of .02; seeds are fixed.
    """
    path = GeometricPath(log_funnel, base=Gaussian(np.zeros(6), [16.0, *[400.0] * 5]))
    rng = np.random.default_rng(0)
    found = 0
    for key in range(2):
        v = 3 * rng.standard_normal(4000)
        v = v[v > lowest][:1000]
        x = np.exp(v / 2)[:, np.newaxis] * rng.standard_normal((1000, 5))
        draws = Draws(np.c_[v, x], np.zeros(1000), np.arange(1000) % 10)
        log_partition = 0.0 if lowest == -np.inf else np.log(0.5)
        found += len(alarms_of(path.regions(stream(key)), draws, log_partition, 0.1))
    assert found == n_alarms


def test_a_spike_that_a_draw_of_the_base_meets_is_a_region():
    """A ten-thousandth of a box, where none of 20,000 draws lies with a probability of e^-2; the
    seed is fixed. The mass is that of the spike's part in the ellipsoid, within 5.5 of its standard
    errors.
    """

    def log_density(x):
        return np.where(np.abs(x[:, 0] - 3) < 5e-4, 20.0, 0.0)

    path = GeometricPath(log_density, base=Uniform([-5.0], [5.0]), bounds=(-5.0, 5.0))
    regions = path.regions(stream())
    spike = np.abs(regions.centres[:, 0] - 3) < 5e-4
    assert spike.sum() == 1
    grid = np.linspace(3 - 5e-4, 3 + 5e-4, 2001)[:, np.newaxis]
    truth = 1e-3 * regions.contain(grid)[:, spike].mean()
    masses = np.exp(regions.log_masses[spike][0] - 20.0)
    error = masses.std(ddof=1) / np.sqrt(10)
    assert abs(masses.mean() - truth) < 5.5 * error
    assert error < 1e-4 < truth


# ---- bases that models choose
def test_a_narrow_mode_within_a_wide_one_keeps_its_mass():
    """Both ellipsoids hold it. A tenth of the share is ten standard errors of its mass."""
    share, width, d = 0.2, 0.1, 3
    parts = Gaussian(np.zeros(d), 1.0), Gaussian(np.full(d, 0.3), width**2)
    both = Mixture(parts, [1 - share, share])
    path = GeometricPath(both.log_density, base=Gaussian(np.zeros(d), 2.0))
    regions = path.regions(Stream(stream_key(0)))
    place = np.linalg.norm(regions.centres - 0.3, axis=1).argmin()
    mass = np.exp(regions.log_masses[place]).mean()
    assert mass == pytest.approx(0.95 * share, rel=0.1)
    for draws in regions.draws[[place]]:
        assert np.all(np.linalg.norm(draws - 0.3, axis=1) < 5 * width)


def test_a_narrow_mode_in_a_box_raises_the_alarm():
    """A Gaussian with a fifth of the mass hides one of a third of its width from every chain."""
    both = Mixture([Gaussian([2] * 5, 0.09), Gaussian([-2] * 5, 0.01)], [0.2, 0.8])
    base = Uniform(np.full(5, -5.0), np.full(5, 5.0))
    path = GeometricPath(both.log_density, base=base, bounds=(-5.0, 5.0))
    smc = quietly(SMC(random_state=0), path)
    assert smc.log_partition_ < -1
    assert not smc.converged_
    centre = smc.result_.diagnostics["missed_region"]
    np.testing.assert_allclose(centre, -2, atol=0.05)
    # what the alarm says to do: false-alarm rate below 1e-4
    second = SMC(random_state=0).fit(path.with_regions(smc.run_.regions))
    assert second.converged_
    assert abs(second.log_partition_) < 4 * second.log_partition_std_error_


def test_climbs_that_end_on_a_steep_slope_do_no_harm():
    """Curvatures there differ by more than rounding errors allow: a linear regression with an
    unknown scale, from its prior in normal coordinates.
    """
    rng = np.random.default_rng(6)
    A = np.c_[np.ones(40), rng.normal(size=(40, 4))]
    y = A @ rng.normal(size=5) + 0.5 * rng.normal(size=40)

    def log_likelihood(z):
        standardised = (y - 5 * z[:, :5] @ A.T) * np.exp(-2 * z[:, 5:])
        return np.sum(-(standardised**2) / 2 - 2 * z[:, 5:] - np.log(2 * np.pi) / 2, axis=1)

    path = from_prior_transform(log_likelihood, ndtri, 6, vectorized=True)
    for key in range(2):
        regions = path.regions(stream(key))
        log_z = -48.374  # by quadrature over log sigma
        masses = np.exp(regions.log_masses.mean(axis=1) - log_z)
        assert np.all((masses >= 0) & (masses < 1.1))


@pytest.mark.parametrize("seed", range(10))
def test_a_mode_near_the_mirror_image_of_another_in_a_base_that_is_much_wider(seed):
    widths = np.array([1e-5, 0.35])
    modes = np.array([[0.3, -2.8], [0.3, 2.0]])  # as where a circle closes

    def log_density(x):
        squares = np.sum(((x[:, np.newaxis] - modes) / widths) ** 2, axis=2)
        return np.logaddexp(-squares[:, 0] / 2, 3 - squares[:, 1] / 2)

    path = GeometricPath(log_density, base=Gaussian(np.zeros(2), 1.0))
    rng = np.random.default_rng(seed)
    path.climbs_from = modes[0] + widths * rng.normal(size=(10, 2)) / 2
    assert path.regions(stream(seed)).contain(modes).any(axis=1).all()
