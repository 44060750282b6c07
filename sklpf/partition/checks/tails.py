"""Tails of a density on R^d, and poles at its boundary, against those of its base: measured along
rays before anything is sampled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.numbers import Array
from sklpf._utils.random import systematic
from sklpf._utils.warnings import Alarm
from sklpf.partition._result import Finding, Work
from sklpf.partition.alarms import raised, threshold
from sklpf.paths import GeometricPath, choose, evaluate_bisecting_failures
from sklpf.transitions import next_beta, reflect

# in scales of the base: power laws that start within 1e7 of them are found
_RADII = 10.0 ** np.arange(11)
_FARTHER = 1e10 * _RADII  # where a density still rises
_MOST_AXES = 100  # along which rays go
# of s within two decades; a power law has none, exp(-r^a) has 100^a - 1, exp(-log^2 r) has .27
_GROWTH = 0.1
_FLAT = 1e-3  # s below which f is flat
_LOG_LARGEST = np.log(np.finfo(np.float64).max)  # of a distance
_SHARES = 10.0 ** -np.arange(2, 10)  # of the distance from a scout to the boundary


@dataclass(frozen=True, kw_only=True)
class Tails(Finding):
    """Alarms of the target's tails."""

    requires = ("tail_alarms",)
    needs_run = False

    @classmethod
    def collect(cls, work: Work) -> Self:
        path, evaluations = work.path.counted()
        alarms = tail_alarms(path, work.stream("tails").key)
        return cls(alarms=alarms, n_evaluations=evaluations.n, n_failed=evaluations.n_failed)


class Rays(NamedTuple):
    """Directions (n, d) of length 1 in scales of the base, and which of them were drawn with a
    density, (n,).

    If f falls as r^-s along such a ray its integral is finite only for s > d. Along an axis, which
    may be a ridge, it can be for s > 1.
    """

    direction: Array
    drawn: NDArray[np.bool_]


def tail_alarms(
    path: GeometricPath,
    key: tuple[int, int],
    scouts: Scouts | None = None,
    *,
    n_scouts: int = 16,
    # of r for every dimension: above it a normal base gives errors < .005 nats, and covers
    largest_power: float = 20.0,
) -> tuple[Alarm, ...]:
    """Raise an alarm if the tails of a `GeometricPath`'s target are heavier than the base's; empty
    if they aren't. Where the path knows its alarms, only points at which log f is NaN are looked
    for, if there may be such.

    Compares s(r) = -d log f / d log r of both at radii from 1 to 1e10 along rays from the base's
    center: in random directions, along its axes, and through points of scouts near its mass. s
    levels off where f falls as a power of r. A ray along which f still rises is followed to 1e20;
    there is no alarm where that gives no numbers.

    At the boundary of the support, where f is 0 beyond it or the box ends, f may rise as a power of
    the distance. If the base does not, weights there have a power law too, and a pole that holds
    much of the mass in next to no volume is missed.

    Scouts are points near the mass; None looks for them.

    Raises
    ------
    ValueError
        If f has no integral: it does not depend on an open column, or along a ray that isn't
        exceptional it falls no faster than r^-d.
    """
    rng = np.random.default_rng(key)
    d = int(path.bounds.is_open.any(axis=0).sum())
    known = path.tail_alarms
    with np.errstate(all="ignore"):  # far out anything may happen
        if known is not None:
            if not path.may_be_nan:
                return known
            return (*known, *_nan_alarms(scouts or _scouts(path, rng), "prior transform"))
        if d:
            axes, drawn = _directions(path, rng)
        scouts = scouts or _scouts(path, rng)
        alarms = (*_nan_alarms(scouts), *_pole_alarms(path, scouts, rng))
        if not d:
            return alarms
        check_columns(path, scouts.position)
        rays = _rays(
            path, np.concatenate([drawn, scouts.position[:n_scouts] - path.base.center]), axes
        )
        base, target = _log_densities(path, rays, _RADII)
        is_constant = np.isfinite(target[-1]) & (target[-1] == target[-2])
        highest = scouts.highest
        if np.any(target[-1, is_constant] >= highest):  # higher than any scout
            highest = max(highest, _highest_log_f(path, rng))
        # A constant so low that no distance in float64 makes it a mass stands for density 0.
        is_zero = is_constant & (target[-1] < highest - path.n_dimensions * _LOG_LARGEST)
        target[is_zero & (target == target[-1])] = -np.inf
        levels, exponent, base_exponent = _exponents(base, target)
        # Where it still rises it may yet fall: along log sigma of a regression, say, only once the
        # residuals of a slightly tilted ray are explained.
        rising = levels & (exponent < -_FLAT)
        if rising.any():
            chosen = Rays(rays.direction[rising], rays.drawn[rising])
            farther = _log_densities(path, chosen, _FARTHER)
            levels[rising], exponent[rising], base_exponent[rising] = _exponents(*farther)
    size = np.where(rays.drawn, d, 1)
    improper = levels & rays.drawn & (exponent <= d + _FLAT)
    if improper.any():
        raise ValueError(_improper(exponent[improper].min(), d, path.n_dimensions - d))
    heavier = (
        (exponent - size < base_exponent - d - threshold("heavy-tails", "exponent"))
        & (exponent <= largest_power * size)
        & levels
    )
    if not heavier.any():
        return alarms
    return (*alarms, _heavy(exponent[heavier], (exponent - size)[heavier], path.bounds.has_sides))


@np.errstate(all="ignore")  # far out anything may happen
def check_columns(
    path: GeometricPath,
    points: Array,
    *,
    n_unmoved: int = 3,  # points
    far: float = 1e6,  # times as far as a point, at least in scales of the base
) -> None:
    """Raise ValueError if the target does not depend on some open columns at all.

    It is compared at a few of some points (n, d) with those that are a million times as far away,
    to every open side. One that depends on no open column is left to other checks.
    """
    is_open = path.bounds.is_open
    n_open = np.sum(is_open.any(axis=0))
    unused = np.asarray(is_open.any(axis=0))
    scale = np.broadcast_to(path.base.scale, path.n_dimensions)
    log_f = evaluate_bisecting_failures(path.raw_log_density, points)
    usable = np.flatnonzero(np.isfinite(log_f))[:n_unmoved]
    for here in usable:
        farthest = np.max(np.abs(points[here]) / scale)  # beside which a step must not be lost
        steps = far * (1 + farthest) * np.stack([-scale, scale])
        sides, columns = np.nonzero(is_open & unused)
        for first in range(0, len(columns), _MOST_AXES):
            some = slice(first, first + _MOST_AXES)
            column = columns[some]
            moved = np.tile(points[here], (len(column), 1))
            moved[np.arange(len(column)), column] += steps[sides[some], column]
            differs = evaluate_bisecting_failures(path.raw_log_density, moved) != log_f[here]
            unused[column[differs]] = False
    if len(usable) and 0 < unused.sum() < n_open:
        raise ValueError(
            f"log_density does not depend on {_named(np.flatnonzero(unused))}, so that it has no"
            " integral: leave out what is no parameter, such as lp__, or give a proper prior"
        )


def _named(columns: NDArray, *, most_named: int = 5) -> str:
    """Names of columns, such as "columns 2 and 5"."""
    if len(columns) == 1:
        return f"column {columns[0]}"
    if len(columns) > most_named:
        return f"{len(columns)} columns, such as {columns[0]}"
    return f"columns {', '.join(map(str, columns[:-1]))} and {columns[-1]}"


def _fall(exponent) -> str:
    if exponent < -_FLAT:
        return "grows"
    return "is flat" if _is_flat(exponent) else f"falls only as r^-{exponent:.3g}"


def _is_flat(exponent) -> bool:
    return bool(abs(exponent) <= _FLAT)


def _improper(exponent, d, n_closed) -> str:
    where = "1 dimension" if d == 1 else f"{d} dimensions"
    if n_closed:
        where = f"{d} open dimensions"
    of_constants = ", or -inf where a constant stands for density 0" if _is_flat(exponent) else ""
    return (
        f"log_density is not normalisable: far out along a ray the density {_fall(exponent)} with"
        f" the distance r, and in {where} it must fall faster than r^-{d}; give a proper prior, or"
        f" bounds{of_constants}"
    )


def _heavy(
    exponents,
    indices,
    is_bounded: bool,
    *,
    most_df: float = 8.0,  # that are recommended
) -> Alarm:
    index = indices.min()
    df = f"at most {min(index, most_df):.2g}" if index > 0.1 else "few"
    falls = _fall(exponents[indices.argmin()])
    return raised("heavy-tails", "tails", "bounded" if is_bounded else "", falls=falls, df=df)


def _nan_alarms(scouts: Scouts, family: str = "") -> tuple[Alarm, ...]:
    if not scouts.nan_share > threshold("not-a-number", "share"):
        return ()
    return (raised("not-a-number", "points", family, percent=100 * scouts.nan_share),)


class _AxisRays(NamedTuple):
    """Lines through points (n, d), each along one coordinate, (n,), towards lower or higher values,
    (n,).
    """

    start: NDArray
    axis: NDArray[np.intp]
    sign: Array

    @property
    def at_start(self) -> Array:
        """The coordinate at the points, (n,)."""
        return self.start[np.arange(len(self.axis)), self.axis]

    def take(self, chosen) -> _AxisRays:
        """Some of them."""
        return _AxisRays(self.start[chosen], self.axis[chosen], self.sign[chosen])

    def log_densities(self, path, coordinate) -> NDArray:
        """Log densities of base and target where each has this coordinate, (2, n)."""
        position = self.start.copy()
        position[np.arange(len(self.axis)), self.axis] = coordinate
        return _at(path, position)


def _pole_alarms(
    path,
    scouts: Scouts,
    rng,
    *,
    resolved: float = 1e4,  # times the rounding error of a distance
) -> tuple[Alarm, ...]:
    """An alarm if f rises at the boundary of its support as a power of the distance t, so that the
    mass within t is t^a, and the base's mass, t^b, is so much smaller that weights have too heavy a
    tail. Its index b / (b - a) is the same in any coordinates.
    """
    rays, boundary, rounding = _to_boundary(path, scouts, rng)
    if not len(boundary):
        return ()
    length = np.abs(rays.at_start - boundary)
    coordinates = boundary - rays.sign * _SHARES[:, np.newaxis] * length
    distance = np.abs(coordinates - boundary)
    log_f = np.array([rays.log_densities(path, each) for each in coordinates])
    log_f = np.where((distance > resolved * rounding)[:, np.newaxis], log_f, np.nan)
    log_mass = log_f + np.log(distance)[:, np.newaxis]
    indices = np.diff(log_mass, axis=0) / np.diff(np.log(distance), axis=0)[:, np.newaxis]

    # of each ray the two that are nearest to the boundary
    n = np.isfinite(indices).all(axis=1).cumprod(axis=0).sum(axis=0)
    seen = np.flatnonzero(n > 1)
    (base, target), (_, before) = indices[n[seen] - 1, :, seen].T, indices[n[seen] - 2, :, seen].T
    levels = np.abs(target - before) <= _GROWTH * np.abs(1 - before) + _FLAT
    pole = (
        levels & (base > 0) & (target < (1 - 1 / threshold("heavy-tails", "weight_index")) * base)
    )
    if not pole.any():
        return ()
    ray = seen[pole][target[pole].argmin()]
    where = boundary[ray] if abs(boundary[ray]) > resolved * rounding[ray] else 0.0
    return (
        raised(
            "heavy-tails",
            "pole",
            "pole",
            axis=rays.axis[ray],
            where=where,
            power=target[pole].min() - 1,
        ),
    )


def _to_boundary(
    path,
    scouts: Scouts,
    rng,
    *,
    most_coordinates: int = 64,
    fewest: int = 8,  # rays
    n_halvings: int = 60,
) -> tuple[_AxisRays, Array, Array]:
    """Rays from scouts that meet the boundary of the support, its coordinate, and rounding error,
    both (n,).
    """
    d = path.n_dimensions
    axes = np.repeat(rng.permutation(d)[:most_coordinates], 2)
    axes = np.resize(axes, max(len(axes), fewest))
    points = rng.choice(scouts.position, len(axes))
    rays = _AxisRays(points, axes, np.resize([-1.0, 1.0], len(axes)))
    outside = np.asarray(path.bounds)[(rays.sign > 0).astype(int), rays.axis]
    is_side = np.isfinite(outside)
    # A boundary of the support is looked for within a thousand scales of the base.
    reach = rays.at_start + rays.sign * 1e3 * np.asarray(path.base.scale)[rays.axis]
    outside = np.where(is_side, outside, reach)
    inside = np.where(is_side, outside, rays.at_start)
    ends = is_side.copy()
    ends[~is_side] = ~np.isfinite(rays.take(~is_side).log_densities(path, reach[~is_side])[1])
    rays, outside, inside = rays.take(ends), outside[ends], inside[ends]

    searched = inside != outside
    for _ in range(n_halvings if searched.any() else 0):
        middle = (inside[searched] + outside[searched]) / 2
        is_inside = np.isfinite(rays.take(searched).log_densities(path, middle)[1])
        inside[searched] = np.where(is_inside, middle, inside[searched])
        outside[searched] = np.where(is_inside, outside[searched], middle)
    return rays, outside, np.maximum(np.abs(outside - inside), np.spacing(np.abs(outside)))


def _directions(path, rng, *, n_random: int = 16) -> tuple[NDArray, NDArray]:
    """The base's axes, and directions that are drawn at random and their opposites, (n, d)."""
    base = path.base
    d = path.n_dimensions
    scale = np.asarray(base.scale)
    axes = getattr(base, "axes", None)
    axes = np.diag(scale) if axes is None else np.asarray(axes).T
    axes = axes[rng.permutation(d)[:_MOST_AXES]] * rng.choice(
        [-1.0, 1.0], size=(min(d, _MOST_AXES), 1)
    )
    drawn = scale * rng.standard_normal((n_random // 2, d))
    return axes, np.concatenate([drawn, -drawn])


def _rays(path, drawn, axes) -> Rays:
    """Rays from directions that were drawn and from axes."""
    scale = np.asarray(path.base.scale)
    direction = _inwards(np.concatenate([drawn, axes]), path.bounds)
    length = np.linalg.norm(direction / scale, axis=1, keepdims=True)
    there = length[:, 0] > 0
    return Rays((direction / length)[there], (np.arange(len(direction)) < len(drawn))[there])


def _inwards(direction, bounds):
    """Directions that stay in a box: away from a side, and along two."""
    low, high = ~bounds.is_open
    return np.where(
        low & high,
        0.0,
        np.where(low, np.abs(direction), np.where(high, -np.abs(direction), direction)),
    )


def _log_densities(path, rays, radii) -> tuple[NDArray, NDArray]:
    """Log densities of base and target, both (n_radii, n_rays); NaN where they can't be had."""
    values = np.full((2, len(radii), len(rays.direction)), np.nan)
    for i, radius in enumerate(radii):
        position = path.base.center + radius * rays.direction
        inside = path.bounds.contains(position)
        if inside.any():
            values[:, i, inside] = _at(path, position[inside])
    return values[0], values[1]


def _at(path, position) -> NDArray:
    """Log densities of base and target at some points, shape (2, n); NaN where a function fails."""
    base = evaluate_bisecting_failures(path.base.log_density, position)
    target = evaluate_bisecting_failures(path.raw_log_density, position)
    return np.stack([base, target])


def _exponents(
    base,
    target,
    *,
    fewest_radii: int = 5,  # that must be finite, else there is no alarm
) -> tuple[NDArray, NDArray, NDArray]:
    """Return whether the target's exponent s levels off along each ray, its value far out, and the
    base's, which is infinite where it does not level off; all of shape (n_rays,).
    """
    n_finite = np.logical_and.accumulate(np.isfinite(target), axis=0).sum(axis=0)
    here = np.minimum(n_finite, len(target) - 1), np.arange(target.shape[1])
    # at the boundary of the support, or where f underflows
    ends = (n_finite < len(target)) & (target[here] == -np.inf)
    enough = (n_finite >= fewest_radii) & ~ends
    last = np.maximum(n_finite, fewest_radii) - 1
    levels, exponent = _level(target, last)
    base_levels, base_exponent = _level(base, last)
    light = ~base_levels & np.isfinite(base_exponent) | (base[last, here[1]] == -np.inf)
    return levels & enough, exponent, np.where(light, np.inf, base_exponent)


def _level(values, last) -> tuple[NDArray, NDArray]:
    """Mask of rays on which s grows no more before some of the radii; and s there; (n_rays,)."""
    s = -np.diff(values, axis=0) / np.diff(np.log(_RADII))[:, np.newaxis]
    rays = np.arange(values.shape[1])
    before = s[last - 3, rays]
    there = s[last - 1, rays]
    return there <= before + _GROWTH * np.abs(before) + _FLAT, there


class Scouts(NamedTuple):
    """Points near the target's mass, shape (n, d), the highest log f at them, and the share of all
    points that were tried at which log f was NaN.
    """

    position: Array
    highest: float
    nan_share: float


def _scouts(
    path,
    rng,
    *,
    n_chains: int = 64,
    n_levels: int = 20,
    n_moves: int = 3,
    n_last_moves: int = 40,  # at the target
    longest_move: float = 10.0,  # in standard deviations of its points
) -> Scouts:
    """Base draws that are moved and resampled at a few inverse temperatures."""
    position = np.asarray(path.base.sample(n_chains, rng), dtype=np.float64)
    ends = _at(path, position)
    beta = 0.0
    step = 2.4 / np.sqrt(path.n_dimensions)
    nan_shares = [np.mean(np.isnan(ends[1]))]
    for level in range(n_levels):
        gain = np.where(np.isfinite(ends).all(axis=0), ends[1] - ends[0], -np.inf)
        new = 1.0 if level == n_levels - 1 else next_beta(gain, beta, 0.5)
        log_weights = (new - beta) * gain
        if not np.any(log_weights > -np.inf):
            break
        chosen = rng.permutation(systematic(log_weights, n_chains, rng.random()))
        beta = new
        position = position[chosen]
        ends = ends[:, chosen]
        for _ in range(n_moves if beta < 1 else n_last_moves):
            position, ends, rate, nan_share = _move(path, position, ends, beta, step, rng)
            nan_shares.append(nan_share)
            step = min(longest_move, step * (1.3 if rate > 0.3 else 0.7))
        if beta == 1:
            break
    highest = np.max(ends[1], initial=-np.inf, where=~np.isnan(ends[1]))
    return Scouts(position, float(highest), float(np.mean(nan_shares)))


def _highest_log_f(
    path,
    rng,
    *,
    n_draws: int = 5000,  # where scouts have met nothing but one constant
) -> float:
    """The highest log f at many more draws of the base than there are scouts."""
    position = np.asarray(path.base.sample(n_draws, rng), dtype=np.float64)
    log_f = _at(path, position)[1]
    return float(np.max(log_f, initial=-np.inf, where=~np.isnan(log_f)))


def _move(path, position, ends, beta, step, rng):
    """A Gaussian step with Metropolis's rule, the share of the chains that made it, and that of
    proposals at which log f is NaN.
    """
    moves = step * position.std(axis=0) * rng.standard_normal(position.shape)
    proposal, _ = reflect(path.bounds, position + moves, moves)
    there = _at(path, proposal)
    log_rate = (1 - beta) * (there[0] - ends[0]) + beta * (there[1] - ends[1])
    accept = np.isfinite(there).all(axis=0) & (np.log(rng.random(len(position))) < log_rate)
    position, ends = choose(accept, (proposal, there.T), (position, ends.T))
    return position, ends.T, accept.mean(), np.mean(np.isnan(there[1]))
