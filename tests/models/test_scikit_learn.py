"""Every model in scikit-learn's hands: its own checks, grids over pipelines, the same bits for any
number of jobs, and after pickling.
"""

import inspect
import pickle

import numpy as np
import pytest
from marks import large
from sklearn import decomposition, neural_network
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, StandardScaler
from sklearn.utils import estimator_checks as checks
from small_models import MODELS, SHORT, rows

from sklpf import (
    AIS,
    HAIS,
    BernoulliRBM,
    BoltzmannMachine,
    FactorialMixture,
    GaussianRBM,
    LatentDirichletAllocation,
    LinearGenerativeModel,
    MeanCovarianceRBM,
    ProductOfExperts,
    Tempering,
)
from sklpf.transitions import HMC

OF_ANOTHER_KIND = [  # which train by other code
    BoltzmannMachine("pcd", alpha=0.1, max_iter=2, n_chains=9),
    LatentDirichletAllocation(
        2, learning_method="online", batch_size=7, shuffle=True, learn_doc_topic_prior=True
    ),
    LatentDirichletAllocation(
        2, learning_method="gibbs", n_init=2, max_iter=5, learn_topic_word_prior=True
    ),
    LatentDirichletAllocation(
        2, tempering="local", max_iter=4, partition_estimator=AIS(n_temperatures=20, n_chains=16)
    ),
    FactorialMixture(
        2, tempering=Tempering("local", n_tempered=5, initial_temperature=3.0), n_moves=0
    ),
    LinearGenerativeModel(prior="gaussian"),
    ProductOfExperts(expert="laplace", algorithm="ml", max_iter=2),
    MeanCovarianceRBM(algorithm="mpf", max_iter=2, n_mean=1, partition_estimator=SHORT),
]
OF_ANOTHER_KIND = [model.set_params(random_state=0) for model in OF_ANOTHER_KIND]
NAMES = {"ids": lambda given: type(given).__name__ if hasattr(given, "fit") else None}

# Few passes and levels are for speed; the rows of the checks are neither binary nor counts, and
# come in frames and arrays by turns.
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:X holds values "),
    pytest.mark.filterwarnings(r"ignore:\d+ of \d+ rows of X have no likelihood"),
    pytest.mark.filterwarnings("ignore:X has fractional counts"),
    pytest.mark.filterwarnings("ignore:n_components=1 is below"),
    pytest.mark.filterwarnings("ignore:X (does not have valid|has) feature names"),
]


@pytest.fixture(autouse=True)
def rough_losses(monkeypatch):
    """log Z after every pass from 20 chains over 20 levels without a pilot, which is fast."""
    monitor = HAIS(20, 20, transition=HMC(0.3), random_state=0)
    monkeypatch.setattr(MeanCovarianceRBM, "_monitor", monitor)


# ---- scikit-learn's own checks
@checks.parametrize_with_checks(MODELS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.large
@checks.parametrize_with_checks(OF_ANOTHER_KIND)
def test_scikit_learn_checks_of_another_kind(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore:the model is worse than one Gaussian")
@pytest.mark.parametrize(
    "model",
    [
        pytest.param(model, marks=[pytest.mark.large] * (model.partition_estimator is SHORT))
        for model in MODELS
    ],
    **NAMES,
)
@pytest.mark.parametrize(
    "check",
    [
        checks.check_param_validation,
        checks.check_set_output_transform,
        checks.check_set_output_transform_pandas,
        checks.check_dataframe_column_names_consistency,
        checks.check_transformer_get_feature_names_out,
    ],
    ids=lambda check: check.__name__,
)
def test_checks_that_authors_of_estimators_call_themselves(check, model):
    if hasattr(model, "transform") or "transform" not in check.__name__:
        check(type(model).__name__, model)


# ---- bits
@pytest.mark.parametrize("model", MODELS + [large(model) for model in OF_ANOTHER_KIND], **NAMES)
def test_a_seed_gives_the_same_bits_for_any_jobs_and_layout_and_after_pickling(model):
    X = rows(model)
    first = clone(model).fit(X)
    second = clone(model).set_params(n_jobs=2).fit(np.asfortranarray(X))
    copied = pickle.loads(pickle.dumps(first))
    for name in first._fitted_shapes:
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    scores = first.score_samples(X[:20])
    np.testing.assert_array_equal(second.score_samples(X[:20]), scores)
    np.testing.assert_array_equal(copied.score_samples(X[:20]), scores)
    name = next(iter(first._fitted_shapes))
    closed = isinstance(model, BoltzmannMachine) or getattr(model, "prior", "") == "gaussian"
    if not closed or getattr(model, "algorithm", "") == "pcd":
        other = clone(model).set_params(random_state=1).fit(X)
        assert not np.array_equal(getattr(first, name), getattr(other, name))
    if hasattr(first, "partial_fit"):
        first.partial_fit(X)
        copied.partial_fit(X)
        np.testing.assert_array_equal(getattr(first, name), getattr(copied, name))


# ---- grids
def pairs():
    """Of two columns that agree nine times in ten, the coupling is worth keeping."""
    rng = np.random.default_rng(1)
    first = rng.random(400)
    return np.column_stack([first, np.where(rng.random(400) < 0.9, first, 1 - first)])


def groups():
    """Two groups of rows want a hidden unit more than a learning rate of nothing."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(180, 3)) + 3 * rng.integers(2, size=(180, 1))


@pytest.mark.filterwarnings("ignore:the model is worse than one Gaussian")
@pytest.mark.parametrize(
    ("step", "model", "name", "values", "X"),
    [
        (Binarizer(threshold=0.5), BoltzmannMachine(), "alpha", [10.0, 1e-3], pairs()),
        (StandardScaler(), GaussianRBM(1, n_iter=50), "learning_rate", [1e-6, 0.1], groups()),
    ],
    **NAMES,
)
def test_a_grid_over_a_pipeline_finds_the_better_value(step, model, name, values, X):
    pipeline = make_pipeline(step, model.set_params(random_state=0))
    name = f"{type(model).__name__.lower()}__{name}"
    search = GridSearchCV(pipeline, {name: values}, cv=2).fit(X)
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))
    assert search.best_params_ == {name: values[-1]}
    last = search.best_estimator_[-1]
    assert search.score(X) == last.score(search.best_estimator_[0].transform(X))


@pytest.mark.parametrize(
    ("model", "replaced"),
    [
        (BernoulliRBM, neural_network.BernoulliRBM),
        (LatentDirichletAllocation, decomposition.LatentDirichletAllocation),
    ],
)
def test_signatures_begin_with_the_parameters_that_scikit_learn_has(model, replaced):
    """And a fitted model has the names of a fitted one of scikit-learn's."""
    signatures = (inspect.signature(kind).parameters.values() for kind in (model, replaced))
    own, others = ({p.name: (p.kind, p.default) for p in given} for given in signatures)
    assert list(own)[: len(others)] == list(others)
    assert others.items() <= own.items()
    X = np.eye(4)
    ours, theirs = (kind(n_components=2).fit(X) for kind in (model, replaced))
    assert {name for name in dir(theirs) if not name.startswith("_")} <= set(dir(ours))
