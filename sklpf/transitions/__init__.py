"""Moves that leave every level of a path invariant."""

from sklpf.paths import Path, has
from sklpf.transitions._base import Transition
from sklpf.transitions._gibbs import Gibbs, Metropolis
from sklpf.transitions._hmc import HMC
from sklpf.transitions._random_walk import RandomWalk
from sklpf.transitions._slice import Slice

__all__ = ["HMC", "Gibbs", "Metropolis", "RandomWalk", "Slice", "Transition", "default_move"]

# Shared with other folders.
# isort: split
from sklpf.transitions._base import RowBatch, acceptance, batch_rows, stream_uniforms  # noqa: F401
from sklpf.transitions._pilot import (  # noqa: F401
    TunedTransition,
    fixed_pilot,
    next_beta,
    note_on_the_way,
    reflect,
    root_of,
)


def default_move(path: Path) -> Transition:
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
    if has(path, "gibbs") or not has(path, "position"):
        return Gibbs()
    return HMC() if has(path, "gradients") else RandomWalk()
