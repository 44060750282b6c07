"""Warnings point at the line of the user's code."""

import ast
import inspect
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from joblib import parallel_config
from library import trees
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from sklpf import AIS, BernoulliRBM, FactorialMixture, LatentDirichletAllocation, compare

BINARY = (np.random.default_rng(0).random((12, 30)) < 0.5).astype(float)
COUNTS = np.array([[3, 1, 0], [0, 2, 2]])


def rbm(estimator=None):
    weights = np.random.default_rng(1).normal(scale=3, size=(25, 30))
    layers = weights, np.zeros(30), np.zeros(25)
    return BernoulliRBM.from_parameters(*layers, partition_estimator=estimator, random_state=0)


def calls():
    hasty = AIS(40, 2, random_state=1)
    lda = LatentDirichletAllocation(2, random_state=0).fit(COUNTS)
    untrusted, model = rbm(hasty), rbm()
    few = BernoulliRBM(2, partition_estimator=AIS(2, 2), random_state=0)
    return {
        "estimator": (ConvergenceWarning, lambda: hasty.fit(model)),
        "score": (ConvergenceWarning, lambda: untrusted.score(BINARY)),
        "score_samples": (ConvergenceWarning, lambda: untrusted.score_samples(BINARY)),
        "score_interval": (ConvergenceWarning, lambda: untrusted.score_interval(BINARY)),
        "estimate": (ConvergenceWarning, lambda: untrusted.estimate_log_partition()),
        "compare": (ConvergenceWarning, lambda: compare(untrusted, untrusted, BINARY)),
        "pseudo": (UserWarning, lambda: model.pseudo_log_likelihood(BINARY / 2)),
        "fit": (UserWarning, lambda: BernoulliRBM(2, n_iter=1, random_state=0).fit(BINARY * 2)),
        "partial_fit": (UserWarning, lambda: BernoulliRBM(2, random_state=0).partial_fit(-BINARY)),
        "mixture": (
            ConvergenceWarning,
            lambda: FactorialMixture(2, max_iter=1, random_state=0).fit(BINARY),
        ),
        "verbose": (ConvergenceWarning, lambda: AIS(40, 2, verbose=1, random_state=1).fit(model)),
        "rows": (ConvergenceWarning, lambda: hasty.fit(lda.path(COUNTS * 20))),
        "row score": (
            ConvergenceWarning,
            lambda: lda.set_params(partition_estimator=hasty).score(COUNTS * 20),
        ),
        "search": (
            ConvergenceWarning,
            lambda: GridSearchCV(few, {"n_iter": [1]}, cv=2, refit=False).fit(BINARY),
        ),
        "fractions": (UserWarning, lambda: lda.completion_score(COUNTS * 1.5)),
    }


def test_the_warned_line_is_the_callers():
    lines, first = inspect.getsourcelines(calls)
    for name, (category, call) in calls().items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        assert caught, name
        for warning in caught:
            assert warning.category is category, name
            assert warning.filename == __file__, name
        entries = [line for line in lines[: caught[0].lineno - first + 1] if '": (' in line]
        assert f'"{name}": (' in entries[-1], name


def test_in_threads_it_is_the_line_at_which_the_main_one_waits():
    def scores(model):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(model.score, BINARY).result()

    def search(model):
        few = clone(model).set_params(n_components=2)
        with parallel_config(backend="threading", n_jobs=2):
            GridSearchCV(few, {"n_iter": [1, 2]}, cv=2, refit=False).fit(BINARY)

    for call in (scores, search):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call(rbm(AIS(2, 2)))
        assert caught
        assert {warning.filename for warning in caught} == {__file__}
        lines, first = inspect.getsourcelines(call)
        assert all(first < warning.lineno < first + len(lines) for warning in caught)


def test_the_filters_of_the_process_are_never_changed():
    """They are shared by threads, so that a change within one leaves them otherwise for good."""
    changes = {"catch_warnings", "simplefilter", "filterwarnings", "resetwarnings", "showwarning"}
    changes |= {"seterr", "seterrcall", "setbufsize"}
    for file, tree in trees().items():
        nodes = list(ast.walk(tree))
        names = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        names |= {node.id for node in nodes if isinstance(node, ast.Name)}
        names |= {node.name for node in nodes if isinstance(node, ast.alias)}
        assert not names & changes, file
