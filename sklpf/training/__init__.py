"""What several models train with. It knows log densities and their gradients, and no model."""

from sklpf.training._chains import Chains
from sklpf.training._contrastive import Family, PersistentContrastiveDivergence
from sklpf.training._em import EM, LatentModel
from sklpf.training._lbfgs import MaximumLikelihood, MinimumProbabilityFlow
from sklpf.training._loop import train
from sklpf.training._settle import Settled
from sklpf.training._tracking import EarlyStopping, LogPartitionTracker

__all__ = [
    "EM",
    "Chains",
    "EarlyStopping",
    "Family",
    "LatentModel",
    "LogPartitionTracker",
    "MaximumLikelihood",
    "MinimumProbabilityFlow",
    "PersistentContrastiveDivergence",
    "Settled",
    "train",
]
