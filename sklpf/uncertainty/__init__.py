"""Monte Carlo error: jackknife over independent groups, t-tests, correlated draws, and the Pareto
tail of importance weights.
"""

from sklpf.uncertainty._chains import effective_draws, rank_normalised, split_r_hat
from sklpf.uncertainty._disagreement import (
    MOST_BETWEEN,
    Difference,
    between_groups,
    difference,
    groups_persist,
    t_bound,
    t_ratio,
)
from sklpf.uncertainty._jackknife import jackknife
from sklpf.uncertainty._weights import (
    ParetoTail,
    effective_sample_size,
    log_mean_exp,
    pareto_shape,
    pareto_tail,
)

__all__ = [
    "MOST_BETWEEN",
    "Difference",
    "ParetoTail",
    "between_groups",
    "difference",
    "effective_sample_size",
    "effective_draws",
    "groups_persist",
    "jackknife",
    "log_mean_exp",
    "pareto_shape",
    "pareto_tail",
    "rank_normalised",
    "split_r_hat",
    "t_bound",
    "t_ratio",
]
