"""Displays: pictures of results, models and comparisons with matplotlib, in the manner of
scikit-learn's.
"""

from sklpf.display._comparison import ComparisonDisplay
from sklpf.display._components import ComponentsDisplay
from sklpf.display._run import DrawsDisplay, RunDisplay
from sklpf.display._topics import TopicsDisplay
from sklpf.display._training import TrainingDisplay

__all__ = [
    "ComparisonDisplay",
    "ComponentsDisplay",
    "DrawsDisplay",
    "RunDisplay",
    "TopicsDisplay",
    "TrainingDisplay",
]
