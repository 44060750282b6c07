"""Mass of the target in regions that a run's draws have missed, of paths with `regions`.

The mass of a region over the run's Z is the share of draws that a right run has there. There is an
alarm where fewer are improbable, and the difference would move log Z materially.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, softmax

from sklpf._utils.context import current_budget
from sklpf._utils.numbers import Array
from sklpf.partition._result import Finding, Judgement, PartitionResult, Run, Work
from sklpf.partition.alarms import (
    enough_effective,
    has_not_mixed,
    raised,
    threshold,
)
from sklpf.paths import GeometricPath, Path, Regions, has
from sklpf.programs import Draws, Plan, anneal_reverse
from sklpf.uncertainty import log_mean_exp, mean_weight, standard_error

if TYPE_CHECKING:
    from sklpf.partition.weights import AnnealingRun

LEAST_MASS = np.log(0.002)  # of a region that a base is made to cover, over Z
_LARGEST = 50.0  # nats, where a run has missed nearly everything


@dataclass(frozen=True, kw_only=True)
class MissedMass(Finding):
    """Regions of the target whose mass is known, which a run's draws should have found.

    Attributes
    ----------
    regions : Regions
    remedy : str
        What to do where they have not, as the path says.
    weight_from_target : ndarray of shape (R,) or None
        Mean weight, over that of the run's chains, of reverse chains from each region; NaN where
        none were needed, since the run has draws there.
    """

    requires = ("regions",)

    regions: Regions
    remedy: str = ""
    weight_from_target: Array | None = None

    @classmethod
    def collect(cls, work: Work) -> Self | None:
        if work.run.draws is None:
            return None
        path, evaluations = work.path.counted()
        budget = current_budget()
        if budget is not None and isinstance(path, GeometricPath):
            most = 0.8 * budget.affordable()
            path.most_search_evaluations = min(path.most_search_evaluations, most)
        regions = path.regions(work.stream("regions"))
        found = cls(
            regions=regions,
            remedy=path.region_remedy,
            n_evaluations=evaluations.n + path.regions_cost,
            n_failed=evaluations.n_failed,
        )
        return found if work.move is None else _with_reverse_chains(found, work)

    def judge(self, run: Run, result: PartitionResult) -> Judgement:
        """Return an alarm if regions have a share of Z that the run's draws have missed, and the
        centre of the worst.
        """
        second_try = run.finding("second_try")
        is_chosen = second_try is not None and second_try.first_log_partition is not None
        # A run that was chosen for what another one missed is judged as that one was.
        missed = missed_regions(run, result, FOR_SECOND_TRY if is_chosen else FOR_ALARM)
        if not missed:
            return [], {}
        every = checked_modes(run, result.log_partition)
        centres, masses, errors, shares = zip(*(every[place] for place in missed))
        alarm = raised(
            "missed-region",
            "one" if len(missed) == 1 else "several",
            run.family if second_try is None else "after a second try",
            n=len(missed),
            mass=sum(masses),
            error=np.linalg.norm(errors),
            share=sum(shares),
            path_remedy=self.remedy,
        )
        return [alarm], {"missed_region": centres[0]}


def _with_reverse_chains(
    found: Any,
    work: Work,
    *,
    chains_a_region: int = 40,  # forward chains for each region from which ten reverse chains start
    largest_weight: float = 500.0,  # nats
) -> Any:
    """Return regions with the weights of reverse chains from those of which a run of independent
    chains has few draws: a hundred draws can't show that 4 % are missing.
    """
    regions = found.regions
    if regions.draws is None or not len(regions.radii):
        return found
    run = work.run
    estimate = mean_weight(run.forward)
    seen = RegionMasses.of(regions, run.draws, run.base_log_partition + estimate.log_mean)
    missed_mass = seen.missed_masses()
    worst = np.argsort(-missed_mass)[: max(2, len(run.forward) // chains_a_region)]
    places = worst[missed_mass[worst] > max(threshold("missed-region", "nats"), estimate.delta / 2)]
    if not len(places):
        return found

    points = np.concatenate(regions.draws[places])
    path = work.path.with_ladder(run.ladder)
    state = path.state_from_rows(points) if has(path, "state_from_rows") else path.at(points)
    plan = Plan(path, work.move, work.seed)
    reverse = anneal_reverse([plan], [state], 1, "reverse from regions", work.n_jobs)[0]
    log_weights = log_mean_exp(-reverse.reshape(len(places), -1), axis=1) - estimate.log_mean
    weights = np.full(len(missed_mass), np.nan)
    weights[places] = np.exp(np.minimum(log_weights, largest_weight))
    cost = reverse.size * (len(run.ladder) - 1)
    return replace(found, weight_from_target=weights, n_evaluations=found.n_evaluations + cost)


def with_missed_mass(run: AnnealingRun, log_partition: float, std_error: float) -> float:
    """Return the standard error of a run of independent chains with what regions may add to it of
    which it has few draws: by the weights of reverse chains from there, at most what is lacking.
    """
    found = run.finding("missed_mass")
    if found is None or found.weight_from_target is None or run.draws is None:
        return std_error
    seen = RegionMasses.of(found.regions, run.draws, log_partition)
    missed_weight = seen.missed_weight(found.weight_from_target)
    missing = np.log1p(seen.missed_masses()[missed_weight > 0].sum())
    return float(np.hypot(std_error, min(missing, np.sqrt(missed_weight.sum() / len(run.forward)))))


def regions_to_cover(path: Path, run: Run, result: PartitionResult) -> list[Regions]:
    """Return what the bases of second tries should cover, in turn; empty where the run has missed
    nothing and has mixed, or its base is the user's.

    The first covers every region with material mass, which chains that have not mixed may sit in.
    If its run is not trusted the next one covers only those that were certainly missed.
    """
    if run.regions is None or not path.base_is_ours or not has(path, "with_regions"):
        return []
    certain = set(missed_regions(run, result, FOR_SECOND_TRY))
    if not certain and not has_not_mixed(result.alarms):
        return []
    masses = log_mean_exp(run.regions.log_masses, axis=1) - result.log_partition
    everything = certain | set(np.flatnonzero(masses > LEAST_MASS).tolist())
    attempts = [everything] if everything == certain else [everything, certain]
    return [run.regions.take(sorted(places)) for places in attempts if places]


class Strictness(NamedTuple):
    """Certainty needed that a run has missed a region."""

    chance: float  # false-alarm rate of a run: of all regions one by one, and of them together
    run_errors: float  # standard errors of log Z that what is missed must be worth
    mass_errors: float  # standard errors that are taken off a region's mass
    rank: int  # or this order statistic of the estimates, if larger: each tends to be too low


FOR_ALARM = Strictness(chance=0.01, run_errors=2.0, mass_errors=3.0, rank=0)
FOR_SECOND_TRY = Strictness(chance=0.05, run_errors=1.0, mass_errors=1.0, rank=2)  # costs time only


class CheckedMode(NamedTuple):
    """A mode, or a region on a slope, of which the search has measured the mass.

    Attributes
    ----------
    centre : ndarray of shape (d,)
        In the coordinates of the path.
    mass, mass_error : float
        Its share of the density's mass in an ellipsoid around it, over the estimate of Z from the
        draws, and the standard error. It is above 1 where draws have missed more than they saw.
    share : float
        Share of the draws there.
    """

    centre: Array
    mass: float
    mass_error: float
    share: float


class RegionMasses(NamedTuple):
    """Regions of the target, and how many of a run's draws are there.

    Attributes
    ----------
    masses : ndarray of shape (R, G)
        Estimates of each region's mass, over Z.
    weights : ndarray of shape (n,)
        Of the draws; they sum to 1.
    inside : ndarray of shape (n, R)
        True where a draw is in a region.
    shares : ndarray of shape (R,)
        Share of the draws in each region.
    """

    masses: Array
    weights: Array
    inside: NDArray[np.bool_]
    shares: Array

    @classmethod
    def of(cls, regions: Regions, draws: Draws, log_partition: float) -> Self:
        """Return the masses over the Z that was estimated, and the draws."""
        masses = np.exp(np.minimum(regions.log_masses - log_partition, _LARGEST))
        weights = softmax(draws.log_weights)
        inside = regions.contain(draws.points)
        return cls(masses, weights, inside, weights @ inside)

    def missed_masses(self) -> Array:
        """Return what each region surely holds (R,), over Z, beyond the share of the draws there;
        negative where there are more.
        """
        least = [_least(mass, FOR_SECOND_TRY) for mass in self.masses[:, np.newaxis]]
        return np.array(least) - self.shares

    def missed_weight(self, from_target: Array | None) -> Array:
        """Return what regions with few draws add to the mean weight of chains from the target, over
        the mean of all (R,), beyond what weights of that mean would; 0 where no reverse chains were
        needed. `from_target` is as in `MissedMass`.
        """
        if from_target is None:
            return np.zeros(len(self.masses))
        excess = np.nan_to_num(np.maximum(from_target - 1, 0.0))
        return np.maximum(self.missed_masses(), 0.0) * excess


def checked_modes(run: Run, log_partition: float) -> list[CheckedMode]:
    """All regions that a run knows, as `log_partition` and its draws say; empty without these."""
    if run.regions is None or run.draws is None or not len(run.regions.radii):
        return []
    seen = RegionMasses.of(run.regions, run.draws, log_partition)
    masses = seen.masses
    errors = masses.std(axis=1, ddof=1) / np.sqrt(masses.shape[1])
    numbers = np.transpose([masses.mean(axis=1), errors, seen.shares]).tolist()
    return [CheckedMode(centre, *own) for centre, own in zip(run.regions.centres, numbers)]


def missed_regions(
    run: Run,
    result: PartitionResult,
    strictness: Strictness,
    *,
    # standard errors of log Z that what is missed on R^d must be worth
    errors_of_ellipsoids: float = 0.5,
) -> list[int]:
    """The places, among all that are known, of the regions that a run has missed; the worst first.

    Each is tested by itself, and many small ones together (`_miss_together`). Either test alarms in
    at most the share that is allowed of right runs.
    """
    regions = run.regions
    draws = run.draws
    if regions is None or draws is None or not np.isfinite(result.log_partition):
        return []
    seen = RegionMasses.of(regions, draws, result.log_partition)
    masses = seen.masses
    # Z may be larger than the run's by its own error.
    slack = strictness.run_errors * result.std_error
    # Ellipsoids are small parts of what a run of a density misses where they are on a slope.
    is_small = regions.factors is not None
    slack_of_share = errors_of_ellipsoids * result.std_error if is_small else slack
    # the share of Z that would move log Z by more than its error, and by .015 nats
    least_nats = threshold("missed-region", "nats")
    material = float(np.expm1(np.clip(slack_of_share, least_nats, _LARGEST)))
    missed_weight = seen.missed_weight(run.finding("missed_mass").weight_from_target)
    if not masses.sum(axis=0).max(initial=0.0) > material and not missed_weight.any():
        return []
    weights, inside, shares = seen.weights, seen.inside, seen.shares

    expected = np.array([_least(mass, strictness) for mass in masses[:, np.newaxis]])
    expected = expected * np.exp(-slack)
    is_beyond = expected - 1 > material  # the run's Z is less than what lies there alone
    expected = np.minimum(expected, 1.0)
    large = expected > material
    n = _effective_draws(weights, draws.groups, inside)
    improbable = _chance(n, shares, expected) * large.sum() < strictness.chance
    missed = is_beyond | (large & improbable & (expected - shares > material))
    means = masses.mean(axis=1)
    if _miss_together(masses, weights, draws.groups, inside, slack, material, strictness):
        least = material / len(masses)
        hardly = threshold("missed-region", "hardly_seen") * means
        missed |= shares < np.where(means > least, hardly, 0.0)
    if missed_weight.any():
        n_chains = len(run.forward)  # type: ignore[attr-defined]  # of independent chains
        if n_chains / (1 + missed_weight.sum()) < enough_effective(n_chains):
            # Those that matter beside the worst.
            missed |= missed_weight > 0.1 * missed_weight.max()

    return sorted(np.flatnonzero(missed).tolist(), key=lambda r: shares[r] - means[r])


def _miss_together(masses, weights, groups, inside, slack, material, strictness) -> bool:
    """True if regions of which one half of the groups has hardly any draws have too few in the
    other half as well, all together.

    Masses are split likewise, so that the test does not use the numbers by which the regions were
    chosen. Each half chooses for the other.
    """
    _, group = np.unique(groups, return_inverse=True)
    if group.max() < 1:
        return False
    for half in (0, 1):
        own = group % 2 == half
        hardly = threshold("missed-region", "hardly_seen") * masses[:, half::2].mean(axis=1)
        chosen = _shares(weights[own], inside[own]) < hardly
        other = masses[chosen, 1 - half :: 2]
        expected = min(_least(other, strictness) * np.exp(-slack), 1.0)
        share = float(_shares(weights[~own], inside[~own])[chosen].sum())
        if not expected - share > material:
            continue
        n = _effective_draws(weights[~own], group[~own], inside[~own])
        if _chance(n, share, expected) < strictness.chance / 2:
            return True
    return False


def _shares(weights, inside) -> Array:
    """Weighted shares of draws in every region (R,)."""
    return weights @ inside / max(weights.sum(), np.finfo(np.float64).tiny)


def _least(masses: Array, strictness: Strictness) -> float:
    """Least mass of some regions together, of masses (R, G): their mean mass less a few
    standard errors, or one of the smallest of the G estimates.
    """
    sums = masses.sum(axis=0)
    least = sums.mean() - strictness.mass_errors * standard_error(sums)
    return float(max(least, np.sort(sums)[strictness.rank]))


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
