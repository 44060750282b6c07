"""Learning components: coordinate ascent on the evidence lower bound, tempered or not; moves."""

from sklpf.models.factorial.learning._coordinate_ascent import (
    Trainer,
    Training,
    has_missing,
    update,
)
from sklpf.models.factorial.learning._posterior import (
    FactorialPosterior,
    dense,
    known_grams,
    search_activations,
    settle_activations,
)

__all__ = [
    "FactorialPosterior",
    "Trainer",
    "Training",
    "dense",
    "has_missing",
    "known_grams",
    "search_activations",
    "settle_activations",
    "update",
]
