"""BridgeSampling: log Z from draws of the target that somebody already has."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit
from scipy.stats import chi2

from sklpf._utils.context import current_budget, note
from sklpf._utils.numbers import Array
from sklpf._utils.random import seeded
from sklpf._utils.sklearn import StrOptions
from sklpf._utils.warnings import Alarm
from sklpf.partition._base import PartitionEstimator
from sklpf.partition._result import PartitionResult, Run
from sklpf.partition.alarms import raised, threshold
from sklpf.partition.checks.tails import check_columns
from sklpf.partition.weights._explored import measure_pace
from sklpf.partition.weights._posterior_draws import path_and_draws, posterior_draws
from sklpf.paths import (
    Box,
    Gaussian,
    Mixture,
    StudentT,
    fit_parts,
    require_own_density,
)
from sklpf.programs import Draws
from sklpf.reweighting import bar, overlap
from sklpf.uncertainty import (
    FALSE_ALARM,
    MATERIAL_DIFFERENCE,
    effective_draws,
    effective_sample_size,
    log_mean_exp,
    pareto_shape,
    rank_normalised,
    split_r_hat,
)

_CHECKED_BY = {"normal": "warp3", "t": "warp3", "warp3": "t", "mixture": "t"}
_DEGREES_OF_FREEDOM = (100.0, 30.0, 15.0, 8.0, 5.0, 3.0, 2.0, 1.0)
_FEWEST_POINTS = 20  # draws, below which there is nothing to fit
_TILT = 2.0  # of the log odds of a bridge that leans


class Moments(NamedTuple):
    """A chi-square statistic of differences between moments by two sets of draws.

    Attributes
    ----------
    square : float
        Mean square of the differences, in units of their standard errors: about 1.
    df : float
        Degrees of freedom, the number of moments that are independent.
    """

    square: float
    df: float

    @property
    def chance(self) -> float:
        """Probability of differences as large as these."""
        return float(chi2.sf(self.square * self.df, self.df))

    @property
    def excess(self) -> float:
        """Excess of the square above 1 and its own standard deviation."""
        return max(self.square - 1 - np.sqrt(2 / self.df), 0.0)


class Bridge(NamedTuple):
    """log f - log g at draws of a proposal g, and at draws of the target f.

    Attributes
    ----------
    at_proposal : ndarray of shape (n,)
        In nats.
    at_target, at_fitted : ndarray of shape (n_chains, n_draws)
        In nats, each chain in its order: at the half of the draws that the proposal meets, and at
        the half that it was fitted to.
    most_effective : float
        Effective number of the draws that the proposal meets at most, as some are repeated.
    moments : Moments
        Differences between moments of the draws and of the density.
    """

    at_proposal: Array
    at_target: Array
    at_fitted: Array
    most_effective: float
    moments: Moments


@dataclass(frozen=True, repr=False, kw_only=True)
class BridgeRun(Run):
    """Log weights between the draws of a target and proposals that were fitted to them.

    Attributes
    ----------
    bridges : tuple of Bridge
        The bridges of the second half of the draws with the proposal that was fitted to the first,
        and of the first half with the other.
    checks : tuple of Bridge
        The same draws with a proposal of another kind.
    r_hat, effective_draws : ndarray of shape (d + 1,)
        R-hat and effective sample size of every coordinate, and of log f.
    most_effective : float
        Effective number of all draws at most, as some are repeated; infinite where none is.
    n_divergent : int or None
        Divergent transitions of the sampler; None where nobody counted.
    n_evaluations : int
        Points at which log f was computed.
    """

    family = "bridge"

    bridges: tuple[Bridge, ...]
    checks: tuple[Bridge, ...]
    r_hat: Array
    effective_draws: Array
    most_effective: float
    n_divergent: int | None
    n_evaluations: int

    def _read(self) -> PartitionResult:
        halves = [_bridge_estimate(bridge) for bridge in self.bridges]
        others = [_bridge_estimate(bridge) for bridge in self.checks]
        by_half = np.array([half.log_ratio for half in halves])
        moments = _all_moments(self.bridges)
        excess = 1 + moments.excess * (1 + halves[0].n_effective / halves[0].proposal_terms.size)
        variance = _variance_of_halves(
            [half.variances * [1, excess] for half in halves],
            excess * _covariance_of_halves(*halves),
        )
        diagnostics: dict[str, Any] = {
            "half_log_partition": by_half,
            "check_log_partition": np.mean([other.log_ratio for other in others]),
            "r_hat": self.r_hat.max(),
            "effective_draws": self.effective_draws.min(),
            "effective_terms": min(half.n_effective for half in halves),
            "moments": moments.square,
            "overlap": min(half.overlap for half in halves),
            "target_pareto_shape": max(half.target_shape for half in halves),
            "proposal_pareto_shape": max(half.proposal_shape for half in halves),
            "n_evaluations": self.n_evaluations,
        }
        alarms = [
            *_chain_alarms(self, diagnostics),
            *_overlap_alarms(halves, diagnostics),
            *(_difference_alarms(self, halves, others) or _moment_alarms(halves, moments)),
        ]
        return self.conclude(
            by_half.mean(),
            np.sqrt(variance),
            diagnostics["effective_terms"],
            alarms=alarms,
            diagnostics=diagnostics,
        )


@dataclass(eq=False, repr=False)
class BridgeSampling(PartitionEstimator):
    """Bridge sampling (Meng & Wong 1996) between draws of the target and a proposal fitted to them.

    For posteriors that were already sampled, by any program: only the draws and the log density are
    needed. The proposal is fitted to one half of the chains, and the bridge is between its draws
    and the other half; then the halves are exchanged. The estimate is the mean of both. Each is the
    optimal bridge, Bennett's acceptance ratio with the effective number of the draws (Gronau et al.
    2017). Of more than 4,000 draws whose neighbours are alike, as those of emcee, some are left
    out: log f is computed at no more than the bridge needs, or than `max_evaluations` of
    `UntilTrusted` allows.

    Parameters
    ----------
    proposal : {"warp3", "normal", "t", "mixture"}, default="warp3"
        "normal" has the draws' mean and covariance. "warp3" takes the same for the target without
        its skewness (Meng & Schilling 2002). "t" is a t distribution by maximum likelihood, for
        heavy tails; "mixture" has as many Gaussians as the Bayesian information criterion asks for,
        for several modes, and takes about three evaluations of log f for every draw, where the
        others take six.
    checks : bool, default=True
        As in `AIS`.
    random_state : int, RandomState or None, default=None
        Seed of the proposal's draws.
    verbose : int, default=0
        As in `AIS`.

    Attributes
    ----------
    log_partition_, log_partition_std_error_, log_partition_interval_, converged_, result_, run_
        See `PartitionEstimator`. The standard error is that of Frühwirth-Schnatter (2004): the
        variance of the terms that the bridge averages, over the number of the proposal's draws and
        over the effective number of the target's, which takes autocorrelations and differences
        between chains into account. The covariance of the two halves' errors is measured with both
        proposals at the same draws. ``result_.diagnostics`` holds ``half_log_partition`` of both
        halves, ``check_log_partition`` by another kind of proposal, ``r_hat`` and
        ``effective_draws`` of the worst coordinate or of log f, ``effective_terms`` (of what is
        averaged over the target's draws), ``overlap`` of the target's and the proposal's draws (0
        to 1), the tails ``target_pareto_shape`` and ``proposal_pareto_shape``, and
        ``n_evaluations`` of log f, without those of the search for missed modes.

    Raises
    ------
    TypeError
        If draws are missing or unknown, or the path is not to a density on R^d.
    ValueError
        If draws have other names or dimensions than the path, if there are fewer than 20, if log f
        is not finite at one, or if it does not depend on a column.

    Notes
    -----
    Not converged if chains disagree (R-hat above 1.05), if the sampler reported divergences, if it
    is a run of this library that did not converge, or if fewer than 100 draws are effective; if the
    averaged terms have a heavy tail on either side (Pareto shape above 0.7), or the two sets of
    draws hardly overlap; or if estimates that should agree differ by more than 0.01 nats and
    chance: those of the two halves, of two kinds of proposals, and of bridges that give more weight
    to either side; or if means and variances of the draws, where they overlap with the proposal's,
    differ from the density's by more than the effective number of draws explains. Then the draws
    are not of this density, or too few. A mode that no chain has visited raises an alarm only if an
    optimiser finds it from other starts, for which it takes about as many evaluations as the
    bridges, and at least 12,000, without a gradient up to three times as many; `check_draws`
    searches longer.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import BridgeSampling
    >>> draws = np.random.default_rng(0).normal(size=(4, 1000, 2))  # by any sampler
    >>> bridge = BridgeSampling(random_state=0)
    >>> bridge = bridge.fit(lambda x: -np.sum(x**2, axis=1) / 2, draws=draws)
    >>> bool(abs(bridge.log_partition_ - np.log(2 * np.pi)) < 0.01)
    True
    """

    proposal: str = "warp3"
    _: KW_ONLY
    checks: bool = True
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0

    _parameter_constraints = {
        "proposal": [StrOptions(set(_CHECKED_BY))],
        "checks": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    _run_class = BridgeRun
    _searches_fully = False  # for modes: else about as long as the bridge takes

    def fit(self, path, y=None, *, draws: object = None) -> Self:
        """Estimate the log partition function from draws of the target.

        Parameters
        ----------
        path : GeometricPath, callable or BridgeRun
            The target; its base is not used. A function is the log density of points (n, d),
            giving (n,) in nats, or of one point (d,) as emcee takes it. A run, ``run_`` of another
            `BridgeSampling`, is only read anew.
        y : ignored
            Not used; there for scikit-learn's conventions.
        draws : object
            Draws of the target: points (n_chains, n_draws, d), or (n, d) of one chain, in the
            coordinates of the path and in the order in which they were drawn. An array with its
            steps first, or with walkers that take turns, is put into order, with a warning. Or a
            sampler of emcee (or a backend), zeus or NumPyro itself, after its burn-in. Or named
            parameters, of a path that has `unconstrain`: an ArviZ ``InferenceData`` or an xarray
            ``DataTree`` with a group ``posterior``, an xarray ``Dataset``, or a dict of arrays
            (n_chains, n_draws, ...), or (n_draws, ...) of one chain. Or a run that kept draws, its
            result, or the estimator that made it. Or of a nested sampler the ``results`` of
            dynesty, the result of UltraNest, or nautilus' sampler or what its ``posterior()``
            gives, whose points are drawn by their weights: of the unit cube on a path of
            `sklpf.interop.from_prior_transform`, else the parameters.

        Returns
        -------
        self

        Warns
        -----
        ConvergenceWarning
            If the result should not be trusted.
        """
        return self._fit(path, draws)._warn()

    def _as_path(self, path):
        if self._given_draws is None:
            raise TypeError("fit needs draws of the target: fit(path, draws=...)")
        path, self._given_draws = path_and_draws(path, self._given_draws, self._seed())
        path = super()._as_path(path)
        require_own_density(path, "BridgeSampling")
        path = copy.copy(path)
        # The base is not used: no alarm is about it.
        path.tail_alarms = ()
        path.may_be_nan = False
        path.base_chosen = ""
        return path

    def _sample(self, path, seed) -> BridgeRun:
        points, n_divergent, alarms = posterior_draws(self._given_draws, path, seed)
        budget = current_budget()
        if budget is not None and np.isfinite(budget.seconds_left()):
            measure_pace(path, _flat(points)[:16])
        points = _apart(points)
        if points[..., 0].size < _FEWEST_POINTS:
            raise ValueError(
                f"draws must be at least {_FEWEST_POINTS}, got {points[..., 0].size}: better are"
                " thousands"
            )
        counted, evaluations = path.counted()
        log_target = evaluations.counting(path._target)
        density = functools.partial(_log_density, log_target, path.bounds)
        flat = _flat(points)
        log_f = density(flat).reshape(points.shape[:2])
        if not np.isfinite(log_f).all():
            first = points[~np.isfinite(log_f)][0]
            raise ValueError(
                f"log_density is -inf at the draw {first}: draws must be of this density, in the"
                " coordinates of the path"
            )

        check_columns(counted, flat[:: len(flat) // 3])
        rng = seeded(seed).of("draws").generator()
        first, second = _halves(points, log_f)
        bridges, checks = (
            (
                _bridge(kind, first, second, density, rng),
                _bridge(kind, second, first, density, rng),
            )
            for kind in (self.proposal, _CHECKED_BY[self.proposal])
        )
        most = most_effective(points)
        described = np.concatenate([points, log_f[..., np.newaxis]], axis=2)
        chains = np.repeat(np.arange(len(points)), points.shape[1])
        every = Draws(flat, np.zeros(log_f.size), chains)
        if not self._searches_fully:
            path.most_search_evaluations = max(evaluations.n, 12_000)
        run = BridgeRun(
            bridges=bridges,
            checks=checks,
            r_hat=split_r_hat(described),
            effective_draws=np.minimum(effective_draws(rank_normalised(described)), most),
            most_effective=most,
            n_divergent=n_divergent,
            n_evaluations=evaluations.n,
            draws=every.thinned(),
            earlier_alarms=alarms,
        )
        note(run)  # before the search for modes
        return run


# -- sampling


def _log_density(log_target: Callable[[Array], Array], bounds: Box, points: Array) -> Array:
    """log f of points (n, d); f is 0 outside of the box."""
    inside = bounds.contains(points)
    values = np.full(len(points), -np.inf)
    if inside.any():
        values[inside] = log_target(points[inside])
    return values


class _Half(NamedTuple):
    """Draws (n_chains, n_draws, d) and log f there."""

    points: Array
    log_f: Array


def _halves(points: NDArray, log_f: NDArray) -> list[_Half]:
    """Half of the chains and the others; of one chain its first half and its second."""
    axis = 1 if len(points) == 1 else 0
    middle = [points.shape[axis] // 2]
    parts = (np.split(array, middle, axis) for array in (points, log_f))
    return [_Half(*half) for half in zip(*parts)]


def _apart(
    points: Array,
    *,
    per_effective: int = 4,  # draws that are kept
    fewest: int = 4000,
    evaluations: float = 12.0,  # a draw: half for the bridges, half for the search for modes
    fewest_of_chain: int = 20,
) -> Array:
    """Every so many-th draw of the chains (n_chains, n_draws, d), where neighbours are alike in all
    coordinates, so that log f of the others would tell hardly more; or fewer, as many as the budget
    affords.
    """
    effective = np.max(effective_draws(rank_normalised(points)))
    n = points[..., 0].size
    every = int(min(n / (per_effective * effective), n / fewest))
    budget = current_budget()
    affordable = math.inf if budget is None else budget.affordable()
    if affordable:
        wanted = math.ceil(n * evaluations / affordable)
        every = max(every, min(wanted, points.shape[1] // fewest_of_chain))
    return points[:, :: max(every, 1)]


def _bridge(kind, fitted_to: _Half, met: _Half, density, rng: np.random.Generator) -> Bridge:
    """The bridge of a half of the draws with what was fitted to the other."""
    n_effective = min(
        float(effective_draws(fitted_to.log_f)),
        most_effective(fitted_to.points),
        fitted_to.log_f.size,
    )
    proposal = fit_proposal(kind, _flat(fitted_to.points), n_effective, rng)
    drawn = proposal.density.sample(met.log_f.size, rng)

    def at_draws(half: _Half) -> Array:
        log_weights = proposal.log_weights(density, _flat(half.points), half.log_f.ravel())
        return log_weights.reshape(half.log_f.shape)

    log_f_drawn = density(drawn)
    if np.all(log_f_drawn == -np.inf):
        raise ValueError(
            f"log_density is -inf at all {len(drawn)} draws of the proposal, as where its support"
            " has no volume (integers, or coordinates that must be equal): sum over what is"
            " discrete, or take coordinates that are free"
        )
    most = most_effective(met.points)
    return Bridge(
        at_proposal=proposal.log_weights(density, drawn, log_f_drawn),
        at_target=at_draws(met),
        at_fitted=at_draws(fitted_to),
        most_effective=most,
        moments=_moments(proposal.density, fitted_to, met, drawn, log_f_drawn, most),
    )


def _moments(
    proposal: Any, fitted_to: _Half, met: _Half, drawn: Array, log_f_drawn: Array, most: float
) -> Moments:
    """Compare means and variances by the target's draws with those by the proposal's.

    Both are of the density f g / (f + g), where target and proposal overlap, so that no weight is
    large. The number of draws that are effective is in every standard error, so that draws which
    are fewer than their order shows, as of chains that were shuffled, are noticed.
    """
    points = _flat(met.points)
    at_target = met.log_f.ravel() - proposal.log_density(points)
    at_proposal = log_f_drawn - proposal.log_density(drawn)
    log_ratio = bar(at_proposal, -at_target)
    shares = [expit(log_ratio - at_target), expit(at_proposal - log_ratio)]
    # Axes of the same draws would be those along which these vary most by chance.
    center = _flat(fitted_to.points).mean(axis=0)
    axes = _whitening(_flat(fitted_to.points))
    terms = []
    means = []
    for sample, share in zip((points, drawn), shares):
        white = (sample - center) @ axes
        functions = np.column_stack([white, white**2])
        weight = (share / share.mean())[:, np.newaxis]
        means.append(np.mean(weight * functions, axis=0))
        terms.append(weight * (functions - means[-1]))
    in_chains = terms[0].reshape(*met.log_f.shape, -1)
    variances = terms[0].var(axis=0) / np.minimum(effective_draws(in_chains), most)
    variances += terms[1].var(axis=0) / len(drawn)
    square = np.mean((means[0] - means[1]) ** 2 / variances)
    correlations = np.corrcoef(terms[0].T)
    return Moments(float(square), float(len(correlations) ** 2 / np.sum(correlations**2)))


def _all_moments(bridges: Sequence[Bridge]) -> Moments:
    """The moments of several bridges with other draws."""
    squares, degrees = np.transpose([bridge.moments for bridge in bridges])
    return Moments(float(squares @ degrees / degrees.sum()), float(degrees.sum()))


def _whitening(
    points: Array,
    *,
    most_axes: int = 50,  # of moments
) -> Array:
    """A matrix that makes points (n, d) uncorrelated, of unit variance: (d, d), or (d, 50) of the
    axes along which they vary most.
    """
    values, axes = np.linalg.eigh(np.atleast_2d(np.cov(points.T)))
    some = slice(-most_axes, None)
    return axes[:, some] / np.sqrt(np.maximum(values[some], 1e-12 * values[-1]))


def _flat(points: Array) -> Array:
    """The draws (n, d) of all chains."""
    return points.reshape(-1, points.shape[2])


def most_effective(points: Array) -> float:
    """The effective number of draws (n_chains, n_draws, d) by how often each is repeated, which
    shuffled ones, as of a bootstrap, don't show by their autocorrelation; infinite if none is.

    A Markov chain that often stays where it is has fewer by its autocorrelation.
    """
    counts = np.unique(_flat(points), axis=0, return_counts=True)[1]
    return counts.sum() ** 2 / float(np.sum(counts**2.0)) if counts.max() > 1 else np.inf


# -- proposals, of which a bridge connects the posterior with one


class FittedProposal(NamedTuple):
    """A normalised density g to draw from, and whether the target is made symmetric about its
    center first: f(x) becomes (f(x) + f(2 center - x)) / 2, with the same integral.
    """

    density: Any
    symmetric: bool = False

    def log_weights(
        self, log_density: Callable[[Array], Array], points: Array, log_target: Array
    ) -> Array:
        """Return log f - log g at points (n, d), where log f is log_target: (n,), in nats."""
        if self.symmetric:
            mirrored = log_density(2 * self.density.center - points)
            log_target = np.logaddexp(log_target, mirrored) - np.log(2)
        return log_target - self.density.log_density(points)


def fit_proposal(
    kind: str,
    points: Array,
    n_effective: float,
    rng: np.random.Generator,
    *,
    most_components: int = 10,
) -> FittedProposal:
    """Fit a proposal to points (n, d), which are worth so many independent ones.

    A Gaussian has their mean and covariance; "warp3" is the same one for the target without its
    skewness (Meng & Schilling 2002, Warp-III). A mixture has at most 10 Gaussians, as many as the
    Bayesian information criterion asks for.
    """
    if kind == "t":
        return FittedProposal(_fit_t(points))
    whole = Gaussian.fit(points)
    parts = None
    if kind == "mixture":
        parts = fit_parts(points, whole, n_effective, most_components, rng)
    if parts is None:  # a Gaussian has its shrinkage
        return FittedProposal(whole, symmetric=kind == "warp3")
    gaussians = [Gaussian(*each) for each in zip(parts.means, parts.covariances)]
    return FittedProposal(Mixture(gaussians, parts.weights))


def _fit_t(
    points: Array,
    *,
    n_steps: int = 5,  # with each
) -> StudentT:
    """A t distribution by maximum likelihood, with degrees of freedom from 1 to 100.

    Of the EM algorithm for location and scale matrix a prior matrix (d, d) counts as d points, so
    that there is always an inverse.
    """
    n, n_dimensions = points.shape
    start = Gaussian.fit(points)
    density = StudentT(start.mean, start.covariance, _DEGREES_OF_FREEDOM[0])
    best = density
    highest = -np.inf
    for df in _DEGREES_OF_FREEDOM:
        for _ in range(n_steps):
            squares = density.squared_distances(points)
            weights = (df + n_dimensions) / (df + squares)
            mean = weights @ points / weights.sum()
            apart = points - mean
            scatter = (weights[:, np.newaxis] * apart).T @ apart + n_dimensions * start.covariance
            scale = scatter / (n + n_dimensions)
            density = StudentT(mean, (scale + scale.T) / 2, df)
        log_likelihood = density.log_density(points).mean()
        if log_likelihood > highest:
            best = density
            highest = log_likelihood
    return best


# -- reading


class _Estimate(NamedTuple):
    """Estimate by a bridge.

    The terms are what it averages over the draws of either side, in units of their mean: the
    estimate rises as the proposal's mean and falls as the target's, to first order.
    """

    log_ratio: float
    proposal_terms: Array  # (n,)
    target_terms: Array  # (n_chains, n_draws)
    fitted_terms: Array  # the same function at the draws that the proposal knows
    n_effective: float  # of the target's terms
    most_effective: float  # of the target's draws
    overlap: float
    n_shared: float  # effective draws where both have mass
    proposal_shape: float  # of the tails of the terms
    target_shape: float
    proposal_largest: float  # that a term can be
    target_largest: float

    @property
    def variances(self) -> Array:
        return _variances(self.proposal_terms, self.target_terms, self.most_effective)


def _bridge_estimate(bridge: Bridge, tilt: float = 0.0) -> _Estimate:
    """The optimal bridge, or one that leans towards either side by a tilt of the log odds."""
    at_proposal = bridge.at_proposal
    at_target = bridge.at_target.ravel()
    most = bridge.most_effective
    n_target = min(float(effective_draws(bridge.at_target)), most, at_target.size)
    log_odds = float(np.log(n_target / at_proposal.size)) + tilt
    log_ratio = bar(at_proposal, -at_target, log_odds=log_odds)

    # The probability of a draw to be of the other kind, given where it lies.
    log_of_target = log_expit(at_proposal - log_ratio + log_odds)
    log_of_proposal = log_expit(log_ratio - log_odds - bridge.at_target)
    log_mean_of_target = float(log_mean_exp(log_of_target))
    log_mean_of_proposal = float(log_mean_exp(log_of_proposal))
    target_terms = np.exp(log_of_proposal - log_mean_of_proposal)
    at_fitted = log_expit(log_ratio - log_odds - bridge.at_fitted)
    shared = overlap(at_proposal, -at_target, log_ratio)
    return _Estimate(
        log_ratio=log_ratio,
        proposal_terms=np.exp(log_of_target - log_mean_of_target),
        target_terms=target_terms,
        fitted_terms=np.exp(at_fitted - log_mean_exp(at_fitted)),
        n_effective=min(float(effective_draws(target_terms)), most),
        most_effective=most,
        overlap=shared,
        n_shared=shared * min(n_target, effective_sample_size(log_of_target)),
        proposal_shape=pareto_shape(log_of_target),
        target_shape=pareto_shape(log_of_proposal.ravel()),
        proposal_largest=np.exp(-log_mean_of_target),
        target_largest=np.exp(-log_mean_of_proposal),
    )


def _variances(proposal_terms: NDArray, target_terms: NDArray, most: float) -> Array:
    """Return the variances of mean terms over the proposal's independent draws, and over the
    target's correlated ones, of which at most so many are effective (Frühwirth-Schnatter 2004).
    """
    of_target = target_terms.var() / min(float(effective_draws(target_terms)), most)
    return np.array([proposal_terms.var() / proposal_terms.size, of_target])


def _variance_of_halves(halves: list[Array], covariance: float = np.inf) -> float:
    """Variance of the mean over both halves, whose variances are pairs as `_variances` gives them.

    The covariance is that of their errors from the target's draws; at most these are one.
    """
    of_proposal, of_target = np.transpose(halves)
    shared = min(covariance, np.sqrt(of_target.prod()))
    return float((of_proposal.sum() + of_target.sum() + 2 * shared) / 4)


def _covariance_of_halves(first: _Estimate, second: _Estimate) -> float:
    """Return the covariance of both halves' errors, by the target's draws.

    A term h depends on the draws x that are met, and on the other half by its proposal, which
    differs from the best of its family by the error of the fit: h(x) = h0(x) + delta(x). Means of
    h0 over two halves are independent. Those of delta are products of what both halves, the one
    that is fitted and the one that is met, differ by from the target: for a normal target the same
    product in both. The two fits' terms at the same draws differ by two independent delta.
    """
    apart = (first.target_terms - second.fitted_terms, second.target_terms - first.fitted_terms)
    return float(np.mean([each.var() / effective_draws(each) for each in apart]) / 2)


def _chain_alarms(run: BridgeRun, diagnostics: dict[str, Any]) -> list[Alarm]:
    """Return alarms of chains that disagree, and of too few draws."""
    alarms = []
    if run.n_divergent:
        alarms.append(raised("divergences", "transitions", n=run.n_divergent))
    if diagnostics["r_hat"] > threshold("not-mixed", "r_hat"):
        worst = int(run.r_hat.argmax())
        where = "the log density" if worst == len(run.r_hat) - 1 else f"coordinate {worst}"
        alarms.append(
            raised(
                "not-mixed",
                "R-hat",
                run.family,
                largest=diagnostics["r_hat"],
                where=where,
            )
        )
    in_halves = sum(min(bridge.most_effective, bridge.at_target.size) for bridge in run.bridges)
    if run.most_effective < threshold("repeated-draws", "apart") * in_halves:
        alarms.append(raised("repeated-draws", "halves", n=run.most_effective))
    fewest = min(diagnostics["effective_draws"], diagnostics["effective_terms"])
    if fewest < threshold("few-states", "effective"):
        alarms.append(raised("few-states", "effective", run.family, fewest=fewest))
    return alarms


def _overlap_alarms(halves: list[_Estimate], diagnostics: dict[str, Any]) -> list[Alarm]:
    """Return alarms of a proposal that overlaps too little with the draws."""
    alarms = []
    for side in ("target", "proposal"):
        shape = diagnostics[f"{side}_pareto_shape"]
        largest = max(getattr(half, f"{side}_largest") for half in halves)
        is_heavy = shape > threshold("little-overlap", "pareto_shape")
        if is_heavy and largest > threshold("little-overlap", "largest_term"):
            alarms.append(
                raised(
                    "little-overlap",
                    "terms",
                    BridgeRun.family,
                    side=side,
                    shape=shape,
                )
            )
    shared = min(half.n_shared for half in halves)
    if shared < threshold("little-overlap", "shared"):
        alarms.append(raised("little-overlap", "proposal", BridgeRun.family, n_shared=shared))
    return alarms


def _moment_alarms(halves: list[_Estimate], moments: Moments) -> list[Alarm]:
    """An alarm if draws are worth fewer than they seem, or of another density."""
    enough = min(half.n_shared for half in halves) >= threshold("little-overlap", "shared")
    if not enough or moments.chance > FALSE_ALARM:
        return []
    return [raised("not-of-this-density", "moments", BridgeRun.family, square=moments.square)]


def _difference_alarms(
    run: BridgeRun, halves: list[_Estimate], others: list[_Estimate]
) -> list[Alarm]:
    """An alarm for each two numbers that should be one and aren't."""
    first, second = halves
    apart = first.log_ratio - second.log_ratio
    variance = first.variances.sum() + second.variances.sum()
    alarms = []
    if _differ(apart, variance):
        alarms.append(raised("not-stationary", "halves of draws", run.family, apart=apart))

    to_draws, to_proposal = (
        [_bridge_estimate(bridge, tilt) for bridge in run.bridges] for tilt in (-_TILT, _TILT)
    )
    apart, variance = _difference_by_halves(to_draws, to_proposal)
    if _differ(apart, variance):
        alarms.append(raised("readings-differ", "lean", run.family, apart=apart))

    if min(other.n_shared for other in others) < threshold("little-overlap", "shared"):
        return alarms  # a proposal that doesn't fit says nothing
    apart, variance = _difference_by_halves(halves, others, same_proposal=False)
    if _differ(apart, variance):
        alarms.append(raised("readings-differ", "proposals", run.family, apart=apart))
    return alarms


def _difference_by_halves(
    some: list[_Estimate], others: list[_Estimate], same_proposal: bool = True
) -> tuple[float, float]:
    """The mean difference over the halves, of estimates from the same draws of the target, in nats,
    and its variance.
    """
    apart = np.mean([one.log_ratio - two.log_ratio for one, two in zip(some, others)])
    variances = []
    for one, two in zip(some, others):
        of_proposal = one.proposal_terms - two.proposal_terms
        of_target = one.target_terms - two.target_terms
        variances.append(_variances(of_proposal, of_target, one.most_effective))
        if not same_proposal:
            variances[-1][0] = one.variances[0] + two.variances[0]
    return float(apart), _variance_of_halves(variances)


def _differ(
    apart: float,
    variance: float,
    *,
    largest_z: float = 3.29,  # 0.1 % by chance
) -> bool:
    """Return whether a difference is neither chance nor immaterial."""
    return abs(apart) > max(largest_z * np.sqrt(variance), MATERIAL_DIFFERENCE)
