"""How models learn: all of a step or nothing, from what the model shows, with the same bits
everywhere.
"""

import copy
import itertools

import numpy as np
import pytest
from interruption import bits, interrupted
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from sklpf import (
    HAIS,
    BernoulliRBM,
    BilinearGenerativeModel,
    BoltzmannMachine,
    CategoricalRBM,
    FactorialMixture,
    GaussianRBM,
    LatentDirichletAllocation,
    LinearGenerativeModel,
    MeanCovarianceRBM,
    ProductOfExperts,
    Tempering,
)
from sklpf.interop import from_decoder
from sklpf.models.rbm import _learning

RNG = np.random.default_rng(0)
BINARY = (RNG.random((40, 8)) < 0.4).astype(float)
REAL = RNG.laplace(size=(60, 3))
COUNTS = RNG.poisson(0.7, (40, 12)) + np.eye(1, 12)
CAUSES = RNG.integers(2, size=(60, 2)) @ [[3, 0, 1], [0, 2, -2]] + 0.1 * REAL
STREAMS = [  # that partial_fit learns from
    (BernoulliRBM(4, n_iter=2, batch_size=10), BINARY),
    (BernoulliRBM(4, n_iter=2, batch_size=10, average=True), BINARY),
    (BernoulliRBM(4, n_iter=2, batch_size=10, track_log_partition="particles"), BINARY),
    (CategoricalRBM(4, n_iter=2, min_categories=3), BINARY),
    (GaussianRBM(3, n_iter=2), REAL),
    (ProductOfExperts(n_chains=20, max_iter=1), REAL),
    (MeanCovarianceRBM(n_chains=20, max_iter=1), REAL),
    (LatentDirichletAllocation(3, max_iter=2, batch_size=10), COUNTS),
    (
        LatentDirichletAllocation(
            3,
            max_iter=1,
            batch_size=10,
            tempering=Tempering("global", n_temperatures=5, n_tempered=1),
            learning_method="online",
            total_samples=400,
        ),
        COUNTS,
    ),
    (FactorialMixture(2, tol=0.1, n_moves=1), CAUSES),
]
OTHERS = [
    (LatentDirichletAllocation(3, max_iter=10, learning_method="gibbs"), COUNTS),
    (BoltzmannMachine("pcd", max_iter=2, n_chains=20), BINARY),
    (LinearGenerativeModel(max_iter=3, n_draws=1), REAL),
    (BilinearGenerativeModel(max_iter=3, n_draws=1), REAL),
    (
        from_decoder(lambda z: z @ np.ones((1, 8)), 1, pullback=lambda z, g: g.sum(1)[:, None]),
        BINARY,
    ),
]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def learned(model, X, method="fit"):
    """A model with a generator of its own that has learned, and is about to again."""
    model = copy.deepcopy(model).set_params(random_state=np.random.RandomState(3)).fit(X)
    return model.partial_fit(X).partial_fit(X) if method == "partial_fit" else model


# ---- all of a step or nothing
@pytest.mark.parametrize(
    ("model", "X", "method"),
    [(*each, "partial_fit") for each in STREAMS] + [(*each, "fit") for each in STREAMS + OTHERS],
)
def test_an_interrupted_step_leaves_the_model_as_it_was(model, X, method):
    model = learned(model, X, method)
    before, uninterrupted = bits(model), copy.deepcopy(model)
    with interrupted(at_line=None) as n_lines:
        getattr(uninterrupted, method)(X)
    assert bits(uninterrupted) != before
    for line in np.random.default_rng(0).integers(1, n_lines[0], size=3):
        with interrupted(line) as counted:
            getattr(model, method)(X)
        assert counted[0] == line
        assert bits(model) == before
    getattr(model, method)(X)
    assert bits(model) == bits(uninterrupted)


@pytest.mark.parametrize(("model", "X"), [(BernoulliRBM(4), BINARY), (GaussianRBM(3), REAL)])
def test_an_interrupted_gibbs_step_draws_no_random_number(model, X):
    model = learned(model, X)
    model.gibbs(X)
    before = bits(model)
    as_before = []
    for line in itertools.count(1):
        with interrupted(line) as counted:
            model.gibbs(X)
        if counted[0] < line:
            break
        as_before.append(bits(model) == before)
    assert len(as_before) > 50
    assert all(as_before[:-1])  # at the last one all is drawn


@pytest.mark.parametrize("model", [BernoulliRBM(4), CategoricalRBM(4), GaussianRBM(3)])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_training_that_diverges_draws_no_random_number(model, method):
    X = REAL if isinstance(model, GaussianRBM) else BINARY
    model = learned(model.set_params(n_iter=2), X, "partial_fit")
    before = bits(model)
    rate = model.learning_rate
    model.set_params(learning_rate=1e300)
    with pytest.raises(ValueError, match="diverged"), np.errstate(all="ignore"):
        getattr(model, method)(X)
    assert bits(model.set_params(learning_rate=rate)) == before


# ---- from what the model shows
CLASSES = {type(model): (model, X) for model, X in STREAMS}.values()
SLOWLY = {"learning_rate": 1e-12, "learning_offset": 1e12}


@pytest.mark.parametrize(("model", "X"), CLASSES, ids=lambda each: type(each).__name__)
def test_what_a_user_sets_is_trained_on(model, X):
    model = learned(model, X, "partial_fit")
    name = next(iter(model._fitted_shapes))
    former = np.copy(getattr(model, name))
    wanted = former * RNG.uniform(0.5, 2, former.shape)
    setattr(model, name, wanted.copy())
    slowly = {name: value for name, value in SLOWLY.items() if hasattr(model, name)}
    model.set_params(**slowly).partial_fit(X[:1])
    # the one row of 60 in the averages of FactorialMixture weighs .05
    size = np.abs(former - wanted).max()
    assert np.abs(getattr(model, name) - wanted).max() < 0.3 * size
    if slowly:
        assert np.abs(getattr(model, name) - wanted).max() < 1e-6 * size


@pytest.mark.parametrize("model", [ProductOfExperts(n_chains=20), FactorialMixture(2)], ids=str)
def test_one_more_step_has_not_converged(model):
    """`converged_` is of one fit, and no longer there after a step that goes on from it."""
    model.set_params(tol=100.0, max_iter=40, random_state=0).fit(REAL)
    assert model.converged_
    assert not hasattr(model.partial_fit(REAL), "converged_")


@pytest.mark.parametrize(
    "known",
    [
        BernoulliRBM.from_parameters(RNG.normal(size=(3, 8)), np.ones(8), np.zeros(3)),
        GaussianRBM.from_parameters(RNG.normal(size=(3, 3)), np.ones(3), np.zeros(3), np.ones(3)),
        ProductOfExperts.from_parameters(RNG.normal(size=(5, 3)), np.full(5, 2.0), np.ones(3)),
        ProductOfExperts.from_parameters(RNG.normal(size=(4, 3))),
        MeanCovarianceRBM.from_parameters(
            RNG.normal(size=(4, 3)), RNG.random((4, 2)), RNG.normal(size=(5, 3)), scale=2.0
        ),
    ],
    ids=lambda each: type(each).__name__,
)
def test_known_parameters_are_trained_on(known):
    X = BINARY if isinstance(known, BernoulliRBM) else REAL
    model = copy.deepcopy(known).set_params(learning_rate=1e-12)
    model.partial_fit(X).partial_fit(X)
    learned_names = [name for name in model._fitted_shapes if not name.startswith("visible_")]
    for name in learned_names:
        np.testing.assert_allclose(getattr(model, name), getattr(known, name), 1e-6, atol=1e-10)
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :-1])


@pytest.mark.parametrize(("model", "X"), CLASSES, ids=lambda each: type(each).__name__)
def test_the_size_of_what_was_learned_can_not_be_set(model, X):
    model = learned(model, X)
    sizes = {"n_components": "components_", "n_factors": "factors_", "n_mean": "mean_components_"}
    for name, array in sizes.items():
        if name not in model.get_params() or not hasattr(model, array):
            continue
        size = len(getattr(model, array))
        before = model.get_params()[name]
        message = f"{name} is {size + 1}, but {size} were fitted; call fit to begin anew"
        with pytest.raises(ValueError, match=message):
            model.set_params(**{name: size + 1}).partial_fit(X)
        model.set_params(**{name: before}).partial_fit(X)


# ---- the same bits everywhere
WIDE_RBM = BernoulliRBM(260, n_iter=2, batch_size=30, weight_decay=0.01)


@pytest.mark.parametrize(
    ("model", "X"),
    [
        (GaussianRBM(130, n_iter=1, batch_size=100), RNG.normal(size=(200, 700))),
        (WIDE_RBM, (RNG.random((60, 300)) < 0.05).astype(float)),  # sums of weight rows
        (WIDE_RBM, (RNG.random((60, 300)) < 0.5).astype(float)),  # products
        (BoltzmannMachine(max_iter=2), (RNG.normal(size=(600, 40)) > 0.3).astype(float)),
        (ProductOfExperts(algorithm="mpf", max_iter=2), RNG.normal(size=(600, 40))),
    ],
)
def test_bits_do_not_depend_on_jobs_and_threads_of_blas(model, X, monkeypatch):
    """RBMs train in four parts of the visible units, in threads that wait for one another."""
    monkeypatch.setattr(_learning, "_WORK_OF_PART", 300 * 260 * 60 // 4)
    found = []
    for n_jobs, n_threads in ((1, 1), (1, 2), (2, 1), (3, 1), (4, 1)):
        with threadpool_limits(n_threads, user_api="blas"):
            fitted = copy.deepcopy(model).set_params(n_jobs=n_jobs, random_state=0).fit(X)
        found.append(bits({name: vars(fitted)[name] for name in vars(fitted) if name[-1] == "_"}))
    assert all(each == found[0] for each in found)


# ---- passes
UNSETTLED = "training has not settled after {} passes: raise max_iter"


@pytest.mark.parametrize(
    ("model", "X", "message"),
    [
        (LinearGenerativeModel(max_iter=5), REAL, UNSETTLED.format(5)),
        (ProductOfExperts(max_iter=2), REAL, UNSETTLED.format(2)),
        (MeanCovarianceRBM(max_iter=2, n_chains=20), REAL, UNSETTLED.format(2)),
        (BoltzmannMachine(max_iter=1), BINARY, "pseudo-likelihood has not settled after 1 pass"),
    ],
    ids=lambda given: type(given).__name__,
)
def test_training_that_has_not_settled_says_so(model, X, message):
    with pytest.warns(ConvergenceWarning, match=message):
        model = copy.deepcopy(model).set_params(random_state=0).fit(X)
    assert model.n_iter_ == model.max_iter
    if hasattr(model, "loss_curve_"):
        assert len(model.loss_curve_) == model.max_iter
        assert not model.converged_


# ---- units
@pytest.mark.parametrize(
    ("model", "scale"),
    [
        (
            ProductOfExperts(5, max_iter=3, partition_estimator=HAIS(20, 100)),
            np.array([1e-3, 1e4, 10.0]),
        ),
        (
            MeanCovarianceRBM(max_iter=2, n_chains=20, partition_estimator=HAIS(20, 100)),
            np.full(3, 1e3),
        ),
    ],
    ids=["product", "mean and covariance"],
)
def test_rows_in_other_units_give_the_same_model(model, scale):
    """log Z to a fifth of its standard error, since other rounding can turn a decision of a
    chain; all else to 1e-9.
    """
    X = np.tile(REAL, (5, 1)) + 5
    first, second = (copy.deepcopy(model).set_params(random_state=1) for _ in range(2))
    expected = first.fit(X).score_samples(X) - np.log(scale).sum()
    found = second.fit(X * scale - 7).score_samples(X * scale - 7)
    between_log_z = np.mean(found - expected)
    assert abs(between_log_z) < 0.2 * first.log_partition_std_error_
    np.testing.assert_allclose(found, expected + between_log_z, rtol=0, atol=1e-9)
