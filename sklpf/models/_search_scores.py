"""Split scores of a finished scikit-learn search, for comparing its candidates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.model_selection import check_cv

from sklpf.models._fit_comparison import SplitScores
from sklpf.models._pipelines import common_unit

# keys of a scorer that returns several scores
LOG_LIKELIHOOD = "log_likelihood"
PARTITION = "log_partition_std_error"

_ROWS = 10_000  # of made-up data, to see the sizes of a splitter's parts


def is_search(candidates: Any) -> bool:
    """Whether it is a search of scikit-learn, finished or not."""
    is_named = (
        isinstance(candidates, BaseEstimator)
        and {"estimator", "cv", "refit"} <= candidates.get_params(False).keys()
    )
    return is_named or hasattr(candidates, "cv_results_")


def search_scores(search: Any) -> tuple[SplitScores, list[str]]:
    """Return the scores of all candidates in the search's order, and what is missing in words.

    Raises
    ------
    ValueError
        If the search has not been fitted, or does not keep scores of comparable splits.
    """
    if not hasattr(search, "cv_results_"):
        raise ValueError("candidates is a search that is not fitted: call its fit(X) first")
    results = search.cv_results_
    if "n_resources" in results:
        raise ValueError(
            "candidates is a search that trains on fewer rows at first, so that its scores can't be"
            " compared: give a GridSearchCV or RandomizedSearchCV, or the candidates that are left"
            " as a dict"
        )
    metric = _metric(search, results)
    scores = _of_splits(results, metric)
    if scores is None or scores.shape[1] < 2:
        raise ValueError(
            "candidates is a search without scores of at least 2 splits"
            f" (cv_results_['split0_test_{metric}'] and on): fit it with cv=5, say"
        )
    if len(scores) < 2:
        raise ValueError(
            "candidates must hold at least 2 procedures to be compared, got a search over 1"
        )
    names = _names(results["params"])
    errors = _of_splits(results, PARTITION)
    if errors is not None and not np.all(np.isfinite(errors[np.isfinite(scores)])):
        errors = None
    missing = [
        f"{name}, split {split}: the search has no score"
        for name, row in zip(names, scores)
        for split in np.flatnonzero(~np.isfinite(row))
    ]
    held_out = SplitScores(
        names=tuple(names),
        scores=dict(zip(names, np.where(np.isfinite(scores), scores, np.nan))),
        partition=None if errors is None else dict(zip(names, errors)),
        test_over_train=_test_over_train(search.cv, scores.shape[1]),
        unit=common_unit([search.estimator]),
    )
    return held_out, missing


def _metric(search, results) -> str:
    """Name of the score that is a log-likelihood."""
    if "split0_test_score" in results:
        return "score"
    if isinstance(search.refit, str):
        return search.refit
    if f"split0_test_{LOG_LIKELIHOOD}" in results or "mean_test_score" in results:
        return LOG_LIKELIHOOD
    raise ValueError(
        "candidates is a search with several scores, none of which is named as the log-likelihood:"
        f' call it "{LOG_LIKELIHOOD}" in scoring, or name it by refit'
    )


def _of_splits(results, metric) -> NDArray[np.float64] | None:
    """Scores of all candidates, (n_candidates, n_splits)."""
    columns: list[NDArray[np.float64]] = []
    while f"split{len(columns)}_test_{metric}" in results:
        columns.append(np.asarray(results[f"split{len(columns)}_test_{metric}"], dtype=np.float64))
    return np.transpose(columns) if columns else None


def _names(params) -> list[str]:
    """What tells the candidates apart: "n_components=16"."""
    keys = list(dict.fromkeys(key for candidate in params for key in candidate))
    texts = [{key: str(candidate[key]) for key in keys if key in candidate} for candidate in params]
    differing = [key for key in keys if len({text.get(key) for text in texts}) > 1]
    names = [", ".join(f"{key}={text[key]}" for key in differing if key in text) for text in texts]
    if len(set(names)) < len(names):  # the same parameters twice, as random searches may draw them
        names = [f"{position}: {name}" for position, name in enumerate(names)]
    return names


def _test_over_train(cv, n_splits: int) -> float:
    """Held-out rows per training row of a split; k folds are assumed where `cv` does not say."""
    for groups in (None, np.arange(_ROWS)):
        try:
            splits = list(
                check_cv(cv).split(np.zeros((_ROWS, 1)), np.zeros(_ROWS, dtype=int), groups)
            )
            return float(np.mean([len(test) / len(train) for train, test in splits]))
        except Exception:  # it needs groups, or the rows that it was made for
            continue
    return 1 / (n_splits - 1)
