"""Moves that leave every level of a path invariant."""

from sklpf.transitions._base import Transition
from sklpf.transitions._default import default_move
from sklpf.transitions._gibbs import Gibbs, Metropolis
from sklpf.transitions._hmc import HMC
from sklpf.transitions._random_walk import RandomWalk
from sklpf.transitions._slice import Slice

__all__ = ["HMC", "Gibbs", "Metropolis", "RandomWalk", "Slice", "Transition", "default_move"]
