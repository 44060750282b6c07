"""The scorer for scikit-learn's searches: the log-likelihood of the model in a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import DensityMixin
from sklearn.decomposition import PCA, FactorAnalysis
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import Pipeline

from sklpf._utils.numbers import Matrix
from sklpf._utils.sklearn import BaseEstimator
from sklpf.scoring._scored import Scored


def is_model(estimator: BaseEstimator) -> bool:
    """True if an estimator is a model with a log-likelihood of rows."""
    return hasattr(estimator, "_scored")


def is_density(estimator: BaseEstimator) -> bool:
    """True if an estimator is a density of scikit-learn, whose log-likelihoods have no error, or a
    pipeline that ends in one and holds no model.
    """
    densities = (DensityMixin, FactorAnalysis, KernelDensity, PCA)
    return isinstance(last_step(estimator), densities) and not holds_model(estimator)


class OtherDensity:
    """A fitted density of scikit-learn as comparisons take a model."""

    _unit = "row"
    _discrete = False

    def __init__(self, density: BaseEstimator):
        self.density = density

    def _scored(self, rows: Matrix, level: float) -> Scored:
        values = np.asarray(self.density.score_samples(rows), dtype=np.float64)
        return Scored(values, below=0.0, above=0.0)


def last_step(estimator: BaseEstimator) -> Any:
    """Return the last step of a pipeline, and of pipelines in it; any other estimator itself."""
    while isinstance(estimator, Pipeline):
        estimator = estimator[-1]
    return estimator


def check_same_kind(estimators: Mapping[str, Any]) -> None:
    """Raise ValueError if some of these models or pipelines, by name, have densities of rows and
    others probabilities, or some those of documents.
    """
    kinds = {name: _kind(last_step(estimator)) for name, estimator in estimators.items()}
    first = next(iter(kinds))
    for name, kind in kinds.items():
        if kind != kinds[first]:
            raise ValueError(
                f"{first} has {kinds[first]} and {name} has {kind}, which can't be compared: a"
                " density depends on the units of X, a probability does not, and that of a document"
                " is of its words in their order; compare models of one kind"
            )


def _kind(model: Any) -> str:
    """Kind of a model's likelihoods."""
    if is_density(model):
        return "densities of rows"
    if model._unit == "document":
        return "probabilities of documents"
    return "probabilities of rows" if model._discrete else "densities of rows"


def find_model(estimator: BaseEstimator, X: Matrix) -> tuple[Any, Any]:
    """Return the last model in a fitted estimator, and what the steps before it make of X.

    Parameters
    ----------
    estimator : fitted model, pipeline, or search that has refitted one
        Pipelines and searches may hold each other. What stands behind the model, such as a
        classifier, is not used.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows, as the estimator is given them.

    Raises
    ------
    TypeError
        If there is no model.
    """
    if not holds_model(estimator):
        raise TypeError(
            "log_likelihood needs a model of sklpf, a pipeline with one as a step, or a search that"
            " has refitted one (refit=True, or the name of a score), got"
            f" {type(estimator).__module__}.{estimator!r:.200}"
        )
    while not is_model(estimator):
        if isinstance(estimator, Pipeline):
            place = max(i for i, (_, step) in enumerate(estimator.steps) if holds_model(step))
            X = estimator[:place].transform(X) if place else X
            estimator = estimator[place]
        else:
            estimator = estimator.best_estimator_
    return estimator, X


def holds_model(estimator: BaseEstimator) -> bool:
    """True if an estimator is a model, or a pipeline or a finished search with one in it."""
    if isinstance(estimator, Pipeline):
        return any(holds_model(step) for _, step in estimator.steps)
    if hasattr(estimator, "best_estimator_"):
        return holds_model(estimator.best_estimator_)
    return is_model(estimator)


def log_likelihood(estimator, X, y=None) -> float:
    """Mean log-likelihood of rows by the model in an estimator, in nats: for ``scoring=``.

    A model, and a pipeline that ends in one, have it as their `score`, which searches use by
    themselves. Here more may stand behind the model, such as a classifier that is given its
    features.

    Parameters
    ----------
    estimator : fitted model, pipeline with one in it, or search that has refitted one
        The estimator to score. If a pipeline holds several models, its last one is scored.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows, as the estimator is given them. What is scored is what the steps before the model
        make of them: candidates with other steps there can't be compared.
    y : ignored
        Not used; there for scikit-learn's conventions.

    Returns
    -------
    score : float
        The model's `score`; NaN or an error where it is not trusted and the model's
        `on_nonconvergence` says so.

    Raises
    ------
    TypeError
        If the estimator has no model in it.

    Notes
    -----
    The error of log Z is recorded by a scorer beside this one: ``scoring={"nats": log_likelihood,
    "error": lambda pipe, X, y=None: pipe["rbm"].log_partition_std_error_}`` with ``refit="nats"``.
    The interval of a pipeline ``pipe`` that ends in a model is
    ``pipe[-1].score_interval(pipe[:-1].transform(X))``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.pipeline import Pipeline
    >>> from sklpf import BernoulliRBM, log_likelihood
    >>> X = np.tile(np.eye(4), (10, 1))
    >>> y = X[:, 0]
    >>> settings = dict(learning_rate=0.1, n_iter=50, random_state=0)
    >>> rbm = BernoulliRBM(on_nonconvergence="nan", **settings)
    >>> pipe = Pipeline([("rbm", rbm), ("classifier", LogisticRegression())])
    >>> grid = {"rbm__n_components": [1, 4]}
    >>> search = GridSearchCV(pipe, grid, scoring=log_likelihood, cv=2).fit(X, y)
    >>> log_likelihood(search, X) == search.best_estimator_["rbm"].score(X)
    True
    >>> search.predict(X).shape
    (40,)
    """
    model, rows = find_model(estimator, X)
    return model.score(rows)
