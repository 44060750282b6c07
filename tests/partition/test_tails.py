"""Tails are compared before anything is sampled: what is flagged, what is refused, and
what passes.
"""

import functools
import re

import numpy as np
import pytest
from convergence import quietly
from scipy import stats

from sklpf import AIS, BDMC, RTS, Gaussian, GeometricPath, ParallelTempering, StudentT, Uniform
from sklpf._utils.random import seeded
from sklpf.partition.checks.tails import tail_alarms
from sklpf.transitions import RandomWalk

SEEDS = range(2)
HEAVY = "the target's tails are heavier than the base's"


def tails(path, seed=0):
    return tuple(map(str, tail_alarms(path, seeded(seed).of("tails").key)))


# ---- densities
def gauss(d, variance=4.0):
    return Gaussian(np.zeros(d), variance)


@functools.cache
def rotation(d):
    return np.linalg.qr(np.random.default_rng(d).normal(size=(d, d)))[0]


def normal(d, condition):
    """Variances from 1 to 1 / condition in other directions than those of the coordinates."""
    precision = (rotation(d) * np.logspace(0, np.log10(condition), d)) @ rotation(d).T
    return lambda x: -0.5 * np.sum((x @ precision) * x, axis=1)


def experts(d, power, rotated=False):
    """A product of d Student t experts, of 2 * power - 1 degrees of freedom each."""
    power, rows = np.broadcast_to(power, (d,)), rotation(d) if rotated else np.eye(d)
    return lambda x: -np.log1p((x @ rows) ** 2) @ power


def student(d, df):
    return lambda x: -0.5 * (df + d) * np.log1p(np.sum(x**2, axis=1))


def squares(x):
    return np.sum(x**2, axis=1)


def matching(d, power, rotated):
    """Experts with a base of as many degrees of freedom as their tails, but at most 8."""
    base = StudentT(np.zeros(d), 1.0, min(8.0, 2 * np.min(power) - 1))
    return GeometricPath(experts(d, power, rotated), base=base)


def funnel(x):
    v = x[:, 0]
    n_others = x.shape[1] - 1
    return -0.5 * (v**2 + np.sum(x[:, 1:] ** 2, axis=1) * np.exp(-v) + n_others * v)


RNG = np.random.default_rng(0)
X = RNG.normal(size=(100, 8))
LABELS = RNG.random(100) < 1 / (1 + np.exp(-X.sum(axis=1)))
PRIOR = gauss(8, 9.0)
ORTHANT = [stats.gamma(2)] * 10


def logistic(x):
    return -np.logaddexp(0, np.where(LABELS, -1, 1) * (x @ X.T)).sum(axis=1)


def naive_logistic(x):
    return -np.log1p(np.exp(np.where(LABELS, -1, 1) * (x @ X.T))).sum(axis=1)  # -inf far out


def in_orthant(log_density):
    """The same, and 0 where a coordinate is negative, without that bounds were declared."""
    return lambda x: np.where(np.all(x > 0, axis=1), log_density(np.abs(x)), -np.inf)


Path = GeometricPath
LIGHT = {
    **{f"normal {d}": Path(normal(d, 1e4), base=gauss(d)) for d in (2, 100)},
    "wide": Path(lambda x: -squares(x) / 2e6, base=gauss(36)),
    "far": Path(lambda x: -squares(x - 100), base=gauss(1)),
    "Laplace": Path(lambda x: -np.abs(x).sum(axis=1), base=gauss(100)),
    "funnel": Path(funnel, base=gauss(6)),
    "logistic, overflowing": Path(lambda x: naive_logistic(x) + PRIOR.log_density(x), base=PRIOR),
    "logistic, Cauchy prior": Path(
        lambda x: logistic(x) + stats.cauchy.logpdf(x).sum(axis=1), base=[stats.cauchy()] * 8
    ),
    "Poisson": Path(lambda x: np.sum(3 * (x @ X.T) - np.exp(x @ X.T), axis=1), base=gauss(8)),
    "ball": Path(lambda x: np.where(squares(x) < 5, 0.0, -np.inf), base=gauss(5)),
    "normal, t base": Path(lambda x: -squares(x - 1), base=StudentT(np.zeros(5), 1.0, 3)),
    "stretched exponential": Path(lambda x: -np.sqrt(np.abs(x)).sum(axis=1), base=gauss(3)),
    "experts, t base": matching(36, 1.0, True),
    "t, nearly the same t": Path(student(10, 2), base=StudentT(np.zeros(10), 1.0, 2.2)),
}
FLAGGED = {
    "experts": Path(experts(10, 1.0), base=gauss(10)),
    "light experts": Path(experts(36, 2.0), base=gauss(36)),
    "rotated experts": Path(experts(10, 5.0, True), base=gauss(10)),
    **{f"t {d} {df}": Path(student(d, df), base=gauss(d)) for d, df in [(1, 1), (2, 3), (36, 3)]},
    **{f"Cauchy, wide or narrow {a}": Path(student(1, 1), base=gauss(1, a)) for a in (1e-6, 1e6)},
    "t, lighter t": Path(student(2, 1), base=StudentT(np.zeros(2), 1.0, 1.5)),
    "one expert": Path(lambda x: -2 * np.log1p(x[:, 0] ** 2) - squares(x[:, 1:]), base=gauss(100)),
    "half Cauchy": Path(experts(10, 1.0), base=gauss(10), bounds=(0, np.inf)),
    "Lomax": Path(in_orthant(lambda x: -3 * np.log1p(x).sum(axis=1)), base=ORTHANT),
}


def rising(power, free=False):
    """x^power, and exp(-x) beside it where x may be any positive number; no bounds are declared."""
    if free:
        return in_orthant(lambda x: np.sum(power * np.log(x) - x, axis=1))
    return lambda x: power * np.sum(np.log(x), axis=1)


UNIT = {"base": Uniform(np.zeros(2), np.ones(2)), "bounds": (0, 1)}
POLES = {
    **{f"x^{power}": Path(rising(power), **UNIT) for power in (-0.95, -0.67)},
    "gamma(.2), bounds": Path(
        lambda x: rising(-0.8)(x) - x.sum(axis=1), base=gauss(20), bounds=(0, np.inf)
    ),
    "x^-.95, a base with x^-.5": Path(rising(-0.95), base=[stats.beta(0.5, 1)] * 2, bounds=(0, 1)),
    "tilted": Path(
        lambda x: (
            np.where(x.sum(axis=1) > 0, -0.8 * np.log(np.abs(x.sum(axis=1))), -np.inf) - squares(x)
        ),
        base=Gaussian(np.ones(2), 4.0),
    ),
}
NO_POLES = {
    **{f"x^{power}": Path(rising(power), **UNIT) for power in (-0.6, 2.0)},
    "gamma(.5)": Path(rising(-0.5, free=True), base=Gaussian(np.ones(3), 9.0)),
    "narrow, at a side": Path(lambda x: -1e6 * x.sum(axis=1), **UNIT),
    "a base with x^-.8": Path(lambda x: 0 * x[:, 0], base=[stats.beta(0.2, 1)] * 2, bounds=(0, 1)),
    "log": Path(lambda x: np.sum(np.log1p(-np.log(x)), axis=1), **UNIT),
}


@pytest.mark.parametrize("path", [*LIGHT.values(), *NO_POLES.values()], ids=[*LIGHT, *NO_POLES])
def test_tails_that_are_light_and_boundaries_without_a_pole_pass(path):
    assert [tails(path, seed) for seed in SEEDS] == [()] * len(SEEDS)


@pytest.mark.parametrize("name", FLAGGED)
def test_tails_that_are_heavier_are_named(name):
    for seed in SEEDS:
        (sentence,) = tails(FLAGGED[name], seed)
        assert sentence.startswith(HEAVY)
        bounded = FLAGGED[name].bounds.has_sides
        assert ("such as lomax" if bounded else "give a StudentT base of") in sentence


@pytest.mark.parametrize("name", POLES)
def test_poles_at_the_boundary_of_the_support_are_named(name):
    """Runs that converged on x^(a - 1), a from .1 to .3, covered in 52 of 79 cases."""
    for seed in SEEDS:
        (sentence,) = tails(POLES[name], seed)
        assert sentence.startswith("the target has a pole at the boundary of its support, where x[")


def test_within_bounds_a_remedy_is_one_that_can_be_a_base_there():
    def half_line(base):
        return GeometricPath(lambda x: -3 * np.log1p(x[:, 0]), base=base, bounds=(0, np.inf))

    (sentence,) = tails(half_line(Gaussian([0.0], 1.0)))
    assert "lomax(c, loc=low) with c at most 2" in sentence
    for c in (1, 2):
        path = half_line([stats.lomax(c)])
        assert tails(path) == ()
        ais = AIS(random_state=0).fit(path)
        assert ais.converged_
        error = max(ais.log_partition_std_error_, 1e-12)
        assert abs(ais.log_partition_ - np.log(0.5)) < 4.5 * error  # 7e-6


CENTER = [0.06, -0.07, 0.32, 0.05, -0.27, 0.18]


@pytest.mark.parametrize(
    ("d", "function"),
    [
        (4, lambda x: np.sum(0.5 * x - np.exp(np.clip(x, -500, 500)), axis=1)),
        (4, lambda x: np.where(np.all(np.abs(x - 2) < 3, axis=1), 0.0, -1e10)),
        # of which 0.2 % of the base's draws are above the floor
        (6, lambda x: np.where(np.sum((x - CENTER) ** 2, axis=1) < 1.4**2, 0.0, -1e10)),
    ],
)
def test_a_floor_that_stands_for_zero_is_no_tail(d, function):
    for seed in SEEDS:
        assert tails(GeometricPath(function, base=gauss(d)), seed) == ()


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (FLAGGED["t 1 1"], r"falls only as r\^-2 .* at most 1 degrees"),
        (FLAGGED["t 36 3"], r"falls only as r\^-39 .* at most 3 degrees"),
        (FLAGGED["light experts"], r"falls only as r\^-4 .* at most 3 degrees"),  # along an axis
        (FLAGGED["rotated experts"], r"only as r\^-100 .* at most 8 degrees"),  # 90 on no ridge
        (
            GeometricPath(lambda x: -(x[:, 0] ** 2) * (1 + x[:, 1] ** 2), base=gauss(2)),
            r"is flat .* of few degrees",
        ),
    ],
)
def test_the_exponent_is_that_of_the_heaviest_ray(path, words):
    assert re.search(words, tails(path)[0])


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (
            Path(lambda x: -np.log1p(np.sqrt(squares(x))), base=gauss(2)),
            r"r\^-1 .* in 2 dimensions it must fall faster than r\^-2;",
        ),
        (
            Path(lambda x: 0 * x[:, 0], base=gauss(1)),
            r"is flat .* in 1 dimension it must .* or -inf where a constant",
        ),
        (Path(squares, base=gauss(36)), r"grows .* in 36 dimensions"),
        (
            Path(lambda x: x[:, 0], base=gauss(2)),
            "does not depend on column 1, so that it has no integral",
        ),
        (
            Path(lambda x: x[:, 0], base=gauss(36)),
            "does not depend on 35 columns, such as 1, so that",
        ),
        (
            Path(lambda x: 0 * x[:, 0], base=gauss(3), bounds=(0, [1, np.inf, np.inf])),
            r"in 2 open dimensions it must fall faster than r\^-2;",
        ),
        (Path(student(5, 0), base=StudentT(np.zeros(5), 1.0, 1)), "not normalisable"),
        (Path(experts(10, 0.45, True), base=gauss(10)), "not normalisable: far out"),
    ],
)
def test_a_refusal_says_what_is_missing(path, words):
    for seed in SEEDS:
        with pytest.raises(ValueError, match=words):
            tails(path, seed)


# ---- how functions are called
def test_points_stay_within_bounds():
    low, high = np.array([0.0, -np.inf, -np.inf, -1.0]), np.array([np.inf, 2.0, np.inf, 1.0])
    calls = []

    def log_density(x):
        calls.append(np.array(x))
        return -squares(x)

    path = GeometricPath(log_density, base=gauss(4), bounds=(low, high))
    calls.clear()
    assert tails(path) == ()
    points = np.concatenate(calls)
    assert np.all((points >= low) & (points <= high))
    reached = np.abs(points).max(axis=0)
    assert np.all(reached[:3] > 1e8)  # the ray along each open side


@pytest.mark.parametrize("far", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("radius", [30.0, 1e6])
def test_values_that_are_no_numbers_far_out_are_left_out(far, radius):
    def of(log_density):
        return Path(lambda x: np.where(squares(x) > radius**2, far, log_density(x)), base=gauss(3))

    assert tails(of(lambda x: -squares(x))) == ()
    # a density that ends has no tail; up to 30 is too short for one
    heavy = radius > 1e3 and far != -np.inf
    assert bool(tails(of(student(3, 1)))) == heavy


class OutOfRangeError(Exception):
    """What a user's simulator may raise: none of NumPy's errors."""


def test_a_density_that_raises_far_out_ends_no_fit():
    """Beyond 1e4 scales, where only checks look: they go on, and the result counts it."""

    def log_density(x):
        if np.abs(x).max() > 1e4:
            raise OutOfRangeError("the simulator takes no such points")
        return -0.5 * squares(x)

    path = GeometricPath(log_density, base=gauss(2, 1.5))
    assert tails(path) == ()
    result = fitted(AIS(20, 20, random_state=0), path).result_
    assert result.diagnostics["failed_evaluations"] > 0

    def nowhere(x):
        raise OutOfRangeError("the simulator is down")

    path.log_density = nowhere
    with pytest.raises(OutOfRangeError, match="the simulator is down"):
        fitted(AIS(20, 20, random_state=0), path)  # chains need numbers


def test_axes_of_the_base_are_tried():
    """A single heavy direction, which random rays never meet."""
    aligned = Gaussian(np.zeros(10), (rotation(10) * np.linspace(1, 2, 10)) @ rotation(10).T)

    def one_heavy(x):
        u = x @ aligned.axes
        return -2 * np.log1p(u[:, 3] ** 2) - squares(np.delete(u, 3, axis=1))

    assert "falls only as r^-4 " in tails(GeometricPath(one_heavy, base=aligned))[0]
    assert tails(GeometricPath(one_heavy, base=gauss(10))) == ()  # no ray meets it


# ---- estimators
ESTIMATORS = {
    "AIS": AIS(20, 20, random_state=0),
    "BDMC": BDMC(20, 20, random_state=0),
    "RTS": RTS(20, 8, n_sweeps=100, random_state=0),
    "ParallelTempering": ParallelTempering(4, n_sweeps=64, random_state=0),
}


def fitted(estimator, path):
    estimator.set_params(transition=RandomWalk(step_size=1.0))
    if isinstance(estimator, BDMC):
        estimator.set_params(starts=path.at(np.random.default_rng(0).normal(size=(20, 2))))
    return quietly(estimator, path)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_refuses_before_it_samples(name, monkeypatch):
    def sample(self, path, seed):
        raise AssertionError

    monkeypatch.setattr(type(ESTIMATORS[name]), "_sample", sample)
    with pytest.raises(ValueError, match="not normalisable"):
        fitted(ESTIMATORS[name], Path(lambda x: -np.log1p(np.sqrt(squares(x))), base=gauss(2)))


# ---- rays that rise first, and what is no number
def regression(n, seed=0):
    """Two coefficients with a flat prior and log sigma: along the Laplace approximation's axes the
    density rises from 1e9 to 1e10 scales, since they are a little tilted towards log sigma.
    """
    rng = np.random.default_rng(seed)
    A = np.c_[np.ones(n), rng.normal(size=n)]
    y = A @ rng.normal(size=2) + 0.5 * rng.normal(size=n)

    def log_density(x):
        squares = np.sum((y - x[:, :2] @ A.T) ** 2, axis=1)
        return -0.5 * squares * np.exp(-2 * x[:, 2]) - n * x[:, 2] - x[:, 2] ** 2 / 8

    return log_density


@pytest.mark.parametrize("seed", range(3))
def test_a_ray_that_rises_first_is_no_tail(seed):
    log_density = regression(20)
    base = Gaussian.at_mode(log_density, np.zeros(3))
    assert tails(GeometricPath(log_density, base=base), seed) == ()


def test_nan_at_many_proposals_is_an_alarm():
    def log_density(x):
        return np.where(x[:, 0] < 1, -0.5 * squares(x), np.nan)

    path = GeometricPath(log_density, base=Gaussian([-2.0, 0.0], 1.0))
    assert re.search("log_density is NaN or fails at .* % of the points", " ".join(tails(path)))
