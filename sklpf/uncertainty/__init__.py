"""Monte Carlo error: of independent weights and groups, and of draws that are correlated."""

from sklpf.uncertainty._correlated import (
    count_interleaved,
    deinterleaved,
    effective_draws,
    first_axis_is_time,
    rank_normalised,
    split_r_hat,
)
from sklpf.uncertainty._independent import (
    MOST_BETWEEN,
    Difference,
    MeanWeight,
    ParetoTail,
    between_groups,
    difference,
    effective_sample_size,
    groups_persist,
    jackknife,
    log_mean_exp,
    mean_weight,
    pareto_shape,
    pareto_tail,
    population_seen_from_target,
    seen_from_target,
    standard_error,
    t_bound,
    t_ratio,
)

__all__ = [
    "MOST_BETWEEN",
    "Difference",
    "MeanWeight",
    "ParetoTail",
    "between_groups",
    "count_interleaved",
    "deinterleaved",
    "difference",
    "effective_draws",
    "effective_sample_size",
    "first_axis_is_time",
    "groups_persist",
    "jackknife",
    "log_mean_exp",
    "mean_weight",
    "pareto_shape",
    "pareto_tail",
    "population_seen_from_target",
    "rank_normalised",
    "seen_from_target",
    "split_r_hat",
    "standard_error",
    "t_bound",
    "t_ratio",
]

# Shared with other folders.
# isort: split
from sklpf.uncertainty._independent import (  # noqa: F401
    FALSE_ALARM,
    MATERIAL_DIFFERENCE,
    Variance,
)
