"""What several models train with. It knows log densities and their gradients, and no model."""

from sklpf.training._chains import Chains
from sklpf.training._em import EM, LatentModel
from sklpf.training._loop import train

__all__ = ["EM", "Chains", "LatentModel", "train"]
