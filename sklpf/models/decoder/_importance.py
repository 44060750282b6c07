"""DecoderImportance: rows' likelihoods by importance sampling at the modes of their posteriors, and
by annealing where the weights are heavy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import softmax
from scipy.stats import chi2

from sklpf._utils.numbers import LOG_TAU, Array, Integers
from sklpf._utils.random import seeded, systematic
from sklpf.models.decoder._network import Network, probes
from sklpf.partition import HAIS, PartitionResult
from sklpf.partition.alarms import threshold
from sklpf.paths import (
    Box,
    Ends,
    Evaluations,
    Mixture,
    StudentT,
    climb,
    evaluate_bisecting_failures,
    full_matrix,
)
from sklpf.programs import PILOT_NOISE_FACTOR
from sklpf.transitions import next_beta
from sklpf.uncertainty import effective_sample_size, mean_weight, pareto_shape

# from likely draws; the second where the first leave it open whether there are more modes
_N_CLIMBS = 32, 96
_MOST_MODES = 8
_SMALL_STEP = 1e-3  # of differences that tell how wide a mode is
_DF = 5.0  # of proposals: Student's t
_LEAST_SHARE = 0.02  # of a mode in the proposal
_LIGHT = 0.5  # Pareto shape up to which the variance of weights is finite


@dataclass(eq=False, repr=False, kw_only=True)
class DecoderImportance(HAIS):
    """Importance sampling of the latent variables of each row, and `HAIS` for rows where it fails:
    for paths of decoders and of bilinear models.

    Climbs lead to the modes of p(z | x). They begin where x is likely among many draws of the
    prior, where its likelihood changes fastest, and at the encoder's mean if there is an encoder.
    log p(x) is the log of the mean of p(x, z) / q(z) over draws z from a mixture q of Student's t
    densities with five degrees of freedom: one for each mode with the curvature there, one for the
    encoder's density, and one as wide as the prior. Where the weights are heavy, q is fitted to all
    draws so far (Cappe et al. 2008), up to seven times, and other draws give the estimate. Where
    they stay so, the row is annealed.

    Parameters
    ----------
    n_chains, ladder, transition, checkpoint, max_evaluations, max_seconds
        Of rows that are annealed, as in `HAIS`; budgets must be None.
    random_state, n_jobs, verbose
        Of rows that are annealed, as in `HAIS`.
    n_temperatures : int, default=3000
        Most levels of these.
    tol : float or None, default=0.1
        Target standard error of a row in nats.
    checks : bool, default=True
        Whether climbs look for modes from draws of the prior. False: with an encoder they begin at
        its mean alone.

    Attributes
    ----------
    log_partition_, log_partition_std_error_, log_partition_interval_, converged_, result_
        As in `PartitionEstimator`. ``result_.sweeps`` says how many draws, points on climbs and
        moves of chains it took.

    Notes
    -----
    A row is annealed unless two batches of draws (1000, of a bilinear model 10,000) follow one
    another of which the first has weights of Pareto shape below 0.5, the second below 0.7, both
    have 100 effective draws (of a bilinear model 1000), and the second, which may be larger, gives
    a standard error of at most `tol`. It is also annealed if only one of 96 climbs has met a mode
    with 0.5 % of p(x), since there may then be more.

    A mode that no climb and no draw meets is missed, and nothing says so. Climbs begin at 4096 or
    more draws of the prior, which are sparse far from the origin and in many dimensions. Of rows
    that a network with two latent variables has learned by heart, in a bump of width 0.005 or 0.01,
    4 of 13 trusted results lacked it, of width 0.02 none of 8; in more dimensions wider bumps stay
    unseen. An encoder that knows the place shows it.

    References
    ----------
    Cappe, O., Douc, R., Guillin, A., Marin, J.-M. & Robert, C. P. (2008). Adaptive importance
    sampling in general mixture classes. Statistics and Computing 18, 447-459.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf.interop import from_decoder
    >>> from sklpf.models import DecoderImportance
    >>> noise = dict(likelihood="gaussian", noise_std=1.0)
    >>> model = from_decoder(lambda z: 2 * z, 1, pullback=lambda z, g: 2 * g, **noise)
    >>> sampling = DecoderImportance(random_state=0).fit(model.path([[1.0], [2.0]]))
    >>> exact = -0.5 * np.log(2 * np.pi * 5) - np.array([1, 4]) / 10  # x ~ N(0, 5)
    >>> bool(np.all(np.abs(sampling.log_partition_ - exact) < 0.05))
    True
    """

    n_temperatures: int = 3000
    tol: float | None = 0.1

    def _estimate_rows(self, path, rows, seeds) -> Iterator[PartitionResult]:
        if not hasattr(path, "network"):
            raise TypeError(
                "DecoderImportance needs rows of a decoder or of a bilinear model, got a"
                f" {type(path).__name__}: take HAIS"
            )
        posteriors = Posteriors(path.network, path.X[rows], path.n_dimensions, Evaluations())
        rngs = [seeded(seed).of("draws").generator() for seed in seeds]
        encoded = None if path.encode is None else (path.center[rows], path.scale[rows])
        proposals = _proposals(posteriors, rngs, encoded, self.checks or encoded is None)
        tol = np.inf if self.tol is None else self.tol
        found = [
            _by_importance(posteriors, t, proposal, tol, rngs[t], path.n_draws)
            for t, proposal in enumerate(proposals)
        ]
        failed = [t for t, weighed in enumerate(found) if not weighed.is_light]
        others = super()._estimate_rows(path, [rows[t] for t in failed], [seeds[t] for t in failed])
        n_climbing = posteriors.evaluations.n // len(rows)
        for weighed in found:
            tried = {"draws": weighed.n_draws, "climbs": n_climbing}
            if not weighed.is_light:
                result = next(others)
                yield replace(result, sweeps=result.sweeps | tried)
                continue
            yield PartitionResult(
                type(self).__name__,
                weighed.log_partition,
                weighed.std_error,
                weighed.n - 1,
                sweeps=tried,
                check_evaluations=0 if self.checks else None,
            )


class Posteriors(NamedTuple):
    """p(z, x) of rows x, as a density of latent variables z.

    Attributes
    ----------
    network : Network
    X : ndarray of shape (n_rows, n_features)
    n_latents : int
    evaluations : Evaluations
        Points at which climbs have asked for it.
    """

    network: Network
    X: Array
    n_latents: int
    evaluations: Evaluations

    def log_prior(self, latents: Array) -> Array:
        """Return log p(z) of points (n, n_latents)."""
        return -0.5 * (np.sum(latents**2, axis=1) + self.n_latents * LOG_TAU)

    def log_density(self, latents: Array, row: int) -> Array:
        """Return log p(z, x) at points (n, n_latents) for one row, NaN where the decoder fails."""
        rows = np.full(len(latents), row)

        def values(points):
            return self.network.log_densities(points, self.X, rows[: len(points)])

        return self.log_prior(latents) + evaluate_bisecting_failures(values, latents)

    def slopes(self, latents: Array, steps: Array, rows: Integers) -> tuple[Array, Array]:
        """Return log p(z, x) at points, each for a row of its own, and its gradients by z; -inf and
        0 where the decoder fails.
        """

        def both(packed):
            points = packed[:, 1:]
            X = self.X[packed[:, 0].astype(np.int64)]
            return np.column_stack(self.network.log_likelihood(points, X))

        packed = np.column_stack([rows, latents])
        counted = self.evaluations.counting(both)
        found = evaluate_bisecting_failures(counted, packed, 1 + self.n_latents)
        good = np.asarray(np.isfinite(found).all(axis=1))
        values = np.where(good, found[:, 0] + self.log_prior(latents), -np.inf)
        return values, np.where(good[:, np.newaxis], found[:, 1:] - latents, 0.0)


# -- modes
class Mode(NamedTuple):
    """A mode of p(z | x): where it is, its covariance by the curvature, the log of its mass by
    Laplace's method in nats, and how many climbs have ended there.
    """

    centre: Array
    covariance: Array
    log_mass: float
    n_climbs: int


def _proposals(posteriors, rngs, encoded, searches) -> list[Mixture | None]:
    """A proposal for every row, None where its modes are not all known."""
    n_rows = len(rngs)
    modes: list[list[Mode]] = [[] for _ in rngs]
    open_rows = np.arange(n_rows)
    means = np.zeros((n_rows, posteriors.n_latents)) if encoded is None else encoded[0]
    screened = _screened(posteriors) if searches else None
    for n_climbs in _N_CLIMBS:
        starts = [means[open_rows]]
        targets = [open_rows]
        if screened is not None:
            for t in open_rows:
                drawn = _likely_draws(screened, t, n_climbs, rngs[t])
                starts.append(drawn)
                targets.append(np.full(len(drawn), t))
        scale = np.ones(posteriors.n_latents)
        ends = climb(
            posteriors.slopes,
            np.concatenate(starts),
            scale,
            Box.everywhere(len(scale)),
            np.concatenate(targets),
        )
        for t, found in zip(open_rows, _modes_of(posteriors, ends, open_rows)):
            modes[t] = found
        if screened is None:
            break
        open_rows = np.array([t for t in open_rows if not _are_all(modes[t])], dtype=np.int64)
        if not len(open_rows):
            break
    return [
        _proposal(modes[t], None if encoded is None else (encoded[0][t], encoded[1][t]))
        if modes[t] and (screened is None or _are_all(modes[t]))
        else None
        for t in range(n_rows)
    ]


class Screened(NamedTuple):
    """Draws z from the prior, (n, n_latents); log p(x | z) of every row there in nats, and how much
    it changes along a direction, both (n_rows, n).
    """

    draws: Array
    gains: Array
    slopes: Array


def _screened(posteriors) -> Screened:
    """Look at the rows at many draws: a decoder's outputs serve all of them."""
    # draws of the prior, the same for all rows, over the number of latents
    n_screened = 65_536
    fewest = 4096
    d = posteriors.n_latents
    n = max(n_screened // d, fewest)
    draws, directions = np.split(probes(d, 2 * n), 2)

    def gains(points):
        return posteriors.network.log_densities_of_all(points, posteriors.X).T

    def found_at(points):
        found = evaluate_bisecting_failures(gains, points, len(posteriors.X)).T
        return np.where(np.isfinite(found), found, -np.inf)

    here = found_at(draws)
    step = _SMALL_STEP * directions / np.linalg.norm(directions, axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):  # -inf at both
        slopes = np.abs(found_at(draws + step) - here)
    return Screened(draws, here, np.nan_to_num(slopes))


def _likely_draws(screened: Screened, t, n, rng) -> Array:
    """Draws of the prior, more of them where x is likely: of a tempered posterior, of which a small
    share of all draws is effective, a quarter where x is most likely, and a quarter where that
    changes fastest, as at the side of a narrow mode.
    """
    effective_share = 0.02  # of the draws, where climbs begin
    gain = screened.gains[t]
    highest = np.argsort(gain)[-(n // 4) :]
    steepest = np.argsort(screened.slopes[t])[-(n // 4) :]
    beta = next_beta(gain, 0.0, effective_share)
    others = systematic(beta * gain, n // 2, rng.random())
    return screened.draws[np.unique(np.concatenate([highest, steepest, others]))]


def _modes_of(posteriors, ends: Ends, rows: Integers) -> list[list[Mode]]:
    """The modes of some rows, from where climbs have ended: the highest end of a row, with all that
    lie within it, then the highest of the rest, and so on.
    """
    d = posteriors.n_latents
    squared_radius = chi2.ppf(0.99, d)
    left = {t: np.flatnonzero(ends.targets == t) for t in rows.tolist()}
    modes: dict[int, list[Mode]] = {t: [] for t in rows.tolist()}
    for _ in range(_MOST_MODES):
        trying = [t for t in left if len(left[t])]
        if not trying:
            break
        best = np.array([left[t][ends.log_density[left[t]].argmax()] for t in trying])
        centres = ends.position[best]
        for t, end, centre, precision in zip(
            trying, best, centres, _precisions(posteriors, centres, np.array(trying))
        ):
            away = ends.position[left[t]] - centre
            inside = np.einsum("ni,ij,nj->n", away, precision, away) <= squared_radius
            log_mass = ends.log_density[end] + d / 2 * LOG_TAU
            log_mass -= np.linalg.slogdet(precision)[1] / 2
            covariance = np.linalg.inv(precision)
            modes[t].append(Mode(centre, covariance, float(log_mass), int(inside.sum())))
            left[t] = left[t][~inside & (left[t] != end)]
    return [modes[t] for t in rows.tolist()]


def _precisions(posteriors, centres: Array, rows: Integers) -> Array:
    """Curvatures of -log p(z, x) at modes, (n, d, d), over half a standard deviation, so that a
    kink does no harm.
    """
    widest = 2.0  # standard deviations of the prior
    narrowest = 1e-5
    least_curvature = 0.02  # in units of the widths
    d = posteriors.n_latents

    def curvatures(steps):
        """Differences of slopes along every coordinate, by steps (n, d)."""
        moves = steps[:, :, np.newaxis] * np.eye(d)
        ends = np.concatenate([centres[:, np.newaxis] + moves, centres[:, np.newaxis] - moves])
        targets = np.tile(np.repeat(rows, d), 2)
        found = posteriors.slopes(ends.reshape(-1, d), np.empty(0), targets)[1]
        above, below = found.reshape(2, -1, d, d)
        return (below - above) / (2 * steps[:, :, np.newaxis])

    first = curvatures(np.full(centres.shape, _SMALL_STEP))
    diagonal = np.einsum("nii->ni", first)
    widths = np.clip(np.maximum(diagonal, widest**-2.0) ** -0.5, narrowest, widest)
    units = widths[:, :, np.newaxis] * widths[:, np.newaxis]
    curvature = curvatures(widths / 2) * units
    values, axes = np.linalg.eigh(curvature / 2 + np.swapaxes(curvature, 1, 2) / 2)
    values = np.maximum(values, least_curvature)
    return (axes * values[:, np.newaxis]) @ np.swapaxes(axes, 1, 2) / units


def _are_all(modes: list[Mode]) -> bool:
    """True if climbs have met every mode with a material share more than once, so that there
    are hardly others.
    """
    material_share = 0.005  # of a mode
    if not modes or len(modes) == _MOST_MODES:
        return False
    shares = softmax([mode.log_mass for mode in modes])
    return all(mode.n_climbs > 1 for mode, share in zip(modes, shares) if share > material_share)


# -- proposals
def _proposal(modes: list[Mode], encoded) -> Mixture:
    """Student's t at every mode, and at the encoder's density."""
    of_encoder = 0.1  # share of the encoder's density
    shares = np.maximum(softmax([mode.log_mass for mode in modes]), _LEAST_SHARE)
    parts = [StudentT(mode.centre, mode.covariance, _DF) for mode in modes]
    shares = shares / shares.sum()
    if encoded is not None:
        mean, scale = encoded
        parts.append(StudentT(mean, scale**2, _DF))
        shares = np.append((1 - of_encoder) * shares, of_encoder)
    return _with_prior(parts, shares)


def _with_prior(parts, shares) -> Mixture:
    """A mixture of these parts and of a density as wide as the prior."""
    of_prior = 0.05  # so that draws meet a mode that climbs have not
    d = parts[0].n_dimensions
    prior = StudentT(np.zeros(d), 1.0, _DF)
    return Mixture([*parts, prior], np.append((1 - of_prior) * shares, of_prior))


class Weighed(NamedTuple):
    """log p(x) of a row in nats by n draws, its standard error, whether the weights are light
    enough for both, and the draws of all batches together.
    """

    log_partition: float
    std_error: float
    n: int
    is_light: bool
    n_draws: int


def _by_importance(posteriors, row, proposal: Mixture | None, tol, rng, n_of_batch) -> Weighed:
    """Draw batches until the weights of one are light, each from a proposal that was fitted to all
    draws before; then once more for the estimate. Without a proposal none are drawn.
    """
    most_batches = 8
    most_draws = 40_000
    effective_share = 0.1  # of `n_of_batch`, as many effective draws as a batch needs
    if proposal is None:
        return Weighed(np.nan, np.nan, n=0, is_light=False, n_draws=0)
    past = Past([], [], [])
    n = n_of_batch
    is_last = False
    for _ in range(most_batches):
        draws = proposal.sample(n, rng)
        log_density = posteriors.log_density(draws, row)
        log_weights = log_density - proposal.log_density(draws)
        past.add(proposal, draws, log_density)
        if not np.all(log_weights < np.inf):  # also a NaN
            break
        estimate = mean_weight(log_weights)
        shape = pareto_shape(log_weights)
        is_enough = effective_sample_size(log_weights) >= effective_share * n_of_batch
        is_light = shape < threshold("little-overlap", "pareto_shape")
        if is_last and is_enough and is_light and estimate.std_error <= tol:
            return Weighed(estimate.log_mean, estimate.std_error, n, True, past.n)
        # Weights that look light tend to be those that lack a large one: others give the estimate.
        is_last = is_enough and shape < _LIGHT
        n_needed = n * (PILOT_NOISE_FACTOR * estimate.std_error / tol) ** 2
        n = int(np.clip(n_needed, n_of_batch, most_draws)) if is_last else n_of_batch
        proposal = _refitted(proposal, np.concatenate(past.draws), past.log_weights())
    return Weighed(np.nan, np.nan, n, False, past.n)


class Past(NamedTuple):
    """Batches of draws, the proposal of each, and log p(z, x) there."""

    proposals: list[Mixture]
    draws: list[Array]
    log_densities: list[Array]

    @property
    def n(self) -> int:
        """Draws of all batches."""
        return sum(map(len, self.draws))

    def add(self, proposal: Mixture, draws: Array, log_density: Array) -> None:
        """Add a batch."""
        self.proposals.append(proposal)
        self.draws.append(draws)
        self.log_densities.append(log_density)

    def log_weights(self) -> Array:
        """Return log weights of all draws, (n,), as from the mixture of all proposals (Cornuet et
        al. 2012).
        """
        draws = np.concatenate(self.draws)
        joint = [
            proposal.log_density(draws) + np.log(len(batch))
            for proposal, batch in zip(self.proposals, self.draws)
        ]
        return np.concatenate(self.log_densities) - np.logaddexp.reduce(joint)


def _refitted(proposal: Mixture, draws: Array, log_weights: Array) -> Mixture:
    """The proposal with the moments of weighted draws (Cappe et al. 2008). Where few draws are
    effective weights are tempered, and moments mixed with those that the proposal has.
    """
    fewest_effective = 100.0  # draws to which a proposal is fitted, or weights are tempered
    n, d = draws.shape
    log_weights = log_weights - log_weights.max()
    weights = softmax(next_beta(log_weights, 0.0, fewest_effective / n) * log_weights)
    joint = np.column_stack([part.log_density(draws) for part in proposal.components])
    joint += np.log(proposal.weights)
    responsible = softmax(joint, axis=1) * weights[:, np.newaxis]
    shares = np.maximum(responsible.sum(axis=0), _LEAST_SHARE)
    parts = []
    for part, own in zip(proposal.components, responsible.T):
        own = own / max(own.sum(), np.finfo(float).tiny)
        n_effective = 1 / max(float(np.sum(own**2)), 1 / n) if own.any() else 0.0
        known = n_effective / (n_effective + 2 * d)
        mean = known * (own @ draws) + (1 - known) * part.center
        away = draws - mean
        moments = (own[:, np.newaxis] * away).T @ away
        matrix = known * moments + (1 - known) * full_matrix(part.scale_matrix)
        parts.append(StudentT(mean, matrix, _DF))
    return _with_prior(parts, shares / shares.sum())
