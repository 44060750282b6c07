"""A likelihood with a prior transform: its evidence and errors."""

from types import SimpleNamespace

import numpy as np
import pytest
from convergence import assert_right, quietly
from scipy import stats
from scipy.special import comb, ndtri
from sklearn.exceptions import ConvergenceWarning

from sklpf import HAIS, SMC, BridgeSampling, ParallelTempering, UntilTrusted
from sklpf.interop import from_prior_transform

Y = np.array([1.2, 0.4, 2.1, 1.5, 0.9])
TAU, SIGMA = 2.0, 0.7


def transform(u):
    """A mean ~ N(0, TAU^2)."""
    return TAU * ndtri(u)


def log_likelihood(mean):
    """Of one mean, or of each of many."""
    return stats.norm.logpdf(Y, mean, SIGMA).sum(axis=-1)


def of_means(**options):
    return from_prior_transform(log_likelihood, transform, 1, vectorized=True, **options)


COVARIANCE = SIGMA**2 * np.eye(5) + TAU**2 * np.ones((5, 5))
EVIDENCE = stats.multivariate_normal(np.zeros(5), COVARIANCE).logpdf(Y)


def test_evidence_of_a_normal_mean():
    """4 standard errors: a false alarm in 1e4, or few more by Student's t."""
    estimator = ParallelTempering(n_sweeps=512, random_state=0).fit(of_means())
    assert estimator.converged_
    assert abs(estimator.log_partition_ - EVIDENCE) < 4 * estimator.log_partition_std_error_ < 0.2


def coin_transform(u):
    u *= 1.0  # dynesty's users change what they are given
    return np.array([u[0], 4 * u[1]])


def coin_likelihood(x):
    """5 heads of 20, and a rate that data say nothing about."""
    return np.log(comb(20, 5)) + 5 * np.log(x[0]) + 15 * np.log1p(-x[0])


def test_a_uniform_prior_has_no_walls():
    path = from_prior_transform(coin_likelihood, coin_transform, 2, names=["p", "rate"])
    smc = SMC(n_temperatures=20, random_state=0).fit(path)
    truth = -np.log(21)  # the beta-binomial with a uniform prior
    assert abs(smc.log_partition_ - truth) < 4 * smc.log_partition_std_error_ < 0.3
    parameters = path.constrain(smc.result_.draws.points)
    assert list(parameters) == ["p", "rate"]
    assert np.all((parameters["p"] > 0) & (parameters["p"] < 1))
    weights = np.exp(smc.result_.draws.log_weights)
    mean = weights @ parameters["p"] / weights.sum()
    assert mean == pytest.approx(6 / 22, abs=0.03)
    assert parameters["rate"].max() > 3


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"log_likelihood": 3}, TypeError, "log_likelihood must be a function"),
        ({"n_dimensions": 0}, ValueError, "an integer of at least 1"),
        ({"names": ["a", "b"]}, ValueError, "names must name each of the 1 parameters"),
        ({"names": 5}, TypeError, "names must be a sequence of str"),
        ({"log_likelihood": lambda x: x}, ValueError, "log_likelihood must give shape"),
        ({"transform": lambda u: 0.5}, ValueError, "parameters of each point"),
        ({"log_likelihood": lambda x: np.nan}, ValueError, "^log_likelihood, .* a number or -inf"),
        ({"log_likelihood": lambda x: None}, ValueError, "without return gives None"),
        ({"log_likelihood": lambda x: x[1]}, ValueError, "fails at 1 numbers a point, with n_dim"),
        ({"transform": lambda u: [u[0], u[1]]}, ValueError, "transform fails at 1 numbers"),
        ({"log_likelihood": lambda x: np.sum(x, axis=1)}, ValueError, "takes points .* vectorized"),
        ({"transform": lambda u: u[:, :1]}, ValueError, "transform takes points .* vectorized"),
        (
            {"n_dimensions": 3, "log_likelihood": lambda x: x[0] + x[2], "vectorized": True},
            ValueError,
            "log_likelihood takes one point: say vectorized=False",
        ),
    ],
)
def test_errors(options, error, sentence):
    given = {"log_likelihood": log_likelihood, "transform": transform, "n_dimensions": 1} | options
    with pytest.raises(error, match=sentence):
        from_prior_transform(**given)


@pytest.mark.parametrize("vectorized", [False, True])
def test_hais_with_a_gradient_by_the_unit_cube(vectorized):
    """y ~ N(x, 0.5^2) in 10 dimensions, x ~ N(0, 2^2)."""
    d = 10
    y = np.random.default_rng(0).normal(size=d)

    def log_likelihood(x):
        return -2 * np.sum((y - x) ** 2, axis=-1) - d * np.log(0.5 * np.sqrt(2 * np.pi))

    def grad(u):
        z = ndtri(u)
        slope = 4 * (y - 2 * z)
        return slope * 2 * np.sqrt(2 * np.pi) * np.exp(z**2 / 2)

    def transform(u):
        return 2 * ndtri(u)

    path = from_prior_transform(log_likelihood, transform, d, grad=grad, vectorized=vectorized)
    hais = HAIS(50, 100, random_state=0).fit(path)
    truth = stats.norm.logpdf(y, 0, np.sqrt(4.25)).sum()
    assert abs(hais.log_partition_ - truth) < 4.5 * hais.log_partition_std_error_  # 5e-5


def test_wrong_and_missing_gradients_are_refused():
    with pytest.raises(ValueError, match="grad"):
        from_prior_transform(lambda x: -np.sum(x**2), lambda u: u, 2, grad=lambda u: 2 * u)
    with pytest.raises(TypeError, match="give grad to from_prior_transform, or choose Adaptive"):
        HAIS().fit(of_means())


def test_a_likelihood_that_is_nan_in_half_of_the_posterior_is_an_alarm():
    def log_likelihood(x):
        inside = np.abs(x - 3).max(axis=1) < 0.5
        return np.where(inside & (x[:, 0] > 3), np.nan, -50 * np.sum((x - 3) ** 2, axis=1))

    path = from_prior_transform(log_likelihood, lambda u: 20 * u - 10, 2, vectorized=True)
    with pytest.warns(match="log_density is NaN or fails"):
        SMC(20, 20, random_state=0).fit(path)


@pytest.mark.parametrize(("side", "is_far"), [(-7, False), (7, False), (12, True)])
def test_a_posterior_beyond_all_uniform_numbers_is_an_alarm(side, is_far):
    """4 standard errors: one false alarm in 1e4, or few more by Student's t."""
    farthest = []

    def log_likelihood(x):
        farthest.append(np.abs(x).max())
        return stats.norm.logpdf(x[:, 0], side, 0.5)

    path = from_prior_transform(log_likelihood, ndtri, 1, vectorized=True)
    found = quietly(UntilTrusted(random_state=0, max_evaluations=20_000), path).result_
    assert max(farthest) < 8.3  # u is 1 from there on, and simulators may not come back
    if is_far:
        assert "widen a prior" in found.reasons[0]
        return
    assert found.converged
    error = found.log_partition - stats.norm.logpdf(side, 0, np.sqrt(1.25))
    assert abs(error) < 4 * found.std_error < 0.2


def nested(n=30_000):
    """Points of the unit cube with their weights, as nested samplers keep them."""
    unit = np.random.default_rng(2).random((n, 1))
    parameters = transform(unit)
    log_weights = log_likelihood(parameters)
    weights = np.exp(log_weights)
    tuple_of_nautilus = parameters, log_weights, log_weights
    dynesty = SimpleNamespace(
        samples=parameters, samples_u=unit, importance_weights=lambda: weights
    )
    nautilus = SimpleNamespace(
        shell_log_v=np.zeros(2),
        shell_end_exp=[10, 0],
        points=[np.concatenate([np.full((10, 1), 0.5), unit[:100]]), unit[100:]],
        posterior=lambda: tuple_of_nautilus,
    )
    ultranest = {
        "samples": parameters[:5],
        "weighted_samples": {"upoints": unit, "points": parameters, "weights": weights},
    }
    return {
        "dynesty": dynesty,
        "dynesty's sampler": SimpleNamespace(results=dynesty),
        "ultranest": ultranest,
        "nautilus": nautilus,
        "nautilus' posterior": tuple_of_nautilus,
    }


NESTED = nested()


@pytest.mark.parametrize("name", NESTED)
def test_results_of_nested_samplers_are_read_in_the_coordinates_of_the_path(name):
    """4.5 standard errors: a false alarm in 150,000 each."""
    draws = NESTED[name]
    path = of_means()
    if name == "nautilus' posterior":
        with pytest.raises(ValueError, match="give dynesty's results, UltraNest's result or naut"):
            BridgeSampling().fit(path, draws=draws)
    else:
        bridge = BridgeSampling(random_state=0).fit(path, draws=draws)
        assert abs(bridge.log_partition_ - EVIDENCE) < 4.5 * bridge.log_partition_std_error_ < 0.1
        mean = Y.sum() / SIGMA**2 / (1 / TAU**2 + len(Y) / SIGMA**2)
        assert of_means(base=draws).base.mean == pytest.approx(mean / TAU, abs=0.02)

    def log_density(x):  # in the parameters
        return log_likelihood(x) + stats.norm.logpdf(x[:, 0], 0, TAU)

    bridge = BridgeSampling(random_state=0).fit(log_density, draws=draws)
    assert abs(bridge.log_partition_ - EVIDENCE) < 4.5 * bridge.log_partition_std_error_ < 0.1


def test_points_of_the_unit_cube_and_weights_are_checked():
    path = of_means()
    dynesty = NESTED["dynesty"]
    outside = SimpleNamespace(**vars(dynesty) | {"samples_u": dynesty.samples})
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\]"):
        BridgeSampling().fit(path, draws=outside)
    few = SimpleNamespace(**vars(dynesty) | {"importance_weights": lambda: np.ones(3)})
    with pytest.raises(ValueError, match="a weight for every point"):
        BridgeSampling().fit(path, draws=few)


def test_draws_of_the_parameters_are_refused_with_the_cause():
    """Their array holds no normal coordinates, which `from_unit_cube` gives."""
    rng = np.random.default_rng(0)
    unit = 0.6 + 0.02 * rng.normal(size=(2000, 3))

    def peak(x):
        return -0.5 * np.sum(((x - 1) / 0.2) ** 2)

    path = from_prior_transform(peak, lambda u: 10 * u - 5, 3)
    bridge = BridgeSampling(random_state=0, checks=False)
    with pytest.warns(ConvergenceWarning, match="in the coordinates of its path"):
        bridge.fit(path, draws=10 * unit - 5)
    bridge.fit(path, draws=path.from_unit_cube(unit))
    assert_right(bridge, 3 * np.log(0.02 * np.sqrt(2 * np.pi)))
