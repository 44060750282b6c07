"""Paths from a base density to the target, and their ladders of inverse temperatures."""

from sklpf._utils.random import Stream, stream_key
from sklpf.paths._base import Path, TemperedPath
from sklpf.paths._bases import Density, Uniform
from sklpf.paths._capabilities import (
    Base,
    BoundDraws,
    ClosedForm,
    ConditionalDraws,
    ConditionalModes,
    Continuous,
    DataStarts,
    Derivatives,
    Enumeration,
    Filters,
    GibbsMove,
    Gradients,
    Parameters,
    Proposal,
    Rows,
    SimulatedRows,
    TargetDraws,
    Unconstrain,
    require_base,
)
from sklpf.paths._conditional_modes import Modes, iterated_conditional_modes
from sklpf.paths._elliptical import Gaussian, StudentT
from sklpf.paths._geometric import GeometricPath
from sklpf.paths._ladders import LADDERS, make_ladder

__all__ = [
    "LADDERS",
    "Base",
    "BoundDraws",
    "ClosedForm",
    "ConditionalDraws",
    "ConditionalModes",
    "Continuous",
    "DataStarts",
    "Density",
    "Derivatives",
    "Enumeration",
    "Filters",
    "Gaussian",
    "GeometricPath",
    "GibbsMove",
    "Gradients",
    "Modes",
    "Parameters",
    "Path",
    "Proposal",
    "Rows",
    "SimulatedRows",
    "Stream",
    "StudentT",
    "TargetDraws",
    "TemperedPath",
    "Unconstrain",
    "Uniform",
    "iterated_conditional_modes",
    "make_ladder",
    "require_base",
    "stream_key",
]
