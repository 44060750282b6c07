"""The checks beside a run: which there are, what they look at, and the alarms that follow.

==========  ==========================================  ============================
check       applies to                                  file
==========  ==========================================  ============================
tails       densities on R^d, before they are sampled   `_tails`
the bound   paths with `bound_draws`                    this one
regions     paths with `regions`, of runs that          this one
            keep draws
rounding    all                                         this one
==========  ==========================================  ============================

What they find is kept in the run, so that `checked` is a pure function of it.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, softmax

from sklpf._utils.numbers import Array
from sklpf._utils.random import seeded
from sklpf._utils.warnings import Alarm
from sklpf.partition._run_alarms import enough_effective
from sklpf.partition.alarms import BOUND_ERRORS, KINDS, MATERIAL_BOUND, MOST_ROUNDING, raised
from sklpf.partition.checks._tails import tail_alarms
from sklpf.paths import GeometricPath, Regions, has
from sklpf.paths._climbs import Evaluations
from sklpf.uncertainty import log_mean_exp, standard_error

_LEAST_MASS = np.log(0.002)  # of a region that a second base covers, over Z
SLACK = 0.015  # nats, or a share of Z
_LARGEST = 50.0  # nats, where a run has missed all but nothing
_ERRORS_OF_ELLIPSOIDS = 0.5  # standard errors of log Z that what is missed on R^d must be worth
_HARDLY_SEEN = 0.25  # of the draws that a region should have


class Checks:
    """The checks beside one run, with random streams of their own, and what they cost.

    Parameters
    ----------
    path : Path
        Its tails are looked at at once. The attribute of this name counts `evaluations`.
    seed : int
        Of the run.
    wanted : bool, default=True
        False leaves all out that cost evaluations.
    evaluations : Evaluations or None, default=None
        Of earlier checks, which are counted on; None begins with none.

    Attributes
    ----------
    evaluations : Evaluations
        Of the density, so far.

    Raises
    ------
    ValueError
        If the target has no integral.
    """

    def __init__(
        self, path: Any, seed: int, wanted: bool = True, evaluations: Evaluations | None = None
    ):
        self.path = path
        self.seed = seed
        self._wanted = wanted
        self.evaluations = Evaluations() if evaluations is None else evaluations
        self._tails: tuple[Alarm, ...] = ()
        if wanted and hasattr(path, "evaluations"):
            self.path = copy.copy(path)
            self.path.evaluations = self.evaluations
        if wanted and isinstance(path, GeometricPath):
            self._tails = tail_alarms(self.path, seeded(seed).of("tails").key)

    def beside(self, run: Any) -> Any:
        """Return the run with what was found beside it.

        Parameters
        ----------
        run : Run
            As sampling has left it.

        Returns
        -------
        Run
        """
        run = replace(
            run,
            log_f_rounding=self.path.log_f_rounding,
            base=self.path.base_chosen,
            region_remedy=self.path.region_remedy,
        )
        if not self._wanted:
            return run
        bound = run.plain_bound
        if bound is None:
            bound = plain_bound(self.path, self.seed)
        cost = 0 if bound is None else self.path.bound_cost
        regions = run.regions
        if regions is None and run.draws is not None and has(self.path, "regions"):
            regions = self.path.regions(seeded(self.seed).of("regions"))
            cost += self.path.regions_cost
        return replace(
            run,
            is_checked=True,
            earlier_alarms=(*self._tails, *run.earlier_alarms),
            plain_bound=bound,
            regions=regions,
            check_evaluations=self.evaluations.n + cost,
            failed_evaluations=self.evaluations.n_failed,
        )


def checked(run: Any, result: Any) -> Any:
    """Return the result of a run with the alarms of what was found beside it: of the bound, of
    regions, of what was found earlier, and of rounding.

    Parameters
    ----------
    run : Run
    result : PartitionResult
        What the run says by itself.

    Returns
    -------
    PartitionResult
    """
    diagnostics = dict(result.diagnostics)
    threshold = FOR_ALARM
    if run.first_try is not None:  # of a run that was chosen for what another one missed
        diagnostics["first_try"] = run.first_try
        threshold = FOR_SECOND_TRY
    if run.failed_evaluations:
        diagnostics["failed_evaluations"] = run.failed_evaluations
    missed = region_alarms(run, result, diagnostics, threshold)
    if {each.remedy for each in missed} & {each.remedy for each in result.alarms}:
        missed = []  # said of the sampler's number, which this one is read beside
    alarms = [
        *result.alarms,
        *_bound_alarms(run.plain_bound, result, diagnostics),
        *missed,
        *run.earlier_alarms,
        *rounding_alarms(result.log_partition, run.log_f_rounding),
    ]
    return replace(
        result,
        alarms=tuple(dict.fromkeys(alarms)),
        diagnostics=diagnostics,
        check_evaluations=run.check_evaluations,
        is_checked=run.is_checked,
        base=run.base,
    )


def plain_bound(path: Any, seed: int) -> Array | None:
    """Logs of G independent estimates of Z (G,) whose mean is at most log Z; None where the path
    has none.
    """
    if not has(path, "bound_draws"):
        return None
    return log_mean_exp(path.bound_draws(seeded(seed).of("bound")), axis=1)


def _bound_alarms(bound: NDArray | None, result: Any, diagnostics: dict) -> list[Alarm]:
    """An alarm if an estimate is below the bound by more than chance; the bound goes to the
    diagnostics.

    Each estimate has the expectation Z, so that the expectation of its log is at most log Z,
    whatever its draws miss.
    """
    if bound is None:
        return []
    mean = float(bound.mean())
    error = standard_error(bound)
    diagnostics.update(plain_bound=mean, plain_bound_std_error=error)
    if result.statement != "estimate" or not np.isfinite(result.log_partition):
        return []
    chance = BOUND_ERRORS * float(np.hypot(error, result.std_error))
    if not mean - result.log_partition > max(MATERIAL_BOUND, chance):  # also of a NaN
        return []
    return [raised("below-the-bound", "bound", mean=mean, error=error)]


def regions_to_cover(path: Any, run: Any, result: Any) -> list[Regions]:
    """Return what the bases of second tries should cover, in turn; empty where the run has missed
    nothing, or its base is the user's.

    The first covers every region with material mass. If its run is not trusted the next one covers
    only those that were certainly missed.
    """
    if run.regions is None or not path.base_is_ours or not has(path, "with_regions"):
        return []
    missed = missed_regions(run, result, FOR_SECOND_TRY)
    if not missed:
        return []
    masses = np.logaddexp.reduce(run.regions.log_masses, axis=1)
    masses -= np.log(run.regions.log_masses.shape[1]) + result.log_partition
    certain = set(missed)
    everything = certain | set(np.flatnonzero(masses > _LEAST_MASS).tolist())
    attempts = [everything] if everything == certain else [everything, certain]
    return [run.regions.take(sorted(places)) for places in attempts]


class Threshold(NamedTuple):
    """How sure it must be that a run has missed a region."""

    chance: float  # false-alarm rate of a run: of all regions one by one, and of them together
    run_errors: float  # standard errors of log Z that what is missed must be worth
    mass_errors: float  # standard errors that are taken off a region's mass
    rank: int  # or this order statistic of the estimates, if larger: each tends to be too low


FOR_ALARM = Threshold(chance=0.01, run_errors=2.0, mass_errors=3.0, rank=0)
FOR_SECOND_TRY = Threshold(chance=0.05, run_errors=1.0, mass_errors=1.0, rank=2)  # costs time only


def region_alarms(
    run: Any, result: Any, diagnostics: dict, threshold: Threshold = FOR_ALARM
) -> list[Alarm]:
    """An alarm if a region has a share of Z that the run's draws have missed; the worst region goes
    to the diagnostics.

    The mass of a region over the run's Z is the share of draws that a right run has there. There is
    an alarm where fewer are improbable, and the difference would move log Z materially.
    """
    missed = missed_regions(run, result, threshold)
    if not missed:
        return []
    every = checked_modes(run, result.log_partition)
    centres, masses, errors, shares = zip(*(every[place] for place in missed))
    diagnostics["missed_region"] = centres[0]
    return [
        raised(
            "missed-region",
            "one" if len(missed) == 1 else "several",
            _region_family(run),
            n=len(missed),
            mass=sum(masses),
            error=np.linalg.norm(errors),
            share=sum(shares),
            path_remedy=run.region_remedy,
        )
    ]


def _region_family(run: Any) -> str:
    """The family of remedies for a region that a run has missed."""
    if run.family in KINDS["missed-region"].remedies:
        return run.family
    failed = any(alarm.kind == "missed-region" for alarm in run.earlier_alarms)
    return "after a second try" if failed or run.first_try is not None else ""


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


def checked_modes(run: Any, log_partition: float) -> list[CheckedMode]:
    """All regions that a run knows, as `log_partition` and its draws say; empty without these."""
    if run.regions is None or run.draws is None or not len(run.regions.radii):
        return []
    masses = _masses(run, log_partition)
    shares = softmax(run.draws.log_weights) @ run.regions.contain(run.draws.points)
    errors = masses.std(axis=1, ddof=1) / np.sqrt(masses.shape[1])
    numbers = np.transpose([masses.mean(axis=1), errors, shares]).tolist()
    return [CheckedMode(centre, *own) for centre, own in zip(run.regions.centres, numbers)]


def _masses(run: Any, log_partition: float) -> Array:
    """The estimates of each region's mass over Z (R, G)."""
    return np.exp(np.minimum(run.regions.log_masses - log_partition, _LARGEST))


def missed_regions(run: Any, result: Any, threshold: Threshold) -> list[int]:
    """The places, among all that are known, of the regions that a run has missed; the worst first.

    Each is tested by itself, and many small ones together (`_miss_together`). Either test alarms in
    at most the threshold's share of right runs.
    """
    regions = run.regions
    draws = run.draws
    if regions is None or draws is None or not np.isfinite(result.log_partition):
        return []
    masses = _masses(run, result.log_partition)
    # Z may be larger than the run's by its own error.
    slack = threshold.run_errors * result.std_error
    # Ellipsoids are small parts of what a run of a density misses where they are on a slope.
    is_small = regions.factors is not None
    slack_of_share = _ERRORS_OF_ELLIPSOIDS * result.std_error if is_small else slack
    # the share of Z that would move log Z by more than its error, and by .015 nats
    material = float(np.expm1(np.clip(slack_of_share, SLACK, _LARGEST)))
    hidden = np.zeros(len(masses))
    if run.weight_there is not None:
        hidden = hidden_weight(run, unseen_masses(run, result.log_partition))
    if not masses.sum(axis=0).max(initial=0.0) > material and not hidden.any():
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
    if hidden.any():
        n_chains = len(run.up)
        if n_chains / (1 + hidden.sum()) < enough_effective(n_chains):
            missed |= hidden > 0.1 * hidden.max()  # those that matter beside the worst

    return sorted(np.flatnonzero(missed).tolist(), key=lambda r: shares[r] - means[r])


def unseen_masses(run: Any, log_partition: float) -> Array:
    """Return what each region surely holds (R,), over Z, beyond the share that the run's draws have
    there.

    Parameters
    ----------
    run : Run
        With draws and regions.
    log_partition : float
        log Z in nats.

    Returns
    -------
    ndarray of shape (R,)
        Negative where there are more draws.
    """
    shares = softmax(run.draws.log_weights) @ run.regions.contain(run.draws.points)
    masses = _masses(run, log_partition)
    least = [_least(mass, FOR_SECOND_TRY) for mass in masses[:, np.newaxis]]
    return np.array(least) - shares


def hidden_weight(run: Any, unseen: Array) -> Array:
    """Return what regions of which a run of independent chains has few draws add to the mean weight
    of chains from the target, over the mean of all (R,), beyond what weights of that mean would; 0
    where no reverse chains were needed. `unseen` is what `unseen_masses` gives.
    """
    excess = np.nan_to_num(np.maximum(run.weight_there - 1, 0.0))
    return np.maximum(unseen, 0.0) * excess


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
    least = sums.mean() - threshold.mass_errors * standard_error(sums)
    return float(max(least, np.sort(sums)[threshold.rank]))


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


def rounding_alarms(log_partition: float, rounding: float = 0.0) -> tuple[Alarm, ...]:
    """An alarm if log f is rounded by too many nats: by as many as its path says, and at least by
    as many as a number of the size of log Z.
    """
    if np.isfinite(log_partition):
        rounding = max(rounding, float(np.spacing(abs(log_partition))))
    if rounding <= MOST_ROUNDING:
        return ()
    return (raised("rounding", "log f", rounding=rounding),)
