"""Paths from a base density to the target, and their ladders of inverse temperatures."""

from sklpf._utils.random import Stream, stream_key
from sklpf.paths._base import LADDERS, Path, TemperedPath, has, make_ladder, require, require_base
from sklpf.paths._bases import Density, Gaussian, Mixture, StudentT, Uniform
from sklpf.paths._box import Box
from sklpf.paths._geometric import GeometricPath
from sklpf.paths._optional import FilterEstimates, OptionalMethods
from sklpf.paths._regions import Regions

__all__ = [
    "LADDERS",
    "Box",
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

# Shared with other folders: arrays of a state, ladders, bases, climbs, compiled paths.
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
    respace,
    take,
    trajectory_at,
    values_at,
)
from sklpf.paths._bases import (  # noqa: F401
    as_base,
    box_around,
    full_matrix,
    full_roots,
    shrunk_covariance,
)
from sklpf.paths._climbs import (  # noqa: F401
    ClimbTarget,
    Ends,
    climb,
    evaluate_bisecting_failures,
    functions_for_climbs,
    mirrored,
    starts_of_climbs,
)
from sklpf.paths._functions import (  # noqa: F401
    COVER,
    Memory,
    Pool,
    evaluate,
    gradients_of,
    log_densities_of,
    pool_of,
    shape_given,
    shown,
    takes_one_point,
    values_of,
    values_of_shape,
)
from sklpf.paths._geometric import (  # noqa: F401
    CompiledDensityPath,
    coordinates_of_rows,
    is_own_density,
    require_own_density,
)
from sklpf.paths._mixture_fit import (  # noqa: F401
    DEGREES_OF_FREEDOM,
    FittedParts,
    defensive,
    fit_base,
    fit_parts,
    with_tails,
)
from sklpf.paths._optional import (  # noqa: F401
    State,
)
from sklpf.paths._regions import (  # noqa: F401
    drawn_by_weight,
    ellipsoid_at_mode,
    find_regions,
    highest_of_draws,
)
