"""log_likelihood: a scorer that finds the model in pipelines and searches."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Binarizer, MinMaxScaler

from sklpf import BernoulliRBM, log_likelihood

DIGITS, LABELS = (part[:300] for part in load_digits(return_X_y=True))
BINARY = (DIGITS > 7).astype(np.float64)


def rbm(n_components=4, **options):
    return BernoulliRBM(n_components, n_iter=3, batch_size=50, random_state=0, **options)


def classifier_behind(model):
    last = "classifier", LogisticRegression(C=0.1)
    return Pipeline([("binary", Binarizer(threshold=7)), ("rbm", model), last])


def searched(estimator, **options):
    return GridSearchCV(estimator, {}, cv=2, **options)


# ---- where the model is found
HOLDERS = {
    "a pipeline that ends in it": classifier_behind(rbm())[:-1],
    "a classifier behind it": classifier_behind(rbm()),
    "a scaler and a classifier behind it": make_pipeline(
        Binarizer(threshold=7), rbm(), MinMaxScaler(), LogisticRegression(C=0.1)
    ),
    "a last step that is left out": classifier_behind(rbm()).set_params(classifier="passthrough"),
    "a pipeline in a pipeline": make_pipeline(
        Binarizer(threshold=7), make_pipeline(rbm(), LogisticRegression(C=0.1))
    ),
    "a classifier behind a pipeline": make_pipeline(
        classifier_behind(rbm())[:-1], LogisticRegression(C=0.1)
    ),
    "a search": searched(classifier_behind(rbm()), scoring=log_likelihood),
    "a search in a pipeline": make_pipeline(Binarizer(threshold=7), searched(rbm())),
}


@pytest.mark.parametrize("estimator", HOLDERS.values(), ids=HOLDERS)
def test_the_model_is_found_and_its_rows_are_those_of_the_steps_before_it(estimator):
    expected = rbm().fit(BINARY).score(BINARY[:50])
    estimator = clone(estimator).fit(DIGITS, LABELS)
    score = log_likelihood(estimator, DIGITS[:50], LABELS[:50])
    assert type(score) is float
    assert score == log_likelihood(estimator, DIGITS[:50]) == expected
