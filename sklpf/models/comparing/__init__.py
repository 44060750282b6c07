"""Comparing models that are fitted, and fits of models and pipelines."""

from sklpf.models.comparing._compare import ModelComparison, compare, score_interval
from sklpf.models.comparing._compare_fits import compare_fits
from sklpf.models.comparing._density_ratio_path import (
    N_DRAWS,
    N_GROUPS,
    DensityRatioPath,
    draw_alarms,
    draws_of_both,
)
from sklpf.models.comparing._fit_comparison import FitComparison, FitInterval

__all__ = [
    "DensityRatioPath",
    "FitComparison",
    "FitInterval",
    "ModelComparison",
    "N_DRAWS",
    "N_GROUPS",
    "compare",
    "compare_fits",
    "draw_alarms",
    "draws_of_both",
    "score_interval",
]
