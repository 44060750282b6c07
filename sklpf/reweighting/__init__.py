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
    bar,
    bar_ratios,
    neighbour_overlap,
    overlap,
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
    "neighbour_overlap",
    "node_sums",
    "overlap",
    "overlap_matrix",
    "reweighted_slopes",
    "rts_curve",
    "stationary",
    "stepping_stones",
    "with_first_error",
    "with_first_ratio",
]

# Shared with other folders.
# isort: split
from sklpf.reweighting._mbar import MixtureSums, mixture_sums, mixture_weights  # noqa: F401
