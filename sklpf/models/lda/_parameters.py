"""What parameters and topics latent Dirichlet allocation can take."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklpf._utils.numbers import as_float64
from sklpf.models._validation import check_parameter

_PRIOR_RANGE = 1e-20, 1e10
_ROUNDING = 1e-5  # of sums of probabilities, as in the path
_CERTAIN = 1e28  # tokens that known probabilities stand for; digamma has its digits up to 1e30


def check_options(model) -> None:
    """Raise ValueError if the model's way of learning lacks something that was asked for."""
    gibbs = model.learning_method == "gibbs"
    if gibbs and model.tempering is not None:
        raise ValueError(
            'tempering needs learning_method="batch" or "online"; set it to None for "gibbs"'
        )
    if not gibbs and (model.learn_topic_word_prior or model.n_init > 1):
        raise ValueError('learn_topic_word_prior and n_init > 1 need learning_method="gibbs"')


def check_prior(name: str, prior: ArrayLike | None, n_topics: int) -> float | NDArray[np.float64]:
    """Return a prior, a number or a copy of n_topics of them; None is 1 / n_topics.

    Raises
    ------
    TypeError
        If it holds anything but numbers.
    ValueError
        If it is of another shape, or so small or large that its digamma function or its sums lose
        all digits.
    """
    if prior is None:
        return 1 / n_topics
    values = as_float64(prior, name, copy=True)
    (low, high) = _PRIOR_RANGE
    if values.ndim > 0 and values.shape != (n_topics,):
        raise ValueError(
            f"{name} must be a number or have the shape ({n_topics},), got shape {values.shape}"
        )
    wrong = values[~((values >= low) & (values <= high))]
    if len(wrong):
        raise ValueError(f"{name} must lie between {low:g} and {high:g}, got {wrong[0]:g}; clip it")
    return values if values.ndim else float(values)


def check_topics(topics: ArrayLike) -> NDArray:
    """Return a copy of topics as Dirichlet parameters, (n_topics, n_features); probabilities become
    certain ones.
    """
    checked = check_parameter(
        topics, "topics", dtype=(np.float64, np.float32), order="C", copy=True
    )
    if not np.all(checked > 0):
        raise ValueError(
            "topics must be positive; add a little to every probability and normalise the rows"
        )
    certain = np.abs(checked.sum(axis=1, dtype=np.float64) - 1).max() <= _ROUNDING
    return checked * checked.dtype.type(_CERTAIN) if certain else checked
