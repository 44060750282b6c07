"""Models, estimators, results and runs survive pickle, joblib and skops, and say when the version
differs.
"""

import copy
import io
import pickle
import warnings

import joblib
import numpy as np
import pytest
from estimators import fitted
from sklearn.base import clone
from sklearn.exceptions import InconsistentVersionWarning
from small_models import MODELS, rows

import sklpf
from sklpf import BernoulliRBM, compare, compare_fits
from sklpf.partition import compare_estimates

RNG = np.random.default_rng(0)
BINARY = (RNG.random((40, 6)) < 0.4).astype(float)
RBM = BernoulliRBM.from_parameters(RNG.normal(size=(5, 6)), np.zeros(6), np.zeros(5))
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:1 of 3 documents of X have no words"),
]


def by_pickle(thing):
    return pickle.loads(pickle.dumps(thing))


def by_joblib(thing):
    file = io.BytesIO()
    joblib.dump(thing, file)
    file.seek(0)
    return joblib.load(file)


def by_skops(thing):
    skops = pytest.importorskip("skops.io")
    data = skops.dumps(thing)
    types = skops.get_untrusted_types(data=data)
    assert all(name.startswith("sklpf.") for name in types)
    return skops.loads(data, trusted=types)


WAYS = pytest.mark.parametrize("way", [by_pickle, by_joblib, by_skops, copy.deepcopy])


@pytest.fixture(scope="module", params=MODELS, ids=lambda model: type(model).__name__)
def scored(request):
    model = clone(request.param)
    X = rows(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X), X, model.score(X[:3])


@WAYS
def test_models_keep_their_scores_and_their_last_estimator(scored, way):
    model, X, score = scored
    again = way(model)
    kept = again.partition_estimator_.log_partition_
    np.testing.assert_array_equal(kept, model.partition_estimator_.log_partition_)
    assert again.score(X[:3]) == score


@pytest.mark.parametrize("name", ["AIS", "SMC", "ParallelTempering", "RTS"])
@WAYS
def test_estimators_keep_their_results_and_runs(name, way):
    estimator = fitted(name)
    again = way(estimator)
    assert again.result_.summary() == estimator.result_.summary()
    assert repr(again.run_) == repr(estimator.run_)
    assert clone(again).fit(again.run_).log_partition_ == estimator.log_partition_


@WAYS
def test_comparisons_survive(way):
    tempering = fitted("ParallelTempering")
    fair = BernoulliRBM.from_parameters(np.zeros((1, 6)), np.zeros(6), np.zeros(1))
    procedures = {f"{n} units": BernoulliRBM(n, n_iter=1) for n in (1, 2)}
    comparisons = (
        compare_estimates(tempering.run_),
        compare({"rbm": RBM, "fair": fair}, X=BINARY),
        compare_fits(procedures, BINARY, cv=2, random_state=0),
    )
    for comparison in comparisons:
        again = way(comparison)
        assert repr(again) == repr(comparison)
        assert again._repr_html_() == comparison._repr_html_()
        assert again.summary() == comparison.summary()


@pytest.mark.parametrize("thing", ["model", "estimator", "result", "run"])
def test_another_version_is_named(thing, monkeypatch):
    tempering = fitted("ParallelTempering")
    things = {"model": RBM, "estimator": clone(tempering), "result": tempering.result_}
    things["run"] = tempering.run_
    saved = pickle.dumps(things[thing])
    pickle.loads(saved)
    monkeypatch.setattr(sklpf._utils.validation, "__version__", "99.1")
    message = r"saved by version \S+ of sklpf is read by version 99.1"
    with pytest.warns(InconsistentVersionWarning, match=message) as caught:
        pickle.loads(saved)
    assert type(things[thing]).__name__ in [warning.message.estimator_name for warning in caught]
    assert {warning.message.current_sklearn_version for warning in caught} == {"99.1"}
    assert {warning.filename for warning in caught} == {__file__}
