"""Log normalisers from the arrays of a run: pure functions, one method a file."""

from sklpf.reweighting._bar import bar, overlap
from sklpf.reweighting._bridges import bar_ratios, stepping_stones
from sklpf.reweighting._importance import (
    MeanWeight,
    effective_sample_size,
    mean_weight,
    population_seen_from_target,
    seen_from_target,
)
from sklpf.reweighting._mbar import mbar
from sklpf.reweighting._rts import Pooled, bias, combine_rounds, influence, rts_curve, standard_error

__all__ = [
    "MeanWeight",
    "Pooled",
    "bar",
    "bar_ratios",
    "bias",
    "combine_rounds",
    "effective_sample_size",
    "influence",
    "mbar",
    "mean_weight",
    "overlap",
    "rts_curve",
    "population_seen_from_target",
    "seen_from_target",
    "standard_error",
    "stepping_stones",
]
