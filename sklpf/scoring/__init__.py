"""Likelihoods of models with one log Z and with one a row, and what makes a score of them."""

from sklpf.scoring._likelihood import (
    SCORING,
    LogLikelihoodMixin,
    RowLikelihoodMixin,
    fit_for_model,
    report,
)
from sklpf.scoring._scored import (
    IntervalOfMean,
    Scored,
    ScoreInterval,
    best_first,
    interval_of,
    sampled_units,
)
from sklpf.scoring._searches import (
    check_same_kind,
    find_model,
    holds_model,
    is_model,
    last_step,
    log_likelihood,
    log_likelihood_with_error,
)

__all__ = [
    "IntervalOfMean",
    "LogLikelihoodMixin",
    "RowLikelihoodMixin",
    "SCORING",
    "ScoreInterval",
    "Scored",
    "best_first",
    "check_same_kind",
    "find_model",
    "fit_for_model",
    "holds_model",
    "interval_of",
    "is_model",
    "last_step",
    "log_likelihood",
    "log_likelihood_with_error",
    "report",
    "sampled_units",
]
