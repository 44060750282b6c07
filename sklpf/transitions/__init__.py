"""Moves that leave every level of a path invariant."""

from sklpf.transitions._base import Transition
from sklpf.transitions._gibbs import Gibbs
from sklpf.transitions._metropolis import Metropolis

__all__ = ["Gibbs", "Metropolis", "Transition"]
