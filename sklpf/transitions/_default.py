"""The move that a path is given where none was chosen."""

from __future__ import annotations

from typing import Any

from sklpf.paths import Continuous, GibbsMove, Gradients
from sklpf.paths._capabilities import has
from sklpf.transitions._base import Transition
from sklpf.transitions._gibbs import Gibbs
from sklpf.transitions._hmc import HMC
from sklpf.transitions._random_walk import RandomWalk


def default_move(path: Any) -> Transition:
    """Return the path's Gibbs sweep; on R^d, where it has none, HMC, or RandomWalk without
    gradients.

    Parameters
    ----------
    path : Path
        What is to be moved on.

    Returns
    -------
    Transition
        With its own default parameters.
    """
    if has(path, GibbsMove) or not has(path, Continuous):
        return Gibbs()
    return HMC() if has(path, Gradients) else RandomWalk()
