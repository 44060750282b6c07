"""Regions whose mass is known, and whether the draws of a run lie in them as often as they
should.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, softmax

from sklpf._utils.alarm import Alarm
from sklpf._utils.random import Stream
from sklpf.paths import LocalMasses, Regions
from sklpf.paths._capabilities import has
from sklpf.runs import Draws

_MATERIAL = 0.02  # nats
_LARGEST = 50.0  # nats, where a run has missed all but nothing


class Threshold(NamedTuple):
    """How sure it must be that a run has missed a region."""

    chance: float  # false-alarm rate of a run, all regions together
    run_errors: float  # standard errors of log Z that what is missed must be worth
    mass_errors: float  # standard errors that are taken off a region's mass
    rank: int  # or the mass is this one of its sorted estimates, which lie too low more often


FOR_ALARM = Threshold(chance=0.01, run_errors=2.0, mass_errors=3.0, rank=0)
FOR_SECOND_TRY = Threshold(chance=0.05, run_errors=1.0, mass_errors=1.0, rank=2)  # costs time only


def known_regions(path: Any, key: tuple[int, int]) -> Regions | None:
    """Regions of the target with their masses; None where the path knows none."""
    return path.regions(Stream(key)) if has(path, LocalMasses) else None


def region_alarms(
    regions: Regions | None,
    draws: Draws | None,
    log_partition: float,
    std_error: float,
    diagnostics: dict,
    threshold: Threshold = FOR_ALARM,
) -> list[Alarm]:
    """An alarm if a region has a share of Z that the run's draws have missed; the worst region goes
    to the diagnostics.

    The mass of a region over the run's Z is the share of draws that a right run has there. There is
    an alarm where fewer are improbable, and the difference would move log Z materially.
    """
    missed = missed_regions(regions, draws, log_partition, std_error, threshold)
    if not missed:
        return []
    worst = missed[0]
    diagnostics["missed_region"] = worst.centre
    seen = (
        f"a region of the target holds {worst.mass:.2g} of Z (+- {worst.error:.1g}), and"
        f" {worst.share:.2g} of the run's draws"
    )
    remedy = 'give a base that covers it: its centre is result_.diagnostics["missed_region"]'
    return [Alarm("missed-region", seen, remedy)]


class Missed(NamedTuple):
    """A region of which a run had too few draws."""

    place: int  # among the regions that are known
    centre: NDArray
    mass: float  # over the run's Z
    error: float  # of the mass
    share: float  # of the run's draws


def missed_regions(
    regions: Regions | None,
    draws: Draws | None,
    log_partition: float,
    std_error: float,
    threshold: Threshold,
) -> list[Missed]:
    """The regions that a run has missed, the worst first."""
    if regions is None or draws is None or not np.isfinite(log_partition):
        return []
    masses = np.exp(np.minimum(regions.log_masses - log_partition, _LARGEST))
    errors = masses.std(axis=1, ddof=1) / np.sqrt(masses.shape[1])
    least = masses.mean(axis=1) - threshold.mass_errors * errors
    least = np.maximum(least, np.sort(masses, axis=1)[:, threshold.rank])
    # Z may be larger than the run's by its own error.
    error = threshold.run_errors * std_error
    expected = np.minimum(least * np.exp(-error), 1.0)
    material = np.expm1(np.clip(error, _MATERIAL, _LARGEST))
    large = np.flatnonzero(expected > material)
    if not len(large):
        return []

    inside = regions.contain(draws.points)
    weights = softmax(draws.log_weights)
    shares = weights @ inside
    n = _effective_draws(weights, draws.groups, inside)
    # The probability that a binomial is at most so large.
    found = n * np.minimum(shares[large], 1.0)
    chances = betainc(n - found, found + 1, 1 - expected[large])
    improbable = chances * len(large) < threshold.chance
    suspects = large[improbable & (expected[large] - shares[large] > material)]
    order = suspects[np.argsort(shares[suspects] - expected[suspects], kind="stable")]
    return [
        Missed(r, regions.centres[r], masses[r].mean(), errors[r], shares[r])
        for r in order.tolist()
    ]


def _effective_draws(weights: NDArray, groups: NDArray, inside: NDArray[np.bool_]) -> float:
    """The number of independent draws that these are worth: by their weights, and by how the shares
    of regions differ between groups.
    """
    n = 1 / np.sum(weights**2)
    _, group = np.unique(groups, return_inverse=True)
    n_groups = group.max() + 1
    if n_groups < 2:
        return float(n)
    group_weights = np.bincount(group, weights)
    hits = np.array([np.bincount(group, weights * column) for column in inside.T])  # (R, G)
    shares = hits.sum(axis=1)
    deviations = hits - shares[:, np.newaxis] * group_weights
    variances = np.sum(deviations**2, axis=1) * n_groups / (n_groups - 1)
    known = (shares > 0.01) & (shares < 0.99) & (variances > 0)
    if not known.any():
        return float(n)
    binomial = shares[known] * (1 - shares[known])
    return float(min(n, np.median(binomial / variances[known])))
