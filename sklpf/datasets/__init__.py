"""Small generated data sets."""

from sklpf.datasets._factorial import make_factorial_shapes

__all__ = ["make_factorial_shapes"]
