"""Exploration: where the mass of a density is, before anything is estimated.

`explore` returns a `Cover`: a normalised mixture that lies where the mass is, whether the search is
over, and its cost in evaluations.
"""

from sklpf.exploration._cover import Cover, FreshDraws
from sklpf.exploration._explore import explore

__all__ = ["Cover", "FreshDraws", "explore"]

# Shared with other folders.
# isort: split
from sklpf.exploration._cover import smallest_basin  # noqa: F401
from sklpf.exploration._explore import EFFICIENT, LARGEST_T  # noqa: F401
from sklpf.exploration._joint import disagreement, draw_afresh  # noqa: F401
from sklpf.exploration._target import Target  # noqa: F401
