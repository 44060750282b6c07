"""What several models train with. It knows log densities and their gradients, and no model."""

from sklpf.training._chains import Chains
from sklpf.training._loop import Settled, train
from sklpf.training._tracking import EarlyStopping, LogPartitionTracker
from sklpf.training._trainers import (
    EM,
    Family,
    LatentModel,
    MaximumLikelihood,
    MinimumProbabilityFlow,
    PersistentContrastiveDivergence,
)

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
