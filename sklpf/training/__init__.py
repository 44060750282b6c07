"""Training that several models share. It knows log densities and their gradients, and no model."""

from sklpf.training._chains import Chains
from sklpf.training._loop import EarlyStopping, LogPartitionTracker, Settled, train
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

# Shared with other folders.
# isort: split
from sklpf.training._chains import parts_of  # noqa: F401
from sklpf.training._loop import (  # noqa: F401
    Lowered,
    RunningAverage,
    check_not_diverged,
    warn_unsettled,
)
