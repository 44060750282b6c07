"""BilinearGenerativeModel: what it explains, its samples, and its path against quadrature."""

import numpy as np
import pytest
from continuous_models import assert_path_has_its_slopes
from convergence import quietly
from fused_programs import assert_kernel_writes_all_values, assert_programs_are_those_of_the_loops
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.base import clone

from sklpf import HAIS, BilinearGenerativeModel
from sklpf.models import BilinearPath
from sklpf.paths import Stream, stream_key
from sklpf.testing import check_path

SMALL = BilinearGenerativeModel(
    2, 2, 1, max_iter=3, partition_estimator=HAIS(20, 20), random_state=0
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:training has not settled"),
    # so few levels are for speed
    pytest.mark.filterwarnings("ignore:likelihoods are not to be trusted"),
]


def test_the_noise_is_learned():
    """With one product for six features it is the mean square in five directions of 1000 rows: five
    standard errors, and 5 % for what follows the products.
    """
    rng = np.random.default_rng(0)
    products = 3 * rng.laplace(size=(1000, 1)) * rng.exponential(size=(1000, 1))
    X = products * rng.normal(size=6) + 0.5 * rng.normal(size=(1000, 6))
    model = BilinearGenerativeModel(1, 1, 1, random_state=0).fit(X)
    assert model.noise_std_**2 == pytest.approx(0.25, rel=5 * np.sqrt(2 / 5000) + 0.05)


def test_samples_have_the_moments_of_the_model():
    """E x² = E c² (sum of E d²) phi²: five standard errors of a sixth moment bounded by 100 times
    its square.
    """
    sizes = {"n_components": 1, "n_content": 1, "n_style": 1}
    model = clone(SMALL).set_params(**sizes, noise_std=0.5).fit(np.eye(2))
    model.components_, model.mean_ = np.array([[1.0, 2.0]]), np.zeros(2)
    model.content_weights_ = model.style_weights_ = np.ones((1, 1))
    X = model.sample(100_000, random_state=0)
    expected = 4 * np.array([1.0, 4.0]) + 0.25
    assert np.all(np.abs(np.mean(X**2, axis=0) - expected) < 5 * np.sqrt(100 / len(X)) * expected)


# -- the path
def model(sizes=(3, 2, 4), n_features=3, n_rows=3, noise_std=0.5, seed=0):
    rng = np.random.default_rng(seed)
    n_components, n_content, n_style = sizes
    matrices = (
        rng.normal(size=(n_components, n_features)) / np.sqrt(n_components),
        rng.normal(size=(n_components, n_content)) / np.sqrt(n_content),
        rng.normal(size=(n_components, n_style)) / np.sqrt(n_style),
    )
    simulated = BilinearPath(np.zeros((1, n_features)), *matrices, noise_std).simulate(n_rows, rng)
    return BilinearPath(simulated, *matrices, noise_std)


def log_joint(path, x, position):
    """log p(x, c, d) at points (n, C + S), as the paper has it."""
    c, d = position[:, : path.n_content], position[:, path.n_content :]
    factors = (c @ path.content_weights.T) * (d @ path.style_weights.T)
    means = factors @ path.components
    log_likelihood = multivariate_normal(np.zeros(len(x)), path.noise_std**2).logpdf(x - means)
    return log_likelihood - np.abs(c).sum(axis=1) - path.n_content * np.log(2) - d.sum(axis=1)


def test_a_row_has_the_density_of_the_model():
    path = model()
    row = path.row(1)
    check_path(row.with_ladder([0, 0.3, 1]))
    state = row.sample_base(7, Stream(stream_key(0)))
    expected = log_joint(path, path.X[1], state.position)
    np.testing.assert_allclose(sum(row.ends(state)), expected, rtol=1e-10)
    assert_path_has_its_slopes(row, state, 1e-4)


def test_kernels_do_what_the_plain_methods_say():
    row = model().row(0)
    assert_kernel_writes_all_values(row)
    assert_programs_are_those_of_the_loops(row)


@pytest.mark.parametrize("annealed", [True, False])
def test_one_content_and_one_style_agree_with_quadrature(annealed):
    path = model((2, 1, 1), 2, n_rows=2)
    c, d = np.linspace(-16, 16, 1601), np.linspace(0, 16, 801)
    weights = np.tile(np.where((d == 0) | (d == d[-1]), 0.5, 1.0), len(c))
    points = np.stack(np.meshgrid(c, d, indexing="ij"), axis=-1).reshape(-1, 2)
    estimator = HAIS() if annealed else path.default_estimator()
    estimator.set_params(random_state=0).fit(path)
    for t, x in enumerate(path.X):
        row = path.row(t)
        expected = logsumexp(sum(row.ends(row.at(points))), b=weights)
        expected += np.log((c[1] - c[0]) * (d[1] - d[0]))
        some = points[::70_001]
        np.testing.assert_allclose(sum(row.ends(row.at(some))), log_joint(path, x, some))
        # 4.5 standard errors and the grid's own error: 4 rows, 3e-5 false alarms
        error = estimator.log_partition_std_error_[t]
        assert abs(estimator.log_partition_[t] - expected) < 4.5 * error + 3e-4
    assert estimator.converged_


def test_importance_samplings_density_has_its_slopes():
    """By differences; and it is the same for one row or all."""
    path = model((3, 2, 3), 4, n_rows=3, noise_std=0.5, seed=2)
    rng = np.random.default_rng(0)
    latents = rng.normal(size=(3, path.n_dimensions))
    values, slopes = path.network.log_likelihood(latents, path.X)
    of_all = path.network.log_densities_of_all(latents, path.X)
    np.testing.assert_allclose(of_all.diagonal(), values, rtol=1e-12)
    for j, step in enumerate(1e-6 * np.eye(path.n_dimensions)):
        ends = [
            path.network.log_densities(latents + sign * step, path.X, np.arange(3))
            for sign in (1, -1)
        ]
        np.testing.assert_allclose((ends[0] - ends[1]) / 2e-6, slopes[:, j], rtol=1e-4, atol=1e-4)


def test_rows_are_annealed_where_importance_sampling_fails():
    """So few draws are too few for a row with little noise, and enough for one with more."""
    annealed = []
    for noise_std, n_draws in ((1.0, 10_000), (0.02, 20)):
        path = model((2, 2, 2), 3, n_rows=1, noise_std=noise_std, seed=1)
        path.n_draws = n_draws
        estimator = path.default_estimator().set_params(n_temperatures=100, random_state=0)
        annealed.append("chains" in quietly(estimator, path).result_.sweeps)
    assert annealed == [False, True]
