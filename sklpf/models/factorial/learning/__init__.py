"""Learning components: coordinate ascent on the evidence lower bound, tempered or not; moves."""

# ruff: noqa: F401

from sklpf.models.factorial.learning._coordinate_ascent import (
    Trainer,
    Training,
    update,
)
from sklpf.models.factorial.learning._posterior import (
    FactorialPosterior,
    dense,
    known_grams,
    search_activations,
    settle_activations,
)
