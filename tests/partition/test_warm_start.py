"""warm_start: a fit with a smaller `tol` or a larger budget evaluates the density at new points
alone, and gives the numbers of a fit from scratch.
"""

import pickle

import numpy as np
import pytest
from convergence import quietly
from interruption import bits
from sklearn.base import clone

from sklpf import BernoulliRBM, Gaussian, GeometricPath, UntilTrusted
from sklpf.partition import ImportanceSampling


class Bananas:
    """A density of one point or of many that counts how often it is asked."""

    def __init__(self, shift=0.0):
        self.n = 0
        self.shift = shift

    def __call__(self, x):
        self.n += len(x)
        return self.shift - 0.5 * x[:, 0] ** 2 - 2 * (x[:, 1] - 0.5 * x[:, 0] ** 2) ** 2

    def of_one(self, x):
        return float(self(x[np.newaxis])[0])


def path_of(density, **options):
    return GeometricPath(density, base=Gaussian(np.zeros(2), 4.0), **options)


EXPLORED = ImportanceSampling(200_000, proposal="explored", tol=0.1, random_state=0)
ESTIMATORS = [EXPLORED, UntilTrusted(random_state=0)]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda each: type(each).__name__)
def test_a_smaller_tol_keeps_every_evaluation_and_gives_the_same_bits(estimator):
    from_scratch = Bananas()
    fine = clone(estimator).set_params(tol=0.01).fit(path_of(from_scratch))
    density = Bananas()
    warm = clone(estimator).set_params(warm_start=True).fit(path_of(density))
    rough = warm.log_partition_std_error_
    warm = pickle.loads(pickle.dumps(warm)).set_params(tol=0.01, n_jobs=2)
    warm.fit(path_of(density))
    numbers = [(each.log_partition_, each.log_partition_std_error_) for each in (warm, fine)]
    assert bits(numbers[0]) == bits(numbers[1])
    assert warm.log_partition_std_error_ < 0.01 < rough
    diagnostics = warm.result_.diagnostics
    assert diagnostics["n_evaluations"] >= fine.result_.n_sweeps
    assert density.n < from_scratch.n + 100  # checks of the functions, and of what was kept


@pytest.mark.parametrize(("small", "n_kept"), [(2000, 500), (6000, 5400)])
def test_a_larger_budget_keeps_what_a_smaller_one_has_found(small, n_kept):
    """All of it if exploring was over, else the values of the points at which it begins again."""
    density = Bananas()
    options = {"tol": 0.01, "warm_start": True}
    estimator = clone(EXPLORED).set_params(max_evaluations=small, **options)
    quietly(estimator, path_of(density))
    n = density.n
    estimator.set_params(max_evaluations=30_000).fit(path_of(density))
    assert estimator.result_.diagnostics["n_evaluations"] - (density.n - n) > n_kept


def test_a_density_of_one_point_and_a_seed_that_is_none():
    density = Bananas()
    warm = ImportanceSampling(proposal="explored", tol=0.05, warm_start=True)
    warm.fit(path_of(density.of_one, vectorized=False))
    first = warm.log_partition_
    n = density.n
    warm.fit(path_of(density.of_one, vectorized=False))
    assert warm.log_partition_ == first
    assert density.n < n + 100


def test_another_density_is_refused_until_values_are_forgotten():
    warm = clone(EXPLORED).set_params(warm_start=True).fit(path_of(Bananas()))
    log_partition = warm.log_partition_
    with pytest.raises(ValueError, match="earlier fits with warm_start=True: fit a clone"):
        warm.fit(path_of(Bananas(shift=1.0)))
    with pytest.raises(ValueError, match="path must have the density, the base and the bounds"):
        warm.fit(GeometricPath(lambda x: -np.sum(x**2, axis=1), base=Gaussian(np.zeros(3), 1.0)))
    warm.set_params(warm_start=False).fit(path_of(Bananas(shift=1.0)))
    assert warm.log_partition_ == pytest.approx(log_partition + 1)


def test_a_model_has_no_density_of_the_users():
    rbm = BernoulliRBM.from_parameters(np.full((3, 4), 0.5), np.zeros(4), np.zeros(3))
    with pytest.raises(ValueError, match="warm_start keeps values of a density of your own on R"):
        UntilTrusted(warm_start=True).fit(rbm)
