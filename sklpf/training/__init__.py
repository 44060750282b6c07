"""What several models train with."""

from sklpf.training._loop import train

__all__ = ["train"]
