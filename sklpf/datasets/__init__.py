"""Small data sets, generated or cut from images."""

from sklpf.datasets._bars import make_bars_corpus
from sklpf.datasets._factorial import make_factorial_shapes
from sklpf.datasets._patches import Patches, make_patches

__all__ = ["Patches", "make_bars_corpus", "make_factorial_shapes", "make_patches"]
