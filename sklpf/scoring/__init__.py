"""Likelihoods of models with one log Z and with one a row, and what makes a score of them."""

from sklpf.scoring._outliers import LikelihoodOutliers
from sklpf.scoring._scored import ScoreDifference, ScoreInterval
from sklpf.scoring._searches import log_likelihood

__all__ = ["LikelihoodOutliers", "ScoreDifference", "ScoreInterval", "log_likelihood"]

# Shared with other folders.
# isort: split
from sklpf.scoring._baseline import BaselineScore  # noqa: F401
from sklpf.scoring._likelihood import (  # noqa: F401
    SCORING,
    LogLikelihoodMixin,
    Marginals,
    RowLikelihoodMixin,
    ScoredModel,
    fit_for_model,
    report,
)
from sklpf.scoring._scored import (  # noqa: F401
    IntervalOfMean,
    Scored,
    best_first,
    interval_of,
    sampled_units,
)
from sklpf.scoring._searches import (  # noqa: F401
    OtherDensity,
    check_same_kind,
    holds_model,
    is_density,
    is_model,
    last_step,
)
