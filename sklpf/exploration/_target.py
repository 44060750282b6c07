"""The density that is explored: in coordinates without bounds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
from scipy.special import ndtr, ndtri

from sklpf._utils.context import current_budget
from sklpf._utils.numbers import LOG_TAU, Array
from sklpf._utils.parallel import Checkpoint
from sklpf.paths import Box, Density, GeometricPath, evaluate_bisecting_failures, log_densities_of

_FAR = (3.0, 10.0)  # times as far from the base's center


class Coordinates:
    """Coordinates u in R^d of points x in a box.

    A coordinate between two sides is a normal quantile of its place, one with a single side the log
    of the distance, and one without sides is taken in units of the base.

    Parameters
    ----------
    base : Density
        With the units.
    bounds : Box
        The box.
    """

    def __init__(self, base: Density, bounds: Box):
        self.center = np.array(base.center, dtype=np.float64)
        self.scale = np.array(base.scale, dtype=np.float64)
        self.low, self.high = bounds
        has_low, has_high = ~bounds.is_open
        self.is_closed = has_low & has_high
        self.is_half_open = has_low ^ has_high
        # of a half-open side, and the direction in which it is open
        self.side = np.where(has_low, self.low, self.high)
        self.sign = np.where(has_low, 1.0, -1.0)
        self.width = np.where(self.is_closed, self.high - self.low, self.scale)

    def points(self, u: Array) -> Array:
        """Return x of coordinates (n, d)."""
        x = self.center + self.scale * u
        with np.errstate(over="ignore", invalid="ignore"):
            x = np.where(self.is_half_open, self.side + self.sign * self.scale * np.exp(u), x)
            upper = self.high - self.width * ndtr(-u)  # exact near the upper side
            closed = np.where(u < 0, self.low + self.width * ndtr(u), upper)
            x = np.where(self.is_closed, closed, x)
        lowest = np.nextafter(self.low, np.inf)
        return np.clip(x, lowest, np.nextafter(self.high, -np.inf))

    def of_points(self, x: Array) -> Array:
        """Return the coordinates of points x (n, d)."""
        u = (x - self.center) / self.scale
        with np.errstate(divide="ignore", invalid="ignore"):
            u = np.where(self.is_half_open, np.log(self.sign * (x - self.side) / self.scale), u)
            from_low = (x - self.low) / self.width
            from_high = (self.high - x) / self.width
            closed = np.where(from_low < 0.5, ndtri(from_low), -ndtri(from_high))
            return np.where(self.is_closed, closed, u)

    def log_volume(self, u: Array) -> Array:
        """Return log |dx / du|, shape (n,)."""
        logs = np.log(self.width) + np.where(self.is_half_open, u, 0.0)
        logs = logs - np.where(self.is_closed, 0.5 * (u**2 + LOG_TAU), 0.0)
        return logs.sum(axis=1)

    def derivatives(self, u: Array) -> tuple[Array, Array]:
        """Return dx / du of each coordinate, and the gradient of `log_volume`, both (n, d)."""
        with np.errstate(over="ignore"):
            half_open = self.sign * self.scale * np.exp(u)
        closed = self.width * np.exp(-0.5 * (u**2 + LOG_TAU))
        slopes = np.where(
            self.is_half_open, half_open, np.where(self.is_closed, closed, self.scale)
        )
        return slopes, np.where(self.is_half_open, 1.0, np.where(self.is_closed, -u, 0.0))


class Target:
    """Log densities of a path's target and of its base by coordinates without bounds, with the
    count of evaluations.

    Values are kept in a checkpoint as they come, and an interrupted run reads them from there
    instead of computing them again.

    Parameters
    ----------
    path : GeometricPath
    checkpoint : Checkpoint or None, default=None
    seconds_each : float, default=inf
        Time that there is for an evaluation and what is done between two of them.

    Attributes
    ----------
    n_evaluations : int
        Points at which the density or its gradient was asked for.
    has_gradient : bool
    failed : ndarray of bool of shape (n,)
        Points of the last call at which it failed or gave NaN.
    """

    def __init__(
        self,
        path: GeometricPath,
        checkpoint: Checkpoint | None = None,
        seconds_each: float = math.inf,
    ):
        self.path = path
        self.base = path.base
        self.coordinates = Coordinates(path.base, path.bounds)
        self.n_dimensions = int(path.n_dimensions)
        self.has_gradient = path.grad is not None
        self.n_evaluations = 0
        self.failed = np.zeros(0, dtype=bool)
        self._seconds_each = seconds_each
        self._began = time.monotonic()
        self._checkpoint = checkpoint
        self._values = np.empty(0)
        self._n_calls = self._n_read = 0
        if checkpoint is not None:
            self._n_calls, self._values = checkpoint.load("evaluations", self._values)

    @property
    def spent(self) -> float:
        """Evaluations, or as many as there was time for if that is more."""
        return max(self.n_evaluations, (time.monotonic() - self._began) / self._seconds_each)

    def in_time(self, budget: float) -> float:
        """Return how many evaluations of a budget there is time for, at the pace so far."""
        return budget * self.n_evaluations / max(self.spent, 1)

    def log_density(self, u: Array) -> Array:
        """Return the target's log density by u, shape (n,), in nats; -inf where it has none, fails
        or is NaN.

        Raises
        ------
        ValueError
            If it is +inf.
        """
        x = self.coordinates.points(u)
        values = self._evaluate(self.path.raw_log_density, x)
        self.failed = np.isnan(values)
        log_f = log_densities_of(self.path.density_name, values, x, nan_is_zero=True)
        return log_f + self.coordinates.log_volume(u)

    @np.errstate(all="ignore")  # far out anything may happen
    def gradient(self, u: Array) -> Array:
        """Return the gradient of the log density by u, (n, d), of a path that has one; NaN where it
        fails. It counts as one evaluation.
        """
        slopes, of_volume = self.coordinates.derivatives(u)
        x = self.coordinates.points(u)
        return self._evaluate(self.path.raw_gradient, x, self.n_dimensions) * slopes + of_volume

    def _evaluate(
        self, function: Callable[[Array], Array], x: Array, n_columns: int | None = None
    ) -> Array:
        """Values of a function at points, (n,) or (n, n_columns), or those that are kept."""
        first, last = self._n_read, self._n_read + len(x) * (n_columns or 1)
        if last > len(self._values):
            new = evaluate_bisecting_failures(function, x, n_columns)
            self._values = np.append(self._values[:first], new)
            self._n_calls += 1
            if self._checkpoint is not None:
                self._checkpoint.save("evaluations", self._n_calls, self._values)
        elif (budget := current_budget()) is not None:
            budget.spend(len(x))  # as when they were computed
        self._n_read = last
        self.n_evaluations += len(x)
        values = self._values[first:last]
        return values if n_columns is None else values.reshape(-1, n_columns)

    def log_base(self, u: Array) -> Array:
        """Return the base's log density by u, shape (n,), in nats."""
        log_base = self.base.log_density(self.coordinates.points(u))
        return log_base + self.coordinates.log_volume(u)

    def sample_base(self, n: int, rng: np.random.Generator) -> Array:
        """Return coordinates of n draws from the base."""
        return self.coordinates.of_points(np.asarray(self.base.sample(n, rng), dtype=np.float64))

    def far_points(self, n: int, rng: np.random.Generator) -> Array:
        """Return coordinates of n points beyond the base: its draws, farther from its center where
        a coordinate has no sides.
        """
        u = self.sample_base(n, rng)
        return np.where(self.coordinates.is_closed, u, rng.choice(_FAR, (n, 1)) * u)
