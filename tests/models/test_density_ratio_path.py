"""The path from one density on R^d to another against closed forms, and what `compare`
makes of it.
"""

import numpy as np
import pytest
from marks import large
from scipy.stats import t as student_t

from sklpf import HAIS, MeanCovarianceRBM, ParallelTempering, ProductOfExperts, compare
from sklpf.paths import stream_key
from sklpf.testing import check_transition
from sklpf.transitions import HMC

D = 3


def product(seed, heavy=False, n_components=D, **options):
    """Near the one with seed 0, of other mean."""
    rng = np.random.default_rng(seed)
    filters = np.eye(n_components, D) + 0.3 + 0.1 * rng.standard_normal((n_components, D))
    exponents = np.linspace(2, 3, n_components) if heavy else None
    options = {"partition_estimator": HAIS(n_temperatures=300), "random_state": seed} | options
    return ProductOfExperts.from_parameters(filters, exponents, 0.1 * rng.normal(size=D), **options)


def units(seed):
    rng = np.random.default_rng(seed)
    factors, pooling, mean = (rng.standard_normal(shape) for shape in ((4, D), (4, 2), (2, D)))
    arrays = factors, np.abs(pooling), 0.5 * mean
    mean, scale = 0.1 * rng.standard_normal(D), 1.5
    return MeanCovarianceRBM.from_parameters(*arrays, mean=mean, scale=scale, random_state=seed)


def closed(a, b):
    return b.path().closed_log_partition() - a.path().closed_log_partition()


def ratio_result(a, b):
    path = a._ratio_path(b)
    return path.default_estimator().set_params(random_state=0).fit(path).result_


def tempered(model):
    return model.set_params(partition_estimator=ParallelTempering(n_sweeps=1024))


def test_moves_leave_every_level_invariant():
    a, b = product(0), product(1)
    draws = (model.sample(20_000, random_state=0).reshape(10, 2000, D) for model in (a, b))
    path = type(a._ratio_path(b))(a.path(), b.path(), *draws).with_ladder(np.linspace(0, 1, 4))
    check_transition(path, HMC().tune(path, stream_key(0)), variables=path.position)


@pytest.mark.parametrize(
    ("make", "heavy"), [large(tempered, (False, False)), (lambda model: model, (True, False))]
)
def test_ratio_of_complete_products(make, heavy):
    a, b = make(product(0, heavy[0])), make(product(1, heavy[1]))
    result = ratio_result(a, b)
    # t with 9 degrees of freedom: 1e-5 false alarms each
    assert abs(result.log_partition - closed(a, b)) < student_t.isf(5e-6, 9) * result.std_error
    assert result.std_error < 0.03
    assert result.degrees_of_freedom == 9


@pytest.mark.large
def test_ratio_of_mean_covariance_models():
    """Against quadrature: the grid's error is far below the standard error."""
    a, b = units(0), units(1)
    grid = np.linspace(-12, 12, 81)
    points = np.stack(np.meshgrid(*D * [grid], indexing="ij"), axis=-1).reshape(-1, D)
    truth = [np.logaddexp.reduce(model._log_density(points)) for model in (a, b)]
    result = ratio_result(a, b)
    off = result.log_partition - (truth[1] - truth[0])
    assert abs(off) < student_t.isf(5e-6, 9) * result.std_error
    assert result.std_error < 0.1


def test_the_error_is_that_between_groups():
    """Draws that are one point in each group: an error of independent chains would be far too
    small.
    """
    a, b = product(0), product(1)
    path, rng = a._ratio_path(b), np.random.default_rng(0)
    drawn = (model.sample(10, random_state=rng.integers(99)) for model in (a, b))
    stuck = [np.repeat(rows[:, np.newaxis], 100, axis=1) for rows in drawn]
    same = type(path)(a.path(), b.path(), *stuck)
    runs = [p.default_estimator().set_params(random_state=0).fit(p) for p in (path, same)]
    errors = [run.log_partition_std_error_ for run in runs]
    assert errors[1] > 2 * errors[0]
    assert len(same.draw_alarms) == 2
    assert "draws of the second model differ between ladders" in same.draw_alarms[1]


def test_there_is_no_path_between_other_spaces():
    other = ProductOfExperts.from_parameters(np.eye(2))
    assert product(0)._ratio_path(other) is None
    assert product(0)._ratio_path(object()) is None


# ---- compare
def test_of_densities_that_differ_little_the_ratio_is_direct():
    a, b = product(0, heavy=True), product(1, heavy=True)
    X = a.sample(200, random_state=5)
    direct, difference = compare(a, b, X), compare(a, b, X, ratio="difference")
    assert (direct.method, difference.method) == ("direct", "difference")
    assert direct.converged
    width = np.diff(direct.partition)[0]
    assert width < 0.5 * np.diff(difference.partition)[0]
    truth = np.mean(a._log_density(X) - b._log_density(X)) + closed(a, b)
    # 99.999 % of a t with 9 degrees of freedom: 3.8 times as far as 95 %
    assert abs(direct.mean - truth) < 3.8 * width / 2
    assert direct.mean == compare(a, b, X).mean  # the same bits
