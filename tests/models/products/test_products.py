"""Products of experts: densities, closed forms, what has no normaliser, and training."""

import functools

import numpy as np
import pytest
from continuous_models import log_integral, sources
from fused_programs import assert_kernel_writes_all_values, assert_programs_are_those_of_the_loops
from marks import large
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from sklpf import HAIS, Exact, ProductOfExperts
from sklpf.models.products._model import ProductFamily
from sklpf.models.products._path import Experts, sample_complete, tail_index
from sklpf.paths import density_at
from sklpf.training import Chains

pytestmark = [
    pytest.mark.filterwarnings("ignore:training has not settled"),  # after two passes
    pytest.mark.filterwarnings("ignore:n_components=1 is below"),  # the checks take one component
    pytest.mark.filterwarnings("ignore:rows have no likelihood"),
]

RNG = np.random.default_rng(0)
PLANE = np.array([[1.0, 0.4], [-0.3, 0.8], [0.5, -0.9]])
EXPONENTS = np.array([1.2, 0.9, 1.5])


def model(n_components, n_features, heavy, seed=0, **parameters):
    rng = np.random.default_rng(seed)
    filters = rng.normal(size=(n_components, n_features)) / np.sqrt(n_features)
    exponents = rng.uniform(1, 2, n_components) * n_features / n_components if heavy else None
    return ProductOfExperts.from_parameters(filters, exponents, random_state=0, **parameters)


def test_the_density_is_that_of_the_experts():
    """log f as the papers write it."""
    filters, exponents, x = RNG.normal(size=(5, 3)), RNG.uniform(0.5, 2, 5), RNG.normal(size=(4, 3))
    u = x @ filters.T
    laplace = density_at(Experts(filters, None, 0.5).packed, x)[0]
    np.testing.assert_allclose(laplace, 0.5 - np.abs(u).sum(axis=1), rtol=1e-13)
    heavy = density_at(Experts(filters, exponents, 0.5).packed, x)[0]
    np.testing.assert_allclose(heavy, 0.5 - np.log(1 + u**2) @ exponents, rtol=1e-13)


@pytest.mark.parametrize("heavy", [False, large(True)])
def test_compiled_programs_are_the_plain_loops(heavy):
    path = model(7, 4, heavy).path()
    assert_kernel_writes_all_values(path)
    assert_programs_are_those_of_the_loops(path)


# -- log Z
def test_complete_products_by_quadrature():
    laplace = ProductOfExperts.from_parameters(PLANE[:2])
    expected = log_integral(laplace._log_density, 30, 801)
    assert laplace.estimate_log_partition().log_partition_ == pytest.approx(expected, abs=2e-3)
    for exponents in ([3.0, 4.0], [5.0, 3.5]):
        heavy = ProductOfExperts.from_parameters(PLANE[:2], exponents)
        expected = log_integral(heavy._log_density, 30, 401)
        assert heavy.estimate_log_partition().log_partition_ == pytest.approx(expected, abs=1e-3)
        assert heavy.log_partition_std_error_ == 0
        assert isinstance(heavy.partition_estimator_, Exact)


@pytest.mark.parametrize("exponents", [2.5 * EXPONENTS, large(None)])
def test_overcomplete_products_by_quadrature(exponents):
    """z-bound 4 with t's quantiles, two intervals: false alarm 2e-4 or less."""
    product = ProductOfExperts.from_parameters(PLANE, exponents, random_state=0)
    expected = log_integral(product._log_density, 20, 401)
    result = product.estimate_log_partition().partition_estimator_.result_
    assert result.converged
    assert result.method == "HAIS"
    assert result.std_error < 0.02
    low, high = result.interval(0.9999)
    assert low - 1e-3 < expected < high + 1e-3


# -- tails
def test_a_filter_of_zeros_changes_nothing():
    """z-bound 4 with t's quantiles: false alarm 2e-4 or less."""
    known = ProductOfExperts.from_parameters(PLANE[:2], [2.0, 3.0]).estimate_log_partition()
    filters = np.vstack([PLANE[:2], np.zeros(2)])
    estimator = HAIS(n_temperatures=500)
    product = ProductOfExperts.from_parameters(
        filters, [2.0, 3.0, 1.0], partition_estimator=estimator, random_state=0
    ).estimate_log_partition()
    result = product.partition_estimator_.result_
    assert result.converged
    low, high = result.interval(1 - 2 * stats.norm.sf(4))
    assert low < known.log_partition_ < high


def test_the_tail_index():
    assert tail_index(np.eye(3), np.array([2.0, 1.0, 3.0])).alpha == 1.0  # 2 * 1 - 1: along an axis
    equal = np.full(6, 0.4)
    turned = np.stack([np.cos(np.arange(6)), np.sin(np.arange(6))], axis=1)
    expected = min(2 * 5 * 0.4 - 1, 2 * 6 * 0.4 - 2)
    assert tail_index(turned, equal).alpha == pytest.approx(expected)
    assert tail_index(np.ones((6, 2)), equal).alpha == -1  # it is constant along (1, -1)
    # Two equal filters are one expert with both exponents: along (0, 1) the third alone falls.
    twice = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    assert tail_index(twice, np.array([1.0, 1.0, 0.6])).alpha == pytest.approx(2 * 0.6 - 1)
    assert tail_index(twice, np.array([1.0, 1.0, 0.45])).alpha == pytest.approx(2 * 0.45 - 1)


def test_dependent_filters_may_have_no_normaliser():
    filters = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match="exponents_ are too small: .* is -0.1 and must be above"):
        ProductOfExperts.from_parameters(filters, [1.0, 1.0, 0.45])
    family = ProductFamily(3, 2, True)
    low = Experts(filters, np.array([1.0, 1.0, 0.45]))
    projected = family.unpack(family.project(family.pack(low)))
    assert tail_index(filters, projected.exponents).alpha == pytest.approx(1.0)
    np.testing.assert_allclose(projected.exponents, [1.0, 1.0, 1.0])


def test_products_without_normaliser_are_refused():
    with pytest.raises(ValueError, match="the tail index of the product is -0.4"):
        ProductOfExperts.from_parameters(PLANE, [0.1, 0.2, 5.0])
    for size in (1e-300, 1e-160, 1e160, 1e300):
        limit = "_ must have entries of a size between" if size < 1 else " must be at most 1e"
        with pytest.raises(ValueError, match=f"components{limit}"):
            ProductOfExperts.from_parameters(np.eye(2) * size, [1.0, 1.0])
        limit = "_ must be positive and finite, between" if size < 1 else " must be at most 1e"
        with pytest.raises(ValueError, match=f"exponents{limit}"):
            ProductOfExperts.from_parameters(np.eye(2), [size, size])
    fine = ProductOfExperts.from_parameters(PLANE, EXPONENTS)
    fine.exponents_ = np.array([0.1, 0.2, 5.0])
    with pytest.raises(ValueError, match="exponents_ are too small"):
        fine.score(np.ones((2, 2)))


def test_training_keeps_the_normaliser():
    family = ProductFamily(5, 3, True)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        experts = Experts(rng.normal(size=(5, 3)), np.exp(rng.normal(-2, 1, 5)))
        projected = family.unpack(family.project(family.pack(experts)))
        before, after = tail_index(*experts[:2]).alpha, tail_index(*projected[:2]).alpha
        assert after == pytest.approx(max(before, 1.0), abs=1e-6)
        raised = projected.exponents > experts.exponents * (1 + 1e-12)
        highest = projected.exponents[raised].max(initial=0)
        assert np.all(projected.exponents[~raised] >= highest * (1 - 1e-6))


def test_chains_are_not_trusted_with_the_heaviest_tails():
    """Tail index .52: a run was 3 standard errors off and converged. The closed form needs no
    chains.
    """
    product = ProductOfExperts.from_parameters(np.eye(3), [0.76, 0.76, 0.76])
    with pytest.warns(ConvergenceWarning, match="tail index .* is 0.52 and must be at least 1"):
        assert not HAIS(20, 50, random_state=0).fit(product).converged_
    assert product.estimate_log_partition().partition_estimator_.converged_


# -- draws
@pytest.mark.parametrize("heavy", [False, True])
def test_exact_draws(heavy):
    """Filter outputs are independent with known distributions; Kolmogorov-Smirnov, p > 1e-4 three
    times: 3e-4.
    """
    experts = Experts(np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 0.5], [1.0, 0.0, 1.0]]), None)
    law = [stats.laplace()] * 3
    if heavy:
        experts = experts._replace(exponents=np.array([1.0, 2.0, 3.0]))
        law = [stats.t(2 * e - 1, scale=(2 * e - 1) ** -0.5) for e in experts.exponents]
    u = sample_complete(experts, 4000, np.random.default_rng(0)) @ experts.filters.T
    for column, distribution in zip(u.T, law):
        assert stats.kstest(column, distribution.cdf).pvalue > 1e-4


# -- fewer components than features
@pytest.mark.filterwarnings("ignore:training has not settled")
def test_fewer_components_have_filters_and_no_likelihood():
    X = np.random.default_rng(0).laplace(size=(200, 4))
    message = "n_components=2 is below n_features=4.*no normaliser; raise it, or project"
    with pytest.warns(UserWarning, match=message):
        product = ProductOfExperts(2, max_iter=3, tol=10, random_state=0).fit(X)
    assert product.transform(X).shape == (200, 2)
    with pytest.warns(ConvergenceWarning, match="rows have no likelihood: n_components=2"):
        assert product.score(X) == -np.inf
    product.on_nonconvergence = "nan"
    assert np.isnan(product.score(X))
    product.on_nonconvergence = "raise"
    with pytest.raises(RuntimeError, match="no normaliser"):
        product.score_samples(X)
    with pytest.raises(ValueError, match="components_ must span"):
        product.path()


# -- chains of training
@pytest.mark.parametrize("rescale", [False, True])
def test_compiled_trajectories_are_those_of_the_functions(rescale):
    rng = np.random.default_rng(0)
    family = ProductFamily(5, 3, heavy=True)
    parameters = rng.normal(size=20)
    start = rng.normal(size=(30, 3))
    functions, compiled = (
        Chains(start, np.random.default_rng(1), n_leapfrog=4, rescale=rescale) for _ in range(2)
    )
    at = [functools.partial(f, parameters) for f in (family.log_density, family.grad)]
    for _ in range(20):
        functions.move(*at)
        compiled.move_on(family.packed(parameters))
    np.testing.assert_allclose(compiled.position, functions.position, rtol=1e-9)
    assert compiled.step_size == pytest.approx(functions.step_size)


# -- training
@pytest.mark.parametrize("expert", ["student_t", large("laplace")])
def test_sampling_comes_close_to_maximum_likelihood(expert):
    """Nats a row on new rows: .1 for contrastive divergence, .3 for probability flow, which uses
    its rows less well.
    """
    X, new = np.split(sources(4000), 2)
    best = ProductOfExperts(expert=expert, algorithm="ml", random_state=0).fit(X)
    assert best.converged_
    pcd = ProductOfExperts(expert=expert, random_state=0).fit(X)
    flow = ProductOfExperts(expert=expert, algorithm="mpf", random_state=0).fit(X)
    assert pcd.converged_
    assert abs(pcd.score(new) - best.score(new)) < 0.1
    assert abs(flow.score(new) - best.score(new)) < 0.3
    assert best.loss_curve_[-1] == pytest.approx(-best.score(X), abs=0.01)


def test_fewer_rows_than_features():
    """Directions without variance count as if they had a small one: there is a score, however high,
    and a warning.
    """
    with pytest.warns(UserWarning, match="no variance along 9 of 13 directions"):
        model = ProductOfExperts(max_iter=20, random_state=0).fit(sources(5, 13))
    assert np.isfinite(model.score(sources(5, 13)))
