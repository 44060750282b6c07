"""Comparisons and pools of evidences, checks of draws, and attempts until one is trusted."""

from sklpf.partition.evidence._check_draws import DrawsFinding, DrawsReport, check_draws
from sklpf.partition.evidence._compare_evidence import (
    EvidenceComparison,
    ModelEvidence,
    compare_estimates,
    compare_evidence,
    prior_weights,
)
from sklpf.partition.evidence._pool import pool
from sklpf.partition.evidence._until_trusted import UntilTrusted

__all__ = [
    "DrawsFinding",
    "DrawsReport",
    "EvidenceComparison",
    "ModelEvidence",
    "UntilTrusted",
    "check_draws",
    "compare_estimates",
    "compare_evidence",
    "pool",
    "prior_weights",
]
