"""Small data sets, generated or cut from images."""

from sklpf.datasets._patches import Patches, make_patches
from sklpf.datasets._synthetic import make_bars_corpus, make_factorial_shapes

__all__ = ["Patches", "make_bars_corpus", "make_factorial_shapes", "make_patches"]
