"""Moves on R^d for compiled programs."""

from __future__ import annotations

from typing import Any

import numpy as np

from sklpf.paths import Compiled
from sklpf.paths._capabilities import has
from sklpf.paths._kernel_path import read_only


def moved_density(path: Any, transition: Any, move_class: type, *parameters: Any) -> Any:
    """Return a path's compiled density with a tuned move, as `Transition.compiled` wants it.

    The move is move_class(steps, *parameters); None where the path has no compiled density.
    """
    density = path.packed if has(path, Compiled) else None
    if density is None:
        return None
    from sklpf.transitions._continuous_kernels import MovedDensity, Steps

    pilot = transition.frozen
    matrices = np.empty((0, path.n_dimensions, path.n_dimensions))
    scales = pilot.roots
    if pilot.roots.ndim == 3:
        matrices = pilot.roots / pilot.sizes[:, np.newaxis]
        scales = pilot.sizes
    low, high = np.empty((2, 0)) if path.bounds is None else path.bounds
    arrays = pilot.betas, pilot.log_steps, scales, matrices, low, high
    steps = Steps(*(read_only(array) for array in arrays))
    return MovedDensity(density, move_class(steps, *parameters))
