"""Climbs that look for parts of the target which a cover lacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtr, softmax
from scipy.stats import chi2

from sklpf._utils.numbers import LOG_TAU, Array
from sklpf.exploration._joint import JointDraws
from sklpf.exploration._target import Target
from sklpf.paths import (
    Box,
    ClimbTarget,
    Mixture,
    StudentT,
    climb,
    ellipsoid_at_mode,
    mirrored,
)

_TINY = 1e-300
_HIGHER = 3.0  # nats by which the target is higher than the cover where this lacks something


class Climber:
    """Climbs in coordinates y in which parts of the cover are round, on average.

    Parameters
    ----------
    target : Target
    joint : JointDraws
        Of the cover.
    inside : float, default=0.99
        Share of a part's mass within which a point is covered, unless the target is much higher
        there than the cover ...
    low : float, default=0.01
        ... or lower than at this share of its mass.

    Attributes
    ----------
    found : list of StudentT
        Parts that the cover lacks.
    limit : float
        Evaluations of the target, after which climbs stay where they are.
    """

    limit = np.inf

    def __init__(
        self, target: Target, joint: JointDraws, *, inside: float = 0.99, low: float = 0.01
    ):
        d = target.n_dimensions
        self.target = target
        self.joint = joint
        self.parts = [part for each in joint.proposals for part in each.fitted.components]
        shares = np.concatenate([each.fitted.weights for each in joint.proposals])
        self.shares = shares / shares.sum()
        matrices = np.array([part.scale_matrix for part in self.parts])
        self.root: Array = np.linalg.cholesky(np.tensordot(self.shares, matrices, 1))
        self.radius = chi2.ppf(inside, d)
        order = np.argsort(joint.log_f)
        mass = np.cumsum(np.exp(joint.log_weights[order] - joint.log_z)) / len(order)
        self.lowest = joint.log_f[order][np.searchsorted(mass, low * mass[-1])]
        self.found: list[StudentT] = []
        self.seen: list[tuple[Array, Array, Array]] = []  # u, log f and its excess over the cover
        self.scale = np.ones(d)
        self.box = Box.everywhere(d)

    def to_modes(self, starts: Array) -> None:
        """Climb on the target from points u (n, d), until in the cover or where the slope leads to
        the middle of one of its parts.
        """

        def slopes(u: Array, log_f: Array, excess: Array) -> tuple[Array, Array]:
            gradient = np.zeros_like(u)
            goes_on = ~self._is_covered(u, log_f, excess) & (log_f > -np.inf)
            self.seen.append((u[goes_on], log_f[goes_on], excess[goes_on]))
            if goes_on.any():
                gradient[goes_on] = self.slopes(u[goes_on], log_f[goes_on])
                goes_on[goes_on] = ~self.are_explained(u[goes_on], gradient[goes_on])
            return log_f, np.where(goes_on[:, np.newaxis], gradient, 0.0)

        self._climb(slopes, starts)

    def out_of_cover(
        self,
        starts: Array,
        *,
        flat: float = 1.0,  # nats by which it is nowhere higher around points where climbs end
    ) -> None:
        """Climb from points u (n, d) to where the target is highest above the cover."""

        def slopes(u: Array, log_f: Array, excess: Array) -> tuple[Array, Array]:
            gradient = np.zeros_like(u)
            self.seen.append((u, log_f, excess))
            rises = excess > flat
            if rises.any():
                of_cover = self._differences(self._cover, u[rises], (log_f - excess)[rises])
                gradient[rises] = self.slopes(u[rises], log_f[rises]) - of_cover
            return excess, gradient

        self._climb(slopes, starts)

    def _climb(self, slopes: Callable[..., tuple[Array, Array]], starts: Array) -> None:
        """Climb from points u on what `slopes` gives; beyond the limit climbs stay."""

        def limited(y: Array, steps: Array) -> tuple[Array, Array]:
            if self.target.spent > self.limit:
                return np.full(len(y), -np.inf), np.zeros_like(y)
            u = y @ self.root.T
            log_f = self.target.log_density(u)
            values, gradients = slopes(u, log_f, log_f - self._cover(u))
            return values, gradients @ self.root

        y = np.asarray(np.linalg.solve(self.root, starts.T).T, dtype=np.float64)
        climb(limited, y, self.scale, self.box, longest_by_root=100.0, longest_first=100.0)

    def _cover(self, u: Array) -> Array:
        """Log of the cover times Z, (n,)."""
        return self.joint.log_density(u, self.target.log_base(u)) + self.joint.log_z

    def _is_covered(self, u: Array, log_f: Array, excess: Array) -> NDArray[np.bool_]:
        distances = np.min([part.squared_distances(u) for part in self.parts], axis=0)
        is_thick = (excess < _HIGHER) & (log_f >= self.lowest)
        return self._is_found(u) | (distances < self.radius) & is_thick

    def _is_found(self, u: Array) -> NDArray[np.bool_]:
        """Points u (n, d) in parts that climbs have found."""
        within = [part.squared_distances(u) < self.radius for part in self.found]
        return np.any(within, axis=0) if within else np.zeros(len(u), dtype=bool)

    def _gaussians(self, u: Array, by_quantiles: bool = False) -> tuple[Array, Array]:
        """Log of share times density of the cover's Gaussians at points (n, d), (K, n), and by how
        much each is lower there than at its middle.
        """
        placed = [_placed(part, u, by_quantiles) for part in self.parts]
        falls = np.array([np.sum(z**2, axis=1) / 2 for z, _ in placed])
        log_dets = np.array([np.log(np.diag(root)).sum() for _, root in placed])
        tops = np.log(self.shares) - log_dets - u.shape[1] / 2 * LOG_TAU
        log_volume = np.log(_normal_density(u)).sum(axis=1) if by_quantiles else 0.0
        return tops[:, np.newaxis] - falls + log_volume, falls

    @np.errstate(all="ignore")  # far out anything may happen
    def surprise(self, u: Array, log_f: Array) -> tuple[Array, Array]:
        """Return by how much the target is higher at points (n, d) than the cover's parts have it,
        (n,), as a share of what these fall by from their middles: of Gaussians by u and by
        quantiles of the base, those that explain it better; and of parts with their tails.
        """
        of_parts = np.array([part.log_density(u) for part in self.parts])
        tops = [part.log_density(part.mean[np.newaxis]) for part in self.parts]
        with_tails = of_parts + np.log(self.shares)[:, np.newaxis], tops - of_parts
        surprises = []
        for logs, falls in (self._gaussians(u), self._gaussians(u, True), with_tails):
            fall = falls[logs.argmax(axis=0), np.arange(len(u))]
            surprises.append((log_f - self.joint.log_z - logsumexp(logs, axis=0)) / (1 + fall))
        return np.fmin(*surprises[:2]), surprises[2]

    def slopes(self, u: Array, log_f: Array) -> Array:
        """Return gradients of the target at points u (n, d) with their log densities (n,); 0 where
        they are not finite.
        """
        if self.target.has_gradient:
            return _if_finite(self.target.gradient(u))
        return self._differences(self.target.log_density, u, log_f)

    @np.errstate(invalid="ignore")  # beside points where the density is 0
    def _differences(
        self,
        function: Callable[[Array], Array],
        u: Array,
        values: Array,
        *,
        step: float = 1e-5,  # in units of parts
    ) -> Array:
        """Gradients of a function at points u (n, d) with its values (n,), by d points each; 0
        where they are not finite.
        """
        n, d = u.shape
        moved = np.repeat(u, d, axis=0) + np.tile(step * self.root.T, (n, 1))
        rises = function(moved).reshape(n, d) - values[:, np.newaxis]
        slopes = np.linalg.solve(self.root.T, rises.T / step).T
        return _if_finite(slopes)

    @np.errstate(all="ignore")  # far out anything may happen
    def are_explained(self, u: Array, slopes: Array) -> NDArray[np.bool_]:
        """Return at which points u (n, d) the slope leads to the middle of a part: of that to which
        the point belongs, or of one that climbs have found; or to that of any other by a step as
        long as a Gaussian's.

        In a Gaussian, and in any density that falls with the distance in its units, it does. Of a
        likelihood that is one by parameters with a uniform prior it does by quantiles of the base.
        """
        nearest = self._gaussians(u)[0].argmax(axis=0)
        explained = np.zeros(len(u), dtype=bool)
        for k, part in enumerate([*self.parts, *self.found]):
            for by_quantiles in (False, True):
                z, root = _placed(part, u, by_quantiles)
                slope = ((slopes + u) / _normal_density(u) if by_quantiles else slopes) @ root
                sums = (np.sum(each, axis=1) for each in (z**2, z * slope, slope**2))
                leads, is_usual = self._leads(*sums)
                is_own = (nearest == k) | (k >= len(self.parts))
                explained |= leads & (is_usual if by_quantiles else is_own | is_usual)
        return explained

    @np.errstate(all="ignore")  # far out anything may happen
    def seem_explained(
        self,
        u: Array,
        log_f: Array,
        rng: np.random.Generator,
        *,
        n_across: int = 2,
        step: float = 1e-5,  # in units of parts
    ) -> NDArray[np.bool_]:
        """Return the same as `are_explained` by slopes in a few directions, for the part to which a
        point belongs alone: to the middle of the part, and across.
        """
        n, d = u.shape
        charts = [self._gaussians(u, by_quantiles)[0] for by_quantiles in (False, True)]
        misses = [np.abs(log_f - self.joint.log_z - logsumexp(logs, axis=0)) for logs in charts]
        by_quantiles = misses[1] < misses[0]
        own = np.where(by_quantiles, *(logs.argmax(axis=0) for logs in reversed(charts)))
        z = np.empty((n, d))
        moves = np.empty((n, 1 + n_across, d))
        across = rng.standard_normal((n, n_across, d))
        for k, part in enumerate(self.parts):
            for chart in (False, True):
                some = (own == k) & (by_quantiles == chart)
                if some.any():
                    z[some], root = _placed(part, u[some], chart)
                    ahead = -z[some] / np.linalg.norm(z[some], axis=1, keepdims=True)
                    turned = across[some]
                    turned -= np.einsum("nki,ni->nk", turned, ahead)[..., None] * ahead[:, None]
                    turned /= np.linalg.norm(turned, axis=2, keepdims=True)
                    moves[some] = np.concatenate([ahead[:, None], turned], axis=1) @ root.T
        moves *= step / np.where(by_quantiles[:, None], _normal_density(u), 1.0)[:, None]
        there = self.target.log_density((u[:, None] + moves).reshape(-1, d)).reshape(n, -1)
        slopes = there - log_f[:, None]
        slopes += by_quantiles[:, None] * np.einsum("nki,ni->nk", moves, u)
        slopes /= step
        distance = np.linalg.norm(z, axis=1)
        square = slopes[:, 0] ** 2 + (d - 1) * np.mean(slopes[:, 1:] ** 2, axis=1)
        leads, is_usual = self._leads(distance**2, -distance * slopes[:, 0], square)
        return leads & (is_usual | ~by_quantiles)

    def unexplained(
        self,
        u: Array,
        log_f: Array,
        most: float,
        rng: np.random.Generator,
        *,
        n_at_once: int = 32,
        many_dimensions: int = 4,  # above which a few directions are fewer than all
    ) -> tuple[int, Array, Array]:
        """Return how many of points u (n, d) could be tested by so many evaluations, and those of
        them that are not explained with their slopes.
        """
        last = self.target.spent + most
        n = 0
        found = []
        while n < len(u) and (self.target.spent < last or not n):
            some, values = u[n : n + n_at_once], log_f[n : n + n_at_once]
            n += len(some)
            if not self.target.has_gradient and u.shape[1] > many_dimensions:
                doubtful = ~self.seem_explained(some, values, rng)
                some, values = some[doubtful], values[doubtful]
            if len(some):
                slopes = self.slopes(some, values)
                there = ~self.are_explained(some, slopes)
                found.append((some[there], slopes[there]))
        if not found:
            return n, u[:0], u[:0]
        points, slopes = (np.concatenate(each) for each in zip(*found))
        return n, points, slopes

    def _leads(
        self,
        squares: Array,
        products: Array,
        slopes: Array,
        *,
        aim: float = 0.3,  # of the distance to a middle, by which a slope may miss it
        shortest: float = 0.6,  # Newton step of a part that explains a slope, in those of its scale
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """True where a slope leads to the middle, and where by a step as long as a Gaussian's: from
        squared distances to it in units of a part, products with the slope, and its squares.
        """
        length = -products / np.maximum(slopes, _TINY)
        step = np.maximum(length, shortest)
        ends = squares + 2 * step * products + step**2 * slopes
        is_usual = np.abs(np.log2(np.maximum(length, _TINY))) < 1
        return ends < np.maximum(self.radius, aim**2 * squares), is_usual

    def add_parts(
        self,
        n_on_the_way: int = 0,
        *,
        n_highest: int = 6,
        wider: float = 1.5,  # in variance
        df: float = 5.0,
    ) -> None:
        """Put t distributions where climbs since the last call have been much higher than the
        cover: at the highest excess, and on the way to it.
        """
        if not self.seen:  # there was no time for a step
            return
        u, _, excess = (np.concatenate(each) for each in zip(*self.seen))
        self.seen.clear()
        y = np.linalg.solve(self.root, u.T).T
        order = np.flatnonzero((excess > _HIGHER) & ~self._is_found(u))
        order = order[np.argsort(-excess[order], kind="stable")]
        target = ClimbTarget(
            lambda y: self.target.log_density(y @ self.root.T), None, self.scale, self.box
        )
        for k in range(n_highest + n_on_the_way):
            if not len(order):
                break
            place = order[0] if k < n_highest else order[len(order) // 2]
            ellipsoid = ellipsoid_at_mode(target, y[place])
            factor = self.root @ np.linalg.inv(ellipsoid.factor)
            self.found.append(StudentT(u[place], wider * factor @ factor.T, df))
            inside = np.sum(((y[order] - y[place]) @ ellipsoid.factor.T) ** 2, axis=1) < self.radius
            order = order[~(inside | (order == place))]

    def are_material(
        self,
        rng: np.random.Generator,
        *,
        n_draws: tuple[int, int] = (50, 10),  # and for each dimension
        least_mass: float = 0.01,  # share of Z that matters
    ) -> bool:
        """Return whether the target has mass in the parts where it is much higher than the cover,
        by draws: Laplace's method says too little where tails are heavy, and too much beside modes.
        """
        if not self.found:
            return False
        mixture = Mixture(self.found)
        u = mixture.sample(n_draws[0] + n_draws[1] * len(self.scale), rng)
        log_f = self.target.log_density(u)
        is_lacked = log_f - self._cover(u) > _HIGHER
        log_weights = log_f - self.joint.log_z - mixture.log_density(u)
        return bool(np.mean(is_lacked * np.exp(log_weights)) > least_mass)


def _if_finite(slopes: NDArray) -> NDArray:
    return np.where(np.isfinite(slopes).all(axis=1, keepdims=True), slopes, 0.0)


def _placed(part: StudentT, u: Array, by_quantiles: bool) -> tuple[NDArray, NDArray]:
    """Points u (n, d) in units of a part around its middle, and the root of its scale matrix: by u,
    or by quantiles of the base.
    """
    root: NDArray = np.linalg.cholesky(part.scale_matrix)
    moves = u - part.mean
    if by_quantiles:
        root = _normal_density(part.mean)[:, np.newaxis] * root
        moves = ndtr(u) - ndtr(part.mean)
    return np.linalg.solve(root, moves.T).T, root


def _normal_density(u: Array) -> Array:
    """That of each coordinate, above the smallest of which squares can be taken."""
    return np.maximum(np.exp(-0.5 * (u**2 + LOG_TAU)), 1e-150)


def new_parts(
    target: Target,
    joint: JointDraws,
    explorers: Sequence[Any],
    most: float,
    rng: np.random.Generator,
    *,
    at_once: int = 6,  # climbs
    share_tested: float = 0.7,  # of the evaluations that are left, for slopes at starts
    n_on_the_way: int = 3,  # parts beside the highest
    fewest: int = 18,  # climbs, where so many starts are not explained by the cover
) -> tuple[list[StudentT], int]:
    """Return t distributions at parts of the target that a cover lacks, and the number of points
    from which it is known where a climb leads.

    Climbs may begin at all points that were evaluated, and at more that are drawn far and wide,
    first where the target is most above the Gaussians of the cover, or above its parts with their
    tails; away from the mass by differences of draws; and where a mode would be if labels were
    switched. Where the slope leads to the middle of a part no climb is needed: without a gradient
    this takes d evaluations to know, in more than four dimensions three where it is clear. The
    others climb on the target, each until it is in the cover or in a part that was found. Climbs
    from the draws of the largest weights lead to where the target is highest above the cover, such
    as the neck of a funnel.

    Parameters
    ----------
    target : Target
    joint : JointDraws
        Of the cover.
    explorers : sequence of Explorer
    most : float
        Evaluations; beyond them only the first climbs begin.
    rng : numpy.random.Generator
    """
    if not np.isfinite(joint.log_z):
        return [], 0
    climber = Climber(target, joint)
    end = target.spent + most
    climber.limit = target.spent + most / 4
    climber.out_of_cover(joint.u[np.argsort(-joint.log_weights)[:at_once]])
    climber.limit = np.inf
    climber.add_parts(n_on_the_way)
    u, log_f = _starts(joint, explorers, climber, end - target.spent, rng)
    most = share_tested * (end - target.spent)
    n_tested, u, slopes = climber.unexplained(u, log_f, most, rng)
    n_begun = 0
    while len(u):
        unexplained = ~climber.are_explained(u, slopes)
        u = u[unexplained]
        slopes = slopes[unexplained]
        if not len(u) or target.spent > end and n_begun >= fewest:
            break
        climber.to_modes(u[:at_once])
        climber.add_parts()
        u = u[at_once:]
        slopes = slopes[at_once:]
        n_begun += at_once
    return climber.found if climber.are_material(rng) else [], n_tested - len(u)


def _starts(
    joint: JointDraws,
    explorers: Sequence[Any],
    climber: Climber,
    left: float,
    rng: np.random.Generator,
    *,
    n_new: int = 200,  # points away from the mass, or where labels are switched, and as many far
    share_scattered: float = 0.4,  # of the evaluations that are left, draws far and wide
    farther: float = 1.5,  # differences of points by which climbs begin away from modes
) -> tuple[Array, Array]:
    """Points where climbs may begin, (n, d), the best first, and their log densities (n,)."""
    target = climber.target
    weights = softmax(joint.log_weights)
    chosen = rng.choice(len(weights), (3, n_new // 2), p=weights)
    centre, first, second = joint.u[chosen]
    away = centre + farther * (first - second)
    switched = mirrored(joint.u[np.argmax(joint.log_f)], n_new // 2, rng)
    new = rng.permutation(np.concatenate([away, switched]))
    n = len(new)
    n_scattered = int(share_scattered * max(left, 0))
    scattered = [each.scattered(n_scattered // len(explorers)) for each in explorers]
    evaluated = np.concatenate([target.far_points(n, rng), new, *scattered])
    u = np.concatenate([evaluated, joint.u, *(each.points for each in explorers)])
    known = [joint.log_f, *(each.log_f for each in explorers)]
    log_f = np.concatenate([target.log_density(evaluated), *known])
    ranks = [-each for each in climber.surprise(u, log_f)]
    far = np.argsort(ranks[0][:n])
    surprising = [n + np.argsort(each[n:])[:n] for each in ranks]
    any_of_all = rng.integers(n, len(u), n)
    # A surprising point of each kind, a new one, any, and one beyond the base.
    in_turn = [*surprising, np.arange(n, 2 * n), any_of_all, far]
    order = np.stack(in_turn).T.ravel()
    _, places = np.unique(order, return_index=True)
    order = order[np.sort(places)]
    order = order[log_f[order] > -np.inf]
    return u[order], log_f[order]
