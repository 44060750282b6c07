"""Moves of the factorial mixture: rows searched by flips, starts from the moments, components
reborn; and streams.
"""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from sklpf import Exact, FactorialMixture
from sklpf.datasets import make_factorial_shapes
from sklpf.models import FactorialPath, FactorialPosterior
from sklpf.models.factorial.learning._activation_search import RowEnergy
from sklpf.models.factorial.learning._coordinate_ascent import moments
from sklpf.models.factorial.learning._moves import _halves
from sklpf.models.factorial.learning._pursuit import Pursuit
from sklpf.variational import sweeps

LEARNED = ("noise_variance", "component_variance", "activation_probability")


def masks(n=600, n_components=6, n_features=16, noise=0.01, probability=0.3, seed=4):
    """Rows, activations, components and hyperparameters of random masks of which many
    share pixels.
    """
    rng = np.random.default_rng(seed)
    components = (rng.random((n_components, n_features)) < 0.4) * rng.uniform(
        0.5, 1, (n_components, 1)
    )
    activations = (rng.random((n, n_components)) < probability).astype(float)
    X = activations @ components + np.sqrt(noise) * rng.normal(size=(n, n_features))
    return (
        X,
        activations,
        components,
        (noise, float(np.mean(components**2)), np.full(n_components, probability)),
    )


def truth_bound(X, activations, start, learned=()):
    *_, last = sweeps(
        FactorialPosterior(X, activations, *start, learned=learned), tol=1e-6 * len(X)
    )
    return last.elbo


# -- rows
@pytest.fixture
def problem():
    """Products, gram, log odds and half precision of 40 rows with 6 components that are
    much alike.
    """
    rng = np.random.default_rng(0)
    means, X = rng.normal(size=(6, 4)) + 1.0, 2 * rng.normal(size=(40, 4)) + 3.0
    return means @ X.T, means @ means.T + 0.1 * np.eye(6), rng.normal(size=6), 2.0


def hard_bounds(problem, z):
    products, gram, log_odds, half_precision = problem
    squares = -2 * np.einsum("nk,kn->n", z, products) + np.einsum("nk,kj,nj->n", z, gram, z)
    return z @ log_odds - half_precision * squares


def test_no_flip_of_one_or_two_components_gains_after_a_search(problem):
    start = (np.random.default_rng(1).random((40, 6)) < 0.5).astype(np.uint8)
    found = RowEnergy.of(*problem).searched(start, ())
    best = hard_bounds(problem, found.astype(float))
    assert np.all(best >= hard_bounds(problem, start.astype(float)))
    for flips in [*itertools.combinations(range(6), 1), *itertools.combinations(range(6), 2)]:
        other = found.copy()
        other[:, flips] ^= 1
        assert np.all(hard_bounds(problem, other.astype(float)) < best + 1e-8)


@pytest.mark.parametrize("n_components", [3, 16, 17, 40])
def test_three_components_are_exchanged_wherever_they_stand(n_components):
    """The last three: the first of them stands for the other two, which no flip of one or two
    components shows.
    """
    bias, coupling = np.full((5, n_components), -10.0), np.zeros((n_components, n_components))
    bias[:, -3:] = [3, 2, 2]
    coupling[-3, -2:] = coupling[-2:, -3] = 5
    start = np.zeros((5, n_components), np.uint8)
    start[:, -3] = 1
    energy = RowEnergy(bias, coupling)
    np.testing.assert_array_equal(energy.searched(start, ()), start)
    found = energy.searched(start, range(n_components))
    np.testing.assert_array_equal(found[:, -3:], np.tile([0, 1, 1], (5, 1)))
    assert found.sum() == 10


# -- starts from the moments
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("probability", [0.15, 0.21, 0.5])
def test_pursuit_finds_activations_whatever_their_skewness_and_kurtosis(probability, kind):
    X, activations, _, _ = masks(2000, n_features=25, probability=probability, seed=1)
    found = Pursuit(kind(X), 6, moments(X)[0]).activations(np.random.default_rng(0))
    right = np.mean(found[:, :, None] == activations[:, None], axis=0)
    assert np.all(right.max(axis=0) > 0.97)
    assert sorted(right.argmax(axis=0)) == list(range(6))


# -- births
@pytest.fixture
def blend():
    """Rows of one of two similar components, a posterior that has their mean for both, and the
    leading directions.

    Half the difference of the components is 0.49 long, the noise of a row in the 10 directions
    0.71.
    """
    rng = np.random.default_rng(0)
    components = 0.7 * np.array(
        [np.r_[np.ones(10), np.zeros(90)], np.r_[0, np.ones(10), np.zeros(89)]]
    )
    X = components[rng.integers(2, size=1000)] + np.sqrt(0.05) * rng.normal(size=(1000, 100))
    posterior = FactorialPosterior(X, np.ones((1000, 1)), 0.05, 0.1, np.array([0.5]))
    return components, posterior, np.linalg.svd(X, full_matrices=False)[2][:10].T


def test_halves_of_a_blend_are_what_it_blends(blend):
    components, posterior, basis = blend
    z, sets = np.ones((1000, 1), np.uint8), np.ones((1, 1))
    halves = _halves(posterior, (posterior.X - posterior.means[0]) @ basis, z, sets, basis)
    distances = np.linalg.norm(halves[:, None] - components, axis=2)
    # the mean of 1000 rows errs by sqrt(0.05 * 10 / 1000) = 0.02 in the 10 directions, their
    # principal one by some 0.1
    assert distances.min(axis=0).max() < 0.25
    noise = np.sqrt(0.05) * np.random.default_rng(1).normal(size=posterior.X.shape)
    assert len(_halves(posterior, noise @ basis, z, sets, basis)) == 0


# -- fits
@pytest.mark.parametrize("learned", [False, True])
def test_moves_find_shapes_that_annealing_does_not(learned):
    X, activations, components, start = masks()
    given = {} if learned else dict(zip(LEARNED, (*start[:2], 0.3)))
    truth = truth_bound(X, activations, start, LEARNED if learned else ())
    annealed = FactorialMixture(6, **given, tempering="annealed", n_moves=0, random_state=0).fit(X)
    assert annealed.elbo_ < truth - len(X)
    for seed in range(2):
        model = FactorialMixture(6, **given, n_moves=3, random_state=seed).fit(X)
        assert model.elbo_ > truth - 0.05 * len(X)
        distances = np.abs(model.components_[:, None] - components).max(axis=2)
        assert sorted(distances.argmin(axis=1)) == list(range(6))
        assert distances.min(axis=1).max() < 0.1
        assert (
            np.mean(
                np.isclose(model.transform(X)[:, distances.argmin(axis=0)], activations, atol=0.5)
            )
            > 0.99
        )


@pytest.mark.parametrize(
    ("covariance", "seed"), [("full", 1), ("full", 11), ("diag", 1), ("diag", 2)]
)
def test_components_are_reborn_where_no_direction_is_left(covariance, seed):
    """The four rows and four columns of an image have seven directions, so one of them must be
    born.

    Where always the candidate of the highest gain was born, the same one died again and again with
    the seeds 2 and 11.
    """
    X, activations, components = make_factorial_shapes(800, shapes="bars", random_state=0)
    start = {"noise_variance": 0.01, "component_variance": 0.1225, "activation_probability": 0.3}
    model = FactorialMixture(8, **start, covariance=covariance, random_state=seed).fit(X)
    distances = np.abs(model.components_[:, None] - components).max(axis=2)
    assert sorted(distances.argmin(axis=1)) == list(range(8))
    assert distances.min(axis=1).max() < 0.1


@pytest.mark.parametrize(
    "parameters", [{}, {"activation_probability": [0.1, 0.3, 0.3, 0.6], "noise_variance": 0.1}]
)
def test_no_move_lowers_the_bound(parameters):
    X, *_ = make_factorial_shapes(300, noise_variance=0.1, random_state=0)
    fits = [FactorialMixture(4, **parameters, n_moves=n, random_state=0).fit(X) for n in (0, 4)]
    n = fits[0].n_iter_
    np.testing.assert_array_equal(fits[1].elbo_curve_[:n], fits[0].elbo_curve_)
    assert fits[1].n_iter_ > n
    assert np.all(np.diff(fits[1].elbo_curve_) >= -1e-9 * np.abs(fits[1].elbo_curve_[1:]))
    assert fits[1].elbo_ > fits[0].elbo_
    if parameters:
        np.testing.assert_array_equal(
            fits[1].activation_probability_, parameters["activation_probability"]
        )


def test_fewer_rows_and_features_than_components_have_a_model():
    X = np.random.default_rng(0).normal(size=(5, 3))
    model = FactorialMixture(7, noise_variance=0.5, random_state=0).fit(X)
    assert np.all(np.isfinite(model.score_samples(X)))


def test_sparse_rows_give_the_model_of_dense_ones():
    X, *_ = make_factorial_shapes(300, random_state=0)
    X[np.abs(X) < 0.15] = 0
    fits = (
        FactorialMixture(8, n_moves=2, random_state=0).fit(kind(X))
        for kind in (np.array, sp.csr_array)
    )
    dense, sparse = fits
    np.testing.assert_allclose(sparse.components_, dense.components_, atol=1e-10)
    np.testing.assert_allclose(sparse.transform(sp.csc_matrix(X)), dense.transform(X), atol=1e-8)
    np.testing.assert_allclose(
        sparse.score_samples(sp.coo_array(X)), dense.score_samples(X), rtol=1e-9
    )
    single = FactorialMixture(8, n_moves=2, random_state=0).fit(sp.csr_array(X, dtype=np.float32))
    assert single.elbo_ == pytest.approx(dense.elbo_, rel=1e-4)
    assert single.transform(X.astype(np.float32)).dtype == np.float32


def test_verbose_says_what_a_start_arrived_at(capsys):
    X, *_ = make_factorial_shapes(200, random_state=0)
    FactorialMixture(3, n_moves=1, random_state=0).fit(X)
    assert not capsys.readouterr().out
    model = FactorialMixture(3, n_moves=1, random_state=0, verbose=1).fit(X)
    lines = capsys.readouterr().out.splitlines()
    assert f"bound = {model.elbo_:.6g} after {model.n_iter_} sweeps and moves" in lines[-1]


def test_batches_with_names_of_columns_and_sparse_paths():
    pandas = pytest.importorskip("pandas")
    X, *_ = make_factorial_shapes(60, random_state=0)
    table = pandas.DataFrame(X, columns=[f"pixel {i}" for i in range(X.shape[1])])
    model = (
        FactorialMixture(2, n_moves=1, random_state=0).fit(table).partial_fit(table)
    )  # warnings are errors
    assert not hasattr(model, "converged_")
    coo = FactorialPath(
        sp.coo_array(X),
        model.components_,
        model.component_covariance_,
        model.noise_variance_,
        model.activation_probability_,
    )
    np.testing.assert_array_equal(Exact().fit(coo).log_partition_, model.score_samples(table))


# -- streams
def test_batches_lead_to_the_model_of_all_rows():
    X, _, components = make_factorial_shapes(3000, random_state=0)
    stream, first = (
        FactorialMixture(8, random_state=0),
        FactorialMixture(8, random_state=0).fit(X[:500]),
    )
    for batch in np.split(X, 6):
        stream.partial_fit(batch)
    assert stream.n_iter_ == first.n_iter_ + 5
    assert not hasattr(stream, "elbo_")
    errors = [
        np.abs(model.components_[:, None] - components).max(axis=2).min(axis=0).max()
        for model in (first, stream)
    ]
    # 128 means over about 900 rows, which err by 0.1 / sqrt(900): 7 standard deviations
    assert errors[1] < min(7 * 0.1 / np.sqrt(900), errors[0])
    assert stream.noise_variance_ == pytest.approx(
        0.01, rel=0.03
    )  # 48,000 values: 5 standard deviations
    np.testing.assert_allclose(np.sort(stream.activation_probability_), 0.3, atol=0.05)


def test_batches_of_the_same_rows_change_little():
    X, *_ = make_factorial_shapes(500, random_state=0)
    model = FactorialMixture(8, random_state=0).fit(X)
    before = model.components_
    np.testing.assert_allclose(model.partial_fit(X).components_, before, atol=0.01)
    assert np.abs(model.component_covariance_).max() < 1e-3


def test_batches_that_do_not_fit_leave_the_model_as_it_was():
    X, *_ = make_factorial_shapes(200, random_state=0)
    model = FactorialMixture(3, n_moves=0, random_state=0)
    with pytest.raises(NotFittedError):
        model.transform(X)
    before = model.partial_fit(X).components_
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :5])
    with pytest.raises(
        ValueError, match="n_components is 4, but 3 were fitted; call fit to begin anew"
    ):
        model.set_params(n_components=4).partial_fit(X)
    assert model.components_ is before
