"""Paths from a base density to the target, and their ladders of inverse temperatures."""

from sklpf._utils.random import Stream, stream_key
from sklpf.paths._base import Path, TemperedPath
from sklpf.paths._bases import Density, Gaussian, Mixture, StudentT, Uniform
from sklpf.paths._geometric import GeometricPath
from sklpf.paths._ladders import LADDERS, make_ladder
from sklpf.paths._optional import FilterEstimates, OptionalMethods, has, require, require_base
from sklpf.paths._regions import Regions

# Shared with moves, programs and estimators: arrays of a state, ladders, bases, compiled paths.
# isort: split
from sklpf.paths._base import (  # noqa: F401
    CompiledPrograms,
    Evaluations,
    KernelPath,
    Points,
    PointsPath,
    SlopedPoints,
    check_ladder,
    choose,
    concatenate,
    density_at,
    flat_rows,
    map_state,
    n_chains,
    put,
    read_only,
    take,
    trajectory_at,
    values_at,
)
from sklpf.paths._bases import is_outside  # noqa: F401
from sklpf.paths._climbs import functions_for_climbs  # noqa: F401
from sklpf.paths._functions import values_of  # noqa: F401
from sklpf.paths._geometric import CompiledDensityPath, is_own_density  # noqa: F401
from sklpf.paths._ladders import respace  # noqa: F401
from sklpf.paths._mixture_fit import defensive, fit_base  # noqa: F401
from sklpf.paths._optional import State  # noqa: F401
from sklpf.paths._regions import find_regions  # noqa: F401

__all__ = [
    "LADDERS",
    "Density",
    "FilterEstimates",
    "Gaussian",
    "GeometricPath",
    "Mixture",
    "OptionalMethods",
    "Path",
    "Regions",
    "Stream",
    "StudentT",
    "TemperedPath",
    "Uniform",
    "make_ladder",
    "has",
    "require",
    "require_base",
    "stream_key",
]
from sklpf.paths._bases import as_base, full_matrix, full_roots, shrunk_covariance  # noqa: F401
from sklpf.paths._climbs import (  # noqa: F401
    Ends,
    climb,
    evaluate_bisecting_failures,
    mirrored,
    starts_of_climbs,
)
from sklpf.paths._functions import (  # noqa: F401
    COVER,
    gradients_of,
    shape_given,
    shown,
    values_of_shape,
)
from sklpf.paths._geometric import coordinates_of_rows  # noqa: F401
from sklpf.paths._mixture_fit import fit_parts  # noqa: F401
from sklpf.paths._regions import (  # noqa: F401
    ClimbTarget,
    drawn_by_weight,
    ellipsoid_at_mode,
    highest_of_draws,
)
