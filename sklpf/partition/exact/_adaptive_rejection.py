"""AdaptiveRejection: log Z of a log-concave density on the line between two certain bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax

from sklpf._utils.numbers import Array, Integers
from sklpf._utils.validation import POSITIVE
from sklpf.partition._base import PartitionEstimator
from sklpf.partition._result import PartitionResult
from sklpf.partition.alarms import (
    raised,
    rounding_alarms,
)
from sklpf.paths import GeometricPath, Path, concatenate
from sklpf.reweighting import log_mean_between


@dataclass(eq=False, repr=False)
class AdaptiveRejection(PartitionEstimator):
    """Both bounds of log Z of a log-concave density on the line, and exact draws from it (Gilks &
    Wild 1992).

    Chords between points of log f lie below it and their continuations above it (Gilks 1992,
    without derivatives). The integrals of their exponentials enclose Z; points are added where
    these differ most. Nothing is random.

    Parameters
    ----------
    tol : float, default=1e-6
        Distance of the two bounds of log Z in nats at which it stops.

    Attributes
    ----------
    log_partition_ : float
        The middle between the bounds.
    log_partition_std_error_ : float
        Half their distance: no error is larger, except for rounding of log f.
    log_partition_interval_ : tuple of float
        The bounds, whatever the level: ``result_.statement`` is "enclosed".
    converged_, result_
        See `PartitionEstimator`. ``result_.diagnostics`` holds ``n_evaluations`` of log f.

    Raises
    ------
    TypeError
        If the path is no `GeometricPath`.
    ValueError
        If it has more dimensions than one, or log f is not concave, has no mass within 8 scales of
        the base's center, or doesn't fall far out.

    Notes
    -----
    The base is only used to find the mass (by its center and scale). A departure from concavity
    between the points is not detected; points are close only where f has mass. Not converged if
    20,000 points don't reach `tol`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import Gaussian, GeometricPath
    >>> from sklpf.partition import AdaptiveRejection
    >>> path = GeometricPath(lambda x: -(x[:, 0] ** 4), base=Gaussian(0.0, 1.0))
    >>> hull = AdaptiveRejection().fit(path)
    >>> round(hull.log_partition_, 4), hull.result_.statement  # log of 2 Gamma(5 / 4)
    (0.5949, 'enclosed')
    """

    tol: float = 1e-6

    _parameter_constraints = {"tol": [POSITIVE]}

    def _estimate(self, path, seed) -> PartitionResult:
        hull = Hull(path)
        low, high = hull.refine(self.tol)
        n = hull.n_evaluations
        log_partition = (low + high) / 2
        alarms = list(rounding_alarms(log_partition))
        if not high - low < self.tol:
            alarms.insert(0, raised("tol-missed", "bounds", "bounds", n=n, apart=high - low))
        return PartitionResult(
            method="AdaptiveRejection",
            log_partition=log_partition,
            std_error=(high - low) / 2,
            statement="enclosed",
            alarms=tuple(alarms),
            diagnostics={"n_evaluations": n},
        )

    def sample(self, path, n: int, rng: np.random.Generator) -> Any:
        """Return a state of n chains, exact and independent draws from the target of such
        a path.
        """
        hull = Hull(path)
        drawn = []
        missing = n
        hull.refine(max(self.tol, 1e-3))  # one draw in a thousand is rejected
        pieces, _ = hull.upper()
        shares = softmax(pieces.log_masses())
        while missing > 0:
            x, log_upper = pieces.draw(rng.choice(len(shares), size=missing, p=shares), rng)
            state = path.at(x[:, np.newaxis])
            log_f = sum(path.ends(state))
            _check_below(x, log_f, log_upper)
            drawn.append(
                path.take(state, np.flatnonzero(np.log1p(-rng.random(missing)) < log_f - log_upper))
            )
            missing = n - sum(len(part.position) for part in drawn)
        return concatenate(drawn)


def _check_below(x, log_f, log_upper) -> None:
    above = log_f - log_upper > 1e-9 * np.maximum(1.0, np.abs(log_f))
    if above.any():
        i = int(above.argmax())
        raise ValueError(
            f"log_density is not log-concave: at {x[i]:.6g} it lies above its continued chords"
        )


class Pieces(NamedTuple):
    """Straight pieces of a log density: their ends (m,), infinite ones too, and the
    values there.
    """

    left: Array
    right: Array
    log_left: Array
    log_right: Array
    slope: Array

    def log_masses(self) -> Array:
        """Log of the integral of exp over each piece, shape (m,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            tails = np.maximum(self.log_left, self.log_right) - np.log(np.abs(self.slope))
            inner = log_mean_between(self.log_left, self.log_right) + np.log(self.right - self.left)
        return np.where(np.isinf(self.log_right - self.log_left), tails, inner)

    def draw(self, piece: Integers, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return a draw from each of some pieces (n,), by inverting its distribution function, and
        the log there.
        """
        left, right, log_left, log_right, slope = (array[piece] for array in self)
        fall = np.abs(log_right - log_left)
        uniforms = rng.random(len(piece))
        with np.errstate(divide="ignore", invalid="ignore"):
            steep = -np.log1p(uniforms * np.expm1(-fall)) / np.abs(slope)
            depth = np.where(fall > 1e-8, steep, uniforms * (right - left))  # from the higher end
        x = np.where(slope <= 0, left + depth, right - depth)
        return x, np.maximum(log_left, log_right) - np.abs(slope) * depth


class Hull:
    """A log-concave density f on an interval: chords lie below log f, and their continuations above
    it.

    Parameters
    ----------
    path : GeometricPath
        To a density on the line. Mass is looked for near the center of its base first.

    Raises
    ------
    TypeError
        If the path is not to a density on R^d.
    ValueError
        If it has several dimensions, or f isn't log-concave or doesn't fall far out, or has no
        mass near the center.
    """

    def __init__(self, path: Path):
        if not isinstance(path, GeometricPath):
            raise TypeError(
                "AdaptiveRejection needs a GeometricPath, a density on the line, got"
                f" {type(path).__name__}"
            )
        if path.n_dimensions != 1:
            raise ValueError(
                f"AdaptiveRejection needs a density in one dimension, got {path.n_dimensions};"
                " choose AIS"
            )
        self._path = path
        self.low, self.high = (float(side[0]) for side in path.bounds)
        self.n_evaluations = 0
        self.x = np.empty(0)
        self.h = np.empty(0)
        grid = float(path.base.center[0]) + float(path.base.scale[0]) * np.linspace(-8, 8, 17)
        ends = [side for side in (self.low, self.high) if np.isfinite(side)]
        self._add(np.append(np.clip(grid, self.low, self.high), ends))
        self._bracket()

    def _add(self, points: Array) -> None:
        """Evaluate f at further points; the nearest ones where it is 0 become the ends of the
        interval.
        """
        points = np.setdiff1d(points, self.x)
        self.n_evaluations += len(points)
        x = np.append(self.x, points)
        h = np.append(self.h, self._path._target(points[:, np.newaxis]))
        order = np.argsort(x)
        x = x[order]
        h = h[order]
        inside = np.flatnonzero(h > -np.inf)
        if not len(inside):
            raise ValueError(
                "log_density is -inf within 8 scales of the base's center: give a base where f has"
                " mass"
            )
        first, last = inside[0], inside[-1]
        if last - first + 1 > len(inside):
            hole = x[first:last][h[first:last] == -np.inf][0]
            raise ValueError(
                f"log_density is not log-concave: it is -inf at {hole:.6g}, between points where it"
                " isn't"
            )
        self.low = max(self.low, x[first - 1]) if first > 0 else self.low
        self.high = min(self.high, x[last + 1]) if last + 1 < len(x) else self.high
        self.x = x[inside]
        self.h = h[inside]
        self._check_concave()

    def _check_concave(
        self,
        *,
        rounding: float = 1e-11,  # of log f, relative to its size, by which it may seem convex
    ) -> None:
        x = self.x
        h = self.h
        share = (x[1:-1] - x[:-2]) / (x[2:] - x[:-2])
        chord = h[:-2] + share * (h[2:] - h[:-2])
        below = chord - h[1:-1] > rounding * np.maximum(
            1.0, np.maximum(np.abs(h[:-2]), np.abs(h[2:]))
        )
        if below.any():
            i = int(below.argmax())
            raise ValueError(
                f"log_density is not log-concave: at {x[i + 1]:.6g} it is {h[i + 1]:.6g}, below the"
                f" line between its values at {x[i]:.6g} and {x[i + 2]:.6g}; AIS, RTS and"
                " ParallelTempering need no such shape"
            )

    def _bracket(
        self,
        *,
        most_steps: int = 200,  # outwards, each twice as long as the one before
    ) -> None:
        """Add points until there are three, and log f falls to either side that is open."""
        for _ in range(most_steps):
            x = self.x
            h = self.h
            if len(x) < 3:
                wanted = [
                    x[0] - 0.5 * _reach(x[0] - self.low),
                    x[-1] + 0.5 * _reach(self.high - x[-1]),
                ]
            else:
                wanted = []
                if np.isinf(self.low) and h[0] >= h[1]:
                    wanted.append(2 * x[0] - x[-1])
                if np.isinf(self.high) and h[-1] >= h[-2]:
                    wanted.append(2 * x[-1] - x[0])
            if not wanted:
                return
            self._add(np.array(wanted))
        raise ValueError(
            "log_density is not normalisable: far out it does not fall; give a proper density, or"
            " bounds"
        )

    # -- n points cut the line into n + 1 intervals, the first and the last of which are tails
    def upper(self) -> tuple[Pieces, Integers]:
        """The lines above log f, and the interval of each: chords continued to the right, then to
        the left.
        """
        x = self.x
        h = self.h
        slope = np.diff(h) / np.diff(x)
        meet = x[1:-2] + np.diff(x)[1:-1] * self._shares(slope)
        right = np.r_[meet, x[-1], self.high]
        left = np.r_[self.low, x[0], meet]
        continued = [
            (x[1:], right, h[1:], h[1:] + slope * (right - x[1:]), slope),
            (left, x[:-1], h[:-1] - slope * (x[:-1] - left), h[:-1], slope),
        ]
        of = np.r_[2 : len(x) + 1, 0 : len(x) - 1]
        pieces = Pieces(*map(np.concatenate, zip(*continued)))
        there = pieces.left < pieces.right
        return Pieces(*(part[there] for part in pieces)), of[there]

    @staticmethod
    def _shares(slope: Array) -> Array:
        """Return the crossings of continued chords in the intervals that have two, as shares of
        their widths.
        """
        before = slope[:-2]
        own = slope[1:-1]
        after = slope[2:]
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.clip(
                np.where(before > after, (own - after) / (before - after), 0.5), 0.0, 1.0
            )

    def lower_log_masses(self) -> Array:
        """Log of the integral of exp of the chords, which lie below log f, by interval (n + 1,)."""
        x = self.x
        h = self.h
        chords = Pieces(x[:-1], x[1:], h[:-1], h[1:], np.diff(h) / np.diff(x))
        return np.r_[-np.inf, chords.log_masses(), -np.inf]

    def refine(
        self,
        tol: float,
        *,
        most_points: int = 20_000,
        # of an interval: off its middle, where a point may lie by design
        share_checked: float = 0.382,
    ) -> tuple[float, float]:
        """Add points until the bounds of the log of f's integral differ by less than `tol`; return
        the bounds.

        Each interval then gets another point: where three points happen to lie on a line nothing
        else would look.
        """
        checked = False
        while True:
            pieces, of = self.upper()
            log_lower = self.lower_log_masses()
            log_upper = pieces.log_masses()
            low = float(logsumexp(log_lower))
            high = float(logsumexp(log_upper))
            gaps = np.bincount(of, np.exp(log_upper - high), len(log_lower)) - np.exp(
                log_lower - high
            )
            points = self._between()[gaps > 0.5 * tol / len(gaps)]
            points = np.setdiff1d(points, np.r_[self.low, self.x, self.high])
            ends = high - low < tol or not len(points) or len(self.x) + len(points) > most_points
            if ends and checked:
                return low, max(low, high)
            self._add(self.x[:-1] + share_checked * np.diff(self.x) if ends else points)
            checked = checked or ends

    def _between(
        self,
        *,
        nearest: float = 0.05,  # of an interval, from a new point to its ends
    ) -> Array:
        """A point in each interval: near where the lines meet, or 2 lengths of decay out into an
        open tail.
        """
        x = self.x
        slope = np.diff(self.h) / np.diff(self.x)
        shares = np.r_[0.5, np.clip(self._shares(slope), nearest, 1 - nearest), 0.5]
        first = x[0] - 2 / slope[0] if np.isinf(self.low) else (self.low + x[0]) / 2
        last = x[-1] - 2 / slope[-1] if np.isinf(self.high) else (x[-1] + self.high) / 2
        return np.r_[first, x[:-1] + shares * np.diff(x), last]


def _reach(distance: float) -> float:
    return distance if np.isfinite(distance) else 1.0
