"""Log Z without Monte Carlo chains: enumeration and adaptive rejection."""

from sklpf.partition.exact._adaptive_rejection import AdaptiveRejection
from sklpf.partition.exact._exact import MAX_LOG2_STATES, Exact

__all__ = [
    "AdaptiveRejection",
    "Exact",
    "MAX_LOG2_STATES",
]
