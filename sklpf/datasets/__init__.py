"""Small generated data sets."""

from sklpf.datasets._bars import make_bars_corpus
from sklpf.datasets._factorial import make_factorial_shapes

__all__ = ["make_bars_corpus", "make_factorial_shapes"]
