"""Paths from a base density to the target, and their ladders of inverse temperatures."""

from sklpf._random import Stream, stream_key
from sklpf.paths._base import Path, TemperedPath
from sklpf.paths._capabilities import (
    Base,
    BoundDraws,
    DataStarts,
    Derivatives,
    Enumeration,
    Filters,
    GibbsMove,
    Proposal,
    Rows,
    TargetDraws,
    require_base,
)
from sklpf.paths._ladders import LADDERS, make_ladder

__all__ = [
    "LADDERS",
    "Base",
    "BoundDraws",
    "DataStarts",
    "Derivatives",
    "Enumeration",
    "Filters",
    "GibbsMove",
    "Path",
    "Proposal",
    "Rows",
    "Stream",
    "TargetDraws",
    "TemperedPath",
    "make_ladder",
    "require_base",
    "stream_key",
]
