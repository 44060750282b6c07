"""MeanCovarianceRBM: its density, programs, log Z and training."""

import numpy as np
import pytest
from continuous_models import log_integral, slopes
from convergence import assert_right
from fused_programs import assert_kernel_writes_all_values, assert_programs_are_those_of_the_loops
from marks import large
from numpy.testing import assert_allclose
from scipy.special import expit, logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sklpf import HAIS, MeanCovarianceRBM, ParallelTempering
from sklpf.models import MeanCovariancePath
from sklpf.paths import Gaussian

pytestmark = [
    pytest.mark.filterwarnings("ignore:training has not settled"),  # after two passes
    pytest.mark.filterwarnings("ignore:log Z is not to be trusted"),  # after 100 levels
]


def parameters(n_features, seed=0, n_factors=5, n_covariance=5, n_mean=5):
    rng = np.random.default_rng(seed)
    return {
        "factors": rng.normal(size=(n_factors, n_features)),
        "pooling": rng.uniform(0, 0.6, (n_factors, n_covariance)),
        "mean_components": 0.5 * rng.normal(size=(n_mean, n_features)),
        "intercept_covariance": rng.normal(1, 1, n_covariance),
        "intercept_mean": rng.normal(-1, 1, n_mean),
        "intercept_visible": 0.5 * rng.normal(size=n_features),
        "noise_std": 1.2,
    }


def model(n_features, seed=0, **others):
    numbers = parameters(n_features, seed) | {"random_state": 0} | others
    return MeanCovarianceRBM.from_parameters(**numbers)


def test_the_density_is_that_of_the_energy():
    """As the energy is written, without the shared parts: softplus by logaddexp, a row at
    a time.
    """
    machine, rng = model(3, mean=[1.0, -2.0, 0.5], scale=2.5), np.random.default_rng(1)
    X = rng.normal(size=(5, 3)) * 4
    for x, value in zip(X, machine._log_f(X)[0]):
        z = (x - machine.mean_) / 2.5
        squares = (machine.factors_ @ z) ** 2 / (z @ z / 3 + 0.5)
        energy = z @ z / (2 * 1.2**2) - machine.intercept_visible_ @ z
        inputs = machine.intercept_covariance_ - 0.5 * squares @ machine.pooling_
        energy -= np.logaddexp(0, inputs).sum()
        energy -= np.logaddexp(0, machine.intercept_mean_ + machine.mean_components_ @ z).sum()
        assert value == pytest.approx(-energy, abs=1e-12)


@pytest.mark.large
@pytest.mark.parametrize(
    ("n_covariance", "n_mean"), [(5, 3), (600, 1)]
)  # products of 512 factors at most
def test_compiled_programs_are_the_plain_loops(n_covariance, n_mean):
    numbers = parameters(4, 0, 7, n_covariance, n_mean)
    path = MeanCovarianceRBM.from_parameters(**numbers, mean=np.ones(4), scale=3.0).path()
    assert_kernel_writes_all_values(path)
    if n_mean > 1:
        assert_programs_are_those_of_the_loops(path)


@pytest.mark.parametrize(
    ("seed", "estimator"),
    [
        (0, None),
        large(1, None),
        large(2, None),
        large(0, ParallelTempering()),
    ],
    ids=str,
)
def test_log_z_by_quadrature(seed, estimator):
    """Models in the plane, intervals of 99.99 %: false alarm 1e-4 each."""
    machine = model(2, seed, mean=[0.5, -1.0], scale=2.0, partition_estimator=estimator)
    expected = log_integral(lambda x: machine._log_f(x)[0], 30)
    result = machine.estimate_log_partition().partition_estimator_.result_
    assert result.method == ("HAIS" if estimator is None else "ParallelTempering")
    assert result.converged
    assert result.std_error < 0.02
    low, high = result.interval(0.9999)
    assert low - 1e-6 < expected < high + 1e-6


def test_transform_gives_the_probabilities_of_hidden_units():
    """By enumeration of one covariance and one mean unit: what the softplus functions sum out."""
    intercepts = {"intercept_covariance": [0.2], "intercept_mean": [-0.1]}
    units = [[1.0, 0.5]], [[0.7]], [[0.3, -0.4]]
    machine = MeanCovarianceRBM.from_parameters(*units, **intercepts)
    x = np.array([[0.8, -1.5]])
    covariance = 0.2 - 0.5 * 0.7 * (0.8 - 0.75) ** 2 / (x @ x.T / 2 + 0.5)[0, 0]
    mean = -0.1 + 0.3 * 0.8 + 0.4 * 1.5
    assert_allclose(machine.transform(x), [expit([covariance, mean])])


def test_the_base_is_normalised_and_knows_the_peak():
    """A narrow peak at 0 beside a wide Gaussian, in the plane: by quadrature, and found by few
    chains.
    """
    units = 8 * np.eye(2), np.eye(2), np.zeros((1, 2))
    intercepts = {"intercept_covariance": [6.0, 6.0], "intercept_visible": [0.5, 0.0]}
    path = MeanCovarianceRBM.from_parameters(*units, **intercepts).path()
    assert log_integral(path.base.log_density, 8, 1001) == pytest.approx(0, abs=1e-6)
    x = np.random.default_rng(0).normal(size=(3, 2))
    expected = [
        slopes(lambda point: path.base.log_density(point[np.newaxis])[0], point) for point in x
    ]
    assert_allclose(path.base.grad_log_density(x), expected, rtol=1e-6)
    hais = HAIS(20, 200, random_state=0).fit(path)
    low, high = hais.result_.interval(0.9999)
    assert hais.converged_
    assert low - 1e-3 < log_integral(path.log_density, 8, 1001) < high + 1e-3


@pytest.mark.large
def test_mass_far_out_rings():
    """Eight mean units that pull together: rows 24 standard deviations out hold all but e^-6 of the
    mass.
    """
    filters, intercepts = np.tile([3.0, 0.0, 0.0], (8, 1)), np.full(8, (6 - 24**2 / 2) / 8)
    units = {"factors": np.eye(3), "pooling": np.zeros((3, 3)), "mean_components": filters}
    machine = MeanCovarianceRBM.from_parameters(**units, intercept_mean=intercepts)
    on = np.indices((2,) * 8).reshape(8, -1).T
    exact = logsumexp(on @ intercepts + 0.5 * np.sum((on @ filters) ** 2, axis=1))
    exact += 1.5 * np.log(2 * np.pi) + 3 * np.log(2)
    path = machine.path()
    path.base_is_ours = False  # no second try
    with pytest.warns(ConvergenceWarning, match="a region of the target holds"):
        hais = HAIS(random_state=0).fit(path)
    assert hais.log_partition_ < exact - 5
    assert not hais.converged_
    assert hais.result_.diagnostics["plain_bound"] == pytest.approx(exact, abs=0.05)

    # The second try is right: within 4 standard errors.
    second = HAIS(random_state=0).fit(machine.path())
    assert_right(second, exact, 4)


def contrasts(n_samples, n_features=3, seed=0):
    """Rows of two lengths, off the center: a mixture of two Gaussians with one mean."""
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(n_samples, n_features))
    return directions * rng.choice([0.3, 2.0], size=(n_samples, 1)) + 5


@pytest.mark.parametrize("algorithm", ["pcd", large("mpf")])
def test_training_finds_what_a_gaussian_has_not(algorithm):
    X, new = contrasts(500), contrasts(2000, seed=1)
    model = MeanCovarianceRBM(algorithm=algorithm, max_iter=10, random_state=0).fit(X)
    gaussian = Gaussian(X.mean(axis=0), np.cov(X.T)).log_density(new).mean()
    assert model.score(new) > gaussian + 0.3
    assert model.partition_estimator_.converged_
    assert np.all(model.pooling_ >= 0)
    # the loss is that of the rows as they are
    unscaled = MeanCovariancePath(model._units(), np.zeros(3), 1.0)
    log_partition = clone(model._monitor).fit(unscaled).log_partition_ + 3 * np.log(model.scale_)
    loss = log_partition - model._log_f(X)[0].mean()
    assert model.loss_curve_[-1] == pytest.approx(loss, abs=1e-9)
