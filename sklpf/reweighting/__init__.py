"""Log normalisers from the arrays of a run: pure functions, by method."""

from sklpf.reweighting._continuous import (
    NodeSums,
    between_nodes,
    draw_betas,
    log_densities,
    log_mean_between,
    node_sums,
)
from sklpf.reweighting._mbar import mbar, overlap_matrix
from sklpf.reweighting._ratios import (
    MeanWeight,
    bar,
    bar_ratios,
    mean_weight,
    neighbour_overlap,
    overlap,
    population_seen_from_target,
    seen_from_target,
    stepping_stones,
    with_first_error,
    with_first_ratio,
)
from sklpf.reweighting._rts import (
    Pooled,
    bias,
    combine_rounds,
    influence,
    level_process,
    rts_curve,
    stationary,
)
from sklpf.reweighting._thermodynamic import RULES, integrate, level_moments, reweighted_slopes

__all__ = [
    "RULES",
    "MeanWeight",
    "NodeSums",
    "Pooled",
    "bar",
    "bar_ratios",
    "between_nodes",
    "bias",
    "combine_rounds",
    "draw_betas",
    "influence",
    "integrate",
    "level_moments",
    "level_process",
    "log_densities",
    "log_mean_between",
    "mbar",
    "mean_weight",
    "neighbour_overlap",
    "node_sums",
    "overlap",
    "overlap_matrix",
    "reweighted_slopes",
    "rts_curve",
    "population_seen_from_target",
    "seen_from_target",
    "stationary",
    "stepping_stones",
    "with_first_error",
    "with_first_ratio",
]

# Shared with other folders.
# isort: split
from sklpf.reweighting._mbar import MixtureSums, mixture_sums, mixture_weights  # noqa: F401
