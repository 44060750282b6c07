"""GeometricPath: what it refuses and how it says so, bases of every kind, walls, and
vectorized=False.

Estimates are within 4.8 standard errors (Student t with at least 9 degrees of freedom: false alarms
in 1e-3 of comparisons); fixed seeds.
"""

import pickle
import re

import numba
import numpy as np
import pytest
from convergence import assert_right
from densities import LADDER, PATHS, PRECISION, grad_correlated, log_correlated
from scipy import stats
from scipy.special import log_ndtr

from sklpf import AIS, HAIS, Gaussian, GeometricPath, Mixture, ParallelTempering, StudentT, Uniform
from sklpf.paths import Stream, stream_key
from sklpf.testing import check_path
from sklpf.transitions import HMC, RandomWalk, Slice

BASE = Gaussian([0.5, -0.5], 2.0)
LOG_Z = float(np.log(2 * np.pi * 0.6))  # of log_correlated


def make(log_density=log_correlated, *, base=BASE, **options):
    return GeometricPath(log_density, base=base, **options)


def assert_close(fitted, log_partition):
    assert_right(fitted, log_partition)
    assert fitted.log_partition_std_error_ < 0.2


def bad_at_two(value):
    """log_correlated but for one value, at the third of the base draws that the functions are
    checked at.
    """

    third = BASE.sample(5, np.random.default_rng(0))[2]
    return lambda x: np.where(np.all(x == third, axis=1), value, log_correlated(x))


def log_and_grad(x):
    """Both at once."""
    return log_correlated(x), grad_correlated(x)


def scaled_gradient(factor):
    return lambda x: factor * grad_correlated(x)


# ---- refused
class OwnBase:
    """A standard normal with members that can be changed."""

    n_dimensions, normalised = 2, True
    center, scale = np.zeros(2), np.ones(2)

    def sample(self, n, rng):
        return rng.normal(size=(n, 2))

    def log_density(self, x):
        return -np.sum(x**2, axis=1) / 2 - np.log(2 * np.pi)


class Unnormalised(OwnBase):
    normalised = False


class WideDraws(OwnBase):
    def sample(self, n, rng):
        return rng.normal(size=(n, 3))


class NaNBase(OwnBase):
    def log_density(self, x):
        return np.full(len(x), np.nan)


class WrongGradient(OwnBase):
    def grad_log_density(self, x):
        return x


class NoDimensions(OwnBase):
    n_dimensions = 0
    center = scale = np.zeros(0)

    def sample(self, n, rng):
        return np.zeros((n, 0))


def test_a_kink_at_a_checked_draw_is_no_wrong_gradient():
    third = BASE.sample(5, np.random.default_rng(0))[2]
    kink = third + [3e-7, 1]  # within both widths of the differences

    def log_density(x):
        return -np.abs(x - kink).sum(axis=1)

    def grad(x):
        return -np.sign(x - kink)

    assert make(log_density, grad=grad).n_dimensions == 2
    with pytest.raises(ValueError, match="grad disagrees with log_density"):
        make(log_density, grad=lambda x: 1.001 * grad(x))


def shifted(x):
    return log_correlated(x) + 1, grad_correlated(x)


SQUARE, CAUCHY = Uniform([-1, -1], [1, 1]), StudentT([0, 0], 1, 1)
ONE_POINT = {"vectorized": False}
NO_RETURN = "a function without return gives None"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"log_density": None}, "log_density must be a function of points (n, d), got None"),
        ({"vectorized": np.array([True, False])}, "vectorized must be True or False"),
        ({"grad": "auto"}, "grad must be a function of points (n, d), got 'auto'"),
        ({"base": None}, "base must be a Gaussian, StudentT or Uniform, a frozen distribution"),
        ({"log_density": lambda x: -(x**2)}, "must give shape (5,) for as many points, got (5, 2)"),
        ({"log_density": lambda x: 0.0}, "got (); of a function of one point say GeometricPath("),
        ({"log_density": lambda x: None}, NO_RETURN),
        ({"log_density": lambda x: None, **ONE_POINT}, NO_RETURN),
        ({"log_density": lambda x: -np.sum(x**2, axis=0)}, "log_density takes one point (2,)"),
        ({"grad": lambda x: -x.sum(axis=1)}, "grad must give shape (5, 2) for as many points, got"),
        ({"grad": lambda x: np.full_like(x, np.nan)}, "grad is not finite at ["),
        ({"grad": scaled_gradient(1.001)}, "grad disagrees with log_density at ["),
        ({"grad": grad_correlated, "value_and_grad": log_and_grad}, "or value_and_grad, not both"),
        ({"value_and_grad": grad_correlated}, "must give a pair"),
        ({"value_and_grad": shifted}, "disagrees with log_density at"),
        ({"base": WrongGradient()}, "grad_base disagrees with the base's log_density at ["),
        ({"base": WideDraws()}, "base.sample(5, rng) must give shape (5, 2), got (5, 3)"),
        ({"base": NaNBase()}, "the base's log_density is nan at ["),
        ({"base": NoDimensions()}, "base must have at least one dimension"),
        ({"base": SQUARE}, "bounds must be the box of the Uniform base"),
        # of whose draws 3 % lie outside: log Z would be too high, without an alarm
        ({"base": CAUCHY, "bounds": (-40, 40)}, "base draws points outside"),
        ({"base": Mixture([SQUARE, CAUCHY]), "bounds": (-40, 40)}, "base draws points outside"),
        ({"base": Gaussian([0, 0], [[2, 1], [1, 2]]), "bounds": (0, 1)}, "needs a diagonal covar"),
        ({"bounds": (1, 0)}, "low must be below high, but is 1 >= 0 in column 0; swap them?"),
        ({"bounds": (np.nan, 0)}, "low must be free of NaN; replace them"),
        ({"bounds": ([0, 0, 0], 1)}, "bounds must be a pair (low, high) of numbers or arrays (2,)"),
        ({"ladder": [1, 0]}, "ladder must be strictly increasing"),
    ],
)
def test_what_can_not_be_used_is_refused(options, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        make(**options)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_value_that_is_no_log_density_is_shown_with_its_point(value):
    point = BASE.sample(5, np.random.default_rng(0))[2]
    shown = re.escape(np.array2string(point, precision=4, separator=", "))
    with pytest.raises(ValueError, match=f"log_density is {value} at {shown}: it must be a number"):
        make(bad_at_two(value))
    make(bad_at_two(-np.inf))


def test_a_base_that_is_not_normalised_is_refused_by_estimators():
    path = make(base=Unnormalised())
    assert path.base_log_partition is None
    with pytest.raises(ValueError, match="AIS needs a base with .*base whose `normalised` is true"):
        AIS(10, 10).fit(path)


def test_a_base_without_mass_where_the_target_has_is_found_by_the_run():
    path = make(lambda x: -np.sum(x**2, axis=1) / 2, base=[stats.expon(), stats.norm()])
    with pytest.raises(ValueError, match=r"density 0 at \[-.*\], where .*: give a base"):
        AIS(20, 20, transition=RandomWalk(), random_state=0).fit(path)


# ---- what is accepted
def test_log_f_is_geometric():
    path = make(ladder=LADDER)
    state = path.sample_base(7, Stream(stream_key(0)))
    base, target = BASE.log_density(state.position), log_correlated(state.position)
    expected = np.outer(base, 1 - LADDER) + np.outer(target, LADDER)
    np.testing.assert_allclose(path.log_f_ladder(state), expected, rtol=1e-12)
    np.testing.assert_array_equal(path.summary(state), state.position)
    check_path(path)


def test_walls_have_density_0_above_level_0():
    path = PATHS["wall"]
    state = path.at(np.array([[-3.0, -3.0], [1.0, 1.0]]))
    log_f = path.log_f_ladder(state)
    assert np.isfinite(log_f[:, 0]).all()
    assert np.isfinite(log_f[1]).all()
    assert np.all(log_f[0, 1:] == -np.inf)
    np.testing.assert_array_equal(path.log_f(state, np.array([0, 5])), [log_f[0, 0], log_f[1, 5]])
    np.testing.assert_array_equal(path.gradients(state)[0][0], 0)


def by_coordinates(x):
    a, b = PRECISION[0, 0], PRECISION[0, 1]
    return -(a * x[..., 0] * x[..., 0] + a * x[..., 1] * x[..., 1]) / 2 - b * x[..., 0] * x[..., 1]


def grad_by_coordinates(x):
    a, b = PRECISION[0, 0], PRECISION[0, 1]
    return -np.stack([a * x[..., 0] + b * x[..., 1], a * x[..., 1] + b * x[..., 0]], axis=-1)


def grad_laplace_base(x):
    return -np.sign(x)


def test_functions_of_one_point_give_the_same_bits():
    options = {"grad": grad_by_coordinates, "grad_base": grad_laplace_base}
    options["base"] = [stats.laplace()] * 2
    paths = (make(by_coordinates, vectorized=given, **options) for given in (True, False))
    ais = AIS(50, 20, transition=HMC(), random_state=0)
    assert len({ais.fit(path).log_partition_ for path in paths}) == 1


def test_a_prior_as_base_tempers_the_likelihood_alone():
    """Normal prior and likelihood: the evidence is known."""
    prior, data = Gaussian([0.0, 0.0], [1.0, 4.0]), np.array([1.5, -2.0])

    def log_likelihood(x):
        return stats.norm.logpdf(data, x, 0.5).sum(axis=1)

    def log_posterior(x):
        return prior.log_density(x) + log_likelihood(x)

    def grad(x):
        return prior.grad_log_density(x) + (data - x) / 0.25

    path = GeometricPath(log_posterior, grad=grad, base=prior)
    state = path.sample_base(5, Stream(stream_key(0)))
    np.testing.assert_allclose(state.gain, log_likelihood(state.position))
    evidence = stats.norm.logpdf(data, 0, np.sqrt([1.25, 4.25])).sum()
    assert_close(HAIS(40, 150, random_state=0).fit(path), evidence)


# ---- walls and boxes
LOG_Z_WALL = float(np.log(2 * np.pi) + log_ndtr(0.5 / 2**0.5))


@pytest.mark.parametrize("transition", [HMC(), Slice(2.0)], ids=str)
def test_half_a_space_is_right(transition):
    fitted = AIS(60, 60, ladder="adaptive", transition=transition, random_state=0)
    assert_close(fitted.fit(PATHS["wall"]), LOG_Z_WALL)
    assert np.any(fitted.result_.diagnostics["log_weights"] == -np.inf)


def log_far(x):
    return np.where(x[:, 0] > 40, -np.sum(x**2, axis=1), -np.inf)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (HAIS(20, 20, random_state=0), "none of 64 draws of the base .* volume .integers"),
        (AIS(20, 20, transition=RandomWalk(1.0)), "has weight 0: the base draws no point where"),
        (ParallelTempering(2, 3, 32, transition=RandomWalk(1.0)), "draws hardly any point where"),
    ],
)
def test_no_base_draw_where_the_target_has_mass_is_an_error(estimator, message):
    path = make(log_far, grad=lambda x: -2 * x)
    with pytest.raises(ValueError, match=message):
        estimator.fit(path)


X = np.linspace(-1, 1, 20_001)
Y = np.linspace(0, 60, 600_001)


@pytest.mark.parametrize(
    ("name", "marginal"),
    [
        ("box", np.exp(X) * 2 * np.sinc(2j * X / np.pi).real),
        ("half-open box", np.exp(-Y) * np.sqrt(2 * np.pi / (1 + 2 * Y))),
    ],
)
@pytest.mark.parametrize("transition", [HMC(), RandomWalk(), Slice()], ids=str)
def test_boxes_are_right(name, marginal, transition):
    ais = AIS(40, 50, ladder="adaptive", transition=transition, random_state=0).fit(PATHS[name])
    assert_close(ais, np.log(np.trapezoid(marginal, dx=1e-4)))


def test_a_gaussian_base_is_truncated_to_the_box():
    half = {"base": Gaussian(1.0, 4.0), "bounds": (0, np.inf)}
    path = GeometricPath(lambda x: -x[:, 0], grad=lambda x: -np.ones_like(x), **half)
    assert np.all(path.sample_base(100, Stream(stream_key(0))).position >= 0)
    assert_close(HAIS(40, 60, random_state=0).fit(path), 0.0)
    same = GeometricPath(lambda x: -np.abs(x[:, 0]), base=Gaussian(1, 4), bounds=(-np.inf, np.inf))
    one = np.ones((1, 1))
    np.testing.assert_allclose(same.at(one).log_base, Gaussian(1.0, 4.0).log_density(one))


# ---- functions with side effects, and random ones
def centred_in_place(x):
    x -= 0.5
    return -np.sum(x**2, axis=1) / 2


def slope_in_place(x):
    x -= 0.5
    x *= -1
    return x


def centred(x):
    return -np.sum((x - 0.5) ** 2, axis=1) / 2


def slope(x):
    return -(x - 0.5)


def test_functions_may_change_their_argument():
    paths = make(centred, grad=slope), make(centred_in_place, grad=slope_in_place)
    fits = [HAIS(n_temperatures=30, n_chains=20, random_state=0).fit(path) for path in paths]
    assert fits[0].log_partition_ == fits[1].log_partition_
    np.testing.assert_array_equal(fits[0].run_.forward, fits[1].run_.forward)


def test_compiled_functions_must_not_change_their_argument():
    @numba.njit
    def moving(x):
        x[:, 0] -= 0.5
        return x[:, 0]

    with pytest.raises(ValueError, match="log_density changes the points"):
        make(moving)


def test_a_random_log_density_is_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="log_density is random: it gave"):
        make(lambda x: log_correlated(x) + rng.standard_normal(len(x)))
    # Sums of float32 in another order are not random.
    make(lambda x: log_correlated(x) * (1 + 1e-7 * rng.standard_normal(len(x))))


@pytest.mark.parametrize("extreme", [np.max, np.min])
def test_a_log_density_that_mixes_the_points_of_a_call_is_refused(extreme):
    with pytest.raises(ValueError, match="log_density depends on the other points of a call"):
        make(lambda x: log_correlated(x) / (1 + abs(extreme(x))))
    # Other sizes of calls may have another rounding, in float32 of an accelerator up to 1e-3.
    make(lambda x: log_correlated(x) * (1 + 1e-5 * len(x)))


# ---- constants and scales beyond those of weights
def test_a_density_too_steep_to_be_tempered_is_refused_at_once():
    calls = []

    def log_density(x):
        calls.append(len(x))
        return -1e300 * np.sum(x**2, axis=1)

    with pytest.raises(ValueError, match="too large to be tempered"):
        AIS(n_temperatures=50, random_state=0).fit(make(log_density))
    assert len(calls) < 1000


@pytest.mark.parametrize("bounds", [None, (-1.0, np.inf)])
def test_value_and_grad_gives_the_same_bits(bounds):
    estimator = HAIS(n_temperatures=100, n_chains=50, random_state=0)
    apart = estimator.fit(make(grad=grad_correlated, bounds=bounds)).log_partition_
    path = make(value_and_grad=log_and_grad, bounds=bounds)
    together = estimator.fit(path).log_partition_
    assert together == apart
    assert estimator.fit(pickle.loads(pickle.dumps(path))).log_partition_ == apart
    assert "log_correlated, log_and_grad" in repr(path)
    assert path.with_base(BASE).value_and_grad is log_and_grad


def test_hmc_calls_value_and_grad_alone():
    calls = {"value": 0, "both": 0}

    def value(x):
        calls["value"] += 1
        return log_correlated(x)

    def both(x):
        calls["both"] += 1
        return log_and_grad(x)

    path = make(value, value_and_grad=both)
    before = dict(calls)
    state = path.at(np.zeros((3, 2)))
    path.gradients(state)
    assert calls == {"value": before["value"], "both": before["both"] + 1}


def test_hmc_goes_straight_on_where_the_gradient_is_not_finite():
    """4.8 standard errors as above."""

    def grad(x):
        return np.where(np.abs(x) > 3, np.inf, grad_correlated(x))

    path = make(grad=grad, base=Gaussian([0.0, 0.0], 1.5))
    fitted = HAIS(n_temperatures=200, random_state=0).fit(path)
    assert_close(fitted, LOG_Z)
