"""Regions whose mass is known, and whether the draws of a run lie in them as often as they
should.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, softmax

from sklpf._utils.alarm import Alarm
from sklpf._utils.numbers import Array
from sklpf.paths import Regions
from sklpf.programs import Draws

_MATERIAL = 0.02  # nats
_LARGEST = 50.0  # nats, where a run has missed all but nothing
_ERRORS_OF_ELLIPSOIDS = 0.5  # standard errors of log Z that what is missed on R^d must be worth
_HARDLY_SEEN = 0.25  # of the draws that a region should have


class Threshold(NamedTuple):
    """How sure it must be that a run has missed a region."""

    chance: float  # false-alarm rate of a run: of all regions one by one, and of them together
    run_errors: float  # standard errors of log Z that what is missed must be worth
    mass_errors: float  # standard errors that are taken off a region's mass
    rank: int  # or this order statistic of the estimates, if larger: each tends to be too low


FOR_ALARM = Threshold(chance=0.01, run_errors=2.0, mass_errors=3.0, rank=0)
FOR_SECOND_TRY = Threshold(chance=0.05, run_errors=1.0, mass_errors=1.0, rank=2)  # costs time only


def region_alarms(
    regions: Regions | None,
    draws: Draws | None,
    log_partition: float,
    std_error: float,
    diagnostics: dict,
    threshold: Threshold = FOR_ALARM,
    to_reach: str = "give a base that covers it",
) -> list[Alarm]:
    """An alarm if a region has a share of Z that the run's draws have missed; the worst region goes
    to the diagnostics.

    The mass of a region over the run's Z is the share of draws that a right run has there. There is
    an alarm where fewer are improbable, and the difference would move log Z materially. `to_reach`
    is what the user can do to reach the region.
    """
    missed = missed_regions(regions, draws, log_partition, std_error, threshold)
    if not missed:
        return []
    diagnostics["missed_region"] = missed[0].centre
    mass = sum(each.mass for each in missed)
    error = float(np.linalg.norm([each.error for each in missed]))
    share = sum(each.share for each in missed)
    which = "a region of the target holds"
    if len(missed) > 1:
        which = f"{len(missed)} regions of the target together hold"
    seen = (
        f"{which} {mass:.2g} (+- {error:.1g}) times the estimate of Z, and {share:.2g} of the run's"
        " draws"
    )
    remedy = f'{to_reach}: its centre is result_.diagnostics["missed_region"]'
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
    """The regions that a run has missed, the worst first.

    Each is tested by itself, and many small ones together (`_miss_together`). Either test alarms in
    at most the threshold's share of right runs.
    """
    if regions is None or draws is None or not np.isfinite(log_partition):
        return []
    masses = np.exp(np.minimum(regions.log_masses - log_partition, _LARGEST))
    # Z may be larger than the run's by its own error.
    slack = threshold.run_errors * std_error
    material = _material(slack)
    if regions.factors is not None:
        # Ellipsoids are small parts of what a run of a density misses where they are on a slope.
        material = _material(_ERRORS_OF_ELLIPSOIDS * std_error)
    if not masses.sum(axis=0).max(initial=0.0) > material:
        return []
    weights = softmax(draws.log_weights)
    inside = regions.contain(draws.points)
    shares = weights @ inside

    expected = np.array([_least(mass, threshold) for mass in masses[:, np.newaxis]])
    expected = expected * np.exp(-slack)
    is_beyond = expected - 1 > material  # the run's Z is less than what lies there alone
    expected = np.minimum(expected, 1.0)
    large = expected > material
    n = _effective_draws(weights, draws.groups, inside)
    improbable = _chance(n, shares, expected) * large.sum() < threshold.chance
    missed = is_beyond | (large & improbable & (expected - shares > material))
    means = masses.mean(axis=1)
    if _miss_together(masses, weights, draws.groups, inside, slack, material, threshold):
        least = material / len(masses)
        missed |= shares < np.where(means > least, _HARDLY_SEEN * means, 0.0)

    errors = masses.std(axis=1, ddof=1) / np.sqrt(masses.shape[1])
    found = [
        Missed(r, regions.centres[r], means[r], errors[r], shares[r])
        for r in np.flatnonzero(missed).tolist()
    ]
    return sorted(found, key=lambda each: each.share - each.mass)


def _miss_together(masses, weights, groups, inside, slack, material, threshold) -> bool:
    """Whether regions of which one half of the groups has hardly any draws have too few in the
    other half as well, all together.

    Masses are split likewise, so that the test does not use the numbers by which the regions were
    chosen. Each half chooses for the other.
    """
    _, group = np.unique(groups, return_inverse=True)
    if group.max() < 1:
        return False
    for half in (0, 1):
        own = group % 2 == half
        chosen = _shares(weights[own], inside[own]) < _HARDLY_SEEN * masses[:, half::2].mean(axis=1)
        other = masses[chosen, 1 - half :: 2]
        expected = min(_least(other, threshold) * np.exp(-slack), 1.0)
        share = float(_shares(weights[~own], inside[~own])[chosen].sum())
        if not expected - share > material:
            continue
        n = _effective_draws(weights[~own], group[~own], inside[~own])
        if _chance(n, share, expected) < threshold.chance / 2:
            return True
    return False


def _shares(weights, inside) -> Array:
    """Weighted shares of draws in every region (R,)."""
    return weights @ inside / max(weights.sum(), np.finfo(np.float64).tiny)


def _least(masses: Array, threshold: Threshold) -> float:
    """What some regions together, of masses (R, G), hold at least: their mean mass less a few
    standard errors, or one of the smallest of the G estimates.
    """
    sums = masses.sum(axis=0)
    least = sums.mean() - threshold.mass_errors * sums.std(ddof=1) / np.sqrt(len(sums))
    return float(max(least, np.sort(sums)[threshold.rank]))


def _material(slack: float) -> float:
    """The share of Z that would move log Z by more than its error, and by .02 nats."""
    return float(np.expm1(np.clip(slack, _MATERIAL, _LARGEST)))


def _chance(n: float, share: Any, expected: Any) -> Any:
    """The probability that a binomial share of n draws is at most so large."""
    found = n * np.minimum(share, 1.0)
    return betainc(n - found, found + 1, 1 - expected)


def _effective_draws(weights: NDArray, groups: NDArray, inside: NDArray[np.bool_]) -> float:
    """The number of independent draws that these are worth: by their weights, and by how the shares
    of regions differ between groups.
    """
    weights = weights / weights.sum()
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
