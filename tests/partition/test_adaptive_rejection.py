"""AdaptiveRejection: bounds that enclose known values, exact draws, shapes that it can't take."""

import numpy as np
import pytest
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from sklpf import Gaussian, GeometricPath, Uniform
from sklpf.partition import AdaptiveRejection


def path_of(log_density, base=None, bounds=None):
    return GeometricPath(lambda x: log_density(x[:, 0]), base=base or Gaussian(0, 1), bounds=bounds)


def expon(x):
    return np.where(x >= 0, -x, -np.inf)


CASES = {  # a path, and the law of its target with log Z
    "normal": (path_of(lambda x: -((x - 3) ** 2) / 8), stats.norm(3, 2), np.log(8 * np.pi) / 2),
    "narrow and far": (
        path_of(lambda x: -((x - 1000) ** 2) / 2e-6),
        stats.norm(1000, 1e-3),
        np.log(2 * np.pi * 1e-6) / 2,
    ),
    "laplace": (path_of(lambda x: -np.abs(x - 0.3)), stats.laplace(0.3), np.log(2)),
    "a wall that nobody named": (path_of(expon, Gaussian(1.0, 1.0)), stats.expon(), 0.0),
    "gumbel": (path_of(stats.gumbel_r.logpdf), stats.gumbel_r(), 0.0),
    "large constant": (path_of(lambda x: stats.logistic.logpdf(x) + 1e4), stats.logistic(), 1e4),
    "half open": (path_of(stats.gamma(3).logpdf, Gaussian(3, 4), (0, np.inf)), stats.gamma(3), 0.0),
    "box": (path_of(stats.beta(2, 3).logpdf, Uniform(0, 1), (0, 1)), stats.beta(2, 3), 0.0),
    "flat": (path_of(lambda x: 0 * x, Uniform(-1, 3), (-1, 3)), stats.uniform(-1, 4), np.log(4)),
    "steep": (path_of(lambda x: 50 * x, Uniform(0, 1), (0, 1)), None, np.log(np.expm1(50) / 50)),
}


@pytest.mark.parametrize("tol", [1e-6, 0.1])
@pytest.mark.parametrize("case", CASES)
def test_the_bounds_enclose_log_z(case, tol):
    path, _, log_partition = CASES[case]
    fitted = AdaptiveRejection(tol).fit(path)
    low, high = fitted.log_partition_interval_
    rounding = 1e-12 * max(1, abs(log_partition))
    assert low - rounding <= log_partition <= high + rounding
    assert high - low < tol
    assert fitted.converged_
    assert fitted.result_.statement == "enclosed"
    assert fitted.result_.interval(0.5) == (low, high)


@pytest.mark.parametrize("case", [name for name, (_, law, _) in CASES.items() if law is not None])
def test_draws_are_from_the_target(case):
    """9 laws at p > 1e-4: a false alarm in 9e-4."""
    path, law, _ = CASES[case]
    state = AdaptiveRejection().sample(path, 10_000, np.random.default_rng(0))
    assert state.position.shape == (10_000, 1)
    assert stats.kstest(state.position[:, 0], law.cdf).pvalue > 1e-4


@pytest.mark.parametrize(
    ("log_density", "words"),
    [
        (lambda x: -np.log1p(x**2), "not log-concave"),
        (stats.t(30).logpdf, "not log-concave: at"),
        (lambda x: np.logaddexp(-(x**2) / 2, -((x - 5) ** 2) / 2), "not log-concave"),
        (lambda x: np.where(np.abs(x) < 0.5, -np.inf, -(x**2)), "not log-concave: it is -inf at"),
        (lambda x: 0 * x, "not normalisable"),
        (lambda x: x, "not normalisable"),
        (lambda x: -((x - 1e6) ** 2) * 1e300, "is -inf within 8 scales|it must be a number"),
    ],
)
def test_other_shapes_are_refused_in_words(log_density, words):
    with np.errstate(over="ignore"), pytest.raises(ValueError, match=words):
        AdaptiveRejection().fit(path_of(log_density))


def test_a_dent_is_refused_even_where_the_first_points_lie_on_a_line():
    def dented(x):
        return -(x**2) / 2 - 0.5 * (np.abs(x - 1.03) < 0.2)

    with pytest.raises(ValueError, match="not log-concave"):
        AdaptiveRejection().fit(path_of(dented))


def test_two_dimensions_are_refused():
    plane = GeometricPath(lambda x: -np.sum(x**2, axis=1), base=Gaussian(np.zeros(2), 1.0))
    with pytest.raises(ValueError, match="one dimension, got 2"):
        AdaptiveRejection().fit(plane)


def test_a_tolerance_out_of_reach_is_not_converged():
    with pytest.warns(ConvergenceWarning, match="raise tol"):
        assert not AdaptiveRejection(1e-15).fit(CASES["gumbel"][0]).converged_
