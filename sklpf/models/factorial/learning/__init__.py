"""Learning components: coordinate ascent on the evidence lower bound, tempered or not; moves."""

from sklpf.models.factorial.learning._coordinate_ascent import Trainer, Training, update
from sklpf.models.factorial.learning._posterior import (
    FactorialPosterior,
    dense,
    search_activations,
    settle_activations,
)

__all__ = [
    "FactorialPosterior",
    "Trainer",
    "Training",
    "dense",
    "search_activations",
    "settle_activations",
    "update",
]
