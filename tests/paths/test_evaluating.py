"""Workers that evaluate a user's function: the same bits, in less time."""

import pickle
import time
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from convergence import quietly

from sklpf import SMC, Gaussian, GeometricPath
from sklpf._utils.parallel import evaluating
from sklpf.interop import from_prior_transform
from sklpf.partition import ImportanceSampling
from sklpf.paths import evaluate_bisecting_failures

X = np.random.default_rng(0).normal(size=(300, 3))
WEIGHTS = np.linspace(-1, 1, 9).reshape(3, 3)


def of_one(x, seconds=0.0):
    time.sleep(seconds)
    return -0.5 * np.sum((WEIGHTS @ x - 0.3) ** 2) - 0.5 * x @ x


def of_many(x):
    return -0.5 * np.sum((x @ WEIGHTS.T - 0.3) ** 2, axis=1) - 0.5 * np.sum(x**2, axis=1)


def slow(x):
    return of_one(x, 0.002)


def slow_pair(x):
    time.sleep(0.002)
    return of_one(x), -x - WEIGHTS.T @ (WEIGHTS @ x - 0.3)


def transform(u):
    return 6 * u - 3


def slow_path(**options):
    return GeometricPath(slow, vectorized=False, base=Gaussian(np.zeros(3), 2.0), **options)


PATHS = {
    "one": slow_path,
    "pair": lambda: GeometricPath(
        of_one, value_and_grad=slow_pair, vectorized=False, base=Gaussian(np.zeros(3), 2.0)
    ),
    "many": lambda: GeometricPath(of_many, base=Gaussian(np.zeros(3), 2.0)),
    "prior transform": lambda: from_prior_transform(slow, transform, 3),
}


@pytest.mark.parametrize(
    ("name", "backend"), [*((name, "threading") for name in PATHS), ("prior transform", "loky")]
)
def test_values_do_not_depend_on_workers(name, backend):
    path = PATHS[name]()
    alone = path.at(X[:140]), path.at(X[:140])
    with joblib.parallel_config(backend=backend), evaluating(2):
        shared = path.at(X[:140])
    for each in alone:
        for of_alone, of_shared in zip(each, shared):
            np.testing.assert_array_equal(of_alone, of_shared)


@pytest.mark.parametrize(
    "estimator",
    [SMC(4, 4, checks=False), ImportanceSampling(proposal="explored", max_evaluations=6000)],
    ids=["SMC", "explored"],
)
def test_results_do_not_depend_on_workers(estimator):
    paths = [
        GeometricPath(of_one, vectorized=False, base=Gaussian(np.zeros(3), 2.0)) for _ in range(2)
    ]
    results = [
        quietly(estimator.set_params(n_jobs=n, random_state=0), path).result_
        for n, path in zip((1, 2), paths)
    ]
    assert results[0].log_partition == results[1].log_partition
    assert results[0].std_error == results[1].std_error


def test_two_workers_take_half_the_time():
    path = slow_path()
    seconds = []
    for n_jobs in (1, 1, 2, 2):  # how long it takes is known after the first call
        began = time.perf_counter()
        with evaluating(n_jobs):
            path.raw_log_density(X[:100])
        seconds.append(time.perf_counter() - began)
    assert min(seconds[2:]) < 0.7 * min(seconds[:2])


def test_workers_of_the_users_evaluate():
    alone = slow_path().raw_log_density(X[:20])
    with ThreadPoolExecutor(2) as workers:
        path = slow_path(pool=workers)
        np.testing.assert_array_equal(path.raw_log_density(X[:20]), alone)
        copied = pickle.loads(pickle.dumps(path))
    np.testing.assert_array_equal(copied.raw_log_density(X[:20]), alone)
    with joblib.Parallel(1) as no_workers, pytest.raises(TypeError, match="method map"):
        slow_path(pool=no_workers)
    with pytest.raises(ValueError, match="vectorized=False"):
        GeometricPath(of_many, pool=workers, base=Gaussian(np.zeros(3), 2.0))


def test_points_at_which_a_function_of_one_fails_cost_no_others():
    points = []

    def failing(x):
        points.append(x)
        if x[0] > 0.5:
            raise FloatingPointError
        return of_one(x)

    path = GeometricPath(of_one, vectorized=False, base=Gaussian(np.zeros(3), 2.0))
    alone = path.raw_log_density(X[:100])
    path.log_density = failing
    found = evaluate_bisecting_failures(path.raw_log_density, X[:100])
    np.testing.assert_array_equal(found, np.where(X[:100, 0] > 0.5, np.nan, alone))
    assert len(points) == 100
    with pytest.raises(FloatingPointError):
        path.raw_log_density(X[:100])


@pytest.mark.parametrize(
    ("log_density", "message"),
    [
        (lambda x: 0.0, "shape"),
        (lambda x: np.ma.masked_array(of_many(x), x[:, 0] > 0), "masked"),
    ],
)
def test_values_that_are_not_one_number_of_each_point_are_refused(log_density, message):
    path = GeometricPath(of_many, base=Gaussian(np.zeros(3), 2.0))
    path.log_density = log_density
    with pytest.raises((TypeError, ValueError), match=message):
        path.raw_log_density(X)


class Graph:
    """A number of a library that records gradients: it can be read, and copied, without them."""

    def __init__(self, value):
        self.value = value

    def __deepcopy__(self, memo):
        raise RuntimeError("only leaves of the graph can be copied")

    def detach(self):
        return self

    def cpu(self):
        return self.value


def test_numbers_with_gradients_are_read_without_them():
    path = GeometricPath(
        lambda x: Graph(np.asarray(-np.sum(x**2))),
        base=Gaussian(np.zeros(3), 2.0),
        vectorized=False,
    )
    np.testing.assert_array_equal(path.raw_log_density(X[:5]), -np.sum(X[:5] ** 2, axis=1))
