"""Where the model stands in a pipeline or a search, and which rows it is given there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sklearn.pipeline import Pipeline


def is_model(estimator: Any) -> bool:
    """Whether an estimator is a model with a log-likelihood of rows."""
    return hasattr(estimator, "_scored")


def last_step(estimator: Any) -> Any:
    """Return the last step of a pipeline, and of pipelines in it; any other estimator itself."""
    while isinstance(estimator, Pipeline):
        estimator = estimator[-1]
    return estimator


def check_same_kind(estimators: Mapping[str, Any]) -> None:
    """Raise ValueError if some of these models or pipelines, by name, have densities of rows and
    others probabilities, or some those of documents.
    """
    kinds = {name: _kind(last_step(estimator)) for name, estimator in estimators.items()}
    known = {name: kind for name, kind in kinds.items() if kind}
    first = next(iter(known), "")
    for name, kind in known.items():
        if kind != known[first]:
            raise ValueError(
                f"{first} has {known[first]} and {name} has {kind}, which can't be compared: a"
                " density depends on the units of X, a probability does not, and that of a document"
                " is of its words in their order; compare models of one kind"
            )


def _kind(model: Any) -> str:
    """What a model's likelihoods are; empty where it does not say."""
    if getattr(model, "_unit", "row") == "document":
        return "probabilities of documents"
    discrete = getattr(model, "_discrete", None)
    if discrete is None:
        return ""
    return "probabilities of rows" if discrete else "densities of rows"


def common_unit(estimators: Iterable[Any]) -> str:
    """What a row of these models or pipelines is: "document" where all agree, else "row"."""
    units = {getattr(last_step(estimator), "_unit", "row") for estimator in estimators}
    return units.pop() if len(units) == 1 else "row"


def steps_behind_model(pipeline: Pipeline) -> int | None:
    """How many steps stand behind the last one that ends in a model; None if no step does."""
    for n_behind, (_, step) in enumerate(reversed(pipeline.steps)):
        if is_model(last_step(step)):
            return n_behind
    return None


def find_model(estimator: Any, X: Any) -> tuple[Any, Any]:
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
            "log_likelihood needs a model of sklpf, or a pipeline or a search that holds one, got "
            f"{_described(estimator)}"
        )
    while not is_model(estimator):
        if isinstance(estimator, Pipeline):
            place = max(i for i, (_, step) in enumerate(estimator.steps) if holds_model(step))
            X = estimator[:place].transform(X) if place else X
            estimator = estimator[place]
        else:
            estimator = estimator.best_estimator_
    return estimator, X


def holds_model(estimator: Any) -> bool:
    """Whether an estimator is a model, or a pipeline or a finished search with one in it."""
    if isinstance(estimator, Pipeline):
        return any(holds_model(step) for _, step in estimator.steps)
    if hasattr(estimator, "best_estimator_"):
        return holds_model(estimator.best_estimator_)
    return is_model(estimator)


def _described(estimator) -> str:
    """What an estimator without a model is, for an error."""
    if isinstance(estimator, Pipeline):
        steps = (
            step if isinstance(step, str) else type(step).__name__ for _, step in estimator.steps
        )
        return f"a pipeline of {', '.join(steps)}"
    name = f"{type(estimator).__module__}.{type(estimator).__name__}"
    if hasattr(estimator, "best_estimator_"):
        return f"{name}, which found {_described(estimator.best_estimator_)}"
    if name.endswith("SearchCV"):
        return (
            f"{name} without a best_estimator_: call fit first, with refit=True or the name of a"
            " score"
        )
    return name
