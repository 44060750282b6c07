"""Exploration: where the mass of a density is, before anything is estimated.

`explore` returns a `Cover`: a normalised mixture that lies where the mass is, regions with their
masses, whether the search is over, and its cost in evaluations.
"""

from sklpf.exploration._cover import Cover, FreshDraws, Region
from sklpf.exploration._explore import EFFICIENT, LARGEST_T, explore
from sklpf.exploration._joint import disagreement
from sklpf.exploration._target import Evaluator

__all__ = [
    "EFFICIENT",
    "LARGEST_T",
    "Cover",
    "Evaluator",
    "FreshDraws",
    "Region",
    "disagreement",
    "explore",
]
