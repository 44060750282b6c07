"""Paths from a base density to the target, and their ladders of inverse temperatures."""

from sklpf._utils.random import Stream, stream_key
from sklpf.paths._base import Path, TemperedPath
from sklpf.paths._bases import Density, Gaussian, Mixture, StudentT, Uniform
from sklpf.paths._capabilities import *  # noqa: F403
from sklpf.paths._geometric import GeometricPath
from sklpf.paths._ladders import LADDERS, make_ladder
from sklpf.paths._modes import Modes, iterated_conditional_modes
from sklpf.paths._optional import FilterEstimates, OptionalMethods, has, require, require_base
from sklpf.paths._regions import Regions

__all__ = [
    "LADDERS",
    "Density",
    "FilterEstimates",
    "Gaussian",
    "GeometricPath",
    "Mixture",
    "Modes",
    "OptionalMethods",
    "Path",
    "Regions",
    "Stream",
    "StudentT",
    "TemperedPath",
    "Uniform",
    "iterated_conditional_modes",
    "make_ladder",
    "has",
    "require",
    "require_base",
    "stream_key",
]
