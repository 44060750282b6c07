"""Rows that cannot be used are refused, and mistakes say what to do instead."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sklpf import (
    AIS,
    HAIS,
    BernoulliRBM,
    BoltzmannMachine,
    BridgeSampling,
    FactorialMixture,
    GaussianRBM,
    LatentDirichletAllocation,
    LeftToRight,
    ProductOfExperts,
    Tempering,
)
from sklpf.models import LDAPath
from sklpf.transitions import HMC

GOOD = sp.csr_matrix(np.array([[1.0, 0, 1, 0], [0, 1, 0, 0], [1, 1, 0, 1]]))
MODELS = [
    LatentDirichletAllocation(2, max_iter=2, random_state=0),
    LatentDirichletAllocation(
        2, max_iter=2, learning_method="online", shuffle=True, batch_size=2, random_state=0
    ),
    BernoulliRBM(2, batch_size=2, n_iter=2, random_state=0),
]


def broken(kind, **arrays):
    """The matrix GOOD in another format, with some of its arrays replaced behind its back."""
    X = kind(GOOD)
    for name, values in arrays.items():
        setattr(X, name, np.array(values, dtype=np.int32))
    return X


BROKEN = [
    broken(sp.csr_matrix, indices=[0, 2, 1, 0, 1, 4]),
    broken(sp.csr_matrix, indptr=[0, 2, 3, 7]),
    broken(sp.csc_matrix, indices=[0, 2, 1, 2, 0, 3]),
    broken(sp.coo_matrix, row=[0, 0, 1, 2, 2, 3]),
]


@pytest.mark.parametrize("X", BROKEN)
def test_indices_beyond_the_shape_are_refused(X):
    message = r"X is a sparse matrix whose indices do not fit its shape \(3, 4\); build it anew"
    for model in MODELS:
        fitted = copy.deepcopy(model).fit(GOOD)
        methods = ["fit", "partial_fit", "transform", "score", "score_samples"]
        if isinstance(model, LatentDirichletAllocation):
            methods += ["perplexity", "completion_score", "path"]
        else:
            methods += ["pseudo_log_likelihood"]
        for name in methods:
            with pytest.raises(ValueError, match=message):
                getattr(fitted, name)(X)
    with pytest.raises(ValueError, match=message):
        LDAPath(np.full((2, 4), 0.25), 0.5, X)


# ---- what is no matrix of numbers, no estimator, or not there yet
@pytest.mark.parametrize(
    "X",
    [
        ["the cat sat", "a dog ran"],
        np.array(["the cat sat", "a dog ran"]),
        [["the", "cat"], ["dog"]],
        pd.DataFrame({"text": ["the cat sat", "a dog ran"]}),
    ],
)
def test_texts_are_sent_to_a_counter_of_words(X):
    for model in MODELS:
        with pytest.raises(ValueError, match="X holds text and no numbers: .* CountVectorizer"):
            copy.deepcopy(model).fit(X)


@pytest.mark.parametrize(
    ("unfitted", "names"),
    [
        (BernoulliRBM(), ["components_", "intercept_hidden_", "log_partition_"]),
        (LatentDirichletAllocation(), ["partition_estimator_", "exp_dirichlet_component_"]),
        (AIS(), ["log_partition_", "result_", "run_", "converged_"]),
    ],
)
def test_what_is_read_before_fit_says_so(unfitted, names):
    for name in names:
        with pytest.raises(NotFittedError, match="fit"):
            getattr(unfitted, name)
        assert not hasattr(unfitted, name)
        assert getattr(copy.copy(unfitted), name, None) is None
        assert not hasattr(pickle.loads(pickle.dumps(unfitted)), name)


# ---- fits that fail
TOPICS = LatentDirichletAllocation(2, max_iter=2, random_state=0)
MIXTURE = FactorialMixture(2, tol=1.0, random_state=0)
COLD = {"tempering": Tempering(schedule=[0.5])}
FAILURES = [
    (TOPICS, "fit", {}, np.full((3, 5), 1e30), "tokens can't be counted"),
    (TOPICS, "partial_fit", {}, np.full((3, 4), 1e30), "tokens can't be counted"),
    (MIXTURE, "fit", {}, np.full((4, 5), 1e200), "too large to be squared"),
    (MIXTURE, "fit", COLD, np.eye(5), "temperatures"),
]


@pytest.mark.parametrize(("model", "method", "parameters", "X", "message"), FAILURES)
def test_a_fit_that_fails_leaves_the_model_as_it_was(model, method, parameters, X, message):
    fresh = copy.deepcopy(model).set_params(**parameters)
    with pytest.raises(ValueError, match=message):
        getattr(fresh, method)(X)
    assert vars(fresh).keys() == model.get_params(deep=False).keys()
    with pytest.raises(NotFittedError):
        fresh.transform(X)
    rows = GOOD.toarray()
    fitted = copy.deepcopy(model).fit(rows)
    expected = fitted.transform(rows)
    with pytest.raises(ValueError, match=message):
        getattr(fitted.set_params(**parameters), method)(X)
    assert fitted.n_features_in_ == 4
    np.testing.assert_array_equal(fitted.transform(rows), expected)


@pytest.mark.parametrize(
    ("model", "estimator", "why"),
    [
        (ProductOfExperts(), BridgeSampling(), "BridgeSampling, which needs draws"),
        (ProductOfExperts(), LeftToRight(), "LeftToRight, which reads documents"),
        (BernoulliRBM(), HAIS(), "HAIS, which moves points of R.d"),
        (BernoulliRBM(), AIS(transition=HMC()), "AIS, which moves points of R.d"),
        (BoltzmannMachine(), HAIS(), "HAIS, which moves points of R.d"),
        (LatentDirichletAllocation(), HAIS(), "HAIS, which moves points of R.d"),
        (FactorialMixture(), HAIS(), "HAIS, which moves points of R.d"),
    ],
)
def test_estimators_that_cannot_score_a_model_are_refused_when_it_is_fitted(model, estimator, why):
    model = clone(model).set_params(partition_estimator=estimator)
    with pytest.raises(TypeError, match=f"{why}.*: choose AIS, RTS or ParallelTempering"):
        model.fit(np.eye(4))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[0, 1, 0, 1], [1, 0, 1]], "an entry is itself a sequence, or rows differ in length"),
        ([[0, 1, 0, [1, 2]]], "an entry is itself a sequence, or rows differ in length"),
        (np.ones((2, 4), dtype="datetime64[s]"), "X holds dates or durations"),
        (pd.DataFrame({"a": [0, 1], "b": pd.to_timedelta([0, 1])}), "X holds dates or durations"),
        (np.ones((2, 4)) + 0j, r"X holds complex numbers: take its real part, or np.abs\(X\)"),
        (np.ma.masked_equal(np.eye(4), 1), "X has masked entries"),
    ],
)
def test_what_is_no_array_of_numbers_is_named(X, message):
    model = BernoulliRBM(2, n_iter=2, random_state=0)
    with pytest.raises(ValueError, match=message):
        model.fit(X)
    with pytest.raises(ValueError, match=message):
        model.fit(GOOD).score(X)


@pytest.mark.parametrize(
    ("model", "row"),
    [
        (BernoulliRBM(2, n_iter=1), [0.5, 1, 0, 1]),
        (BoltzmannMachine(alpha=1.0), [0.5, 1, 0, 1]),
        (LatentDirichletAllocation(2, max_iter=2), [0.3, 0.2, 0, 0.1]),
        (GaussianRBM(2, n_iter=2), [0.0, 1e200, 0.0, 0.0]),
        (ProductOfExperts(max_iter=2, tol=None, n_chains=20), [0.0, 1e300, 0.0, 0.0]),
    ],
    ids=lambda given: type(given).__name__ if hasattr(given, "fit") else "",
)
@pytest.mark.filterwarnings("ignore:the model is worse than one Gaussian")
def test_rows_without_a_likelihood_are_counted_and_have_none(model, row):
    X = np.random.default_rng(0).laplace(size=(60, 4))
    if model.__class__ in (BernoulliRBM, BoltzmannMachine, LatentDirichletAllocation):
        X = (X > 0).astype(float)
    model = clone(model).set_params(random_state=0).fit(X)
    mixed = np.vstack([X[:3], row])
    expected = [*model.score_samples(X[:3]), np.nan]
    message = "1 of 4 rows of X have no likelihood"
    with pytest.warns(UserWarning, match=message):
        np.testing.assert_array_equal(model.score_samples(mixed), expected)
    with pytest.warns(UserWarning, match=message):
        assert not model.score_interval(mixed).converged
    model.set_params(on_nonconvergence="nan")
    np.testing.assert_array_equal(model.score_samples(mixed), expected)
    assert np.isnan([model.score(mixed), model.score_interval(mixed).mean]).all()
    model.set_params(on_nonconvergence="raise")
    for method in (model.score, model.score_samples, model.score_interval):
        with pytest.raises(ValueError, match=message):
            method(mixed)
