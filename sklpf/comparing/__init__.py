"""Comparing models that are fitted, and fits of models and pipelines."""

from sklpf.comparing._compare import ModelComparison, compare
from sklpf.comparing._compare_fits import compare_fits
from sklpf.comparing._fit_comparison import FitComparison, FitInterval

__all__ = [
    "FitComparison",
    "FitInterval",
    "ModelComparison",
    "compare",
    "compare_fits",
]
